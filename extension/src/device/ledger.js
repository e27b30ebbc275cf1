/**
 * The device's own account of what it has said. A server's promises are not believed: the sum is kept here.
 *
 * An entry for each task and round, made before anything is sent and never taken away: neither by erasing, nor by
 * leaving a task, nor by a refusal of the server. So the sum is at least what was said. Sums are of ε and δ over all
 * tasks (basic composition).
 */

import { POLICY, withinBudget } from "../core/index.js";

/** @import { Cost, Debit } from "./types.d.ts" */
/** @typedef {readonly (readonly [unknown, Debit])[]} Entries */

/** Sums over entries [key, {epsilon, delta, at}] from this time on; an entry from the future counts too. `growth` is
 * the factor by which all randomized reports together multiply the odds of any guess.
 * @param {Entries} entries @param {number} since */
export function spentSince(entries, since) {
  const counted = entries.map(([, entry]) => entry).filter((entry) => entry.at >= since);
  const reports = counted.filter(({ kind }) => kind === "report");
  const sum = (/** @type {"epsilon" | "delta"} */ field) => counted.reduce((total, entry) => total + entry[field], 0);
  return {
    epsilon: sum("epsilon"),
    delta: sum("delta"),
    reports: reports.length,
    sealed: counted.length - reports.length,
    // The promise itself bounds a report whose own factor was not kept.
    growth: reports.reduce((product, { epsilon, growth }) => product * (growth ?? Math.exp(epsilon)), 1),
  };
}

/** What was spent in the present window and in all, beside the limits.
 * @param {Entries} entries @param {number} now */
export function account(entries, now) {
  const recent = spentSince(entries, now - POLICY.windowSeconds);
  const all = spentSince(entries, -Infinity);
  const limits = {
    limit: POLICY.windowEpsilon,
    lifetimeLimit: POLICY.lifetimeEpsilon,
    days: POLICY.windowSeconds / 86_400,
  };
  return { ...recent, ...limits, left: Math.max(0, POLICY.windowEpsilon - recent.epsilon), lifetime: all };
}

/** Whether another report of this cost stays within this device's limits.
 * @param {Entries} entries @param {Cost} cost @param {number} now */
export function affords(entries, cost, now) {
  const { epsilon, lifetime } = account(entries, now);
  return withinBudget(epsilon, lifetime, cost);
}
