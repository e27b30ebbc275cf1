/**
 * A person's device: consent, searches, tasks, one report a round, packs.
 *
 * Storage, network, clock and lock are given to it, so that the same code runs in a browser's worker, in its pages and
 * in tests. All state is in the storage: the browser may end the worker between any two lines.
 */

import {
  bytes,
  checkEnrolment,
  checkLog,
  checkManifest,
  checkRequest,
  DEVICE_VERSION,
  errors,
  isRoundKeySigned,
  pinnedKeys,
  readAccount,
  REASONS,
  verifyManifest,
} from "../core/index.js";
import { account } from "./ledger.js";
import {
  forgetSearches,
  givesData,
  isRecording,
  keep,
  keepNotUnderstood,
  prune,
  withSuggestion,
} from "./observations.js";
import { cancel, cancelTask, cancelUncovered, mayHaveArrived, sendPending, underSendLock } from "./outbox.js";
import { openPacks, updatePack } from "./packs.js";
import { NoReport, prepareContribution, prepareReport } from "./rounds.js";
import { StorageFull } from "./storage.js";
import { Transport, Unreachable } from "./transport.js";

/** @import { EnrolmentDocument, Manifest } from "../core/index.js" */
/** @import { AgreedRecords, Enrolment, Fetch, KeptSearch, Lock, Mode, OnPoint } from "./types.d.ts" */
/** @import { SealedReport, Search, Settings, Storage, Task, Transaction } from "./types.d.ts" */
/** @typedef {Awaited<ReturnType<Device["overview"]>>} Overview */

/** @type {readonly Mode[]} */
export const MODES = Object.freeze(["off", "search", "local", "opt-in"]);
/** @type {Readonly<Settings>} */
const DEFAULTS = Object.freeze({ mode: "off", paused: false, agreedAt: null, suggestions: [], dropped: {} });
const LEFT = "left ";
/** What a device knows of a task whose manifest it has not read. */
const UNREAD = Object.freeze({ sequence: 0, round: 0, issued: 0, manifest: null, killed: false });

export class Device {
  #clock;
  #onPoint;

  /** `clock` gives seconds since 1970; `lock(name, work)` runs one work at a time; `onPoint` is for tests of
   * crashes.
   * @param {{storage: Storage, fetch: Fetch, clock: () => number, lock: Lock, onPoint?: OnPoint}} parts */
  constructor({ storage, fetch, clock, lock, onPoint = () => undefined }) {
    this.storage = storage;
    this.transport = new Transport(fetch);
    this.lock = lock;
    this.#clock = clock;
    this.#onPoint = onPoint;
  }

