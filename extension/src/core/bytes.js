/** Bytes and the few ways in which the protocol writes them. */

import { MessageError } from "./errors.js";

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const ENCODER = new TextEncoder();
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** @param {...Uint8Array} parts */
export function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** @param {Uint8Array} one @param {Uint8Array} other */
export function equalBytes(one, other) {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

/** @param {Uint8Array} content */
export function toHex(content) {
  return Array.from(content, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Lower-case hexadecimal of an even length. @param {string} text */
export function fromHex(text) {
  if (typeof text !== "string" || !/^(?:[0-9a-f]{2})*$/.test(text)) {
    throw new MessageError("expected hexadecimal digits");
  }
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.slice(2 * i, 2 * i + 2), 16));
}

/** A text's bytes; a lone surrogate has none. @param {string} text */
export function utf8(text) {
  if (hasLoneSurrogate(text)) throw new MessageError("a text with a lone surrogate");
  return ENCODER.encode(text);
}

/** Strictly: a wrong byte throws, and a byte order mark is a character like others. @param {Uint8Array} content */
export function textOf(content) {
  try {
    return DECODER.decode(content);
  } catch {
    throw new MessageError("expected UTF-8");
  }
}

/** @param {string} text */
export function hasLoneSurrogate(text) {
  return LONE_SURROGATE.test(text);
}

/** Without padding; bits beyond the last whole byte are not looked at. @param {string} text */
export function fromBase64url(text) {
  const content = new Uint8Array(Math.floor((text.length * 6) / 8));
  let bits = 0;
  let held = 0;
  let position = 0;
  for (const sign of text) {
    const value = BASE64URL.indexOf(sign);
    if (value < 0) throw new MessageError("expected base64url");
    bits = ((bits << 6) | value) & 0xffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      content[position++] = (bits >> held) & 0xff;
    }
  }
  return content;
}

/** Without padding. @param {Uint8Array} content */
export function toBase64url(content) {
  const standard = btoa(Array.from(content, (byte) => String.fromCharCode(byte)).join(""));
  return standard.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The number as big-endian bytes. @param {number} value @param {number} width */
export function bigEndian(value, width) {
  const content = new Uint8Array(width);
  for (let i = width - 1, rest = value; i >= 0; i--, rest = Math.floor(rest / 256)) content[i] = rest % 256;
  return content;
}

/** @param {Uint8Array} content */
export function fromBigEndian(content) {
  return content.reduce((value, byte) => value * 256 + byte, 0);
}

/** @param {Uint8Array} content @returns {Promise<Uint8Array>} */
export async function sha256(content) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (content)));
}
