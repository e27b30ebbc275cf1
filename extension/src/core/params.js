/** The public parameters of a report, validated once: what params.py has of them. */

import { InvalidParameter } from "./errors.js";
import { Fraction, whole } from "./fraction.js";

/** Beyond it nothing is protected, and a message must not keep a device busy computing e^ε. */
export const LARGEST_EPSILON = 64;

/** @typedef {{epsilon: Fraction, delta: Fraction}} Share */

export class ReportParams {
  /** @param {{epsilon: number, delta: number, queryBudgetFraction?: number, recordsPerClient?: number}} values */
  constructor({ epsilon, delta, queryBudgetFraction = 0.85, recordsPerClient = 1 }) {
    if (!(Number.isFinite(epsilon) && epsilon > 0)) {
      throw new InvalidParameter("epsilon", "expected a finite number above 0");
    }
    if (!(delta > 0 && delta < 1)) throw new InvalidParameter("delta", "expected a number in (0, 1)");
    if (epsilon > LARGEST_EPSILON) {
      throw new InvalidParameter("epsilon", `expected at most ${LARGEST_EPSILON} for one release`);
    }
    if (!(Number.isSafeInteger(recordsPerClient) && recordsPerClient >= 1)) {
      throw new InvalidParameter("records_per_client", "expected a whole number of at least 1");
    }
    if (!(queryBudgetFraction > 0 && queryBudgetFraction <= 1)) {
      throw new InvalidParameter("query_budget_fraction", "expected a number in (0, 1), or 1 for a log without URLs");
    }
    this.epsilon = epsilon;
    this.delta = delta;
    /** f_C */
    this.queryBudgetFraction = queryBudgetFraction;
    /** m_C: cells per report; each costs 1/m_C of the client's budget */
    this.recordsPerClient = recordsPerClient;
    Object.freeze(this);
  }

  /** ε' = ε/m_C and δ' = δ/m_C, exactly. @returns {Share} */
  get perRecord() {
    const m = whole(this.recordsPerClient);
    return { epsilon: Fraction.ofNumber(this.epsilon).over(m), delta: Fraction.ofNumber(this.delta).over(m) };
  }

  /** ε_Q and δ_Q of one reported cell, exactly. @returns {Share} */
  get queryShare() {
    const { epsilon, delta } = this.perRecord;
    const fraction = Fraction.ofNumber(this.queryBudgetFraction);
    return { epsilon: fraction.times(epsilon), delta: fraction.times(delta) };
  }

  /** ε_U and δ_U of one reported cell, exactly. @returns {Share} */
  get urlShare() {
    const [all, query] = [this.perRecord, this.queryShare];
    return { epsilon: all.epsilon.minus(query.epsilon), delta: all.delta.minus(query.delta) };
  }
}
