/**
 * Where randomness comes from, and exact draws from 64-bit words: the twin of randomness.py.
 *
 * A source has one method, take(n): the next n bytes. The shipped entry points (index.js) give none away and take none:
 * they always use systemRandomness. Another source exists in extension/tests alone, for the vectors.
 */

/** @typedef {{take: (nBytes: number) => Uint8Array}} Randomness */

export const HALF = 2 ** 32;
const LARGEST_REQUEST = 65536;

/** The platform's cryptographic generator. @type {Readonly<Randomness>} */
export const systemRandomness = Object.freeze({
  take(nBytes) {
    const content = new Uint8Array(nBytes);
    for (let start = 0; start < nBytes; start += LARGEST_REQUEST) {
      crypto.getRandomValues(content.subarray(start, start + LARGEST_REQUEST));
    }
    return content;
  },
});

/** A uniform integer in [0, 2^64), little-endian from eight bytes, as its two 32-bit halves.
 * @param {Randomness} randomness @returns {{low: number, high: number}} */
export function halves(randomness) {
  const content = randomness.take(8);
  const view = new DataView(content.buffer, content.byteOffset, 8);
  return { low: view.getUint32(0, true), high: view.getUint32(4, true) };
}

/** The same as one BigInt. @param {Randomness} randomness */
export function word(randomness) {
  const { low, high } = halves(randomness);
  return (BigInt(high) << 32n) | BigInt(low);
}

/** How many of the 2^32 values of a half word map evenly onto [0, n): the rest must be drawn again.
 * @param {number} n */
export function acceptBelow(n) {
  return HALF - (HALF % n);
}

/** An exactly uniform integer in [0, n) from a 32-bit half word; a rejected half is replaced by a fresh word's low
 * half.
 * @param {number} half @param {number} n @param {Randomness} randomness */
export function uniformFromHalf(half, n, randomness) {
  let accepted = half;
  while (accepted >= acceptBelow(n)) accepted = halves(randomness).low;
  return accepted % n;
}

/** An exactly uniform integer in [0, n), 1 ≤ n < 2^32. Draws nothing when there is no choice.
 * @param {number} n @param {Randomness} randomness */
export function uniformBelow(n, randomness) {
  return n === 1 ? 0 : uniformFromHalf(halves(randomness).low, n, randomness);
}
