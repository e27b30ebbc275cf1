// Finding and ticking entries of a long list. The form is complete without this file.
const tools = document.querySelector("[data-review-tools]");
const list = document.querySelector(".candidates");
const find = tools.querySelector("#find");
const which = tools.querySelector("#which");
const status = tools.querySelector("[role=status]");

/** An entry: a query or one of its URLs, with the box that decides about it. */
const groups = [...list.children].map((row) =>
  [...row.querySelectorAll(".candidate")].map((label) => ({
    label,
    row: label.closest("li"),
    box: label.querySelector("input"),
    text: label.firstElementChild.textContent.toLowerCase(),
    isNew: row.hasAttribute("data-new"),
  })),
);
const entries = groups.flat();

const KINDS = {
  all: () => true,
  hits: (entry) => entry.box.name === "keep",
  new: (entry) => entry.isNew,
  ticked: (entry) => entry.box.checked,
};

/** Show what fits, with the query of a URL that does and the URLs of a query that does: those are context only. */
function sift() {
  const typed = find.value.trim().toLowerCase();
  for (const [query, ...urls] of groups) {
    for (const entry of [query, ...urls]) {
      entry.fits = entry.text.includes(typed) && KINDS[which.value](entry);
      entry.label.classList.toggle("context", !entry.fits);
    }
    query.row.hidden = ![query, ...urls].some((entry) => entry.fits);
    query.shown = !query.row.hidden;
    for (const url of urls) {
      url.shown = url.fits || query.fits;
      url.row.hidden = !url.shown;
    }
  }
  tell();
}

function tell() {
  const count = (name) => entries.filter((entry) => entry.box.name === name && entry.box.checked).length;
  const fitting = entries.filter((entry) => entry.fits).length;
  status.textContent = `${fitting} of ${entries.length} entries fit; ${count("remove")} ticked for removal, ${count("keep")} kept.`;
}

/** Move the focus itself, so that a screen reader says where it is. */
function step(from, by) {
  const boxes = entries.filter((entry) => entry.shown).map((entry) => entry.box);
  boxes[Math.max(0, Math.min(boxes.length - 1, boxes.indexOf(from) + by))]?.focus();
}

const KEYS = {
  j: (box) => step(box, 1),
  ArrowDown: (box) => step(box, 1),
  k: (box) => step(box, -1),
  ArrowUp: (box) => step(box, -1),
  x: (box) => box.click(),
};

// Only while a box has the focus: a single letter must not act anywhere else (WCAG 2.1.4).
list.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !event.target.matches("input") || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key](event.target);
});
find.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  step(null, 1);
});
list.addEventListener("change", tell);
find.addEventListener("input", sift);
which.addEventListener("change", sift);
for (const button of tools.querySelectorAll("[data-tick]")) {
  button.addEventListener("click", () => {
    for (const { box, fits } of entries) if (fits && box.name === "remove") box.checked = button.dataset.tick === "yes";
    tell();
  });
}
tools.hidden = false;
sift();
