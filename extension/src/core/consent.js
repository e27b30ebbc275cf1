/** The sentences that people agree to, computed from the mechanism: the twin of wire/consent.py. */

/** @typedef {import("./report_odds.js").ReportOdds} ReportOdds */

/** What a reader believes before a report, in the sentences that say what becomes of it. */
const BELIEF = 0.02;

/** It says how many searches are sent: a round takes up to `records` of each person. @param {number} records */
export function optinConsent(records) {
  const sent = records === 1 ? "one of my searches is" : `up to ${records} of my searches are`;
  return `I agree that ${sent} sent, sealed, to the curator of this list.`;
}

/** What opt-in users of a task agree to: our sentence, then the operator's own words, if there are any. `own` may also
 * be such a whole text: it stays as it is. @param {number} records @param {string} own */
export function taskConsent(records, own) {
  const sentence = optinConsent(records);
  const start = `${sentence}\n`;
  const words = own.startsWith(start) ? own.slice(start.length) : own;
  return words === "" || words === sentence ? sentence : start + words;
}

/** What a report gives away, as a part of a sentence. @param {ReportOdds} odds */
export function oddsWords(odds) {
  const times = timesIn100(odds.named);
  const sent =
    odds.answers > 1
      ? `each of the ${odds.answers} answers names your true search ${times}`
      : odds.mostItems > 1
        ? `your true search is among the up to ${odds.mostItems} that are sent ${times}`
        : `your true search is sent ${times}`;
  const most = Math.ceil(100 * odds.beliefAfter(BELIEF));
  const bound = most < 100 ? `at most ${most} %` : "almost certainty";
  return `${sent}, and whoever sees the report can raise a belief of 2 % that you made a search to ${bound}`;
}

/** Rounded to whole hundredths; "never" and "always" are not said of what only seldom fails.
 * @param {number} probability */
function timesIn100(probability) {
  const times = Math.floor(100 * probability + 0.5);
  if (times < 1) return "less than once in 100 times";
  if (times > 99) return "more than 99 times in 100";
  return times === 1 ? "about once in 100 times" : `about ${times} times in 100`;
}
