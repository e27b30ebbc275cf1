/** From one pack to the next: the twin of `apply_delta` in search/pack_delta.py. Only services write deltas. */

import { equalBytes, sha256, textOf, toHex, utf8 } from "./bytes.js";
import { asMessageError, MessageError } from "./errors.js";
import { compareBytes, Reader } from "./front_coding.js";
import { bestFirst, checkedInfo, encodePack, LARGEST, METHODS, Pack, readEstimates } from "./pack.js";

/** @typedef {import("./pack.js").PackEntry} PackEntry */

const MAGIC = utf8("SBPD");
const DELTA_VERSION = 1;
const HEADER_BYTES = 124;
const [DROP, RENUMBER, REWRITE, INSERT] = [1, 2, 3, 4];

/** The next pack's bytes; refused unless both are exactly the packs that the delta names.
 * @param {Uint8Array} baseContent @param {Uint8Array} delta */
export async function applyDelta(baseContent, delta) {
  const about = readHeader(delta);
  if (toHex(await sha256(baseContent)) !== about.base) {
    throw new MessageError("pack delta: it starts from another pack");
  }
  const base = new Pack(baseContent);
  const { task, round, fractionBits } = base.info;
  if (task !== about.info.task || round !== about.baseRound || fractionBits !== about.info.fractionBits) {
    throw new MessageError("pack delta: its header does not fit the pack that it starts from");
  }
  const old = base.entries();
  const urls = [...urlTable(old), ...addedUrls(delta, about)];
  const reader = new Reader(delta, HEADER_BYTES + about.urlBytes, delta.length, "pack delta: steps");
  const content = encodePack(about.info, [...replay(reader, old, urls, fractionBits)]);
  if (toHex(await sha256(content)) !== about.result) {
    throw new MessageError("pack delta: what comes out is not the pack that it names");
  }
  return content;
}

/** @param {Uint8Array} delta */
function readHeader(delta) {
  if (delta.length < HEADER_BYTES || delta.length > LARGEST) {
    throw new MessageError(`pack delta: expected ${HEADER_BYTES} bytes to ${LARGEST / 2 ** 20} MiB`);
  }
  const view = new DataView(delta.buffer, delta.byteOffset, delta.length);
  const method = delta[6];
  if (!equalBytes(delta.subarray(0, 4), MAGIC) || delta[7] !== 0 || (method !== 1 && method !== 2)) {
    throw new MessageError("pack delta: expected a searchblend pack delta");
  }
  if (delta[4] !== DELTA_VERSION) throw new MessageError(`pack delta: version ${delta[4]}, expected ${DELTA_VERSION}`);
  const [nUrls, urlBytes, stepBytes] = [112, 116, 120].map((at) => view.getUint32(at));
  if (HEADER_BYTES + urlBytes + stepBytes !== delta.length) {
    throw new MessageError(`pack delta: ${delta.length} bytes, expected ${HEADER_BYTES + urlBytes + stepBytes}`);
  }
  const info = asMessageError("pack delta: ", () =>
    checkedInfo({
      method: METHODS[method - 1],
      epsilon: view.getFloat64(32),
      delta: view.getFloat64(40),
      task: toHex(delta.subarray(8, 24)),
      round: view.getUint32(28),
      fractionBits: delta[5],
    }),
  );
  const [base, result] = [toHex(delta.subarray(48, 80)), toHex(delta.subarray(80, 112))];
  return { info, base, result, baseRound: view.getUint32(24), nUrls, urlBytes };
}

/** @param {Uint8Array} delta @param {{nUrls: number, urlBytes: number}} about */
function addedUrls(delta, { nUrls, urlBytes }) {
  const reader = new Reader(delta, HEADER_BYTES, HEADER_BYTES + urlBytes, "pack delta: URLs");
  const added = reader.texts(nUrls);
  if (!reader.atEnd) throw reader.refuse("expected the end of the URLs");
  return added;
}

/** The URLs of a pack in the order of its table. @param {readonly PackEntry[]} entries */
function urlTable(entries) {
  const used = new Set(entries.flatMap(({ urls }) => urls.map(({ url }) => url)));
  return Array.from(used, utf8).sort(compareBytes);
}

/** @param {Reader} reader @param {readonly PackEntry[]} old @param {readonly Uint8Array[]} urls @param {number} bits
 * @returns {Generator<PackEntry>} */
function* replay(reader, old, urls, bits) {
  let place = 0;
  let before = new Uint8Array(0);
  while (!reader.atEnd) {
    const head = reader.number();
    const [kind, run] = [head % 8, Math.floor(head / 8)];
    if (kind > INSERT || !run || (kind !== INSERT && place + run > old.length)) {
      throw reader.refuse("expected a step over one query or more of the pack that it starts from");
    }
    for (let i = 0; i < run; i++) {
      if (kind === INSERT) {
        before = reader.text(before);
        yield newEntry(reader, decoded(before), urls, bits);
        continue;
      }
      const entry = old[place++];
      if (kind === DROP) continue;
      before = /** @type {Uint8Array<ArrayBuffer>} */ (utf8(entry.query));
      if (kind === RENUMBER) yield renumbered(reader, entry, bits);
      else yield kind === REWRITE ? newEntry(reader, entry.query, urls, bits) : entry;
    }
  }
  if (place !== old.length) throw reader.refuse("expected a step for every query of the pack that it starts from");
}

/** @param {Reader} reader @param {string} query @param {readonly Uint8Array[]} urls @param {number} bits
 * @returns {PackEntry} */
function newEntry(reader, query, urls, bits) {
  const [lower, probability] = readEstimates(reader, bits);
  /** @type {PackEntry} */ const entry = { query, lower, probability, urls: [] };
  for (let left = reader.number(); left > 0; left--) {
    const number = reader.number();
    if (number >= urls.length) throw reader.refuse("expected the number of a URL");
    const [urlLower, urlProbability] = readEstimates(reader, bits);
    entry.urls.push({ url: decoded(urls[number]), lower: urlLower, probability: urlProbability });
  }
  return entry;
}

/** New numbers of a query, then of its URLs in the order of their bytes.
 * @param {Reader} reader @param {PackEntry} entry @param {number} bits @returns {PackEntry} */
function renumbered(reader, entry, bits) {
  const [lower, probability] = readEstimates(reader, bits);
  const texts = entry.urls.map(({ url }) => url).sort((one, other) => compareBytes(utf8(one), utf8(other)));
  const urls = texts.map((url) => {
    const [urlLower, urlProbability] = readEstimates(reader, bits);
    return { url, lower: urlLower, probability: urlProbability };
  });
  return { query: entry.query, lower, probability, urls: urls.sort(bestFirst) };
}

/** @param {Uint8Array} content */
function decoded(content) {
  try {
    return textOf(content);
  } catch {
    throw new MessageError("pack delta: a text that is not UTF-8");
  }
}
