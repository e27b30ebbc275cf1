/** A fixed sequence of bytes in place of randomness, for the vectors. Lives with the tests: nothing that ships can
 * reach it. */
export class Tape {
  #content;
  #position = 0;

  constructor(content) {
    this.#content = content;
  }

  get left() {
    return this.#content.length - this.#position;
  }

  take(nBytes) {
    if (nBytes > this.left) throw new RangeError(`the tape has ${this.left} bytes left, ${nBytes} were asked for`);
    this.#position += nBytes;
    return this.#content.slice(this.#position - nBytes, this.#position);
  }
}
