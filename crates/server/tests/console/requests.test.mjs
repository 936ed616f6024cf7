// Requests without a browser: what other sites may not send, the headers of every response, the files of pages, and no console at all.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demo, serve } from './harness.mjs';

const site = await demo();
const { fan, celebrity, busiestPost } = site;
const comment = site.comments[0].id;
const authority = site.url.replace('http://', '');

/** All forms of the console: what they are sent to, and their fields. */
const FORMS = [
  ['/console/act-as', { user: fan }], ['/console/sign-in', { key: 'x' }], ['/console/sign-out', {}],
  [`/console/users/1001/follow`, {}], [`/console/users/${celebrity}/unfollow`, {}],
  [`/console/users/${fan}/followers/${celebrity}/remove`, {}], [`/console/users/${fan}/suggestions/1001/dismiss`, {}],
  ['/console/posts', { payload: '{}' }], [`/console/posts/${busiestPost}/delete`, {}],
  [`/console/posts/${busiestPost}/comments`, { body: 'x', key: 'x' }], [`/console/comments/${comment}/edit`, { version: '1', body: 'x' }],
  [`/console/comments/${comment}/delete`, {}], [`/console/comments/${comment}/remove`, { reason: 'x' }],
  [`/console/comments/${comment}/purge`, {}], [`/console/posts/${busiestPost}/lock`, {}], [`/console/posts/${busiestPost}/unlock`, {}],
  ['/console/admin/verify', {}], ['/console/admin/suggest', {}], ['/console/admin/compact', {}], ['/console/admin/import', {}],
];
const PAGES = ['/console', '/console/', '/console/changes', '/console/admin', '/console/sign-in', `/console/users/${fan}`,
  `/console/users/${fan}/following`, `/console/posts/${busiestPost}`, `/console/posts/${busiestPost}?fragment=1`, `/console/comments/${comment}`,
  `/console/find?id=${fan}`, '/console/find?id=x', '/console/nothing', '/console/users/x', '/console/posts/1'];
const ASSETS = ['console.css', 'console.js', 'overview.js', 'graph.js', 'changes.js', 'admin.js', 'thread.js', 'logo.svg'];

const position = async () => /^kinfolk_log_position_newest (\d+)/m.exec(await (await site.fetch('/metrics')).text())[1];
const send = (path, fields, headers) => site.fetch(path, {
  method: 'POST', body: new URLSearchParams(fields), headers: { Accept: 'text/html', Cookie: `kinfolk_actor=${fan}`, ...headers },
});

test('no form is accepted from another page than the console, and nothing changes', async () => {
  const before = await position();
  const foreign = [
    ['no origin at all', {}],
    ['another site', { Origin: 'https://example.org' }],
    ['another site, as browsers say', { Origin: 'https://example.org', 'Sec-Fetch-Site': 'cross-site' }],
    ['another port', { Origin: 'http://127.0.0.1:1' }],
    ['another port, as browsers say', { Origin: 'http://127.0.0.1:1', 'Sec-Fetch-Site': 'same-site' }],
    ['an origin that is hidden', { Origin: 'null' }],
    ['an origin within another', { Origin: `https://example.org/${authority}` }],
    ['typed by hand', { 'Sec-Fetch-Site': 'none' }],
    ['own origin, but a foreign page', { Origin: site.url, 'Sec-Fetch-Site': 'cross-site' }],
  ];
  for (const [path, fields] of FORMS) {
    for (const [what, headers] of foreign) {
      const response = await send(path, fields, headers);
      assert.equal(response.status, 403, `${path} from ${what}`);
      assert.equal(response.headers.get('set-cookie'), null, `${path} from ${what}`);
    }
  }
  assert.equal(await position(), before);
});

test('a form of the console itself is accepted by either header', async () => {
  for (const headers of [{ Origin: site.url }, { 'Sec-Fetch-Site': 'same-origin' }, { Origin: site.url, 'Sec-Fetch-Site': 'same-origin' }]) {
    const response = await send('/console/act-as', { user: fan }, headers);
    assert.equal(response.status, 303, JSON.stringify(headers));
  }
});

test('forms are not sent with GET, and not as JSON', async () => {
  for (const [path] of FORMS.filter(([path]) => !path.includes('sign-in'))) {
    assert.equal((await site.fetch(path, { headers: { 'Sec-Fetch-Site': 'same-origin' } })).status, 405, path);
  }
  const response = await site.fetch('/console/posts', {
    method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json', Origin: site.url, Cookie: `kinfolk_actor=${fan}` },
  });
  assert.equal(response.status, 415);
});

