/**
 * What a report gives away, computed from the very probabilities that it is drawn with: the twin of
 * blender/report_odds.py.
 *
 * Plain floating-point steps on the integer thresholds, in one order: both languages get the same digits.
 */

import { ReportProbabilities } from "./report_probabilities.js";
import { GAMMA_STEPS } from "./subset_report.js";
import { PlainSubsetSelection, SubsetSelection } from "./subset_selection.js";

/** @typedef {import("./params.js").ReportParams} ReportParams */
/** @typedef {import("./records.js").HeadList} HeadList */
/** @typedef {import("./subset_report.js").ReportDesign} ReportDesign */
/** @typedef {SubsetSelection | PlainSubsetSelection} SetMechanism */

const WORD = 2 ** 64;

/** How often a report names a listed search of the user, and how far it moves anyone's belief about it. */
export class ReportOdds {
  /** @param {number} named @param {number} mostItems @param {number} growth @param {ReportParams} params */
  constructor(named, mostItems, growth, { recordsPerClient }) {
    /** the probability that one answer about a listed search names its query, for the query where it is largest */
    this.named = named;
    /** how many searches one answer names at most */
    this.mostItems = mostItems;
    /** m_C: answers in a report */
    this.answers = recordsPerClient;
    /** the largest factor by which the whole report multiplies the odds of any guess about the user's search */
    this.growth = 1;
    for (let answer = 0; answer < recordsPerClient; answer++) this.growth *= growth;
    Object.freeze(this);
  }
}

/** The most that a belief of `before` can become by what multiplies its odds by up to `growth`.
 * @param {number} before @param {number} growth */
export function beliefAfter(before, growth) {
  return growth === Infinity ? 1 : (before * growth) / (before * growth + (1 - before));
}

/** The odds of a client's report over this list; without a design, of the report that the paper prints.
 * @param {HeadList} head @param {ReportParams} params @param {ReportDesign | null} design */
export function reportOdds(head, params, design) {
  const cells = design?.aboutCells(head, params) ?? null;
  const queries = design?.aboutQueries(head, params) ?? null;
  if (design === null || (cells === null && queries === null)) {
    const stages = design ? ReportProbabilities.exact(head, params) : ReportProbabilities.of(head, params);
    return new ReportOdds(shareOf(stages.keepQueryBelow), 1, twoStageGrowth(stages), params);
  }
  const share = design.querySteps / GAMMA_STEPS;
  const widest = head.nUrls.reduce((most, width) => Math.max(most, width), 0);
  const named = (queries ? share * includeOf(queries) : 0) + (cells ? (1 - share) * namedByCells(cells, widest) : 0);
  const sets = [queries, cells].filter((mechanism) => mechanism !== null);
  const growth = Math.max(...sets.map(growthOf));
  return new ReportOdds(named, Math.max(...sets.map(({ subsetSize }) => subsetSize)), growth, params);
}

/** Before there is a list: the odds over one of `nQueries` queries, one of which is named at a time. A list of one
 * query is the worst case. @param {ReportParams} params @param {number} nQueries */
export function listOdds(params, nQueries) {
  const mechanism = SubsetSelection.of(params.perRecord.epsilon, nQueries, 1);
  return new ReportOdds(includeOf(mechanism), 1, growthOf(mechanism), params);
}

/** A set without the true cell may still hold another cell of the same query, which has `width` of them.
 * @param {SetMechanism} mechanism @param {number} width */
function namedByCells(mechanism, width) {
  const isPlain = mechanism instanceof PlainSubsetSelection;
  const others = isPlain ? mechanism.nItems : mechanism.nItems - 1;
  const [include, sink] = [includeOf(mechanism), isPlain ? 0 : sinkOf(mechanism)];
  let miss = 1;
  for (let position = 0; position < width - 1; position++) {
    miss *= Math.max(others - mechanism.subsetSize - position, 0) / (others - position);
  }
  return include + (1 - include - sink) * (1 - miss);
}

/** max P(report | one search) / P(report | another), over all reports. @param {SetMechanism} mechanism */
function growthOf(mechanism) {
  const [m, d, include] = [mechanism.nItems, mechanism.subsetSize, includeOf(mechanism)];
  if (mechanism instanceof PlainSubsetSelection) return largestRatio([include / d, (1 - include) / (m - d + 1)]);
  // Relative to a set drawn uniformly: of a holder of one of its items, of a holder of ⋆, of any other holder.
  const sink = sinkOf(mechanism);
  const sets = [(include * m) / d, 1 - include];
  if (d < m) sets.push(((1 - include - sink) * m) / (m - d));
  return Math.max(largestRatio(sets), largestRatio([include, sink]));
}

/** The same for two stages; all queries with equally many URLs have the same probabilities.
 * @param {ReportProbabilities} stages */
function twoStageGrowth({ keepQueryBelow, keepRecordBelow, nQueries, nUrls }) {
  const keepQuery = shareOf(keepQueryBelow);
  const keepRecord = new Map(nUrls.map((width, query) => [width, shareOf(keepRecordBelow[query])]));
  let largest = 1;
  if (nQueries === 1) return largest; // an empty list: there is only one thing to say
  for (const [width, keep] of keepRecord) {
    const said = [keep, (1 - keepQuery) / (nQueries - 1) / width];
    if (width > 1) said.push((keepQuery - keep) / (width - 1));
    largest = Math.max(largest, largestRatio(said));
  }
  return largest;
}

/** @param {number[]} probabilities */
function largestRatio(probabilities) {
  const least = Math.min(...probabilities);
  return least > 0 ? Math.max(...probabilities) / least : Infinity;
}

/** p: the probability that a holder's report names the item. @param {SetMechanism} mechanism */
function includeOf(mechanism) {
  return shareOf(mechanism.includeBelow);
}

/** s₁: the probability that the holder of an item sends the sink. @param {SubsetSelection} mechanism */
function sinkOf(mechanism) {
  return shareOf(mechanism.sinkBelow - mechanism.includeBelow);
}

/** A threshold on one 64-bit word as a probability. @param {bigint} below */
function shareOf(below) {
  return Number(below) / WORD;
}
