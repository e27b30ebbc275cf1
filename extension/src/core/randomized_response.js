/** k-ary randomized response with a δ term: the twin of mechanisms/randomized_response.py. */

import { expFractionBounds } from "./fixed_point.js";
import { Fraction, whole } from "./fraction.js";

/**
 * A rational lower bound (by less than 2^-110) of t = (e^ε + (δ/2)(k−1)) / (e^ε + k − 1), [BLJ] Fig. 6, lines 4-6.
 * One value cannot be lied about: t = 1. Rounding down costs no privacy.
 * @param {{epsilon: Fraction, delta: Fraction}} share @param {number} nValues k
 */
export function keepProbability({ epsilon, delta }, nValues) {
  if (nValues === 1) return whole(1);
  const [growth] = expFractionBounds(epsilon);
  const others = whole(nValues - 1);
  const bonus = delta.times(others).over(whole(2));
  return growth.plus(bonus).over(growth.plus(others));
}
