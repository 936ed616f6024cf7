// What the tests of the console share: servers, a browser that complains of whatever goes wrong in a page, and the audit of a page.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, afterEach } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

// The libraries are where scripts/console has installed them, not beside this file.
const library = createRequire(join(process.env.CONSOLE_TOOLS, 'package.json'));
const { chromium } = library('playwright-core');
const AXE = readFileSync(library.resolve('axe-core/axe.min.js'), 'utf8');

/** The longest that anything is waited for. A busy machine takes seconds, nothing takes half of this. */
export const PATIENCE_MS = 20_000;
const BROWSER = {
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
  timeout: PATIENCE_MS,
};
// Tests write faster than people, and the servers of all files share two cores.
const UNLIMITED = ['--limit-changes', 'none', '--limit-author-comments', 'none', '--limit-parent-comments', 'none'];

/** Waits until a condition holds, and returns what it has found. */
export async function until(what, condition, patience_ms = PATIENCE_MS) {
  const deadline = Date.now() + patience_ms;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > deadline) assert.fail(`waited in vain: ${what}`);
    await delay(25);
  }
}

// Servers ---------------------------------------------------------------------------------------------------------------------

const running = new Set();
const folders = [];
const removeFolders = () => { for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true }); };
// Whichever way this process ends, its servers end before it.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  removeFolders();
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

/** Starts the program. The kernel ends it if this process is killed. */
function launch(parameters, folder) {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', process.env.KINFOLK_BINARY, ...parameters], {
    cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder },
  });
  running.add(child);
  child.ended = new Promise((resolve) => child.on('close', (status) => { running.delete(child); resolve(status); }));
  return child;
}

/** A folder that is removed at the end. */
export function temporary() {
  const folder = mkdtempSync(join(tmpdir(), 'kinfolk-console-'));
  folders.push(folder);
  return folder;
}

/** Runs a command of the program to its end, and returns what it prints. */
export async function kinfolk(folder, ...parameters) {
  const child = launch(parameters, folder);
  const read = async (stream) => { let text = ''; for await (const part of stream) text += part; return text; };
  const [output, errors, status] = await Promise.all([read(child.stdout), read(child.stderr), child.ended]);
  assert.equal(status, 0, `kinfolk ${parameters[0]} failed: ${errors}`);
  return output.trim();
}

/** A port that is free now, for a server that has to come back at the same one. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.on('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A running server, and the calls of a program to it. */
class Site {
  constructor(child, url, facts = {}) {
    Object.assign(this, facts, { child, url });
  }

  /** Stops it as an operator would. */
  async stop() {
    this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), PATIENCE_MS);
    await this.child.ended;
    clearTimeout(late);
  }

  /** A request as a browser or a program sends it. Nothing is followed or interpreted. */
  fetch(path, options = {}) {
    return fetch(this.url + path, { redirect: 'manual', signal: AbortSignal.timeout(PATIENCE_MS), ...options });
  }

  /** A call of the REST API, with its JSON. */
  async rest(method, path, { actor, body, key, headers } = {}) {
    const response = await this.fetch(path, {
      method, body: body && JSON.stringify(body),
      headers: {
        ...(actor && { 'Kinfolk-Actor': String(actor) }), ...(body && { 'Content-Type': 'application/json' }),
        ...(key && { Authorization: `Bearer ${key}` }), ...headers,
      },
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  /** All items of a list of the REST API. */
  async all(path) {
    const items = [];
    let cursor = '';
    do {
      const page = await this.rest('GET', `${path}?limit=100${cursor && `&cursor=${cursor}`}`);
      items.push(...page.items);
      cursor = page.next ?? '';
    } while (cursor);
    return items;
  }

  /** Writes a post, and returns its id. */
  async post(author, title = 'Hello') {
    const post = await this.rest('POST', '/v1/posts', { actor: author, body: { author: String(author), payload: { title } } });
    return post.id;
  }

  /** Writes a comment, and returns it. */
  comment(post, author, body, reply_to) {
    return this.rest('POST', `/v1/posts/${post}/comments`, { actor: author, body: { body, reply_to }, headers: { 'Idempotency-Key': randomUUID() } });
  }
}

/** A server over a folder; its port is free or one that was free before. */
export async function serve({ folder = temporary(), port = 0, flags = [] } = {}) {
  const child = launch(['serve', '--data', join(folder, 'graph'), '--http', `127.0.0.1:${port}`, '--resp', '127.0.0.1:0',
    ...UNLIMITED, ...flags], folder);
  const log = [];
  const url = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`the server is not ready: ${log.join('\n')}`)), PATIENCE_MS);
    createInterface(child.stderr).on('line', (line) => {
      log.push(line);
      const found = /^kinfolk: ready: ([^ ,]+)/.exec(line);
      if (found) { clearTimeout(late); resolve(found[1]); }
    });
    child.ended.then(() => { clearTimeout(late); reject(new Error(`the server has ended: ${log.join('\n')}`)); });
  });
  return new Site(child, url, { folder, log });
}

