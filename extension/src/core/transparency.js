/**
 * What a device asks of the public log: that everyone can see the manifest that it was shown. The twin of
 * wire/transparency.py, whose head has the formats, and of device/transparency.py.
 */

import { concat, equalBytes, fromBase64url, fromHex, sha256, textOf, toHex, utf8 } from "./bytes.js";
import { canonicalJson } from "./canonical.js";
import { MessageError } from "./errors.js";
import { HASH_BYTES, hashesOf, leafHash, rootOf, TILE } from "./merkle.js";
import { refuse } from "./policy.js";
import { isSigned } from "./signing.js";

/** @typedef {import("./manifest.js").Manifest} Manifest */
/** @typedef {import("./signing.js").PinnedKeys} PinnedKeys */
/** @typedef {{name: string, keyHash: Uint8Array, signature: Uint8Array}} NoteLine */
/** @typedef {{origin: string, size: number, root: Uint8Array, text: string, lines: NoteLine[]}} Checkpoint */
/** @typedef {{origin: string, size: number, root: string, tiles: string[]}} LastLog the newest checkpoint that was
 * checked, and the roots of its full tiles */
/** @typedef {(path: string, most: number) => Promise<Uint8Array>} ReadLog the bytes of a path below /v1/log */

const LARGEST_CHECKPOINT = 16 * 1024;
const MOST_LINES = 32;
/** How far back a manifest is looked for: it is valid for a month at most. */
const EARLIER_TILES = 16;
/** Of a log that a device reads: no service can keep it busy for ever. */
const MOST_ENTRIES = 1000 * TILE;
const SIGNED = "searchblend checkpoint v1\n";
const LOG_TYPE = concat(Uint8Array.of(0xff), utf8("searchblend/es256"));
const NOTE =
  /^([!-*,-~]{1,100})\n(0|[1-9][0-9]{0,14})\n([A-Za-z0-9+/]{43}=)\n\n((?:— [!-*,-~]{1,100} [A-Za-z0-9+/=]+\n)+)$/u;
/** @type {Readonly<LastLog>} */
const NO_LOG = Object.freeze({ origin: "", size: 0, root: "", tiles: [] });

/** What to remember of the log from now on; PolicyRefused if it is forged, forked or without the manifest.
 * @param {Manifest} manifest @param {LastLog | null} last @param {ReadLog} read @param {PinnedKeys} pinned
 * @returns {Promise<LastLog>} */
export async function checkLog(manifest, last, read, pinned) {
  const checkpoint = await believedCheckpoint(await read("checkpoint", LARGEST_CHECKPOINT), pinned);
  const view = await View.open(checkpoint, last ?? NO_LOG, read);
  if (!(await view.has(await leafHash(await entryOf(manifest))))) refuse("not-logged");
  const known = manifest.pack?.log;
  if (known) await view.checkKnown(known.size, fromHex(known.root));
  return view.remembered();
}

/** The entry of a manifest. @param {Manifest} manifest */
export async function entryOf(manifest) {
  const { task, sequence } = manifest;
  return canonicalJson({ kind: "manifest", task, sequence, sha256: toHex(await sha256(canonicalJson(manifest))) });
}

/** The note, strictly; nothing of it is to be believed before a signature was checked.
 * @param {Uint8Array} content @returns {Checkpoint} */
export function decodeCheckpoint(content) {
  const match = content.length <= LARGEST_CHECKPOINT ? NOTE.exec(textOf(content)) : null;
  const lines = match ? match[4].split("\n").slice(0, -1) : [];
  if (match === null || lines.length > MOST_LINES) {
    throw new MessageError("checkpoint: expected a signed note: origin, size, root, a blank line, signatures");
  }
  const [, origin, size, root] = match;
  return {
    origin,
    size: Number(size),
    root: fromBase64(root),
    text: `${origin}\n${size}\n${root}\n`,
    lines: lines.map((line) => {
      const [, name, encoded] = line.split(" ");
      const bytes = fromBase64(encoded);
      return { name, keyHash: bytes.slice(0, 4), signature: bytes.slice(4) };
    }),
  };
}

/** The checkpoint, if one of the pinned keys has signed it; else MessageError.
 * @param {Uint8Array} note @param {PinnedKeys} pinned */
