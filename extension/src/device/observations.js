/** Searches on this device: what is kept, for how long, and what is never written down. */

import { admit, normalize, normalizeUrl, POLICY, randomBelow } from "../core/index.js";

/** A search after a local suggestion of the same query or page, this close in time, came from the suggestion. */
export const SUGGESTION_SECONDS = 1800;
const SUGGESTIONS_KEPT = 50;

/** Keep a search in this transaction, or only count why it was not kept; says which. */
export async function keep(transaction, settings, { query, url, engine }, now) {
  if (settings.mode === "off" || settings.paused) return "not-recording";
  const outcome = outcomeOf(settings, query, url, now);
  if (outcome.reason !== null) {
    const dropped = { ...settings.dropped, [outcome.reason]: (settings.dropped[outcome.reason] ?? 0) + 1 };
    await transaction.put("settings", "settings", { ...settings, dropped });
    return outcome.reason;
  }
  const record = { query: outcome.query, url: outcome.url, engine: String(engine), at: now };
  await transaction.put("records", [now, randomBelow(2 ** 31)], record);
  await prune(transaction, now);
  return "kept";
}

function outcomeOf(settings, query, url, now) {
  if (typeof query !== "string" || typeof url !== "string") return { reason: "unusable-query" };
  const admitted = admit(query, url);
  if (admitted.reason !== null || !cameFromSuggestion(settings.suggestions, admitted, now)) return admitted;
  return { reason: "own-suggestion" };
}

/** Old searches go, and the oldest of too many. Entries from the future (a clock that was wrong) count as new. */
export async function prune(transaction, now) {
  const entries = await transaction.all("records");
  const tooMany = entries.length - POLICY.mostSearches;
  for (const [i, [key, record]] of entries.entries()) {
    if (i < tooMany || record.at < now - POLICY.searchSeconds) await transaction.remove("records", key);
  }
}

/** Remember that a local answer was opened, so that it is not reported as if the user had searched for it. */
export function withSuggestion(settings, query, url, now) {
  const suggestion = { query: normalize(query ?? ""), url: pageOf(url), at: now };
  return { ...settings, suggestions: [...settings.suggestions, suggestion].slice(-SUGGESTIONS_KEPT) };
}

function cameFromSuggestion(suggestions, record, now) {
  const recent = suggestions.filter((one) => Math.abs(now - one.at) <= SUGGESTION_SECONDS);
  return recent.some((one) => one.url === record.url || one.query === record.query);
}

function pageOf(url) {
  return typeof url === "string" ? normalizeUrl(url.replace(/[?#].*$/su, "")) : null;
}
