/** What the user reads for the codes that the device keeps. */

import { oddsOfList, POLICY, REASONS, taskConsent } from "../core/index.js";
import { NOT_UNDERSTOOD } from "../device/observations.js";
import { mayHaveArrived } from "../device/outbox.js";

/** @import { DeviceRecord } from "../core/index.js" */
/** @import { AgreedRecords, Group, Report, ReportStatus, Settings, Task, TaskStatus } from "../device/types.d.ts" */

/** What a list asks for unless whoever runs it changes it. */
const USUAL = Object.freeze({ epsilon: 4, delta: 1e-5 });
const USUAL_QUERIES = 50;

/** @type {Record<string, string>} */
const STATUS = {
  idle: "The list asks for nothing at the moment.",
  "not-asked": "This phase of the round asks the other group.",
  made: "A report was made.",
  done: "You took part in this round.",
  waiting: "A report is ready and goes out at a random time.",
  sent: "Your report was received.",
  retrying: "The service could not be reached. The same report will be sent again later.",
  refused: "The service refused the report. It will not be sent again.",
  cancelled: "A report was dropped before it was sent.",
  "no-record": "There is no search on this device to draw from yet.",
  "other-group": "You chose not to take part in this group.",
  paused: "Paused.",
  left: "You left this list.",
  "not-open-yet": "The round has not begun.",
  "window-closed": "The round is over.",
  killed: "This list was stopped for good.",
  "budget-spent": "Your privacy budget is spent for now. Nothing more is sent.",
  "consent-changed": "The list asks for consent to a different text from the one you agreed to. Nothing was sent.",
  "more-than-agreed":
    "A round takes more searches than you agreed to. Nothing was sent. If you agree, save your choice again.",
  "storage-full": "The browser's storage is full. Nothing was sent.",
  garbage: "The service's answer was not signed, or did not follow the protocol. Nothing was sent.",
  "no-answer": "The service could not be reached.",
  "too-large": "The service's answer was too large and was not read.",
  "unknown-task": "The service does not know this list.",
  internal: "Something went wrong in this extension. Nothing was sent.",
};

/** @type {Record<string, string>} */
const DROPPED = {
  "credentials-in-url": "an address with a password",
  "e-mail": "an e-mail address",
  "card-number": "a card number",
  phone: "a phone number",
  "id-number": "a long number",
  "ip-address": "an IP address",
  "unusable-query": "a search that cannot be used",
  "control-character": "hidden characters",
  "too-long": "a search or an address that is too long",
  "private-address": "a page inside a private network",
  "not-a-web-address": "not a web page",
  "own-suggestion": "opened from our own suggestions",
  "not-understood": "a result whose link this extension cannot read",
};

/** @type {Record<ReportStatus, string>} */
const REPORT_STATUS = {
  pending: "not sent yet",
  sent: "sent",
  refused: "refused",
  cancelled: "dropped",
  withdrawn: "withdrawn",
};

/** @param {TaskStatus | null} status */
export function statusText(status) {
  if (!status) return "Not checked yet.";
  // A service may answer with any name, also with one that every object has.
  if (Object.hasOwn(STATUS, status.code)) return STATUS[status.code];
  const isRefusal = Object.hasOwn(REASONS, status.code);
  return isRefusal
    ? `Refused: ${REASONS[status.code]}. Nothing was sent.`
    : `The service answered with an error (${status.code}).`;
}

/** "good", "wait" or "bad", for the colour beside the words. @param {TaskStatus | null} status */
export function statusTone(status) {
  if (!status) return "wait";
  if (["sent", "done", "idle", "not-asked", "made"].includes(status.code)) return "good";
  return ["waiting", "retrying", "no-record", "paused", "other-group", "no-answer"].includes(status.code)
    ? "wait"
    : "bad";
}

/** @param {"idle" | "opt-in" | "client"} phase */
export function phaseText(phase) {
  return (
    {
      idle: "no questions at the moment",
      "opt-in": "users who opted in are asked",
      client: "devices are asked for randomized reports",
    }[phase] ?? phase
  );
}

/** What a randomized report of these lists gives away. A device keeps no list of searches, so it states the worst case
 * of what each asks; before it has asked, of all that this device accepts. @param {Task[]} tasks */
export function localOddsText(tasks) {
  const known = tasks.flatMap(({ manifest }) => (manifest ? [manifest] : []));
  if (known.length === 0) {
    const { largestEpsilon: epsilon, largestDelta: delta } = POLICY;
    const worst = oddsOfList({ epsilon, delta }, POLICY.fewestQueries);
    const usual = oddsOfList(USUAL, USUAL_QUERIES);
    return (
      `Over ${USUAL_QUERIES} searches at ε = ${USUAL.epsilon}, which is usual, ${usual}. ` +
      `Over ${searches(POLICY.fewestQueries)} at ε = ${epsilon}, the most that this device accepts, ${worst}.`
    );
  }
  return known
    .map(({ name, epsilon, delta, records_per_client: recordsPerClient }) => {
      const asked = { epsilon: Number(epsilon), delta: Number(delta), recordsPerClient };
      return (
        `“${name}” asks for ε = ${asked.epsilon}: ` +
        `over ${USUAL_QUERIES} searches ${oddsOfList(asked, USUAL_QUERIES)}; ` +
        `at worst, over ${searches(1)}, ${oddsOfList(asked, 1)}.`
      );
    })
    .join(" ");
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

/** @param {number} records */
export function recordsText(records) {
  return records === 1 ? "one of your searches is" : `up to ${records} of your searches are`;
}

/** What opted-in users of these lists agree to. @param {Task[]} tasks */
export function consentTexts(tasks) {
  return tasks.map((task) => taskConsent(task.manifest?.records_per_optin ?? 1, task.consent));
}

/** @param {number} n */
function searches(n) {
  return n === 1 ? "a single search" : `${n} searches`;
}

/** @param {string} words a part of a sentence */
export function sentence(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}

/** A search engine that changed its links is noticed here; an empty string if there was nothing.
 * @param {Pick<Settings, "dropped">} settings */
export function notUnderstoodText({ dropped }) {
  const clicks = dropped[NOT_UNDERSTOOD] ?? 0;
  return clicks === 0
    ? ""
    : `${clicks} ${clicks === 1 ? "click on a result was" : "clicks on results were"} not understood and not kept.`;
}

/** @param {string} code */
export function droppedText(code) {
  return DROPPED[code] ?? code;
}

/** @param {Report} report */
export function reportStatusText(report) {
  // Sealed bytes that went out without an answer may be there.
  if (report.status === "cancelled" && mayHaveArrived(report)) return "dropped, but it may have arrived";
  return REPORT_STATUS[report.status] ?? report.status;
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
  if (query === null) return "something that is not on the list";
  return url === null ? `“${query}” → another page` : `“${query}” → ${url}`;
}
