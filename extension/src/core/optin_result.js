/** The curator's signed word for a head list: which queries and URLs it drew from the opt-in users' records. The twin
 * of wire/optin_result.py, whose head says what is hashed; signatures are checked in signing.js. */

import { concat, fromHex, sha256, toHex, utf8 } from "./bytes.js";
import { canonicalJson, isObject } from "./canonical.js";
import { MessageError } from "./errors.js";
import { decodeSignature } from "./manifest.js";

/** @typedef {import("./records.js").HeadList} HeadList */
/** @typedef {import("./manifest.js").Signature} Signature */
/** @typedef {{task: string, round: number, epsilon: string, delta: string}} DrawnBy as in the manifest */
/** @typedef {{salts: string[][], removed: string[], key: string, curator: Signature}} OptinResult */

const SIGNED_PREFIX = utf8("searchblend opt-in result v1\n");
const ENTRY_PREFIX = utf8("searchblend opt-in entry v1\n");
const ENTRIES_PREFIX = utf8("searchblend opt-in entries v1\n");
const WHERE = "opt-in result";
const SALT_DIGITS = 32;
const FIELDS = "curator, key, removed, salts";

/** Strictly; whether it fits a list, and who signed it, is for `signedResult` and signing.js.
 * @param {any} document @returns {OptinResult} */
export function decodeOptinResult(document) {
  if (!isObject(document) || Object.keys(document).sort().join(", ") !== FIELDS) {
    throw new MessageError(`${WHERE}: expected ${FIELDS}`);
  }
  const { salts, removed, key, curator } = /** @type {any} */ (document);
  if (!Array.isArray(salts) || !salts.every((each) => Array.isArray(each) && each.length > 0)) {
    throw new MessageError(`${WHERE}: salts: expected a list of lists`);
  }
  if (!salts.flat().every((salt) => isHex(salt, SALT_DIGITS))) {
    throw new MessageError(`${WHERE}: salts: expected ${SALT_DIGITS} hexadecimal digits each`);
  }
  if (!Array.isArray(removed) || !removed.every((entry) => isHex(entry, 64))) {
    throw new MessageError(`${WHERE}: removed: expected 64 hexadecimal digits each`);
  }
  if (!isHex(key, 130)) throw new MessageError(`${WHERE}: key: expected 130 hexadecimal digits`);
  return { salts, removed, key, curator: decodeSignature(curator, `${WHERE}: curator`) };
}

/** What the curator must have signed; MessageError if this is not the result of a list of this form.
 * @param {OptinResult} result @param {HeadList} head @param {DrawnBy} drawnBy */
export async function signedResult({ salts, removed }, head, { task, round, epsilon, delta }) {
  const entries = [...(await published(head, salts)), ...removed];
  const root = toHex(await sha256(concat(ENTRIES_PREFIX, fromHex(entries.sort().join("")))));
  return concat(SIGNED_PREFIX, canonicalJson({ task, round, epsilon, delta, root }));
}

/** The entries of everything that is in the list. @param {HeadList} head @param {string[][]} salts */
async function published(head, salts) {
  const named = head.asJson().map(([query, urls]) => [null, ...urls].map((url) => [query, url]));
  if (salts.length !== named.length || salts.some((each, i) => each.length !== named[i].length)) {
    throw new MessageError(`${WHERE}: salts: expected one for each query and each URL of the list`);
  }
  const pairs = named.flatMap((each, i) => each.map((pair, j) => ({ pair, salt: fromHex(salts[i][j]) })));
  return Promise.all(
    pairs.map(async ({ pair, salt }) => toHex(await sha256(concat(ENTRY_PREFIX, salt, canonicalJson(pair))))),
  );
}

/** @param {unknown} value @param {number} digits */
function isHex(value, digits) {
  return typeof value === "string" && value.length === digits && /^[0-9a-f]*$/.test(value);
}