/** The demo: users, posts and comments that are the same in each run, apart from the ids of posts and comments. */
export async function demo({ edges = 20_000, flags = [] } = {}) {
  const folder = temporary();
  const child = launch(['demo', '--json', '--edges', String(edges), '--http', '127.0.0.1:0', '--resp', '127.0.0.1:0',
    ...UNLIMITED, ...flags], folder);
  child.stderr.resume();
  const lines = [];
  await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('the demo is not ready')), PATIENCE_MS);
    createInterface(child.stdout).on('line', (line) => {
      if (lines.push(JSON.parse(line)) === 2) { clearTimeout(late); resolve(); }
    });
    child.ended.then(() => { clearTimeout(late); reject(new Error('the demo has ended')); });
  });
  const [{ celebrity, fan, feed, comments }, { http }] = lines;
  return new Site(child, http, { folder, celebrity, fan, feed, busiestPost: comments[0].post, comments });
}

// The browser -----------------------------------------------------------------------------------------------------------------

let browser = null;
const visitors = new Set();
after(async () => {
  await browser?.close();
  await Promise.all([...running].map((child) => new Site(child).stop()));
  removeFolders();
});
// A test that fails leaves its pages open.
afterEach(async () => { for (const visitor of visitors) await visitor.context.close(); visitors.clear(); });

/** Whether a request did not fail, but was cut off because its page was left. */
const isCutOff = (request) => request.failure()?.errorText === 'net::ERR_ABORTED' && !request.isNavigationRequest();

/** Somebody with a browser of their own: one context, usually one tab. */
class Visitor {
  /** Everything that went wrong, in words. */
  problems = [];
  /** Statuses of responses that a test provokes. Each makes the browser log an error, too. */
  expected = new Set();
  /** Addresses of files: to the page in front, going there has failed. */
  downloaded = new Set();
  isOffline = false;

  constructor(site, context) {
    this.site = site;
    this.context = context;
    context.setDefaultTimeout(PATIENCE_MS);
    context.on('page', (page) => this.watch(page));
  }

  watch(page) {
    const report = (what) => { if (!this.isOffline) this.problems.push({ on: page.url(), what }); };
    page.on('pageerror', (error) => report(`page error: ${error.stack ?? error}`));
    page.on('console', (message) => {
      const status = /Failed to load resource: the server responded with a status of (\d+)/.exec(message.text())?.[1];
      if (status ? this.expected.has(Number(status)) : !['error', 'warning'].includes(message.type())) return;
      report(`console ${message.type()}: ${message.text()}`);
    });
    page.on('requestfailed', (request) => {
      if (!isCutOff(request)) report(`request failed: ${request.url()} ${request.failure()?.errorText}`);
    });
    page.on('download', (download) => this.downloaded.add(`request failed: ${download.url()} net::ERR_ABORTED`));
    page.on('response', (response) => {
      if (response.status() >= 400 && !this.expected.has(response.status())) report(`status ${response.status()} of ${response.url()}`);
    });
  }

