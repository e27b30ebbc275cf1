import { openPack } from "core/search.js";
import { visible } from "core/visible.js";

const typed = document.getElementById("typed");
const said = document.getElementById("said");
const list = document.getElementById("found");
const HOST = /^[a-z0-9.:-]+$/i;
const MOST = 8;

const encoded = document.getElementById("pack").textContent;
const index = await openPack(Uint8Array.from(atob(encoded), (sign) => sign.charCodeAt(0)));
const unit = 2 ** -index.meta.fractionBits;
const ready = `${index.size.toLocaleString("en")} queries are on this page. Type a few letters.`;

/** What a URL may be followed to; null if it is only to be read. */
function target(url) {
  if (/^https?:\/\//.test(url)) return url;
  return !url.includes("://") && HOST.test(url) ? `https://${url}` : null;
}

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = visible(text);
  if (kind) made.className = kind;
  return made;
}

function percent(value) {
  return `${(100 * value * unit).toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
}

function link(url) {
  const place = target(url);
  const made = element(place === null ? "span" : "a", url);
  if (place !== null) {
    made.href = place;
    made.rel = "noreferrer noopener";
  }
  return made;
}

function row({ entry, kind, distance }) {
  const item = element("li");
  const head = element("div", undefined, "query");
  const name = element("bdi");
  const letters = [...typed.value.trim().toLowerCase()];
  const begins = kind === "prefix" && entry.query.startsWith(letters.join(""));
  if (begins) name.append(element("b", letters.join("")), visible(entry.query.slice(letters.join("").length)));
  else name.append(kind === "exact" ? element("b", entry.query) : visible(entry.query));
  head.append(name, element("span", `${percent(entry.probability)} of searches`, "share"));
  if (kind === "typo") head.append(element("span", distance === 1 ? "one typing error away" : "two typing errors away", "hint"));
  item.append(head);
  for (const url of entry.urls.slice(0, kind === "exact" ? MOST : 1)) {
    const line = element("div", undefined, "url");
    const share = element("span", `at least ${percent(url.lower)}`, "share");
    line.append(link(url.url), share);
    item.append(line);
  }
  return item;
}

function answer() {
  const text = typed.value;
  const started = performance.now();
  const found = text.trim() ? index.find(text, MOST) : [];
  const took = performance.now() - started;
  list.replaceChildren(...found.map(row));
  typed.setAttribute("aria-expanded", String(found.length > 0));
  if (!text.trim()) said.textContent = ready;
  else if (!found.length) said.textContent = "Nothing on this page fits.";
  else said.textContent = `${found.length} ${found.length === 1 ? "query fits" : "queries fit"}, found in ${took.toFixed(1)} ms without a network.`;
}

typed.addEventListener("input", answer);
answer();
// The first search for typing errors prepares what the later ones use: do it before the user waits.
setTimeout(() => index.find("no such query"), 0);
