/**
 * What this device never does, whoever signs it: the twin of device/policy.py.
 *
 * Compiled in: no message can change it. A signed manifest proves who asks, not that the request is harmless.
 */

import { canonicalJson } from "./canonical.js";
import { equalBytes } from "./bytes.js";
import { InvalidParameter, PolicyRefused } from "./errors.js";
import { ReportProbabilities } from "./report_probabilities.js";
import { ReportShape } from "./report.js";
import { isDrawnByCurator } from "./signing.js";

/** @typedef {import("./head_list.js").HeadListMessage} HeadListMessage */
/** @typedef {import("./manifest.js").Manifest} Manifest */
/** @typedef {import("./signing.js").PinnedKeys} PinnedKeys */
/** @typedef {{epsilon: number, delta: number}} Cost */
/** @typedef {{now: number, sequence: number, round: number, deviceVersion: string, task?: string,
 * manifest?: Manifest | null}} DeviceMemory */

const DAY = 86_400;

export const POLICY = Object.freeze({
  /** ε of one round */
  largestEpsilon: 4,
  /** δ of one round */
  largestDelta: 1e-4,
  windowSeconds: 7 * DAY,
  /** Σ ε of the rounds within one window, over all tasks: two usual rounds */
  windowEpsilon: 8,
  /** Σ ε of all rounds: a year of ε = 4 a week */
  lifetimeEpsilon: 208,
  lifetimeDelta: 1e-2,
  /** m_C and m_O */
  mostRecordsPerRound: 20,
  /** of a head list: at ε = 4 an answer about one of 20 is untrue at least one time in four */
  fewestQueries: 20,
  mostQueries: 20_000,
  mostCells: 200_000,
  largestHeadList: 16 * 2 ** 20,
  largestReport: 64 * 2 ** 10,
  largestManifest: 64 * 2 ** 10,
  largestPack: 32 * 2 ** 20,
  longestManifestSeconds: 31 * DAY,
  clockSkewSeconds: DAY,
  /** code points, before normalization */
  longestQuery: 500,
  longestUrl: 2_000,
  /** older ones are forgotten */
  mostSearches: 1_000,
  searchSeconds: 28 * DAY,
  /** reports are sent after a random delay of up to this, within the round's window */
  longestDelaySeconds: 6 * 3600,
  /** between two tries */
  longestWaitSeconds: 3600,
});

/** The version that a task may ask for: from 0.2 on reports are paid for. */
export const DEVICE_VERSION = "0.2";

/** Why a device refuses, for people. @type {Readonly<Record<string, string>>} */
export const REASONS = Object.freeze({
  "wrong-curator": "the key of the round is not signed by the curator whose key was pinned",
  "wrong-task": "the manifest is another task's",
  expired: "the manifest has expired",
  "clock-behind": "the manifest was signed in this device's future: is the clock right?",
  "valid-too-long": "the manifest would be valid for longer than this device accepts",
  "rolled-back": "the manifest is older than one that was seen before",
  "two-faces": "the manifest differs from another one with the same number",
  "older-round": "the round is older than one that was seen before",
  "device-too-old": "the task asks for a newer version of this program",
  "over-policy": "the task asks for more than this device ever gives",
  "bad-head-list": "the head list is malformed",
  "wrong-digest": "the head list is not the one that the manifest names",
  "wrong-parameters": "the head list asks for something else than the manifest",
  "empty-list": "the head list is empty",
  "short-list": "the head list has so few searches that most answers about it would be true",
  "not-drawn": "the head list asks about searches that its curator did not draw from opt-in users",
  "log-forged": "the checkpoint of the public log carries no valid signature of a pinned key, or is malformed",
  "log-forked": "the public log is not the one that this device was shown before, with more at its end",
  "not-logged": "the manifest is not in the public log",
  "wrong-phase": "the manifest does not ask for this now",
});

/**
 * Whether a manifest may be believed now: neither older than what was seen, nor expired, nor another task's.
 *
 * `memory` is what the device knows: the time (never before the newest manifest was signed), sequence and round of the
 * newest manifest it has believed (0 at first), its own version (such as "0.1"), and, where given, its task and that
 * newest manifest itself, so that two different ones of the same number are noticed.
 * @param {Manifest} manifest @param {DeviceMemory} memory
 */
export function checkManifest(manifest, { now, sequence, round, deviceVersion, task, manifest: newest }) {
  if (task !== undefined && manifest.task !== task) refuse("wrong-task");
  if (manifest.sequence < sequence) refuse("rolled-back");
  if (newest && manifest.sequence === newest.sequence && !equalBytes(canonicalJson(manifest), canonicalJson(newest))) {
    refuse("two-faces");
  }
  if (manifest.round < round) refuse("older-round");
  if (manifest.issued > now + POLICY.clockSkewSeconds) refuse("clock-behind");
  if (manifest.expires <= now) refuse("expired");
  if (manifest.expires - manifest.issued > POLICY.longestManifestSeconds) refuse("valid-too-long");
  if (isOlder(versionOf(deviceVersion), versionOf(manifest.min_device_version))) refuse("device-too-old");
}

