/**
 * Strings that look like one person's own: card numbers, addresses, telephone numbers, ids, passwords in a URL. The
 * twin of suspects.py: it knows shapes, not meanings. Digits are those of every script.
 */

const D = "\\p{Nd}";
const BLANK = "[\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const IN_WORD = "[\\p{L}\\p{N}_\\-]";

const EMAIL = new RegExp(
  `[\\p{L}\\p{N}_.+\\-]+${BLANK}?(?:@|\\([aA][tT]\\)|\\[[aA][tT]\\])${BLANK}?${IN_WORD}+(?:\\.${IN_WORD}+)+`,
  "u",
);
const DIGIT_RUN = new RegExp(`(?<![${D}.])${D}(?:[ \\-.]?${D}){8,}(?![${D}.]*${D})`, "gu");
const PHONE = new RegExp(
  `(?<![\\p{L}\\p{N}_.])(?:\\+${D}{1,3}[ .\\-/]?(?:\\(0?${D}{1,4}\\)[ .\\-/]?)?${D}(?:[ .\\-/]?${D}){5,12}` +
    `|(?:1[ .\\-])?(?:\\(${D}{3}\\) ?|${D}{3}[ .\\-])${D}{3}[ .\\-]?${D}{4})(?![\\p{L}\\p{N}_.]*${D})`,
  "u",
);
const NATIONAL_ID = new RegExp(`(?<!${D})${D}{3}[ \\-]${D}{2}[ \\-]${D}{4}(?!${D})`, "u");
const IBAN = /\b[a-z]{2}[0-9]{2}(?: ?[a-z0-9]{4}){3,7}(?: ?[a-z0-9]{1,3})?\b/gi;
const BYTE = `(?:25[0-5]|2[0-4]${D}|1?${D}?${D})`;
const IP = new RegExp(`(?<![${D}.])(?:${BYTE}\\.){3}${BYTE}(?![${D}.])`, "u");
const CREDENTIALS = new RegExp(
  "^[a-z][a-z0-9+.-]*://[^/?#@]*:[^/?#@]*@" +
    "|[?&#;](?:pass(?:word|wd)?|pwd|token|access_token|session(?:id)?|sid|jsessionid|phpsessid|api_?key|auth|secret" +
    "|code)=" +
    "|;jsessionid=",
  "i",
);

/** @type {ReadonlyArray<[string, (text: string) => boolean]>} */
const CHECKS = Object.freeze([
  ["credentials-in-url", (text) => CREDENTIALS.test(text)],
  ["e-mail", (text) => EMAIL.test(text)],
  ["card-number", hasCard],
  ["phone", (text) => PHONE.test(text)],
  ["id-number", hasId],
  ["ip-address", (text) => IP.test(text)],
]);

/** The codes why a person should look at this text before it is published; empty for most. @param {string} text */
export function suspicions(text) {
  return CHECKS.filter(([, matches]) => matches(text)).map(([code]) => code);
}

/** Whether the last digit is the check digit of the others. @param {readonly number[]} digits */
export function isLuhn(digits) {
  const doubled = [...digits].reverse().map((digit, place) => digit * (1 + (place % 2)));
  return doubled.reduce((total, value) => total + (value > 9 ? value - 9 : value), 0) % 10 === 0;
}

/** Runs of 13 to 19 digits, also in groups, that are not one digit repeated. @param {string} text */
function hasCard(text) {
  return runs(text).some((run) => {
    const signs = [...run].filter((sign) => IS_DIGIT.test(sign));
    return signs.length >= 13 && signs.length <= 19 && new Set(signs).size > 1 && isLuhn(signs.map(digitValue));
  });
}

/** @param {string} text */
function hasId(text) {
  return (
    NATIONAL_ID.test(text) || hasIban(text) || runs(text).some((run) => [...run].every((sign) => IS_DIGIT.test(sign)))
  );
}

/** An IBAN's remainder by 97 is 1, its letters read as 10..35 and its first four signs last. @param {string} text */
function hasIban(text) {
  return [...text.matchAll(IBAN)].some(([iban]) => {
    const plain = iban.replaceAll(" ", "");
    if (plain.length < 15 || plain.length > 34) return false;
    const numbers = [...plain.slice(4), ...plain.slice(0, 4)].map((sign) => parseInt(sign, 36));
    return numbers.reduce((rest, value) => (rest * (value > 9 ? 100 : 10) + value) % 97, 0) === 1;
  });
}

/** @param {string} text */
function runs(text) {
  return [...text.matchAll(DIGIT_RUN)].map(([run]) => run);
}

const IS_DIGIT = new RegExp(`^${D}$`, "u");
const MATHEMATICAL = 0x1d7ce;

/**
 * 0 to 9 for a decimal digit of any script. Those are ten in a row that begin in the first or the seventh column of the
 * code chart; only the mathematical ones follow each other without a gap.
 * @param {string} sign
 */
function digitValue(sign) {
  const point = /** @type {number} */ (sign.codePointAt(0));
  if (point >= MATHEMATICAL && point < MATHEMATICAL + 50) return (point - MATHEMATICAL) % 10;
  const column = point % 16;
  return IS_DIGIT.test(String.fromCodePoint(point - column)) ? column : column - 6;
}
