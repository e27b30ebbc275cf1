/** The browser's extension interface. This folder alone touches it, so that all the rest runs anywhere. */

import { message } from "./messages.js";

const api = globalThis.browser ?? globalThis.chrome;

export const isFirefox =
  globalThis.browser !== undefined && typeof globalThis.browser.runtime?.getBrowserInfo === "function";

// ---- messages between pages, content scripts and the background ----

/** @param {ExtensionMessage} message */
export function ask(message) {
  return api.runtime.sendMessage(message);
}

/** `answer(message, fromPage)`; fromPage is the tab that a content script runs in, or null for our own pages.
 * @param {(message: ReceivedMessage, fromPage: {url: string, isPrivate: boolean} | null) => Promise<unknown>} answer */
export function onAsked(answer) {
  api.runtime.onMessage.addListener((message, sender, respond) => {
    const isOurs = sender.url?.startsWith(api.runtime.getURL("")) === true;
    answer(message, isOurs ? null : { url: sender.url ?? "", isPrivate: sender.tab?.incognito === true }).then(
      respond,
      () => respond(null),
    );
    return true; // the answer comes later
  });
}

// ---- life of the background ----

/** Nothing is so urgent that the browser would have to be woken more often (milliseconds). */
const SOONEST = 300_000;

/** @param {(reason: string) => void} act */
export function onStarted(act) {
  api.runtime.onStartup.addListener(() => act("startup"));
  api.runtime.onInstalled.addListener(({ reason }) => act(reason));
}

/** An alarm that survives the worker. Browsers lose alarms at times, so each start makes it anew if it is gone.
 * @param {string} name @param {number} minutes */
export async function everyMinutes(name, minutes) {
  if (!(await api.alarms.get(name))) await api.alarms.create(name, { delayInMinutes: 1, periodInMinutes: minutes });
}

/** One alarm at this time (seconds since 1970), in place of an earlier one of the name; null for none.
 * @param {string} name @param {number | null} seconds */
export async function onceAt(name, seconds) {
  if (seconds === null) await api.alarms.clear(name);
  else await api.alarms.create(name, { when: Math.max(seconds * 1000, Date.now() + SOONEST) });
}

/** @param {(name: string) => void} act */
export function onAlarm(act) {
  api.alarms.onAlarm.addListener(({ name }) => act(name));
}

// ---- permissions and content scripts ----

/** Hosts of the manifest's optional permissions, and on Firefox the kinds of data, where data will be given; must be
 * called in a user's click. @param {string[]} origins @param {{forData: boolean}} wanted */
export function requestAccess(origins, { forData }) {
  const kinds = api.runtime.getManifest().browser_specific_settings?.gecko?.data_collection_permissions?.optional ?? [];
  return api.permissions.request(
    isFirefox && forData && kinds.length > 0 ? { origins, data_collection: kinds } : { origins },
  );
}

/** @param {string[]} origins */
export async function hasAccess(origins) {
  return api.permissions.contains({ origins });
}

/** @param {string[]} origins */
export async function dropAccess(origins) {
  try {
    return await api.permissions.remove({ origins });
  } catch {
    return false; // part of the package's own permissions
  }
}

/** @param {() => void} act */
export function onAccessChanged(act) {
  api.permissions.onAdded.addListener(act);
  api.permissions.onRemoved.addListener(act);
}

/** Exactly these content scripts. @param {ContentScript[]} scripts */
export async function setContentScripts(scripts) {
  const registered = await api.scripting.getRegisteredContentScripts();
  const gone = registered.map(({ id }) => id);
  if (gone.length > 0) await api.scripting.unregisterContentScripts({ ids: gone });
  /** @type {RegisteredContentScript[]} */
  const all = scripts.map((script) => ({
    ...script,
    runAt: "document_start",
    allFrames: false,
    persistAcrossSessions: true,
  }));
  if (all.length > 0) await api.scripting.registerContentScripts(all);
}

// ---- address bar, tabs ----

/** @typedef {{text: string, kind?: "match" | "dim" | "url"}} DescriptionPart */
/** @typedef {{content: string, parts: DescriptionPart[]}} OmniboxSuggestion */
/** @typedef {"here" | "new tab"} Where */

/** Answers in the address bar; `enter` opens what was chosen.
 * @param {(typed: string) => Promise<OmniboxSuggestion[]>} suggest
 * @param {(typed: string, where: Where) => void} enter */
export function onOmnibox(suggest, enter) {
  api.omnibox.setDefaultSuggestion({ description: described([{ text: message("search") }]) });
  api.omnibox.onInputChanged.addListener((typed, respond) => {
    suggest(typed).then((suggestions) =>
      respond(suggestions.map(({ content, parts }) => ({ content, description: described(parts) }))),
    );
  });
  api.omnibox.onInputEntered.addListener((typed, disposition) =>
    enter(typed, disposition === "currentTab" ? "here" : "new tab"),
  );
}

/** Chromium's descriptions are XML, Firefox's are plain text. @param {DescriptionPart[]} parts */
function described(parts) {
  if (isFirefox) return parts.map(({ text }) => text).join("");
  return parts.map(({ text, kind }) => (kind ? `<${kind}>${escapeXml(text)}</${kind}>` : escapeXml(text))).join("");
}

/** @param {string} string */
export function escapeXml(string) {
  /** @type {Record<string, string>} */
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" };
  // XML 1.0 has no way at all to write control characters.
  return string.replace(/[\u0000-\u001f\u007f]/gu, " ").replace(/[&<>"']/gu, (character) => names[character]);
}

/** @param {string} url @param {Where} [where] */
export async function openPage(url, where = "new tab") {
  if (where === "here") await api.tabs.update({ url });
  else await api.tabs.create({ url });
}

/** @param {string} path */
export function ownPage(path) {
  return api.runtime.getURL(path);
}

export function openOptions() {
  return api.runtime.openOptionsPage();
}
