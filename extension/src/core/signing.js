/** ECDSA P-256 with SHA-256 over manifests, checked by WebCrypto: one pinned key is believed. The twin of
 * wire/signing.py. */

import { fromBase64url, fromHex, sha256, toHex } from "./bytes.js";
import { MessageError } from "./errors.js";
import { decodePayload, decodeSignature, decodeSigned, signedBytes } from "./manifest.js";
import { signedResult } from "./optin_result.js";
import { signedRoundKey } from "./round_key.js";

const CURVE = Object.freeze({ name: "ECDSA", namedCurve: "P-256" });
const HASH = Object.freeze({ name: "ECDSA", hash: "SHA-256" });

/** @typedef {import("./manifest.js").Manifest} Manifest */
/** @typedef {import("./manifest.js").OptinManifest} OptinManifest */
/** @typedef {Readonly<Record<string, Uint8Array>>} PinnedKeys public points (65 bytes) by key id */

/** The first 8 bytes of SHA-256 of an uncompressed public point. @param {Uint8Array} point */
export async function keyId(point) {
  return toHex((await sha256(point)).subarray(0, 8));
}

/** Public points in hexadecimal, by key id. @param {readonly string[]} points @returns {Promise<PinnedKeys>} */
export async function pinnedKeys(points) {
  return Object.fromEntries(
    await Promise.all(points.map(async (point) => [await keyId(fromHex(point)), fromHex(point)])),
  );
}

/** The manifest, if one of the pinned keys has signed it; else MessageError.
 * @param {Uint8Array} message @param {PinnedKeys} pinned @returns {Promise<Manifest>} */
export async function verifyManifest(message, pinned) {
  const signed = decodeSigned(message);
  const content = signedBytes(signed);
  for (const { keyId: id, signature } of signed.signatures) {
    if (await isSigned(content, id, fromBase64url(signature), pinned)) return decodePayload(signed.payload);
  }
  throw new MessageError("manifest: no valid signature of a pinned key");
}

/** Whether one of the pinned curators has signed the round that this manifest, in phase opt-in, asks for.
 * @param {OptinManifest} manifest @param {PinnedKeys} pinned */
export async function isRoundKeySigned(manifest, pinned) {
  try {
    const { keyId: id, signature } = decodeSignature(manifest.optin.curator, "manifest: optin: curator");
    return await isSigned(signedRoundKey(manifest), id, fromBase64url(signature), pinned);
  } catch (error) {
    if (error instanceof MessageError) return false; // minor version 0 has none
    throw error;
  }
}

/** Whether one of the curators has drawn every entry of this list; without any, whether the key that it names has.
 * @param {import("./optin_result.js").OptinResult} result @param {import("./records.js").HeadList} head
 * @param {import("./optin_result.js").DrawnBy} drawnBy @param {PinnedKeys} curators */
export async function isDrawnByCurator(result, head, drawnBy, curators) {
  const point = fromHex(result.key);
  const believed = Object.keys(curators).length > 0 ? curators : { [await keyId(point)]: point };
  try {
    const { keyId: id, signature } = result.curator;
    return await isSigned(await signedResult(result, head, drawnBy), id, fromBase64url(signature), believed);
  } catch (error) {
    if (error instanceof MessageError) return false; // of a list of another form
    throw error;
  }
}

/** Whether the pinned key of this id made this signature (r ‖ s, 64 bytes) over these bytes.
 * @param {Uint8Array} content @param {string} id @param {Uint8Array} signature @param {PinnedKeys} pinned */
export async function isSigned(content, id, signature, pinned) {
  const point = Object.hasOwn(pinned, id) ? pinned[id] : undefined;
  if (!point || point.length !== 65 || point[0] !== 4 || (await keyId(point)) !== id) return false;
  try {
    const key = await crypto.subtle.importKey("raw", /** @type {BufferSource} */ (point), CURVE, false, ["verify"]);
    const [raw, signed] = /** @type {BufferSource[]} */ ([signature, content]);
    return await crypto.subtle.verify(HASH, key, raw, signed);
  } catch {
    return false; // not a point of the curve
  }
}
