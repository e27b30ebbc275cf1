// Charts that answer to the pointer, and sliders that say their value. Every page reads without this file.
"use strict";

/** A colour of the style sheet as it is now: a variable may hold one for each appearance. */
function style(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const soft = (colour) => `color-mix(in srgb, ${colour} 18%, transparent)`;

function percent(value) {
  if (value === null || value === undefined) return "–";
  const hundredth = 100 * value;
  const digits = hundredth === 0 ? 0 : Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.abs(hundredth)))));
  return `${hundredth.toFixed(digits)} %`;
}

function plain(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
}

function draw(figure) {
  const data = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
  const form = data.unit === "percent" ? percent : plain;
  const place = figure.querySelector(".moving");
  const columns = [data.x];
  const series = [{ label: data.xLabel, value: (_, x) => data.names[data.x.indexOf(x)] ?? "–" }];
  const bands = [];
  data.series.forEach((entry, i) => {
    const colour = style(`--s${i % 8}`);
    series.push({ label: entry.name, stroke: colour, width: 2, dash: entry.dashed ? [7, 5] : undefined, points: { show: data.x.length <= 30, size: 6 }, value: (_, v) => form(v) });
    columns.push(entry.values);
    if (entry.low && entry.high) {
      const edge = { stroke: "transparent", width: 0, points: { show: false }, label: "" };
      const at = series.length;
      series.push({ ...edge, class: "edge" }, { ...edge, class: "edge" });
      columns.push(entry.high, entry.low.map((v) => (v === null ? null : Math.max(v, 0))));
      bands.push({ series: [at, at + 1], fill: soft(colour) });
    }
  });
  const every = Math.max(1, Math.ceil(data.x.length / Math.max(2, Math.floor(place.clientWidth / 80))));
  const axis = { stroke: style("--muted"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1 } };
  const showLast = (drawn) => drawn.setLegend({ idx: data.x.length - 1 }, false); // where no pointer says which
  const options = {
    width: place.clientWidth || figure.clientWidth,
    height: 280,
    series,
    bands,
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, (most || 1) * 1.05] } },
    axes: [
      { ...axis, label: data.xLabel, labelSize: 22, splits: () => data.x.filter((_, i) => i % every === 0), values: (_, ticks) => ticks.map((x) => data.names[data.x.indexOf(x)] ?? "") },
      { ...axis, size: 76, values: (_, ticks) => ticks.map(form) },
    ],
    legend: { live: true },
    hooks: { ready: [showLast] },
  };
  place.replaceChildren();
  const chart = new uPlot(options, columns, place);
  place.querySelectorAll(".u-legend .edge").forEach((row) => { row.hidden = true; });
  place.addEventListener("mouseleave", () => showLast(chart));
  return chart;
}

function drawAll() {
  for (const figure of document.querySelectorAll("[data-chart]")) {
    const drawing = figure.querySelector(".drawing");
    const place = figure.querySelector(".moving");
    place.hidden = false;
    drawing.setAttribute("hidden", "");
    const legend = figure.querySelector(".legend");
    legend.hidden = true;
    try {
      const chart = draw(figure);
      const fit = () => chart.setSize({ width: place.clientWidth, height: 280 });
      new ResizeObserver(fit).observe(place);
    } catch {
      place.hidden = true;
      drawing.removeAttribute("hidden");
      legend.hidden = false;
    }
  }
}

if (window.uPlot) {
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  document.addEventListener("appearance", drawAll);
}

for (const field of document.querySelectorAll("[data-embed]")) {
  field.value = field.value.replace('src="/', `src="${location.origin}/`);
  field.labels[0].textContent = "HTML to copy";
}

for (const form of document.querySelectorAll("[data-planner]")) {
  for (const slider of form.querySelectorAll("input[type=range]")) {
    const shown = form.querySelector(`output[for="${slider.id}"]`);
    const unit = shown.textContent.trim().replace(/^[\d.,]+\s*/, "");
    slider.addEventListener("input", () => { shown.textContent = `${Number(slider.value).toLocaleString("en")} ${unit}`.trim(); });
  }
  form.addEventListener("submit", () => { form.querySelector("button").textContent = "Simulating…"; });
}
