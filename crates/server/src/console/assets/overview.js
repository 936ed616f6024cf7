// The live part of the overview: polls a JSON document and draws two charts and a table of operations. It changes nothing.

import { element, grouped, shape } from "./console.js";

const POLL_MS = 5_000;
const WINDOW_MS = 600_000;
const TIMEOUT_MS = 4_500;
const MARGIN = { left: 52, right: 14, top: 10, bottom: 24 };

const root = document.querySelector("[data-live]");
const state = document.querySelector("[data-live-state]");
const charts = {
  rate: { series: [["rate", "Requests"], ["failures", "Failures"]], format: rate, scale: linear },
  latency: { series: [["p50_us", "p50"], ["p99_us", "p99"]], format: duration, scale: logarithmic },
};
const tones = { rate: "tone-rate", failures: "tone-failures", p50_us: "tone-p50", p99_us: "tone-p99" };
let latest = null;
let timer = 0;
let warningsShown = null;

function rate(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0/s";
  return value >= 100 ? `${grouped(Math.round(value))}/s` : `${value.toFixed(value >= 10 ? 1 : 2)}/s`;
}

function duration(us) {
  if (us === null || us === undefined) return "–";
  if (us < 1_000) return `${us < 10 ? us.toFixed(1) : Math.round(us)} µs`;
  if (us < 1_000_000) return `${(us / 1_000).toFixed(us < 100_000 ? 1 : 0)} ms`;
  return `${(us / 1_000_000).toFixed(1)} s`;
}

const last = values => values?.at(-1) ?? null;
const mean = values => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 0);

// Scales: each maps a value to 0..1 and offers round ticks.

function linear(values) {
  const highest = Math.max(1, ...values);
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find(factor => factor * power >= rough) * power;
  const top = Math.ceil(highest / step) * step;
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
  return { at: value => value / top, ticks, label: value => grouped(Math.round(value * 100) / 100) };
}

function logarithmic(values) {
  const positive = values.filter(value => value > 0);
  const low = Math.floor(Math.log10(Math.min(100, ...positive)));
  const high = Math.max(low + 2, Math.ceil(Math.log10(Math.max(1, ...positive))));
  const ticks = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  const at = value => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low);
  return { at, ticks, label: value => duration(value).replace(".0", "") };
}

/** The path of a series; a missing value interrupts it. */
function curve(values, x, y) {
  let pen = "M";
  let path = "";
  values.forEach((value, index) => {
    if (value === null || value === undefined) { pen = "M"; return; }
    // A lone value is a point: a line of no length, with round ends.
    path += `${pen}${x(index).toFixed(1)} ${y(value).toFixed(1)}${pen === "M" ? "h0" : ""}`;
    pen = "L";
  });
  return path;
}

