/** The settings: what the user wants, lists, budget, and every report as it was sent. */

import "../content/engines.js";
import { bytes, errors, keyId, readAccount, readEnrolment } from "../core/index.js";
import { givesData } from "../device/observations.js";
import { StorageFull } from "../device/storage.js";
import { ask, dropAccess, hasAccess, ownPage, requestAccess } from "../platform/browser.js";
import { theDevice } from "../platform/make_device.js";
import { countedMessage, message, translatePage } from "../platform/messages.js";
import { byId, element, expected, fill } from "./elements.js";
import { enrolmentRows, recordRows, reportRows, taskRows } from "./rows.js";
import { budgetTexts, consentText, droppedText, localOddsText, mostRecords, recordsAsked } from "./words.js";

/** @import { EnrolmentDocument } from "../core/index.js" */
/** @import { Mode, Report } from "../device/types.d.ts" */
/** @typedef {SearchEngine & {isAllowed: boolean}} OfferedEngine */

translatePage();
const device = await theDevice();
let overview = await device.overview();
const engines = await offeredEngines();
const linkForm = expected(byId("enrol"), HTMLFormElement);
const offerForm = expected(byId("offer"), HTMLFormElement);
/** What a link or a file offers, until the user takes or declines it. @type {EnrolmentDocument | null} */
let offered = null;

fill(expected(document.querySelector("#engines .ticks"), HTMLElement), engines.map(engineTick));
/** @type {EnrolmentDocument | null} */
const packed = await (await fetch(ownPage("enrolment.json"))).json();
await offerPackedEnrolment();
modeInput(`[value="${overview.settings.mode}"]`).checked = true;
show();

onSubmit(linkForm, lookAtEntered);
onSubmit(offerForm, join);
byId("decline").addEventListener("click", () => attempt(() => offer(null)));
byId("rejoin").addEventListener("click", () => attempt(rejoin));
byId("modes").addEventListener("change", showChoice);
byId("agree").addEventListener("click", () => attempt(saveChoice));
byId("pause").addEventListener("click", () => attempt(() => device.setPaused(!overview.settings.paused)));
byId("check").addEventListener("click", () => attempt(() => ask({ type: "check" })));
byId("export").addEventListener("click", () => attempt(exportAll));
byId("erase").addEventListener("click", () => attempt(eraseAll));
addEventListener("hashchange", () => attempt(lookAtAddress));
if (location.hash.length > 1) await attempt(lookAtAddress);
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

/** @param {HTMLFormElement} form @param {() => unknown} act */
function onSubmit(form, act) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(act);
  });
}

/** A wrong field of an enrolment is named; other errors are not for people. @param {unknown} error */
function wordsFor(error) {
  if (error instanceof StorageFull) return message("status_storage_full");
  if (!(error instanceof errors.InvalidParameter)) return message("failed");
  return message(`wrong_${error.field}`) || message("wrong_extra", error.field);
}

/** @param {string} words @param {"good" | "bad"} tone */
function showMessage(words, tone) {
  byId("message").dataset.tone = tone;
  fill(byId("message"), words);
}

// ---- joining a list: look first, then take ----

/** The link that was pasted, or else the file that was chosen. */
async function lookAtEntered() {
  const fields = new FormData(linkForm);
  const [link, file] = [String(fields.get("link") ?? ""), fields.get("file")];
  const isFile = link.trim() === "" && file instanceof File;
  await offer(readEnrolment(isFile ? await file.text() : link));
}

/** This page was opened with a link's part after the #. */
async function lookAtAddress() {
  await offer(readEnrolment(location.hash));
}

/** Show what a link or a file says; nothing is taken before the user joins.
 * @param {EnrolmentDocument | null} document */
