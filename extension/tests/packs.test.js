/** Packs on a device: whole or by a delta, checked, exchanged at once, the last good one kept; answers from them. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { omniboxEntered, omniboxSuggestions } from "../src/background/omnibox.js";
import { bytes } from "../src/core/index.js";
import { Device } from "../src/device/device.js";
import { addressOf, searchPacks } from "../src/device/packs.js";
import { FakeService, locks } from "./fake_service.js";
import { MemoryStorage } from "./memory_storage.js";

const START = 1_800_000_000;
const TASK = "000102030405060708090a0b0c0d0e0f";
const vectors = JSON.parse(readFileSync(new URL("../../vectors/v1/pack_delta.json", import.meta.url)));
const [BASE, DELTA, RESULT] = ["base", "delta", "result"].map((name) => bytes.fromHex(vectors.cases[0][name]));
const digest = async (content) => bytes.toHex(await bytes.sha256(content));

let service, storage, device;

beforeEach(async () => {
  service = await FakeService.start(START);
  storage = new MemoryStorage();
  device = new Device({ storage, fetch: service.fetch, clock: () => START, lock: locks() });
  await device.enrol({ ...service.enrolment, task: TASK });
  await device.setMode("local");
});

/** A manifest that names a pack, and the files that it names. */
async function publish(content, round, deltas = [], changes = {}) {
  const artifact = await digest(content);
  service.artifacts.set(artifact, content);
  const named = [];
  for (const [base, delta] of deltas) {
    const name = await digest(delta);
    service.artifacts.set(name, delta);
    named.push({ base: await digest(base), artifact: name, bytes: delta.length });
  }
  await service.publish({
    phase: "idle",
    task: TASK,
    round,
    pack: { artifact, bytes: content.length, round, deltas: named, ...changes },
  });
}

const check = async () => (await device.check())[0].code;
const fetched = () =>
  service.asked.filter(({ url }) => url.includes("/artifacts/")).map(({ url }) => url.split("/").at(-1));
const kept = async () => (await device.overview()).packs.map(({ slot, round }) => [slot, round]);

test("a pack arrives whole, and is fetched once", async () => {
  await publish(BASE, 7);
  await check();
  await check();
  assert.deepEqual(fetched(), [await digest(BASE)]);
  assert.deepEqual(await kept(), [["current", 7]]);
});

test("the next one comes as a delta; the one before is kept", async () => {
  await publish(BASE, 7);
  await check();
  await publish(RESULT, 8, [[BASE, DELTA]]);
  assert.equal(await check(), "idle");
  assert.deepEqual(fetched(), [await digest(BASE), await digest(DELTA)]);
  assert.deepEqual(await kept(), [
    ["current", 8],
    ["previous", 7],
  ]);
  assert.equal((await device.openPacks())[0].meta.round, 8);
});

for (const [what, spoil] of [
  ["damaged", (delta) => delta.with(delta.length - 1, delta.at(-1) ^ 1)],
  ["cut off", (delta) => delta.subarray(0, 40)],
  ["of other packs", () => bytes.utf8("nonsense")],
]) {
  test(`a delta that is ${what}: the whole pack is fetched`, async () => {
    await publish(BASE, 7);
    await check();
    await publish(RESULT, 8, [[BASE, spoil(DELTA)]]);
    assert.equal(await check(), "idle");
    assert.equal(fetched().length, 3);
    assert.deepEqual(await kept(), [
      ["current", 8],
      ["previous", 7],
    ]);
  });
}

for (const [what, content, changes] of [
  ["cut off", RESULT.subarray(0, 100), {}],
  ["empty", new Uint8Array(0), {}],
  ["not a pack", bytes.utf8("<html>"), {}],
  ["of another size than the manifest names", RESULT, { bytes: 5 }],
  ["of another round than the manifest names", RESULT, { round: 9 }],
]) {
  test(`a pack that is ${what}: refused, the present one stays`, async () => {
    await publish(BASE, 7);
    await check();
    await publish(content, 8, [], changes);
    assert.equal(await check(), "garbage");
    assert.deepEqual(await kept(), [["current", 7]]);
    assert.equal((await device.openPacks())[0].meta.round, 7);
  });
}

test("other bytes under the right name: refused", async () => {
  await publish(BASE, 7);
  service.artifacts.set(await digest(BASE), RESULT);
  assert.equal(await check(), "garbage");
  assert.deepEqual(await kept(), []);
});