export async function verifyCheckpoint(note, pinned) {
  const checkpoint = decodeCheckpoint(note);
  for (const [id, point] of Object.entries(pinned)) {
    const named = await sha256(concat(utf8(`${checkpoint.origin}\n`), LOG_TYPE, point));
    for (const { name, keyHash, signature } of checkpoint.lines) {
      const isOwn = name === checkpoint.origin && equalBytes(keyHash, named.slice(0, 4));
      if (isOwn && (await isSigned(utf8(SIGNED + checkpoint.text), id, signature, pinned))) return checkpoint;
    }
  }
  throw new MessageError("checkpoint: no valid signature of a pinned key");
}

/** @param {Uint8Array} note @param {PinnedKeys} pinned */
async function believedCheckpoint(note, pinned) {
  try {
    return await verifyCheckpoint(note, pinned);
  } catch (error) {
    if (error instanceof MessageError) refuse("log-forged", error.message);
    throw error;
  }
}

/** The log as this checkpoint has it, from the last full tile that is known on. */
class View {
  /** @type {Uint8Array[]} */ #tiles;
  /** @type {Uint8Array[]} */ #leaves = [];
  #checkpoint;
  #read;

  /** @param {Checkpoint} checkpoint @param {LastLog} last @param {ReadLog} read */
  constructor(checkpoint, last, read) {
    this.#checkpoint = checkpoint;
    this.#read = read;
    this.#tiles = last.tiles.map(fromHex);
  }

  /** @param {Checkpoint} checkpoint @param {LastLog} last @param {ReadLog} read */
  static async open(checkpoint, last, read) {
    if (last.origin !== "" && last.origin !== checkpoint.origin) refuse("log-forked", "another log");
    if (checkpoint.size > MOST_ENTRIES) refuse("log-forked", "longer than any log");
    if (checkpoint.size < last.size) refuse("log-forked", "shorter than before");
    const view = new View(checkpoint, last, read);
    for (let number = view.#tiles.length; number * TILE < checkpoint.size; number += 1) {
      view.#leaves.push(...(await view.#tile(number)));
    }
    await view.checkKnown(last.size, fromHex(last.root));
    await view.checkKnown(checkpoint.size, checkpoint.root);
    return view;
  }

  /** Full, or as far as the checkpoint goes. @param {number} number */
  async #tile(number) {
    const width = Math.min(TILE, this.#checkpoint.size - number * TILE);
    const suffix = width === TILE ? "" : `.p/${width}`;
    const name = `tile/0/${String(number).padStart(3, "0")}${suffix}`;
    const hashes = hashesOf(await this.#read(name, width * HASH_BYTES));
    const known = this.#tiles[number];
    if (hashes.length !== width || (known && !equalBytes(await rootOf(hashes), known))) {
      refuse("log-forked", "a tile that is not of this log");
    }
    return hashes;
  }

  /** @param {Uint8Array} leaf */
  async has(leaf) {
    if (contains(this.#leaves, leaf)) return true;
    const known = this.#tiles.length;
    for (let number = known - 1; number >= Math.max(0, known - EARLIER_TILES); number -= 1) {
      if (contains(await this.#tile(number), leaf)) return true;
    }
    return false;
  }

  /** Whether the log had this root when it was so long. @param {number} size @param {Uint8Array} root */
  async checkKnown(size, root) {
    if (size === 0) return;
    if (size > this.#checkpoint.size) refuse("log-forked", "longer elsewhere");
    const [number, rest, known] = [Math.floor(size / TILE), size % TILE, this.#tiles.length];
    const leaves =
      number < known && rest > 0
        ? (await this.#tile(number)).slice(0, rest)
        : this.#leaves.slice(0, Math.max(0, size - known * TILE));
    const tiles = this.#tiles.slice(0, Math.min(number, known));
    if (!equalBytes(await rootOf(leaves, tiles), root)) refuse("log-forked", "another history");
  }

  /** @returns {Promise<LastLog>} */
  async remembered() {
    const { origin, size, root } = this.#checkpoint;
    const tiles = [...this.#tiles];
    for (let first = 0; first + TILE <= this.#leaves.length; first += TILE) {
      tiles.push(await rootOf(this.#leaves.slice(first, first + TILE)));
    }
    return { origin, size, root: toHex(root), tiles: tiles.map(toHex) };
  }
}

/** @param {Uint8Array[]} leaves @param {Uint8Array} leaf */
function contains(leaves, leaf) {
  return leaves.some((each) => equalBytes(each, leaf));
}

/** @param {string} text */
function fromBase64(text) {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text))
    throw new MessageError("checkpoint: expected base64");
  return fromBase64url(text.replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_"));
}
