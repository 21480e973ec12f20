"use strict";
// Charts as SVG. All texts are set as text, so that no name or key can become markup.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 560, HEIGHT = 230, LEFT = 76, RIGHT = 14, TOP = 16, BOTTOM = 30;

const count = (value) => value >= 9.5 || value === 0 ? Math.round(value).toLocaleString("en-US")
  : value.toLocaleString("en-US", { maximumSignificantDigits: 2 });
const percent = (share) => `${(100 * share).toFixed(1)}%`;

function bytes(size) {
  for (const [unit, factor] of [["GB", 1e9], ["MB", 1e6], ["KB", 1e3]]) {
    if (size >= factor) return `${(size / factor).toFixed(1)} ${unit}`;
  }
  return size === 1 ? "1 byte" : `${Math.round(size)} bytes`;
}

function duration(seconds) {
  if (seconds < 1) return `${seconds.toFixed(2)} s`;
  if (seconds < 10) return `${+seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
  if (whole < 86400) {
    const minutes = Math.floor(whole % 3600 / 60);
    return `${Math.floor(whole / 3600)} h${minutes ? ` ${minutes} min` : ""}`;
  }
  const hours = Math.floor(whole % 86400 / 3600);
  return `${Math.floor(whole / 86400)} d${hours ? ` ${hours} h` : ""}`;
}

const compact = (value) => value.toLocaleString("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

function make(name, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

function html(name, className = "", text = null) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

/** Round numbers from 0 up to the first that is not below the highest value. */
function marks(highest) {
  if (!(highest > 1e-12)) return [0, 1];
  const rough = highest / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough * 0.999) * power;
  return Array.from({ length: Math.ceil(highest / step - 1e-9) + 1 }, (_, number) => number * step);
}

/** A chart over time that is drawn anew when its values change; arrow keys and the pointer choose a moment. */
class TimeChart {
  constructor(figure, { title, series, shown, tick, stacked = false, top = null }) {
    Object.assign(this, { title, series, shown, tick: tick || shown, stacked, top });
    this.legend = html("ul", "legend");
    this.values = new Map();
    for (const one of series) {
      const item = html("li"), value = html("b", "", "–");
      item.append(html("i", `swatch ${one.colour}${stacked ? "" : " line-of"}`), html("span", "", one.name), value);
      this.values.set(one.name, value);
      this.legend.append(item);
    }
    this.svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: 0, "aria-label": title });
    this.cursor = make("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    this.drawing = make("g");
    this.svg.append(this.drawing, this.cursor);
    figure.append(this.legend, this.svg);
    this.chosen = null;
    this.times = [];
    this.svg.addEventListener("pointermove", (event) => this.choose(this.nearest(event)));
    this.svg.addEventListener("pointerleave", () => this.choose(null));
    this.svg.addEventListener("blur", () => this.choose(null));
    this.svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !this.times.length) return;
      event.preventDefault();
      const from = this.chosen === null ? this.times.length - 1 : this.chosen + step;
      this.choose(Math.max(0, Math.min(this.times.length - 1, from)));
    });
  }

  /** Draw: `times` are moments, `rows` has the values of each series at each of them. */
  draw(times, rows) {
    this.times = times;
    this.rows = rows;
    if (this.chosen !== null && this.chosen >= times.length) this.chosen = null;
    const levels = [];
    let below = times.map(() => 0);
    for (const row of rows) {
      const level = row.map((value, place) => (this.stacked ? below[place] : 0) + value);
      levels.push([this.stacked ? below : times.map(() => 0), level]);
      if (this.stacked) below = level;
    }
    const highest = this.top ?? Math.max(0, ...levels.flatMap(([, level]) => level));
    const ticks = marks(highest), upper = this.top ?? ticks[ticks.length - 1];
    const first = times[0] ?? 0, span = Math.max(1e-9, (times[times.length - 1] ?? 1) - first);
    this.x = (time) => LEFT + (time - first) / span * (WIDTH - LEFT - RIGHT);
    this.y = (value) => HEIGHT - BOTTOM - value / upper * (HEIGHT - TOP - BOTTOM);
    const parts = ticks.filter((mark) => mark <= upper * 1.001).flatMap((mark) => [
      make("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: this.y(mark), y2: this.y(mark) }),
      make("text", { class: "tick", x: LEFT - 8, y: this.y(mark) + 4, "text-anchor": "end" }, this.tick(mark)),
    ]);
    if (times.length > 1) {
      for (const [time, anchor] of [[first, "start"], [first + span / 2, "middle"], [first + span, "end"]]) {
        parts.push(make("text", { class: "tick", x: this.x(time), y: HEIGHT - 8, "text-anchor": anchor }, clock(time)));
      }
    }
    this.series.forEach((one, number) => parts.push(this.drawn(one, ...levels[number])));
    this.drawing.replaceChildren(...parts);
    this.tell();
  }

  drawn(one, bottom, level) {
    const upper = this.times.map((time, place) => `${this.x(time).toFixed(1)},${this.y(level[place]).toFixed(1)}`);
    if (upper.length === 1) {
      const [x, y] = upper[0].split(",");
      return make("circle", { class: `dot ${one.colour}`, cx: x, cy: y, r: 5 });
    }
    if (one.kind) return make("polyline", { class: `line ${one.kind} ${one.colour}`, points: upper.join(" ") });
    const lower = this.times.map((time, place) => `${this.x(time).toFixed(1)},${this.y(bottom[place]).toFixed(1)}`);
    return make("polygon", { class: `area ${one.colour}`, points: [...upper, ...lower.reverse()].join(" ") });
  }

  nearest(event) {
    if (!this.times.length) return null;
    const box = this.svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * WIDTH;
    let best = 0;
    this.times.forEach((time, place) => {
      if (Math.abs(this.x(time) - x) < Math.abs(this.x(this.times[best]) - x)) best = place;
    });
    return best;
  }

  choose(place) {
    this.chosen = place;
    this.tell();
  }

  /** Show the values of the chosen moment in the legend, or the latest ones. */
  tell() {
    const place = this.chosen ?? this.times.length - 1;
    if (place < 0) {
      for (const value of this.values.values()) value.textContent = "–";
      this.svg.setAttribute("aria-label", this.title);
      return;
    }
    const texts = this.series.map((one, number) => {
      const text = this.shown(this.rows[number][place]);
      this.values.get(one.name).textContent = text;
      return `${one.name} ${text}`;
    });
    this.svg.setAttribute("aria-label", `${this.title} at ${clock(this.times[place])}: ${texts.join(", ")}`);
    const visible = this.chosen !== null;
    this.cursor.setAttribute("visibility", visible ? "visible" : "hidden");
    if (visible) {
      const x = this.x(this.times[place]);
      this.cursor.setAttribute("x1", x);
      this.cursor.setAttribute("x2", x);
    }
  }
}

/** Hits against memory: a dashed line of estimates, and today's point. */
function curveOf(curve) {
  const height = 1.45 * HEIGHT;
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img" });
  const most = Math.max(...curve.points.map((point) => point.memory_bytes));
  const x = (size) => LEFT + size / most * (WIDTH - LEFT - RIGHT - 60);
  const y = (rate) => height - BOTTOM - rate * (height - TOP - BOTTOM);
  for (const rate of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(make("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(rate), y2: y(rate) }));
    svg.append(make("text", { class: "tick", x: LEFT - 8, y: y(rate) + 4, "text-anchor": "end" }, `${100 * rate}%`));
  }
  for (const size of marks(most).slice(1)) {
    if (size <= most * 1.02) {
      const label = bytes(size).replace(".0 ", " ");
      svg.append(make("text", { class: "tick", x: x(size), y: height - 8, "text-anchor": "middle" }, label));
    }
  }
  const points = curve.points.map((point) => `${x(point.memory_bytes).toFixed(1)},${y(point.hit_rate).toFixed(1)}`);
  svg.append(make("polyline", { class: "line dashes first", points: points.join(" ") }));
  const today = curve.today, above = y(today.hit_rate) > 60;
  svg.append(make("circle", { class: "dot second", cx: x(today.memory_bytes), cy: y(today.hit_rate), r: 7 }));
  svg.append(make("text", {
    class: "tick strong", x: x(today.memory_bytes), y: y(today.hit_rate) + (above ? -14 : 26), "text-anchor": "middle",
  }, `today ${percent(today.hit_rate)}`));
  const last = curve.points[curve.points.length - 1];
  const more = `, with ${bytes(last.memory_bytes)} it would be about ${percent(last.hit_rate)}`;
  svg.setAttribute("aria-label", `With ${bytes(today.memory_bytes)} ${percent(today.hit_rate)} of the rows are answered `
    + `from the cache${curve.knows_twice ? more : ""}`);
  return svg;
}
