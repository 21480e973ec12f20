// Asks for the numbers every two seconds and shows them.

const byId = (id) => document.getElementById(id);
const PARTS = [["planning", "planning"], ["source", "waiting for rows"], ["reads", "reads"], ["python", "Python"],
  ["sink", "sink and Spark"], ["commit", "commit"]];
const MARKS = { good: "✓", busy: "↻", bad: "!", lost: "?", idle: "·" };
const ROOM = { waiting: "Waiting in the room", parked: "Parked", returned: "Back from the room", released: "Released",
  dead: "Dead letters", oldest_seconds: "Oldest row in the room", latency_p50_seconds: "Latency, median",
  latency_p99_seconds: "Latency, 99 of 100 rows", max_latency_seconds: "Latency, slowest row" };
const SECONDS = 2, SECONDS_UNSEEN = 10, SECONDS_TO_ANSWER = 8;

/** Set a text only if it changes, with the exact value beside it, so that nothing is read out or drawn twice. */
function show(element, text, value) {
  if (element.textContent !== text) element.textContent = text;
  if (value !== undefined) element.dataset.value = JSON.stringify(value);
}

const charts = {
  rates: new TimeChart(byId("chart-rates"), { title: "Rows a second", shown: count, tick: compact,
    series: [{ name: "in", colour: "second", kind: "broad" }, { name: "out", colour: "first", kind: "thin" }] }),
  backlog: new TimeChart(byId("chart-backlog"), { title: "Backlog", shown: count, tick: compact,
    series: [{ name: "waiting", colour: "third" }] }),
  split: new TimeChart(byId("chart-split"), { title: "Time of a micro-batch", shown: duration, stacked: true,
    tick: (seconds) => seconds < 1 && seconds > 0 ? `${Math.round(seconds * 1000)} ms` : `${+seconds.toFixed(2)} s`,
    series: PARTS.map(([colour, name]) => ({ name, colour })) }),
  answers: new TimeChart(byId("chart-answers"), { title: "Where answers come from", shown: percent, stacked: true,
    top: 1, tick: (share) => `${Math.round(100 * share)}%`,
    series: [{ name: "cache", colour: "first" }, { name: "reads", colour: "second" },
      { name: "absent", colour: "third" }, { name: "null or refused", colour: "other" }] }),
};
let state = null, heard = 0, failures = 0, timer = 0;

function showVerdict(level, headline, detail) {
  byId("verdict").className = `verdict ${level}`;
  byId("main").classList.toggle("lost", level === "lost");
  show(byId("mark"), MARKS[level]);
  show(byId("headline"), headline);
  show(byId("detail"), detail || "\u00a0");
  const title = `${MARKS[level]} ${state ? state.pipeline : "semistream"}`;
  if (document.title !== title) document.title = title;
}

function showFlow() {
  const late = state.late, spent = late ? Math.max(1e-9, late.ended - late.began) : 1;
  show(byId("flow-source"), state.source);
  show(byId("flow-sink"), state.sink);
  show(byId("flow-join"), state.masters.map((master) => master.name).join(", ")
    || state.operators.map((operator) => operator.name).join(", ") || "–");
  if (!late) return;
  show(byId("flow-in"), count(late.rows_in / spent), late.rows_in / spent);
  show(byId("flow-out"), count(late.rows_out / spent), late.rows_out / spent);
  show(byId("flow-reads"), `${count(late.read_requests / spent)} reads/s, ${bytes(late.bytes_read / spent)}/s`);
  const slowest = { source: "source", reads: "join", python: "join", sink: "sink" }[state.bottleneck];
  for (const box of document.querySelectorAll(".flow .box")) {
    box.classList.toggle("slowest", state.verdict.level !== "good" && box.dataset.part === slowest);
  }
}

function tile(id, text, value, about) {
  show(byId(id), text, value);
  byId(id).classList.toggle("long", text.length > 11);
  show(byId(`${id}-about`), about || "\u00a0");
}

function showTiles() {
  const last = state.last[0], totals = state.totals;
  if (last) {
    tile("rows-in", count(totals.rows_in), totals.rows_in, `last batch ${count(last.batch_rows_in)}`);
    const out = last.batch_rows_out;
    tile("rows-out", out === null ? "–" : count(totals.rows_out), totals.rows_out,
      out === null ? "the sink does not tell" : `last batch ${count(out)}`);
    const files = last.backlog_files, size = last.backlog_bytes;
    const waiting = files === null ? "" : `${count(files)} ${files === 1 ? "file" : "files"}, ${bytes(size || 0)}`;
    if (last.backlog !== null) tile("backlog", `${count(last.backlog)}`, last.backlog, waiting || "rows in the source");
    else if (files !== null) tile("backlog", `${count(files)}`, files, waiting);
    else tile("backlog", "–", null, "the source does not tell");
  }
  const backlog = state.backlog, change = backlog && Math.abs(backlog.per_second);
  if (!backlog) tile("drain", "–", null, "");
  else if (backlog.trend === "none") tile("drain", "0 s", 0, "nothing waits");
  else if (backlog.trend === "shrinking") {
    tile("drain", duration(backlog.drain_seconds), backlog.drain_seconds, `${count(change)} ${backlog.unit} less a second`);
  } else if (backlog.trend === "growing") tile("drain", "never", null, `${count(change)} ${backlog.unit} more a second`);
  else tile("drain", "–", null, backlog.trend === "steady" ? "it stays as it is" : "not known yet");
}

