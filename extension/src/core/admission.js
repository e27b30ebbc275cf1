/** Which searches may be kept on the device at all; everything else is forgotten. The twin of admission.py. */

import { normalize, normalizeUrl } from "./normalize.js";
import { POLICY } from "./policy.js";
import { suspicions } from "./suspects.js";

const BLANKS = "[\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";
/** a to z as Python matches them in any case */
const LETTER = "a-zA-Z\\u0130\\u0131\\u017f\\u212a";
const WEB = new RegExp(`^${BLANKS}[hH][tT][tT][pP][sS\\u017f]?://`);
const SCHEME = new RegExp(`^${BLANKS}[${LETTER}][${LETTER}0-9+.\\-]*:(?://|\\\\)`);
/** control characters, and those that turn the direction of the text around them */
// eslint-disable-next-line no-control-regex
const UNSHOWABLE = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const NUMERIC = /^(?:0x[0-9a-f]*|[0-9]+)$/;
const PRIVATE_SUFFIXES = Object.freeze([
  ".local",
  ".localhost",
  ".localdomain",
  ".internal",
  ".intranet",
  ".private",
  ".corp",
  ".home",
  ".lan",
  ".arpa",
  ".onion",
]);

/** @typedef {{query: string, url: string | null, reason: null} | {query: "", url: null, reason: string}} Admission */

/** Whether this search may be stored, and in which form. @param {string} query @param {string | null} [url]
 * @returns {Admission} */
export function admit(query, url = null) {
  if (isLonger(query, POLICY.longestQuery) || (url !== null && isLonger(url, POLICY.longestUrl))) {
    return refused("too-long");
  }
  const form = normalize(query);
  if (form === null || isLonger(form, POLICY.longestQuery)) return refused("unusable-query");
  if (UNSHOWABLE.test(form)) return refused("control-character");
  const [suspicion] = [...suspicions(query), ...suspicions(form)];
  if (suspicion) return refused(suspicion);
  if (SCHEME.test(form) && publicAddress(form) === null) return refused("private-address");
  if (url === null) return { query: form, url: null, reason: null };
  const [inUrl] = suspicions(url);
  if (inUrl) return refused(inUrl);
  if (!WEB.test(url)) return refused("not-a-web-address");
  const address = publicAddress(url);
  if (address === null) return refused("private-address");
  return UNSHOWABLE.test(address) ? refused("control-character") : { query: form, url: address, reason: null };
}

/** Why a search is not kept, as a code; null if it may be. @param {string} query @param {string | null} [url] */
export function whyNotKept(query, url = null) {
  return admit(query, url).reason;
}

/** @param {string} reason @returns {Admission} */
function refused(reason) {
  return { query: "", url: null, reason };
}

/** In code points. @param {string} text @param {number} limit */
function isLonger(text, limit) {
  return text.length > 2 * limit || (text.length > limit && [...text].length > limit);
}

/** A public page in normal form, without its query string: those carry sessions and searches. @param {string} url */
function publicAddress(url) {
  const address = normalizeUrl(url.split(/[?#]/, 1)[0]);
  const host = normalizeUrl(url, { hostOnly: true });
  const start = url.indexOf("://");
  const authority = (start < 0 ? url : url.slice(start + 3)).split("/", 1)[0];
  return address === null || host === null || authority.includes("@") || !isPublic(host) ? null : address;
}

/** A name with a dot, neither an address nor a name of a private network, with the usual port. @param {string} host */
function isPublic(host) {
  if (host.startsWith("[") || host.includes(":")) return false;
  const name = host.replace(/\.+$/, "");
  const labels = name.split(".");
  if (labels.length < 2 || !labels.every(Boolean) || NUMERIC.test(labels[labels.length - 1])) return false;
  return !PRIVATE_SUFFIXES.some((suffix) => `.${name}`.endsWith(suffix));
}
