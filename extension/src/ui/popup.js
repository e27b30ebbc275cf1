/** Search as you type, from the packs on this device. What is typed here goes nowhere. */

import { addressOf, searchPacks } from "../device/packs.js";
import { openOptions, openPage } from "../platform/browser.js";
import { theDevice } from "../platform/make_device.js";
import { countedMessage, message, translatePage } from "../platform/messages.js";
import { byId, element, expected, fill } from "./elements.js";
import { addressText, modeText, notUnderstoodText } from "./words.js";

/** @import { Answer } from "../core/index.js" */

const MOST = 7;
const typed = expected(byId("typed"), HTMLInputElement);

const device = await theDevice();
const [indexes, settings] = [await device.openPacks(), await device.settings()];
const queries = indexes.reduce((sum, index) => sum + index.size, 0);
/** @type {Answer[]} */
let answers = [];
let chosen = -1;

translatePage();
fill(byId("mode"), modeText(settings));
byId("mode").dataset.tone = settings.mode === "off" || settings.paused ? "wait" : "good";
fill(byId("not-understood"), notUnderstoodText(settings));
byId("settings").addEventListener("click", async () => {
  await openOptions();
  close();
});
typed.addEventListener("input", show);
typed.addEventListener("keydown", onKey);
typed.value = new URLSearchParams(location.search).get("q") ?? "";
show();
document.body.dataset.ready = "yes";

function show() {
  const query = typed.value.trim();
  answers = query === "" ? [] : searchPacks(indexes, query, MOST);
  chosen = answers.length > 0 ? 0 : -1;
  fill(byId("answers"), answers.map(row));
  typed.setAttribute("aria-expanded", String(answers.length > 0));
  fill(byId("hint"), hint(query));
  mark();
}

/** @param {Answer} answer @param {number} position */
function row({ query, url }, position) {
  return element(
    "li",
    { id: `answer-${position}`, role: "option", onclick: () => open(position), onmousemove: () => move(position) },
    element("span", { class: "query" }, query),
    url === null ? null : element("span", { class: "url" }, addressText(url, addressOf(url))),
  );
}

/** @param {string} query */
function hint(query) {
  if (indexes.length === 0) {
    return message(settings.mode === "off" ? "hint_off" : "hint_no_list");
  }
  if (query === "") return countedMessage("hint_ready", queries);
  return answers.length === 0 ? message("hint_nothing") : "";
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.key === "ArrowDown") move(Math.min(chosen + 1, answers.length - 1));
  else if (event.key === "ArrowUp") move(Math.max(chosen - 1, 0));
  else if (event.key === "Enter" && chosen >= 0) open(chosen);
  else return;
  event.preventDefault();
}

/** @param {number} position */
function move(position) {
  chosen = position;
  mark();
}

function mark() {
  for (const [i, item] of [...byId("answers").children].entries()) {
    item.setAttribute("aria-selected", String(i === chosen));
  }
  if (chosen >= 0) typed.setAttribute("aria-activedescendant", `answer-${chosen}`);
  else typed.removeAttribute("aria-activedescendant");
}

/** Open the answer's page; where there is none that may be opened, the answer is the query itself.
 * @param {number} position */
async function open(position) {
  const { query, url } = answers[position];
  const address = addressOf(url);
  if (address === null) {
    typed.value = query;
    return show();
  }
  await device.noteSuggestion(query, url);
  await openPage(address);
  close();
}
