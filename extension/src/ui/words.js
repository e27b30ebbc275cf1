/** What the user reads for what the device keeps: the sentences are in _locales, the choice among them is here. */

import { mostBelief, oddsOfList, ownWords, POLICY, taskConsent } from "../core/index.js";
import { NOT_UNDERSTOOD } from "../device/observations.js";
import { mayHaveArrived } from "../device/outbox.js";
import { countedMessage, language, message } from "../platform/messages.js";

/** @import { DeviceRecord, OddsFigures } from "../core/index.js" */
/** @import { Overview } from "../device/device.js" */
/** @import { AgreedRecords, Group, Report, Settings, Task, TaskStatus } from "../device/types.d.ts" */

/** What a list asks for unless whoever runs it changes it. */
const USUAL = Object.freeze({ epsilon: 4, delta: 1e-5 });
const USUAL_QUERIES = 50;
/** the last belief that is said as a number: one that only seldom fails is no certainty */
const MOST_SURE = 99;

/** The message of a code that the device keeps, or "" for one that this version does not know.
 * @param {string} kind @param {string} code */
function messageOf(kind, code) {
  return message(`${kind}_${code.replaceAll("-", "_")}`);
}

/** @param {TaskStatus | null} status */
export function statusText(status) {
  if (!status) return message("status_none");
  return messageOf("status", status.code) || message("status_other", status.code);
}

/** "good", "wait" or "bad", for the colour beside the words. @param {TaskStatus | null} status */
export function statusTone(status) {
  if (!status) return "wait";
  if (["sent", "done", "idle", "not-asked", "made", "search-only"].includes(status.code)) return "good";
  return ["waiting", "retrying", "no-record", "paused", "other-group", "no-answer"].includes(status.code)
    ? "wait"
    : "bad";
}

/** @param {Settings} settings */
export function modeText({ mode, paused }) {
  return paused ? message("mode_paused") : messageOf("mode", mode);
}

/** @param {"idle" | "opt-in" | "client"} phase */
export function phaseText(phase) {
  return messageOf("phase", phase);
}

/** What a report gives away, as a part of a sentence. @param {OddsFigures} odds */
export function oddsText({ answers, mostItems, times, most }) {
  const often = timesText(times);
  const sent =
    answers > 1
      ? message("odds_answers", often, answers)
      : mostItems > 1
        ? message("odds_items", often, mostItems)
        : message("odds_one", often);
  return message("odds", sent, beliefText(most));
}

/** "Never" and "always" are not said of what only seldom fails. @param {number} times in 100 */
function timesText(times) {
  if (times < 1) return message("times_seldom");
  if (times > MOST_SURE) return message("times_mostly");
  return times === 1 ? message("times_once") : message("times", times);
}

/** @param {number} most in hundredths */
function beliefText(most) {
  return most > MOST_SURE ? message("belief_certain") : message("belief", most);
}

/** What a randomized report of these lists gives away. A device keeps no list of searches, so it states the worst case
 * of what each asks; before it has asked, of all that this device accepts. @param {Task[]} tasks */
export function localOddsText(tasks) {
  const known = tasks.flatMap(({ manifest }) => (manifest ? [manifest] : []));
  if (known.length === 0) {
    const { largestEpsilon: epsilon, largestDelta: delta } = POLICY;
    const usual = oddsText(oddsOfList(USUAL, USUAL_QUERIES));
    const worst = oddsText(oddsOfList({ epsilon, delta }, POLICY.fewestQueries));
    return message("local_odds_unknown", USUAL_QUERIES, USUAL.epsilon, usual, epsilon, worst, POLICY.fewestQueries);
  }
  return known
    .map(({ name, epsilon, delta, records_per_client: recordsPerClient }) => {
      const asked = { epsilon: Number(epsilon), delta: Number(delta), recordsPerClient };
      const [usual, worst] = [USUAL_QUERIES, POLICY.fewestQueries].map((queries) =>
        oddsText(oddsOfList(asked, queries)),
      );
      return message("local_odds", name, asked.epsilon, USUAL_QUERIES, usual, worst, POLICY.fewestQueries);
    })
    .join(" ");
}