test('a name that only leads here is refused without authentication', async () => {
  const { request } = await import('node:http');
  const status = await new Promise((resolve, reject) => {
    request(`${site.url}/console`, { headers: { Host: 'rebound.example.org', Accept: 'text/html' } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject).end();
  });
  assert.equal(status, 403);
});

test('every page restricts what a browser does with it', async () => {
  for (const path of PAGES) {
    const response = await site.fetch(path, { headers: { Accept: 'text/html' } });
    if (response.status === 303) continue;
    const { headers } = response;
    assert.match(headers.get('content-type'), /^text\/html; charset=utf-8$/, path);
    const policy = headers.get('content-security-policy');
    for (const directive of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) {
      assert.ok(policy?.split('; ').includes(directive), `${path}: ${directive}`);
    }
    assert.ok(!/unsafe|\*/.test(policy), path);
    assert.equal(headers.get('x-content-type-options'), 'nosniff', path);
    assert.equal(headers.get('x-frame-options'), 'DENY', path);
    assert.equal(headers.get('referrer-policy'), 'same-origin', path);
    assert.equal(headers.get('cache-control'), 'no-store', path);
    const html = await response.text();
    assert.ok(!/<script(?![^>]*src=)|<style|style=|\son\w+=/.test(html), `${path} has a script or a style of its own`);
  }
});

test('cookies are out of reach of scripts and of other sites', async () => {
  const acting = await send('/console/act-as', { user: fan }, { Origin: site.url });
  const writing = await send('/console/users/1003/follow', {}, { Origin: site.url });
  for (const [name, response] of [['kinfolk_actor', acting], ['kinfolk_token', writing]]) {
    const cookie = response.headers.getSetCookie().find((cookie) => cookie.startsWith(`${name}=`));
    const attributes = cookie.split('; ').slice(1);
    for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Path=/console']) assert.ok(attributes.includes(attribute), `${name}: ${attribute}`);
  }
});

test('failures are pages for browsers and problems for programs', async () => {
  const page = await site.fetch('/console/users/x', { headers: { Accept: 'text/html' } });
  assert.equal(page.status, 400);
  assert.match(await page.text(), /^<!DOCTYPE html>/);
  const problem = await site.fetch('/console/users/x', { headers: { Accept: 'application/json' } });
  assert.equal(problem.status, 400);
  assert.match(problem.headers.get('content-type'), /^application\/problem\+json/);
  assert.equal((await problem.json()).code, 'invalid_id');
});

test('the files of pages are compressed, and sent once', async () => {
  for (const name of ASSETS) {
    const path = `/console/assets/${name}`;
    const response = await site.fetch(path, { headers: { 'Accept-Encoding': 'identity' } });
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff', path);
    const text = await response.text();
    const tag = response.headers.get('etag');
    assert.ok(tag, path);
    const again = await site.fetch(path, { headers: { 'If-None-Match': tag, 'Accept-Encoding': 'identity' } });
    assert.equal(again.status, 304, path);
    assert.equal(await again.text(), '', path);
    if (text.length < 4_096) continue; // Small ones are not worth it.
    const compressed = await site.fetch(path, { headers: { 'Accept-Encoding': 'gzip' } });
    assert.equal(compressed.headers.get('content-encoding'), 'gzip', path);
    assert.equal(await compressed.text(), text, path);
    assert.equal((await site.fetch(path, { headers: { 'If-None-Match': compressed.headers.get('etag'), 'Accept-Encoding': 'gzip' } })).status, 304, path);
  }
});

test('pages are compressed', async () => {
  const response = await site.fetch(`/console/users/${fan}`, { headers: { 'Accept-Encoding': 'gzip', Accept: 'text/html' } });
  assert.equal(response.headers.get('content-encoding'), 'gzip');
});

test('texts are never markup', async () => {
  const payload = { title: '</pre><script>alert(1)</script>' };
  const { id } = await site.rest('POST', '/v1/posts', { actor: 7, body: { author: '7', payload } });
  await site.comment(id, 7, '<img src=x onerror=alert(1)>');
  for (const path of [`/console/posts/${id}`, '/console/users/7', '/console/users/7/posts', '/console/users/7/comments']) {
    const html = await (await site.fetch(path)).text();
    assert.ok(!html.includes('<script>alert') && !html.includes('<img src=x'), path);
  }
});

test('the console can be turned off', async () => {
  const without = await serve({ flags: ['--console=false'] });
  for (const path of ['/console', '/console/', '/console/users/1', '/console/assets/console.css', '/console/live.json', '/console/sign-in']) {
    assert.equal((await without.fetch(path, { headers: { Accept: 'text/html' } })).status, 404, path);
  }
  assert.equal((await without.fetch('/v1/users/1/followers')).status, 200);
  await without.stop();
});
