"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const PERCENT = new Set(["accuracy", "test_accuracy", "validation_accuracy", "best_accuracy"]);
const touch = matchMedia("(pointer: coarse)").matches;

/** Return an element with attributes and children; text is never read as HTML. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Return a figure as people read it: 95.52 for an accuracy, four digits for anything else. */
function figure(value, kind) {
  if (value === null || value === undefined) return "";
  return PERCENT.has(kind) ? (100 * value).toFixed(2) : Number(value).toPrecision(4);
}

function spread(mean, deviation, kind, seeds) {
  const main = figure(mean, kind);
  if (seeds < 2) return main;
  return `${main} ± ${PERCENT.has(kind) ? (100 * deviation).toFixed(2) : deviation.toPrecision(2)}`;
}

/* ---- What a curve is made of ---- */

function tinted(colour, alpha) {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `rgba(${parts.join(",")},${alpha})`;
}

/** Return the traces of a panel: per curve a band, a mean and its seeds, and the majority rounds below. */
function traces(shown, panel, view) {
  const made = [];
  for (const line of panel.lines) {
    const { name, colour, dash } = shown.curves[line.curve];
    const { mean, seeds } = line.curvesOf[view.metric];
    const common = { name, visible: !view.hidden.has(line.curve), meta: line.curve, type: "scatter", mode: "lines" };
    if (mean && seeds.length > 1) {
      const edge = { ...common, x: mean.x, line: { width: 0 }, hoverinfo: "skip" };
      made.push({ ...edge, y: mean.low });
      made.push({ ...edge, y: mean.high, fill: "tonexty", fillcolor: tinted(colour, 0.16) });
    }
    if (mean) {
      const hovertemplate = view.metric === "accuracy" ? "%{y:.2f}" : "%{y:.4g}";
      made.push({ ...common, x: mean.x, y: mean.y, line: { color: colour, dash, width: 2 }, hovertemplate });
    }
    if (!mean || (view.seeds && seeds.length > 1)) {
      for (const { seed, x, y } of seeds) {
        made.push({ ...common, x, y, name: `${name}, seed ${seed}`, line: { color: colour, width: 1, dash: "dot" } });
      }
    }
  }
  const ticks = new Set(panel.lines.flatMap((line) => Object.values(line.majority).flat()));
  const x = [], y = [];
  for (const round of [...ticks].sort((one, other) => one - other)) {
    x.push(round, round, null);
    y.push(0, 0.04, null);
  }
  made.push({ x, y, yaxis: "y2", mode: "lines", type: "scatter", meta: "majority", line: { color: data.mark, width: 1 }, hoverinfo: "skip" });
  return made;
}

function layout(view) {
  const { logarithmic } = data.metrics.find(({ key }) => key === view.metric);
  const range = view.metric === "accuracy" ? { range: [0, 101] } : { rangemode: "tozero" };
  const axis = { gridcolor: "#eceef1", zeroline: false, tickfont: { size: 10 }, fixedrange: touch };
  return {
    margin: { l: 40, r: 8, t: 6, b: 32 },
    showlegend: false,
    hovermode: "x unified",
    hoverlabel: { font: { size: 11 } },
    dragmode: touch ? false : "zoom",
    font: { family: "system-ui, sans-serif", color: "#1c2128" },
    xaxis: { ...axis, showgrid: false, ticklabelstandoff: 3, title: { text: "round", font: { size: 11 }, standoff: 4 }, rangemode: "tozero" },
    yaxis: { ...axis, ...(logarithmic ? { type: "log", exponentformat: "power" } : range) },
    yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
  };
}

/* ---- Figures ---- */

