// The picture of a neighbourhood: lays a small graph out by forces and draws it as SVG that can be dragged, zoomed and walked
// with the keyboard. It loads one document, at most some hundred users, and never changes the graph.

import { element, grouped, shape } from "./console.js";

const KINDS = {
  center: { name: "This user", phrase: "this user", radius: 0 },
  friend: { name: "Friend", phrase: "friend: both follow each other", radius: 150 },
  following: { name: "Followee", phrase: "followed by this user", radius: 235 },
  follower: { name: "Follower", phrase: "follows this user", radius: 235 },
  suggestion: { name: "Suggestion", phrase: "suggestion", radius: 345 },
};
const TICKS = 320;
const REPULSION = 1500;
const SCALE = { min: 0.25, max: 6 };
const CLICK_SLACK = 4;
const LABEL = { width: 6.7, height: 13 };
const fixed = number => number.toFixed(1);

/** A UUID is too long for a crowd; the highlighted node shows it whole. */
const short = id => (id.length > 20 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id);

/** The same graph always gets the same picture. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function prepare({ nodes, edges }, aspect) {
  const random = generator(nodes.length + 1);
  const known = new Map(nodes.map((node, index) => {
    const kind = KINDS[node.kind] ? node.kind : "follower";
    const angle = index * 2.399963; // The golden angle spreads the start evenly.
    const distance = KINDS[kind].radius * (0.9 + random() * 0.2);
    const size = kind === "center" ? 15 : Math.min(16, 4 + Math.log10(1 + Math.max(0, node.followers)) * 2.1);
    return [String(node.id), {
      ...node, id: String(node.id), kind, size, links: new Map(),
      x: Math.cos(angle) * distance * aspect, y: Math.sin(angle) * distance, vx: 0, vy: 0,
    }];
  }));
  // Both directions of a pair are one link: it is drawn as one line with two heads.
  const links = [];
  for (const [from, to] of edges) {
    const [a, b] = [known.get(String(from)), known.get(String(to))];
    if (!a || !b || a === b) continue;
    const existing = b.links.get(a);
    if (existing) { existing.back = true; continue; }
    if (a.links.has(b)) continue;
    const link = { a, b, back: false };
    a.links.set(b, link);
    b.links.set(a, link);
    links.push(link);
  }
  return { nodes: [...known.values()], links, aspect };
}

/** One step: nodes repel, links attract, each kind keeps to its ring, an ellipse as wide as the picture. */
function step({ nodes, links, aspect }, heat) {
  for (let i = 0; i < nodes.length; i += 1) {
    for (let j = i + 1; j < nodes.length; j += 1) {
      const [a, b] = [nodes[i], nodes[j]];
      const [dx, dy] = [a.x - b.x || 0.01, a.y - b.y || 0.01];
      const squared = Math.max(60, dx * dx + dy * dy);
      const near = a.size + b.size + 16;
      const force = (squared < near * near ? 4 : 1) * REPULSION * heat / (squared * Math.sqrt(squared)) * 6;
      a.vx += dx * force; a.vy += dy * force;
      b.vx -= dx * force; b.vy -= dy * force;
    }
  }
  for (const { a, b } of links) {
    if (a.kind === "center" || b.kind === "center") continue; // The ring is its distance.
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    const force = 0.018 * heat / Math.sqrt(Math.min(a.links.size, b.links.size));
    a.vx += dx * force; a.vy += dy * force;
    b.vx -= dx * force; b.vy -= dy * force;
  }
  for (const node of nodes) {
    const distance = Math.hypot(node.x / aspect, node.y) || 1;
    const pull = node.kind === "center" ? 0.4 : 0.12;
    const force = ((KINDS[node.kind].radius - distance) / distance) * pull * heat;
    node.vx = (node.vx + node.x * force) * 0.6;
    node.vy = (node.vy + node.y * force) * 0.6;
    if (node.held) { node.vx = 0; node.vy = 0; continue; }
    node.x += Math.max(-30, Math.min(30, node.vx));
    node.y += Math.max(-30, Math.min(30, node.vy));
  }
}

class Picture {
  constructor(figure, document_) {
    this.figure = figure;
    this.stage = figure.querySelector(".graph-stage");
    const aspect = this.stage.clientWidth / Math.max(1, this.stage.clientHeight);
    this.graph = prepare(document_, Math.max(0.8, Math.min(1.6, aspect)));
    this.center = this.graph.nodes.find(node => node.kind === "center") ?? this.graph.nodes[0];
    this.view = { x: 0, y: 0, scale: 1 };
    this.pointers = new Map();
    this.lit = null;
    this.heat = 0;
    for (let tick = 0; tick < TICKS; tick += 1) step(this.graph, Math.max(0.02, 1 - tick / TICKS));
    this.build();
    this.fit();
    new ResizeObserver(() => { if (!this.moved) this.fit(); else this.draw(); }).observe(this.svg);
  }

