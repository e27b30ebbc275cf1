/** Sorted texts where each says only how it differs from the one before: the twin of search/front_coding.py. */

import { MessageError } from "./errors.js";

/** texts in a block; the first of a block is written in full */
export const BLOCK = 16;
export const LONGEST_TEXT = 2048;
const LARGEST = 2 ** 32 - 1;
const EMPTY = new Uint8Array(0);

/** Bytes that grow at the end. */
export class Writer {
  #content = new Uint8Array(1 << 12);
  size = 0;

  /** Seven bits in a byte, the lowest first; the top bit says that more follow. @param {number} value */
  number(value) {
    let rest = value;
    while (rest > 0x7f) {
      this.#byte((rest % 128) | 0x80);
      rest = Math.floor(rest / 128);
    }
    this.#byte(rest);
  }

  /** How many bytes are shared with the text before, how many follow, and those. @param {Uint8Array} text
   * @param {Uint8Array} before */
  text(text, before) {
    const shared = sharedBytes(before, text);
    this.number(shared);
    this.number(text.length - shared);
    this.bytes(text.subarray(shared));
  }

  /** @param {Uint8Array} content */
  bytes(content) {
    this.#room(content.length);
    this.#content.set(content, this.size);
    this.size += content.length;
  }

  get content() {
    return this.#content.slice(0, this.size);
  }

  /** @param {number} value */
  #byte(value) {
    this.#room(1);
    this.#content[this.size++] = value;
  }

  /** @param {number} more */
  #room(more) {
    if (this.size + more <= this.#content.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#content.length, this.size + more));
    larger.set(this.#content.subarray(0, this.size));
    this.#content = larger;
  }
}

/** @param {Uint8Array} one @param {Uint8Array} other */
function sharedBytes(one, other) {
  const shorter = Math.min(one.length, other.length);
  let place = 0;
  while (place < shorter && one[place] === other[place]) place++;
  return place;
}

/** Below 0, 0 or above 0 by the order of bytes. @param {Uint8Array} one @param {Uint8Array} other */
export function compareBytes(one, other) {
  const place = sharedBytes(one, other);
  if (place < one.length && place < other.length) return one[place] - other[place];
  return one.length - other.length;
}

/** Reads forward through a part of a message and never past its end. */
export class Reader {
  #content;
  #end;
  #what;

  /** @param {Uint8Array} content @param {number} start @param {number} end @param {string} what */
  constructor(content, start, end, what) {
    this.#content = content;
    this.place = start;
    this.#end = end;
    this.#what = what;
  }

  get atEnd() {
    return this.place === this.#end;
  }

  /** @param {string} problem */
  refuse(problem) {
    return new MessageError(`${this.#what}: ${problem} at byte ${this.place}`);
  }

  number() {
    let [value, scale, byte] = [0, 1, 0];
    for (let i = 0; ; i++) {
      if (i === 5) throw this.refuse("expected a number of at most 5 bytes");
      if (this.place >= this.#end) throw this.refuse("ends within a number");
      byte = this.#content[this.place++];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
      scale *= 128;
    }
    if ((byte === 0 && scale > 1) || value > LARGEST) {
      throw this.refuse("expected a number below 2^32 in as few bytes as it takes");
    }
    return value;
  }

  /** The next text; it must come after `before` in the order of bytes and share with it all that it can.
   * @param {Uint8Array} before */
  text(before) {
    const shared = this.number();
    const nMore = this.number();
    const length = shared + nMore;
    if (shared > before.length || length < 1 || length > LONGEST_TEXT || this.place + nMore > this.#end) {
      throw this.refuse(`expected a text of 1 to ${LONGEST_TEXT} bytes`);
    }
    if (nMore === 0 || (shared < before.length && this.#content[this.place] <= before[shared])) {
      throw this.refuse("expected sorted texts that share all they can with the one before");
    }
    const text = new Uint8Array(length);
    text.set(before.subarray(0, shared));
    text.set(this.#content.subarray(this.place, this.place + nMore), shared);
    this.place += nMore;
    return text;
  }

  /** The texts of one block, or of any run that begins with a whole text. @param {number} count */
  texts(count) {
    /** @type {Uint8Array[]} */ const texts = [];
    for (let i = 0, before = EMPTY; i < count; i++) texts.push((before = this.text(before)));
    return texts;
  }
}
