/**
 * HPKE (RFC 9180), base mode, one message: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, on WebCrypto.
 *
 * Devices seal; opening is here for the vectors.
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

/** enc ‖ ciphertext, with an empty AAD. `ephemeral` makes a key pair; tests exchange it.
 * @param {Uint8Array} publicKey @param {Uint8Array} info @param {Uint8Array} plaintext
 * @param {() => Promise<KeyPair>} [ephemeral] */
export async function seal(publicKey, info, plaintext, ephemeral = newKeyPair) {
  const pair = await ephemeral();
  const shared = await sharedSecret(await pair.agree(publicKey), pair.publicKey, publicKey);
  const { key, iv } = await schedule(shared, info, "encrypt");
  const ciphertext = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, /** @type {BufferSource} */ (plaintext));
  return concat(pair.publicKey, new Uint8Array(ciphertext));
}

/** The plaintext of enc ‖ ciphertext, or MessageError. @param {KeyPair} pair @param {Uint8Array} info
 * @param {Uint8Array} sealed */
export async function open(pair, info, sealed) {
  if (sealed.length < ENC_BYTES + TAG_BYTES) throw new MessageError("HPKE: too short");
  const enc = sealed.subarray(0, ENC_BYTES);
  const shared = await sharedSecret(await pair.agree(enc), enc, pair.publicKey);
  const { key, iv } = await schedule(shared, info, "decrypt");
  const ciphertext = /** @type {BufferSource} */ (sealed.subarray(ENC_BYTES));
  try {
    return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, ciphertext));
  } catch {
    throw new MessageError("HPKE: does not open");
  }
}

/** RFC 9180, 4.1: ExtractAndExpand. @param {Uint8Array} dh @param {Uint8Array} enc @param {Uint8Array} publicKey */
async function sharedSecret(dh, enc, publicKey) {
  const prk = await labeledExtract(KEM_SUITE, EMPTY, "eae_prk", dh);
  return labeledExpand(KEM_SUITE, prk, "shared_secret", concat(enc, publicKey), SECRET_BYTES);
}

/** RFC 9180, 5.1: KeySchedule in base mode. The first message has sequence number 0: its nonce is the base nonce.
 * @param {Uint8Array} shared @param {Uint8Array} info @param {"encrypt" | "decrypt"} usage */
async function schedule(shared, info, usage) {
  const pskIdHash = await labeledExtract(SUITE, EMPTY, "psk_id_hash", EMPTY);
  const infoHash = await labeledExtract(SUITE, EMPTY, "info_hash", info);
  const context = concat(BASE_MODE, pskIdHash, infoHash);
  const secret = await labeledExtract(SUITE, shared, "secret", EMPTY);
  const raw = await labeledExpand(SUITE, secret, "key", context, KEY_BYTES);
  const iv = /** @type {BufferSource} */ (await labeledExpand(SUITE, secret, "base_nonce", context, NONCE_BYTES));
  const key = await crypto.subtle.importKey("raw", /** @type {BufferSource} */ (raw), "AES-GCM", false, [usage]);
  return { key, iv };
}

/** @param {Uint8Array} suite @param {Uint8Array} salt @param {string} label @param {Uint8Array} ikm */
function labeledExtract(suite, salt, label, ikm) {
  return hmac(salt, concat(VERSION, suite, utf8(label), ikm));
}

/** At most 32 bytes: one block of HKDF-Expand. @param {Uint8Array} suite @param {Uint8Array} prk @param {string} label
 * @param {Uint8Array} info @param {number} length */
async function labeledExpand(suite, prk, label, info, length) {
  const labeled = concat(bigEndian(length, 2), VERSION, suite, utf8(label), info);
  return (await hmac(prk, concat(labeled, Uint8Array.of(1)))).subarray(0, length);
}

/** HMAC-SHA256. WebCrypto takes no empty key; 32 zeros are the same key.
 * @param {Uint8Array} key @param {Uint8Array} content */
async function hmac(key, content) {
  const raw = /** @type {BufferSource} */ (key.length ? key : new Uint8Array(32));
  const imported = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, /** @type {BufferSource} */ (content)));
}
