/** Single-use tokens that pay for a report without saying whose it is (RFC 9578, type 2): the device's half, the twin
 * of wire/tokens.py. */

import { blind, finalize, numberOf } from "./blind_rsa.js";
import { bigEndian, concat, equalBytes, fromBase64url, fromHex, sha256, toBase64url, utf8 } from "./bytes.js";
import { isOrigin } from "./enrolment.js";
import { InvalidParameter, MessageError } from "./errors.js";

/** @typedef {import("./randomness.js").Randomness} Randomness */
/** @typedef {import("./manifest.js").TokenTerms} TokenTerms */
/** @typedef {import("./blind_rsa.js").RsaKey & {id: Uint8Array}} TokenKey with SHA-256 of its SubjectPublicKeyInfo */
/** @typedef {{signed: Uint8Array, request: Uint8Array, inverse: Uint8Array}} TokenRequest type, nonce, challenge digest
 * and key id; what goes to the issuer; what stays here */
/** @typedef {{issuer: string, credential: string}} TokenAccount */

const TOKEN_TYPE = Uint8Array.of(0, 2);
const NONCE_BYTES = 32;
const MODULUS_BYTES = 256;
/** SubjectPublicKeyInfo of RSASSA-PSS with SHA-384 and a salt of 48 bytes around a modulus: a key's one encoding. */
const BEFORE_MODULUS = fromHex(
  "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b060960864801" +
    "6503040202a2030201300382010f003082010a0282010100",
);
const AFTER_MODULUS = fromHex("0203010001");
const PSS = Object.freeze({ name: "RSA-PSS", hash: "SHA-384" });

/** A public key, from base64url or bytes. @param {string | Uint8Array} given @returns {Promise<TokenKey>} */
export async function readTokenKey(given) {
  const content = typeof given === "string" ? fromBase64url(given) : given;
  const end = BEFORE_MODULUS.length + MODULUS_BYTES;
  const isKey =
    equalBytes(content.subarray(0, BEFORE_MODULUS.length), BEFORE_MODULUS) &&
    equalBytes(content.subarray(end), AFTER_MODULUS) &&
    content[BEFORE_MODULUS.length] >= 0x80;
  if (!isKey) throw new MessageError("token key: expected an RSASSA-PSS key of 2048 bits with SHA-384");
  const n = numberOf(content.subarray(BEFORE_MODULUS.length, end));
  return { n, e: numberOf(AFTER_MODULUS.subarray(2)), id: await sha256(content) };
}

/** What a token for this round must have been issued for.
 * @param {string} issuer its address @param {string} task @param {number} round */
export async function challengeDigest(issuer, task, round) {
  const name = utf8(new URL(issuer).host);
  const context = await sha256(concat(utf8("searchblend token v1"), fromHex(task), bigEndian(round, 4)));
  return sha256(concat(TOKEN_TYPE, bigEndian(name.length, 2), name, Uint8Array.of(32), context, new Uint8Array(2)));
}

/** Takes the nonce, then what `blind` takes. @param {TokenKey} key @param {Uint8Array} digest of the challenge
 * @param {Randomness} randomness @returns {Promise<TokenRequest>} */
export async function makeTokenRequest(key, digest, randomness) {
  const signed = concat(TOKEN_TYPE, randomness.take(NONCE_BYTES), digest, key.id);
  const { content, inverse } = await blind(signed, key, randomness);
  return { signed, request: concat(TOKEN_TYPE, key.id.subarray(31), content), inverse };
}

/** Whether a request is for this key and this challenge. @param {TokenRequest} request @param {TokenKey} key
 * @param {Uint8Array} digest */
export function isRequestFor({ signed }, key, digest) {
  return equalBytes(signed.subarray(2 + NONCE_BYTES), concat(digest, key.id));
}

/** The token, or `MessageError` if the issuer has signed something else or with another key.
 * @param {TokenRequest} request @param {Uint8Array} response @param {TokenKey} key */
export async function tokenOf({ signed, inverse }, response, key) {
  const signature = finalize(response, inverse, key);
  if (!(await isSigned(signature, signed, key))) {
    throw new MessageError("token: the issuer's answer is not a signature of its key");
  }
  return concat(signed, signature);
}

/** The header that spends a token. @param {Uint8Array} token */
export function tokenHeader(token) {
  return `PrivateToken token="${toBase64url(token)}"`;
}

/** An account from the link that an issuer's people hand out: https://issuer.example#sbi_…
 * @param {string} link @returns {TokenAccount} */
export function readAccount(link) {
  const [given, credential = "", ...rest] = link.trim().split("#");
  const issuer = given.replace(/\/$/u, "");
  if (rest.length > 0 || !isOrigin(issuer) || !/^[A-Za-z0-9_-]{22,200}$/u.test(credential)) {
    throw new InvalidParameter("account", "expected a link such as https://issuer.example#sbi_…");
  }
  return { issuer, credential };
}

/** @param {Uint8Array} signature @param {Uint8Array} content @param {TokenKey} key */
async function isSigned(signature, content, { n, e }) {
  const jwk = { kty: "RSA", alg: "PS384", n: urlOf(n), e: urlOf(e) };
  const key = await crypto.subtle.importKey("jwk", jwk, PSS, false, ["verify"]);
  const [raw, signed] = /** @type {BufferSource[]} */ ([signature, content]);
  return crypto.subtle.verify({ ...PSS, saltLength: 48 }, key, raw, signed);
}

/** @param {bigint} value */
function urlOf(value) {
  const digits = value.toString(16);
  return toBase64url(fromHex(digits.length % 2 ? `0${digits}` : digits));
}