  /** Another tab. */
  async tab() {
    this.page = await this.context.newPage();
    return this.page;
  }

  /** Opens a page of the console, and waits until its scripts have run. */
  open(path, page = this.page) {
    return page.goto(this.site.url + path, { waitUntil: 'load' });
  }

  /** Acts as a user, through a page that is light. */
  async actAs(user) {
    await this.open(`/console/users/${user}/posts`);
    await this.press('Act as this user');
    assert.match(await this.notice(), /^You are acting as this user now/);
  }

  /** Does what leads to another page, such as sending a form, and waits for that page. */
  async follow(action, page = this.page) {
    await Promise.all([page.waitForEvent('load'), action()]);
  }

  /** Presses the button that sends a form, and waits for the page after it. */
  press(name, within = this.page.getByRole('main')) {
    return this.follow(() => within.getByRole('button', { name, exact: true }).click());
  }

  /** The message at the top of the page. */
  notice() {
    return this.page.locator('.notice-ok').first().innerText();
  }

  /** Fails if something went wrong in a page. */
  check() {
    assert.deepEqual(this.problems.filter(({ what }) => !this.downloaded.has(what)), []);
  }

  /** Fails if something went wrong, or if the page in front does not fit a phone, and closes the browser of this visitor. */
  async leave() {
    if (!this.page.isClosed()) await fitsPhone(this.page);
    this.check();
    visitors.delete(this);
    await this.context.close();
  }
}

/** A visitor with an empty browser. */
export async function visitor(site, options = {}) {
  browser ??= await chromium.launch(BROWSER);
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 }, colorScheme: 'light', reducedMotion: 'reduce', locale: 'en-GB',
    permissions: ['clipboard-read', 'clipboard-write'], ...options,
  });
  const guest = new Visitor(site, context);
  visitors.add(guest);
  await guest.tab();
  return guest;
}

// Audits ----------------------------------------------------------------------------------------------------------------------

const PHONE = { width: 375, height: 720 };
/** What axe finds depends on the colours in these rules alone. */
const RULES_OF_COLOURS = ['color-contrast', 'link-in-text-block'];

async function violations(page, options) {
  // Evaluated, not loaded: the policy of the pages refuses scripts that are not theirs.
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(AXE);
  const { violations } = await page.evaluate((options) => window.axe.run({ resultTypes: ['violations'], preload: false, ...options }), options);
  return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)).map(({ id, impact, nodes }) =>
    `${impact} ${id}, ${nodes.length} times: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`).join('; ')}`);
}

/** What is wider than the window. Regions that scroll by themselves do not count. */
const overflow = (page) => page.evaluate(() => {
  const root = document.scrollingElement;
  if (root.scrollWidth <= innerWidth) return [];
  const wide = [...document.body.querySelectorAll('*')].filter((node) => node.getBoundingClientRect().right > innerWidth + 1);
  return [`the page is ${root.scrollWidth} px wide`, ...wide.slice(0, 5).map((node) => node.outerHTML.slice(0, 160))];
});

/** Checks that a page needs no scrolling sideways on a phone. */
async function fitsPhone(page) {
  const size = page.viewportSize();
  await page.setViewportSize(PHONE);
  // Charts are drawn anew for the width that they get, a moment later.
  let wide = await overflow(page);
  for (let turn = 0; wide.length > 0 && turn < 40; turn += 1) {
    await delay(50);
    wide = await overflow(page);
  }
  assert.deepEqual(wide, [], `${page.url()} on a phone`);
  await page.setViewportSize(size);
}

/** Checks that the page as it is now is accessible in both colour schemes. */
export async function audit(page) {
  const where = new URL(page.url()).pathname;
  for (const [colorScheme, options] of [['light', {}], ['dark', { runOnly: { type: 'rule', values: RULES_OF_COLOURS } }]]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page, options), [], `${where}, ${colorScheme}`);
  }
}
