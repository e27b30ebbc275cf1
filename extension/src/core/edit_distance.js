/**
 * How many typing errors lie between one text and many sorted ones, by optimal string alignment over code points. The
 * twin of search/pack_index.py.
 *
 * The table's rows stand for the letters of the other text. A row depends on the letters before it alone, so the rows
 * of a beginning that two neighbours share stay; where a whole row exceeds the limit, no longer text comes back below
 * it. Only columns within the limit of the diagonal are computed: all others exceed it.
 */
export class Rows {
  #text;
  #limit;
  #width;
  #rows;
  /** how many rows are filled for the text before */
  #depth = 0;
  /** how many letters make the first row in which nothing is within the limit; 0 if there is none */
  #hopeless = 0;

  /** @param {ArrayLike<number>} text code points @param {number} limit */
  constructor(text, limit) {
    this.#text = text;
    this.#limit = limit;
    this.#width = text.length + 2;
    this.#rows = new Uint8Array(this.#width * (text.length + limit + 3)).fill(limit + 1);
    for (let column = 0; column <= Math.min(limit, text.length); column++) this.#rows[column] = column;
  }

  /** The distance to the next text, or −1 if it is more than the limit. `shared` says how many code points it has in
   * common with the one before.
   * @param {Int32Array} points @param {number} start @param {number} end @param {number} shared */
  distance(points, start, end, shared) {
    if (this.#hopeless && shared >= this.#hopeless) return -1;
    this.#hopeless = 0;
    for (let row = Math.min(shared, this.#depth) + 1; row <= end - start; row++) {
      const least = this.#fill(points, start, row);
      this.#depth = row;
      if (least > this.#limit) {
        this.#hopeless = row;
        return -1;
      }
    }
    this.#depth = end - start;
    const distance = this.#rows[this.#depth * this.#width + this.#text.length];
    return distance <= this.#limit ? distance : -1;
  }

  /** One row from the two before; gives its least entry.
   * @param {Int32Array} points @param {number} start @param {number} row */
  #fill(points, start, row) {
    const [text, limit, width, rows] = [this.#text, this.#limit, this.#width, this.#rows];
    const at = row * width;
    const last = at - width;
    const letter = points[start + row - 1];
    const before = row > 1 ? points[start + row - 2] : -1;
    const first = Math.max(1, row - limit);
    rows[at + first - 1] = first === 1 ? Math.min(row, limit + 1) : limit + 1;
    let least = rows[at + first - 1];
    for (let column = first; column <= Math.min(text.length, row + limit); column++) {
      const own = text[column - 1];
      let best = Math.min(rows[last + column], rows[at + column - 1]) + 1;
      best = Math.min(best, rows[last + column - 1] + (own === letter ? 0 : 1), limit + 1);
      if (column > 1 && own === before && text[column - 2] === letter) {
        best = Math.min(best, rows[last - width + column - 2] + 1);
      }
      rows[at + column] = best;
      if (best < least) least = best;
    }
    if (row + limit < text.length) rows[at + row + limit + 1] = limit + 1;
    return least;
  }
}