function figureSection(shown) {
  const views = new Map();  // metric -> what is shown of it: one block of panels each
  const hidden = new Set();
  const drawn = [];
  const title = shown.title || "Curves";
  const section = element("section", { id: shown.id, class: "figure" }, element("h2", {}, title));

  const toggle = (curve, button) => {
    if (hidden.has(curve)) hidden.delete(curve);
    else hidden.add(curve);
    button.setAttribute("aria-pressed", String(!hidden.has(curve)));
    for (const plot of drawn) {
      const places = plot.data.flatMap((trace, place) => (trace.meta === curve ? [place] : []));
      if (places.length) Plotly.restyle(plot, { visible: !hidden.has(curve) }, places);
    }
  };
  const legend = element("div", { class: "legend", role: "group", "aria-label": "Curves" });
  shown.curves.forEach((curve, place) => {
    const button = element("button", { type: "button", "aria-pressed": "true", style: `--colour: ${curve.colour}`, onclick: () => toggle(place, button) }, curve.name);
    legend.append(button);
  });

  const measured = data.metrics.filter(({ key }) => shown.panels.some((panel) => panel.lines.some((line) => line.curvesOf[key].seeds.length)));
  const choice = element("select", { "aria-label": "What is shown", onchange: () => { views.forEach((view) => { if (view.free) view.metric = choice.value; }); redraw(); } });
  for (const { key, name } of measured) choice.append(element("option", { value: key }, name));
  const each = element("input", { type: "checkbox", onchange: () => { views.forEach((view) => { view.seeds = each.checked; }); redraw(); } });
  const downloads = shown.downloads.map((file) => element("a", { download: file.name, href: `data:${file.kind === "PDF" ? "application/pdf" : "image/png"};base64,${file.data}` }, file.kind));
  section.append(element("div", { class: "tools" }, legend,
    element("span", { class: "tick soft", style: `--colour: ${data.mark}` }, "Byzantine-majority round"),
    element("span", { class: "spring" }),
    data.shown.length === 1 && measured.length > 1 ? element("label", {}, choice) : null,
    data.seeds.length > 1 ? element("label", {}, each, "each seed") : null,
    ...downloads));

  const redraw = () => drawn.forEach((plot) => Plotly.react(plot, traces(shown, plot.panel, plot.view), layout(plot.view)));
  for (const metric of data.shown) {
    const view = { metric, hidden, seeds: false, free: data.shown.length === 1 };
    views.set(metric, view);
    if (data.shown.length > 1) section.append(element("h3", {}, data.metrics.find(({ key }) => key === metric).name));
    const grid = element("div", { class: "panels", style: `--columns: ${shown.columns.length};` });
    for (const panel of shown.panels) grid.append(panelBox(shown, panel, view, drawn));
    section.append(grid);
    choice.value = metric;
  }
  section.append(element("h3", {}, "At the end"), finalTable(shown));
  return section;
}

/** Return the box of a panel; it is drawn when it comes into sight. */
function panelBox(shown, panel, view, drawn) {
  const title = [shown.columns[panel.column], shown.rows[panel.row]].filter(Boolean).join(", ");
  const plot = element("div", { class: "plot", role: "img", "aria-label": title });
  Object.assign(plot, { panel, view });
  plot.draw = () => {
    drawn.push(plot);
    Plotly.newPlot(plot, traces(shown, panel, view), layout(view), { displayModeBar: false, responsive: true });
  };
  sight.observe(plot);
  const holes = panel.lines.filter((line) => line.holes.length).map((line) => element("p", { class: "hole" }, `${shown.curves[line.curve].name}: ${line.missing}`));
  const place = `grid-column: ${panel.column + 1}; grid-row: ${panel.row + 1}`;
  return element("div", { class: "panel", style: place }, title ? element("h4", {}, title) : null, plot, ...holes);
}

const sight = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    sight.unobserve(target);
    target.draw();
  }
}, { rootMargin: "300px" });

/* ---- Tables ---- */

