/** The head-list message: what every device gets, and all it needs to make a report. The twin of wire/head_list.py. */

import { sha256, textOf, toHex } from "./bytes.js";
import { isObject } from "./canonical.js";
import { asMessageError, MessageError } from "./errors.js";
import { decodeOptinResult } from "./optin_result.js";
import { ReportParams } from "./params.js";
import { HeadList } from "./records.js";
import { GAMMA_STEPS, MECHANISMS, ReportDesign } from "./subset_report.js";

export const FORMAT = "searchblend-headlist";
export const PROTOCOL_VERSION = 1;

/** @typedef {import("./optin_result.js").OptinResult} OptinResult */
/** @typedef {{head: HeadList, params: ReportParams, design: ReportDesign | null, optinResult: OptinResult | null}}
 * HeadListMessage */

/**
 * The artifact's bytes as a message: of exactly the SHA-256 and the digest that the signed manifest names.
 * @param {Uint8Array} content @param {{artifact: string, digest: string}} client @returns {Promise<HeadListMessage>}
 */
export async function readHeadList(content, client) {
  if (toHex(await sha256(content)) !== client.artifact) {
    throw new MessageError("head list: not the artifact that the manifest names");
  }
  const message = await decodeHeadList(parsed(content));
  if ((await message.head.digest()) !== client.digest) {
    throw new MessageError("head list: digest: not the one that the manifest names");
  }
  return message;
}

/** The head list and the parameters of a report, or MessageError naming the field that is wrong.
 * @param {any} document @returns {Promise<HeadListMessage>} */
export async function decodeHeadList(document) {
  if (!isObject(document)) throw new MessageError("head list: expected a JSON object");
  for (const [field, expected] of EXPECTED) {
    if (!expected.includes(/** @type {any} */ (document[field]))) {
      throw new MessageError(`head list: ${field}: expected ${expected.join(" or ")}`);
    }
  }
  if ((document.notice ?? null) !== null) {
    throw new MessageError("head list: notice: it comes from an evaluation and is not private");
  }
  const head = decodeQueries(document.queries);
  if (document.digest !== (await head.digest())) {
    throw new MessageError("head list: digest: does not match the queries");
  }
  const design = document.method === "best" ? decodeDesign(document.design, head) : null;
  const named = document.optin_result ?? null;
  const optinResult = named === null ? null : decodeOptinResult(named);
  return Object.freeze({ head, params: decodeParams(document), design, optinResult });
}

/** @type {Array<[string, Array<string | number>]>} */
const EXPECTED = [
  ["format", [FORMAT]],
  ["version", [PROTOCOL_VERSION]],
  ["method", ["paper", "best"]],
];

/** @param {Uint8Array} content */
function parsed(content) {
  try {
    return JSON.parse(textOf(content));
  } catch {
    throw new MessageError("head list: expected a JSON object");
  }
}

/** @param {any} design @param {HeadList} head */
function decodeDesign(design, head) {
  /** @type {Array<[string, number, number]>} */
  const limits = [
    ["query_steps", 0, GAMMA_STEPS],
    ["query_subset", 1, head.size],
    ["cell_subset", 1, head.nCells - 1],
  ];
  const names = limits.map(([field]) => field);
  if (!isObject(design) || !sameSet(Object.keys(design), [...names, "mechanism"])) {
    throw new MessageError(`head list: design: expected an object with mechanism, ${names.join(", ")}`);
  }
  if (!MECHANISMS.includes(/** @type {any} */ (design.mechanism))) {
    throw new MessageError(`head list: design.mechanism: expected one of ${MECHANISMS.join(", ")}`);
  }
  for (const [field, low, high] of limits) {
    const value = /** @type {any} */ (design[field]);
    if (!Number.isInteger(value) || !(value >= low && value <= high)) {
      throw new MessageError(`head list: design.${field}: expected a whole number from ${low} to ${high}`);
    }
  }
  const {
    query_steps: querySteps,
    query_subset: querySubset,
    cell_subset: cellSubset,
    mechanism,
  } = /** @type {any} */ (design);
  return asMessageError(
    "head list: design.",
    () => new ReportDesign({ querySteps, querySubset, cellSubset, mechanism }),
  );
}

/** @param {any} queries */
function decodeQueries(queries) {
  if (!Array.isArray(queries)) throw new MessageError("head list: queries: expected a list of [query, [url, …]] pairs");
  queries.forEach((pair, position) => {
    if (!(Array.isArray(pair) && pair.length === 2 && Array.isArray(pair[1]))) {
      throw new MessageError(`head list: queries[${position}]: expected [query, [url, …]]`);
    }
  });
  return new HeadList(queries);
}

/** @param {any} document */
function decodeParams(document) {
  for (const field of ["epsilon", "delta", "query_budget_fraction"]) {
    if (typeof document[field] !== "number") throw new MessageError(`head list: ${field}: expected a number`);
  }
  const { epsilon, delta, query_budget_fraction: queryBudgetFraction } = document;
  const recordsPerClient = document.records_per_client ?? null;
  return asMessageError(
    "head list: ",
    () => new ReportParams({ epsilon, delta, queryBudgetFraction, recordsPerClient }),
  );
}

/** @param {string[]} one @param {string[]} other */
function sameSet(one, other) {
  return one.length === other.length && one.every((name) => other.includes(name));
}
