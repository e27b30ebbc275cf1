/** A device that asks through a relay: sealed to a key that a manifest names, and to no other. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Device } from "../src/device/device.js";
import { decodeRequest, encodeResponse } from "../src/core/binary_http.js";
import { bigEndian, concat, sha256, toHex, utf8 } from "../src/core/bytes.js";
import { aeadKey, aeadSeal, hkdfExpand, hkdfExtract, receiver } from "../src/core/hpke.js";
import { KEY_PROBLEM, MEDIA_TYPES } from "../src/core/ohttp.js";
import { ladderKeyPair } from "../src/core/x25519.js";
import { FakeService, locks } from "./fake_service.js";
import { MemoryStorage } from "./memory_storage.js";

const START = 1_800_000_000;
const RELAY = "https://relay.example/lists";
const CODE = "a code of more than twenty-two signs";

/** The gateway of a fake service, and an honest relay before it. */
class FakeRelay {
  posts = [];
  opened = [];

  static async start(service, secret) {
    const relay = new FakeRelay();
    relay.service = service;
    relay.pair = ladderKeyPair(new Uint8Array(32).fill(secret));
    relay.configuration = concat(Uint8Array.of(secret, 0, 0x20), relay.pair.publicKey, Uint8Array.of(0, 4, 0, 1, 0, 1));
    relay.digest = toHex(await sha256(relay.configuration));
    return relay;
  }

  keys() {
    const content = concat(bigEndian(this.configuration.length, 2), this.configuration);
    return new Response(content, { headers: { "Content-Type": MEDIA_TYPES.keys } });
  }

  async take(message) {
    const header = message.slice(0, 7);
    if (header[0] !== this.configuration[0]) {
      return new Response(JSON.stringify({ type: KEY_PROBLEM }), { status: 400 });
    }
    const enc = message.slice(7, 39);
    const context = await receiver(this.pair, enc, concat(utf8("message/bhttp request"), Uint8Array.of(0), header));
    const request = decodeRequest(await context.open(message.slice(39)));
    this.opened.push(request);
    const headers = Object.fromEntries(
      request.fields.map(([name, value]) => [name === "content-type" ? "Content-Type" : "Authorization", value]),
    );
    const answer = await this.service.fetch(`${request.scheme}://${request.authority}${request.path}`, {
      ...(request.method === "GET" ? {} : { method: request.method, headers }),
      body: request.content.length ? request.content : null,
    });
    const content = new Uint8Array(await answer.arrayBuffer());
    const fields = [["content-type", answer.headers.get("Content-Type") ?? "application/octet-stream"]];
    const salt = crypto.getRandomValues(new Uint8Array(16));
    const key = await hkdfExtract(concat(enc, salt), await context.export(utf8("message/bhttp response"), 16));
    const nonce = await hkdfExpand(key, utf8("nonce"), 12);
    const aead = await aeadKey(await hkdfExpand(key, utf8("key"), 16));
    const sealed = await aeadSeal(aead, nonce, encodeResponse({ status: answer.status, fields, content }));
    return new Response(concat(salt, sealed), { headers: { "Content-Type": MEDIA_TYPES.response } });
  }
}

let service, relay, device, asked, storage;
/** what a relay does with a request; tests make it worse */
let get, post;

beforeEach(async () => {
  service = await FakeService.start(START);
  relay = await FakeRelay.start(service, 7);
  [get, post] = [() => relay.keys(), (message) => relay.take(message)];
  asked = [];
  storage = new MemoryStorage();
  device = deviceOn(storage);
  await device.enrol({ ...service.enrolment, relay: RELAY }, CODE);
});

function deviceOn(store) {
  return new Device({
    storage: store,
    fetch: async (url, options) => {
      asked.push({ url, options });
      assert.equal(url, `${RELAY}/`, "nothing is asked past the relay");
      return options.method === "POST" ? post(options.body) : get();
    },
    clock: () => START,
    lock: locks(),
    version: "0.1.0",
  });
}

async function agreed(mode = "local") {
  await device.setMode(mode);
  await device.observe({ query: " Weather ", url: "https://weather.example/a", engine: "google" });
}

const code = async () => (await device.check({ sendNow: true }))[0].code;
const named = (changes = {}) => service.publish({ minor: 2, gateway: [relay.digest], ...changes });