function draw(figure, { times_ms: times, totals, at_ms: now }) {
  const { series, format, scale } = charts[figure.dataset.chart];
  const svg = figure.querySelector("svg");
  const { clientWidth: width, clientHeight: height } = svg;
  if (!width) return;
  const shown = series.filter(([key]) => key !== "failures" || totals[key].some(value => value > 0));
  const known = shown.flatMap(([key]) => totals[key]).filter(value => value !== null);
  const { at, ticks, label } = scale(known);
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const x = index => MARGIN.left + inner.width * (1 - (now - times[index]) / WINDOW_MS);
  const y = value => MARGIN.top + inner.height * (1 - at(value));
  const parts = ticks.flatMap(tick => [
    shape("line", { class: "grid-line", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
    shape("text", { x: MARGIN.left - 8, y: y(tick) + 4, "text-anchor": "end" }, label(tick)),
  ]);
  const minutes = width < 420 ? [10, 5, 0] : [10, 8, 6, 4, 2, 0];
  for (const minute of minutes) {
    const anchor = minute === 0 ? "end" : minute === 10 ? "start" : "middle";
    const position = MARGIN.left + inner.width * (1 - minute / 10);
    parts.push(shape("text", { x: position, y: height - 5, "text-anchor": anchor }, minute ? `−${minute} min` : "now"));
  }
  for (const [key] of shown) {
    const line = curve(totals[key], x, y);
    if (!line) continue;
    const group = shape("g", { class: tones[key] });
    if (key === "rate") {
      const floor = MARGIN.top + inner.height;
      group.append(shape("path", { class: "area", d: `${line}V${floor}H${x(0).toFixed(1)}Z` }));
    }
    group.append(shape("path", { class: "curve", d: line }));
    parts.push(group);
  }
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", shown.map(([key, name]) => `${name}: now ${format(last(totals[key]))}`).join(". "));
  const legend = figure.closest(".panel").querySelector("[data-legend]");
  legend?.replaceChildren(...shown.map(([key, name]) => element("li", {},
    element("span", { class: `swatch ${tones[key]}` }), `${name} `, element("b", {}, format(last(totals[key]))))));
  figure.cursor = { shown, format, x, y, times, totals, width, bottom: height - MARGIN.bottom };
  if (figure.pointerX !== undefined) point(figure);
}

/** Shows the values of the sample nearest to the pointer. */
function point(figure) {
  const { shown, format, x, y, times, totals, width, bottom } = figure.cursor;
  const svg = figure.querySelector("svg");
  svg.querySelector("[data-cursor]")?.remove();
  figure.querySelector(".chart-tip")?.remove();
  if (figure.pointerX === undefined || !times.length) return;
  let nearest = 0;
  times.forEach((_, index) => {
    if (Math.abs(x(index) - figure.pointerX) < Math.abs(x(nearest) - figure.pointerX)) nearest = index;
  });
  const at = x(nearest);
  const points = shown.filter(([key]) => totals[key][nearest] !== null).map(([key]) =>
    shape("g", { class: tones[key] }, shape("circle", { class: "cursor-point", cx: at, cy: y(totals[key][nearest]), r: 4.5 })));
  svg.append(shape("g", { "data-cursor": "" },
    shape("line", { class: "cursor", x1: at, x2: at, y1: MARGIN.top, y2: bottom }), ...points));
  const tip = element("div", { class: "chart-tip", "aria-hidden": "true" },
    element("span", { class: "muted" }, new Date(times[nearest]).toLocaleTimeString("en-GB")),
    ...shown.map(([key, name]) => element("p", {},
      element("span", { class: `swatch ${tones[key]}` }), name, element("b", {}, format(totals[key][nearest])))));
  figure.append(tip);
  const left = at + 14 + tip.offsetWidth > width ? at - tip.offsetWidth - 6 : at + 18;
  tip.style.transform = `translate(${Math.max(0, left)}px, ${MARGIN.top}px)`;
}

function spark(values) {
  const top = Math.max(...values, Number.MIN_VALUE);
  const x = index => (values.length > 1 ? (index / (values.length - 1)) * 96 : 96);
  const line = curve(values, x, value => 21 - (value / top) * 19);
  return shape("svg", { class: "spark", viewBox: "0 0 96 22", "aria-hidden": "true" },
    shape("path", { class: "area", d: `${line}V22H0Z` }), shape("path", { class: "curve", d: line }));
}

function operationRow(operation) {
  const failures = last(operation.failures) ?? 0;
  const cell = (text, kind = "num") => element("td", { class: kind }, text);
  return element("tr", {},
    element("th", { scope: "row", class: "id middle" }, operation.name),
    cell(operation.protocols, "muted optional"),
    cell(rate(last(operation.rate))),
    cell(duration(last(operation.p50_us))),
    cell(duration(last(operation.p99_us))),
    cell(rate(failures), failures > 0 ? "num bad" : "num"),
    cell(spark(operation.rate), "middle"));
}

function showWarnings(warnings) {
  const list = document.querySelector("[data-warnings]");
  const key = JSON.stringify(warnings);
  if (!list || key === warningsShown) return; // Rewriting the same text would make screen readers repeat it.
  warningsShown = key;
  document.querySelector("[data-when=well]").hidden = warnings.length > 0;
  document.querySelector("[data-when=warned]").hidden = warnings.length === 0;
  list.replaceChildren(...warnings.map(({ title, advice }) => element("li", { class: "notice notice-warn" },
    element("div", {}, element("strong", {}, title), element("p", {}, advice)))));
}

function show(live) {
  latest = live;
  for (const figure of root.querySelectorAll("[data-chart]")) draw(figure, live);
  const body = document.querySelector("[data-operations]");
  const busiest = [...live.operations].sort((one, other) => mean(other.rate) - mean(one.rate) || one.name.localeCompare(other.name));
  if (busiest.length) body?.replaceChildren(...busiest.map(operationRow));
  for (const [key, text] of Object.entries(live.figures ?? {})) {
    for (const figure of document.querySelectorAll(`[data-figure="${CSS.escape(key)}"]`)) figure.textContent = text;
  }
  showWarnings(live.warnings ?? []);
}

function report(name, text) {
  root.toggleAttribute("data-stale", name === "lost" || name === "ended");
  if (state.dataset.state === name) return;
  state.dataset.state = name;
  state.replaceChildren(element("span", { class: "dot" }), text);
}

async function poll() {
  clearTimeout(timer);
  if (document.hidden) return report("paused", "Paused");
  try {
    const response = await fetch(root.dataset.live, {
      signal: AbortSignal.timeout(TIMEOUT_MS), redirect: "manual", headers: { accept: "application/json" }, cache: "no-store",
    });
    if (response.type === "opaqueredirect" || response.status === 401 || response.status === 403) {
      return report("ended", "Signed out. Reload the page to sign in again");
    }
    if (!response.ok) throw new Error(`status ${response.status}`);
    show(await response.json());
    report("live", "Live, every 5 s");
  } catch {
    report("lost", "Connection lost, retrying");
  }
  timer = setTimeout(poll, POLL_MS);
}

if (root && state) {
  for (const figure of root.querySelectorAll("[data-chart]")) {
    const svg = figure.querySelector("svg");
    const move = event => {
      figure.pointerX = event?.offsetX === undefined ? undefined : event.clientX - svg.getBoundingClientRect().left;
      if (figure.cursor) point(figure);
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerdown", move);
    svg.addEventListener("pointerleave", () => move());
    new ResizeObserver(() => { if (latest) draw(figure, latest); }).observe(svg);
  }
  document.addEventListener("visibilitychange", poll);
  addEventListener("online", poll);
  poll();
}
