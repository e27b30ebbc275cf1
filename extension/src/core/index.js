/**
 * The entry points of the core; see README.md. Everything that draws is bound to the platform's generator here: none of
 * these functions takes a source of randomness.
 */

import { concat, equalBytes, fromHex, sha256, toHex, utf8 } from "./bytes.js";
import * as errors from "./errors.js";
import { oddsFigures } from "./consent.js";
import { localReport } from "./local_report.js";
import { applyDelta } from "./pack_delta.js";
import { ReportParams } from "./params.js";
import { systemRandomness, uniformBelow } from "./randomness.js";
import { cellsAsParts, decodeReport, encodeReport, ReportShape } from "./report.js";
import { listOdds, reportOdds } from "./report_odds.js";
import { contributorTag, sealRecords as sealed } from "./sealed.js";
import { subsetReport } from "./subset_report.js";
import { challengeDigest, isRequestFor, makeTokenRequest, readTokenKey, tokenOf as openToken } from "./tokens.js";

/** @typedef {import("./head_list.js").HeadListMessage} HeadListMessage */
/** @typedef {import("./records.js").DeviceRecord} DeviceRecord */
/** @typedef {import("./manifest.js").Manifest} Manifest */
/** @typedef {import("./manifest.js").OptinManifest} OptinManifest */
/** @typedef {import("./manifest.js").ClientManifest} ClientManifest */
/** @typedef {import("./manifest.js").OfferedPack} OfferedPack */
/** @typedef {import("./admission.js").Admission} Admission */
/** @typedef {import("./signing.js").PinnedKeys} PinnedKeys */
/** @typedef {import("./manifest.js").TokenTerms} TokenTerms */
/** @typedef {import("./tokens.js").TokenAccount} TokenAccount */
/** @typedef {import("./tokens.js").TokenRequest} TokenRequest */
/** @typedef {import("./search.js").SearchIndex} SearchIndex */
/** @typedef {import("./search.js").Answer} Answer */
/** @typedef {import("./consent.js").OddsFigures} OddsFigures */
/** @typedef {import("./enrolment.js").EnrolmentDocument} EnrolmentDocument */
/** @typedef {import("./transparency.js").LastLog} LastLog */
/** @typedef {import("./ohttp.js").KeyConfiguration} KeyConfiguration */
/** @typedef {import("./binary_http.js").Fields} Fields */
/** @typedef {{aboutQueries: boolean, items: DeviceRecord[]}} ExplainedPart */

export { mostBelief, ownWords, taskConsent } from "./consent.js";
export { checkEnrolment, readEnrolment } from "./enrolment.js";
export { decodeResponse, encodeRequest } from "./binary_http.js";
export { decodeConfigurations, KEY_PROBLEM, LARGEST_KEYS, largestResponse, MEDIA_TYPES, sealRequest } from "./ohttp.js";
export { normalize, normalizeUrl } from "./normalize.js";
export { suspicions } from "./suspects.js";
export { admit, whyNotKept } from "./admission.js";
export { isRoundKeySigned, keyId, pinnedKeys, verifyManifest } from "./signing.js";
export { readHeadList } from "./head_list.js";
export { checkContribution, checkHeadList, checkManifest, checkRequest, withinBudget } from "./policy.js";
export { DEVICE_VERSION, POLICY, REASONS } from "./policy.js";
export { fitsSealed } from "./sealed.js";
export { openPack } from "./search.js";
export { readAccount, tokenHeader } from "./tokens.js";
export { verifySignedPack } from "./signed_pack.js";
export { checkLog } from "./transparency.js";
export { visible } from "./visible.js";
export { errors };
export const bytes = Object.freeze({ concat, equalBytes, fromHex, sha256, toHex, utf8 });

/** Randomize once and encode: the exact bytes to keep and to send.
 * @param {readonly DeviceRecord[]} records @param {HeadListMessage} message
 * @param {string} task @param {number} round */
export async function makeReport(records, message, task, round) {
  const { head, params, design } = message;
  const shape = await shapeOf(message, task, round);
  const parts = design
    ? subsetReport(records, head, design, params, systemRandomness)
    : cellsAsParts(localReport(records, head, params, systemRandomness));
  return encodeReport(parts, shape, systemRandomness);
}

