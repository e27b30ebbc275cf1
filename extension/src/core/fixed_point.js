/**
 * e^x in integers, bounded from both sides: the twin of mechanisms/fixed_point.py, digit for digit.
 *
 * Math.exp differs between platforms in the last place, so a threshold made from it would not be the same on a phone
 * and on the server. Here every step is an integer operation rounded in a stated direction.
 */

import { Fraction } from "./fraction.js";

export const ONE = 1n << 128n;

/** Integers [low, high] with low ≤ 2^128 · e^x ≤ high, for x ≥ 0. @param {Fraction} x @returns {[bigint, bigint]} */
export function expBounds(x) {
  if (x.numerator < 0n) throw new RangeError("expBounds wants x ≥ 0");
  let [lowTerm, highTerm, low, high, n] = [ONE, ONE, ONE, ONE, 0n];
  while (highTerm > 1n || n * x.denominator < 2n * x.numerator) {
    n += 1n;
    const divisor = x.denominator * n;
    lowTerm = (lowTerm * x.numerator) / divisor;
    highTerm = (highTerm * x.numerator + divisor - 1n) / divisor;
    low += lowTerm;
    high += highTerm;
  }
  return [low, high + 1n];
}

/** Rational bounds of e^x for any x. @param {Fraction} x @returns {[Fraction, Fraction]} */
export function expFractionBounds(x) {
  const negative = x.numerator < 0n;
  const [low, high] = expBounds(negative ? new Fraction(-x.numerator, x.denominator) : x);
  return negative
    ? [new Fraction(ONE, high), new Fraction(ONE, low)]
    : [new Fraction(low, ONE), new Fraction(high, ONE)];
}
