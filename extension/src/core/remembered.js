/**
 * A function of two objects that never change, computed once for each pair of them: thresholds are exact fractions and
 * take a millisecond, a draw takes microseconds.
 * @template {object} A, B, R
 * @param {(one: A, other: B) => R} make
 * @returns {(one: A, other: B) => R}
 */
export function remembered(make) {
  /** @type {WeakMap<A, WeakMap<object, {value: R}>>} */ const known = new WeakMap();
  return (one, other) => {
    const ofOne = known.get(one) ?? new WeakMap();
    known.set(one, ofOne);
    const key = /** @type {object} */ (other);
    const entry = ofOne.get(key) ?? { value: make(one, other) };
    ofOne.set(key, entry);
    return entry.value;
  };
}
