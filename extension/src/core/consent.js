/**
 * What people agree to: the recorded sentence, and the numbers that sentences about the odds are made of in every
 * language. The twin of wire/consent.py, which has them in English alone.
 */

import { beliefAfter } from "./report_odds.js";

/** @typedef {import("./report_odds.js").ReportOdds} ReportOdds */
/** @typedef {{answers: number, mostItems: number, times: number, most: number, growth: number}} Figures */
/** @typedef {Readonly<Figures>} OddsFigures */

/** What a reader believes before a report, in the sentences that say what becomes of it. */
const BELIEF = 0.02;

/** It says how many searches are sent: a round takes up to `records` of each person. Always in English: the round names
 * its SHA-256. @param {number} records */
export function optinConsent(records) {
  const sent = records === 1 ? "one of my searches is" : `up to ${records} of my searches are`;
  return `I agree that ${sent} sent, sealed, to the curator of this list.`;
}

/** What opt-in users of a task agree to: our sentence, then the operator's own words, if there are any. `own` may also
 * be such a whole text: it stays as it is. @param {number} records @param {string} own */
export function taskConsent(records, own) {
  const words = ownWords(records, own);
  return words === "" ? optinConsent(records) : `${optinConsent(records)}\n${words}`;
}

/** The operator's part of a text. @param {number} records @param {string} consent */
export function ownWords(records, consent) {
  const sentence = optinConsent(records);
  const start = `${sentence}\n`;
  const words = consent.startsWith(start) ? consent.slice(start.length) : consent;
  return words === sentence ? "" : words;
}

/** What a report gives away: answers in it, searches that one names at most, how often in 100 times the true one is
 * named, the most in hundredths that a belief of 2 % becomes, and the factor on the odds of any guess.
 * @param {ReportOdds} odds @returns {OddsFigures} */
export function oddsFigures({ answers, mostItems, named, growth }) {
  return Object.freeze({ answers, mostItems, times: Math.floor(100 * named + 0.5), most: mostBelief(growth), growth });
}

/** The most, in whole hundredths, that a belief of 2 % can become by what multiplies its odds by up to `growth`.
 * @param {number} growth */
export function mostBelief(growth) {
  return Math.ceil(100 * beliefAfter(BELIEF, growth));
}
