/**
 * The local-search pack: the answers of one published round in one file. The twin of search/pack.py;
 * docs/reference/protocol.md has every byte. One content has one encoding: whatever is not it is refused.
 */

import { equalBytes, textOf, toHex, utf8 } from "./bytes.js";
import { asMessageError, InvalidParameter, MessageError } from "./errors.js";
import { BLOCK, compareBytes, Reader, Writer } from "./front_coding.js";
import { normalize, normalizeUrl } from "./normalize.js";

/** @typedef {{url: string, lower: number, probability: number}} PackUrl in units of 2^-fractionBits */
/** @typedef {{query: string, lower: number, probability: number, urls: PackUrl[]}} PackEntry URLs best first */
/** @typedef {{method: string, epsilon: number, delta: number, task: string, round: number, fractionBits: number}}
 * PackInfo */
/** @typedef {[number, number, number]} RawPair */
/** @typedef {{text: Uint8Array, lower: number, probability: number, pairs: RawPair[]}} RawEntry */

export const LARGEST = 64 * 2 ** 20;
export const METHODS = Object.freeze(["paper", "best"]);
const MAGIC = utf8("SBPK");
const PACK_VERSION = 1;
const HEADER_BYTES = 64;
const NO_TASK = "0".repeat(32);
const [FEWEST_BITS, MOST_BITS] = [16, 30];

/** What a pack says about itself, if a pack can say it. @param {PackInfo} info @returns {Readonly<PackInfo>} */
export function checkedInfo(info) {
  const { method, epsilon, delta, task, round, fractionBits } = info;
  if (!METHODS.includes(method)) throw new InvalidParameter("method", `must be one of ${METHODS.join(", ")}`);
  if (!(Number.isFinite(epsilon) && epsilon > 0)) {
    throw new InvalidParameter("epsilon", "must be a finite number above 0");
  }
  if (!(delta >= 0 && delta < 1) || Object.is(delta, -0)) {
    throw new InvalidParameter("delta", "must be from 0 to below 1");
  }
  if ((round === 0) !== (task === NO_TASK)) {
    throw new InvalidParameter("round", "must be from 1 on, and 0 without a task");
  }
  if (!(fractionBits >= FEWEST_BITS && fractionBits <= MOST_BITS)) {
    throw new InvalidParameter("fraction_bits", `must be from ${FEWEST_BITS} to ${MOST_BITS}`);
  }
  return Object.freeze({ ...info });
}

/** The order of a query's URLs: the higher lower bound, then the higher probability, then the bytes.
 * @param {PackUrl} one @param {PackUrl} other */
export function bestFirst(one, other) {
  return other.lower - one.lower || other.probability - one.probability || compareBytes(utf8(one.url), utf8(other.url));
}

/** A pack in which everything was read and checked: sizes, order, numbers, normal forms, canonical form.
 * @param {Uint8Array} content */
export function decodePack(content) {
  const pack = new Pack(content);
  pack.check();
  return pack;
}

/** A pack over bytes. Making one reads the header alone; `check` reads it all. */
export class Pack {
  #view;
  /** @type {Map<number, string[]>} */ #urlBlocks = new Map();

  /** @param {Uint8Array} content */
  constructor(content) {
    if (content.length > LARGEST) throw new MessageError(`pack: larger than ${LARGEST / 2 ** 20} MiB`);
    if (content.length < HEADER_BYTES) {
      throw new MessageError(`pack: truncated: ${content.length} bytes, and the header alone has ${HEADER_BYTES}`);
    }
    const view = new DataView(content.buffer, content.byteOffset, content.length);
    if (!equalBytes(content.subarray(0, 4), MAGIC) || content[7] !== 0) {
      throw new MessageError("pack: expected a searchblend pack");
    }
    if (content[4] !== PACK_VERSION) throw new MessageError(`pack: version ${content[4]}, expected ${PACK_VERSION}`);
    if (content[6] !== 1 && content[6] !== 2) throw new MessageError("pack: method: expected 1 or 2");
    this.#view = view;
    this.content = content;
    this.info = asMessageError("pack: ", () =>
      checkedInfo({
        method: METHODS[content[6] - 1],
        epsilon: view.getFloat64(28),
        delta: view.getFloat64(36),
        task: toHex(content.subarray(8, 24)),
        round: view.getUint32(24),
        fractionBits: content[5],
      }),
    );
    this.nQueries = view.getUint32(44);
    this.nPairs = view.getUint32(48);
    this.nUrls = view.getUint32(52);
    this.nBlocks = Math.ceil(this.nQueries / BLOCK);
    this.nUrlBlocks = Math.ceil(this.nUrls / BLOCK);
    this.urlTable = HEADER_BYTES + 4 * this.nBlocks;
    this.queriesAt = this.urlTable + 4 * this.nUrlBlocks;
    this.urlsAt = this.queriesAt + view.getUint32(56);
    const expected = this.urlsAt + view.getUint32(60);
    if (content.length !== expected) {
      const what = content.length < expected ? "truncated" : "trailing bytes";
      throw new MessageError(`pack: ${what}: ${content.length} bytes, expected ${expected}`);
    }
  }

