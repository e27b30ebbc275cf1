/** A pack that is moved by hand, with its signatures in front: the twin of wire/signed_pack.py. */

import { concat, equalBytes, toHex, utf8 } from "./bytes.js";
import { MessageError } from "./errors.js";
import { isSigned } from "./signing.js";

const MAGIC = utf8("SBPS");
const PREFIX = utf8("searchblend pack v1\n");
const VERSION = 1;
const MOST_SIGNATURES = 8;
const [START, ID_BYTES, ONE] = [6, 8, 72];

/** The pack's bytes, if one of the pinned keys has signed them; else MessageError.
 * @param {Uint8Array} content @param {import("./signing.js").PinnedKeys} pinned */
export async function verifySignedPack(content, pinned) {
  if (content.length < START || !equalBytes(content.subarray(0, 4), MAGIC)) {
    throw new MessageError("signed pack: expected a signed searchblend pack");
  }
  if (content[4] !== VERSION) throw new MessageError(`signed pack: version ${content[4]}, expected ${VERSION}`);
  const n = content[5];
  if (!(n >= 1 && n <= MOST_SIGNATURES)) {
    throw new MessageError(`signed pack: expected 1 to ${MOST_SIGNATURES} signatures`);
  }
  const end = START + n * ONE;
  if (content.length < end) throw new MessageError("signed pack: truncated: ends within the signatures");
  const signed = concat(PREFIX, content.subarray(end));
  for (let at = START; at < end; at += ONE) {
    const keyId = toHex(content.subarray(at, at + ID_BYTES));
    if (await isSigned(signed, keyId, content.slice(at + ID_BYTES, at + ONE), pinned)) return content.slice(end);
  }
  throw new MessageError("signed pack: no valid signature of a pinned key");
}
