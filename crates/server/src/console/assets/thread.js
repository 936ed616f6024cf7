// Loads further comments in place of a "load more" link. Without it, the link leads to a page with the same comments.

import { enliven } from "./console.js";

/** The address of the bare items: the page of the link, with `fragment=1`. */
function fragmentAddress(link) {
  const address = new URL(link.href);
  address.searchParams.set("fragment", "1");
  return address;
}

async function load(link) {
  if (link.getAttribute("aria-busy") === "true") return;
  const text = link.textContent;
  link.setAttribute("aria-busy", "true");
  link.textContent = "Loading…";
  try {
    // A redirect leads to the sign-in page, which must not become part of the thread.
    const response = await fetch(fragmentAddress(link), { redirect: "error" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const parsed = new DOMParser().parseFromString(`<ol>${await response.text()}</ol>`, "text/html");
    const items = [...parsed.body.firstElementChild.children].filter(item => item.localName === "li");
    const place = link.closest("li");
    place.replaceWith(...items);
    removeNamed(items);
    for (const item of items) enliven(item);
    announce(items);
  } catch {
    link.removeAttribute("aria-busy");
    link.textContent = `${text.replace(/ \(.*failed.*\)$/, "")} (loading failed, try again)`;
  }
}

/** A comment that was shown by itself is in its place in the thread now: two elements with one id would confuse labels and links. */
function removeNamed(items) {
  const named = document.querySelector("[data-named]");
  const id = named?.querySelector("article")?.id;
  // Nobody loses what they are writing.
  const isWritten = [...(named?.querySelectorAll("textarea") ?? [])].some(area => area.value !== area.defaultValue);
  if (id && !isWritten && items.some(item => item.querySelector(`#${CSS.escape(id)}`))) named.remove();
}

/** Moves the focus to the first new comment, since the link that had it is gone. */
function announce(items) {
  const first = items[0]?.querySelector("article") ?? items[0];
  if (!first) return;
  first.setAttribute("tabindex", "-1");
  first.focus({ preventScroll: true });
  const status = document.querySelector("[data-thread-status]");
  const count = items.flatMap(item => [...item.querySelectorAll("article")]).length;
  if (status) status.textContent = count === 1 ? "1 more comment" : `${count} more comments`;
}

document.addEventListener("click", event => {
  const link = event.target.closest?.("a[data-more]");
  const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!link || !plain) return;
  event.preventDefault();
  load(link);
});

// A comment that the address names may be inside a long thread; open its forms only when asked to.
document.addEventListener("toggle", event => {
  const details = event.target;
  if (details.localName !== "details" || !details.open || !details.closest(".actions")) return;
  for (const other of details.closest(".actions").querySelectorAll("details[open]")) {
    if (other !== details) other.open = false;
  }
  details.querySelector("textarea, input:not([type=hidden])")?.focus();
}, true);
