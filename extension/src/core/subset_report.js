/**
 * What a client's device sends under method `best`: the twin of blender/best/subset_report.py.
 *
 * A public coin (γ) decides whether the report is about the queries or about the cells of the head list; the record
 * that is held becomes one item, or ⋆ if it is not listed. The design says which of three mechanisms makes the report.
 */

import { InvalidParameter } from "./errors.js";
import { randomizedCell } from "./local_report.js";
import { uniformBelow, word } from "./randomness.js";
import { remembered } from "./remembered.js";
import { ReportProbabilities } from "./report_probabilities.js";
import { PlainSubsetSelection, SubsetSelection, WORDS } from "./subset_selection.js";

/** @typedef {import("./randomness.js").Randomness} Randomness */
/** @typedef {import("./records.js").DeviceRecord} DeviceRecord */
/** @typedef {import("./records.js").HeadList} HeadList */
/** @typedef {import("./params.js").ReportParams} ReportParams */
/** @typedef {{aboutQueries: boolean, items: number[]}} SubsetReport */

export const GAMMA_STEPS = 20;
export const SINK_SETS = "subset selection with a sink";
export const PLAIN_SETS = "subset selection";
export const TWO_STAGE = "two-stage, exactly calibrated";
export const MECHANISMS = Object.freeze([SINK_SETS, PLAIN_SETS, TWO_STAGE]);

/** How clients report; public, chosen from released figures before any client is asked. */
export class ReportDesign {
  /** @param {{querySteps: number, querySubset: number, cellSubset: number, mechanism?: string}} values */
  constructor({ querySteps, querySubset, cellSubset, mechanism = SINK_SETS }) {
    if (!MECHANISMS.includes(mechanism)) {
      throw new InvalidParameter("mechanism", `expected one of ${MECHANISMS.join(", ")}`);
    }
    if (mechanism === TWO_STAGE && querySteps) {
      throw new InvalidParameter("query_steps", "expected 0: a two-stage report is about cells");
    }
    if (!(querySteps >= 0 && querySteps <= GAMMA_STEPS)) {
      throw new InvalidParameter("query_steps", `expected 0 to ${GAMMA_STEPS}`);
    }
    /** γ in twentieths: the share of reports about queries */
    this.querySteps = querySteps;
    /** d_A: queries in a set */
    this.querySubset = querySubset;
    /** d_C: cells in a set */
    this.cellSubset = cellSubset;
    this.mechanism = mechanism;
    Object.freeze(this);
  }

  /** The mechanism over the listed queries, or null if no report is about them.
   * @param {HeadList} head @param {ReportParams} params */
  aboutQueries(head, params) {
    return this.querySteps ? this.#queries(head, params) : null;
  }

  /** The mechanism over all cells but ⟨⋆,⋆⟩, or null if no report is a set of them.
   * @param {HeadList} head @param {ReportParams} params */
  aboutCells(head, params) {
    return this.querySteps === GAMMA_STEPS || this.mechanism === TWO_STAGE ? null : this.#cells(head, params);
  }

  #queries = remembered((/** @type {HeadList} */ head, /** @type {ReportParams} */ params) =>
    this.#sets(params, head.size, this.querySubset),
  );

  #cells = remembered((/** @type {HeadList} */ head, /** @type {ReportParams} */ params) =>
    this.#sets(params, head.nCells - 1, this.cellSubset),
  );

  /** @param {ReportParams} params @param {number} nItems @param {number} size */
  #sets(params, nItems, size) {
    const kind = this.mechanism === PLAIN_SETS ? PlainSubsetSelection : SubsetSelection;
    return kind.of(params.perRecord.epsilon, nItems, size);
  }
}

/**
 * Privatize one client's records: exactly m_C sets, each from a record drawn with replacement.
 * (ε, 0)-locally private under replace-one. A device without any record takes no part.
 * @param {readonly DeviceRecord[]} records @param {HeadList} head @param {ReportDesign} design
 * @param {ReportParams} params @param {Randomness} randomness @returns {SubsetReport[]}
 */
export function subsetReport(records, head, design, params, randomness) {
  if (!records.length) throw new InvalidParameter("records", "a device without a record sends no report");
  return Array.from({ length: params.recordsPerClient }, () => {
    const cell = head.cellOf(records[uniformBelow(records.length, randomness)]);
    return reportCell(cell, head, design, params, randomness);
  });
}

/** @param {number} cell @param {HeadList} head @param {ReportDesign} design @param {ReportParams} params
 * @param {Randomness} randomness @returns {SubsetReport} */
function reportCell(cell, head, design, params, randomness) {
  const listed = cell < head.nCells - 1;
  const queries = coin(design, randomness) ? design.aboutQueries(head, params) : null;
  if (queries) {
    return { aboutQueries: true, items: queries.report(listed ? head.queryOfCell(cell) : null, randomness) };
  }
  const cells = design.aboutCells(head, params);
  if (cells) return { aboutQueries: false, items: cells.report(listed ? cell : null, randomness) };
  const stages = ReportProbabilities.exact(head, params);
  return { aboutQueries: false, items: [randomizedCell(cell, head, stages, randomness)] };
}

/** Heads (queries) with probability γ. Draws nothing when there is no choice.
 * @param {ReportDesign} design @param {Randomness} randomness */
function coin(design, randomness) {
  if (design.querySteps === 0 || design.querySteps === GAMMA_STEPS) return design.querySteps === GAMMA_STEPS;
  return word(randomness) < (WORDS * BigInt(design.querySteps)) / BigInt(GAMMA_STEPS);
}
