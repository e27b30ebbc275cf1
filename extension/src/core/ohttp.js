/**
 * Oblivious HTTP (RFC 9458), a device's side: a request sealed to a gateway, and the answer to that request opened.
 * The twin of wire/ohttp.py.
 *
 * One suite: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. What is sealed is binary HTTP (binary_http.js).
 */

import { concat, fromBigEndian, sha256, toHex, utf8 } from "./bytes.js";
import { paddedSize } from "./binary_http.js";
import { MessageError } from "./errors.js";
import { aeadKey, aeadOpen, hkdfExpand, hkdfExtract, sender } from "./hpke.js";

/** @typedef {import("./x25519.js").KeyPair} KeyPair */
/** @typedef {{keyId: number, publicKey: Uint8Array, digest: string}} KeyConfiguration */
/** @typedef {{message: Uint8Array, open: (answer: Uint8Array) => Promise<Uint8Array>}} SealedRequest */

export const MEDIA_TYPES = Object.freeze({
  keys: "application/ohttp-keys",
  request: "message/ohttp-req",
  response: "message/ohttp-res",
});
/** RFC 9458, 5.3: the gateway does not know the key that a request was sealed to. */
export const KEY_PROBLEM = "https://iana.org/assignments/http-problem-types#ohttp-key";
export const LARGEST_KEYS = 4096;
const KEM = Uint8Array.of(0, 0x20);
const SUITE = Uint8Array.of(0, 1, 0, 1);
const [KEY_BYTES, NONCE_BYTES, SALT_BYTES, TAG_BYTES] = [16, 12, 16, 16];
const HEAD_BYTES = 35;
const MOST_AROUND = 8 * 1024;
const REQUEST_LABEL = utf8("message/bhttp request");
const RESPONSE_LABEL = utf8("message/bhttp response");

/** Bytes of an answer whose content has at most so many. @param {number} contentBytes */
export function largestResponse(contentBytes) {
  return paddedSize(contentBytes + MOST_AROUND) + SALT_BYTES + TAG_BYTES;
}

/** The configurations that can be used here, in their order; MessageError if there are none.
 * @param {Uint8Array} content @returns {Promise<KeyConfiguration[]>} */
export async function decodeConfigurations(content) {
  const usable = [];
  for (let place = 0; place < content.length;) {
    const size = fromBigEndian(content.subarray(place, place + 2));
    const encoded = content.subarray(place + 2, place + 2 + size);
    if (place + 2 > content.length || encoded.length !== size) throw new MessageError("key configurations: truncated");
    if (isUsable(encoded)) {
      usable.push({ keyId: encoded[0], publicKey: encoded.slice(3, HEAD_BYTES), digest: toHex(await sha256(encoded)) });
    }
    place += 2 + size;
  }
  if (!usable.length) {
    throw new MessageError("key configurations: expected one with X25519, HKDF-SHA256 and AES-128-GCM");
  }
  return usable;
}

/** @param {Uint8Array} encoded */
function isUsable(encoded) {
  const suites = encoded.subarray(HEAD_BYTES + 2);
  const isWhole =
    encoded.length > HEAD_BYTES + 2 &&
    fromBigEndian(encoded.subarray(HEAD_BYTES, HEAD_BYTES + 2)) === suites.length &&
    suites.length % 4 === 0;
  const places = Array.from({ length: suites.length / 4 }, (_, i) => 4 * i);
  const isOurs = places.some((place) => SUITE.every((byte, i) => byte === suites[place + i]));
  return encoded[1] === KEM[0] && encoded[2] === KEM[1] && isWhole && isOurs;
}

/** A request sealed to the gateway; `open` opens the answer to it, and no other.
 * @param {KeyConfiguration} configuration @param {Uint8Array} request binary HTTP
 * @param {() => Promise<KeyPair>} [ephemeral] for tests @returns {Promise<SealedRequest>} */
export async function sealRequest(configuration, request, ephemeral) {
  const header = concat(Uint8Array.of(configuration.keyId), KEM, SUITE);
  const info = concat(REQUEST_LABEL, Uint8Array.of(0), header);
  const context = await sender(configuration.publicKey, info, ephemeral);
  const message = concat(header, context.enc, await context.seal(request));
  return { message, open: (answer) => openResponse(context, answer) };
}

/** RFC 9458, 4.4. @param {import("./hpke.js").HpkeContext} context @param {Uint8Array} answer */
async function openResponse(context, answer) {
  if (answer.length < SALT_BYTES + TAG_BYTES) throw new MessageError("oblivious HTTP: the answer is too short");
  const salt = answer.subarray(0, SALT_BYTES);
  const secret = await context.export(RESPONSE_LABEL, SALT_BYTES);
  const key = await hkdfExtract(concat(context.enc, salt), secret);
  const nonce = await hkdfExpand(key, utf8("nonce"), NONCE_BYTES);
  return aeadOpen(await aeadKey(await hkdfExpand(key, utf8("key"), KEY_BYTES)), nonce, answer.subarray(SALT_BYTES));
}
