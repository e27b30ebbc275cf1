/**
 * The report as bytes: one size for all devices in a round, and a decoder that takes nothing else. The twin of
 * wire/report.py; docs/reference/protocol.md has the layout.
 */

import { bigEndian, concat, equalBytes, fromBigEndian, fromHex, sha256 } from "./bytes.js";
import { MessageError, ReportRefused } from "./errors.js";
import { PLAIN_SETS, TWO_STAGE } from "./subset_report.js";

/** @typedef {import("./randomness.js").Randomness} Randomness */
/** @typedef {import("./records.js").HeadList} HeadList */
/** @typedef {import("./params.js").ReportParams} ReportParams */
/** @typedef {import("./subset_report.js").ReportDesign} ReportDesign */
/** @typedef {import("./subset_report.js").SubsetReport} SubsetReport */

export const REPORT_VERSION = 1;
export const ONE_CELL = 1;
export const SETS_WITH_SINK = 2;
export const SETS = 3;
const HEADER_BYTES = 30;
const NONCE_BYTES = 16;
const ID_BYTES = 16;
const ABOUT_CELLS = 0;
const ABOUT_QUERIES = 1;

/**
 * What fixes the bytes of every report of a round; public.
 * @typedef {{task: Uint8Array, round: number, digest: Uint8Array, suite: number, records: number, queryItems: number,
 *   querySubset: number, cellItems: number, cellSubset: number}} ShapeFields
 */
export class ReportShape {
  /** @param {ShapeFields} fields */
  constructor(fields) {
    this.task = fields.task;
    this.round = fields.round;
    this.digest = fields.digest;
    this.suite = fields.suite;
    /** m_C */
    this.records = fields.records;
    /** how many numbers a part about queries may name; 0 if the round does not ask about queries */
    this.queryItems = fields.queryItems;
    this.querySubset = fields.querySubset;
    this.cellItems = fields.cellItems;
    this.cellSubset = fields.cellSubset;
    Object.freeze(this);
  }

  /** The shape of the reports on this head list; without a design it is LocalAlg's.
   * @param {Uint8Array} task @param {number} round @param {HeadList} head @param {ReportParams} params
   * @param {ReportDesign | null} design */
  static async of(task, round, head, params, design) {
    return ReportShape.over(task, round, fromHex(await head.digest()).subarray(0, 8), head, params, design);
  }

  /** The same, the first 8 bytes of the list's digest being known.
   * @param {Uint8Array} task @param {number} round @param {Uint8Array} digest @param {HeadList} head
   * @param {ReportParams} params @param {ReportDesign | null} design */
  static over(task, round, digest, head, params, design) {
    const shared = { task, round, digest, records: params.recordsPerClient };
    if (design === null || design.mechanism === TWO_STAGE) {
      const one = { queryItems: 0, querySubset: 0, cellItems: head.nCells, cellSubset: 1 };
      return new ReportShape({ ...shared, suite: ONE_CELL, ...one });
    }
    const star = Number(design.mechanism === PLAIN_SETS);
    const [queries, cells] = [design.aboutQueries(head, params), design.aboutCells(head, params)];
    return new ReportShape({
      ...shared,
      suite: star ? SETS : SETS_WITH_SINK,
      queryItems: queries ? queries.nItems + star : 0,
      querySubset: queries ? queries.subsetSize : 0,
      cellItems: cells ? cells.nItems + star : 0,
      cellSubset: cells ? cells.subsetSize : 0,
    });
  }

  get items() {
    return Math.max(this.querySubset, this.cellSubset);
  }

  get width() {
    return Math.max(this.queryItems, this.cellItems) <= 0xffff ? 2 : 4;
  }

  /** the number that marks an unused place */
  get empty() {
    return 2 ** (8 * this.width) - 1;
  }

  get partBytes() {
    return 1 + this.items * this.width;
  }

  get payloadBytes() {
    return HEADER_BYTES + this.records * this.partBytes;
  }

  /** the length of every report of the round */
  get size() {
    return this.payloadBytes + NONCE_BYTES + ID_BYTES;
  }

  get header() {
    return concat(Uint8Array.of(REPORT_VERSION, this.suite), this.task, bigEndian(this.round, 4), this.digest);
  }

  get nCounters() {
    return this.queryItems + this.cellItems + 3;
  }

  get countsPerReport() {
    return this.records * this.items;
  }

  /** How many numbers there are for a part of this kind, and how many of them it names. @param {number} kind */
  about(kind) {
    return kind === ABOUT_QUERIES ? [this.queryItems, this.querySubset] : [this.cellItems, this.cellSubset];
  }
}

/** The bytes to send. Make them once, keep them, and send the same again if the answer was lost.
 * @param {readonly SubsetReport[]} parts @param {ReportShape} shape @param {Randomness} randomness */
export async function encodeReport(parts, shape, randomness) {
  if (parts.length !== shape.records) throw new MessageError(`report: expected ${shape.records} parts`);
  const payload = concat(shape.header, ...parts.map((part) => encodePart(part, shape)));
  const nonce = randomness.take(NONCE_BYTES);
  return concat(payload, nonce, await reportId(nonce, payload));
}

