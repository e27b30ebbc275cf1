/** The settings: consent, lists, budget, and every report as it was sent. */

import "../content/engines.js";
import { errors } from "../core/index.js";
import { ask, dropAccess, hasAccess, ownPage, requestAccess } from "../platform/browser.js";
import { StorageFull } from "../device/storage.js";
import { theDevice } from "../platform/make_device.js";
import { byId, element, expected, fill } from "./elements.js";
import { recordRows, reportRows, taskRows } from "./rows.js";
import { consentTexts, droppedText, localOddsText, mostRecords, recordsAsked, recordsText } from "./words.js";

/** @import { Mode, PackedEnrolment, Report } from "../device/types.d.ts" */
/** @typedef {SearchEngine & {isAllowed: boolean}} OfferedEngine */

const NOT_ALLOWED = "The browser did not allow it. Nothing was changed.";

const device = await theDevice();
let overview = await device.overview();
const engines = await offeredEngines();

fill(expected(document.querySelector("#engines .ticks"), HTMLElement), engines.map(engineTick));
/** @type {PackedEnrolment | null} */
const packed = await (await fetch(ownPage("enrolment.json"))).json();
await offerPackedEnrolment();
modeInput(`[value="${overview.settings.mode}"]`).checked = true;
show();

byId("enrol").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(enrol);
});
byId("rejoin").addEventListener("click", () => attempt(rejoin));
byId("modes").addEventListener("change", showOptinText);
byId("agree").addEventListener("click", () => attempt(saveChoice));
byId("pause").addEventListener("click", () => attempt(() => device.setPaused(!overview.settings.paused)));
byId("check").addEventListener("click", () => attempt(() => ask({ type: "check" })));
byId("export").addEventListener("click", () => attempt(exportAll));
byId("erase").addEventListener("click", () => attempt(eraseAll));
document.body.dataset.ready = "yes";

/** Do what a button says, then show everything anew; what goes wrong is said on top of the page.
 * @param {() => unknown} act */
async function attempt(act) {
  fill(byId("message"));
  document.body.dataset.ready = "no";
  try {
    await act();
  } catch (error) {
    showMessage(wordsFor(error), "bad");
  }
  overview = await device.overview();
  show();
  document.body.dataset.ready = "yes";
}

/** @param {string} task */
async function leave(task) {
  if (await device.leave(task)) return;
  showMessage(
    "You have left. The service did not say that your sealed record of this round is gone: it may still count it.",
    "bad",
  );
}

/** @param {unknown} error */
function wordsFor(error) {
  const isKnown = error instanceof errors.SearchblendError || error instanceof StorageFull;
  return isKnown ? error.message : "That did not work. Nothing was sent.";
}

/** @param {string} message @param {"good" | "bad"} tone */
function showMessage(message, tone) {
  byId("message").dataset.tone = tone;
  fill(byId("message"), message);
}

// ---- what buttons do ----

async function enrol() {
  const form = expected(byId("enrol"), HTMLFormElement);
  const fields = new FormData(form);
  const value = (/** @type {string} */ name) => String(fields.get(name) ?? "");
  const [keys, curators] = ["keys", "curators"].map((name) =>
    value(name)
      .split(/\s+/u)
      .filter((key) => key !== ""),
  );
  const [server, consent, code] = [value("server"), value("consent"), value("code")];
  if (!(await mayAsk(server))) return showMessage(NOT_ALLOWED, "bad");
  const task = await device.enrol({
    server,
    task: value("task"),
    keys,
    curators,
    consent,
    code,
    hasUrls: fields.has("hasUrls"),
  });
  form.reset();
  expected(byId("enrolment"), HTMLDetailsElement).open = false;
  showMessage(`Joined the list ${task.slice(0, 8)}….`, "good");
}

/** Whoever takes part already has to allow the new service's host; the browser asks only within the click itself.
 * @param {string} server */
async function mayAsk(server) {
  return overview.settings.mode === "off" || requestAccess([hostOf(server)]);
}

/** The browser's question comes first: nothing is noticed before both the user and the browser said yes. */
async function saveChoice() {
  const mode = /** @type {Mode} */ (modeInput(":checked").value);
  const agreed = recordsAsked(overview.tasks); // as the page shows it now
  const chosen = engines.filter(({ id }) => expected(byId(`engine-${id}`), HTMLInputElement).checked);
  const origins = [
    ...chosen.flatMap((engine) => engine.origins),
    ...overview.tasks.map(({ server }) => hostOf(server)),
  ];
  if (mode === "off") {
    await device.setMode("off");
    await dropAccess(engines.flatMap((engine) => engine.origins));
  } else {
    if (chosen.length === 0) return showMessage("Choose at least one search engine.", "bad");
    if (!(await requestAccess([...new Set(origins)]))) return showMessage(NOT_ALLOWED, "bad");
    await device.setMode(mode, agreed);
    await dropUnticked(chosen);
  }
  await ask({ type: "consent-changed" });
  showMessage(
    mode === "off"
      ? "Switched off. Kept searches were removed; nothing is noticed or sent."
      : "Thank you. You can change this at any time.",
    "good",
  );
  if (mode !== "off") await ask({ type: "check" });
}

/** @param {OfferedEngine[]} chosen */
async function dropUnticked(chosen) {
  for (const engine of engines) if (!chosen.includes(engine)) await dropAccess(engine.origins);
}

async function sendNow() {
  await ask({ type: "check", sendNow: true });
}

