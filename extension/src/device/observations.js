/** Searches on this device: what is kept, for how long, and what is never written down. */

import { admit, normalize, normalizeUrl, POLICY, randomBelow } from "../core/index.js";

/** @import { Mode, Search, Settings, Suggestion, Transaction } from "./types.d.ts" */

/** A search after a local suggestion of the same query or page, this close in time, came from the suggestion. */
export const SUGGESTION_SECONDS = 1800;
const SUGGESTIONS_KEPT = 50;
export const NOT_UNDERSTOOD = "not-understood";

/** Whether a user who chose this gives data: else no search is noticed or kept. @param {Mode} mode */
export function givesData(mode) {
  return mode === "local" || mode === "opt-in";
}

/** @param {Settings} settings */
export function isRecording({ mode, paused }) {
  return givesData(mode) && !paused;
}

/** Keep a search in this transaction, or only count why it was not kept; returns which.
 * @param {Transaction} transaction @param {Settings} settings @param {Search} search @param {number} now */
export async function keep(transaction, settings, { query, url, engine }, now) {
  if (!isRecording(settings)) return "not-recording";
  const outcome = outcomeOf(settings, query, url, now);
  if (outcome.reason !== null) return countDropped(transaction, settings, outcome.reason);
  const record = { query: outcome.query, url: outcome.url, engine: String(engine), at: now };
  await transaction.put("records", [now, randomBelow(2 ** 31)], record);
  await prune(transaction, now);
  return "kept";
}

/** A result was clicked whose page cannot be told from its link: the number is all that is kept.
 * @param {Transaction} transaction @param {Settings} settings */
export async function keepNotUnderstood(transaction, settings) {
  return isRecording(settings) ? countDropped(transaction, settings, NOT_UNDERSTOOD) : "not-recording";
}

/** @param {Transaction} transaction @param {Settings} settings @param {string} reason */
async function countDropped(transaction, settings, reason) {
  const dropped = { ...settings.dropped, [reason]: (settings.dropped[reason] ?? 0) + 1 };
  await transaction.put("settings", "settings", { ...settings, dropped });
  return reason;
}

/** @param {Settings} settings @param {unknown} query @param {unknown} url @param {number} now */
function outcomeOf(settings, query, url, now) {
  if (typeof query !== "string" || typeof url !== "string") return { reason: "unusable-query" };
  const admitted = admit(query, url);
  if (admitted.reason !== null || !cameFromSuggestion(settings.suggestions, admitted, now)) return admitted;
  return { reason: "own-suggestion" };
}

/**
 * Old searches go, and the oldest of too many; so do the true searches of old reports, and suggestions that are over.
 * Entries from the future (a clock that was wrong) count as new.
 * @param {Transaction} transaction @param {number} now
 */
export async function prune(transaction, now) {
  await pruneRecords(transaction, now);
  for (const [key, report] of await transaction.all("reports")) {
    const isOld = report.madeAt < now - POLICY.searchSeconds;
    if (isOld && report.truth !== null) {
      await transaction.put("reports", key, { ...report, truth: null, isForgotten: true });
    }
  }
  const settings = await transaction.get("settings", "settings");
  const before = settings?.suggestions ?? [];
  const suggestions = recent(before, now);
  if (before.length > suggestions.length) {
    await transaction.put("settings", "settings", { ...settings, suggestions });
  }
}

/** Nothing of what was noticed stays; what was said is the report's. @param {Transaction} transaction */
export async function forgetSearches(transaction) {
  await transaction.clear("records");
  const settings = await transaction.get("settings", "settings");
  if (settings) await transaction.put("settings", "settings", { ...settings, suggestions: [] });
}

/** @param {Transaction} transaction @param {number} now */
async function pruneRecords(transaction, now) {
  const entries = await transaction.all("records");
  const tooMany = entries.length - POLICY.mostSearches;
  for (const [i, [key, record]] of entries.entries()) {
    if (i < tooMany || record.at < now - POLICY.searchSeconds) await transaction.remove("records", key);
  }
}

/** Remember that a local answer was opened, so that it is not reported as if the user had searched for it.
 * @param {Settings} settings @param {string} query @param {string | null} url @param {number} now */
export function withSuggestion(settings, query, url, now) {
  const suggestion = { query: normalize(query), url: pageOf(url), at: now };
  return { ...settings, suggestions: [...recent(settings.suggestions, now), suggestion].slice(-SUGGESTIONS_KEPT) };
}

/** @param {Suggestion[]} suggestions @param {{query: string, url: string | null}} record @param {number} now */
function cameFromSuggestion(suggestions, record, now) {
  return recent(suggestions, now).some((one) => one.url === record.url || one.query === record.query);
}

/** @param {Suggestion[]} suggestions @param {number} now */
function recent(suggestions, now) {
  return suggestions.filter((one) => Math.abs(now - one.at) <= SUGGESTION_SECONDS);
}

/** @param {string | null} url */
function pageOf(url) {
  return typeof url === "string" ? normalizeUrl(url.replace(/[?#].*$/su, "")) : null;
}
