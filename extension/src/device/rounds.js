/**
 * What a device says in a round, made at most once.
 *
 * Where a round asks for it, a token is fetched first, and spent in the transaction of the report that it pays for.
 *
 * Under a lock, in this order: look whether the round was paid for, draw and randomize, then write the debit and the
 * exact bytes in one transaction that looks again. Only bytes that were written are ever sent. A device that stops
 * before the transaction has said nothing; one that stops after it finds the bytes and sends the same.
 */

import {
  bytes,
  checkContribution,
  checkHeadList,
  consentDigest,
  errors,
  explainReport,
  fitsSealed,
  isTokenFor,
  makeReport,
  oddsOfReport,
  pinnedKeys,
  POLICY,
  randomBelow,
  readAccount,
  readHeadList,
  requestToken,
  sealRecords,
  taskConsent,
  tokenOf,
} from "../core/index.js";
import { affords } from "./ledger.js";

/** @import { ClientManifest, DeviceRecord, Manifest, OptinManifest, TokenTerms } from "../core/index.js" */
/** @import { Device } from "./device.js" */
/** @import { Group, Key, KeptToken, Report, ReportContent, Task, Transaction } from "./types.d.ts" */
/** @typedef {ReportContent & {window: number}} Prepared what to send, and the seconds until the round closes */

