/** The device's rules, against a service that may do anything. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Device } from "../src/device/device.js";
import { CONSENT, FakeService, locks, TASK } from "./fake_service.js";
import { MemoryStorage } from "./memory_storage.js";
import { fromHex, toHex } from "../src/core/bytes.js";
import { optinConsent, taskConsent } from "../src/core/consent.js";
import { contributorTag, openRecords } from "../src/core/sealed.js";
import { spentSince } from "../src/device/ledger.js";
import { consentText, recordsAsked } from "../src/ui/words.js";
import { speak } from "./locales.js";

speak("en");

const START = 1_800_000_000;
let clock, service, storage, device;

beforeEach(async () => {
  clock = START;
  service = await FakeService.start(START);
  storage = new MemoryStorage();
  device = deviceOn(storage);
  await device.enrol(service.enrolment);
});

function deviceOn(store, changes = {}) {
  return new Device({
    storage: store,
    fetch: service.fetch,
    clock: () => clock,
    lock: locks(),
    ...changes,
  });
}

async function agreed(mode = "local") {
  await device.setMode(mode);
  await device.observe({ query: " Weather ", url: "https://weather.example/a?page=1#top", engine: "google" });
}

const code = async (options) => (await device.check(options))[0].code;
const bodies = () => new Set(service.posts.map(({ body }) => body));
const only = (items) => (assert.equal(items.length, 1), items[0]);

test("nothing is asked, kept or sent before consent", async () => {
  await service.publish();
  assert.equal(
    await device.observe({ query: "weather", url: "https://weather.example", engine: "google" }),
    "not-recording",
  );
  assert.deepEqual(await device.check({ sendNow: true }), []);
  assert.equal(service.asked.length, 0);
  assert.equal((await device.overview()).records.length, 0);
});

test("of a result whose link cannot be read only the number is kept, and only with consent", async () => {
  assert.equal(await device.noteNotUnderstood(), "not-recording");
  await device.setMode("local");
  for (let i = 0; i < 2; i += 1) assert.equal(await device.noteNotUnderstood(), "not-understood");
  const { settings, records } = await device.overview();
  assert.deepEqual([settings.dropped, records], [{ "not-understood": 2 }, []]);
  await device.setPaused(true);
  assert.equal(await device.noteNotUnderstood(), "not-recording");
});

test("one report in a round, with the truth kept here", async () => {
  await service.publish();
  await agreed();
  assert.equal(await code({ sendNow: true }), "sent");
  for (let i = 0; i < 3; i += 1) assert.equal(await code({ sendNow: true }), "done");
  const post = only(service.posts);
  assert.equal(post.headers["Content-Type"], "application/vnd.searchblend.report");
  assert.deepEqual(Object.keys(post.headers), ["Content-Type"]);
  const { reports, spent } = await device.overview();
  assert.deepEqual(only(reports).truth, { query: "weather", url: "https://weather.example/a" });
  assert.equal(only(reports).said.length, 1);
  const { times, most, growth } = only(reports).odds;
  assert.ok(times > 50 && times < 100 && most < 100, `${times} ${most}`);
  assert.ok(growth > 1 && growth <= Math.exp(4) * (1 + 1e-9), `${growth}`);
  assert.deepEqual([spent.epsilon, spent.left, spent.reports, spent.sealed, spent.growth], [4, 4, 1, 0, growth]);
});

test("requests carry no cookie, no referrer, no ETag, and follow no redirect", async () => {
  await service.publish();
  await agreed();
  await code({ sendNow: true });
  for (const { options } of service.asked) {
    assert.equal(options.credentials, "omit");
    assert.equal(options.redirect, "error");
    assert.equal(options.referrerPolicy, "no-referrer");
    assert.equal(options.cache, "no-store");
    assert.equal(options.headers?.["If-None-Match"], undefined);
  }
});

test("a report waits for its random time", async () => {
  await service.publish();
  await agreed();
  const times = new Set();
  for (let round = 1; round <= 2; round += 1) {
    await service.publish({ round });
    assert.equal(await code(), "waiting"); // never in the moment in which it was made
    for (const report of (await device.overview()).reports) times.add(report.sendAfter - clock);
  }
  for (const time of times) assert.ok(time >= 1 && time <= 800, String(time));
  assert.equal(await device.nextSend(), Math.min(...times) + clock);
  clock += 801;
  await device.check();
  assert.equal(service.posts.length, 2);
  assert.equal(await device.nextSend(), null);
});

test("a lost answer: the same bytes again, the ledger once", async () => {
  await service.publish();
  await agreed();
  service.answer = () => Promise.reject(new TypeError("network"));
  assert.equal(await code({ sendNow: true }), "retrying");
  service.answer = () => new Response(null, { status: 503, headers: { "Retry-After": "7" } });
  assert.equal(await code({ sendNow: true }), "retrying");
  assert.equal(await code(), "waiting");
  service.answer = () => new Response(null, { status: 200 });
  assert.equal(await code({ sendNow: true }), "sent");
  assert.equal(service.posts.length, 3);
  assert.equal(bodies().size, 1);
  assert.equal((await device.overview()).spent.epsilon, 4);
});

test("a refusal is final", async () => {
  await service.publish();
  await agreed();
  service.answer = () => Response.json({ type: "urn:searchblend:problem:window-closed" }, { status: 409 });
  assert.equal(await code({ sendNow: true }), "refused");
  await code({ sendNow: true });
  assert.equal(service.posts.length, 1);
  assert.equal((await device.overview()).reports[0].reason, "window-closed");
});

for (const [what, answer, reason] of [
  ["a proxy's error page", () => new Response("<html>502 Bad Gateway</html>", { status: 502 }), "status-502"],
  ["a proxy without a body", () => new Response(null, { status: 504 }), "status-504"],
  ["a login page", () => new Response("<html>Please log in</html>", { status: 200 }), "status-200"],
  ["a page that is nowhere", () => new Response("not found", { status: 404 }), "status-404"],
  [
    "JSON that is no problem of this protocol",
    () => Response.json({ type: "about:blank" }, { status: 500 }),
    "status-500",
  ],
  ["JSON that is nothing at all", () => Response.json(null, { status: 500 }), "status-500"],
]) {
  test(`${what} is no answer of the service: the same bytes go again`, async () => {
    await service.publish();
    await agreed();
    service.answer = answer;
    assert.equal(await code({ sendNow: true }), "retrying");
    assert.equal((await device.overview()).reports[0].reason, reason);
    service.answer = () => new Response("", { status: 200 });
    assert.equal(await code({ sendNow: true }), "sent");
    assert.equal(bodies().size, 1);
    assert.equal((await device.overview()).reports[0].reason, null);
  });
}

test("two windows at once make one report", async () => {
  await service.publish();
  await agreed();
  // The lock is taken away on purpose: the transaction alone must do.
  const noLock = (name, work) => work();
  const windows = [1, 2, 3].map(() => deviceOn(storage, { lock: noLock }));
  await Promise.all(windows.map((one) => one.check({ sendNow: true })));
  assert.equal(bodies().size, 1);
  assert.equal((await device.overview()).spent.epsilon, 4);
});

test("opt-in seals a true record, binds the consent, and never reports in the same round", async () => {
  await service.publishOptin();
  await agreed("opt-in");
  assert.equal(await code({ sendNow: true }), "sent");
  const post = only(service.posts);
  assert.match(post.path, /contributions$/u);
  assert.match(post.headers.Authorization, /^Bearer [0-9a-f]{32}$/u);
  await device.setMode("local");
  await service.publish({ round: 1 });
  assert.equal(await code({ sendNow: true }), "done");
  await service.publish({ round: 2 });
  assert.equal(await code({ sendNow: true }), "sent");
});

test("a sealed record opens under the tag of the credential that it is sent with, and no other", async () => {
  await service.publishOptin();
  await device.enrol(service.enrolment, "sbe_an-enrolment-code-of-26");
  await agreed("opt-in");
  assert.equal(await code({ sendNow: true }), "sent");
  const post = only(service.posts);
  assert.equal(post.headers.Authorization, "Bearer sbe_an-enrolment-code-of-26");
  const context = { task: fromHex(TASK), round: 1, consent: fromHex(service.manifest.optin.consent) };
  const opened = async (credential) =>
    openRecords(fromHex(post.body), context, await contributorTag(context, credential), service.roundKey, 1);
  assert.deepEqual(await opened("sbe_an-enrolment-code-of-26"), [
    { query: "weather", url: "https://weather.example/a" },
  ]);
  await assert.rejects(opened("sbe_another-code-of-the-list"));
});

for (const [name, swapped] of [
  ["the curator's key", {}],
  ["a key in its place", { optin: { public_key: "cd".repeat(32) } }],
  ["another ε", { epsilon: "8" }],
  ["no signature", { minor: 0, optin: { curator: undefined, settings: undefined } }],
]) {
  const isRight = Object.keys(swapped).length === 0;
  test(`a device that pinned the curator is given ${name}`, async () => {
    await device.enrol({ ...service.enrolment, curators: [toHex(await service.addCurator())] });
    await agreed("opt-in");
    await service.publishOptin();
    const optin = Object.fromEntries(
      Object.entries({ ...service.manifest.optin, ...swapped.optin }).filter(([, value]) => value !== undefined),
    );
    await service.publishOptin({ swapped: isRight ? {} : { ...swapped, optin } });
    assert.equal(await code({ sendNow: true }), isRight ? "sent" : "wrong-curator");
    assert.equal(service.posts.length, isRight ? 1 : 0);
  });
}

test("a device that pinned no curator believes the publisher", async () => {
  await service.addCurator();
  await agreed("opt-in");
  await service.publishOptin();
  assert.equal(await code({ sendNow: true }), "sent");
});

test("credentials of two rounds differ", async () => {
  await agreed("opt-in");
  for (const round of [1, 2]) {
    await service.publishOptin({ round });
    await code({ sendNow: true });
  }
  assert.equal(new Set(service.posts.map(({ headers }) => headers.Authorization)).size, 2);
});

test("another consent text: nothing is sealed", async () => {
  await service.publishOptin({ text: "I agree to everything." });
  await agreed("opt-in");
  assert.equal(await code({ sendNow: true }), "consent-changed");
  assert.equal(service.posts.length, 0);
});

test("a text without the sentence about the number: nothing is sealed", async () => {
  await service.publishOptin({ text: CONSENT });
  await agreed("opt-in");
  assert.equal(await code({ sendNow: true }), "consent-changed");
  assert.equal(service.posts.length, 0);
});

for (const words of ["", " ", CONSENT, optinConsent(1), `${optinConsent(1)} `, optinConsent(1).slice(0, -1)]) {
  test(`a round that takes more than was agreed to gets nothing, with the text "${words}"`, async () => {
    await service.publishOptin({ text: taskConsent(20, words), records_per_optin: 20 });
    await device.enrol({ ...service.enrolment, consent: words });
    await agreed("opt-in");
    const [{ task }] = await device.tasks();
    for (const agreedTo of [
      { [task]: { local: 1, "opt-in": 1 } },
      { [task]: { local: 20, "opt-in": 19 } },
      { ["0".repeat(32)]: { local: 20, "opt-in": 20 } }, // what another list may take
    ]) {
      await device.setMode("opt-in", agreedTo);
      assert.equal(await code({ sendNow: true }), "more-than-agreed");
      assert.equal(service.posts.length, 0);
    }
    await device.setMode("opt-in", recordsAsked(await device.tasks()));
    assert.equal(await code({ sendNow: true }), "sent");
  });
}

test("a consent that kept no number is for one search", async () => {
  await agreed("opt-in");
  await storage.write(async (transaction) => {
    const { agreed: _, ...settings } = await transaction.get("settings", "settings");
    await transaction.put("settings", "settings", settings);
  });
  await service.publishOptin({ records_per_optin: 2 });
  assert.equal(await code({ sendNow: true }), "more-than-agreed");
  await service.publishOptin({ round: 2 });
  assert.equal(await code({ sendNow: true }), "sent");
});

test("a client gives no more answers than it agreed to", async () => {
  await service.publish({ records_per_client: 2 });
  await agreed();
  assert.equal(await code({ sendNow: true }), "more-than-agreed");
  assert.equal(service.posts.length, 0);
  assert.deepEqual(Object.values(recordsAsked(await device.tasks())), [{ local: 2, "opt-in": 1 }]);
  assert.match(consentText(only(await device.tasks())).shown, /^I agree that one of my searches is sent/u);
});

test("a sealed record can be taken back", async () => {
  await service.publishOptin();
  await agreed("opt-in");
  await code({ sendNow: true });
  service.answer = () => new Response(null, { status: 204 });
  assert.equal(await device.withdraw(TASK, 1), true);
  assert.equal(service.posts[1].headers.Authorization, service.posts[0].headers.Authorization);
  assert.equal((await device.overview()).reports[0].status, "withdrawn");
  assert.equal(await code({ sendNow: true }), "done");
});

for (const mode of ["off", "local", "opt-in"]) {
  test(`a sealed record whose answer was lost can be taken back, with consent ${mode}`, async () => {
    await service.publishOptin();
    await agreed("opt-in");
    service.answer = () => Promise.reject(new TypeError("network"));
    assert.equal(await code({ sendNow: true }), "retrying");
    await device.setMode(mode);
    assert.equal(await device.withdraw(TASK, 1), false); // still no network
    assert.equal((await device.overview()).reports[0].status, "cancelled");
    service.answer = () => new Response(null, { status: 204 });
    assert.equal(await device.withdraw(TASK, 1), true);
    const { method, headers } = service.posts.at(-1);
    assert.deepEqual([method, headers.Authorization], ["DELETE", service.posts[0].headers.Authorization]);
    assert.equal((await device.overview()).reports[0].status, "withdrawn");
    await device.check({ sendNow: true });
    assert.equal(service.posts.length, 3); // nothing after it was taken back
  });
}

for (const [status, gone] of [
  [204, true],
  [503, false],
]) {
  test(`who leaves takes the sealed record of this round back, or hears that it may be there: ${status}`, async () => {
    await service.publishOptin();
    await agreed("opt-in");
    await code({ sendNow: true });
    service.answer = () => new Response(null, { status });
    assert.equal(await device.leave(TASK), gone);
    const { method, headers } = service.posts.at(-1);
    assert.deepEqual([method, headers.Authorization], ["DELETE", service.posts[0].headers.Authorization]);
    assert.deepEqual((await device.overview()).reports, []);
  });
}

test("what never went out is not asked for back", async () => {
  await service.publishOptin();
  await agreed("opt-in");
  await code();
  assert.equal(await device.withdraw(TASK, 1), false);
  assert.equal((await device.overview()).reports[0].status, "pending");
  await device.setMode("off");
  assert.equal(await device.withdraw(TASK, 1), false);
  assert.equal(service.posts.length, 0);
});

test("an attempt is written down before the bytes go out", async () => {
  await service.publishOptin();
  await agreed("opt-in");
  await code();
  const ended = deviceOn(storage, { onPoint: (name) => assert.notEqual(name, "answered", "ended here") });
  await ended.check({ sendNow: true });
  assert.equal(service.posts.length, 1);
  assert.equal((await device.overview()).reports[0].attempts, 1);
});

test("switching off drops what was not sent; its debit stays", async () => {
  await service.publish();
  await agreed();
  await code();
  await device.setMode("off");
  clock += 1000;
  await device.check({ sendNow: true });
  await device.setMode("local");
  await device.check({ sendNow: true });
  assert.equal(service.posts.length, 0);
  assert.equal((await device.overview()).spent.epsilon, 4);
});

test("switching off forgets the searches", async () => {
  await agreed();
  await device.noteSuggestion("rain", "https://rain.example");
  await device.setMode("off");
  assert.deepEqual((await device.overview()).records, []);
  const exported = JSON.stringify(await device.exported());
  assert.ok(!exported.includes("weather.example") && !exported.includes("rain"));
});

test("local answers are noted only while searches are kept, and for half an hour", async () => {
  const noted = async () => (await device.settings()).suggestions.length;
  await device.noteSuggestion("weather", "https://weather.example/a");
  assert.equal(await noted(), 0);
  await device.setMode("local");
  await device.setPaused(true);
  await device.noteSuggestion("weather", "https://weather.example/a");
  assert.equal(await noted(), 0);
  await device.setPaused(false);
  await device.noteSuggestion("weather", "https://weather.example/a");
  clock += 1000;
  await device.noteSuggestion("news", "https://news.example");
  assert.equal(await noted(), 2);
  clock += 1000;
  await device.noteSuggestion("maps", "https://maps.example");
  assert.equal(await noted(), 2);
  clock += 1801;
  await device.check();
  assert.equal(await noted(), 0);
});

test("searches that somebody kept who is off now go at the next check", async () => {
  await agreed();
  // As earlier versions left them: off, and not forgotten.
  await storage.write(async (transaction) => {
    await transaction.put("settings", "settings", { ...(await transaction.get("settings", "settings")), mode: "off" });
  });
  assert.deepEqual(await device.check(), []);
  assert.deepEqual((await device.overview()).records, []);
});

for (const mode of ["local", "off"]) {
  test(`searches go after 28 days, in old reports too (${mode})`, async () => {
    await service.publish();
    await agreed();
    await code({ sendNow: true });
    await device.setMode(mode);
    clock += 27 * 86_400;
    await device.check();
    assert.equal(only((await device.overview()).reports).truth.query, "weather");
    clock += 2 * 86_400;
    await device.check();
    const { records, reports } = await device.overview();
    assert.deepEqual(records, []);
    assert.deepEqual([only(reports).truth, only(reports).isForgotten, only(reports).status], [null, true, "sent"]);
  });
}

test("paused: nothing is kept or said", async () => {
  await service.publish();
  await agreed();
  await device.setPaused(true);
  assert.equal(await device.observe({ query: "news", url: "https://news.example", engine: "bing" }), "not-recording");
  assert.equal(await code({ sendNow: true }), "paused");
  await device.setPaused(false);
  assert.equal(await code({ sendNow: true }), "sent");
});

test("a device without a record follows the task's rule", async () => {
  await device.setMode("local");
  await service.publish();
  assert.equal(await code({ sendNow: true }), "no-record");
  await service.publish({ silent_devices: "report_wildcard" });
  assert.equal(await code({ sendNow: true }), "sent");
  assert.deepEqual((await device.overview()).reports[0].truth, { query: null, url: null });
});

test("a list of another engine's searches gets none of this one's", async () => {
  await agreed();
  await service.publish({ engine: "bing" });
  assert.equal(await code({ sendNow: true }), "no-record");
});

for (const [what, changes, expected] of [
  ["an older sequence", { sequence: 1 }, "rolled-back"],
  ["another manifest of the same number", { sequence: 5, name: "two faces" }, "two-faces"],
  ["an older round", { sequence: 6, round: 2 }, "older-round"],
  ["an expired one", { sequence: 6, round: 9, expires: START - 1 }, "expired"],
  ["one for newer devices", { sequence: 6, round: 9, min_device_version: "9.0" }, "device-too-old"],
  ["too much epsilon", { sequence: 6, round: 9, epsilon: "9" }, "over-policy"],
  ["too much delta", { sequence: 6, round: 9, delta: "0.1" }, "over-policy"],
  ["too many records", { sequence: 6, round: 9, records_per_client: 1000 }, "over-policy"],
  ["another epsilon than the list's", { sequence: 6, round: 9, epsilon: "3" }, "wrong-parameters"],
  ["a stopped task", { sequence: 6, round: 9, killed: true }, "killed"],
  ["another task's", { sequence: 6, round: 9, task: "f".repeat(32) }, "wrong-task"],
]) {
  test(`manifest: ${what} is refused, nothing is sent`, async () => {
    await agreed();
    await service.publish({ sequence: 5, round: 3, phase: "idle" });
    assert.equal(await code(), "idle");
    await service.publish({ round: 3, ...changes });
    assert.equal(await code({ sendNow: true }), expected);
    assert.equal(service.posts.length, 0);
    assert.equal((await device.overview()).spent.reports, 0);
  });
}

test("a task that is stopped: what waits is dropped, and no later manifest revives it", async () => {
  await service.publish();
  await agreed();
  assert.equal(await code(), "waiting");
  await service.publish({ killed: true });
  assert.equal(await code({ sendNow: true }), "killed");
  assert.equal((await device.overview()).reports[0].status, "cancelled");
  await service.publish({ round: 2 });
  assert.equal(await code({ sendNow: true }), "killed");
  await device.leave(TASK);
  await device.enrol(service.enrolment);
  assert.equal(await code({ sendNow: true }), "killed");
  assert.equal(service.posts.length, 0);
});

test("a round of more than four bytes is refused", async () => {
  await agreed("opt-in");
  await service.publishOptin({ round: 2 ** 32 });
  assert.equal(await code({ sendNow: true }), "garbage");
  await service.publishOptin({ round: 2 ** 32 - 1 });
  assert.equal(await code({ sendNow: true }), "sent");
});

test("a record that is too long for a message is passed over", async () => {
  const long = { query: "ж".repeat(500), url: `https://long.example/${"ж".repeat(1900)}`, engine: "google" };
  await device.setMode("opt-in");
  assert.equal(await device.observe(long), "kept");
  await service.publishOptin();
  assert.equal(await code({ sendNow: true }), "no-record");
  assert.equal((await device.overview()).spent.reports, 0);
  await device.observe({ query: "weather", url: "https://weather.example/a", engine: "google" });
  assert.equal(await code({ sendNow: true }), "sent");
  assert.deepEqual((await device.overview()).reports[0].truth, [
    { query: "weather", url: "https://weather.example/a" },
  ]);
});

for (const [hasUrls, url] of [
  [true, "https://weather.example/a"],
  [false, null],
]) {
  test(`a sealed record of a list ${hasUrls ? "with" : "without"} pages`, async () => {
    await device.enrol({ ...service.enrolment, has_urls: hasUrls });
    await service.publishOptin();
    await agreed("opt-in");
    assert.equal(await code({ sendNow: true }), "sent");
    assert.deepEqual((await device.overview()).reports[0].truth, [{ query: "weather", url }]);
  });
}

for (const [what, spoil] of [
  ["a forged signature", (message) => Buffer.from(message.toString().replace("test list", "best list"))],
  ["HTML", () => Buffer.from("<html>Please log in to the hotel's network</html>")],
  ["nothing", () => Buffer.alloc(0)],
  ["half of it", (message) => message.subarray(0, message.length / 2)],
  ["random bytes", () => crypto.getRandomValues(new Uint8Array(500))],
]) {
  test(`the service answers ${what} for a manifest`, async () => {
    await agreed();
    await service.publish();
    service.message = spoil(Buffer.from(service.message));
    assert.equal(await code({ sendNow: true }), "garbage");
    assert.equal(service.posts.length, 0);
  });
}

test("an endless answer is not read", async () => {
  await agreed();
  await service.publish();
  service.message = new Uint8Array(1_000_000);
  assert.equal(await code(), "too-large");
});

for (const [what, queries, changes] of [
  ["an empty list", [], {}],
  ["other bytes than the manifest names", null, {}],
  ["a list with a wrong digest", [["weather", ["https://weather.example/a"]]], { digest: "0".repeat(64) }],
  ["a list with a notice", [["weather", ["https://weather.example/a"]]], { notice: "not private" }],
]) {
  test(`${what}: nothing is said`, async () => {
    await agreed();
    if (queries) await service.list(queries, changes);
    await service.publish();
    if (!queries) service.artifacts.set(service.client.artifact, Buffer.from("{}"));
    const found = await code({ sendNow: true });
    assert.ok(["garbage", "empty-list", "bad-head-list"].includes(found), found);
    assert.equal(service.posts.length, 0);
    assert.equal((await device.overview()).spent.reports, 0);
  });
}

test("a list that is too short to hide in, and one that no curator has drawn, get no answer", async () => {
  await agreed();
  const { queries } = service.listed;
  await service.list(queries.slice(0, 19));
  await service.publish();
  assert.equal(await code({ sendNow: true }), "short-list");
  for (const optin_result of [null, undefined]) {
    await service.list(queries, { optin_result });
    await service.publish();
    assert.equal(await code({ sendNow: true }), "not-drawn");
  }
  await service.list(queries);
  await service.publish({ round: 2 });
  const drawn = JSON.parse(Buffer.from(service.artifacts.get(service.client.artifact))).optin_result;
  await service.list([...queries, ["one person's own", []]], { optin_result: drawn });
  await service.publish({ round: 2 });
  assert.equal(await code({ sendNow: true }), "not-drawn");
  assert.equal(service.posts.length, 0);
  assert.equal((await device.overview()).spent.reports, 0);
});

test("a device that pinned the curator answers about no other's list", async () => {
  const [curator, stranger] = [toHex(await service.addCurator()), `04${"ab".repeat(64)}`];
  for (const [pinned, expected] of [
    [stranger, "not-drawn"],
    [curator, "sent"],
  ]) {
    await device.enrol({ ...service.enrolment, curators: [pinned] });
    await service.publish();
    await agreed();
    assert.equal(await code({ sendNow: true }), expected);
  }
});

test("a clock that jumps back", async () => {
  await agreed();
  await service.publish();
  assert.equal(await code({ sendNow: true }), "sent");
  clock -= 400 * 86_400;
  for (const round of [1, 2]) {
    await service.publish({ round, expires: START + 50 });
    await code({ sendNow: true });
  }
  // The first round stays done, the second is within the budget: what was spent "in the future" counts.
  assert.deepEqual(
    service.posts.map(({ round }) => round).filter((round) => round === 1),
    [1],
  );
  await service.publish({ round: 3 });
  await device.check({ sendNow: true });
  assert.ok((await device.overview()).spent.epsilon <= 8);
  assert.ok(service.posts.length <= 2);
});

test("a clock that was behind gives no second week", async () => {
  await agreed("opt-in");
  await service.publish({ phase: "idle" });
  assert.equal(await code(), "idle");
  clock -= 400 * 86_400;
  await device.observe({ query: "weather", url: "https://weather.example/a", engine: "google" });
  for (const round of [1, 2]) {
    await service.publishOptin({ round });
    assert.equal(await code({ sendNow: true }), "sent");
  }
  clock = START + 60;
  await device.observe({ query: "weather", url: "https://weather.example/a", engine: "google" });
  for (const round of [3, 4]) {
    await service.publishOptin({ round });
    assert.equal(await code({ sendNow: true }), "budget-spent");
  }
  assert.equal((await device.overview()).spent.epsilon, 8);
});

test("a service that signs times ahead of the clock does not end the week early", async () => {
  await agreed();
  for (let day = 1; day <= 20; day += 1) {
    await service.publish({
      round: day,
      issued: START + day * 86_400 - 10,
      expires: START + (day + 1) * 86_400,
      client: { closes: START + (day + 1) * 86_400 },
    });
    await code({ sendNow: true });
  }
  assert.equal(service.posts.length, 2);
});

test("a window that is over stays so when the clock is put back", async () => {
  await agreed();
  await service.publish({ issued: START + 2000, expires: START + 4000 });
  assert.equal(await code({ sendNow: true }), "window-closed");
});

test("the budget of a week is the device's own", async () => {
  await agreed();
  for (let round = 1; round <= 4; round += 1) {
    await service.publish({ round });
    await device.check({ sendNow: true });
  }
  assert.equal(service.posts.length, 2);
  assert.equal((await device.tasks())[0].status.code, "budget-spent");
});

test("storage full: nothing is sent", async () => {
  await agreed();
  await service.publish();
  await code(); // the manifest is kept, and a report made
  await service.publish({ round: 2 });
  storage.isFull = true;
  assert.equal((await device.check({ sendNow: false }))[0].code, "storage-full");
  storage.isFull = false;
  assert.deepEqual(
    (await device.overview()).reports.map(({ round }) => round),
    [1],
  );
});

test("erasing keeps the ledger, and the round stays done", async () => {
  await agreed();
  await service.publish();
  await code({ sendNow: true });
  await device.erase();
  const { records, reports, spent } = await device.overview();
  assert.deepEqual([records.length, reports.length, spent.epsilon], [0, 0, 4]);
  await agreed();
  assert.equal(await code({ sendNow: true }), "done");
  assert.equal(service.posts.length, 1);
});

test("leaving and coming back gives no second report, and no older manifest", async () => {
  await agreed();
  await service.publish({ sequence: 7 });
  await code({ sendNow: true });
  await device.leave(TASK);
  assert.deepEqual(await device.check(), []);
  await device.enrol(service.enrolment);
  await service.publish({ sequence: 6, round: 2 });
  assert.equal(await code({ sendNow: true }), "rolled-back");
  await service.publish({ sequence: 8 });
  assert.equal(await code({ sendNow: true }), "done");
  assert.equal(service.posts.length, 1);
});

test("a package's list is joined once; who left it comes back only by asking", async () => {
  const packed = { ...service.enrolment, has_urls: false };
  assert.equal(await device.enrolPacked(packed), "known");
  await device.leave(TASK);
  assert.deepEqual((await device.overview()).left, [TASK]);
  assert.equal(await device.enrolPacked(packed), "left");
  assert.deepEqual(await device.tasks(), []);
  assert.equal(await device.enrolPacked(packed, { again: true }), "joined");
  assert.equal(only(await device.tasks()).hasUrls, false);
  assert.deepEqual((await device.overview()).left, []);
  assert.equal(await deviceOn(new MemoryStorage()).enrolPacked(packed), "joined");
  await assert.rejects(device.enrolPacked({ ...packed, task: "xyz" }), (error) => error.field === "task");
});

for (const [query, url, expected] of [
  ["mail to ann@example.com", "https://mail.example", "e-mail"],
  ["weather", "https://ann:secret@weather.example", "credentials-in-url"],
  ["printer", "http://192.168.1.4/status", "ip-address"],
  ["wiki", "http://wiki.corp/start", "private-address"],
  ["wiki", "http://intranet/start", "private-address"],
  ["file", "file:///etc/passwd", "not-a-web-address"],
  ["x".repeat(5000), "https://weather.example", "too-long"],
  [undefined, "https://weather.example", "unusable-query"],
]) {
  test(`never kept: ${expected} (${String(url).slice(0, 30)})`, async () => {
    await device.setMode("local");
    assert.equal(await device.observe({ query, url, engine: "google" }), expected);
    const exported = JSON.stringify(await device.exported());
    assert.equal((await device.overview()).records.length, 0);
    assert.ok(!exported.includes("secret") && !exported.includes("ann@"));
  });
}

test("what came from a local suggestion is not the user's own search", async () => {
  await device.setMode("local");
  await device.noteSuggestion("weather", "https://weather.example/a");
  assert.equal(
    await device.observe({ query: "weather", url: "https://other.example", engine: "google" }),
    "own-suggestion",
  );
  assert.equal(
    await device.observe({ query: "rain", url: "https://weather.example/a?x=1", engine: "google" }),
    "own-suggestion",
  );
  assert.equal(await device.observe({ query: "rain", url: "https://rain.example", engine: "google" }), "kept");
  clock += 3600;
  assert.equal(await device.observe({ query: "weather", url: "https://weather.example/a", engine: "google" }), "kept");
});

test("old searches go, and the oldest of too many", async () => {
  await device.setMode("local");
  await device.observe({ query: "first", url: "https://first.example", engine: "google" });
  clock += 29 * 86_400;
  await device.observe({ query: "second", url: "https://second.example", engine: "google" });
  assert.deepEqual(
    (await device.overview()).records.map(({ query }) => query),
    ["second"],
  );
});

test("the export says that there is a code, not which", async () => {
  assert.equal((await device.exported()).tasks[0].code, false);
  await device.enrol(service.enrolment, "a secret code");
  const document = await device.exported();
  assert.equal(document.tasks[0].code, true);
  assert.ok(!JSON.stringify(document).includes("a secret code"));
});

test("the export holds everything but credentials", async () => {
  await service.publishOptin();
  await agreed("opt-in");
  await code({ sendNow: true });
  const document = await device.exported();
  assert.equal(document.records[0].query, "weather");
  assert.equal(document.ledger[0].epsilon, 4);
  assert.match(document.reports[0].bytes, /^[0-9a-f]+$/u);
  const credential = service.posts[0].headers.Authorization.slice("Bearer ".length);
  assert.ok(!JSON.stringify(document).includes(credential));
});

test("an enrolment that the vectors refuse, or a code that no header takes, changes nothing", async () => {
  await assert.rejects(device.enrol({ ...service.enrolment, keys: [] }), (error) => error.field === "keys");
  for (const code of ["žluťoučký", "a\nb"]) {
    await assert.rejects(device.enrol(service.enrolment, code), (error) => error.field === "code");
  }
  assert.equal(only(await device.tasks()).code, "");
});

test("local search alone: the list arrives, and nothing is noticed, kept or given", async () => {
  await service.publish();
  await agreed();
  await code();
  assert.equal(only((await device.overview()).reports).status, "pending");
  await device.setMode("search");
  assert.equal(only((await device.overview()).reports).status, "cancelled");
  assert.equal((await device.settings()).agreedAt, null);
  assert.equal(await device.observe({ query: "a", url: "https://a.example", engine: "google" }), "not-recording");
  assert.deepEqual((await device.overview()).records, []);
  for (const publish of [
    () => service.publish({ sequence: 8, round: 2 }),
    () => service.publishOptin({ sequence: 9, round: 3 }),
  ]) {
    await publish();
    assert.equal(await code({ sendNow: true }), "search-only");
  }
  assert.deepEqual(service.posts, []);
  assert.equal((await device.overview()).spent.epsilon, 4); // what was made before stays paid
});

test("a debit of an earlier version counts with the factor of its promise", async () => {
  const entries = [
    [["t", 1], { epsilon: 2, delta: 0, at: 0, kind: "report" }],
    [["t", 2], { epsilon: 1, delta: 0, at: 0, kind: "report", growth: 2 }],
    [["t", 3], { epsilon: 1, delta: 0, at: 0, kind: "sealed" }],
  ];
  const { reports, sealed, growth, epsilon } = spentSince(entries, 0);
  assert.deepEqual([reports, sealed, epsilon], [2, 1, 4]);
  assert.ok(Math.abs(growth - 2 * Math.exp(2)) < 1e-9);
});

test("a split view: what is in no log, and a log that is not the one before, get no answer", async () => {
  await agreed();
  await service.publish({ phase: "idle" });
  await device.check();
  const honest = [...service.entries];
  await service.publish();
  service.entries = [...honest, honest[0]];
  assert.equal(await code({ sendNow: true }), "not-logged");
  await service.publish();
  service.entries = [...service.entries].reverse();
  assert.equal(await code({ sendNow: true }), "log-forked");
  await device.leave(TASK);
  await device.enrol(service.enrolment);
  assert.equal(await code({ sendNow: true }), "log-forked");
  service.entries.reverse();
  service.origin = "searchblend/another";
  assert.equal(await code({ sendNow: true }), "log-forked");
  service.origin = "searchblend/tests";
  service.checkpoint = () => Promise.resolve(Buffer.from("a page of the hotel"));
  assert.equal(await code({ sendNow: true }), "log-forged");
  delete service.checkpoint;
  assert.equal(service.posts.length, 0);
  assert.equal((await device.overview()).spent.reports, 0);
  assert.equal(await code({ sendNow: true }), "sent");
});
