/**
 * Local search: answers from a pack, on the device, without a network. The twin of search/pack_index.py; the order of
 * what is found is part of the protocol: exact, then beginnings, then typing errors, each by the lower bound of the
 * probability.
 */

import { sha256, textOf, toHex, utf8 } from "./bytes.js";
import { Rows } from "./edit_distance.js";
import { InvalidParameter, MessageError } from "./errors.js";
import { BLOCK, compareBytes } from "./front_coding.js";
import { normalize } from "./normalize.js";
import { decodePack, Pack } from "./pack.js";

/** @typedef {import("./pack.js").PackEntry} PackEntry */
/** @typedef {"exact" | "prefix" | "typo"} Kind */
/** @typedef {{entry: PackEntry, kind: Kind, distance: number}} Match */
/** @typedef {{query: string, url: string | null, probability: number, low: number, how: Kind}} Answer */

const [SHORTEST_WITH_TYPO, SHORTEST_WITH_TWO, LONGEST_WITH_TYPO] = [4, 8, 64];

/**
 * The index of a pack. `artifact` is the SHA-256 that must be its own. `checked` skips reading everything once more:
 * only for bytes that were opened without it before and kept since.
 * @param {Uint8Array} content @param {{artifact?: string, checked?: boolean}} [options]
 */
export async function openPack(content, { artifact, checked = false } = {}) {
  if (artifact !== undefined && toHex(await sha256(content)) !== artifact) {
    throw new MessageError("pack: not the artifact that the manifest names");
  }
  return new SearchIndex(checked ? new Pack(content) : decodePack(content));
}

/** Finds the queries of a pack that fit what was typed, and their URLs, best first. */
export class SearchIndex {
  #pack;
  /** @type {import("./pack.js").RawEntry[][]} read when first needed */ #blocks = [];
  /** @type {{points: Int32Array, starts: Int32Array, shared: Int32Array} | undefined} */ #letters;

  /** @param {Pack} pack */
  constructor(pack) {
    this.#pack = pack;
  }

  /** how many queries there are */
  get size() {
    return this.#pack.nQueries;
  }

  get pairs() {
    return this.#pack.nPairs;
  }

  /** what the pack says about itself: method, epsilon, delta, task, round, fractionBits */
  get meta() {
    return this.#pack.info;
  }

  /** The best URLs for what was typed; empty for a query that is not in the pack.
   * @param {string} query @param {number} [limit] */
  urlsFor(query, limit = 10) {
    const place = this.#placeOf(utf8(normalize(query) ?? ""));
    return place === undefined
      ? []
      : this.#entry(place)
          .urls.slice(0, limit)
          .map(({ url }) => url);
  }

  /**
   * What to show for what was typed: all URLs of the very query, then the best URL of each other query that fits.
   * Probabilities are shares of all searches.
   * @param {string} typed @param {{limit?: number}} [options] @returns {Answer[]}
   */
  search(typed, { limit = 10 } = {}) {
    const unit = 2 ** -this.meta.fractionBits;
    /** @type {Answer[]} */ const answers = [];
    for (const { entry, kind } of this.find(typed, limit)) {
      const shown = entry.urls.slice(0, kind === "exact" ? limit : 1);
      /** @type {Array<{url: string | null, lower: number, probability: number}>} */
      const rows = shown.length ? shown : [{ ...entry, url: null }];
      for (const { url, lower, probability } of rows) {
        answers.push({ query: entry.query, url, probability: probability * unit, low: lower * unit, how: kind });
      }
    }
    return answers.slice(0, limit);
  }