/** Why a round gets no report of this device, as a code; not an error. */
export class NoReport extends Error {
  /** @param {string} reason */
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

const CREDENTIAL_BYTES = 16;
/** Reports go out at a random time of the window, but not so late that the window may close before a second try. */
const WINDOW_SHARE = 0.8;

/** The report of a client, ready to send, or `NoReport`.
 * @param {Device} device @param {Task} task @param {ClientManifest} manifest */
export async function prepareReport(device, task, manifest) {
  if (signedNow(device, task, manifest) < manifest.client.opens) throw new NoReport("not-open-yet");
  if (signedNow(device, task, manifest) >= manifest.client.closes) throw new NoReport("window-closed");
  if (manifest.client.tokens) await fetchToken(device, task, manifest, manifest.client.tokens);
  await mayTakePart(device, task, manifest, "local");
  const message = await readHeadList(
    await device.transport.artifact(task, manifest.client.artifact, "headList"),
    manifest.client,
  );
  await checkHeadList(message, manifest, await pinnedKeys(task.curators ?? []));
  await device.point("list-read");
  return underLock(device, task, manifest, "local", async (records) => {
    const chosen = choose(records, manifest.records_per_client);
    const report = await makeReport(chosen, message, task.task, manifest.round);
    const explained = await explainReport(report, message, task.task, manifest.round);
    const window = manifest.client.closes - signedNow(device, task, manifest);
    const truth = chosen.length === 1 ? chosen[0] : null;
    return { kind: "report", bytes: report, said: explained.parts, odds: oddsOfReport(message), truth, window };
  });
}

/** Have a token for this round, whether there is a search to report or not: the issuer must not learn who has one.
 * What was asked for and not answered is asked again with the same bytes, which cost no second token.
 * @param {Device} device @param {Task} task @param {ClientManifest} manifest @param {TokenTerms} terms */
async function fetchToken(device, task, manifest, terms) {
  const account = task.account ? readAccount(task.account) : null;
  if (account === null) throw new NoReport("no-account");
  // Its secret goes to no one whom the manifest alone names.
  if (account.issuer !== terms.issuer) throw new NoReport("wrong-issuer");
  const now = device.now();
  await device.storage.read((transaction) => refuseUnlessFree(transaction, task, manifest, "local", now));
  await device.lock("searchblend-token", async () => {
    const kept = await requestOf(device, task.task, manifest.round, terms);
    if (kept.token !== null) return;
    await device.point("token-asked");
    const response = await device.transport.issued(terms, account, kept.request);
    if (response === null) throw new NoReport("no-token");
    const token = await openToken(kept, response, terms);
    await device.storage.writeDurably(async (transaction) => {
      const known = await transaction.get("tasks", task.task);
      const isAsked = known?.token !== undefined && bytes.equalBytes(known.token.signed, kept.signed);
      if (isAsked) await transaction.put("tasks", task.task, { ...known, token: { ...kept, token } });
    });
    await device.point("token-kept");
  });
}

/** What is asked of the issuer, kept before it is asked. @param {Device} device @param {string} task
 * @param {number} round @param {TokenTerms} terms @returns {Promise<KeptToken>} */
async function requestOf(device, task, round, terms) {
  const before = (await device.storage.read((transaction) => transaction.get("tasks", task)))?.token;
  if (before?.round === round && (await isTokenFor(before, terms, task, round))) return before;
  const made = { ...(await requestToken(terms, task, round)), round, token: null };
  await device.storage.writeDurably(async (transaction) => {
    const known = await transaction.get("tasks", task);
    if (!known) throw new NoReport("left");
    await transaction.put("tasks", task, { ...known, token: made });
  });
  return made;
}

/** @param {KeptToken} kept @param {Uint8Array} response @param {TokenTerms} terms */
async function openToken(kept, response, terms) {
  try {
    return await tokenOf(kept, response, terms);
  } catch (error) {
    if (error instanceof errors.MessageError) throw new NoReport("no-token");
    throw error;
  }
}

/** Take the round's token out of its store. @param {Transaction} transaction @param {string} task
 * @param {number} round @returns {Promise<{token: Uint8Array}>} */
async function spendToken(transaction, task, round) {
  const known = await transaction.get("tasks", task);
  if (!known?.token?.token || known.token.round !== round) throw new NoReport("no-token");
  const { token: spent, ...rest } = known;
  await transaction.put("tasks", task, rest);
  return { token: /** @type {Uint8Array} */ (spent.token) };
}

/** The sealed records of an opt-in user, ready to send, or `NoReport`.
 * @param {Device} device @param {Task} task @param {OptinManifest} manifest */
export async function prepareContribution(device, task, manifest) {
  if (signedNow(device, task, manifest) >= manifest.optin.closes) throw new NoReport("window-closed");
  await mayTakePart(device, task, manifest, "opt-in");
  checkContribution(manifest);
  const { public_key: publicKey, consent } = manifest.optin;
  const text = taskConsent(manifest.records_per_optin, task.consent);
  if ((await consentDigest(text)) !== consent) throw new NoReport("consent-changed");
  return underLock(device, task, manifest, "opt-in", async (records) => {
    const known = records.map(({ query, url }) => ({ query, url: task.hasUrls ? url : null }));
    const chosen = distinct(known, manifest.records_per_optin);
    if (chosen.length === 0) throw new NoReport("no-record");
    const credential = task.code || bytes.toHex(crypto.getRandomValues(new Uint8Array(CREDENTIAL_BYTES)));
    const sealed = await sealRecords(
      chosen,
      { task: task.task, round: manifest.round, consent, credential },
      publicKey,
    );
    return {
      kind: "sealed",
      bytes: sealed,
      said: null,
      truth: chosen,
      credential,
      window: manifest.optin.closes - signedNow(device, task, manifest),
    };
  });
}

/**
 * @param {Device} device whose budget pays
 * @param {Task} task the list that asks
 * @param {Manifest} manifest its newest manifest
 * @param {Group} group who is asked
 * @param {(records: DeviceRecord[]) => Promise<Prepared>} make draws and randomizes, given the records of this device
 */
async function underLock(device, task, manifest, group, make) {
  return device.lock("searchblend-debit", async () => {
    await device.point("locked");
    const records = await mayTakePart(device, task, manifest, group);
    const prepared = await make(records);
    await device.point("randomized");
    return debit(device, task, manifest, group, prepared);
  });
}

/**
 * The debit and the bytes, both or neither.
 * @param {Device} device whose budget pays
 * @param {Task} task the list that asks
 * @param {Manifest} manifest its newest manifest
 * @param {Group} group who is asked
 * @param {Prepared} prepared what to send
 */
async function debit(device, task, manifest, group, { window, ...content }) {
  const now = device.now();
  /** @type {Key<"reports">} */
  const key = [task.task, manifest.round];
  const cost = costOf(manifest);
  const delay = Math.max(0, Math.min(Math.floor(window * WINDOW_SHARE), POLICY.longestDelaySeconds));
  /** @type {Report} */
  const report = {
    ...content,
    ...cost,
    task: task.task,
    round: manifest.round,
    madeAt: now,
    status: "pending",
    attempts: 0,
    sendAfter: now + (delay > 0 ? 1 + randomBelow(delay) : 0),
  };
  await device.storage.writeDurably(async (transaction) => {
    await refuseUnlessFree(transaction, task, manifest, group, now);
    const growth = content.kind === "report" && typeof content.odds === "object" ? { growth: content.odds.growth } : {};
    const at = await debitTime(transaction, now);
    await transaction.put("ledger", key, { ...cost, ...growth, at, kind: content.kind });
    device.pointInTransaction("half-written");
    const paid = manifest.client?.tokens ? await spendToken(transaction, task.task, manifest.round) : {};
    await transaction.put("reports", key, { ...report, ...paid });
    device.pointInTransaction("written");
  });
  await device.point("debited");
  return report;
}

/** The time, but never before the newest manifest was signed: a clock that was put back opens no window again.
 * @param {Device} device @param {Task} task @param {Manifest} manifest */
function signedNow(device, task, manifest) {
  return Math.max(device.now(), task.issued, manifest.issued);
}

/**
 * When a round was paid for, for the limit of a week. Signed times keep a clock that is behind from dating a debit so
 * early that it is out of the week once the clock is put right. Where that week begins is the clock's alone to say
 * (`affords`): a service that signs times ahead of it must not end the week early.
 * @param {Transaction} transaction @param {number} now
 */
async function debitTime(transaction, now) {
  const tasks = await transaction.all("tasks");
  return Math.max(now, ...tasks.map(([, { issued }]) => issued));
}

/** The records to draw from, or `NoReport`.
 * @param {Device} device @param {Task} task @param {Manifest} manifest @param {Group} group
 * @returns {Promise<DeviceRecord[]>} */
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
  if (group === "opt-in" || manifest.silent_devices !== "report_wildcard") throw new NoReport("no-record");
  return [{ query: null, url: null }];
}