  /** All entries as they are written, URLs by number, in the order of the bytes of their queries.
   * @returns {Generator<RawEntry>} */
  *raw() {
    for (let block = 0; block < this.nBlocks; block++) yield* this.#readBlock(block, this.#reader(block));
  }

  /** The entries of one block as they are written. @param {number} number @returns {RawEntry[]} */
  block(number) {
    return Array.from(this.#readBlock(number, this.#reader(number)));
  }

  /** All entries, in the same order. @returns {PackEntry[]} */
  entries() {
    const urls = this.#allUrls().map(decoded);
    const answer = (/** @type {[number, number, number]} */ [place, lower, probability]) => {
      if (place >= urls.length) throw new MessageError("pack: a URL that is not in the table");
      return { url: urls[place], lower, probability };
    };
    return Array.from(this.raw(), ({ text, lower, probability, pairs }) => ({
      query: decoded(text),
      lower,
      probability,
      urls: pairs.map(answer),
    }));
  }

  /** One URL of the table. @param {number} number */
  url(number) {
    if (!(number >= 0 && number < this.nUrls)) throw new MessageError("pack: a URL that is not in the table");
    const block = Math.floor(number / BLOCK);
    let urls = this.#urlBlocks.get(block);
    if (!urls) {
      urls = this.#urlReader(block).texts(this.#inBlock(block, this.nUrls)).map(decoded);
      this.#urlBlocks.set(block, urls);
    }
    return urls[number % BLOCK];
  }

  /** Read everything; refuse what is not the canonical pack of what it says. */
  check() {
    const entries = this.entries();
    this.#checkEnds();
    const texts = entries.map(({ query }) => utf8(query));
    if (texts.some((text, i) => i > 0 && compareBytes(texts[i - 1], text) >= 0)) {
      throw new MessageError("pack: expected the queries in the order of their bytes");
    }
    entries.forEach(checkEntry);
    if (entries.length && this.nPairs > 0 !== entries.every(({ urls }) => urls.length > 0)) {
      throw new MessageError("pack: expected URLs for every query or for none");
    }
    if (!equalBytes(written(this.info, entries), this.content)) {
      throw new MessageError("pack: expected the canonical form: exact counts, and a URL table with the used URLs");
    }
  }

  /** Every block ends where the next begins. */
  #checkEnds() {
    const ends = (/** @type {Reader} */ reader) => {
      if (!reader.atEnd) throw reader.refuse("expected the end of the block");
    };
    for (let block = 0; block < this.nBlocks; block++) {
      const reader = this.#reader(block);
      Array.from(this.#readBlock(block, reader));
      ends(reader);
    }
    for (let block = 0; block < this.nUrlBlocks; block++) {
      const reader = this.#urlReader(block);
      reader.texts(this.#inBlock(block, this.nUrls));
      ends(reader);
    }
  }

  /** @param {number} block @param {Reader} reader @returns {Generator<RawEntry>} */
  *#readBlock(block, reader) {
    let text = new Uint8Array(0);
    for (let left = this.#inBlock(block, this.nQueries); left > 0; left--) {
      text = reader.text(text);
      const [lower, probability] = readEstimates(reader, this.info.fractionBits);
      const n = reader.number();
      if (n > this.nUrls) throw reader.refuse("expected no more URLs than there are");
      /** @type {Array<[number, number, number]>} */ const pairs = [];
      for (let i = 0; i < n; i++) pairs.push([reader.number(), ...readEstimates(reader, this.info.fractionBits)]);
      yield { text, lower, probability, pairs };
    }
  }

  #allUrls() {
    /** @type {Uint8Array[]} */ const urls = [];
    for (let block = 0; block < this.nUrlBlocks; block++) {
      urls.push(...this.#urlReader(block).texts(this.#inBlock(block, this.nUrls)));
    }
    if (urls.some((text, i) => i > 0 && compareBytes(urls[i - 1], text) >= 0)) {
      throw new MessageError("pack: expected the URLs in the order of their bytes");
    }
    return urls;
  }

  /** @param {number} block @param {number} all */
  #inBlock(block, all) {
    return Math.min(BLOCK, all - block * BLOCK);
  }

  /** @param {number} block */
  #reader(block) {
    const [start, end] = this.#blockEnds(HEADER_BYTES, block, this.nBlocks, this.queriesAt, this.urlsAt);
    return new Reader(this.content, start, end, "pack: queries");
  }

  /** @param {number} block */
  #urlReader(block) {
    const [start, end] = this.#blockEnds(this.urlTable, block, this.nUrlBlocks, this.urlsAt, this.content.length);
    return new Reader(this.content, start, end, "pack: URLs");
  }

  /** @param {number} table @param {number} block @param {number} nBlocks @param {number} first @param {number} last */
  #blockEnds(table, block, nBlocks, first, last) {
    const start = first + this.#view.getUint32(table + 4 * block);
    const end = block + 1 < nBlocks ? first + this.#view.getUint32(table + 4 * (block + 1)) : last;
    if (!(start < end && end <= last) || (block === 0 && start !== first)) {
      throw new MessageError("pack: block offsets: expected them to ascend from 0 within their part");
    }
    return [start, end];
  }
}

