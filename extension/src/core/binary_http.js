/**
 * Binary HTTP (RFC 9292): a request or an answer as bytes that can be sealed. The twin of wire/binary_http.py.
 *
 * Written is the form of known length, filled up with zeros to one of few sizes; read are both forms. Trailers and
 * informational answers are read and dropped.
 */

import { bigEndian, concat, fromBigEndian } from "./bytes.js";
import { MessageError } from "./errors.js";

/** @typedef {ReadonlyArray<readonly [name: string, value: string]>} Fields names in lower case */
/** @typedef {{method: string, scheme: string, authority: string, path: string, fields: Fields,
 * content: Uint8Array}} HttpRequest */
/** @typedef {{status: number, fields: Fields, content: Uint8Array}} HttpResponse */

const [REQUEST, RESPONSE, REQUEST_IN_PIECES, RESPONSE_IN_PIECES] = [0, 1, 2, 3];
const MOST_FIELDS = 64;
const SMALLEST = 1024;
const STEP = 64 * 1024;
const EMPTY = new Uint8Array(0);
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const VALUE = /^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/;
const VISIBLE = /^[!-~]*$/;

/** The request in its padded size. @param {HttpRequest} request */
export function encodeRequest({ method, scheme, authority, path, fields, content }) {
  const control = [method, scheme, authority, path].map(text);
  return padded(concat(number(REQUEST), ...control, ...rest(fields, content)));
}

/** The answer in its padded size. @param {HttpResponse} response */
export function encodeResponse({ status, fields, content }) {
  return padded(concat(number(RESPONSE), number(status), ...rest(fields, content)));
}

/** The least power of two from 1 KiB on that holds so many bytes; beyond 64 KiB, the least multiple of it.
 * @param {number} size */
export function paddedSize(size) {
  if (size > STEP) return Math.ceil(size / STEP) * STEP;
  let power = SMALLEST;
  while (power < size) power *= 2;
  return power;
}

/** A request in either form, or MessageError. @param {Uint8Array} message @returns {HttpRequest} */
export function decodeRequest(message) {
  const reader = new Reader(message);
  const form = reader.number();
  if (form !== REQUEST && form !== REQUEST_IN_PIECES) throw new MessageError("binary HTTP: expected a request");
  const [method, scheme, authority, path] = Array.from({ length: 4 }, () => latin1(reader.text()));
  for (const [name, value, pattern] of /** @type {[string, string, RegExp][]} */ ([
    ["method", method, TOKEN],
    ["scheme", scheme, VISIBLE],
    ["path", path, VISIBLE],
  ])) {
    if (!value || !pattern.test(value))
      throw new MessageError(`binary HTTP: ${name}: expected visible ASCII characters`);
  }
  if (!VISIBLE.test(authority)) throw new MessageError("binary HTTP: authority: expected visible ASCII characters");
  return { method, scheme, authority, path, ...reader.rest(form === REQUEST_IN_PIECES) };
}

/** The final answer in either form, or MessageError. @param {Uint8Array} message @returns {HttpResponse} */
export function decodeResponse(message) {
  const reader = new Reader(message);
  const form = reader.number();
  if (form !== RESPONSE && form !== RESPONSE_IN_PIECES) throw new MessageError("binary HTTP: expected an answer");
  const inPieces = form === RESPONSE_IN_PIECES;
  let status = reader.number();
  for (; status >= 100 && status < 200; status = reader.number()) reader.fields(inPieces);
  if (!(status >= 200 && status < 600)) throw new MessageError("binary HTTP: status: expected 200 to 599");
  return { status, ...reader.rest(inPieces) };
}

/** Reads from the front. What is left out at the end is empty (RFC 9292, 3.8). */
class Reader {
  #message;
  #place = 0;

  /** @param {Uint8Array} message */
  constructor(message) {
    this.#message = message;
  }

  get isMore() {
    return this.#place < this.#message.length;
  }

  /** QUIC's variable-length integer: the first two bits say how many bytes there are. */
  number() {
    if (!this.isMore) throw new MessageError("binary HTTP: truncated");
    const size = 1 << (this.#message[this.#place] >> 6);
    const content = Uint8Array.from(this.#take(size));
    content[0] &= 0x3f;
    return fromBigEndian(content); // inexact from 2^53 on, where no message has so many bytes
  }

  text() {
    return this.#take(this.number());
  }

  /** Fields and content, then trailers and zeros. @param {boolean} inPieces */
  rest(inPieces) {
    const fields = this.fields(inPieces);
    const content = this.isMore ? (inPieces ? concat(...this.#pieces()) : this.text()) : EMPTY;
    this.fields(inPieces);
    if (this.#message.subarray(this.#place).some((byte) => byte !== 0)) {
      throw new MessageError("binary HTTP: expected nothing but zeros after the message");
    }
    return { fields, content };
  }

  /** @param {boolean} inPieces @returns {Fields} */
  fields(inPieces) {
    if (!this.isMore) return [];
    return checked(inPieces ? this.#linesToZero() : new Reader(this.text()).#lines());
  }

  /** @returns {Generator<[Uint8Array, Uint8Array]>} */
  *#lines() {
    while (this.isMore) yield [this.text(), this.text()];
  }

  /** @returns {Generator<[Uint8Array, Uint8Array]>} */
  *#linesToZero() {
    for (const name of this.#pieces()) yield [name, this.text()];
  }

  /** Strings up to an empty one. */
  *#pieces() {
    for (let piece = this.text(); piece.length; piece = this.text()) yield piece;
  }

  /** @param {number} size */
  #take(size) {
    const end = this.#place + size;
    if (end > this.#message.length) throw new MessageError("binary HTTP: truncated");
    const taken = this.#message.subarray(this.#place, end);
    this.#place = end;
    return taken;
  }
}

/** @param {Iterable<[Uint8Array, Uint8Array]>} lines */
function checked(lines) {
  /** @type {[string, string][]} */
  const fields = [];
  for (const [name, value] of lines) {
    const field = /** @type {[string, string]} */ ([latin1(name), latin1(value)]);
    if (!NAME.test(field[0]) || !VALUE.test(field[1])) {
      throw new MessageError("binary HTTP: expected field names in lower case, and values without control characters");
    }
    if (fields.length === MOST_FIELDS) throw new MessageError(`binary HTTP: expected at most ${MOST_FIELDS} fields`);
    fields.push(field);
  }
  return fields;
}

/** @param {Fields} fields @param {Uint8Array} content */
function rest(fields, content) {
  const section = concat(...fields.flatMap(([name, value]) => [text(name.toLowerCase()), text(value)]));
  return [number(section.length), section, number(content.length), content, number(0)];
}

/** @param {string} value */
function text(value) {
  const content = Uint8Array.from(value, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code > 255) throw new MessageError("binary HTTP: expected characters of one byte");
    return code;
  });
  return concat(number(content.length), content);
}

/** @param {Uint8Array} content */
function latin1(content) {
  return Array.from(content, (byte) => String.fromCharCode(byte)).join("");
}

/** @param {number} value */
function number(value) {
  const power = [6, 14, 30].filter((bits) => value >= 2 ** bits).length;
  const content = bigEndian(value, 1 << power);
  content[0] |= power << 6;
  return content;
}

/** @param {Uint8Array} message */
function padded(message) {
  const whole = new Uint8Array(paddedSize(message.length));
  whole.set(message);
  return whole;
}
