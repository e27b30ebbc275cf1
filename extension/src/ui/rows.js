/** The entries of the settings' lists. */

import { bytes } from "../core/index.js";
import { mayHaveArrived } from "../device/outbox.js";
import { element, when } from "./elements.js";
import { phaseText, recordText, reportStatusText, sentence, statusText, statusTone } from "./words.js";

/** @import { DeviceRecord } from "../core/index.js" */
/** @import { Overview } from "../device/device.js" */
/** @import { KeptSearch, Report, ReportStatus, Task } from "../device/types.d.ts" */

/** @param {Task[]} tasks @param {Overview["packs"]} packs @param {(task: string) => void} leave */
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
        element("h3", {}, manifest?.name ?? `List ${task.task.slice(0, 8)}…`),
        element("button", { type: "button", class: "quiet", onclick: () => leave(task.task) }, "Leave"),
      ),
      element("p", { "data-tone": statusTone(task.status), class: "task-status" }, statusText(task.status)),
      facts([
        ["Service", task.server],
        ["Round", manifest ? `${manifest.round}: ${phaseText(manifest.phase)}` : "not known yet"],
        ["Asks for", manifest ? `ε = ${Number(manifest.epsilon)}, δ = ${Number(manifest.delta)}` : "not known yet"],
        [
          "On this device",
          pack
            ? `list of round ${pack.round}, ${Math.ceil(pack.bytes / 1024)} KiB, since ${when(pack.at)}`
            : "no list yet",
        ],
        ["Checked", task.status ? when(task.status.at) : "never"],
      ]),
    );
  });
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
        element("h3", {}, `Round ${report.round}`),
        element("span", { class: "pill", "data-tone": TONES[report.status] ?? "bad" }, statusWithReason(report)),
      ),
      facts([
        ["You searched", truthText(report)],
        ["What was reported", saidText(report)],
        ...oddsFact(report),
        ["Cost", `ε = ${report.epsilon}, δ = ${report.delta}`],
        ["Made", when(report.madeAt)],
        [
          report.sentAt ? "Answered" : "Goes out",
          report.sentAt
            ? when(report.sentAt)
            : report.status === "pending"
              ? `${when(report.sendAfter)}, a time that was drawn at random`
              : "will not be sent",
        ],
      ]),
      report.bytes
        ? element(
            "details",
            {},
            element("summary", {}, `The ${report.bytes.length} bytes`),
            element("p", { class: "code" }, bytes.toHex(report.bytes)),
          )
        : null,
      report.status === "pending"
        ? element(
            "div",
            { class: "row" },
            element("button", { type: "button", class: "send-now", onclick: sendNow }, "Send now"),
          )
        : null,
      mayHaveArrived(report)
        ? element(
            "div",
            { class: "row" },
            element("button", { type: "button", onclick: () => withdraw(report) }, "Withdraw it"),
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
            "aria-label": `Forget the search ${record.query}`,
          },
          "Forget",
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
  if (report.truth) return `${recordText(report.truth)} (known to this device alone)`;
  if (report.isForgotten) return "removed after 28 days";
  return report.bytes === null ? "removed" : "several of the searches below, drawn at random";
}

/** @param {Report} report @returns {[name: string, value: string][]} */
function oddsFact(report) {
  return report.kind === "report" && report.odds ? [["What it gives away", sentence(report.odds)]] : [];
}

const SHOWN = 12;

/** A report names one item, a set of items, or nothing at all; each is possible for each truth.
 * @param {Report} report */
function saidText(report) {
  if (report.kind === "sealed") return "the same, sealed for the people who run the list";
  const parts = report.said.map(({ aboutQueries, items }) => {
    if (items.length === 0) return "nothing (drawn at random)";
    const names = items.slice(0, SHOWN).map((item) => (aboutQueries ? queryText(item) : recordText(item)));
    const more = items.length > SHOWN ? `, and ${items.length - SHOWN} more` : "";
    return items.length === 1 ? names[0] : `one of these, or none of them: ${names.join(", ")}${more}`;
  });
  return `${parts.join("; ")} (randomized)`;
}

/** @param {Pick<DeviceRecord, "query">} record */
function queryText({ query }) {
  return query === null ? "something that is not on the list" : `“${query}”`;
}