/** What localReport says, in the form that the wire carries.
 * @param {readonly number[]} cells @returns {SubsetReport[]} */
export function cellsAsParts(cells) {
  return cells.map((cell) => ({ aboutQueries: false, items: [cell] }));
}

/** @param {Uint8Array} nonce @param {Uint8Array} payload */
export async function reportId(nonce, payload) {
  return (await sha256(concat(nonce, payload))).subarray(0, ID_BYTES);
}

/** The id and the parts, or ReportRefused for anything that encodeReport cannot have made.
 * @param {Uint8Array} message @param {ReportShape} shape @returns {Promise<{id: Uint8Array, parts: SubsetReport[]}>} */
export async function decodeReport(message, shape) {
  if (message.length !== shape.size) throw new ReportRefused("malformed", `expected ${shape.size} bytes`);
  checkHeader(message.subarray(0, HEADER_BYTES), shape);
  const payload = message.subarray(0, shape.payloadBytes);
  const nonce = message.subarray(shape.payloadBytes, shape.payloadBytes + NONCE_BYTES);
  const id = message.slice(shape.payloadBytes + NONCE_BYTES);
  if (!equalBytes(await reportId(nonce, payload), id)) {
    throw new ReportRefused("id-mismatch", "the id is not that of these bytes");
  }
  const parts = Array.from({ length: shape.records }, (_, i) => {
    const start = HEADER_BYTES + i * shape.partBytes;
    return decodePart(payload.subarray(start, start + shape.partBytes), shape);
  });
  return { id, parts };
}

/** The counters that this report adds one to, countsPerReport of them (some may repeat).
 * @param {readonly SubsetReport[]} parts @param {ReportShape} shape */
export function countersOf(parts, shape) {
  const querySink = shape.queryItems + shape.cellItems;
  return parts.flatMap(({ aboutQueries, items }) => {
    const first = aboutQueries ? 0 : shape.queryItems;
    const counters = items.length ? items.map((item) => first + item) : [querySink + Number(!aboutQueries)];
    return [...counters, ...Array(shape.items - counters.length).fill(querySink + 2)];
  });
}

/** Say which part of the header is another round's. @param {Uint8Array} header @param {ReportShape} shape */
function checkHeader(header, shape) {
  const same = (/** @type {number} */ start, /** @type {number} */ end) =>
    equalBytes(header.subarray(start, end), shape.header.subarray(start, end));
  if (!same(0, 2)) throw new ReportRefused("malformed", `expected version ${REPORT_VERSION} and suite ${shape.suite}`);
  if (!same(2, 22)) throw new ReportRefused("wrong-round", "made for another task or round");
  if (!same(22, HEADER_BYTES)) throw new ReportRefused("wrong-head-list", "made for another head list");
}

/** @param {SubsetReport} part @param {ReportShape} shape */
function encodePart({ aboutQueries, items }, shape) {
  const kind = aboutQueries ? ABOUT_QUERIES : ABOUT_CELLS;
  checkItems(kind, items, shape);
  const numbers = [...items, ...Array(shape.items - items.length).fill(shape.empty)];
  return concat(Uint8Array.of(kind), ...numbers.map((number) => bigEndian(number, shape.width)));
}

/** @param {Uint8Array} part @param {ReportShape} shape @returns {SubsetReport} */
function decodePart(part, shape) {
  const kind = part[0];
  if (kind !== ABOUT_CELLS && kind !== ABOUT_QUERIES) {
    throw new ReportRefused("malformed", "a part is about cells (0) or about queries (1)");
  }
  const numbers = Array.from({ length: shape.items }, (_, i) => {
    const start = 1 + i * shape.width;
    return fromBigEndian(part.subarray(start, start + shape.width));
  });
  const end = numbers.indexOf(shape.empty);
  const nItems = end < 0 ? numbers.length : end;
  if (numbers.slice(nItems).some((number) => number !== shape.empty)) {
    throw new ReportRefused("malformed", "an item after an unused place");
  }
  const items = numbers.slice(0, nItems);
  checkItems(kind, items, shape);
  return { aboutQueries: kind === ABOUT_QUERIES, items };
}

/** @param {number} kind @param {readonly number[]} items @param {ReportShape} shape */
function checkItems(kind, items, shape) {
  const [nNumbers, subset] = shape.about(kind);
  if (!nNumbers) throw new ReportRefused("malformed", "the round does not ask about this");
  if (!items.length && shape.suite === SETS_WITH_SINK) return;
  if (items.length !== subset) throw new ReportRefused("malformed", `expected ${subset} items`);
  if (items.some((item, i) => i > 0 && item <= items[i - 1])) {
    throw new ReportRefused("malformed", "expected items in ascending order");
  }
  if (!(items[0] >= 0 && items[items.length - 1] < nNumbers)) {
    throw new ReportRefused("malformed", `expected items from 0 to ${nNumbers - 1}`);
  }
}
