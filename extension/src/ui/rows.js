/** The entries of the settings' lists. */

import { bytes } from "../core/index.js";
import { mayHaveArrived } from "../device/outbox.js";
import { countedMessage, language, message } from "../platform/messages.js";
import { element, when } from "./elements.js";
import {
  oddsText,
  phaseText,
  queryText,
  recordText,
  reportStatusText,
  sentence,
  statusText,
  statusTone,
} from "./words.js";

/** @import { EnrolmentDocument } from "../core/index.js" */
/** @import { Overview } from "../device/device.js" */
/** @import { KeptSearch, Report, ReportStatus, Task } from "../device/types.d.ts" */

/** What the user gets first, what is technical folded.
 * @param {Task[]} tasks @param {Overview["packs"]} packs @param {(task: string) => void} leave */
export function taskRows(tasks, packs, leave) {
  return tasks.map((task) => {
    const pack = packs.find((one) => one.task === task.task && one.slot === "current");
    const manifest = task.manifest;
    return element(
      "div",
      { class: "entry" },
      element(
        "div",
        { class: "head" },
        element("h3", {}, manifest?.name ?? message("list_unnamed", new URL(task.server).host)),
        element("button", { type: "button", class: "quiet", onclick: () => leave(task.task) }, message("leave")),
      ),
      element("p", { "data-tone": statusTone(task.status), class: "task-status" }, statusText(task.status)),
      facts([
        [
          message("fact_on_device"),
          pack ? message("pack", pack.round, Math.ceil(pack.bytes / 1024), when(pack.at)) : message("pack_none"),
        ],
        [message("fact_checked"), task.status ? when(task.status.at) : message("never")],
      ]),
      folded(
        message("details"),
        facts([
          [message("fact_service"), task.server],
          ...relayFact(task),
          ...technicalFacts(task),
          [
            message("fact_round"),
            manifest ? `${manifest.round}: ${phaseText(manifest.phase)}` : message("unknown_yet"),
          ],
          [
            message("fact_asks"),
            manifest ? costText(Number(manifest.epsilon), Number(manifest.delta)) : message("unknown_yet"),
          ],
        ]),
      ),
    );
  });
}

/** What a link or a file says, before it is taken.
 * @param {EnrolmentDocument} document @param {string[]} keyIds of its keys @param {string[]} curatorIds */
export function enrolmentRows(document, keyIds, curatorIds) {
  const own = document.consent === "" ? message("none") : document.consent;
  return [
    facts([
      [message("fact_service"), document.server],
      ...relayFact(document),
      [message("fact_signed_by"), keyIds.join(", ")],
      [message("fact_curator"), curatorIds.length > 0 ? curatorIds.join(", ") : message("curator_none")],
      [message("fact_pages"), message(document.has_urls ? "pages_yes" : "pages_no")],
      [message("fact_own_words"), own],
    ]),
    folded(message("details"), facts(technicalFacts(document))),
  ];
}

/** @param {{relay?: string}} list @returns {[name: string, value: string][]} */
function relayFact({ relay }) {
  return relay ? [[message("fact_relay"), relay]] : [];
}

/** @param {Pick<Task, "task" | "keys" | "curators">} list @returns {[name: string, value: string][]} */
function technicalFacts({ task, keys, curators = [] }) {
  return [
    [message("fact_number"), task],
    [message("fact_keys"), keys.join(" ")],
    [message("fact_curator_keys"), curators.length > 0 ? curators.join(" ") : message("none")],
  ];
}

/** @param {string} title @param {HTMLElement} content */
function folded(title, content) {
  return element("details", {}, element("summary", {}, title), content);
}

/** @param {number} epsilon @param {number} delta */
function costText(epsilon, delta) {
  return `ε = ${epsilon.toLocaleString(language())}, δ = ${delta}`;
}

/** @type {Partial<Record<ReportStatus, string>>} */
const TONES = { sent: "good", pending: "wait" };

