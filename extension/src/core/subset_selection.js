/**
 * Subset selection, with a sink and without: the twin of mechanisms/subset_selection.py. Proof:
 * proofs/subset_selection.md.
 *
 * Over m items and "none of them" (⋆, null here), a report is a set of d items or, where there is one, the sink: [].
 * All sets of a kind are equally likely and every report's probability takes only two values, x and e^ε·x.
 */

import { InvalidParameter } from "./errors.js";
import { expFractionBounds } from "./fixed_point.js";
import { Fraction, whole } from "./fraction.js";
import { uniformBelow, word } from "./randomness.js";

/** @typedef {import("./randomness.js").Randomness} Randomness */

export const WORDS = 1n << 64n;

/**
 * The mechanism with a sink, as integer thresholds on one 64-bit word U.
 *
 * Holder of an item: U < includeBelow a set with it; else U < sinkBelow the sink; else a set without it. Holder of ⋆:
 * U < includeBelow the sink, else any set.
 */
export class SubsetSelection {
  /** @param {number} nItems @param {number} subsetSize @param {bigint} includeBelow @param {bigint} sinkBelow */
  constructor(nItems, subsetSize, includeBelow, sinkBelow) {
    this.nItems = nItems;
    this.subsetSize = subsetSize;
    this.includeBelow = includeBelow;
    this.sinkBelow = sinkBelow;
    Object.freeze(this);
  }

  /** Thresholds rounded so that no likelihood ratio exceeds e^ε. @param {Fraction} epsilon @param {number} nItems
   * @param {number} subsetSize */
  static of(epsilon, nItems, subsetSize) {
    checkSize(nItems, subsetSize);
    const [growth] = expFractionBounds(epsilon);
    const weight = growth.times(whole(subsetSize));
    const include =
      weight
        .times(whole(WORDS))
        .over(weight.plus(whole(nItems)))
        .floor() - 1n;
    const scaled = include * growth.denominator;
    let sink = (scaled + growth.numerator - 1n) / growth.numerator;
    if (subsetSize === nItems) sink = WORDS - include; // every set holds every item: nothing is left for one without it
    if (include <= sink) throw new InvalidParameter("epsilon", "too small for thresholds of 64 bits");
    return new SubsetSelection(nItems, subsetSize, include, include + sink);
  }

  /** The privatized report of the holder of an item, or of ⋆ (null), items ascending.
   * @param {number | null} item @param {Randomness} randomness @returns {number[]} */
  report(item, randomness) {
    const [m, d] = [this.nItems, this.subsetSize];
    const decision = word(randomness);
    if (item === null) return decision < this.includeBelow ? [] : uniformSubset(m, d, randomness);
    if (decision < this.includeBelow) {
      return ascending([item, ...without(item, uniformSubset(m - 1, d - 1, randomness))]);
    }
    if (decision < this.sinkBelow) return [];
    return without(item, uniformSubset(m - 1, d, randomness));
  }
}

/**
 * Without a sink: ⋆ is one more item, number m. U < includeBelow sends a set with the held item, else one without it;
 * rounded down.
 */
export class PlainSubsetSelection {
  /** @param {number} nItems m, without ⋆ @param {number} subsetSize @param {bigint} includeBelow */
  constructor(nItems, subsetSize, includeBelow) {
    this.nItems = nItems;
    this.subsetSize = subsetSize;
    this.includeBelow = includeBelow;
    Object.freeze(this);
  }

  /** @param {Fraction} epsilon @param {number} nItems @param {number} subsetSize */
  static of(epsilon, nItems, subsetSize) {
    checkSize(nItems, subsetSize);
    const weight = expFractionBounds(epsilon)[0].times(whole(subsetSize));
    const include = weight
      .times(whole(WORDS))
      .over(weight.plus(whole(nItems + 1 - subsetSize)))
      .floor();
    if (include * BigInt(nItems + 1) < BigInt(subsetSize) * WORDS) {
      throw new InvalidParameter("epsilon", "too small for thresholds of 64 bits");
    }
    return new PlainSubsetSelection(nItems, subsetSize, include);
  }

  /** d items ascending, ⋆ is number m.
   * @param {number | null} item @param {Randomness} randomness @returns {number[]} */
  report(item, randomness) {
    const held = item ?? this.nItems;
    const kept = word(randomness) < this.includeBelow;
    const others = without(held, uniformSubset(this.nItems, this.subsetSize - Number(kept), randomness));
    return kept ? ascending([held, ...others]) : others;
  }
}

/** An exactly uniform set of `size` of the numbers 0..n−1, ascending (Floyd's algorithm).
 * @param {number} n @param {number} size @param {Randomness} randomness */
export function uniformSubset(n, size, randomness) {
  /** @type {Set<number>} */ const chosen = new Set();
  for (let last = n - size; last < n; last++) {
    const candidate = uniformBelow(last + 1, randomness);
    chosen.add(chosen.has(candidate) ? last : candidate);
  }
  return ascending([...chosen]);
}

/** The numbers with a gap at `item`. @param {number} item @param {number[]} numbers */
function without(item, numbers) {
  return numbers.map((number) => number + Number(number >= item));
}

/** @param {number[]} numbers */
function ascending(numbers) {
  return numbers.sort((one, other) => one - other);
}

/** @param {number} nItems @param {number} subsetSize */
function checkSize(nItems, subsetSize) {
  if (nItems < 1 || !(subsetSize >= 1 && subsetSize <= nItems)) {
    throw new InvalidParameter("subset_size", `expected 1 to ${nItems} items`);
  }
}