/** What was given in the last days, and in all: how many reports, and what all of them together give away at most.
 * @param {Overview["spent"]} spent */
export function budgetTexts({ days, lifetime, ...recent }) {
  return [
    message("budget_recent", days, givenText(recent), togetherText(recent)),
    message("budget_all", givenText(lifetime), togetherText(lifetime)),
  ].map((words) => words.trim());
}

/** @param {{reports: number, sealed: number}} given */
function givenText({ reports, sealed }) {
  const parts = [
    reports > 0 ? countedMessage("budget_reports", reports) : "",
    sealed > 0 ? countedMessage("budget_sealed", sealed) : "",
  ].filter((part) => part !== "");
  return parts.length === 0 ? message("budget_nothing") : parts.join(message("and"));
}

/** @param {{reports: number, growth: number}} given */
function togetherText({ reports, growth }) {
  return reports === 0 ? "" : countedMessage("budget_together", reports, beliefText(mostBelief(growth)));
}

/** How many searches a round of each list takes, if it has said so: what the user is shown and agrees to.
 * @param {Task[]} tasks @returns {AgreedRecords} */
export function recordsAsked(tasks) {
  const limited = (/** @type {number | undefined} */ n) => Math.min(n ?? 1, POLICY.mostRecordsPerRound);
  return Object.fromEntries(
    tasks.map(({ task, manifest }) => [
      task,
      { local: limited(manifest?.records_per_client), "opt-in": limited(manifest?.records_per_optin) },
    ]),
  );
}

/** The most that a round of any of the lists takes. @param {AgreedRecords} asked @param {Group} group */
export function mostRecords(asked, group) {
  return Math.max(1, ...Object.values(asked).map((numbers) => numbers[group]));
}

/** What opted-in users of a list agree to, in their language, with the operator's own words; and the text as it is
 * recorded, where that is another: rounds name the SHA-256 of the English one. @param {Task} task */
export function consentText({ manifest, consent }) {
  const records = manifest?.records_per_optin ?? 1;
  const recorded = taskConsent(records, consent);
  const own = ownWords(records, consent);
  const shown = [countedMessage("optin_consent", records), ...(own === "" ? [] : [own])].join("\n");
  return { shown, recorded: language() === "en" ? null : recorded };
}

/** @param {string} words a part of a sentence */
export function sentence(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}

/** A search engine that changed its links is noticed here; an empty string if there was nothing.
 * @param {Pick<Settings, "dropped">} settings */
export function notUnderstoodText({ dropped }) {
  const clicks = dropped[NOT_UNDERSTOOD] ?? 0;
  return clicks === 0 ? "" : countedMessage("not_understood", clicks);
}

/** @param {Record<string, number>} dropped @param {number} kept */
export function droppedText(dropped, kept) {
  const first = message(kept === 0 ? "kept_none" : "kept_until");
  const parts = Object.entries(dropped).map(([code, n]) => `${n} × ${messageOf("dropped", code) || code}`);
  return parts.length === 0 ? first : `${first} ${message("kept_not", parts.join(", "))}`;
}

/** @param {Report} report */
export function reportStatusText(report) {
  // Sealed bytes that went out without an answer may be there.
  if (report.status === "cancelled" && mayHaveArrived(report)) return message("report_may_have_arrived");
  return messageOf("report", report.status);
}

/** A page as people read it: `address` is where it leads, null for a string that is not a link and is shown as it is.
 * @param {string} url @param {string | null} address */
export function addressText(url, address) {
  if (address === null) return url;
  const { host, pathname } = new URL(address);
  return host.replace(/^www\./u, "") + (pathname === "/" ? "" : readable(pathname));
}

/** Not every path is UTF-8: such a one is shown as it is written. @param {string} path */
function readable(path) {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** A record as people read it; null stands for everything that is not on the list.
 * @param {DeviceRecord} record */
export function recordText({ query, url }) {
  if (query === null) return message("not_on_the_list");
  return `${message("quoted", query)} → ${url ?? message("another_page")}`;
}

/** @param {Pick<DeviceRecord, "query">} record */
export function queryText({ query }) {
  return query === null ? message("not_on_the_list") : message("quoted", query);
}
