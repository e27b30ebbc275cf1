// What every page has: its appearance, before anything is drawn; then times in the reader's zone.
"use strict";

const STORED = "searchblend appearance";
const CHOICES = ["light", "dark"];

function stored() {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null; // storage is forbidden: the system's choice holds
  }
}

function wear(choice) {
  if (CHOICES.includes(choice)) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
}

function keep(choice) {
  try {
    if (CHOICES.includes(choice)) localStorage.setItem(STORED, choice);
    else localStorage.removeItem(STORED);
  } catch {
    // it holds for this page alone
  }
}

const LOCAL = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" };

/** The reader's own time; UTC, in which the audit log and the ledger are kept, stays as the title. */
function localize() {
  for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = time.textContent;
    time.textContent = moment.toLocaleString("en-GB", LOCAL);
  }
}

/** An axis of time in the reader's own: days, or times with the day only where it changes, as the server wrote it in UTC. */
function localizeAxis(ticks) {
  const moments = ticks.map((tick) => new Date(tick.dataset.time));
  const days = moments.map((moment) => moment.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" }));
  const isByDay = new Set(days).size === days.length;
  const isByMinute = new Set(moments.map((moment) => Math.floor(moment / 60_000))).size === moments.length;
  const clock = { hour: "2-digit", minute: "2-digit", ...(isByMinute ? {} : { second: "2-digit" }) };
  ticks.forEach((tick, i) => {
    const whole = { day: "numeric", month: "short", ...clock, timeZoneName: "short" };
    const time = days[i] === days[i - 1] ? moments[i].toLocaleTimeString("en-GB", clock) : moments[i].toLocaleString("en-GB", whole);
    tick.textContent = isByDay ? days[i] : time;
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = tick.dataset.time;
    tick.append(title);
  });
}

/** What was done is said once: loading the page again does not say it again. */
function forgetDone() {
  const here = new URL(location.href);
  if (!here.searchParams.has("done")) return;
  here.searchParams.delete("done");
  history.replaceState(null, "", here);
}

wear(stored());
document.addEventListener("DOMContentLoaded", () => {
  const select = document.getElementById("theme");
  select.value = document.documentElement.dataset.theme ?? "auto";
  select.addEventListener("change", () => {
    keep(select.value);
    wear(select.value);
    document.dispatchEvent(new Event("appearance"));
  });
  select.closest("label").hidden = false;
  localize();
  for (const axis of document.querySelectorAll("svg.timeline")) localizeAxis([...axis.querySelectorAll("[data-time]")]);
  forgetDone();
});
document.addEventListener("htmx:afterSwap", localize);