test("a report arrives through the relay and shows nothing of who sent it", async () => {
  await named();
  await agreed();
  assert.equal(await code(), "sent");
  assert.ok(relay.opened.slice(0, -1).every(({ method, fields }) => method === "GET" && fields.length === 0));
  assert.deepEqual(relay.opened.at(-1).fields, [["content-type", "application/vnd.searchblend.report"]]);
  assert.ok(relay.opened.every(({ scheme, authority }) => scheme === "https" && authority === "lists.example"));
  const sizes = new Set(
    asked.filter(({ options }) => options.method === "POST").map(({ options }) => options.body.length),
  );
  assert.deepEqual([...sizes], [1024 + 55]);
  assert.equal(service.posts.length, 1);
});

test("an enrolment code and a withdrawal go through the relay sealed", async () => {
  const point = await service.addCurator();
  assert.equal(point.length, 65);
  await service.publishOptin({ minor: 2, gateway: [relay.digest] });
  await agreed("opt-in");
  assert.equal(await code(), "sent");
  assert.ok(relay.opened.at(-1).fields.some(([name, value]) => name === "authorization" && value === `Bearer ${CODE}`));
  service.answer = () => new Response(null, { status: 204 });
  assert.equal(await deviceOn(storage).withdraw(service.enrolment.task, 1), true, "also after the worker was ended");
  assert.equal(relay.opened.at(-1).method, "DELETE");
});

test("a key that no manifest names gets nothing but public questions", async () => {
  for (const changes of [{ minor: 2, gateway: [] }, { minor: 2, gateway: ["ab".repeat(32)] }, { minor: 1 }]) {
    await service.publish(changes);
    await agreed();
    assert.equal(await code(), "retrying");
    assert.deepEqual(service.posts, []);
    assert.equal((await device.overview()).reports[0].reason, "gateway-key");
  }
  assert.ok(relay.opened.every(({ method, fields }) => method === "GET" && fields.length === 0));
});

test("a relay that gives out a key of its own reads no report and no code", async () => {
  await named();
  await agreed();
  const spy = await FakeRelay.start(service, 9);
  [get, post] = [() => spy.keys(), (message) => spy.take(message)];
  assert.equal(await code(), "retrying");
  assert.ok(spy.opened.length > 0);
  assert.ok(spy.opened.every(({ method, fields }) => method === "GET" && fields.length === 0));
});

test("a key that was exchanged meanwhile is asked for again", async () => {
  await named();
  await agreed();
  const stale = await FakeRelay.start(service, 9);
  let n = 0;
  get = () => (n++ === 0 ? stale : relay).keys();
  assert.equal(await code(), "sent");
  assert.equal(n, 2);
});

test("what is dropped on the way is sent again, and the bytes are the same", async () => {
  await named();
  await agreed();
  let dropped = 0;
  post = async (message) => {
    const answer = await relay.take(message);
    if (relay.opened.at(-1).method !== "POST" || dropped++ > 0) return answer;
    throw new TypeError("no answer");
  };
  assert.equal(await code(), "retrying");
  assert.equal(await code(), "sent");
  assert.deepEqual(new Set(service.posts.map(({ body }) => body)).size, 1);
});

test("an answer that is not the gateway's is no answer", async () => {
  await named();
  await agreed();
  const sealed = (content) => new Response(content, { headers: { "Content-Type": MEDIA_TYPES.response } });
  for (const [answer, reason] of [
    [() => sealed(new Uint8Array(0)), "relay"],
    [() => sealed(new Uint8Array(1056)), "relay"],
    [() => new Response("<p>sign in</p>"), "relay"],
    [() => new Response(null, { status: 503 }), "relay"],
    [() => sealed(new Uint8Array(4 << 20)), "too-large"],
    [() => Promise.reject(new TypeError("away")), "no-answer"],
  ]) {
    post = answer;
    assert.equal(await code(), reason);
  }
  for (const answer of [() => new Response("junk"), () => new Response(null, { status: 503 })]) {
    get = answer;
    assert.equal((await deviceOn(storage).check({ sendNow: true }))[0].code, "relay");
  }
  assert.deepEqual(service.posts, []);
});