/** Return a colour between paper and deep blue, and ink that can be read on it. */
function heat(share) {
  const mix = (from, to) => Math.round(from + (to - from) * share);
  const colour = [mix(247, 8), mix(251, 81), mix(255, 156)];
  return `background: rgb(${colour.join(" ")}); color: ${share > 0.55 ? "#fff" : "#1c2128"}`;
}

/** Return a function from values to shares between the smallest and the largest of them; less is more for a loss. */
function shares(values, kind) {
  const known = values.filter((value) => value !== null && value !== undefined);
  const least = Math.min(...known), most = Math.max(...known);
  return (value) => {
    const share = most > least ? (value - least) / (most - least) : 0.5;
    return PERCENT.has(kind) ? share : 1 - share;
  };
}

function missingCell(line) {
  if (!line) return element("td", { "data-value": "" });
  const what = line.holes.length ? element("small", {}, `seed ${line.holes.join(", ")}`) : null;
  return element("td", { class: "missing", title: line.missing, "data-value": "" }, line.holes.length ? "missing" : "diverged", what);
}

function finalCell(line, share, best) {
  if (!line?.final) return missingCell(line);
  const [mean, deviation] = line.final;
  const kind = line.judged;
  const mark = line.collapsed.length ? " !" : "";
  return element("td", { class: best ? "best" : null, style: heat(share(mean)), "data-value": mean, title: line.collapsed.length ? `collapsed: seed ${line.collapsed.join(", ")}` : null },
    spread(mean, deviation, kind, line.runs.length) + mark, line.setting ? element("small", {}, line.setting) : null);
}

/** Return how the runs of a figure ended: a line per curve, a column per panel. */
function finalTable(shown) {
  const lines = shown.panels.flatMap((panel) => panel.lines);
  const judged = lines.find((line) => line.final)?.judged ?? "test_accuracy";
  const share = shares(lines.map((line) => line.final?.[0] ?? null), judged);
  const better = PERCENT.has(judged) ? Math.max : Math.min;
  const best = shown.panels.map((panel) => better(...panel.lines.filter((line) => line.final).map((line) => line.final[0])));
  const groups = shown.rows.length > 1 ? element("tr", {}, element("th", {}), ...shown.rows.flatMap((row, place) => {
    const width = shown.panels.filter((panel) => panel.row === place).length;
    return width ? [element("th", { class: "group", colspan: width }, row)] : [];
  })) : null;
  const head = element("tr", {}, sortable(shown.curveAxis || "", true), ...shown.panels.map((panel) => sortable(shown.columns[panel.column] || (judged === "test_accuracy" ? "test accuracy" : "test loss"))));
  const body = element("tbody", {}, ...shown.curves.map((curve, place) => element("tr", {},
    element("td", { "data-value": curve.name }, curve.name),
    ...shown.panels.map((panel, number) => {
      const line = panel.lines.find((found) => found.curve === place);
      return finalCell(line, share, line?.final?.[0] === best[number]);
    }))));
  const table = element("table", { class: "final" }, element("thead", {}, ...[groups, head].filter(Boolean)), body);
  const unit = judged === "test_accuracy" ? "Accuracy on the whole test set, %" : "Loss on the whole test set";
  const over = data.seeds.length > 1 ? `, mean ± standard deviation over ${data.seeds.length} seeds` : `, seed ${data.seeds[0]}`;
  const chosen = data.tuned.length ? `; below it what was chosen for ${data.tuned.join(" and ")} on validation data` : "";
  return element("div", {}, element("div", { class: "scroll" }, table),
    element("p", { class: "soft" }, `${unit}${over}${chosen}. Bold: best of its column. !: ended 20 points or more below its best.`));
}

function sortable(text, word = false) {
  return element("th", { "aria-sort": "none", class: word ? "word" : null, tabindex: "0", onclick: sortBy, onkeydown: (event) => { if (event.key === "Enter") sortBy(event); } }, text);
}

