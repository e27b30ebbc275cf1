/**
 * The sealed opt-in record: written on a device, readable by the curator of one round alone, counted for one person.
 * The twin of wire/sealed.py.
 *
 * Task, round, the text that was consented to and the contributor's tag are bound in: a record opens nowhere else, and
 * a copy of it under another contributor's tag opens nowhere at all. The size says only the bucket.
 */

import { bigEndian, concat, equalBytes, fromBigEndian, sha256, utf8 } from "./bytes.js";
import { canonicalJson, isObject, parseCanonical } from "./canonical.js";
import { MessageError } from "./errors.js";
import { open, seal } from "./hpke.js";
import { normalize } from "./normalize.js";

/** @typedef {import("./records.js").DeviceRecord} DeviceRecord */
/** @typedef {import("./x25519.js").KeyPair} KeyPair */
/** @typedef {{task: Uint8Array, round: number, consent: Uint8Array}} SealingContext */

const HEAD = Uint8Array.of(2, 1);
const LABEL = utf8("searchblend opt-in v2");
const TAG_LABEL = utf8("searchblend contributor v1");
const CONSENT_BYTES = 32;
const KEY_BYTES = 32;
const TAG_BYTES = 32;
const HEAD_BYTES = 2 + CONSENT_BYTES;
const OVERHEAD = HEAD_BYTES + 32 + 16;
export const BUCKETS = Object.freeze([256, 512, 1024, 2048, 4096]);
const SIZES = BUCKETS.map((bucket) => OVERHEAD + bucket);

/** Who has this credential, as far as one round can tell. @param {SealingContext} context @param {string} credential */
export async function contributorTag({ task, round }, credential) {
  return sha256(concat(TAG_LABEL, task, bigEndian(round, 4), await sha256(utf8(credential))));
}

/** Seal one person's records for one round; they open under this tag alone. @param {readonly DeviceRecord[]} records
 * @param {SealingContext} context @param {Uint8Array} tag @param {Uint8Array} publicKey
 * @param {() => Promise<KeyPair>} [ephemeral] for tests */
export async function sealRecords(records, context, tag, publicKey, ephemeral) {
  if (!records.length) throw new MessageError("sealed record: records: expected at least one");
  if (context.consent.length !== CONSENT_BYTES || context.task.length !== 16 || publicKey.length !== KEY_BYTES) {
    throw new MessageError("sealed record: expected a task of 16 bytes, a consent and a key of 32");
  }
  const padded = pad(canonicalJson({ records: records.map(pairOf) }));
  return concat(HEAD, context.consent, await seal(publicKey, infoOf(context, tag), padded, ephemeral));
}

/** Whether these records are short enough for one message. @param {readonly DeviceRecord[]} records */
export function fitsSealed(records) {
  return canonicalJson({ records: records.map(pairOf) }).length + 2 <= BUCKETS[BUCKETS.length - 1];
}

/** What can be checked without the key: form, size and consent.
 * @param {Uint8Array} message @param {SealingContext} context */
export function checkSealed(message, context) {
  if (!SIZES.includes(message.length) || !equalBytes(message.subarray(0, 2), HEAD)) {
    throw new MessageError("sealed record: malformed: expected version 2, suite 1 and the size of a bucket");
  }
  if (!equalBytes(message.subarray(2, HEAD_BYTES), context.consent)) {
    throw new MessageError("sealed record: wrong-consent: made under another consent text");
  }
}

/** The records, at least one and at most what the round takes of one person. Devices never need it; the vectors do.
 * @param {Uint8Array} message @param {SealingContext} context @param {Uint8Array} tag @param {KeyPair} pair
 * @param {number} atMost */
export async function openRecords(message, context, tag, pair, atMost) {
  checkSealed(message, context);
  let padded;
  try {
    padded = await open(pair, infoOf(context, tag), message.subarray(HEAD_BYTES));
  } catch {
    throw new MessageError("sealed record: not sealed for this round, consent and contributor");
  }
  return recordsOf(unpad(padded), atMost);
}

/** @param {SealingContext} context @param {Uint8Array} tag */
function infoOf({ task, round, consent }, tag) {
  // Every part has a fixed size: no two lists of parts have the same bytes.
  if (tag.length !== TAG_BYTES) throw new MessageError(`sealed record: tag: expected ${TAG_BYTES} bytes`);
  return concat(LABEL, task, bigEndian(round, 4), consent, tag);
}

/** @param {DeviceRecord} record */
function pairOf({ query, url }) {
  if (query === null || normalize(query) !== query || url === "") {
    throw new MessageError("sealed record: records: expected normalized queries and URLs");
  }
  return [query, url];
}

/** @param {Uint8Array} content */
function pad(content) {
  const bucket = BUCKETS.find((size) => content.length + 2 <= size);
  if (bucket === undefined) {
    throw new MessageError(`sealed record: expected at most ${BUCKETS[BUCKETS.length - 1] - 2} bytes`);
  }
  return concat(bigEndian(content.length, 2), content, new Uint8Array(bucket - 2 - content.length));
}

/** @param {Uint8Array} padded */
function unpad(padded) {
  const content = padded.slice(2, 2 + fromBigEndian(padded.subarray(0, 2)));
  if (!BUCKETS.includes(padded.length) || !equalBytes(pad(content), padded)) {
    throw new MessageError("sealed record: wrong padding");
  }
  return content;
}

/** @param {Uint8Array} content @param {number} atMost @returns {DeviceRecord[]} */
function recordsOf(content, atMost) {
  const document = parseCanonical(content, "sealed record");
  const pairs = isObject(document) && Object.keys(document).join() === "records" ? document.records : null;
  if (!Array.isArray(pairs) || !(pairs.length >= 1 && pairs.length <= atMost)) {
    throw new MessageError(`sealed record: records: expected 1 to ${atMost}`);
  }
  return pairs.map(recordOf);
}

/** @param {any} pair @returns {DeviceRecord} */
function recordOf(pair) {
  const isPair = Array.isArray(pair) && pair.length === 2;
  if (!isPair || typeof pair[0] !== "string" || (pair[1] !== null && typeof pair[1] !== "string")) {
    throw new MessageError("sealed record: records: expected [query, url] pairs");
  }
  const [query, url] = pair;
  if (normalize(query) !== query || url === "") {
    throw new MessageError("sealed record: records: expected normalized queries and URLs");
  }
  return { query, url };
}
