/** Sending what was written down: the same bytes until they are answered, and nothing that consent no longer covers. */

import { POLICY, randomBelow } from "../core/index.js";
import { Unreachable } from "./transport.js";

/** @import { Device } from "./device.js" */
/** @import { Service, Key, Mode, Report, ReportStatus, Sending, Transaction } from "./types.d.ts" */

const FIRST_WAIT = 30;
const GROUP_OF = Object.freeze({ report: "local", sealed: "opt-in" });

/** Send this task's pending report, if there is one and it is time; returns what became of it.
 * @param {Device} device @param {Service} task @param {{now?: boolean}} [options] */
export async function sendPending(device, task, { now = false } = {}) {
  return underSendLock(device, async () => {
    const outcomes = [];
    for (const report of await pendingOf(device, task)) {
      if (!now && device.now() < report.sendAfter) outcomes.push("waiting");
      else outcomes.push(await sendOne(device, task, report));
    }
    return outcomes.at(-1) ?? null;
  });
}

/** One at a time: what is taken back is not sent again meanwhile.
 * @template R @param {Device} device @param {() => Promise<R>} work */
export function underSendLock(device, work) {
  return device.lock("searchblend-send", work);
}

/** @param {Device} device @param {Service} task */
async function pendingOf(device, task) {
  const [settings, reports] = await device.storage.read(async (transaction) => [
    await transaction.get("settings", "settings"),
    await transaction.all("reports"),
  ]);
  if (!settings || settings.paused) return [];
  const own = reports.map(([, report]) => report).filter((report) => report.task === task.task);
  return own.filter((report) => report.status === "pending" && GROUP_OF[report.kind] === settings.mode);
}

/** @param {Device} device @param {Service} task @param {Report} report */
async function sendOne(device, task, report) {
  const status = await noteAttempt(device, report);
  if (status !== "pending") return status;
  await device.point("sending");
  const change = await answerOf(device, task, report);
  await device.point("answered");
  await device.storage.write(async (transaction) => {
    /** @type {Key<"reports">} */
    const key = [report.task, report.round];
    const kept = await transaction.get("reports", key);
    // Erased or cancelled meanwhile: the answer has nothing left to be written to.
    if (kept?.status === "pending") await transaction.put("reports", key, { ...kept, ...change });
  });
  await device.point("noted");
  return change.status === "pending" ? "retrying" : change.status;
}

/** Written before the bytes go out: a device that is ended meanwhile knows that they may have arrived.
 * @param {Device} device @param {Report} report @returns {Promise<ReportStatus>} the present status */
async function noteAttempt(device, report) {
  return device.storage.writeDurably(async (transaction) => {
    /** @type {Key<"reports">} */
    const key = [report.task, report.round];
    const kept = await transaction.get("reports", key);
    if (kept?.status === "pending") await transaction.put("reports", key, { ...kept, attempts: kept.attempts + 1 });
    return kept?.status ?? "cancelled";
  });
}

/** @param {Device} device @param {Service} task @param {Report} report
 * @returns {Promise<Partial<Sending> & Pick<Sending, "status">>} what changes in the report */
async function answerOf(device, task, report) {
  try {
    const outcome = await device.transport.send(task, report);
    const at = device.now();
    return outcome === "sent"
      ? { status: "sent", reason: null, sentAt: at }
      : { status: "refused", reason: outcome, sentAt: at };
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    const wait = Math.min(FIRST_WAIT * 2 ** Math.min(report.attempts, 20), POLICY.longestWaitSeconds);
    // Jitter, so that a service that comes back is not met by all devices at once.
    const sendAfter = device.now() + Math.max(error.retryAfter, wait + randomBelow(wait));
    return { status: "pending", reason: error.reason, sendAfter };
  }
}

/** Pending reports that the present consent does not cover any more are dropped; their debit stays.
 * @param {Transaction} transaction @param {Mode} mode */
export async function cancelUncovered(transaction, mode) {
  for (const [key, report] of await transaction.all("reports")) {
    if (report.status === "pending" && GROUP_OF[report.kind] !== mode) await cancel(transaction, key, report);
  }
}

/** What waits for a task that was stopped is dropped. @param {Transaction} transaction @param {string} task */
export async function cancelTask(transaction, task) {
  for (const [key, report] of await transaction.all("reports")) {
    if (report.status === "pending" && report.task === task) await cancel(transaction, key, report);
  }
}

/** @param {Transaction} transaction @param {Key<"reports">} key @param {Report} report */
export async function cancel(transaction, key, report) {
  const unpaid = report.kind === "report" ? { token: undefined } : {};
  await transaction.put("reports", key, { ...report, ...unpaid, bytes: null, truth: null, status: "cancelled" });
}

/** Whether a sealed record may be at the service, so that it can be taken back: also one whose answer was lost.
 * @param {Report} report @returns {report is import("./types.d.ts").SealedReport} */
export function mayHaveArrived(report) {
  const { kind, status, attempts } = report;
  return kind === "sealed" && (status === "sent" || (["pending", "cancelled"].includes(status) && attempts > 0));
}
