/**
 * HPKE (RFC 9180), base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, on WebCrypto.
 *
 * Devices seal one message, and export from its context what an oblivious answer is opened with; opening is here for
 * the vectors.
 */

import { bigEndian, concat, utf8 } from "./bytes.js";
import { MessageError } from "./errors.js";
import { newKeyPair } from "./x25519.js";

/** @typedef {import("./x25519.js").KeyPair} KeyPair */

const [KEM_ID, KDF_ID, AEAD_ID] = [0x0020, 0x0001, 0x0001];
const VERSION = utf8("HPKE-v1");
const KEM_SUITE = concat(utf8("KEM"), bigEndian(KEM_ID, 2));
const SUITE = concat(utf8("HPKE"), bigEndian(KEM_ID, 2), bigEndian(KDF_ID, 2), bigEndian(AEAD_ID, 2));
const EMPTY = new Uint8Array(0);
const BASE_MODE = Uint8Array.of(0);
const [SECRET_BYTES, KEY_BYTES, NONCE_BYTES, ENC_BYTES, TAG_BYTES] = [32, 16, 12, 32, 16];

/** @typedef {{enc: Uint8Array, seal: (plaintext: Uint8Array, aad?: Uint8Array) => Promise<Uint8Array>,
 * open: (ciphertext: Uint8Array, aad?: Uint8Array) => Promise<Uint8Array>,
 * export: (name: Uint8Array, length: number) => Promise<Uint8Array>}} HpkeContext */

/** enc ‖ ciphertext, with an empty AAD. `ephemeral` makes a key pair; tests exchange it.
 * @param {Uint8Array} publicKey @param {Uint8Array} info @param {Uint8Array} plaintext
 * @param {() => Promise<KeyPair>} [ephemeral] */
export async function seal(publicKey, info, plaintext, ephemeral) {
  const context = await sender(publicKey, info, ephemeral);
  return concat(context.enc, await context.seal(plaintext));
}

/** The plaintext of enc ‖ ciphertext, or MessageError. @param {KeyPair} pair @param {Uint8Array} info
 * @param {Uint8Array} sealed */
export async function open(pair, info, sealed) {
  if (sealed.length < ENC_BYTES + TAG_BYTES) throw new MessageError("HPKE: too short");
  const context = await receiver(pair, sealed.subarray(0, ENC_BYTES), info);
  return context.open(sealed.subarray(ENC_BYTES));
}

/** The context of who seals. @param {Uint8Array} publicKey @param {Uint8Array} info
 * @param {() => Promise<KeyPair>} [ephemeral] */
export async function sender(publicKey, info, ephemeral = newKeyPair) {
  const pair = await ephemeral();
  return contextOf(pair.publicKey, await sharedSecret(await pair.agree(publicKey), pair.publicKey, publicKey), info);
}

/** The context of who opens. @param {KeyPair} pair @param {Uint8Array} enc @param {Uint8Array} info */
export async function receiver(pair, enc, info) {
  return contextOf(enc, await sharedSecret(await pair.agree(enc), enc, pair.publicKey), info);
}

/** RFC 9180, 4.1: ExtractAndExpand. @param {Uint8Array} dh @param {Uint8Array} enc @param {Uint8Array} publicKey */
async function sharedSecret(dh, enc, publicKey) {
  const prk = await labeledExtract(KEM_SUITE, EMPTY, "eae_prk", dh);
  return labeledExpand(KEM_SUITE, prk, "shared_secret", concat(enc, publicKey), SECRET_BYTES);
}

/** RFC 9180, 5.1 to 5.3: KeySchedule in base mode; messages are numbered, secrets are exported by name.
 * @param {Uint8Array} enc @param {Uint8Array} shared @param {Uint8Array} info @returns {Promise<HpkeContext>} */
