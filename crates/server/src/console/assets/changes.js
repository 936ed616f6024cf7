// The live tail of the change log: a list fed by server-sent events. It shows and filters; it keeps no change after a reload.

import { element, grouped, showTimes, timeElement } from "./console.js";

const ROWS_MAX = 500;
const QUEUE_MAX = 5_000;
const REOPEN_MS = 5_000;
const HIDDEN_MS = 60_000;
const SUMMARY_EVERY_MS = 10_000;

const root = document.querySelector("[data-stream]");
const find = name => root.querySelector(`[data-${name}]`);
const [list, state, empty, pause, summary, chips] = ["log", "stream-state", "log-empty", "pause", "summary", "chips"].map(find);
const userField = find("user");
const types = root.dataset.types.split(/[\s,]+/).filter(Boolean);
const hiddenTypes = new Set();

let source = null;
let waiting = [];
let paused = false;
let received = 0;
let announced = 0;
let position = ""; // The token of the last event: a stream that is opened anew continues after it.

const TONES = [
  [/purge|remove|lock/, "badge-bad"],
  [/^un|delete/, "badge-warn"],
  [/^comment/, "badge-violet"],
  [/^post/, "badge-info"],
  [/^follow|^import/, "badge-ok"],
];

const toneOf = type => TONES.find(([pattern]) => pattern.test(type))?.[1] ?? "";
const words = type => type.replaceAll("_", " ");
const link = (kind, id) => element("a", { class: "id", href: `${root.dataset[kind]}${encodeURIComponent(id)}` }, id);
const user = id => link("users", id);

function parent(change) {
  if (change.post) return ["post ", link("posts", change.post)];
  if (change.item) return ["item ", element("span", { class: "id" }, change.item)];
  if (change.conversation) return ["conversation ", element("span", { class: "id" }, change.conversation)];
  return [];
}

const by = change => {
  if (!change.removed_by) return [];
  const [kind, ...name] = change.removed_by.split(":");
  return [" by ", kind === "user" ? user(name.join(":")) : `key ${name.join(":")}`];
};

const quote = text => element("span", { class: "quote" }, text);

/** The sentence of each type that this version knows. */
const SENTENCES = {
  follow: change => [user(change.follower), " follows ", user(change.followee)],
  unfollow: change => [user(change.follower), " unfollowed ", user(change.followee),
    ...(change.since ? [", a follower since ", timeElement(change.since)] : [])],
  dismiss: change => [user(change.follower), " dismissed the suggestion of ", user(change.followee)],
  undismiss: change => [user(change.follower), " allows the suggestion of ", user(change.followee), " again"],
  imported: change => [`An import added ${grouped(change.edges ?? 0)} edges`],
  post: change => [user(change.author), " posted ", link("posts", change.post),
    ...(change.delivery ? [change.delivery === "pull" ? ", pulled by readers" : ", pushed to followers"] : []),
    ...(change.payload === undefined ? [] : [quote(change.payloadText)])],
  post_deleted: change => ["Post ", element("span", { class: "id" }, change.post), " of ", user(change.author), " was deleted"],
  comment: change => [user(change.author), change.reply_to ? " replied on " : " commented on ", ...parent(change), ...body(change)],
  comment_edited: change => [user(change.author), " edited a comment on ", ...parent(change),
    ` (version ${change.version})`, ...body(change)],
  comment_deleted: change => [user(change.author), " deleted a comment on ", ...parent(change)],
  comment_removed: change => ["A comment of ", user(change.author), " on ", ...parent(change), " was removed", ...by(change)],
  comment_purged: change => ["A comment of ", user(change.author), " on ", ...parent(change), " was purged", ...by(change)],
  comments_locked: change => ["Comments on ", ...parent(change), " were locked"],
  comments_unlocked: change => ["Comments on ", ...parent(change), " were unlocked"],
};

const body = change => (change.body ? [quote(change.body)] : []);

