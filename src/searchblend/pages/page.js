"use strict";
// Search and sort in tables. Without this script the page shows the same, only longer.
for (const search of document.querySelectorAll(".search")) {
  const table = document.getElementById(search.dataset.table);
  const input = search.querySelector("input");
  const output = search.querySelector("output");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, text: row.textContent.toLocaleLowerCase() }));
  const filter = () => {
    const words = input.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    output.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  };
  input.addEventListener("input", filter);
  search.hidden = false;

  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "descending";
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "ascending" : "descending");
      const sign = down ? 1 : -1;
      const value = ({ row }) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const numeric = head.classList.contains("number");
      const compare = (a, b) => (numeric ? Number(value(a)) - Number(value(b)) : value(a).localeCompare(value(b)));
      body.append(...[...rows].sort((a, b) => sign * compare(a, b)).map(({ row }) => row));
    });
  });
}
