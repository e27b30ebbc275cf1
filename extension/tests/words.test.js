/** What people read: addresses as they are, and reports that may have arrived. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { addressOf } from "../src/device/packs.js";
import { addressText, budgetTexts, consentText, localOddsText } from "../src/ui/words.js";
import { notUnderstoodText, oddsText, reportStatusText, statusText } from "../src/ui/words.js";
import { mostBelief, oddsOfList } from "../src/core/index.js";
import { optinConsent, taskConsent } from "../src/core/consent.js";
import { LOCALES, speak } from "./locales.js";

beforeEach(() => speak("en"));

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

// ---- what people agree to, in every language from the same numbers ----

const TASKS = [
  { task: "t", consent: "", manifest: null },
  {
    task: "t",
    consent: "Mine.",
    manifest: { name: "n", epsilon: "2", delta: "0.00001", records_per_client: 3, records_per_optin: 20 },
  },
];
const numbersIn = (words) =>
  words
    .match(/\d+/gu)
    ?.map(Number)
    .sort((a, b) => a - b) ?? [];

for (const language of Object.keys(LOCALES)) {
  test(`${language}: the odds are the mechanism's numbers`, () => {
    speak(language);
    for (const [asked, queries] of [
      [{ epsilon: 4, delta: 1e-5 }, 50],
      [{ epsilon: 4, delta: 1e-5, recordsPerClient: 3 }, 50],
      [{ epsilon: 1, delta: 1e-5 }, 7],
    ]) {
      const odds = oddsOfList(asked, queries);
      const said = [2, 100, odds.times, odds.most, ...(odds.answers > 1 ? [odds.answers] : [])];
      assert.deepEqual(
        numbersIn(oddsText(odds)),
        said.sort((a, b) => a - b),
      );
    }
    const sets = { answers: 1, mostItems: 5, times: 52, most: 53, growth: 1 };
    assert.deepEqual(numbersIn(oddsText(sets)), [2, 5, 52, 53, 100]);
    for (const times of [0, 1, 100]) assert.match(oddsText({ ...sets, times }), /100/u);
    assert.doesNotMatch(oddsText({ ...sets, most: 100 }), /100 %/u);
  });

  test(`${language}: the choice states the odds of a usual list and of the worst`, () => {
    speak(language);
    const [usual, worst] = [oddsOfList({ epsilon: 4, delta: 1e-5 }, 50), oddsOfList({ epsilon: 4, delta: 1e-4 }, 20)];
    for (const odds of [usual, worst]) assert.ok(localOddsText([TASKS[0]]).includes(oddsText(odds)));
    const asked = { epsilon: 2, delta: 1e-5, recordsPerClient: 3 };
    for (const queries of [50, 20]) assert.ok(localOddsText(TASKS).includes(oddsText(oddsOfList(asked, queries))));
  });

  test(`${language}: what was given is a sentence with what all reports together give away`, () => {
    speak(language);
    const given = { days: 7, reports: 2, sealed: 1, growth: 30, lifetime: { reports: 0, sealed: 0, growth: 1 } };
    const [recent, all] = budgetTexts(given);
    assert.deepEqual(
      numbersIn(recent),
      [1, 2, 2, 2, 7, mostBelief(30)].sort((a, b) => a - b),
    );
    assert.deepEqual(numbersIn(all), []);
  });

  test(`${language}: consent says how many searches, with the operator's words and the recorded text`, () => {
    speak(language);
    const { shown, recorded } = consentText(TASKS[1]);
    assert.match(shown, /\b20\b.*\nMine\.$/u);
    assert.equal(recorded, language === "en" ? null : taskConsent(20, "Mine."));
  });
}

test("the English sentence about opting in is the recorded one", () => {
  for (const records of [1, 2, 20]) {
    const manifest = { records_per_optin: records };
    assert.equal(consentText({ manifest, consent: "" }).shown, optinConsent(records));
  }
});
