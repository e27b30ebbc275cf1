/** Tokens on a device: fetched before anything is drawn, kept, and spent with the report that they pay for. */

import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { beforeEach, test } from "node:test";
import { fromHex, toHex } from "../src/core/bytes.js";
import { challengeDigest, readTokenKey } from "../src/core/tokens.js";
import { Device } from "../src/device/device.js";
import { FakeService, locks, TASK } from "./fake_service.js";
import { MemoryStorage } from "./memory_storage.js";
import { readVectors } from "./vectors.js";

const START = 1_800_000_000;
const ISSUER = "https://issuer.example";
const ACCOUNT = `${ISSUER}#sbi_${"x".repeat(43)}`;
const [VECTOR] = readVectors("token").cases;
const number = (text) => BigInt(`0x${Buffer.from(text, "base64url").toString("hex")}`);
const jwk = createPrivateKey(VECTOR.private_key).export({ format: "jwk" });
const [N, D] = [number(jwk.n), number(jwk.d)];
const TERMS = {
  issuer: ISSUER,
  request: "/token-request",
  key: Buffer.from(VECTOR.key, "hex").toString("base64url"),
};

let service, storage, asked, answer;

/** What an issuer does: a number to the power of d. */
function sign(request) {
  let [result, square] = [1n, BigInt(`0x${toHex(request.subarray(3))}`)];
  for (let rest = D; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % N;
    square = (square * square) % N;
  }
  return fromHex(result.toString(16).padStart(512, "0"));
}

const problem = (status, name) => new Response(JSON.stringify({ type: `urn:searchblend:problem:${name}` }), { status });

beforeEach(async () => {
  service = await FakeService.start(START);
  storage = new MemoryStorage();
  asked = [];
  answer = (request) => new Response(sign(request));
  await service.publish({ minor: 2, min_device_version: "0.2", client: { ...service.client, tokens: TERMS } });
});

function deviceOn(onPoint) {
  const fetch = async (url, options) => {
    if (!url.startsWith(ISSUER)) return service.fetch(url, options);
    asked.push({ url, options });
    return answer(options.body);
  };
  return new Device({ storage, fetch, clock: () => START, lock: locks(), onPoint });
}

async function joined({ account = ACCOUNT, onPoint, search = true } = {}) {
  const device = deviceOn(onPoint);
  await device.enrol(service.enrolment, "", account);
  await device.setMode("local");
  if (search) await device.observe({ query: "weather", url: "https://weather.example/a", engine: "google" });
  return device;
}

const code = async (device) => (await device.check({ sendNow: true }))[0].code;
const kept = async () => (await storage.read((transaction) => transaction.get("tasks", TASK))).token;

test("a report is paid for, and a retry sends the same bytes and the same token", async () => {
  const device = await joined();
  service.answer = (n) => (n < 3 ? problem(503, "overloaded") : new Response(null, { status: 200 }));
  const codes = [await code(device), await code(device), await code(device), await code(device)];
  assert.deepEqual(codes, ["retrying", "retrying", "sent", "done"]);
  assert.equal(asked.length, 1);
  const [{ url, options }] = asked;
  assert.equal(url, "https://issuer.example/token-request");
  assert.deepEqual(options.headers, {
    "Content-Type": "application/private-token-request",
    Authorization: `Bearer ${ACCOUNT.split("#")[1]}`,
  });
  assert.deepEqual([options.credentials, options.referrerPolicy, options.redirect], ["omit", "no-referrer", "error"]);
  assert.equal(service.posts.length, 3);
  assert.equal(new Set(service.posts.map(({ body }) => body)).size, 1);
  const headers = new Set(service.posts.map((post) => post.headers.Authorization));
  assert.equal(headers.size, 1);
  const token = Buffer.from(/token="([^"]+)"/u.exec([...headers][0])[1], "base64url");
  const key = await readTokenKey(TERMS.key);
  assert.equal(token.length, 354);
  assert.equal(toHex(token.subarray(34, 98)), toHex(await challengeDigest(ISSUER, TASK, 1)) + toHex(key.id));
  assert.equal(await kept(), undefined);
  const exported = JSON.stringify(await device.exported());
  assert.ok(exported.includes(toHex(token)));
  assert.ok(!exported.includes("sbi_"));
});

for (const point of ["token-asked", "token-kept", "randomized", "half-written", "written"]) {
  test(`a device that ends at "${point}" asks for no second token`, async () => {
    const crash = (at) => {
      if (at === point) throw new Error("gone");
    };
    const device = await joined({ onPoint: crash });
    assert.equal(await code(device), "internal");
    assert.equal(service.posts.length, 0);
    assert.equal((await device.overview()).spent.epsilon, 0);
    const before = (await kept()).signed;
    assert.equal(await code(deviceOn()), "sent");
    assert.ok(asked.length <= 2);
    assert.equal(new Set(asked.map(({ options }) => toHex(options.body))).size, 1);
    assert.ok(service.posts[0].headers.Authorization.includes(Buffer.from(before).toString("base64url").slice(0, 100)));
  });
}

for (const [what, changes, expected] of [
  ["no account", { account: "" }, "no-account"],
  ["an account at another issuer", { account: ACCOUNT.replace("issuer", "other") }, "wrong-issuer"],
]) {
  test(`with ${what} nobody is asked and nothing is made`, async () => {
    const device = await joined(changes);
    assert.equal(await code(device), expected);
    assert.deepEqual([asked.length, service.posts.length, (await device.overview()).spent.epsilon], [0, 0, 0]);
  });
}

for (const [what, reply, expected] of [
  ["does not know the account", () => problem(401, "bad-credential"), "no-token"],
  ["has given all tokens of the week", () => problem(429, "token-limit"), "no-token"],
  ["does not have the key", () => problem(422, "unknown-token-key"), "no-token"],
  ["signs something else", () => new Response(new Uint8Array(256).fill(1)), "no-token"],
  ["answers in another length", () => new Response(new Uint8Array(255)), "no-token"],
  ["is busy", () => problem(503, "overloaded"), "overloaded"],
  ["is a login page", () => new Response("<html>", { status: 403 }), "status-403"],
]) {
  test(`an issuer that ${what} gets no report made`, async () => {
    const device = await joined();
    answer = reply;
    assert.equal(await code(device), expected);
    assert.deepEqual([service.posts.length, (await device.overview()).spent.epsilon], [0, 0]);
    answer = (request) => new Response(sign(request));
    assert.equal(await code(device), "sent");
    assert.equal(new Set(asked.map(({ options }) => toHex(options.body))).size, 1);
  });
}

test("a token is fetched whether there is a search or not", async () => {
  const device = await joined({ search: false });
  assert.equal(await code(device), "no-record");
  assert.equal(asked.length, 1);
  assert.notEqual((await kept()).token, null);
});

test("tokens go with consent, with what is erased, and with their round", async () => {
  const device = await joined({ search: false });
  for (const end of [() => device.setMode("off"), () => device.erase()]) {
    await device.setMode("local");
    await code(device);
    assert.notEqual(await kept(), undefined);
    await end();
    assert.equal(await kept(), undefined);
  }
  await code(device);
  await service.publish({ phase: "idle", round: 2 });
  await code(device);
  assert.equal(await kept(), undefined);
});

test("an account that is no link is refused", async () => {
  for (const account of ["x", ISSUER, `${ISSUER}#short`, `http://issuer.example#${"x".repeat(30)}`, `${ACCOUNT}#x`]) {
    await assert.rejects(joined({ account }), { field: "account" });
  }
});
