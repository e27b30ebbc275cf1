/**
 * Canonical JSON: one string for one document, the twin of wire/canonical.py.
 *
 * Keys are ASCII and sorted, there is no blank, and numbers are whole and exact in a double. JSON.stringify writes the
 * strings: its escapes are the protocol's.
 */

import { equalBytes, hasLoneSurrogate, textOf, utf8 } from "./bytes.js";
import { MessageError } from "./errors.js";

const DEEPEST = 16;

/** The bytes of a document; refused if it has no canonical form. @param {unknown} document */
export function canonicalJson(document) {
  return utf8(written(document, 0));
}

/** The document of exactly these bytes; anything that is not its canonical form is refused.
 * @param {Uint8Array} content @param {string} what @returns {any} */
export function parseCanonical(content, what) {
  try {
    const document = JSON.parse(textOf(content));
    if (equalBytes(canonicalJson(document), content)) return document;
  } catch {
    // a text that is not JSON, or that has no canonical form, is refused like one that is not in it
  }
  throw new MessageError(`${what}: expected canonical JSON`);
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} value @param {number} depth @returns {string} */
function written(value, depth) {
  if (depth > DEEPEST) throw new MessageError("canonical JSON: nested too deeply");
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return writtenText(value);
  if (Array.isArray(value)) return `[${value.map((inner) => written(inner, depth + 1)).join(",")}]`;
  if (isObject(value)) return writtenObject(value, depth);
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  throw new MessageError("canonical JSON: expected whole numbers below 2^53; write others as strings");
}

/** @param {string} text */
function writtenText(text) {
  if (hasLoneSurrogate(text)) throw new MessageError("canonical JSON: a text with a lone surrogate");
  return JSON.stringify(text);
}

/** @param {Record<string, unknown>} value @param {number} depth */
function writtenObject(value, depth) {
  const keys = Object.keys(value).sort();
  if (!keys.every((key) => /^[\0-\x7f]*$/.test(key))) throw new MessageError("canonical JSON: expected ASCII keys");
  return `{${keys.map((key) => `${JSON.stringify(key)}:${written(value[key], depth + 1)}`).join(",")}}`;
}
