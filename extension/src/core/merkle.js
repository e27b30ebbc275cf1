/** The Merkle tree of a transparency log: the hashes of RFC 6962, in tiles of 256. The twin of wire/merkle.py. */

import { concat, sha256 } from "./bytes.js";

export const HASH_BYTES = 32;
/** leaves of a full tile */
export const TILE = 256;
const TILE_LEVEL = 8;
const [LEAF, NODE] = [Uint8Array.of(0), Uint8Array.of(1)];

/** @param {Uint8Array} entry */
export function leafHash(entry) {
  return sha256(concat(LEAF, entry));
}

/** The root of a tree with these full tiles' roots first, and then these leaves' hashes.
 * @param {readonly Uint8Array[]} leaves @param {readonly Uint8Array[]} [tiles] */
export async function rootOf(leaves, tiles = []) {
  /** @type {Array<{level: number, hash: Uint8Array}>} */
  const stack = [];
  const nodes = [...tiles.map((hash) => ({ level: TILE_LEVEL, hash })), ...leaves.map((hash) => ({ level: 0, hash }))];
  for (const node of nodes) {
    let last = node;
    while (stack.at(-1)?.level === last.level) {
      const left = /** @type {typeof node} */ (stack.pop());
      last = { level: last.level + 1, hash: await parent(left.hash, last.hash) };
    }
    stack.push(last);
  }
  let root = stack.pop()?.hash ?? (await sha256(new Uint8Array()));
  while (stack.length > 0) root = await parent(/** @type {typeof nodes[0]} */ (stack.pop()).hash, root);
  return root;
}

/** The hashes that a tile is made of; a rest of fewer bytes is left out, and then roots differ.
 * @param {Uint8Array} tile */
export function hashesOf(tile) {
  return Array.from({ length: Math.floor(tile.length / HASH_BYTES) }, (_, i) =>
    tile.slice(i * HASH_BYTES, (i + 1) * HASH_BYTES),
  );
}

/** @param {Uint8Array} left @param {Uint8Array} right */
function parent(left, right) {
  return sha256(concat(NODE, left, right));
}
