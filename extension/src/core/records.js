/**
 * The head list that all devices share: the twin of records.py.
 *
 * A record is {query, url}; null stands for ⋆, "anything that is not in the list". It is a value of its own, never "*".
 */

import { hasLoneSurrogate, sha256, toHex, utf8 } from "./bytes.js";
import { MessageError } from "./errors.js";

/** @typedef {{query: string | null, url: string | null}} DeviceRecord */

/** @param {unknown} value @returns {value is string} */
function isText(value) {
  return typeof value === "string" && !hasLoneSurrogate(value);
}

/**
 * An ordered, immutable map query → URLs, with ⋆ appended in the one canonical way.
 *
 * The cells are what a device may report: for each query its URLs and then ⟨q,⋆⟩, and ⟨⋆,⋆⟩ last. Both k (nQueries) and
 * k_q (nUrls) count ⋆.
 */
export class HeadList {
  /** @type {Map<string, string[]>} */ #urls = new Map();
  /** @type {number[]} */ #first = [];
  /** @type {Map<string, number>} */ #place = new Map();
  /** @type {Promise<string> | undefined} */ #digest;

  /** @param {Iterable<readonly [string, readonly string[]]>} pairs */
  constructor(pairs) {
    let cell = 0;
    for (const [query, urls] of pairs) {
      if (!isText(query) || this.#urls.has(query)) {
        throw new MessageError("head list: every query must be a text and appear once");
      }
      if (!urls.every(isText) || new Set(urls).size !== urls.length) {
        throw new MessageError("head list: the URLs of a query must be texts and appear once");
      }
      this.#place.set(query, this.#first.length);
      this.#urls.set(query, [...urls]);
      this.#first.push(cell);
      cell += urls.length + 1;
    }
    this.#first.push(cell);
    this.nCells = cell + 1;
    /** k_q for every query in order, ⋆ last: the number of URLs, ⋆ included */
    this.nUrls = Object.freeze([...[...this.#urls.values()].map((urls) => urls.length + 1), 1]);
    Object.freeze(this);
  }

  /** the number of listed queries, without ⋆ */
  get size() {
    return this.#urls.size;
  }

  /** k: the number of queries, ⋆ included */
  get nQueries() {
    return this.#urls.size + 1;
  }

  /** the listed queries in order, without ⋆ */
  get queries() {
    return [...this.#urls.keys()];
  }

  get hasUrls() {
    return this.nUrls.some((width) => width > 1);
  }

  /** the number of listed records ⟨q,u⟩ (⟨q,⋆⟩ in a list without URLs), without ⟨⋆,⋆⟩ */
  get nRecords() {
    return this.hasUrls ? this.nUrls.reduce((total, width) => total + width - 1, 0) : this.size;
  }

  /** @param {string} query */
  urls(query) {
    return [...(this.#urls.get(query) ?? [])];
  }

  /** @param {string} query */
  has(query) {
    return this.#urls.has(query);
  }

  /** for a query's number (⋆ is the last) the number of its first cell @param {number} query */
  firstCell(query) {
    return this.#first[query];
  }

  /** the number of the query of a cell @param {number} cell */
  queryOfCell(cell) {
    let [low, high] = [0, this.#first.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#first[middle] <= cell) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The record that a cell stands for. @param {number} cell @returns {DeviceRecord} */
  recordOfCell(cell) {
    const query = this.queries[this.queryOfCell(cell)] ?? null;
    if (query === null) return { query, url: null };
    return { query, url: this.urls(query)[cell - this.firstCell(this.queryOfCell(cell))] ?? null };
  }

  /** The cell of a record: an unknown query is ⟨⋆,⋆⟩, an unknown URL of a known query ⟨q,⋆⟩.
   * @param {DeviceRecord} record */
  cellOf({ query, url }) {
    const place = query === null ? undefined : this.#place.get(query);
    if (place === undefined) return this.nCells - 1;
    const urls = /** @type {string[]} */ (this.#urls.get(/** @type {string} */ (query)));
    const position = url === null ? -1 : urls.indexOf(url);
    return this.#first[place] + (position < 0 ? urls.length : position);
  }

  /** @returns {Array<[string, string[]]>} */
  asJson() {
    return [...this.#urls].map(([query, urls]) => [query, [...urls]]);
  }

  /** SHA-256 of the canonical JSON, in hexadecimal; devices and server compare it before they count anything. */
  digest() {
    this.#digest ??= sha256(utf8(JSON.stringify(this.asJson()))).then(toHex);
    return this.#digest;
  }
}