test("an older pack is not taken", async () => {
  await publish(RESULT, 8);
  await check();
  service.artifacts.set(await digest(BASE), BASE);
  await service.publish({
    phase: "idle",
    task: TASK,
    round: 8,
    pack: { artifact: await digest(BASE), bytes: BASE.length, round: 7, deltas: [] },
  });
  await check();
  assert.deepEqual(await kept(), [["current", 8]]);
});

test("a pack that went bad on the disk: the last good one answers", async () => {
  await publish(BASE, 7);
  await check();
  await publish(RESULT, 8, [[BASE, DELTA]]);
  await check();
  await storage.write(async (transaction) => {
    const pack = await transaction.get("packs", [TASK, "current"]);
    await transaction.put("packs", [TASK, "current"], { ...pack, artifact: "f".repeat(64) });
  });
  assert.equal((await device.openPacks())[0].meta.round, 7);
});

test("paused devices still get packs", async () => {
  await device.setPaused(true);
  await publish(BASE, 7);
  await check();
  assert.deepEqual(await kept(), [["current", 7]]);
});

test("answers for what was typed, in the address bar too", async () => {
  await publish(BASE, 7);
  await check();
  const indexes = await device.openPacks();
  const [best] = searchPacks(indexes, "bo", 5);
  assert.equal(best.how, "prefix");
  const [suggestion] = omniboxSuggestions(indexes, "bo");
  assert.equal(suggestion.content, addressOf(best.url));
  assert.deepEqual(
    suggestion.parts.map(({ kind }) => kind),
    ["match", "dim", "url"],
  );
  assert.deepEqual(omniboxSuggestions(indexes, ""), []);
  assert.deepEqual(omniboxSuggestions([], "bo"), []);
});

/** What a pack without pages answers, and one whose pages are partly no links. */
const answering = (...answers) => [
  { search: () => answers.map(([query, url]) => ({ query, url, probability: 1, low: 1, how: "prefix" })) },
];

test("answers without a page, or with one that is no link, are shown in the address bar", async () => {
  const indexes = answering(["weather", null], ["weather", "a page title"], ["wetter", "wetter.example"]);
  const found = omniboxSuggestions(indexes, "we");
  assert.deepEqual(
    found.map(({ content }) => content),
    ["weather", "https://wetter.example/"],
  );
  assert.deepEqual(found[0].parts, [{ text: "weather", kind: "match" }]);
});

test("signs that turn a line around are spelt out in the address bar", () => {
  const [{ content, parts }] = omniboxSuggestions(
    answering(["bank\u202edrow", "https://bank.example/\u202egnp.exe"]),
    "ba",
  );
  assert.equal(content, "https://bank.example/%E2%80%AEgnp.exe");
  assert.deepEqual(
    parts.map(({ text }) => text),
    ["bank[U+202E]drow", " – ", "https://bank.example/[U+202E]gnp.exe"],
  );
});

test("an answer without a page opens our search page, not another answer's", async () => {
  const opened = [];
  const asked = {
    openPacks: () => answering(["weather", null], ["weather report", "https://report.example"]),
    noteSuggestion: () => undefined,
  };
  await omniboxEntered(asked, "weather", (url) => opened.push(url), "page");
  assert.deepEqual(opened, ["page?q=weather"]);
});

test("what is chosen in the address bar opens, and is remembered as a suggestion", async () => {
  await publish(BASE, 7);
  await check();
  const opened = [];
  const open = (url) => opened.push(url);
  const [{ content }] = omniboxSuggestions(await device.openPacks(), "bo");
  await omniboxEntered(device, content, open, "page");
  await omniboxEntered(device, "bo", open, "page");
  await omniboxEntered(device, "no such thing & more", open, "page");
  await omniboxEntered(device, "javascript:alert(1)", open, "page");
  assert.deepEqual(opened, [content, content, "page?q=no%20such%20thing%20%26%20more", "page?q=javascript%3Aalert(1)"]);
  assert.equal(await device.observe({ query: "anything", url: content, engine: "google" }), "own-suggestion");
});

for (const [url, expected] of [
  ["http://www.ebay.com", "http://www.ebay.com/"],
  ["www.ebay.com", "https://www.ebay.com/"],
  ["ebay.com:8080", "https://ebay.com:8080/"],
  ["ebay.com:8080/a", null],
  ["ebay.com/a", null],
  ["google.com@evil.example", null],
  ["http://google.com@evil.example/", "http://google.com@evil.example/"],
  ["ftp://ebay.com", null],
  ["http://", null],
  ["javascript:alert", null],
  ["javascript:alert(1)", null],
  ["data:text/html,x", null],
  ["file:///etc/passwd", null],
  ["a page title", null],
  [null, null],
]) {
  test(`where ${url} leads`, () => assert.equal(addressOf(url), expected));
}
