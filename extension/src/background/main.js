/**
 * The background: a service worker in Chromium, an event page in Firefox. Both end it whenever it is idle, so
 * listeners are set while this file is read and nothing is kept in variables.
 */

import "../content/engines.js";
import {
  everyMinutes,
  hasAccess,
  onAccessChanged,
  onAlarm,
  onAsked,
  onceAt,
  onOmnibox,
  onStarted,
  openOptions,
  openPage,
  ownPage,
  setContentScripts,
} from "../platform/browser.js";
import { givesData } from "../device/observations.js";
import { theDevice } from "../platform/make_device.js";
import { omniboxEntered, omniboxSuggestions } from "./omnibox.js";

const CHECK = "check";
const SEND = "send";
/** Often enough for a phase of a day, seldom enough to say nothing about when the browser is used. */
const CHECK_MINUTES = 120;
const SCRIPTS = ["platform/send_message", "content/engines", "content/results", "content/observe"].map(
  (name) => `src/${name}.js`,
);

onStarted(async (reason) => {
  await everyMinutes(CHECK, CHECK_MINUTES);
  await watchSearchPages();
  if (reason === "install") await openOptions();
});
onAlarm(async (name) => {
  if (name === CHECK || name === SEND) await check();
});
onAccessChanged(watchSearchPages);
onAsked(answer);
onOmnibox(
  async (typed) => omniboxSuggestions(await (await theDevice()).openPacks(), typed),
  async (typed, where) =>
    omniboxEntered(await theDevice(), typed, (url) => openPage(url, where), ownPage("src/ui/popup.html")),
);
everyMinutes(CHECK, CHECK_MINUTES);

/** @param {ReceivedMessage} message @param {{isPrivate: boolean} | null} fromPage */
async function answer(message, fromPage) {
  const device = await theDevice();
  if (message?.type === "clicked" || message?.type === "not-understood") {
    if (fromPage === null || fromPage.isPrivate) return null;
    // The page cannot be believed about the user's consent or its own name; the device filters what it says.
    const engine = globalThis.searchblendEngines.find(({ id }) => id === message.engine);
    if (!engine) return null;
    return message.type === "clicked"
      ? device.observe({ query: message.query, url: message.url, engine: engine.id })
      : device.noteNotUnderstood();
  }
  if (fromPage !== null) return null;
  if (message?.type === "check") return check({ sendNow: message.sendNow === true });
  if (message?.type === "consent-changed") return watchSearchPages();
  return null;
}

/** Look at every task, and be awake when the next report is to be sent. @param {{sendNow?: boolean}} [options] */
async function check(options) {
  const device = await theDevice();
  const statuses = await device.check(options);
  await onceAt(SEND, await device.nextSend());
  return statuses;
}

/** Content scripts exactly where the user allowed them, and only with consent. */
async function watchSearchPages() {
  const { mode } = await (await theDevice()).settings();
  /** @type {ContentScript[]} */
  const scripts = [];
  for (const engine of givesData(mode) ? globalThis.searchblendEngines : []) {
    for (const [i, origin] of engine.origins.entries()) {
      if (!(await hasAccess([origin]))) continue;
      scripts.push({
        id: `${engine.id}-${i}`,
        matches: engine.matches.filter((match) => sameHost(match, origin)),
        js: SCRIPTS,
      });
    }
  }
  await setContentScripts(scripts);
  return scripts.length;
}

/** @param {string} match @param {string} origin */
function sameHost(match, origin) {
  return match.startsWith(origin.slice(0, -1));
}