/** The one encoding of some entries, whatever order they come in; entries that no pack can hold are refused.
 * @param {PackInfo} info @param {readonly PackEntry[]} entries */
export function encodePack(info, entries) {
  const content = written(info, entries);
  decodePack(content);
  return content;
}

/** @param {PackInfo} info @param {readonly PackEntry[]} entries */
function written(info, entries) {
  const ordered = entries
    .map((entry) => ({ entry, text: utf8(entry.query) }))
    .sort((one, other) => compareBytes(one.text, other.text));
  const used = new Set(entries.flatMap(({ urls }) => urls.map(({ url }) => url)));
  const table = Array.from(used, (url) => ({ url, text: utf8(url) })).sort((one, other) =>
    compareBytes(one.text, other.text),
  );
  const numberOf = new Map(table.map(({ url }, place) => [url, place]));
  const queries = new Writer();
  const starts = inBlocks(queries, ordered, ({ entry }) => {
    writeEstimates(queries, entry);
    queries.number(entry.urls.length);
    for (const url of [...entry.urls].sort(bestFirst)) {
      queries.number(/** @type {number} */ (numberOf.get(url.url)));
      writeEstimates(queries, url);
    }
  });
  const urls = new Writer();
  starts.push(...inBlocks(urls, table));
  const nPairs = entries.reduce((total, entry) => total + entry.urls.length, 0);
  return assembled(info, [ordered.length, nPairs, table.length], starts, queries.content, urls.content);
}

/** Texts in blocks, each followed by what `more` writes; gives where each block begins.
 * @template {{text: Uint8Array}} T @param {Writer} out @param {T[]} items @param {(item: T) => void} [more] */
function inBlocks(out, items, more = () => {}) {
  /** @type {number[]} */ const starts = [];
  let before = new Uint8Array(0);
  items.forEach((item, place) => {
    if (place % BLOCK === 0) {
      starts.push(out.size);
      before = new Uint8Array(0);
    }
    out.text(item.text, before);
    before = /** @type {Uint8Array<ArrayBuffer>} */ (item.text);
    more(item);
  });
  return starts;
}

/** @param {PackInfo} info @param {[number, number, number]} counts @param {number[]} starts @param {Uint8Array} queries
 * @param {Uint8Array} urls */
function assembled(info, counts, starts, queries, urls) {
  const offsets = HEADER_BYTES + 4 * starts.length;
  const content = new Uint8Array(offsets + queries.length + urls.length);
  const view = new DataView(content.buffer);
  content.set(MAGIC);
  content.set([PACK_VERSION, info.fractionBits, METHODS.indexOf(info.method) + 1, 0], 4);
  for (let i = 0; i < 16; i++) content[8 + i] = parseInt(info.task.slice(2 * i, 2 * i + 2), 16);
  view.setUint32(24, info.round);
  view.setFloat64(28, info.epsilon);
  view.setFloat64(36, info.delta);
  [...counts, queries.length, urls.length].forEach((size, i) => view.setUint32(44 + 4 * i, size));
  starts.forEach((start, i) => view.setUint32(HEADER_BYTES + 4 * i, start));
  content.set(queries, offsets);
  content.set(urls, offsets + queries.length);
  return content;
}

/** Lower bound and probability. @param {Reader} reader @param {number} fractionBits @returns {[number, number]} */
export function readEstimates(reader, fractionBits) {
  const lower = reader.number();
  const probability = lower + reader.number();
  if (lower < 1 || probability > 2 ** fractionBits) throw reader.refuse("expected 0 < lower bound ≤ probability ≤ 1");
  return [lower, probability];
}

/** @param {Writer} out @param {{lower: number, probability: number}} numbers */
function writeEstimates(out, { lower, probability }) {
  out.number(lower);
  out.number(probability - lower);
}

/** @param {Uint8Array} text */
function decoded(text) {
  try {
    return textOf(text);
  } catch {
    throw new MessageError("pack: a text that is not UTF-8");
  }
}

/** @param {PackEntry} entry @param {number} place */
function checkEntry({ query, lower, probability, urls }, place) {
  const refuse = (/** @type {string} */ problem) => {
    throw new MessageError(`pack: query ${place}: ${problem}`);
  };
  if (normalize(query) !== query) refuse("not in normal form");
  if (urls.some(({ url }) => normalizeUrl(url) !== url)) refuse("a URL that is not in normal form");
  if (new Set(urls.map(({ url }) => url)).size !== urls.length) refuse("a URL twice");
  if (urls.some((url, i) => i > 0 && bestFirst(urls[i - 1], url) > 0)) refuse("expected the best URL first");
  if (urls.some((url) => url.lower > lower || url.probability > probability)) refuse("expected no URL above its query");
}
