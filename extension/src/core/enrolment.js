/**
 * What the people of a list give out to join it, as a file or in a link: the twin of wire/enrolment.py.
 *
 * A link has the document after its #, as base64url of the JSON; what stands before is a page for people, and is not
 * believed.
 */

import { fromBase64url, hasLoneSurrogate, textOf } from "./bytes.js";
import { InvalidParameter, SearchblendError } from "./errors.js";

/** @typedef {{server: string, task: string, keys: string[], curators: string[], consent: string, has_urls: boolean,
 * relay?: string}} EnrolmentDocument */

const MOST_KEYS = 16;
/** characters of a link or a file */
const LONGEST = 200_000;
const HOST = "https://(?:[a-z0-9-]+(?:\\.[a-z0-9-]+)*|\\[[0-9a-f:]+\\])|http://(?:127\\.0\\.0\\.1|localhost|\\[::1\\])";
const ORIGIN = `(?:${HOST})(?::[1-9][0-9]{0,4})?`;
const SERVER = new RegExp(`^${ORIGIN}(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`, "u");
const OPTIONAL = Object.freeze({ curators: [], consent: "", has_urls: true });

const AN_ADDRESS = "expected https://…, or http:// on this machine, without a / at the end";

/** @type {Readonly<Record<keyof EnrolmentDocument, [(value: unknown) => boolean, expected: string]>>} */
const FIELDS = Object.freeze({
  server: [isServer, AN_ADDRESS],
  task: [(value) => isMatch(value, /^[0-9a-f]{32}$/u), "expected 32 hexadecimal digits"],
  keys: [(value) => areKeys(value, 1), `expected 1 to ${MOST_KEYS} public keys, each 04 and 128 hexadecimal digits`],
  curators: [(value) => areKeys(value, 0), "expected public keys, each 04 and 128 hexadecimal digits"],
  consent: [(value) => typeof value === "string" && !hasLoneSurrogate(value), "expected a text"],
  has_urls: [(value) => typeof value === "boolean", "expected true or false"],
  relay: [isServer, AN_ADDRESS],
});

/** The document of a link, of the part after its #, or of a file. @param {string} text */
export function readEnrolment(text) {
  const given = text.length <= LONGEST ? text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/gu, "") : "";
  return checkEnrolment(parsed(given.startsWith("{") ? given : ofLink(given)));
}

/** The document with all its fields, or `InvalidParameter` with the field that is wrong.
 * @param {unknown} given @returns {EnrolmentDocument} */
export function checkEnrolment(given) {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new InvalidParameter("enrolment", "expected an enrolment link, or the JSON of an enrolment file");
  }
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(FIELDS, name));
  if (unknown !== undefined) throw new InvalidParameter(unknown, "unknown field");
  /** @type {Record<string, unknown>} */
  const document = { ...OPTIONAL, ...given };
  for (const [name, [holds, expected]] of Object.entries(FIELDS)) {
    if (name === "relay" && !Object.hasOwn(document, name)) continue; // no relay: devices ask the server
    if (!holds(document[name])) throw new InvalidParameter(name, expected);
  }
  return /** @type {EnrolmentDocument} */ (document);
}

/** Mail programs break long lines: blanks are left out. @param {string} link */
function ofLink(link) {
  const match = /^(?:.*#)?([A-Za-z0-9_-]+)$/u.exec(link.replace(/[ \t\r\n]/gu, ""));
  try {
    return match ? textOf(fromBase64url(match[1])) : "";
  } catch (error) {
    if (error instanceof SearchblendError) return "";
    throw error;
  }
}

/** @param {string} content @returns {unknown} */
function parsed(content) {
  try {
    return JSON.parse(content);
  } catch {
    return null;
  }
}

/** Plain HTTP is for a server on the same machine. @param {unknown} value */
function isServer(value) {
  return isMatch(value, SERVER) && URL.canParse(String(value));
}

/** Whether it is https://HOST, or http:// on this machine, each with a port or without, and nothing more.
 * @param {unknown} value */
export function isOrigin(value) {
  return isMatch(value, new RegExp(`^${ORIGIN}$`, "u")) && URL.canParse(String(value));
}

/** @param {unknown} value @param {number} fewest */
function areKeys(value, fewest) {
  const isMany = Array.isArray(value) && value.length >= fewest && value.length <= MOST_KEYS;
  return isMany && value.every((key) => isMatch(key, /^04[0-9a-f]{128}$/u));
}

/** @param {unknown} value @param {RegExp} pattern */
function isMatch(value, pattern) {
  return typeof value === "string" && pattern.test(value);
}