/** Each report: what the user really did, known to this device alone, and what was reported.
 * @param {Report[]} reports @param {{sendNow: () => void, withdraw: (report: Report) => void}} actions */
export function reportRows(reports, { sendNow, withdraw }) {
  return reports.map((report) =>
    element(
      "div",
      { class: "entry report", "data-status": report.status },
      element(
        "div",
        { class: "head" },
        element("h3", {}, message("round", report.round)),
        element("span", { class: "pill", "data-tone": TONES[report.status] ?? "bad" }, statusWithReason(report)),
      ),
      facts([
        [message("fact_truth"), truthText(report)],
        [message("fact_said"), saidText(report)],
        ...oddsFact(report),
        [message("fact_cost"), costText(report.epsilon, report.delta)],
        [message("fact_made"), when(report.madeAt)],
        [
          message(report.sentAt ? "fact_answered" : "fact_goes_out"),
          report.sentAt
            ? when(report.sentAt)
            : report.status === "pending"
              ? message("goes_out_at", when(report.sendAfter))
              : message("goes_out_never"),
        ],
      ]),
      report.bytes
        ? folded(message("bytes", report.bytes.length), element("p", { class: "code" }, bytes.toHex(report.bytes)))
        : null,
      report.status === "pending"
        ? element(
            "div",
            { class: "row" },
            element("button", { type: "button", class: "send-now", onclick: sendNow }, message("send_now")),
          )
        : null,
      mayHaveArrived(report)
        ? element(
            "div",
            { class: "row" },
            element("button", { type: "button", onclick: () => withdraw(report) }, message("withdraw")),
          )
        : null,
    ),
  );
}

/** @param {KeptSearch[]} records @param {(record: KeptSearch) => void} forget */
export function recordRows(records, forget) {
  return records.map((record) =>
    element(
      "li",
      { class: "entry" },
      element(
        "div",
        { class: "head" },
        element("span", {}, recordText(record)),
        element("span", { class: "note" }, when(record.at)),
        element(
          "button",
          {
            type: "button",
            class: "quiet",
            onclick: () => forget(record),
            "aria-label": message("forget_search", record.query),
          },
          message("forget"),
        ),
      ),
    ),
  );
}

/** @param {[name: string, value: string][]} pairs */
function facts(pairs) {
  return element(
    "dl",
    { class: "facts" },
    pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
}

/** @param {Report} report */
function statusWithReason(report) {
  return report.reason ? `${reportStatusText(report)} (${report.reason})` : reportStatusText(report);
}

/** @param {Report} report */
function truthText(report) {
  // A sealed record without a page is one of a list without pages.
  if (Array.isArray(report.truth)) {
    return report.truth.map((record) => (record.url === null ? queryText(record) : recordText(record))).join("; ");
  }
  if (report.truth) return message("truth", recordText(report.truth));
  if (report.isForgotten) return message("truth_forgotten");
  return message(report.bytes === null ? "truth_removed" : "truth_several");
}

/** @param {Report} report @returns {[name: string, value: string][]} */
function oddsFact(report) {
  if (report.kind !== "report" || !report.odds) return [];
  return [[message("fact_odds"), sentence(typeof report.odds === "string" ? report.odds : oddsText(report.odds))]];
}

const SHOWN = 12;

/** A report names one item, a set of items, or nothing at all; each is possible for each truth.
 * @param {Report} report */
function saidText(report) {
  if (report.kind === "sealed") return message("said_sealed");
  const parts = report.said.map(({ aboutQueries, items }) => {
    if (items.length === 0) return message("said_nothing");
    const names = items.slice(0, SHOWN).map((item) => (aboutQueries ? queryText(item) : recordText(item)));
    const more = items.length > SHOWN ? countedMessage("said_more", items.length - SHOWN) : "";
    return items.length === 1 ? names[0] : message("said_one_of", names.join(", ") + more);
  });
  return message("said", parts.join("; "));
}