function showCharts() {
  const wanted = document.querySelector("input[name=range]:checked").value;
  const points = state[wanted].map((row) => Object.fromEntries(state.columns.map((name, place) => [name, row[place]])));
  if (!points.length) return;
  const times = points.map((point) => point.ended);
  const spans = points.map((point, place) => Math.max(1e-3, place ? point.ended - points[place - 1].ended : 0));
  spans[0] = Math.max(points[0].ended - points[0].began, points.length > 1 ? points[0].batches * spans[1] / points[1].batches : 0);
  const rate = (name) => points.map((point, place) => point[name] / spans[place]);
  charts.rates.draw(times, [rate("rows_in"), rate("rows_out")]);
  const unit = points.some((point) => point.backlog !== null) ? "backlog" : "backlog_files";
  const told = points.filter((point) => point[unit] !== null);  // what nobody has told is not 0
  charts.backlog.draw(told.map((point) => point.ended), [told.map((point) => point[unit])]);
  charts.split.draw(times, PARTS.map(([name]) => points.map((point) => point[name] / point.batches)));
  const share = (amount) => points.map((point) => Math.max(0, amount(point)) / Math.max(1, point.tuples));
  charts.answers.draw(times, [share((point) => point.cache_hits), share((point) => point.read_hits),
    share((point) => point.absent), share((point) => point.tuples - point.cache_hits - point.read_hits - point.absent)]);
  const bar = byId("split-bar"), late = state.late;
  PARTS.forEach(([name], place) => {
    const part = bar.children[place] || bar.appendChild(html("i", name));
    part.style.width = `${late.seconds > 0 ? 100 * late[name] / late.seconds : 0}%`;
  });
}

const line = (name, ...cells) => {
  const row = html("tr"), head = html("th", "", name);
  head.scope = "row";
  row.append(head, ...cells);
  return row;
};

function tableOf(className, rows) {
  const table = html("table", className), body = html("tbody");
  body.append(...rows);
  table.append(body);
  return table;
}

function figureOf(title, about, ...content) {
  const figure = html("figure"), caption = html("figcaption");
  caption.append(html("h2", "", title), html("p", "", about));
  figure.append(caption, ...content);
  return figure;
}

const valueCell = (text, value, label) => {
  const cell = html("td", "", text);
  if (value !== undefined) cell.dataset.value = JSON.stringify(value);
  if (label) cell.dataset.label = label;
  return cell;
};

function memoryOf(operator) {
  const counts = operator.counts, parts = Object.entries(operator.memory_parts).sort((a, b) => b[1] - a[1]);
  const bar = html("div", "bar"), colours = ["python", "reads", "sink", "commit", "source", "planning"];
  bar.setAttribute("aria-hidden", "true");
  const rows = parts.map(([name, size], place) => {
    const colour = colours[Math.min(place, colours.length - 1)], piece = html("i", colour);
    piece.style.width = `${100 * size / Math.max(1, counts.budget_bytes)}%`;
    bar.append(piece);
    const row = line("", valueCell(bytes(size), size));
    row.firstChild.append(html("i", `swatch ${colour}`), ` ${name}`);
    return row;
  });
  rows.push(line("held of the budget", valueCell(`${bytes(counts.memory_bytes)} of ${bytes(counts.budget_bytes)}`,
    counts.memory_bytes)), line("rows in the cache", valueCell(count(counts.cached_rows), counts.cached_rows)),
  line("whole worker process", valueCell(bytes(counts.resident_bytes), counts.resident_bytes)));
  return figureOf("Memory", "Of the worker that holds most, by part.", bar, tableOf("facts", rows));
}

function keysOf(title, about, keys) {
  const rows = keys.map(([key, times]) => line(key, valueCell(count(times), times)));
  return figureOf(title, about, rows.length ? tableOf("keys", rows) : html("p", "empty", "None so far."));
}

function roomOf(room, latencies) {
  const rows = Object.entries({ ...room, ...latencies }).map(
    ([name, value]) => line(ROOM[name], valueCell((/seconds$/.test(name) ? duration : count)(value), value)));
  return figureOf(room ? "Rows that wait" : "Latency",
    "Time of a row from its first arrival in the join to its leaving, in the last batch.", tableOf("facts", rows));
}