async function contextOf(enc, shared, info) {
  const pskIdHash = await labeledExtract(SUITE, EMPTY, "psk_id_hash", EMPTY);
  const infoHash = await labeledExtract(SUITE, EMPTY, "info_hash", info);
  const context = concat(BASE_MODE, pskIdHash, infoHash);
  const secret = await labeledExtract(SUITE, shared, "secret", EMPTY);
  const raw = await labeledExpand(SUITE, secret, "key", context, KEY_BYTES);
  const key = await aeadKey(raw);
  const baseNonce = await labeledExpand(SUITE, secret, "base_nonce", context, NONCE_BYTES);
  const exporter = await labeledExpand(SUITE, secret, "exp", context, SECRET_BYTES);
  let number = 0;
  const nextNonce = () => {
    const own = bigEndian(number++, NONCE_BYTES);
    return baseNonce.map((byte, i) => byte ^ own[i]);
  };
  return Object.freeze({
    enc,
    seal: (/** @type {Uint8Array} */ plaintext, /** @type {Uint8Array} */ aad = EMPTY) =>
      aeadSeal(key, nextNonce(), plaintext, aad),
    open: (/** @type {Uint8Array} */ ciphertext, /** @type {Uint8Array} */ aad = EMPTY) =>
      aeadOpen(key, nextNonce(), ciphertext, aad),
    export: (/** @type {Uint8Array} */ name, /** @type {number} */ length) =>
      labeledExpand(SUITE, exporter, "sec", name, length),
  });
}

/** @param {Uint8Array} raw 16 bytes */
export function aeadKey(raw) {
  return crypto.subtle.importKey("raw", /** @type {BufferSource} */ (raw), "AES-GCM", false, ["encrypt", "decrypt"]);
}

/** @param {CryptoKey} key @param {Uint8Array} nonce @param {Uint8Array} plaintext @param {Uint8Array} [aad] */
export async function aeadSeal(key, nonce, plaintext, aad = EMPTY) {
  const sealed = await crypto.subtle.encrypt(gcm(nonce, aad), key, /** @type {BufferSource} */ (plaintext));
  return new Uint8Array(sealed);
}

/** The plaintext, or MessageError. @param {CryptoKey} key @param {Uint8Array} nonce @param {Uint8Array} ciphertext
 * @param {Uint8Array} [aad] */
export async function aeadOpen(key, nonce, ciphertext, aad = EMPTY) {
  try {
    const opened = await crypto.subtle.decrypt(gcm(nonce, aad), key, /** @type {BufferSource} */ (ciphertext));
    return new Uint8Array(opened);
  } catch {
    throw new MessageError("HPKE: does not open");
  }
}

/** @param {Uint8Array} nonce @param {Uint8Array} aad */
function gcm(nonce, aad) {
  return {
    name: "AES-GCM",
    iv: /** @type {BufferSource} */ (nonce),
    additionalData: /** @type {BufferSource} */ (aad),
  };
}

/** HKDF (RFC 5869) with SHA-256. @param {Uint8Array} salt @param {Uint8Array} key */
export function hkdfExtract(salt, key) {
  return hmac(salt, key);
}

/** At most 32 bytes: one block. @param {Uint8Array} key @param {Uint8Array} info @param {number} length */
export async function hkdfExpand(key, info, length) {
  return (await hmac(key, concat(info, Uint8Array.of(1)))).subarray(0, length);
}

/** @param {Uint8Array} suite @param {Uint8Array} salt @param {string} label @param {Uint8Array} ikm */
function labeledExtract(suite, salt, label, ikm) {
  return hmac(salt, concat(VERSION, suite, utf8(label), ikm));
}

/** At most 32 bytes: one block of HKDF-Expand. @param {Uint8Array} suite @param {Uint8Array} prk @param {string} label
 * @param {Uint8Array} info @param {number} length */
async function labeledExpand(suite, prk, label, info, length) {
  return hkdfExpand(prk, concat(bigEndian(length, 2), VERSION, suite, utf8(label), info), length);
}

/** HMAC-SHA256. WebCrypto takes no empty key; 32 zeros are the same key.
 * @param {Uint8Array} key @param {Uint8Array} content */
async function hmac(key, content) {
  const raw = /** @type {BufferSource} */ (key.length ? key : new Uint8Array(32));
  const imported = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, /** @type {BufferSource} */ (content)));
}