  build() {
    this.wires = shape("path", { class: "wires" });
    this.centerWires = shape("path", { class: "wires wires-center" });
    this.heads = shape("path", { class: "heads" });
    this.litLines = ["lit-out", "lit-in"].map(tone => [shape("path", { class: `wires-lit ${tone}` }), shape("path", { class: `heads-lit ${tone}` })]);
    this.layer = shape("g");
    const base = this.figure.dataset.users ?? "/console/users/";
    // The largest are drawn last, above the others.
    for (const node of [...this.graph.nodes].sort((one, other) => one.size - other.size)) {
      const name = `${node.id}, ${KINDS[node.kind].phrase}, ${grouped(node.followers)} followers, follows ${grouped(node.following)}`;
      node.label = shape("text", { "aria-hidden": "true" }, short(node.id));
      node.dot = shape("circle", { r: node.size });
      node.halo = shape("circle", { class: "halo", r: node.size + 5, "stroke-width": 3 });
      node.anchor = shape("a", {
        class: `node kind-${node.kind}`, href: base + encodeURIComponent(node.id),
        "aria-label": name, tabindex: node === this.center ? 0 : -1, draggable: "false",
      }, node.halo, node.dot, node.label);
      node.anchor.addEventListener("pointerenter", () => { if (!this.pointers.size) this.highlight(node); });
      node.anchor.addEventListener("pointerleave", () => { if (!this.pointers.size) this.highlight(null); });
      node.anchor.addEventListener("focus", () => this.highlight(node));
      node.anchor.addEventListener("blur", () => this.highlight(null));
      node.anchor.addEventListener("dragstart", event => event.preventDefault());
      this.layer.append(node.anchor);
    }
    this.svg = shape("svg", { role: "group", "aria-label": "Neighbourhood. Arrow keys move between users, Enter opens one." },
      this.wires, this.centerWires, this.heads, ...this.litLines.flat(), this.layer);
    this.card = element("div", { class: "graph-card", hidden: true, "aria-hidden": "true" });
    this.stage.replaceChildren(this.svg, this.card, element("div", { class: "graph-buttons" },
      this.button("+", "Zoom in", () => this.zoom(1.4)),
      this.button("−", "Zoom out", () => this.zoom(1 / 1.4)),
      this.button("⤢", "Show everything", () => { this.moved = false; this.fit(); })));
    this.svg.addEventListener("pointerdown", event => this.press(event));
    this.svg.addEventListener("pointermove", event => this.move(event));
    for (const type of ["pointerup", "pointercancel"]) this.svg.addEventListener(type, event => this.release(event));
    this.svg.addEventListener("click", event => { if (this.dragged && event.detail > 0) event.preventDefault(); }, true); // Not those of keys.
    this.svg.addEventListener("keydown", event => this.key(event));
    this.svg.addEventListener("wheel", event => this.wheel(event), { passive: false });
  }

  button(text, label, act) {
    const button = element("button", { type: "button", "aria-label": label, title: label }, text);
    button.addEventListener("click", act);
    return button;
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (!width) return;
    const reach = axis => this.graph.nodes.flatMap(node => [node[axis] - node.size, node[axis] + node.size]);
    const [left, right, top, bottom] = [Math.min(...reach("x")), Math.max(...reach("x")), Math.min(...reach("y")), Math.max(...reach("y"))];
    const scale = Math.min(1.6, (width - 72) / Math.max(1, right - left), (height - 64) / Math.max(1, bottom - top));
    this.view = { scale, x: width / 2 - ((left + right) / 2) * scale, y: height / 2 - ((top + bottom) / 2) * scale };
    this.draw();
  }

  zoom(factor, at = { x: this.svg.clientWidth / 2, y: this.svg.clientHeight / 2 }) {
    const scale = Math.max(SCALE.min, Math.min(SCALE.max, this.view.scale * factor));
    const change = scale / this.view.scale;
    this.moved = true;
    this.view = { scale, x: at.x - (at.x - this.view.x) * change, y: at.y - (at.y - this.view.y) * change };
    this.draw();
  }

  /** Nodes grow slower than the space between them, so zooming in untangles. */
  sizeOf(node) { return node.size * Math.max(0.62, Math.sqrt(this.view.scale)); }

