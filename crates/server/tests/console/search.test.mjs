// The search: an id leads to the user, post or comment that has it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, demo, visitor } from './harness.mjs';

const site = await demo();

/** Searches from a page, and returns the path it leads to. */
async function find(guest, text) {
  await guest.open('/console/users/1/posts');
  const field = guest.page.getByRole('searchbox', { name: /id/ }).first();
  await field.fill(text);
  await guest.follow(() => field.press('Enter'));
  return new URL(guest.page.url()).pathname;
}

test('an id leads to what has it', async () => {
  const guest = await visitor(site);
  assert.equal(await find(guest, site.fan), `/console/users/${site.fan}`);
  assert.equal(await find(guest, ` ${site.busiestPost} `), `/console/posts/${site.busiestPost}`);
  assert.equal(await find(guest, site.comments[0].id), `/console/comments/${site.comments[0].id}`);
  assert.equal(await find(guest, '987654'), '/console/users/987654', 'users that nobody knows have a page, too');
  await guest.leave();
});

test('an id of a user and of a post leads to a choice', async () => {
  await site.rest('POST', '/v1/posts', { actor: 5, body: { id: '2500', author: '5', payload: { title: 'Has the id of a user' } } });
  const guest = await visitor(site);
  assert.equal(await find(guest, '2500'), '/console/find');
  await audit(guest.page);
  assert.equal(await guest.page.getByRole('link', { name: 'The user' }).getAttribute('href'), '/console/users/2500');
  await guest.follow(() => guest.page.getByRole('link', { name: 'The post' }).click());
  assert.equal(new URL(guest.page.url()).pathname, '/console/posts/2500');
  await guest.leave();
});

test('what is no id is refused with a reason', async () => {
  const guest = await visitor(site);
  guest.expected.add(400).add(404);
  for (const text of ['nobody', '-1', '99999999999999999999999', '<script>alert(1)</script>']) {
    assert.equal(await find(guest, text), '/console/find');
    assert.match(await guest.page.getByRole('main').innerText(), /invalid_id/, text);
  }
  await guest.leave();
});

test('a shortcut focuses the search', async () => {
  const guest = await visitor(site);
  await guest.open('/console/admin');
  await guest.page.keyboard.press('Control+k');
  assert.equal(await guest.page.evaluate(() => document.activeElement.id), 'find');
  await guest.leave();
});
