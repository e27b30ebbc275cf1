/** X25519 against RFC 7748, section 5.2 and 6.1, and against the platform's; HPKE against itself on both. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { core } from "./vectors.js";

const { fromHex, toHex, utf8 } = await core("bytes");
const { MessageError } = await core("errors");
const { open, seal } = await core("hpke");
const { ladderKeyPair, platformKeyPair, platformKeyPairOf, x25519 } = await core("x25519");

const VECTORS = [
  [
    "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
    "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
    "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
  ],
  [
    "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
    "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
    "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
  ],
];
const ALICE = "77076d0a7318a57d3c16c17251b26645c6c2f1e2f6b2f9a7b6d9d7b0f6d0f0a5";
const SMALL_ORDER = [
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

test("RFC 7748: the function", () => {
  for (const [scalar, point, result] of VECTORS) assert.equal(toHex(x25519(fromHex(scalar), fromHex(point))), result);
});

test("RFC 7748: a thousand times over", () => {
  let [k, u] = [fromHex(`09${"00".repeat(31)}`), fromHex(`09${"00".repeat(31)}`)];
  for (let i = 0; i < 1000; i++) {
    [k, u] = [x25519(k, u), k];
    if (i === 0) assert.equal(toHex(k), "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
  }
  assert.equal(toHex(k), "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
});

test("the ladder and the platform agree on one secret", async () => {
  for (let i = 0; i < 10; i++) {
    const privateKey = crypto.getRandomValues(new Uint8Array(32));
    const [ladder, platform] = [ladderKeyPair(privateKey), await platformKeyPairOf(privateKey)];
    const peer = await platformKeyPair();
    const secrets = [
      await ladder.agree(peer.publicKey),
      await platform.agree(peer.publicKey),
      await peer.agree(ladder.publicKey),
    ];
    assert.equal(new Set(secrets.map(toHex)).size, 1);
  }
});

test("keys of small order and of another length are refused by both", async () => {
  for (const pair of [ladderKeyPair(fromHex(ALICE)), await platformKeyPair()]) {
    for (const key of [...SMALL_ORDER.map(fromHex), new Uint8Array(31), new Uint8Array(33)]) {
      await assert.rejects(pair.agree(key), MessageError);
    }
  }
});

test("RFC 9180, A.1.1: enc and the first ciphertext (the tag is another's, as our messages have no AAD)", async () => {
  const receiver = fromHex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d");
  const ephemeral = ladderKeyPair(fromHex("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736"));
  const sealed = await seal(
    receiver,
    utf8("Ode on a Grecian Urn"),
    utf8("Beauty is truth, truth beauty"),
    async () => ephemeral,
  );
  assert.equal(toHex(sealed.subarray(0, 32)), "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431");
  assert.equal(toHex(sealed.subarray(32, -16)), "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218");
});

test("what is sealed opens with the right key, info and bytes only", async () => {
  const pair = ladderKeyPair(fromHex(ALICE));
  for (const ephemeral of [platformKeyPair, async () => ladderKeyPair(crypto.getRandomValues(new Uint8Array(32)))]) {
    const sealed = await seal(pair.publicKey, utf8("info"), utf8("text"), ephemeral);
    assert.deepEqual(await open(pair, utf8("info"), sealed), utf8("text"));
    await assert.rejects(open(pair, utf8("other"), sealed), MessageError);
    await assert.rejects(open(ladderKeyPair(new Uint8Array(32).fill(7)), utf8("info"), sealed), MessageError);
    for (const place of [0, 31, 32, sealed.length - 1]) {
      const changed = sealed.slice();
      changed[place] ^= 1;
      await assert.rejects(open(pair, utf8("info"), changed), MessageError);
    }
    await assert.rejects(open(pair, utf8("info"), sealed.subarray(0, 40)), MessageError);
  }
});

test("without X25519 in WebCrypto the ladder seals", async (context) => {
  context.mock.method(crypto.subtle, "generateKey", async () => {
    throw new DOMException("no such algorithm", "NotSupportedError");
  });
  assert.equal(await platformKeyPair(), null);
  const pair = ladderKeyPair(fromHex(ALICE));
  assert.deepEqual(
    await open(pair, utf8("info"), await seal(pair.publicKey, utf8("info"), utf8("text"))),
    utf8("text"),
  );
});