async function offer(document) {
  offered = document;
  offerForm.reset();
  history.replaceState(null, "", location.pathname);
  if (document === null) return;
  const ids = (/** @type {string[]} */ points) => Promise.all(points.map((point) => keyId(bytes.fromHex(point))));
  fill(byId("offer-facts"), enrolmentRows(document, await ids(document.keys), await ids(document.curators)));
  linkForm.reset();
  expected(byId("enrolment"), HTMLDetailsElement).open = false;
  byId("offer").hidden = false;
  byId("offer").scrollIntoView({ block: "center" });
}

async function join() {
  if (offered === null) return;
  const fields = new FormData(offerForm);
  const [code, account] = [String(fields.get("code") ?? ""), String(fields.get("account") ?? "")];
  const hosts = [askedOf(offered), ...(account.trim() === "" ? [] : [readAccount(account).issuer])];
  if (!(await mayAsk(hosts))) return showMessage(message("not_allowed"), "bad");
  await device.enrol(offered, code, account);
  const isOn = overview.settings.mode !== "off";
  await offer(null);
  if (isOn) await ask({ type: "check" });
  showMessage(message(isOn ? "joined" : "joined_off"), "good");
}

/** Where lists are fetched already, the new service's host has to be allowed, and the issuer's; the browser asks only
 * within the click itself. @param {string[]} servers */
async function mayAsk(servers) {
  const { mode } = overview.settings;
  return mode === "off" || requestAccess(servers.map(hostOf), { forData: givesData(mode) });
}

/** A package that was made for one list joins it without a link; what to give is still the user's choice, and so is
 * leaving. */
async function offerPackedEnrolment() {
  if (packed === null) return;
  try {
    await device.enrolPacked(packed);
    overview = await device.overview();
  } catch (error) {
    showMessage(message("packed_failed", wordsFor(error)), "bad");
  }
}

async function rejoin() {
  if (packed === null) return;
  if (!(await mayAsk([askedOf(packed)]))) return showMessage(message("not_allowed"), "bad");
  await device.enrolPacked(packed, { again: true });
  showMessage(message("rejoined"), "good");
}

/** @param {string} task */
async function leave(task) {
  if (!(await device.leave(task))) showMessage(message("left_unanswered"), "bad");
}

// ---- what other buttons do ----

/** The browser's question comes first: nothing is noticed before both the user and the browser said yes. */
async function saveChoice() {
  const mode = chosenMode();
  const agreed = recordsAsked(overview.tasks); // as the page shows it now
  const forData = givesData(mode);
  const chosen = forData ? engines.filter(({ id }) => expected(byId(`engine-${id}`), HTMLInputElement).checked) : [];
  if (forData && chosen.length === 0) return showMessage(message("choose_engine"), "bad");
  const services = mode === "off" ? [] : overview.tasks.flatMap(serversOf).map(hostOf);
  const origins = [...new Set([...chosen.flatMap((engine) => engine.origins), ...services])];
  if (origins.length > 0 && !(await requestAccess(origins, { forData }))) {
    return showMessage(message("not_allowed"), "bad");
  }
  await device.setMode(mode, forData ? agreed : {});
  for (const engine of engines) if (!chosen.includes(engine)) await dropAccess(engine.origins);
  await ask({ type: "consent-changed" });
  if (mode !== "off") await ask({ type: "check" });
  const isWithoutList = mode !== "off" && overview.tasks.length === 0;
  showMessage(message(isWithoutList ? "saved_without_list" : `saved_${forData ? "giving" : mode}`), "good");
}

async function sendNow() {
  await ask({ type: "check", sendNow: true });
}

/** @param {Report} report */
async function withdraw({ task, round }) {
  const isGone = await device.withdraw(task, round);
  showMessage(message(isGone ? "withdrawn" : "not_withdrawn"), isGone ? "good" : "bad");
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
  if (!confirm(message("erase_question"))) return;
  await device.erase();
  showMessage(message("erased"), "good");
}

// ---- what the page shows ----

