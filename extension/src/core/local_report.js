/** LocalAlg: what a client's device sends. [BLJ] Fig. 6; the twin of blender/paper/local_report.py. */

import { InvalidParameter } from "./errors.js";
import { halves, uniformBelow, uniformFromHalf, word } from "./randomness.js";
import { ReportProbabilities } from "./report_probabilities.js";

/** @typedef {import("./randomness.js").Randomness} Randomness */
/** @typedef {import("./records.js").DeviceRecord} DeviceRecord */
/** @typedef {import("./records.js").HeadList} HeadList */
/** @typedef {import("./params.js").ReportParams} ReportParams */

/**
 * Privatize one client's records: exactly m_C cell numbers of the head list.
 *
 * (ε, δ)-locally private under replace-one (proofs/local_report.md). The m_C records are drawn with replacement, so
 * that the length of a report says nothing.
 * @param {readonly DeviceRecord[]} records
 * @param {HeadList} head @param {ReportParams} params @param {Randomness} randomness
 */
export function localReport(records, head, params, randomness) {
  if (!records.length) throw new InvalidParameter("records", "a device without a record sends no report");
  const probabilities = ReportProbabilities.of(head, params);
  /** @type {number[]} */ const report = [];
  for (let i = 0; i < params.recordsPerClient; i++) {
    const cell = head.cellOf(records[uniformBelow(records.length, randomness)]);
    report.push(randomizedCell(cell, head, probabilities, randomness));
  }
  return report;
}

/** @param {number} cell @param {HeadList} head
 * @param {ReportProbabilities} probabilities @param {Randomness} randomness */
export function randomizedCell(cell, head, probabilities, randomness) {
  const query = head.queryOfCell(cell);
  const [saidQuery, saidUrl] = randomize(query, cell - head.firstCell(query), probabilities, randomness);
  return head.firstCell(saidQuery) + saidUrl;
}

/**
 * One cell ⟨query, url⟩ by position, truth in, report out. [BLJ] Fig. 6, lines 7-21.
 *
 * One word decides between truth and the two lies. Only a liar draws a second: its high half chooses the other query,
 * its low half the URL, each exactly uniform.
 * @param {number} query @param {number} url @param {ReportProbabilities} probabilities @param {Randomness} randomness
 * @returns {[number, number]}
 */
export function randomize(query, url, probabilities, randomness) {
  const decision = word(randomness);
  if (decision < probabilities.keepRecordBelow[query]) return [query, url];
  const lie = halves(randomness);
  if (decision < probabilities.keepQueryBelow) {
    const otherUrl = uniformFromHalf(lie.low, probabilities.nUrls[query] - 1, randomness);
    return [query, otherUrl + Number(otherUrl >= url)];
  }
  const others = uniformFromHalf(lie.high, probabilities.nQueries - 1, randomness);
  const other = others + Number(others >= query);
  return [other, uniformFromHalf(lie.low, probabilities.nUrls[other], randomness)];
}