  now() {
    return Math.floor(this.#clock());
  }

  /** @param {string} name */
  async point(name) {
    await this.#onPoint(name);
  }

  /** Inside a transaction nothing may be awaited. @param {string} name */
  pointInTransaction(name) {
    this.#onPoint(name);
  }

  // ---- consent ----

  async settings() {
    return this.storage.read(settingsIn);
  }

  /** Off asks and sends nothing; search fetches lists and gives nothing. Both forget the searches. A pending report of
   * another group is dropped, its debit stays.
   * `agreed` is how many searches a round of each list may take, as the user was shown; what takes more gets nothing.
   * @param {Mode} mode @param {AgreedRecords} [agreed] */
  async setMode(mode, agreed = {}) {
    if (!MODES.includes(mode)) throw new errors.InvalidParameter("mode", `expected one of ${MODES.join(", ")}`);
    const now = this.now();
    await this.storage.writeDurably(async (transaction) => {
      const settings = await settingsIn(transaction);
      const agreedAt = givesData(mode) ? now : null;
      await transaction.put("settings", "settings", { ...settings, mode, agreedAt, agreed, paused: false });
      await cancelUncovered(transaction, mode);
      if (!givesData(mode)) {
        await forgetSearches(transaction);
        await forgetTokens(transaction);
      }
    });
  }

  /** @param {boolean} paused */
  async setPaused(paused) {
    await this.storage.write(async (transaction) => {
      await transaction.put("settings", "settings", { ...(await settingsIn(transaction)), paused });
    });
  }

  // ---- searches ----

  /** A clicked result of a search: kept, or the reason why not. @param {Search} search */
  async observe(search) {
    const now = this.now();
    return this.storage.write(async (transaction) => keep(transaction, await settingsIn(transaction), search, now));
  }

  /** A result was clicked whose link could not be read. */
  async noteNotUnderstood() {
    return this.storage.write(async (transaction) => keepNotUnderstood(transaction, await settingsIn(transaction)));
  }

  /** A local answer was opened: a search that follows from it is not the user's own.
   * @param {string} query @param {string | null} url */
  async noteSuggestion(query, url) {
    const now = this.now();
    await this.storage.write(async (transaction) => {
      const settings = await settingsIn(transaction);
      // Without a search that is kept there is nothing that could be taken for the user's own.
      if (isRecording(settings)) {
        await transaction.put("settings", "settings", withSuggestion(settings, query, url, now));
      }
    });
  }

  // ---- tasks ----

  /** Join the list of a document that its people gave out; `code` is an opt-in user's own, `account` the link to where
   * the tokens come from that pay for reports.
   * @param {Partial<EnrolmentDocument>} given @param {string} [code] @param {string} [account] */
  async enrol(given, code = "", account = "") {
    const { has_urls: hasUrls, ...document } = checkEnrolment(given);
    /** @type {Enrolment} */
    const enrolment = { ...document, hasUrls, code: codeOf(code), enrolledAt: this.now() };
    if (account.trim() !== "") {
      readAccount(account);
      enrolment.account = account.trim();
    }
    await this.storage.writeDurably(async (transaction) => {
      const known = await transaction.get("tasks", enrolment.task);
      // What was seen of a task outlives a second enrolment: an older manifest stays refused, a stopped task stopped.
      const memory = known ?? (await transaction.get("settings", leftKey(enrolment.task))) ?? {};
      await transaction.put("tasks", enrolment.task, { ...UNREAD, ...memory, ...enrolment, status: null });
      await transaction.remove("settings", leftKey(enrolment.task));
    });
    return enrolment.task;
  }

  /** Join the list that a package was made for: "joined", "known", or "left" by its user, who comes back only by
   * asking. @param {Partial<EnrolmentDocument>} packed @param {{again?: boolean}} [options] */
  async enrolPacked(packed, { again = false } = {}) {
    const { task } = checkEnrolment(packed);
    const [known, left] = await this.storage.read(async (transaction) => [
      await transaction.get("tasks", task),
      await transaction.get("settings", leftKey(task)),
    ]);
    if (known) return "known";
    if (left && !again) return "left";
    await this.enrol(packed);
    return "joined";
  }

  /**
   * Leave a task: what is pending is dropped, a sealed record of the newest round is asked for back; the ledger and the
   * newest manifest's number stay. True unless the service may still have such a record.
   * @param {string} task
   */
  async leave(task) {
    return underSendLock(this, async () => {
      const [enrolment, sealed] = await this.storage.writeDurably((transaction) => forgetTask(transaction, task));
      if (enrolment === null) return true;
      const answers = await Promise.all(sealed.map((report) => this.transport.withdraw(enrolment, report)));
      return answers.every(Boolean);
    });
  }

  async tasks() {
    return valuesOf(await this.storage.read((transaction) => transaction.all("tasks")));
  }

  /** Take a sealed record back while the service still takes them; one whose answer was lost is not sent again.
   * @param {string} task @param {number} round */
  async withdraw(task, round) {
    return underSendLock(this, async () => {
      const [enrolment, report] = await this.storage.writeDurably(async (transaction) => {
        const stored = await transaction.get("reports", [task, round]);
        if (stored?.status === "pending" && mayHaveArrived(stored)) await cancel(transaction, [task, round], stored);
        return /** @type {const} */ ([await transaction.get("tasks", task), stored]);
      });
      if (!enrolment || !report || !mayHaveArrived(report)) return false;
      if (!(await this.transport.withdraw(enrolment, report))) return false;
      await this.storage.write(async (transaction) => {
        const kept = await transaction.get("reports", [task, round]);
        if (kept) await transaction.put("reports", [task, round], { ...kept, status: "withdrawn" });
      });
      return true;
    });
  }

  // ---- what happens by itself ----

  /** Look at every task: manifest, report or contribution, sending, pack. Never throws; returns each task's status.
   * @param {{sendNow?: boolean}} [options] */
  async check({ sendNow = false } = {}) {
    const now = this.now();
    const { mode } = await this.storage.write(async (transaction) => {
      await prune(transaction, now);
      const settings = await settingsIn(transaction);
      if (!givesData(settings.mode)) await forgetSearches(transaction);
      return settings;
    });
    if (mode === "off") return [];
    const statuses = [];
    for (const task of await this.tasks()) statuses.push(await this.#checkTask(task, sendNow));
    return statuses;
  }

  /** When the next report wants to be sent, or null; not while everything is paused. */
  async nextSend() {
    const { settings, reports } = await this.overview();
    const times = settings.paused
      ? []
      : reports.filter(({ status }) => status === "pending").map(({ sendAfter }) => sendAfter);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** @param {Task} task @param {boolean} sendNow */
  async #checkTask(task, sendNow) {
    let code;
    try {
      code = await this.#actOn(task, sendNow);
    } catch (error) {
      code = reasonOf(error);
    }
    const status = { code, at: this.now() };
    try {
      await this.storage.write(async (transaction) => {
        const known = await transaction.get("tasks", task.task);
        if (known) await transaction.put("tasks", task.task, { ...known, status });
      });
    } catch (error) {
      if (!(error instanceof StorageFull)) throw error;
    }
    return { task: task.task, ...status };
  }

  /** @param {Task} task @param {boolean} sendNow */
  async #actOn(task, sendNow) {
    if (task.killed) return "killed";
    let manifest;
    try {
      manifest = await this.#readManifest(task);
    } catch (error) {
      // What was written down may go out although no new manifest came.
      await sendPending(this, task, { now: sendNow });
      throw error;
    }
    await this.point("manifest-read");
    if (manifest.killed) return "killed";
    const known = { ...task, manifest };
    const outcome = await this.#takePart(known, manifest);
    const sent = await sendPending(this, known, { now: sendNow });
    await updatePack(this, known, manifest);
    return sent ?? outcome;
  }

  /** The service's manifest, if it is signed by a pinned key, newer than what was seen, and within the policy.
   * @param {Task} task */
  async #readManifest(task) {
    const manifest = await verifyManifest(await this.transport.manifest(task), await pinnedKeys(task.keys));
    // A task that was joined before curators signed, or without one's key, believes the publisher.
    const curators = await pinnedKeys(task.curators ?? []);
    if (manifest.optin !== null && Object.keys(curators).length > 0 && !(await isRoundKeySigned(manifest, curators))) {
      throw new errors.PolicyRefused("wrong-curator", REASONS["wrong-curator"]);
    }
    // A clock behind what was signed is wrong: time is at least the newest manifest's.
    const now = Math.max(this.now(), task.issued);
    checkManifest(manifest, {
      now,
      sequence: task.sequence,
      round: task.round,
      deviceVersion: DEVICE_VERSION,
      task: task.task,
      manifest: task.manifest,
    });
    const pinned = await pinnedKeys(task.keys);
    const read = (/** @type {string} */ path, /** @type {number} */ most) => this.transport.log(task, path, most);
    const log = await checkLog(manifest, task.log ?? null, read, pinned);
    await this.storage.writeDurably(async (transaction) => {
      const known = await transaction.get("tasks", task.task);
      if (!known) throw new NoReport("left");
      if (manifest.sequence < known.sequence) {
        throw new errors.PolicyRefused("rolled-back", "older than a manifest that was seen");
      }
      const { sequence, round, issued } = manifest;
      // A task is stopped for good: no later manifest revives it.
      const killed = known.killed === true || manifest.killed;
      // A token of a round that is over pays for nothing any more.
      const { token, ...rest } = known;
      await transaction.put("tasks", task.task, {
        ...rest,
        ...(token?.round === round ? { token } : {}),
        sequence,
        round,
        issued: Math.max(issued, known.issued),
        manifest,
        killed,
        log: (known.log?.size ?? 0) > log.size ? known.log : log,
      });
      if (killed) await cancelTask(transaction, task.task);
    });
    return manifest;
  }

