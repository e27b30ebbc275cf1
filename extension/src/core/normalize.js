/**
 * One spelling for a query and for a URL, the same in logs, on devices and in lookup: the twin of normalization.py.
 *
 * - Code points: a text with one that Unicode 14.0 has not assigned, or with a lone surrogate, is unusable.
 * - Blanks are the property White_Space, written out: JavaScript's \s takes U+FEFF and leaves U+0085.
 * - Lower case is that of single code points. Σ goes first by a fixed rule, as its neighbours' properties change
 *   between Unicode versions; İ is the one code point whose full lower case has two, the same in both languages.
 *
 * Unusable strings give null and nothing throws. Both functions are idempotent.
 */

import { allAssigned } from "./unicode14.js";

const BLANK = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const GREEK = "\\u0300-\\u03ff\\u1f00-\\u1fff";
const BLANK_RUN = new RegExp(`[${BLANK}]+`, "g");
const FINAL_SIGMA = new RegExp(`(?<=[${GREEK}])Σ(?![${GREEK}])`, "g");
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//;
const HOST_AND_PORT = /^([^[\]:@/?#\\ ]*|\[[0-9a-z.:%_-]+\])(?::([0-9]*))?$/;
const DEFAULT_PORT = /** @type {Readonly<Record<string, string>>} */ (
  Object.freeze(Object.assign(Object.create(null), { http: "80", https: "443" }))
);

/** The normal form of a query: folded, with single blanks; null if nothing usable is left. @param {string} text */
export function normalize(text) {
  if (!allAssigned(text)) return null;
  const folded = singleBlanks(fold(text));
  return folded && allAssigned(folded) ? folded : null;
}

/**
 * The normal form of a URL, or of its host alone; see normalization.py for each rule.
 * @param {string} url @param {{hostOnly?: boolean}} [options]
 */
export function normalizeUrl(url, { hostOnly = false } = {}) {
  if (!allAssigned(url)) return null;
  const text = singleBlanks(url);
  const start = SCHEME.exec(text);
  if (!start && !hostOnly) return text || null;
  const scheme = start ? start[1].toLowerCase() : "";
  const afterScheme = start ? text.slice(start[0].length) : text;
  const authority = afterScheme.split(/[/?#]/, 1)[0];
  const host = hostOf(authority, scheme);
  if (hostOnly) return host && (host.includes(".") || host.startsWith("[")) ? host : null;
  if (host === null) return null;
  const rest = afterScheme.slice(authority.length).split("#", 1)[0].replace(/ +$/, "");
  return `${scheme}://${host}${rest === "/" ? "" : rest}`;
}

/** NFKC, lower case, NFKC again, as lower-case letters may compose where capitals do not. @param {string} text */
export function fold(text) {
  const composed = text.normalize("NFKC").replace(FINAL_SIGMA, "ς").replaceAll("Σ", "σ");
  return composed.toLowerCase().normalize("NFKC");
}

/** Without blanks at the ends, and with one U+0020 for each run of blanks inside. @param {string} text */
export function singleBlanks(text) {
  return text.replace(BLANK_RUN, " ").replace(/^ | $/g, "");
}

/** Host and port in normal form, without user information; null if it is not a host.
 * @param {string} authority @param {string} scheme */
function hostOf(authority, scheme) {
  const afterUser = authority.slice(authority.lastIndexOf("@") + 1);
  const hostAndPort = fold(afterUser.replace(/^ +| +$/g, ""));
  const parts = HOST_AND_PORT.exec(hostAndPort);
  if (!parts || authority.includes("\\") || !allAssigned(hostAndPort)) return null;
  const [, host, port] = parts;
  return !port || port === DEFAULT_PORT[scheme] ? host : `${host}:${port}`;
}