  draw() {
    const { x, y, scale } = this.view;
    for (const node of this.graph.nodes) {
      node.sx = node.x * scale + x;
      node.sy = node.y * scale + y;
      const size = this.sizeOf(node);
      node.anchor.setAttribute("transform", `translate(${fixed(node.sx)} ${fixed(node.sy)})`);
      node.dot.setAttribute("r", fixed(size));
      node.halo.setAttribute("r", fixed(size + 4));
      node.label.setAttribute("y", fixed(size + 12));
    }
    const [wires, centerWires, heads] = [[], [], []];
    for (const link of this.graph.links) {
      const toCenter = link.a === this.center || link.b === this.center;
      (toCenter ? centerWires : wires).push(this.line(link));
      // Heads on every line would hide the lines; the centre's always show, others when they are highlighted.
      if (toCenter) heads.push(this.centerHead(link.a, link.b), link.back ? this.centerHead(link.b, link.a) : "");
    }
    this.wires.setAttribute("d", wires.join(""));
    this.centerWires.setAttribute("d", centerWires.join(""));
    this.heads.setAttribute("d", heads.join(""));
    this.drawLit();
    this.placeLabels();
  }

  line({ a, b }) { return `M${fixed(a.sx)} ${fixed(a.sy)}L${fixed(b.sx)} ${fixed(b.sy)}`; }

  /** Heads that enter the centre would pile up there, so they stand where their lines begin. */
  centerHead(from, to) {
    if (to !== this.center) return this.head(from, to);
    return this.head(from, to, Math.hypot(to.sx - from.sx, to.sy - from.sy) - this.sizeOf(from) - 15);
  }

  /** The arrow head of "first follows second", by default at the edge of the second. */
  head(from, to, room = this.sizeOf(to) + 2) {
    const [dx, dy] = [to.sx - from.sx, to.sy - from.sy];
    const length = Math.hypot(dx, dy);
    if (length < room + 8 || length < this.sizeOf(to) + this.sizeOf(from) + 18) return "";
    const [ux, uy] = [dx / length, dy / length];
    const [tipX, tipY] = [to.sx - ux * room, to.sy - uy * room];
    const [backX, backY] = [tipX - ux * 7, tipY - uy * 7];
    const side = way => `${fixed(backX - uy * 3 * way)} ${fixed(backY + ux * 3 * way)}`;
    return `M${fixed(tipX)} ${fixed(tipY)}L${side(1)}L${side(-1)}Z`;
  }

  drawLit() {
    const paths = [[[], []], [[], []]];
    for (const [other, link] of this.lit?.links ?? []) {
      const outward = link.back || link.a === this.lit;
      const inward = link.back || link.b === this.lit;
      paths[outward ? 0 : 1][0].push(this.line(link));
      if (outward) paths[0][1].push(this.head(this.lit, other));
      if (inward) paths[1][1].push(this.head(other, this.lit));
    }
    this.litLines.forEach((pair, tone) => pair.forEach((path, part) => path.setAttribute("d", paths[tone][part].join(""))));
  }

  /** Labels by importance; one that would cover another, or a node, waits for more zoom or a highlight. */
  placeLabels() {
    const rank = node => (node === this.lit ? 1e9 : 0) + (node === this.center ? 1e6 : 0) + (this.lit?.links.has(node) ? 1e3 : 0) + node.size;
    const seen = this.graph.nodes.filter(node => !this.lit || node === this.lit || this.lit.links.has(node));
    const taken = seen.map(node => {
      const size = this.sizeOf(node) * 0.8;
      return { node, left: node.sx - size, right: node.sx + size, top: node.sy - size, bottom: node.sy + size };
    });
    for (const node of seen.sort((one, other) => rank(other) - rank(one))) {
      const [half, top] = [(node.label.textContent.length * LABEL.width) / 2 + 2, node.sy + this.sizeOf(node) + 2];
      const box = { node, left: node.sx - half, right: node.sx + half, top, bottom: top + LABEL.height };
      const free = node === this.lit || node === this.center || !taken.some(other => other.node !== node
        && other.left < box.right && box.left < other.right && other.top < box.bottom && box.top < other.bottom);
      node.anchor.classList.toggle("quiet", !free);
      if (free) taken.push(box);
    }
  }

  highlight(node) {
    if (this.lit === node) return;
    this.lit?.anchor.classList.remove("lit");
    if (this.lit) this.lit.label.textContent = short(this.lit.id);
    if (node) node.label.textContent = node.id;
    this.lit = node;
    this.svg.classList.toggle("dimmed", node !== null);
    for (const other of this.graph.nodes) other.anchor.classList.toggle("near", node !== null && (other === node || other.links.has(node)));
    node?.anchor.classList.add("lit");
    this.card.hidden = node === null;
    if (node) {
      this.card.replaceChildren(element("strong", { class: "id" }, node.id), element("br"),
        element("span", { class: "muted" }, `${KINDS[node.kind].name} · ${grouped(node.followers)} followers · follows ${grouped(node.following)}`));
    }
    this.drawLit();
    this.placeLabels();
  }