/** @param {Report} report */
async function withdraw({ task, round }) {
  const isGone = await device.withdraw(task, round);
  showMessage(
    isGone
      ? "The service removed your sealed search."
      : "The service did not remove it: it cannot be reached, never got it, or the round has gone on.",
    isGone ? "good" : "bad",
  );
}

async function exportAll() {
  const content = JSON.stringify(await device.exported(), null, 2);
  const link = element("a", {
    href: URL.createObjectURL(new Blob([content], { type: "application/json" })),
    download: "searchblend-export.json",
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function eraseAll() {
  if (!confirm("Erase all searches, reports and lists from this device?")) return;
  await device.erase();
  showMessage("Erased. The sum of your privacy budget stays.", "good");
}

// ---- what the page shows ----

function show() {
  const { settings, tasks, records, reports, packs, spent } = overview;
  const hasLeftPacked = overview.left.includes(String(packed?.task).toLowerCase());
  const isNew = tasks.length === 0 && !hasLeftPacked;
  fill(
    byId("tasks"),
    isNew
      ? element("p", { class: "note" }, "You have not joined a list yet.")
      : taskRows(tasks, packs, (task) => attempt(() => leave(task))),
  );
  fill(byId("local-odds"), localOddsText(tasks));
  const asked = recordsAsked(tasks);
  fill(byId("local-records"), recordsText(mostRecords(asked, "local")));
  fill(byId("optin-records"), recordsText(mostRecords(asked, "opt-in")));
  showOptinText();
  byId("left").hidden = !hasLeftPacked;
  if (isNew) expected(byId("enrolment"), HTMLDetailsElement).open = true;
  fill(byId("state"), settings.mode === "off" ? "Off" : settings.paused ? "Paused" : "On");
  byId("state").dataset.tone = settings.mode === "off" || settings.paused ? "wait" : "good";
  byId("pause").hidden = settings.mode === "off";
  fill(byId("pause"), settings.paused ? "Go on" : "Pause");
  expected(byId("check"), HTMLButtonElement).disabled = settings.mode === "off" || tasks.length === 0;
  fill(
    byId("budget-text"),
    `Spent in the last ${spent.days} days: ε = ${rounded(spent.epsilon)} of ${spent.limit}, in ${spent.reports} ` +
      `${spent.reports === 1 ? "report" : "reports"}. Left: ${rounded(spent.left)}. Since this extension was ` +
      `installed: ε = ${rounded(spent.lifetime.epsilon)} of ${spent.lifetimeLimit}.`,
  );
  expected(byId("budget"), HTMLProgressElement).value = spent.epsilon / spent.limit;
  fill(
    byId("reports"),
    reports.length === 0
      ? element("p", { class: "note" }, "Nothing was sent yet.")
      : reportRows(reports, { sendNow: () => attempt(sendNow), withdraw: (report) => attempt(() => withdraw(report)) }),
  );
  byId("records-list").hidden = records.length === 0;
  fill(byId("records-count"), `Show ${records.length}`);
  fill(
    byId("records"),
    recordRows(records, (record) => attempt(() => device.forget(record))),
  );
  fill(byId("dropped"), droppedSentence(settings.dropped, records.length));
}

/** @param {Record<string, number>} dropped @param {number} kept */
function droppedSentence(dropped, kept) {
  const parts = Object.entries(dropped).map(([code, n]) => `${n} × ${droppedText(code)}`);
  const first = kept === 0 ? "There are none." : "They are removed after 28 days.";
  return parts.length === 0 ? first : `${first} Noticed, but not kept: ${parts.join(", ")}.`;
}

function showOptinText() {
  const texts = consentTexts(overview.tasks);
  byId("optin-text").hidden = modeInput(":checked").value !== "opt-in" || texts.length === 0;
  fill(byId("consent-text"), texts.join("\n"));
}

/** The choice how to take part. @param {string} which the selector of one of its values */
function modeInput(which) {
  return expected(document.querySelector(`input[name=mode]${which}`), HTMLInputElement);
}

/** @param {OfferedEngine} engine */
function engineTick(engine) {
  return element(
    "label",
    {},
    element("input", {
      type: "checkbox",
      id: `engine-${engine.id}`,
      checked: engine.isAllowed && overview.settings.mode !== "off",
    }),
    engine.name,
  );
}

/** All engines that this package may ask for: the test engine only in a test's package. */
async function offeredEngines() {
  const all = await Promise.all(
    globalThis.searchblendEngines.map(async (engine) => ({ ...engine, isAllowed: await hasAccess(engine.origins) })),
  );
  return all.filter((engine) => engine.id !== "test-engine" || engine.isAllowed);
}

/** A package that was made for one list joins it without a form; taking part is still the user's choice, and so is
 * leaving. */
async function offerPackedEnrolment() {
  if (packed === null) return;
  try {
    await device.enrolPacked(packed);
    overview = await device.overview();
  } catch (error) {
    showMessage(`The list of this package cannot be joined. ${wordsFor(error)}`, "bad");
  }
}

async function rejoin() {
  if (packed === null) return;
  if (!(await mayAsk(packed.server))) return showMessage(NOT_ALLOWED, "bad");
  await device.enrolPacked(packed, { again: true });
  showMessage("Joined the list again.", "good");
}

/** The pattern of a server's host; ports are not part of it. @param {string} server */
function hostOf(server) {
  const { protocol, hostname } = new URL(server);
  return `${protocol}//${hostname}/*`;
}

/** @param {number} value */
function rounded(value) {
  return String(Math.round(value * 100) / 100);
}
