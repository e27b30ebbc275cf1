/** Answers in the address bar, after the keyword and a blank. */

import { visible } from "../core/index.js";
import { addressOf, searchPacks } from "../device/packs.js";

/** @import { SearchIndex } from "../core/index.js" */
/** @import { Device } from "../device/device.js" */
/** @import { DescriptionPart, OmniboxSuggestion } from "../platform/browser.js" */

const MOST = 6;

/**
 * Suggestions for what was typed so far; content is what `omniboxEntered` gets when it is chosen: a page, or the
 * query itself where the list names no page that may be opened.
 * @param {SearchIndex[]} indexes @param {string} typed @param {number} [most] @returns {OmniboxSuggestion[]}
 */
export function omniboxSuggestions(indexes, typed, most = MOST) {
  const suggestions = searchPacks(indexes, typed, most).map(({ query, url }) => ({
    content: addressOf(url) ?? query,
    parts: partsOf(query, url),
  }));
  // Browsers want every content once.
  return suggestions.filter(({ content }, i) => suggestions.findIndex((one) => one.content === content) === i);
}

/** @param {string} query @param {string | null} url @returns {DescriptionPart[]} */
function partsOf(query, url) {
  /** @type {DescriptionPart} */
  const match = { text: visible(query), kind: "match" };
  return url === null ? [match] : [match, { text: " – ", kind: "dim" }, { text: visible(url), kind: "url" }];
}

/** Open what was chosen: a suggestion's page, else a page of the best answer, else our search page with what was
 * typed.
 * @param {Device} device @param {string} typed @param {(url: string) => Promise<void>} open
 * @param {string} searchPage */
export async function omniboxEntered(device, typed, open, searchPage) {
  const indexes = await device.openPacks();
  const answers = searchPacks(indexes, typed, MOST);
  const best = answers.find(({ query, url }) => query === answers[0].query && addressOf(url) !== null);
  const chosen = /^https?:\/\//u.test(typed) ? { query: "", url: typed } : best;
  const address = chosen ? addressOf(chosen.url) : null;
  if (!chosen || address === null) return open(`${searchPage}?q=${encodeURIComponent(typed)}`);
  await device.noteSuggestion(chosen.query, chosen.url);
  return open(address);
}