function show() {
  const { settings, tasks, records, reports, packs, spent } = overview;
  const hasLeftPacked = packed !== null && overview.left.includes(packed.task);
  const isNew = tasks.length === 0 && !hasLeftPacked;
  fill(
    byId("tasks"),
    isNew
      ? element("p", { class: "note" }, message("list_none"))
      : taskRows(tasks, packs, (task) => attempt(() => leave(task))),
  );
  byId("offer").hidden = offered === null;
  byId("left").hidden = !hasLeftPacked;
  if (isNew && offered === null) expected(byId("enrolment"), HTMLDetailsElement).open = true;
  const asked = recordsAsked(tasks);
  fill(byId("local-note"), countedMessage("choice_local_note", mostRecords(asked, "local"), localOddsText(tasks)));
  fill(byId("optin-note"), countedMessage("choice_optin_note", mostRecords(asked, "opt-in")));
  showChoice();
  const isOn = settings.mode !== "off" && !settings.paused;
  fill(byId("state"), message(settings.paused ? "mode_paused" : isOn ? "state_on" : "mode_off"));
  byId("state").dataset.tone = isOn ? "good" : "wait";
  byId("pause").hidden = !givesData(settings.mode);
  fill(byId("pause"), message(settings.paused ? "resume" : "pause"));
  expected(byId("check"), HTMLButtonElement).disabled = settings.mode === "off" || tasks.length === 0;
  showBudget(spent);
  fill(
    byId("reports"),
    reports.length === 0
      ? element("p", { class: "note" }, message("reports_none"))
      : reportRows(reports, { sendNow: () => attempt(sendNow), withdraw: (report) => attempt(() => withdraw(report)) }),
  );
  byId("records-list").hidden = records.length === 0;
  fill(byId("records-count"), countedMessage("records_show", records.length));
  fill(
    byId("records"),
    recordRows(records, (record) => attempt(() => device.forget(record))),
  );
  fill(byId("dropped"), droppedText(settings.dropped, records.length));
}

/** @param {typeof overview.spent} spent */
function showBudget(spent) {
  const [recent, all] = budgetTexts(spent);
  fill(byId("budget-recent"), recent);
  fill(byId("budget-all"), all);
  const { days, epsilon, limit, left, lifetime, lifetimeLimit } = spent;
  fill(byId("budget-text"), message("budget_epsilon", days, epsilon, limit, left, lifetime.epsilon, lifetimeLimit));
  expected(byId("budget"), HTMLProgressElement).value = epsilon / limit;
}

/** What follows from the choice that is ticked now: what is noticed where, and for opt-in users the text. */
function showChoice() {
  const mode = chosenMode();
  byId("giving").hidden = !givesData(mode);
  byId("optin-text").hidden = mode !== "opt-in" || overview.tasks.length === 0;
  fill(byId("consent-text"), overview.tasks.map(consentText).flatMap(consentBlock));
}

/** @param {ReturnType<typeof consentText>} text */
function consentBlock({ shown, recorded }) {
  const block = element("blockquote", {}, shown);
  if (recorded === null) return [block];
  const original = element("blockquote", { class: "note", lang: "en" }, recorded);
  return [block, element("p", { class: "note" }, message("optin_recorded")), original];
}

/** @returns {Mode} */
function chosenMode() {
  return /** @type {Mode} */ (modeInput(":checked").value);
}

/** The choice what to give. @param {string} which the selector of one of its values */
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
      checked: engine.isAllowed && givesData(overview.settings.mode),
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

/** Whom a task makes this device ask: its service or a relay, and the issuer of its tokens.
 * @param {{server: string, relay?: string, account?: string}} task */
function serversOf(task) {
  return task.account ? [askedOf(task), readAccount(task.account).issuer] : [askedOf(task)];
}

/** @param {{server: string, relay?: string}} service */
function askedOf({ server, relay }) {
  return relay ?? server;
}

/** The pattern of a server's host; ports are not part of it. @param {string} server */
function hostOf(server) {
  const { protocol, hostname } = new URL(server);
  return `${protocol}//${hostname}/*`;
}
