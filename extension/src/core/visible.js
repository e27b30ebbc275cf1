/**
 * Strings of other people as they may be shown: what cannot be seen, or moves what stands beside it, is spelt out.
 * The same rule as searchblend/core/visible.py, which says why.
 */

const INVISIBLE = new RegExp(
  "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
    "\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\u{e0000}-\\u{e007f}]",
  "gu",
);

/** The string with [U+202E] for each control, bidi control and invisible sign. @param {string} text */
export function visible(text) {
  return text.replace(
    INVISIBLE,
    (sign) => `[U+${/** @type {number} */ (sign.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0")}]`,
  );
}