/** What a report says, in words: the records that each part names; none is the sink. ⋆ is null.
 * @param {Uint8Array} report @param {HeadListMessage} message @param {string} task @param {number} round */
export async function explainReport(report, message, task, round) {
  const { id, parts } = await decodeReport(report, await shapeOf(message, task, round));
  const { head } = message;
  const named = (/** @type {boolean} */ aboutQueries, /** @type {number} */ item) =>
    aboutQueries ? { query: head.queries[item] ?? null, url: null } : head.recordOfCell(item);
  return {
    id: toHex(id),
    parts: parts.map(({ aboutQueries, items }) => ({
      aboutQueries,
      items: items.map((item) => named(aboutQueries, item)),
    })),
  };
}

/** What a report over this list gives away, in numbers. @param {HeadListMessage} message */
export function oddsOfReport({ head, params, design }) {
  return oddsFigures(reportOdds(head, params, design));
}

/** The same before there is a list: over one of so many searches. One search is the worst case.
 * @param {{epsilon: number, delta: number, recordsPerClient?: number}} asked @param {number} nQueries */
export function oddsOfList(asked, nQueries) {
  return oddsFigures(listOdds(new ReportParams(asked), nQueries));
}

/** Seal records to the curator of one round, for whoever sends them with this credential; the other texts are those of
 * the manifest. @param {readonly DeviceRecord[]} records
 * @param {{task: string, round: number, consent: string, credential: string}} context @param {string} publicKey */
export async function sealRecords(records, { task, round, consent, credential }, publicKey) {
  const context = { task: fromHex(task), round, consent: fromHex(consent) };
  return sealed(records, context, await contributorTag(context, credential), fromHex(publicKey));
}

/** Ask for a token that pays for a report of this round: what to send to the issuer, and what to keep until it answers.
 * Make it once and keep it. @param {TokenTerms} terms of the manifest @param {string} task @param {number} round */
export async function requestToken(terms, task, round) {
  const digest = await challengeDigest(terms.issuer, task, round);
  return makeTokenRequest(await readTokenKey(terms.key), digest, systemRandomness);
}

/** Whether what was asked for is for these terms and this round.
 * @param {TokenRequest} request @param {TokenTerms} terms @param {string} task @param {number} round */
export async function isTokenFor(request, terms, task, round) {
  return isRequestFor(request, await readTokenKey(terms.key), await challengeDigest(terms.issuer, task, round));
}

/** The token in the issuer's answer, or `MessageError` if it is not signed by the key that the manifest names.
 * @param {TokenRequest} request @param {Uint8Array} response @param {TokenTerms} terms */
export async function tokenOf(request, response, terms) {
  return openToken(request, response, await readTokenKey(terms.key));
}

/** What a manifest names when it asks for consent to this text. @param {string} text */
export async function consentDigest(text) {
  return toHex(await sha256(utf8(text)));
}

/** The next pack's bytes from the present one and a delta; both SHA-256 are those of the manifest.
 * @param {Uint8Array} base @param {Uint8Array} delta @param {{artifact?: string, result?: string}} [options] */
export async function applyPackDelta(base, delta, { artifact, result } = {}) {
  if (artifact !== undefined && toHex(await sha256(delta)) !== artifact) {
    throw new errors.MessageError("pack delta: not the artifact that the manifest names");
  }
  const content = await applyDelta(base, delta);
  if (result !== undefined && toHex(await sha256(content)) !== result) {
    throw new errors.MessageError("pack delta: what comes out is not the pack that the manifest names");
  }
  return content;
}

/** An exactly uniform whole number in [0, n). @param {number} n from 1 to 2^32 − 1 */
export function randomBelow(n) {
  if (!(Number.isInteger(n) && n >= 1 && n < 2 ** 32)) {
    throw new errors.InvalidParameter("n", "expected a whole number from 1 to 2^32 - 1");
  }
  return uniformBelow(n, systemRandomness);
}

/** @param {HeadListMessage} message @param {string} task @param {number} round */
function shapeOf({ head, params, design }, task, round) {
  const content = fromHex(task);
  if (content.length !== 16) throw new errors.InvalidParameter("task", "expected 32 hexadecimal digits");
  if (!(Number.isInteger(round) && round >= 0 && round < 2 ** 32)) {
    throw new errors.InvalidParameter("round", "expected a whole number below 2^32");
  }
  return ReportShape.of(content, round, head, params, design);
}