  /** Prepare what this round asks for; returns a status code. @param {Task} task @param {Manifest} manifest */
  async #takePart(task, manifest) {
    const { mode } = await this.settings();
    if (mode === "search") return "search-only";
    try {
      if (manifest.phase !== "idle") checkRequest(manifest);
      if (manifest.phase === "client" && mode === "local") await prepareReport(this, task, manifest);
      else if (manifest.phase === "opt-in" && mode === "opt-in") await prepareContribution(this, task, manifest);
      else return manifest.phase === "idle" ? "idle" : "not-asked";
      return "made";
    } catch (error) {
      if (error instanceof NoReport) return error.reason;
      throw error;
    }
  }

  // ---- what the user may see ----

  async openPacks() {
    return openPacks(this.storage);
  }

  /** Everything that a page shows, from one transaction. */
  async overview() {
    const now = this.now();
    return this.storage.read(async (transaction) => {
      const spent = account(await transaction.all("ledger"), now);
      const packs = (await transaction.all("packs")).map(([key, pack]) => ({
        task: key[0],
        slot: key[1],
        round: pack.round,
        at: pack.at,
        bytes: pack.content.length,
      }));
      return {
        settings: await settingsIn(transaction),
        left: (await transaction.all("settings"))
          .map(([key]) => key)
          .filter((key) => key.startsWith(LEFT))
          .map((key) => key.slice(LEFT.length)),
        tasks: valuesOf(await transaction.all("tasks")),
        records: valuesOf(await transaction.all("records")).reverse(),
        reports: valuesOf(await transaction.all("reports")).sort((a, b) => b.madeAt - a.madeAt),
        packs,
        spent,
      };
    });
  }

  /** All that this device holds but its credentials, as a document that JSON can carry. */
  async exported() {
    const { settings, tasks, records, reports, spent } = await this.overview();
    const ledger = (await this.storage.read((transaction) => transaction.all("ledger"))).map(
      ([[task, round], entry]) => ({ task, round, ...entry }),
    );
    const lists = tasks.map(({ account: link, token, ...task }) => ({
      ...task,
      code: Boolean(task.code),
      account: link ? readAccount(link).issuer : null,
      token: Boolean(token),
    }));
    const plain = reports.map((stored) => {
      const { bytes: content, credential: _, token, ...report } = { credential: null, token: null, ...stored };
      const paid = token ? { token: bytes.toHex(token) } : {};
      return { ...report, ...paid, bytes: content ? bytes.toHex(content) : null };
    });
    return {
      format: "searchblend-device-export",
      version: 1,
      settings,
      tasks: lists,
      records,
      reports: plain,
      ledger,
      spent,
    };
  }

  /** Forget one search. @param {KeptSearch} search */
  async forget({ query, url, at }) {
    await this.storage.write(async (transaction) => {
      for (const [key, record] of await transaction.all("records")) {
        if (record.query === query && record.url === url && record.at === at) await transaction.remove("records", key);
      }
    });
  }

  /**
   * Erase searches, reports and packs. The ledger stays, as numbers alone: without it the device would
   * answer a round a second time.
   */
  async erase() {
    await this.storage.writeDurably(async (transaction) => {
      for (const store of /** @type {const} */ (["records", "reports", "packs"])) await transaction.clear(store);
      await forgetTokens(transaction);
      const { mode, agreedAt, agreed, paused } = await settingsIn(transaction);
      await transaction.put("settings", "settings", { ...DEFAULTS, mode, agreedAt, agreed, paused });
    });
  }
}

