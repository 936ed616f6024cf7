// What every page shares: relative times, coloured JSON, copy buttons, menus, confirmations. It requests nothing from the server.

const NUMBERS = new Intl.NumberFormat("en-US");
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const ABSOLUTE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });
const UNITS = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];
const TIMES_EVERY_MS = 30_000;

/** A whole number with groups: 1,000,001. */
export const grouped = number => NUMBERS.format(number);

/** Creates an element with attributes and children. Strings become text, never markup. */
export function element(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

/** The same for a part of a picture. */
export function shape(name, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** How long ago a time was, in words. */
export function relative(date, now = Date.now()) {
  const seconds = (date.getTime() - now) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS.at(-1);
  return Math.abs(seconds) < 5 ? "just now" : RELATIVE.format(Math.trunc(seconds / size), unit);
}

/** Shows all times below a node as relative ones; the exact time stays in the title. `data-absolute` keeps a time as it is. */
export function showTimes(root = document) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-absolute])")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    time.textContent = relative(date);
    time.title = ABSOLUTE.format(date);
  }
}

/** A `<time>` element that `showTimes` keeps fresh. */
export function timeElement(text) {
  const date = new Date(text);
  return element("time", { datetime: text, title: ABSOLUTE.format(date) }, relative(date));
}

const JSON_TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;

/** Colours the JSON of `pre[data-json]`. The text itself does not change. */
export function colourJson(root = document) {
  for (const code of root.querySelectorAll("pre[data-json]:not([data-coloured])")) {
    const text = code.textContent;
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(JSON_TOKEN)) {
      const [, string, colon, number] = match;
      const kind = string ? (colon ? "json-key" : "json-text") : number ? "json-number" : "json-word";
      const token = string ?? match[0];
      parts.push(text.slice(end, match.index), element("span", { class: kind }, token));
      end = match.index + token.length;
    }
    code.replaceChildren(...parts, text.slice(end));
    code.dataset.coloured = "";
    if (code.scrollHeight > code.clientHeight) code.tabIndex = 0; // Only what scrolls needs the keyboard.
  }
}

/** Makes the copy buttons below a node work. They stay hidden where the browser offers no clipboard. */
export function offerCopies(root = document) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("button[data-copy][hidden]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      const before = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = before; }, 1500);
    });
  }
}

/** Prepares what was added to the page. */
export function enliven(root = document) {
  showTimes(root);
  colourJson(root);
  offerCopies(root);
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!except || !menu.contains(except)) menu.open = false;
  }
}

document.addEventListener("click", event => closeMenus(event.target));
document.addEventListener("keydown", event => {
  if (event.key === "Escape") {
    const menu = document.querySelector("details.menu[open]");
    if (menu?.contains(document.activeElement)) menu.querySelector("summary").focus();
    closeMenus();
  }
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    const search = document.querySelector(".search input");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  }
});

// A form that cannot be undone asks first. Without scripts, its button is inside a disclosure that says what it does.
document.addEventListener("submit", event => {
  const question = event.target.dataset?.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
  // A second click while the first is under way would send the form twice.
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (event.target.dataset.sent) return event.preventDefault();
  event.target.dataset.sent = "";
});
addEventListener("pageshow", () => { for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent; });

// Rows of a table by a word: <input data-filter="id-of-the-table">.
for (const input of document.querySelectorAll("input[data-filter]")) {
  const table = document.getElementById(input.dataset.filter);
  const count = document.querySelector(`[data-filter-count="${input.dataset.filter}"]`);
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
    const shown = rows.filter(row => !row.hidden).length;
    if (count) count.textContent = words.length ? `${grouped(shown)} of ${grouped(rows.length)} match` : "";
  };
  input.addEventListener("input", apply);
  apply();
}

enliven();
setInterval(() => { if (!document.hidden) showTimes(); }, TIMES_EVERY_MS);