  at(event) {
    const box = this.svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  press(event) {
    if (event.button !== 0) return;
    this.dragged = false;
    this.start = this.at(event);
    this.pointers.set(event.pointerId, this.start);
    const anchor = event.target.closest(".node");
    this.held = this.pointers.size === 1 ? this.graph.nodes.find(node => node.anchor === anchor) ?? null : null;
    if (!this.held) this.svg.setPointerCapture(event.pointerId);
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    if (!event.buttons) return this.release(event); // It was let go outside the picture.
    const now = this.at(event);
    if (!this.dragged && this.pointers.size === 1 && Math.hypot(now.x - this.start.x, now.y - this.start.y) < CLICK_SLACK) return;
    if (!this.dragged && this.held) this.svg.setPointerCapture(event.pointerId);
    this.dragged = true;
    this.pointers.set(event.pointerId, now);
    if (this.held) {
      this.held.held = true;
      this.held.x = (now.x - this.view.x) / this.view.scale;
      this.held.y = (now.y - this.view.y) / this.view.scale;
      return this.warm();
    }
    this.moved = true;
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    if (others.length) {
      const distance = point => Math.max(10, Math.hypot(point.x - others[0].x, point.y - others[0].y));
      return this.zoom(distance(now) / distance(before), { x: (now.x + others[0].x) / 2, y: (now.y + others[0].y) / 2 });
    }
    this.view.x += now.x - before.x;
    this.view.y += now.y - before.y;
    this.draw();
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    this.held = null; // The node stays where it was put.
  }

  /** Lets the neighbours follow a dragged node, for a moment. */
  warm() {
    const idle = this.heat <= 0;
    this.moved = true;
    this.heat = 0.35;
    const frame = () => {
      step(this.graph, this.heat);
      this.draw();
      this.heat -= this.held ? 0 : 0.012;
      if (this.heat > 0) requestAnimationFrame(frame);
    };
    if (idle) requestAnimationFrame(frame);
  }

  /** The wheel belongs to the page until someone works with the picture. */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !this.stage.contains(document.activeElement) && !this.moved) return;
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), this.at(event));
  }

  key(event) {
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 1.4 : 1 / 1.4);
    const from = this.graph.nodes.find(node => node.anchor === document.activeElement);
    if (!direction || !from) return;
    event.preventDefault();
    const cost = node => {
      const [dx, dy] = [node.sx - from.sx, node.sy - from.sy];
      const [along, across] = [dx * direction[0] + dy * direction[1], Math.abs(dx * direction[1]) + Math.abs(dy * direction[0])];
      return along > 0.5 ? along + across * 2.5 : Infinity;
    };
    const next = this.graph.nodes.reduce((best, node) => (cost(node) < cost(best) ? node : best), from);
    if (next === from) return;
    from.anchor.setAttribute("tabindex", "-1");
    next.anchor.setAttribute("tabindex", "0");
    next.anchor.focus({ preventScroll: true });
  }
}

/** The same in words: what the picture shows, as a table. */
function table(figure, nodes) {
  const body = figure.querySelector("[data-graph-table]");
  const base = figure.dataset.users ?? "/console/users/";
  body?.replaceChildren(...nodes.map(node => element("tr", {},
    element("th", { scope: "row" }, element("a", { class: "id", href: base + encodeURIComponent(node.id) }, node.id)),
    element("td", {}, KINDS[node.kind]?.name ?? node.kind),
    element("td", { class: "num" }, grouped(node.followers)),
    element("td", { class: "num" }, grouped(node.following)))));
}

function message(figure, text, retry) {
  const parts = [element("p", {}, text)];
  if (retry) {
    const button = element("button", { type: "button", class: "button button-small" }, "Try again");
    button.addEventListener("click", () => show(figure));
    parts.push(button);
  }
  figure.querySelector(".graph-stage").replaceChildren(element("div", { class: "graph-message", role: "status" }, ...parts));
}

async function show(figure) {
  message(figure, "Loading the picture…");
  try {
    const response = await fetch(figure.dataset.graph, { redirect: "error", headers: { accept: "application/json" } });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const graph = await response.json();
    if (graph.nodes.length < 2) return message(figure, "This user has no neighbours yet: nobody to draw.");
    table(figure, graph.nodes);
    new Picture(figure, graph);
    if (graph.is_partial) {
      figure.querySelector("[data-graph-note]").textContent =
        "Some follows are missing: your key has reached its rate limit. Reload the page in a moment.";
    }
  } catch (error) {
    message(figure, `The picture could not be loaded: ${error.message}.`, true);
  }
}

for (const figure of document.querySelectorAll("[data-graph]")) show(figure);