/** The promises of a round against the limits of this device. @param {Manifest} manifest */
export function checkRequest(manifest) {
  const records = Math.max(manifest.records_per_client, manifest.records_per_optin);
  within("epsilon", Number(manifest.epsilon), 0, POLICY.largestEpsilon);
  within("delta", Number(manifest.delta), -1, POLICY.largestDelta);
  within("records", records, 0, POLICY.mostRecordsPerRound);
  within("report_bytes", manifest.client ? manifest.client.report_bytes : 1, 0, POLICY.largestReport);
}

/** A head list (from readHeadList) against the limits, against the manifest that named it, and against its curator's
 * word; `curators` are the pinned ones, by key id.
 * @param {HeadListMessage} message @param {Manifest} manifest @param {PinnedKeys} [curators] */
export async function checkHeadList({ head, params, design, optinResult }, manifest, curators = {}) {
  if (manifest.phase !== "client") refuse("wrong-phase");
  checkRequest(manifest);
  if (head.size === 0) refuse("empty-list");
  if (head.size > POLICY.mostQueries || head.nCells > POLICY.mostCells) {
    refuse("over-policy", "list size");
  }
  const agreed = {
    epsilon: params.epsilon === Number(manifest.epsilon),
    delta: params.delta === Number(manifest.delta),
    records_per_client: params.recordsPerClient === manifest.records_per_client,
    method: (design !== null) === (manifest.method === "best"),
    mechanism: (design ? design.mechanism : "two-stage") === manifest.client.mechanism,
    // k_q = 1: a list without any URL must give the URL no budget, and only such a list may.
    query_budget_fraction: head.hasUrls === params.queryBudgetFraction < 1,
  };
  for (const [field, isSame] of Object.entries(agreed)) if (!isSame) refuse("wrong-parameters", field);
  if (sizeOf({ head, params, design }) !== manifest.client.report_bytes) refuse("wrong-parameters", "report_bytes");
  // A question about one person: a list so short that its answers are true, or queries that no one else was asked.
  if (head.size < POLICY.fewestQueries) refuse("short-list", `${head.size} instead of ${POLICY.fewestQueries}`);
  if (optinResult === null || !(await isDrawnByCurator(optinResult, head, manifest, curators))) refuse("not-drawn");
}

/** Whether a round may still be paid for; sums are over all tasks, since a person is one person.
 * @param {number} recent Σ ε within the window
 * @param {Cost} ever Σ ε and Σ δ of all rounds
 * @param {Cost} own of this round */
export function withinBudget(recent, ever, own) {
  return (
    recent + own.epsilon <= POLICY.windowEpsilon &&
    ever.epsilon + own.epsilon <= POLICY.lifetimeEpsilon &&
    ever.delta + own.delta <= POLICY.lifetimeDelta
  );
}

/** A phase opt-in against the limits. @param {Manifest} manifest */
export function checkContribution(manifest) {
  if (manifest.phase !== "opt-in") refuse("wrong-phase");
  checkRequest(manifest);
}

/** @param {Pick<HeadListMessage, "head" | "params" | "design">} message */
function sizeOf({ head, params, design }) {
  try {
    if (design === null) ReportProbabilities.of(head, params);
    return ReportShape.over(new Uint8Array(16), 0, new Uint8Array(8), head, params, design).size;
  } catch (error) {
    if (error instanceof InvalidParameter) refuse("bad-head-list", error.field);
    throw error;
  }
}

/** @param {string} field @param {number} value @param {number} above @param {number} most */
function within(field, value, above, most) {
  if (!(value > above && value <= most)) refuse("over-policy", field);
}

/** The first two numbers of "0.1" or "0.1.3"; what is not a version is newer than everything. @param {string} text */
function versionOf(text) {
  if (!/^[0-9]{1,6}(\.[0-9]{1,6}){0,3}$/.test(text)) refuse("device-too-old", "min_device_version");
  return text.split(".").map(Number).slice(0, 2);
}

/** @param {number[]} one @param {number[]} other */
function isOlder(one, other) {
  return one[0] !== other[0] ? one[0] < other[0] : (one[1] ?? -1) < (other[1] ?? -1);
}

/** @param {string} reason @param {string} [detail] @returns {never} */
export function refuse(reason, detail) {
  throw new PolicyRefused(reason, `${REASONS[reason]}${detail ? ` (${detail})` : ""}`);
}
