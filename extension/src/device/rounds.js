/**
 * What a device says in a round, made at most once.
 *
 * Under a lock, in this order: look whether the round was paid for, draw and randomize, then write the debit and the
 * exact bytes in one transaction that looks again. Only bytes that were written are ever sent. A device that stops
 * before the transaction has said nothing; one that stops after it finds the bytes and sends the same.
 */

import { bytes, checkContribution, checkHeadList, consentDigest, explainReport, makeReport, POLICY, randomBelow, readHeadList, sealRecords } from "../core/index.js";
import { affords } from "./ledger.js";

/** Why nothing is said in a round, for people; not an error. */
export class NothingToSay extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

const CREDENTIAL_BYTES = 16;
/** Reports go out at a random time of the window, but not so late that the window may close before a second try. */
const WINDOW_SHARE = 0.8;

/** The report of a client, ready to send, or `NothingToSay`. */
export async function prepareReport(device, task, manifest) {
  if (device.now() < manifest.client.opens) throw new NothingToSay("not-open-yet");
  if (device.now() >= manifest.client.closes) throw new NothingToSay("window-closed");
  await mayTakePart(device, task, manifest, "local");
  const message = await readHeadList(await device.transport.artifact(task, manifest.client.artifact, "headList"), manifest.client);
  checkHeadList(message, manifest);
  await device.point("list-read");
  return underLock(device, task, manifest, "local", async (records) => {
    const chosen = choose(records, manifest.records_per_client);
    const said = await makeReport(chosen, message, task.task, manifest.round);
    const explained = await explainReport(said, message, task.task, manifest.round);
    const window = manifest.client.closes - device.now();
    const truth = chosen.length === 1 ? chosen[0] : null;
    return { kind: "report", bytes: said, said: explained.parts, truth, window };
  });
}

/** The sealed records of an opt-in user, ready to send, or `NothingToSay`. */
export async function prepareContribution(device, task, manifest) {
  if (device.now() >= manifest.optin.closes) throw new NothingToSay("window-closed");
  await mayTakePart(device, task, manifest, "opt-in");
  checkContribution(manifest);
  const { public_key: publicKey, consent } = manifest.optin;
  if ((await consentDigest(task.consent)) !== consent) throw new NothingToSay("consent-changed");
  return underLock(device, task, manifest, "opt-in", async (records) => {
    const chosen = distinct(records, manifest.records_per_optin).map(({ query, url }) => ({ query, url: task.hasUrls ? url : null }));
    if (chosen.some((record) => record.query === null)) throw new NothingToSay("no-record");
    const sealed = await sealRecords(chosen, { task: task.task, round: manifest.round, consent }, publicKey);
    const credential = task.code || bytes.toHex(crypto.getRandomValues(new Uint8Array(CREDENTIAL_BYTES)));
    return { kind: "sealed", bytes: sealed, said: null, truth: chosen, credential, window: manifest.optin.closes - device.now() };
  });
}

async function underLock(device, task, manifest, group, make) {
  return device.lock("searchblend-debit", async () => {
    await device.point("locked");
    const records = await mayTakePart(device, task, manifest, group);
    const made = await make(records);
    await device.point("randomized");
    return debit(device, task, manifest, group, made);
  });
}

/** The debit and the bytes, both or neither. */
async function debit(device, task, manifest, group, { window, ...made }) {
  const now = device.now();
  const key = [task.task, manifest.round];
  const cost = costOf(manifest);
  const delay = Math.max(0, Math.min(Math.floor(window * WINDOW_SHARE), POLICY.longestDelaySeconds));
  const report = { ...made, ...cost, task: task.task, round: manifest.round, madeAt: now, status: "pending", attempts: 0 };
  report.sendAfter = now + randomBelow(delay + 1);
  await device.storage.writeDurably(async (transaction) => {
    await refuseUnlessFree(transaction, task, manifest, group, now);
    await transaction.put("ledger", key, { ...cost, at: now, kind: made.kind });
    device.pointInTransaction("half-written");
    await transaction.put("reports", key, report);
    device.pointInTransaction("written");
  });
  await device.point("debited");
  return report;
}

/** The records to draw from, or `NothingToSay`. */
async function mayTakePart(device, task, manifest, group) {
  const now = device.now();
  const records = await device.storage.read(async (transaction) => {
    await refuseUnlessFree(transaction, task, manifest, group, now);
    return (await transaction.all("records")).map(([, record]) => record);
  });
  const own = records
    .filter((record) => record.at >= now - POLICY.searchSeconds)
    .filter((record) => manifest.engine === "any" || record.engine === manifest.engine)
    .map(({ query, url }) => ({ query, url }));
  if (own.length > 0) return own;
  if (group === "opt-in" || manifest.silent_devices !== "report_wildcard") throw new NothingToSay("no-record");
  return [{ query: null, url: null }];
}

/** A round is paid for once, by one group, with consent that still stands, and within this device's own limit. */
async function refuseUnlessFree(transaction, task, manifest, group, now) {
  const settings = await transaction.get("settings", "settings");
  if (!settings || settings.mode !== group) throw new NothingToSay("other-group");
  if (settings.paused) throw new NothingToSay("paused");
  if (!(await transaction.get("tasks", task.task))) throw new NothingToSay("left");
  if (await transaction.get("ledger", [task.task, manifest.round])) throw new NothingToSay("done");
  if (!affords(await transaction.all("ledger"), costOf(manifest), now)) throw new NothingToSay("budget-spent");
}

function costOf({ epsilon, delta }) {
  return { epsilon: Number(epsilon), delta: Number(delta) };
}

/** One random record where one is asked for, so that its owner can be shown it; else all, and the core draws. */
function choose(records, wanted) {
  return wanted === 1 ? [records[randomBelow(records.length)]] : records;
}

function distinct(records, wanted) {
  const left = [...records];
  const chosen = [];
  while (chosen.length < wanted && left.length > 0) chosen.push(...left.splice(randomBelow(left.length), 1));
  return chosen;
}
