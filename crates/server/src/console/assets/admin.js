// Runs jobs: posts a form, reads the lines of JSON that the server sends while it works, and shows progress and result.
// It decides nothing: what a job may do, and who may start it, is the server's business.

import { element, grouped } from "./console.js";

let running = 0;

const words = key => { const text = key.replaceAll("_", " "); return text[0].toUpperCase() + text.slice(1); };

function bytes(count) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10));
  return power ? `${(count / 1024 ** power).toFixed(1)} ${units[power]}` : `${count} bytes`;
}

/** Where a form goes: its fields are parameters, and a file is the body. */
function request(form) {
  const address = new URL(form.action);
  let body = null;
  for (const [name, value] of new FormData(form)) {
    if (value instanceof File) body = value; else if (value !== "") address.searchParams.set(name, value);
  }
  return { address, body };
}

/** The lines of a response as they arrive. The last one may lack its line end. */
async function* lines(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
    const parts = rest.split("\n");
    rest = parts.pop();
    yield* parts.filter(part => part.trim() !== "");
    if (done) break;
  }
  if (rest.trim() !== "") yield rest;
}

/** The part of a card that shows how far the job is. */
class Output {
  constructor(node) {
    this.node = node;
    this.bar = element("progress", { "aria-label": "Progress" });
    this.text = element("p", { class: "small" }, "Starting");
    // A screen reader reads what changes in it, so it is there before it says something.
    this.notice = element("div", { role: "status" });
    node.replaceChildren(this.bar, this.text, this.notice);
    node.hidden = false;
  }

  progress({ stage, done, total }) {
    const amount = stage === "reading" ? bytes : grouped;
    if (total) {
      this.bar.max = total;
      this.bar.value = Math.min(done, total);
    } else {
      this.bar.removeAttribute("value");
    }
    const percent = total ? ` (${Math.floor((done / total) * 100)} %)` : "";
    this.text.textContent = `${words(stage)}: ${amount(done)}${total ? ` of ${amount(total)}` : ""}${percent}`;
  }

  result(outcome, started) {
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    const entries = Object.entries(outcome).filter(([, value]) => !(Array.isArray(value) && value.length === 0));
    const left = outcome.repaired ? 0 : outcome.differences ?? 0;
    const title = `Done in ${seconds} s${left ? `: ${grouped(left)} ${left === 1 ? "difference is" : "differences are"} not repaired` : ""}`;
    this.finish(left ? "notice-bad" : "notice-ok", title, element("dl", { class: "job-result" }, ...entries.flatMap(([key, value]) => [
      element("dt", {}, words(key)),
      element("dd", { class: key === "token" ? "id" : null }, ...shown(value)),
    ])));
  }

  error(problem) {
    const text = problem.detail || problem.title || problem.code || "The job failed";
    const id = problem.request_id ? [element("p", { class: "small" }, "Request ", element("span", { class: "id" }, problem.request_id))] : [];
    this.finish("notice-bad", text[0].toUpperCase() + text.slice(1), ...id);
  }

  finish(kind, text, ...more) {
    this.bar.remove();
    this.text.remove();
    this.notice.className = `notice ${kind}`;
    this.notice.replaceChildren(element("div", {}, element("strong", {}, text)));
    this.node.append(...more);
  }
}

function shown(value) {
  if (typeof value === "number") return [Number.isInteger(value) ? grouped(value) : String(value)];
  if (typeof value === "boolean") return [value ? "yes" : "no"];
  if (Array.isArray(value)) return [element("ul", {}, ...value.map(text => element("li", {}, String(text))))];
  return [String(value)];
}

async function run(form) {
  const card = form.closest(".job");
  const output = new Output(card.querySelector("[data-output]"));
  const button = form.querySelector("button[type=submit], button:not([type])");
  const stop = form.querySelector("[data-stop]");
  const abort = new AbortController();
  const started = performance.now();
  let finished = false;
  button.disabled = true;
  if (stop) { stop.hidden = false; stop.onclick = () => abort.abort(); }
  running += 1;
  try {
    const { address, body } = request(form);
    if (body) output.text.textContent = `Sending ${body.name}, ${bytes(body.size)}`;
    const response = await fetch(address, {
      method: "POST", body, redirect: "error", signal: abort.signal,
    });
    if (!response.ok) {
      const problem = await response.json().catch(() => ({ title: `The server refused with status ${response.status}` }));
      finished = true;
      return output.error(problem);
    }
    for await (const line of lines(response.body)) {
      const message = JSON.parse(line);
      if (message.progress) output.progress(message.progress);
      if (message.result) { finished = true; output.result(message.result, started); }
      if (message.error) { finished = true; output.error(message.error); }
    }
    if (!finished) output.error({ detail: "The connection ended before the job reported its result. Look into the log of the server." });
  } catch (error) {
    if (finished) return;
    output.error({ detail: abort.signal.aborted
      ? "Stopped. Some jobs resume where they were when they run again."
      : `The connection to the server failed: ${error.message}` });
  } finally {
    running -= 1;
    button.disabled = false;
    if (stop) stop.hidden = true;
  }
}

for (const form of document.querySelectorAll("form[data-job]")) {
  form.addEventListener("submit", event => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    run(form);
  });
}

// The format follows the name of the file, as on the command line.
for (const input of document.querySelectorAll("input[type=file][data-format]")) {
  const select = document.getElementById(input.dataset.format);
  input.addEventListener("change", () => {
    const name = input.files[0]?.name.toLowerCase() ?? "";
    const formats = [...select.options].map(option => option.value).sort((one, other) => other.length - one.length);
    select.value = formats.find(format => name.endsWith(`.${format}`)) ?? select.value;
  });
}

// A download leaves the page where it is.
let downloading = false;
const noteDownload = () => {
  downloading = true;
  setTimeout(() => { downloading = false; }, 1_000);
};
for (const link of document.querySelectorAll("a[href='/console/admin/backup']")) link.addEventListener("click", noteDownload);
for (const form of document.querySelectorAll("form[method=get]")) form.addEventListener("submit", noteDownload);
addEventListener("beforeunload", event => { if (running && !downloading) event.preventDefault(); });