/** The values of a store's entries. @template V @param {readonly (readonly [unknown, V])[]} entries */
function valuesOf(entries) {
  return entries.map(([, value]) => value);
}

/** Where the memory of a task is kept that was left. @param {string} task @returns {`left ${string}`} */
function leftKey(task) {
  return `${LEFT}${task}`;
}

/** @param {Transaction} transaction @returns {Promise<Settings>} */
async function settingsIn(transaction) {
  return { ...DEFAULTS, ...(await transaction.get("settings", "settings")) };
}

/** Tokens that have paid for nothing yet. @param {Transaction} transaction */
async function forgetTokens(transaction) {
  for (const [key, { token, ...task }] of await transaction.all("tasks")) {
    if (token) await transaction.put("tasks", key, task);
  }
}

/** A short code that says what went wrong and nothing about the user. @param {unknown} error */
function reasonOf(error) {
  if (error instanceof NoReport || error instanceof Unreachable || error instanceof errors.PolicyRefused) {
    return error.reason;
  }
  if (error instanceof StorageFull) return "storage-full";
  if (error instanceof errors.SearchblendError) return "garbage";
  return "internal";
}

/** It is sent in a header, which takes nothing else. @param {unknown} given */
function codeOf(given) {
  const code = String(given).trim();
  if (!/^[\x20-\x7e]*$/u.test(code)) throw new errors.InvalidParameter("code", "expected printable ASCII characters");
  return code;
}

/** Removes a task and what belongs to it; gives it, and the sealed records of its newest round that may have
 * arrived. @param {Transaction} transaction @param {string} task
 * @returns {Promise<[Task, SealedReport[]] | [null, []]>} */
async function forgetTask(transaction, task) {
  const known = await transaction.get("tasks", task);
  if (!known) return [null, []];
  const { sequence, round, issued, killed, log } = known;
  await transaction.put("settings", leftKey(task), { sequence, round, issued, killed, log });
  await transaction.remove("tasks", task);
  const own = (await transaction.all("reports")).filter(([, report]) => report.task === task);
  for (const [key] of own) await transaction.remove("reports", key);
  for (const slot of /** @type {const} */ (["current", "previous"])) await transaction.remove("packs", [task, slot]);
  return [
    known,
    own
      .map(([, report]) => report)
      .filter((report) => report.round === round)
      .filter(mayHaveArrived),
  ];
}