/**
 * A round is paid for once, by one group, with consent that still stands, and within this device's own limit.
 * @param {Transaction} transaction what the device knows
 * @param {Task} task the list that asks
 * @param {Manifest} manifest its newest manifest
 * @param {Group} group who is asked
 * @param {number} now the device's time
 */
async function refuseUnlessFree(transaction, task, manifest, group, now) {
  const settings = await transaction.get("settings", "settings");
  if (!settings || settings.mode !== group) throw new NoReport("other-group");
  if (settings.paused) throw new NoReport("paused");
  // The number that was kept with the consent: no text can stand for it.
  const asked = group === "opt-in" ? manifest.records_per_optin : manifest.records_per_client;
  if (asked > (settings.agreed?.[task.task]?.[group] ?? 1)) throw new NoReport("more-than-agreed");
  const known = await transaction.get("tasks", task.task);
  if (!known) throw new NoReport("left");
  if (known.killed) throw new NoReport("killed");
  if (await transaction.get("ledger", [task.task, manifest.round])) throw new NoReport("done");
  if (!affords(await transaction.all("ledger"), costOf(manifest), now)) throw new NoReport("budget-spent");
}

/** @param {Manifest} manifest */
function costOf({ epsilon, delta }) {
  return { epsilon: Number(epsilon), delta: Number(delta) };
}

/** One random record where one is asked for, so that its owner can be shown it; else all, and the core draws.
 * @param {DeviceRecord[]} records @param {number} wanted */
function choose(records, wanted) {
  return wanted === 1 ? [records[randomBelow(records.length)]] : records;
}

/** So many distinct records at random; one that is too long for the message is passed over.
 * @param {DeviceRecord[]} records @param {number} wanted */
function distinct(records, wanted) {
  const left = [...records];
  /** @type {DeviceRecord[]} */
  const chosen = [];
  while (chosen.length < wanted && left.length > 0) {
    const [record] = left.splice(randomBelow(left.length), 1);
    if (fitsSealed([...chosen, record])) chosen.push(record);
  }
  return chosen;
}
