/** Exact fractions of BigInts, reduced, with a positive denominator: what the thresholds are computed with. */

import { InvalidParameter } from "./errors.js";

/** @param {bigint} a @param {bigint} b */
function gcd(a, b) {
  let [x, y] = [a < 0n ? -a : a, b];
  while (y) [x, y] = [y, x % y];
  return x;
}

export class Fraction {
  /** @param {bigint} numerator @param {bigint} [denominator] above 0 */
  constructor(numerator, denominator = 1n) {
    const shared = gcd(numerator, denominator);
    /** @readonly */ this.numerator = numerator / shared;
    /** @readonly */ this.denominator = denominator / shared;
  }

  /** The exact value of a double. @param {number} value */
  static ofNumber(value) {
    if (!Number.isFinite(value)) throw new InvalidParameter("number", "expected a finite number");
    let [scaled, exponent] = [value, 0n];
    while (!Number.isInteger(scaled)) [scaled, exponent] = [scaled * 2, exponent + 1n];
    return new Fraction(BigInt(scaled), 1n << exponent);
  }

  /** @param {Fraction} other */
  plus(other) {
    const { numerator: a, denominator: b } = this;
    return new Fraction(a * other.denominator + other.numerator * b, b * other.denominator);
  }

  /** @param {Fraction} other */
  minus(other) {
    return this.plus(new Fraction(-other.numerator, other.denominator));
  }

  /** @param {Fraction} other */
  times(other) {
    return new Fraction(this.numerator * other.numerator, this.denominator * other.denominator);
  }

  /** By a fraction above 0. @param {Fraction} other */
  over(other) {
    return new Fraction(this.numerator * other.denominator, this.denominator * other.numerator);
  }

  /** @param {Fraction} other */
  below(other) {
    return this.numerator * other.denominator < other.numerator * this.denominator;
  }

  /** The whole part of a fraction that is not negative. */
  floor() {
    return this.numerator / this.denominator;
  }
}

/** @param {number | bigint} value */
export function whole(value) {
  return new Fraction(BigInt(value));
}
