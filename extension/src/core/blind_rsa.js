/**
 * Blind RSA signatures (RFC 9474, RSABSSA-SHA384-PSS-Deterministic): the half of who asks, the twin of
 * wire/blind_rsa.py. The message is encoded with a salt and multiplied by r^e for a random r; what the signer gives
 * back is divided by r. The signer sees neither message nor signature.
 */

import { bigEndian, concat, toHex } from "./bytes.js";
import { MessageError } from "./errors.js";

/** @typedef {import("./randomness.js").Randomness} Randomness */
/** @typedef {{n: bigint, e: bigint}} RsaKey */
/** @typedef {{content: Uint8Array, inverse: Uint8Array}} Blinded what goes to the signer, and what stays here */

const SALT_BYTES = 48;
const DIGEST_BYTES = 48;

/** RFC 9474, 4.2. Takes the salt, then r.
 * @param {Uint8Array} message @param {RsaKey} key @param {Randomness} randomness @returns {Promise<Blinded>} */
export async function blind(message, { n, e }, randomness) {
  const size = sizeOf(n);
  const encoded = numberOf(await emsaPss(message, bitsOf(n) - 1, randomness.take(SALT_BYTES)));
  if (inverseOf(encoded, n) === null) throw new MessageError("token: the message has a factor in common with the key");
  const [r, inverse] = randomUnit(n, size, randomness);
  return { content: bytesOf((encoded * power(r, e, n)) % n, size), inverse: bytesOf(inverse, size) };
}

/** RFC 9474, 4.4, without its last step: verify the signature that comes out before it is used.
 * @param {Uint8Array} signed @param {Uint8Array} inverse @param {RsaKey} key */
export function finalize(signed, inverse, { n }) {
  const size = sizeOf(n);
  if (signed.length !== size || numberOf(signed) >= n) {
    throw new MessageError(`token: expected a blind signature of ${size} bytes`);
  }
  return bytesOf((numberOf(signed) * numberOf(inverse)) % n, size);
}

/** @param {Uint8Array} content */
export function numberOf(content) {
  return BigInt(`0x${toHex(content) || "0"}`);
}

/** RFC 8017, 9.1.1. @param {Uint8Array} message @param {number} bits @param {Uint8Array} salt */
async function emsaPss(message, bits, salt) {
  const length = Math.ceil(bits / 8);
  const digest = await sha384(concat(new Uint8Array(8), await sha384(message), salt));
  const block = concat(new Uint8Array(length - salt.length - DIGEST_BYTES - 2), Uint8Array.of(1), salt);
  const mask = await mgf1(digest, block.length);
  const masked = block.map((byte, i) => byte ^ mask[i]);
  masked[0] &= 0xff >> (8 * length - bits);
  return concat(masked, digest, Uint8Array.of(0xbc));
}

/** @param {Uint8Array} seed @param {number} length */
async function mgf1(seed, length) {
  const blocks = Array.from({ length: Math.ceil(length / DIGEST_BYTES) }, (_, i) => bigEndian(i, 4));
  return concat(...(await Promise.all(blocks.map((block) => sha384(concat(seed, block)))))).subarray(0, length);
}

/** Uniform among the numbers below n that have an inverse; with it.
 * @param {bigint} n @param {number} size @param {Randomness} randomness @returns {[bigint, bigint]} */
function randomUnit(n, size, randomness) {
  for (;;) {
    const r = numberOf(randomness.take(size));
    const inverse = r < n ? inverseOf(r, n) : null;
    if (inverse !== null) return [r, inverse];
  }
}

/** @param {bigint} base @param {bigint} exponent @param {bigint} n */
function power(base, exponent, n) {
  let result = 1n;
  for (let square = base % n, rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % n;
    square = (square * square) % n;
  }
  return result;
}

/** Modulo n, or null if there is none. @param {bigint} value @param {bigint} n */
function inverseOf(value, n) {
  let [a, b, x, y] = [value % n, n, 1n, 0n];
  while (b > 0n) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return a === 1n ? ((x % n) + n) % n : null;
}

/** @param {bigint} n */
function bitsOf(n) {
  return n.toString(2).length;
}

/** @param {bigint} n */
function sizeOf(n) {
  return Math.ceil(bitsOf(n) / 8);
}

/** @param {bigint} value @param {number} size */
function bytesOf(value, size) {
  const digits = value.toString(16).padStart(2 * size, "0");
  return Uint8Array.from({ length: size }, (_, i) => parseInt(digits.slice(2 * i, 2 * i + 2), 16));
}

/** @param {Uint8Array} content */
async function sha384(content) {
  return new Uint8Array(await crypto.subtle.digest("SHA-384", /** @type {BufferSource} */ (content)));
}