/** Types of later versions: all their fields. */
function fields(change) {
  const shown = Object.entries(change).filter(([key]) => !["position", "type", "at"].includes(key));
  return [shown.map(([key, value]) => `${words(key)}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ")];
}

function row(change) {
  const sentence = (SENTENCES[change.type] ?? fields)(change);
  const item = element("li", { class: "fresh" },
    timeElement(change.at),
    element("span", {}, element("span", { class: `badge ${toneOf(change.type)}` }, words(change.type))),
    element("span", { class: "what" }, ...sentence),
    element("span", { class: "position id", title: "Position in the log" }, change.position));
  item.dataset.type = change.type;
  item.dataset.of = [change.follower, change.followee, change.author, change.removed_by?.replace(/^user:/, "")].filter(Boolean).join(" ");
  return item;
}

function applyFilter(items = list.children) {
  const wanted = userField.value.trim();
  for (const item of items) {
    item.hidden = hiddenTypes.has(item.dataset.type) || (wanted !== "" && !item.dataset.of.split(" ").includes(wanted));
  }
  const any = [...list.children].some(item => !item.hidden);
  empty.hidden = any;
  if (!any) {
    empty.textContent = list.children.length
      ? "No change matches the filter."
      : "No changes yet. New ones appear here as they are written.";
  }
}

function add(changes) {
  const items = changes.map(row).reverse();
  list.prepend(...items);
  applyFilter(items);
  // What the filter hides must not push out what it has found.
  const kept = { shown: 0, hidden: 0 };
  for (const item of [...list.children]) {
    const sort = item.hidden ? "hidden" : "shown";
    kept[sort] += 1;
    if (kept[sort] > ROWS_MAX) item.remove();
  }
}

function showPause() {
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? (waiting.length ? `Resume, ${grouped(waiting.length)}${waiting.length === ROWS_MAX ? "+" : ""} waiting` : "Resume") : "Pause";
}

let queue = [];
function flush() {
  const changes = queue;
  queue = [];
  if (changes.length) add(changes);
}

/** A payload as it was written: numbers keep their digits where the browser can. */
function payloadText(data) {
  const exact = (_, value, context) => (typeof value === "number" && context?.source && JSON.rawJSON ? JSON.rawJSON(context.source) : value);
  return JSON.stringify(JSON.parse(data, exact).payload);
}

function receive(event) {
  let change;
  try { change = JSON.parse(event.data); } catch { return; }
  if (change.payload !== undefined) change.payloadText = payloadText(event.data);
  change.type ??= event.type;
  position = event.lastEventId || position;
  received += 1;
  if (paused) {
    waiting.push(change);
    if (waiting.length > ROWS_MAX) waiting.shift(); // Older ones would not be shown anyway.
    return showPause();
  }
  // A burst becomes one change of the page.
  if (!queue.length) setTimeout(flush, 100);
  queue.push(change);
  if (queue.length > QUEUE_MAX) queue.shift(); // A tab that nobody sees is given little time.
}

function report(name, text) {
  if (state.dataset.state === name && state.textContent === text) return;
  state.dataset.state = name;
  state.replaceChildren(element("span", { class: "dot" }), text);
}

/** After a refusal: tries again, unless the session has ended. */
async function reopen() {
  const response = await fetch(location.pathname, { redirect: "manual", cache: "no-store" }).catch(() => null);
  if (response && [401, 403].includes(response.status)) return report("ended", "Signed out. Reload the page to sign in again");
  // A token that the server does not take (a restored store, a trimmed log) is not taken the next time either.
  if (response?.ok && [400, 410].includes(await statusOf(streamAddress()))) {
    return report("ended", "The log can't be continued from here. Reload the page");
  }
  setTimeout(open, REOPEN_MS);
}

/** The status of a response, without its body, which may never end. */
async function statusOf(address) {
  const abort = new AbortController();
  const response = await fetch(address, { signal: abort.signal, redirect: "manual", cache: "no-store" }).catch(() => null);
  abort.abort();
  return response?.status ?? 0;
}

function streamAddress() {
  const address = new URL(root.dataset.stream, location.href);
  if (position) address.searchParams.set("after", position);
  return address;
}

function open() {
  report("connecting", "Connecting");
  source = new EventSource(streamAddress());
  source.addEventListener("open", () => report("live", "Live"));
  source.addEventListener("problem", event => {
    source.close();
    let message = event.data;
    try { const problem = JSON.parse(event.data); message = problem.detail || problem.title || problem.code; } catch { /* Plain text. */ }
    report("ended", `The stream ended: ${message}. Reload the page to continue`);
  });
  source.addEventListener("error", () => {
    if (state.dataset.state === "ended") return;
    report("lost", "Connection lost, retrying");
    // The browser reopens a stream by itself unless the server refused it.
    if (source.readyState === EventSource.CLOSED) reopen();
  });
  for (const type of types) source.addEventListener(type, receive);
  source.addEventListener("message", receive);
}

for (const type of types) {
  const box = element("input", { type: "checkbox", checked: true });
  box.addEventListener("change", () => {
    hiddenTypes[box.checked ? "delete" : "add"](type);
    applyFilter();
  });
  chips.append(element("label", { class: "chip" }, box, words(type)));
}

find("all")?.addEventListener("click", () => setAll(true));
find("none")?.addEventListener("click", () => setAll(false));
function setAll(checked) {
  for (const [index, box] of [...chips.querySelectorAll("input")].entries()) {
    box.checked = checked;
    hiddenTypes[checked ? "delete" : "add"](types[index]);
  }
  applyFilter();
}

userField.addEventListener("input", () => applyFilter());
pause.addEventListener("click", () => {
  flush();
  paused = !paused;
  if (!paused) { add(waiting); waiting = []; }
  showPause();
});
// A tab that nobody has seen for a while lets go of its stream, and goes on from there when it is seen again.
let letGo = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(letGo);
  if (document.hidden) {
    letGo = setTimeout(() => {
      if (state.dataset.state === "ended") return;
      source.close();
      report("idle", "Not live while this tab is hidden");
    }, HIDDEN_MS);
  } else if (state.dataset.state === "idle") {
    open();
  }
});
setInterval(() => {
  showTimes(list);
  if (received === announced) return;
  announced = received;
  summary.textContent = `${grouped(received)} ${received === 1 ? "change" : "changes"} since this page was opened`;
}, SUMMARY_EVERY_MS);

applyFilter();
showPause();
open();
