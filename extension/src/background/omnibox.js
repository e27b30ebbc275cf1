/** Answers in the address bar, after the keyword and a blank. */

import { addressOf, searchPacks } from "../device/packs.js";

const MOST = 6;

/** [{content, parts}] for what was typed so far; content is what `omniboxEntered` gets when it is chosen. */
export function omniboxSuggestions(indexes, text, most = MOST) {
  const answers = searchPacks(indexes, text, most).filter(({ url }) => addressOf(url) !== null);
  return answers.map(({ query, url }) => ({
    content: addressOf(url),
    parts: [{ text: query, kind: "match" }, { text: " – ", kind: "dim" }, { text: url, kind: "url" }],
  }));
}

/** Open what was chosen: a suggestion's page, else the best answer, else our search page with what was typed. */
export async function omniboxEntered(device, text, open, searchPage) {
  const indexes = await device.openPacks();
  const best = searchPacks(indexes, text, MOST).find(({ url }) => addressOf(url) !== null);
  const chosen = /^https?:\/\//u.test(text) ? { query: "", url: text } : best;
  const address = chosen ? addressOf(chosen.url) : null;
  if (address === null) return open(`${searchPage}?q=${encodeURIComponent(text)}`);
  await device.noteSuggestion(chosen.query, chosen.url);
  return open(address);
}
