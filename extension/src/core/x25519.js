/**
 * X25519 (RFC 7748): by WebCrypto where the browser has it, else by the Montgomery ladder in BigInts below.
 *
 * A key pair here is ephemeral, used once to seal one message. The ladder's time depends on its key, which only
 * a program that already runs on the same device could measure.
 */

import { MessageError } from "./errors.js";

/** @typedef {{publicKey: Uint8Array, agree: (peer: Uint8Array) => Promise<Uint8Array>}} KeyPair */

const NAME = Object.freeze({ name: "X25519" });
const P = 2n ** 255n - 19n;
const A24 = 121665n;
const BASE = 9n;
const PKCS8 = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 0x22, 4, 0x20);

/** A fresh key pair, by the platform if it can. @returns {Promise<KeyPair>} */
export async function newKeyPair() {
  const own = await platformKeyPair();
  return own ?? ladderKeyPair(crypto.getRandomValues(new Uint8Array(32)));
}

/** A fresh key pair of WebCrypto, or null where it does not know X25519. @returns {Promise<KeyPair | null>} */
export async function platformKeyPair() {
  try {
    const pair = /** @type {CryptoKeyPair} */ (await crypto.subtle.generateKey(NAME, true, ["deriveBits"]));
    const publicKey = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
    return { publicKey, agree: (peer) => platformAgree(pair.privateKey, peer) };
  } catch {
    return null;
  }
}

/** The platform's key pair of a given private key. @param {Uint8Array} privateKey @returns {Promise<KeyPair>} */
export async function platformKeyPairOf(privateKey) {
  const pkcs8 = Uint8Array.of(...PKCS8, ...privateKey);
  const key = await crypto.subtle.importKey("pkcs8", pkcs8, NAME, true, ["deriveBits"]);
  return { publicKey: x25519(privateKey, littleEndian(BASE)), agree: (peer) => platformAgree(key, peer) };
}

/** A key pair of a given private key, without WebCrypto. @param {Uint8Array} privateKey @returns {KeyPair} */
export function ladderKeyPair(privateKey) {
  return {
    publicKey: x25519(privateKey, littleEndian(BASE)),
    agree: async (peer) => nonZero(x25519(privateKey, peer)),
  };
}

/** The function X25519 of RFC 7748, section 5. @param {Uint8Array} scalar @param {Uint8Array} point */
export function x25519(scalar, point) {
  if (scalar.length !== 32 || point.length !== 32) throw new MessageError("X25519: expected keys of 32 bytes");
  const clamped = Uint8Array.from(scalar);
  clamped[0] &= 248;
  clamped[31] = (clamped[31] & 127) | 64;
  const masked = Uint8Array.from(point);
  masked[31] &= 127;
  return littleEndian(ladder(numberOf(clamped), numberOf(masked)));
}

/** @param {bigint} k @param {bigint} u */
function ladder(k, u) {
  let [x2, z2, x3, z3] = [1n, 0n, u, 1n];
  let swapped = 0n;
  for (let t = 254n; t >= 0n; t--) {
    const bit = (k >> t) & 1n;
    if (bit !== swapped) [x2, z2, x3, z3] = [x3, z3, x2, z2];
    swapped = bit;
    const [sum, difference] = [x2 + z2, x2 - z2];
    const [aa, bb] = [(sum * sum) % P, (difference * difference) % P];
    const e = aa - bb;
    const [da, cb] = [((x3 - z3) * sum) % P, ((x3 + z3) * difference) % P];
    x3 = ((da + cb) * (da + cb)) % P;
    z3 = (u * (((da - cb) * (da - cb)) % P)) % P;
    x2 = (aa * bb) % P;
    z2 = (e * (aa + A24 * e)) % P;
  }
  if (swapped) [x2, z2] = [x3, z3];
  return modulo(x2 * power(modulo(z2), P - 2n));
}

/** @param {bigint} value */
function modulo(value) {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}

/** @param {bigint} base @param {bigint} exponent */
function power(base, exponent) {
  let [result, square] = [1n, base];
  for (let rest = exponent; rest; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}

/** @param {CryptoKey} privateKey @param {Uint8Array} peer */
async function platformAgree(privateKey, peer) {
  if (peer.length !== 32) throw new MessageError("X25519: expected keys of 32 bytes");
  try {
    const other = await crypto.subtle.importKey("raw", /** @type {BufferSource} */ (peer), NAME, true, []);
    return nonZero(new Uint8Array(await crypto.subtle.deriveBits({ ...NAME, public: other }, privateKey, 256)));
  } catch {
    throw new MessageError("X25519: a public key that gives no secret");
  }
}

/** A shared secret of zeros comes from a key of small order: refused. @param {Uint8Array} secret */
function nonZero(secret) {
  if (secret.every((byte) => byte === 0)) throw new MessageError("X25519: a public key that gives no secret");
  return secret;
}

/** @param {Uint8Array} content little-endian */
function numberOf(content) {
  return content.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/** @param {bigint} value */
function littleEndian(value) {
  return Uint8Array.from({ length: 32 }, (_, i) => Number((value >> BigInt(8 * i)) & 255n));
}
