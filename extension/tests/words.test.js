/** What people read: addresses as they are, and reports that may have arrived. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf } from "../src/device/packs.js";
import { addressText, notUnderstoodText, reportStatusText, statusText } from "../src/ui/words.js";

for (const [url, expected] of [
  ["https://www.ebay.com/", "ebay.com"],
  ["ebay.com", "ebay.com"],
  ["https://ebay.com/caf%C3%A9", "ebay.com/café"],
  ["https://ebay.com/caf%E9", "ebay.com/caf%E9"],
  ["https://ebay.com/100%", "ebay.com/100%"],
  ["https://google.com@evil.example/", "evil.example"],
  ["google.com@evil.example", "google.com@evil.example"],
  ["a page title", "a page title"],
]) {
  test(`${url} is read as ${expected}`, () => assert.equal(addressText(url, addressOf(url)), expected));
}

test("a sealed record that went out without an answer is not said to be dropped for sure", () => {
  const report = { kind: "sealed", status: "cancelled", attempts: 1 };
  assert.match(reportStatusText(report), /may have arrived/u);
  assert.equal(reportStatusText({ ...report, attempts: 0 }), "dropped");
  assert.equal(reportStatusText({ ...report, kind: "report" }), "dropped");
});

test("clicks that were not understood are said, if there are any", () => {
  assert.equal(notUnderstoodText({ dropped: {} }), "");
  assert.match(notUnderstoodText({ dropped: { "not-understood": 1 } }), /^1 click on a result was not understood/u);
  assert.match(notUnderstoodText({ dropped: { "not-understood": 12 } }), /^12 clicks on results were not understood/u);
});

test("a status is shown in words, and an unknown one by its name alone", () => {
  assert.match(statusText({ code: "expired", at: 0 }), /^Refused: the manifest has expired/u);
  for (const code of ["server-busy", "constructor"])
    assert.equal(statusText({ code, at: 0 }), `The service answered with an error (${code}).`);
});
