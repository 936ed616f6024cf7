// Signing in with an API key where authentication is on: what each scope shows and allows, and how sessions end.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { audit, demo, kinfolk, temporary, until, visitor } from './harness.mjs';

const folder = temporary();
const file = join(folder, 'keys.toml');
const add = (name, scopes) => kinfolk(folder, 'keys', 'add', name, '--scopes', scopes, '--file', file);
const operator = await add('operator', 'read,write,moderate,admin');
const reader = await add('reader', 'read');
const writer = await add('writer', 'read,write');
const admin = await add('admin', 'admin');
const shortLived = await add('short-lived', 'read');
const site = await demo({ flags: ['--auth-keys', file] });
const { fan, celebrity } = site;

/** Somebody who has signed in, and is on the page with the demo's busiest post. */
async function signedIn(key, path = `/console/posts/${site.busiestPost}`) {
  const guest = await visitor(site);
  await guest.open(path);
  await guest.page.getByLabel('API key').fill(key);
  await guest.press('Sign in');
  return guest;
}

/** A form that is sent with a visitor's cookies, as its page would. */
async function send(guest, path, fields = {}) {
  return site.fetch(path, {
    method: 'POST', body: new URLSearchParams(fields),
    headers: { Accept: 'text/html', Origin: site.url, Cookie: await cookies(guest) },
  });
}

const cookies = async (guest) => (await guest.context.cookies(`${site.url}/console`)).map(({ name, value }) => `${name}=${value}`).join('; ');
const has = (guest, role, name) => guest.page.getByRole(role, { name, exact: true }).count();

test('somebody who has not signed in is asked to, and comes back to the page', async () => {
  const guest = await visitor(site);
  await guest.open(`/console/users/${fan}/following?x=1`);
  const address = new URL(guest.page.url());
  assert.equal(address.pathname, '/console/sign-in');
  assert.ok(!(await guest.page.content()).includes('/console/changes'), 'there is no navigation yet');
  assert.ok(await guest.page.getByLabel('API key').evaluate((field) => field === document.activeElement));
  await audit(guest.page);
  await guest.page.getByLabel('API key').fill(reader);
  await guest.press('Sign in');
  assert.equal(guest.page.url(), `${site.url}/console/users/${fan}/following?x=1`);
  await guest.leave();
});

test('a wrong key and one without the scope read are refused', async () => {
  const guest = await visitor(site);
  guest.expected.add(401);
  for (const [key, reason] of [['kf_000000000000_nonsense', /./], ['x', /./], [admin, /read/]]) {
    await guest.open('/console');
    await guest.page.getByLabel('API key').fill(key);
    await guest.press('Sign in');
    const message = guest.page.getByRole('alert');
    assert.match(await message.innerText(), reason);
    assert.equal(await guest.page.getByLabel('API key').getAttribute('aria-describedby'), await message.getAttribute('id'));
    assert.equal(await guest.page.getByLabel('API key').inputValue(), '');
  }
  await audit(guest.page);
  assert.deepEqual(await guest.context.cookies(), []);
  await guest.leave();
});

test('a sign-in leads to no other site', async () => {
  for (const next of ['https://example.org/console', '//example.org/console', '/\\example.org', '/v1/users/1/followers']) {
    const response = await site.fetch('/console/sign-in', {
      method: 'POST', body: new URLSearchParams({ key: reader, next }), headers: { Origin: site.url },
    });
    assert.equal(response.headers.get('location'), '/console', next);
  }
});

test('an operator sees everything, and the keys on the admin page', async () => {
  const guest = await signedIn(operator);
  assert.equal(new URL(guest.page.url()).pathname, `/console/posts/${site.busiestPost}`);
  assert.ok(await has(guest, 'button', 'Lock comments'));
  await guest.follow(() => guest.page.getByRole('link', { name: 'Admin', exact: true }).click());
  const keys = guest.page.getByRole('region', { name: /^API keys/ }).first();
  for (const name of ['operator', 'reader', 'writer', 'admin']) await keys.getByRole('rowheader', { name, exact: true }).waitFor();
  const page = await guest.page.content();
  for (const key of [operator, reader, writer, admin]) assert.ok(!page.includes(key.split('_').at(-1)), 'no secret is shown');
  await audit(guest.page);
  await guest.leave();
});

test('a key that only reads sees nothing to write with, and is refused when it writes anyway', async () => {
  const guest = await signedIn(reader);
  assert.equal(await has(guest, 'link', 'Admin'), 0);
  await guest.actAs(fan);
  const [{ id: comment }] = site.comments.filter(({ author }) => author === fan);
  for (const path of [`/console/posts/${site.busiestPost}`, `/console/users/${fan}`, `/console/users/${celebrity}`, `/console/users/${fan}/followers`, `/console/comments/${comment}`]) {
    await guest.open(path);
    const forms = await guest.page.locator('form[method=post]').evaluateAll((forms) => forms.map((form) => form.getAttribute('action')));
    assert.deepEqual([...new Set(forms)].sort(), ['/console/act-as', '/console/sign-out'], path);
    assert.ok(!(await guest.page.content()).includes('which only moderators see'), path);
  }
  const before = (await site.rest('GET', '/v1/changes?limit=1000', { key: operator })).items.length;
  const writes = [`/console/users/1001/follow`, `/console/users/${celebrity}/unfollow`, `/console/users/${fan}/followers/1/remove`,
    `/console/users/${fan}/suggestions/1/dismiss`, '/console/posts', `/console/posts/${site.busiestPost}/delete`, `/console/posts/${site.busiestPost}/comments`,
    `/console/comments/${comment}/edit`, `/console/comments/${comment}/delete`, `/console/comments/${comment}/remove`, `/console/comments/${comment}/purge`,
    `/console/posts/${site.busiestPost}/lock`, `/console/posts/${site.busiestPost}/unlock`, '/console/admin/verify', '/console/admin/suggest',
    '/console/admin/compact', '/console/admin/import'];
  for (const path of writes) {
    assert.equal((await send(guest, path, { body: 'x', version: '1', reason: 'x', payload: '{}', key: 'x' })).status, 403, path);
  }
  for (const path of ['/console/admin', '/console/admin/backup', '/console/admin/export']) {
    const response = await site.fetch(path, { headers: { Cookie: await cookies(guest), Accept: 'text/html' } });
    assert.equal(response.status, 403, path);
  }
  assert.equal((await site.rest('GET', '/v1/changes?limit=1000', { key: operator })).items.length, before, 'nothing has changed');
  guest.expected.add(403);
  await guest.open('/console/admin');
  assert.match(await guest.page.getByRole('main').innerText(), /403 forbidden\s+Not allowed[\s\S]*admin/);
  await audit(guest.page);
  await guest.leave();
});