  /** At most `limit` queries that fit: the very one, those that begin so, those with typing errors.
   * @param {string} typed @param {number} [limit] @returns {Match[]} */
  find(typed, limit = 10) {
    if (!(Number.isInteger(limit) && limit >= 1)) throw new InvalidParameter("limit", "must be at least 1");
    const text = normalize(typed);
    if (!text || !this.size) return [];
    const wanted = utf8(text);
    const place = this.#placeOf(wanted);
    const matches = place === undefined ? [] : [this.#match(place, "exact", 0)];
    matches.push(...this.#withPrefix(wanted, limit - matches.length));
    if (matches.length < limit) matches.push(...this.#withTypos(text, limit - matches.length));
    return matches;
  }

  /** @param {Uint8Array} wanted @param {number} limit */
  #withPrefix(wanted, limit) {
    const best = new Best(limit);
    for (let place = this.#firstFrom(wanted); place < this.size && beginsWith(this.#at(place).text, wanted); place++) {
      const { text, lower, probability } = this.#at(place);
      if (text.length > wanted.length) best.offer(place, 0, lower, probability);
    }
    return best.items.map(({ place }) => this.#match(place, "prefix", 0));
  }

  /** @param {string} text @param {number} limit */
  #withTypos(text, limit) {
    const typed = Int32Array.from(text, (sign) => /** @type {number} */ (sign.codePointAt(0)));
    const errors = allowedErrors(typed.length);
    if (!errors) return [];
    const wanted = utf8(text);
    this.#letters ??= lettersOf(Array.from({ length: this.size }, (_, place) => this.#at(place).text));
    const { points, starts, shared } = this.#letters;
    const [best, rows] = [new Best(limit), new Rows(typed, errors)];
    // What one query shares with the next is known; over several it is the least of them.
    for (let place = 0; place < this.size; place++) {
      const distance = rows.distance(points, starts[place], starts[place + 1], shared[place]);
      if (distance < 0) continue;
      const { text: candidate, lower, probability } = this.#at(place);
      if (!beginsWith(candidate, wanted)) best.offer(place, distance, lower, probability);
    }
    return best.items.map(({ place, distance }) => this.#match(place, "typo", distance));
  }

  /** Where the very query is, if it is there. @param {Uint8Array} wanted */
  #placeOf(wanted) {
    const place = this.#firstFrom(wanted);
    return place < this.size && compareBytes(this.#at(place).text, wanted) === 0 ? place : undefined;
  }

  /** The first query that is not before these bytes. @param {Uint8Array} wanted */
  #firstFrom(wanted) {
    let [low, high] = [0, this.size];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareBytes(this.#at(middle).text, wanted) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** @param {number} place */
  #at(place) {
    const block = Math.floor(place / BLOCK);
    this.#blocks[block] ??= this.#pack.block(block);
    return this.#blocks[block][place % BLOCK];
  }

  /** @param {number} place @param {Kind} kind @param {number} distance @returns {Match} */
  #match(place, kind, distance) {
    return { entry: this.#entry(place), kind, distance };
  }

  /** @param {number} place @returns {PackEntry} */
  #entry(place) {
    const { text, lower, probability, pairs } = this.#at(place);
    const urls = pairs.map(([number, least, share]) => ({
      url: this.#pack.url(number),
      lower: least,
      probability: share,
    }));
    return { query: textOf(text), lower, probability, urls };
  }
}

/** @param {Uint8Array} text @param {Uint8Array} beginning */
function beginsWith(text, beginning) {
  return text.length >= beginning.length && beginning.every((byte, i) => byte === text[i]);
}

/** How many typing errors are forgiven: none in short texts, where everything is near everything.
 * @param {number} length */
export function allowedErrors(length) {
  if (length < SHORTEST_WITH_TYPO || length > LONGEST_WITH_TYPO) return 0;
  return length < SHORTEST_WITH_TWO ? 1 : 2;
}

/** The best few of many, in order: fewest errors, highest lower bound, highest probability, first place. */
class Best {
  /** @type {Array<{place: number, distance: number, lower: number, probability: number}>} */ items = [];
  #limit;

  /** @param {number} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /** Places must come ascending.
   * @param {number} place @param {number} distance @param {number} lower @param {number} probability */
  offer(place, distance, lower, probability) {
    const { items } = this;
    let at = items.length;
    while (at > 0 && isBetter(distance, lower, probability, items[at - 1])) at--;
    if (at === this.#limit) return;
    items.splice(at, 0, { place, distance, lower, probability });
    if (items.length > this.#limit) items.pop();
  }
}

/** @param {number} distance @param {number} lower @param {number} probability
 * @param {{distance: number, lower: number, probability: number}} than */
function isBetter(distance, lower, probability, than) {
  if (distance !== than.distance) return distance < than.distance;
  return lower !== than.lower ? lower > than.lower : probability > than.probability;
}

/** All queries as code points in one array, and how many each shares with the one before.
 * @param {Uint8Array[]} texts */
function lettersOf(texts) {
  const starts = new Int32Array(texts.length + 1);
  const shared = new Int32Array(texts.length);
  const points = new Int32Array(texts.reduce((total, text) => total + text.length, 0));
  let end = 0;
  texts.forEach((text, i) => {
    for (const point of pointsOf(text)) points[end++] = point;
    starts[i + 1] = end;
    const [start, before] = [starts[i], i ? starts[i - 1] : 0];
    const most = Math.min(end - start, start - before);
    while (shared[i] < most && points[start + shared[i]] === points[before + shared[i]]) shared[i]++;
  });
  return { points, starts, shared };
}

/** The code points of a text; those of ASCII are its bytes. @param {Uint8Array} text */
function pointsOf(text) {
  if (text.every((byte) => byte < 0x80)) return text;
  return Array.from(textOf(text), (sign) => /** @type {number} */ (sign.codePointAt(0)));
}
