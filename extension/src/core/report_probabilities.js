/** The probabilities of a report as integer thresholds: the twin of blender/paper/report_probabilities.py. */

import { InvalidParameter } from "./errors.js";
import { expFractionBounds } from "./fixed_point.js";
import { Fraction, whole } from "./fraction.js";
import { keepProbability } from "./randomized_response.js";
import { remembered } from "./remembered.js";

export const WORDS = 1n << 64n;

/** @typedef {{nQueries: number, nUrls: readonly number[]}} Sizes */
/** @typedef {import("./params.js").ReportParams} ReportParams */

/**
 * t and t_q of [BLJ] Fig. 6 as integer thresholds on one 64-bit word U: U < keepRecordBelow[q] reports the truth; else
 * U < keepQueryBelow keeps the query and lies about the URL; else the query is a lie. Both are rounded down.
 */
export class ReportProbabilities {
  /** @param {bigint} keepQueryBelow @param {bigint[]} keepRecordBelow @param {readonly number[]} nUrls */
  constructor(keepQueryBelow, keepRecordBelow, nUrls) {
    this.keepQueryBelow = keepQueryBelow;
    this.keepRecordBelow = Object.freeze(keepRecordBelow);
    this.nUrls = nUrls;
    Object.freeze(this);
  }

  /** [BLJ] Fig. 6, lines 2-6. @param {Sizes} head @param {ReportParams} params */
  static of(head, params) {
    return printed(head, params);
  }

  /**
   * The same two stages calibrated to lose exactly ε, without δ: t_q = min(e^{ε−ε_Q}/k_q, e^ε/(e^ε + k_q − 1)).
   * @param {Sizes} head @param {ReportParams} params
   */
  static exact(head, params) {
    return exactlyCalibrated(head, params);
  }

  get nQueries() {
    return this.nUrls.length;
  }
}

const printed = remembered((/** @type {Sizes} */ head, /** @type {ReportParams} */ params) => {
  const keepQuery = keepProbability(params.queryShare, head.nQueries).times(whole(WORDS)).floor();
  const keepRecord = thresholds(head, keepQuery, (width) => keepProbability(params.urlShare, width));
  // The proof needs t ≥ 1/k and t_q ≥ 1/k_q of the rounded values: a truth at least as likely as any one lie.
  if (keepQuery * BigInt(head.nQueries) < WORDS) {
    throw new InvalidParameter("epsilon", "too small for thresholds of 64 bits");
  }
  if (keepRecord.some((below, query) => below * BigInt(head.nUrls[query]) < keepQuery)) {
    throw new InvalidParameter(
      "query_budget_fraction",
      "leaves nothing for the URLs; 1 is only for lists without URLs",
    );
  }
  return new ReportProbabilities(keepQuery, keepRecord, head.nUrls);
});

const exactlyCalibrated = remembered((/** @type {Sizes} */ head, /** @type {ReportParams} */ params) => {
  const [epsilon, queryEpsilon] = [params.perRecord.epsilon, params.queryShare.epsilon];
  const keepQuery = keepProbability({ epsilon: queryEpsilon, delta: whole(0) }, head.nQueries)
    .times(whole(WORDS))
    .floor();
  const [growth] = expFractionBounds(epsilon);
  const [rest] = expFractionBounds(epsilon.minus(queryEpsilon));
  const keepRecord = thresholds(head, keepQuery, (width) =>
    width === 1 ? whole(1) : least(rest.over(whole(width)), growth.over(growth.plus(whole(width - 1))), whole(1)),
  );
  return new ReportProbabilities(keepQuery, keepRecord, head.nUrls);
});

/** floor(keepQuery · t_q) for every query, computed once for each k_q.
 * @param {Sizes} head @param {bigint} keepQuery @param {(width: number) => Fraction} keepUrl */
function thresholds(head, keepQuery, keepUrl) {
  /** @type {Map<number, bigint>} */ const byWidth = new Map();
  for (const width of new Set(head.nUrls)) byWidth.set(width, keepUrl(width).times(whole(keepQuery)).floor());
  return head.nUrls.map((width) => /** @type {bigint} */ (byWidth.get(width)));
}

/** @param {...Fraction} values */
function least(...values) {
  return values.reduce((one, other) => (other.below(one) ? other : one));
}