test('a key that writes does not moderate or administer', async () => {
  const guest = await signedIn(writer);
  assert.equal(await has(guest, 'link', 'Admin'), 0);
  await guest.actAs(fan);
  await guest.open(`/console/posts/${site.busiestPost}`);
  assert.ok(await has(guest, 'button', 'Comment'));
  assert.equal(await has(guest, 'button', 'Lock comments'), 0);
  assert.equal(await guest.page.getByText('Moderate', { exact: true }).count(), 0);
  assert.equal((await send(guest, `/console/posts/${site.busiestPost}/lock`)).status, 403);
  const [{ id }] = site.comments;
  assert.equal((await send(guest, `/console/comments/${id}/purge`)).status, 403);
  await guest.open('/console/users/1600');
  await guest.press('Follow', guest.page.getByRole('region', { name: 'Relationship' }));
  assert.equal(await guest.notice(), 'Followed.');
  await guest.leave();
});

test('a moderator that has signed in is named by its key', async () => {
  const post = (await site.rest('POST', '/v1/posts', { actor: 1_610, key: operator, body: { author: '1610', payload: {} } })).id;
  const { id } = await site.rest('POST', `/v1/posts/${post}/comments`, { actor: 1_611, key: operator, body: { body: 'Rude' }, headers: { 'Idempotency-Key': 'one' } });
  const guest = await signedIn(operator, `/console/posts/${post}`);
  const place = guest.page.locator(`#comment-${id}`);
  await place.getByText('Moderate', { exact: true }).click();
  await place.getByLabel('Reason').fill('rude');
  await guest.press('Remove', place);
  assert.match(await place.innerText(), /Removed by a moderator \(.*operator\): rude/);
  await guest.leave();
});

test('cookies are out of reach of scripts and of other sites, and the key is none of them', async () => {
  const guest = await signedIn(operator);
  await guest.actAs(fan);
  await guest.open('/console/users/1002');
  await guest.press('Follow', guest.page.getByRole('region', { name: 'Relationship' }));
  const jar = await guest.context.cookies();
  assert.deepEqual(jar.map(({ name }) => name).sort(), ['kinfolk_actor', 'kinfolk_session', 'kinfolk_token']);
  for (const { name, httpOnly, sameSite, path, value } of jar) {
    assert.deepEqual([httpOnly, sameSite, path], [true, 'Strict', '/console'], name);
    assert.ok(!value.includes(operator.split('_').at(-1)), name);
  }
  assert.equal(await guest.page.evaluate(() => document.cookie), '');
  // The API knows nothing of cookies.
  assert.equal((await site.fetch('/v1/users/1/followers', { headers: { Cookie: await cookies(guest) } })).status, 401);
  await guest.leave();
});

test('signing out ends the session, also for a copied cookie', async () => {
  const guest = await signedIn(reader);
  const copied = await cookies(guest);
  const status = async () => (await site.fetch('/console/changes', { headers: { Cookie: copied, Accept: 'text/html' } })).status;
  assert.equal(await status(), 200);
  await guest.press('Sign out', guest.page.getByRole('banner'));
  assert.equal(new URL(guest.page.url()).pathname, '/console/sign-in');
  assert.deepEqual(await guest.context.cookies(), []);
  assert.equal(await status(), 303);
  await guest.open('/console/changes');
  assert.equal(new URL(guest.page.url()).pathname, '/console/sign-in');
  await guest.leave();
});

test('a session ends with its key, also in a page that is open', async () => {
  const guest = await signedIn(shortLived, '/console');
  await guest.page.locator('[data-live-state]').getByText('Live').waitFor();
  guest.expected.add(401);
  await kinfolk(folder, 'keys', 'revoke', shortLived.split('_')[1], '--file', file);
  await guest.page.getByText('Signed out. Reload the page to sign in again').waitFor();
  await until('the session has ended', async () => {
    await guest.open('/console/users/1/posts');
    return new URL(guest.page.url()).pathname === '/console/sign-in';
  });
  await guest.leave();
});

test('a forged session is none', async () => {
  const guest = await signedIn(reader);
  const [{ value }] = (await guest.context.cookies()).filter(({ name }) => name === 'kinfolk_session');
  const middle = Math.floor(value.length / 2);
  const forged = value.slice(0, middle) + (value[middle] === 'A' ? 'B' : 'A') + value.slice(middle + 1);
  for (const session of [forged, '', 'x', value.slice(0, -1)]) {
    const response = await site.fetch('/console', { headers: { Cookie: `kinfolk_session=${session}`, Accept: 'text/html' } });
    assert.equal(response.status, 303, session);
  }
  await guest.leave();
});