/** Put what belongs to each enrichment into a place, under its name if there are several. */
function showGroups(place, figuresOf) {
  const groups = state.operators.map((operator) => {
    const group = html("div"), section = html("section", "figures"), figures = figuresOf(operator);
    if (state.operators.length > 1 && figures.length) group.append(html("h2", "operator-name", operator.name));
    section.setAttribute("aria-label", `Enrichment ${operator.name}`);
    section.append(...figures);
    if (figures.length) group.append(section);
    return group;
  });
  byId(place).replaceChildren(...groups);
}

function curveFigure({ curve }) {
  const title = "Hits against memory", about = "The dot is measured, the dashes are estimates of the cache itself.";
  if (!curve) {
    const when = "The curve appears once the cache has answered some times as many rows as it holds.";
    return figureOf(title, about, html("p", "empty", when));
  }
  return figureOf(title, curve.knows_twice ? about
    : `${about} What more memory would do is known once the cache has overwritten as many rows as it holds.`, curveOf(curve));
}

function apartFigures({ room, latencies, keys }) {
  return [roomOf(room, latencies), ...(keys
    ? [keysOf("Hottest keys", "Recent rows with each key, at least.", keys.hot),
      keysOf("Unmatched keys", "Recent rows whose key the master table lacks.", keys.unmatched)] : [])];
}

function showMasters() {
  const known = (value, shown) => value === null || value === undefined ? "–" : shown(value);
  const rows = state.masters.map((master) => {
    const changed = master.is_mirror ? master.rows_upserted + master.rows_deleted : undefined;
    const cells = [["Version", master.version, count], ["Age", master.age_seconds, duration],
      ["Rows", master.rows, count], ["Rows changed", changed, count], ["Refreshes", master.refreshes, count],
      ["Failures", master.failures, count], ["Pins", master.pins, count]];
    return line(master.is_reachable ? master.name : `${master.name} (cannot be reached)`,
      ...cells.map(([label, value, shown]) => valueCell(known(value, shown), value ?? null, label)));
  });
  if (rows.length) byId("masters").replaceChildren(...rows);
}

function showLines() {
  if (!byId("counters").open) return;
  byId("lines").replaceChildren(...state.last.map((counts) => tableOf("facts", Object.entries(counts).map(
    ([name, value]) => line(name, valueCell(typeof value === "number" ? value.toLocaleString("en-US",
      { maximumFractionDigits: 6, useGrouping: !/_?id$/.test(name) }) : String(value ?? "–"), value))))));
}

function showAll() {
  show(byId("name"), state.pipeline);
  show(byId("version"), state.version);
  showVerdict(state.verdict.level, state.verdict.headline, state.verdict.detail);
  showFlow();
  showTiles();
  if (state.late) showCharts();
  showGroups("operators", (operator) => [curveFigure(operator), memoryOf(operator)]);
  showMasters();
  showGroups("rows-apart", apartFigures);
  showLines();
  showClocks();
}

function showClocks() {
  if (!state) return;
  const passed = Date.now() / 1000 - heard, now = state.now + Math.max(0, passed), last = state.last[0];
  const batches = `${count(state.totals.batches)} ${state.totals.batches === 1 ? "batch" : "batches"}`;
  show(byId("since"), `running for ${duration(Math.max(1, Math.round(now - state.started)))}, ${batches}`);
  const ended = state.late ? Math.max(0, Math.round(now - state.late.ended)) : null;
  show(byId("heard"), last ? `batch ${last.batch_id} took ${duration(last.batch_seconds)}, ended ${ended} s ago` : "\u00a0");
}

async function ask() {
  clearTimeout(timer);
  const isPaused = byId("pause").getAttribute("aria-pressed") === "true";
  if (!isPaused) {
    try {
      const answer = await fetch("state", { cache: "no-store", signal: AbortSignal.timeout(1000 * SECONDS_TO_ANSWER) });
      if (!answer.ok) throw new Error(answer.statusText);
      state = await answer.json();
      heard = Date.now() / 1000;
      failures = 0;
      showAll();
    } catch {
      failures += 1;
      const since = heard ? `Last heard from at ${clock(heard)}.` : "";
      if (failures > 1) showVerdict("lost", "No answer from the pipeline.", `It has stopped, or cannot be reached. ${since}`);
    }
  }
  timer = setTimeout(ask, 1000 * (document.hidden ? SECONDS_UNSEEN : SECONDS));
}

byId("pause").addEventListener("click", () => {
  const isPaused = byId("pause").getAttribute("aria-pressed") !== "true";
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  show(byId("pause"), isPaused ? "Go on" : "Pause");
  if (!isPaused) ask();
});
for (const range of document.querySelectorAll("input[name=range]")) {
  range.addEventListener("change", () => state && state.late && showCharts());
}
byId("counters").addEventListener("toggle", () => state && showLines());
document.addEventListener("visibilitychange", () => document.hidden || ask());
setInterval(showClocks, 1000);
ask();