/** Sort a table by the column of the header that was clicked: largest first, then the other way round. */
function sortBy(event) {
  const head = event.currentTarget;
  const table = head.closest("table");
  const place = [...head.parentElement.children].indexOf(head);
  const up = head.getAttribute("aria-sort") === "descending";
  table.querySelectorAll("th[aria-sort]").forEach((other) => other.setAttribute("aria-sort", "none"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const body = table.tBodies[0];
  const value = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
  const order = (a, b) => {
    const one = value(a), other = value(b);
    if (one === "" || other === "") return (one === "") - (other === "");  // what is missing stays below
    const difference = isNaN(one) || isNaN(other) ? String(one).localeCompare(other) : Number(one) - Number(other);
    return up ? difference : -difference;
  };
  body.append(...[...body.rows].sort(order));
}

/** Return all figures in one look: a line per figure and curve, a column per panel. */
function overview() {
  const lines = data.figures.flatMap((shown) => shown.panels.flatMap((panel) => panel.lines));
  const judged = lines.find((line) => line.final)?.judged ?? "test_accuracy";
  const share = shares(lines.map((line) => line.final?.[0] ?? null), judged);
  const places = data.figures[0].rows.flatMap((row, r) => data.figures[0].columns.map((column, c) => ({ row, r, column, c })));
  const head = element("tr", {}, sortable("", true), ...places.map(({ row, column }) => sortable([row, column].filter(Boolean).join(" "))));
  const body = data.figures.flatMap((shown) => shown.curves.map((curve, number) => {
    const name = `${shown.title}: ${curve.name}`;
    return element("tr", {}, element("td", { "data-value": name }, name), ...places.map(({ r, c }) => {
      const line = shown.panels.find((panel) => panel.row === r && panel.column === c)?.lines.find((found) => found.curve === number);
      if (!line?.final) return missingCell(line);
      return element("td", { style: heat(share(line.final[0])), "data-value": line.final[0] }, figure(line.final[0], line.judged));
    }));
  }));
  return element("section", { id: "overview" }, element("h2", {}, "All figures in one look"),
    element("div", { class: "scroll" }, element("table", { class: "heat" }, element("thead", {}, head), element("tbody", {}, ...body))));
}

/** Return what validation said of each setting that was tried, as heat maps. */
function tuning() {
  const section = element("section", { id: "tuning" }, element("h2", {}, "Tuning"),
    element("p", { class: "soft" }, `Mean validation ${data.tuning[0].labelled ? "accuracy, %," : "loss"} of every setting of ${data.tuned.join(" and ")} (${data.method === "halving" ? "successive halving: the small number is the round at which it was judged last" : "the whole grid"}). Outlined: chosen. The test set had no part in it.`));
  for (const map of data.tuning) {
    const values = map.cells.flatMap((cell) => cell.values.map((found) => found.value ?? null));
    const kind = map.labelled ? "accuracy" : "loss";
    const share = shares(values, kind);
    const head = element("tr", {}, sortable("", true), ...map.settings.map((setting) => sortable(setting)));
    const body = map.cells.map((cell) => element("tr", {}, element("td", {}, cell.name), ...cell.values.map((found) => {
      if (found.value === null) return element("td", { class: "missing", title: found.error, "data-value": "" }, found.round ? "diverged" : "missing");
      return element("td", { class: found.chosen ? "chosen" : null, style: heat(share(found.value)), "data-value": found.value }, figure(found.value, kind), data.method === "halving" ? element("small", {}, `round ${found.round}`) : null);
    })));
    section.append(element("div", { class: "scroll" }, element("table", { class: "heat" }, element("thead", {}, head), element("tbody", {}, ...body))));
  }
  return section;
}

/** Return every run, with its spec behind a click. */
function runTable() {
  const columns = [
    ...data.axes.map(({ key, name }) => ({ name, word: true, value: (run) => run.labels[key] ?? "" })),
    { name: "seed", value: (run) => run.seed },
    { name: "status", word: true, value: (run) => run.status },
    { name: "test", value: (run) => run.test_accuracy ?? run.test_loss, text: (run) => run.test_accuracy === null ? figure(run.test_loss, "loss") : figure(run.test_accuracy, "accuracy") },
    { name: "validation", value: (run) => run.validation_accuracy, text: (run) => figure(run.validation_accuracy, "accuracy") },
    { name: "best on the way", value: (run) => run.best_accuracy, text: (run) => figure(run.best_accuracy, "accuracy") },
    { name: "majority rounds", value: (run) => run.majority_rounds },
    { name: "seconds", value: (run) => run.seconds, text: (run) => (run.seconds === null ? "" : run.seconds.toFixed(1)) },
  ];
  const rows = data.runs.map((run) => element("tr", { class: `opens ${run.status}`, tabindex: "0", "data-run": run.id, title: run.error, onclick: () => open(run), onkeydown: (event) => { if (event.key === "Enter") open(run); } },
    ...columns.map((column) => element("td", { class: column.word ? "word" : null, "data-value": column.value(run) ?? "" }, String((column.text ?? column.value)(run) ?? "")))));
  const search = element("input", { type: "search", placeholder: "filter: demoa alie seed ...", "aria-label": "Filter runs", oninput: () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  } });
  const head = element("tr", {}, ...columns.map((column) => sortable(column.name, column.word)));
  return element("section", { id: "runs" }, element("h2", {}, `All ${data.runs.length} runs`),
    element("div", { class: "tools" }, search, element("span", { class: "soft" }, "A click on a run shows its whole spec.")),
    element("div", { class: "scroll rows" }, element("table", { class: "runs" }, element("thead", {}, head), element("tbody", {}, ...rows))));
}

function open(run) {
  const details = document.getElementById("details");
  const title = [...Object.values(run.labels), `seed ${run.seed}`].join(", ");
  const spec = Object.keys(run.spec).length ? JSON.stringify(run.spec, null, 2) : "This run never began.";
  const error = run.error ? [element("p", { class: "hole" }, run.error)] : [];
  details.replaceChildren(element("button", { type: "button", onclick: () => details.close() }, "Close"), element("h2", {}, title),
    element("p", { class: "soft" }, `run ${run.id}, ${run.status}`), ...error, element("pre", {}, spec));
  details.showModal();
}

/* ---- The page ---- */

function header() {
  const { done = 0, failed = 0, dropped = 0, unfinished = 0, missing: never = 0 } = data.counts;
  const parts = [`${data.runs.length} runs`, `${done} through`];
  if (dropped) parts.push(`${dropped} dropped by halving`);
  if (failed) parts.push(`${failed} failed`);
  if (unfinished) parts.push(`${unfinished} not finished`);
  if (never) parts.push(`${never} never begun`);
  const holes = data.figures.flatMap((shown) => shown.panels).flatMap((panel) => panel.lines).filter((line) => line.holes.length).length;
  document.getElementById("header").append(element("h1", {}, data.title), ...[
    data.note ? element("p", {}, data.note) : null,
    element("p", { class: "soft" }, `${parts.join(", ")}; seed${data.seeds.length > 1 ? "s" : ""} ${data.seeds.join(", ")}; demoa ${data.version}`),
    data.scaled.length ? element("p", { class: "banner" }, `Smaller than the study asks for: ${data.scaled.join("; ")}.`) : null,
    holes ? element("p", { class: "banner wrong" }, `${holes} curve${holes > 1 ? "s have" : " has"} no mean, as runs are missing; their seeds are dotted.`) : null,
  ].filter(Boolean));
}

header();
const main = document.getElementById("main");
const sections = [
  ...(data.figures.length > 1 ? [overview()] : []),
  ...data.figures.map(figureSection),
  ...(data.tuning.length ? [tuning()] : []),
  runTable(),
];
main.append(...sections);
document.getElementById("contents").append(...sections.map((section) => element("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)));
