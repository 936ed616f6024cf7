// The change log as it grows: what is written elsewhere appears by itself, and can be filtered and held.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, demo, until, visitor } from './harness.mjs';

const site = await demo();
const { fan } = site;
const rows = (page) => page.locator('[data-log] > li:visible');
const follow = (follower, followee) => site.rest('POST', `/v1/users/${followee}/follow`, { actor: follower });

/** Opens the page, and waits until it has caught up with the log. */
async function watching() {
  const guest = await visitor(site);
  await guest.open('/console/changes');
  await guest.page.locator('[data-stream-state]').getByText('Live').waitFor();
  const { log } = await newest();
  await guest.page.locator('[data-log] > li').first().getByText(log).waitFor();
  return guest;
}

/** The position of the newest change. */
async function newest() {
  const metrics = await (await site.fetch('/metrics')).text();
  return { log: /^kinfolk_log_position_newest (\d+)/m.exec(metrics)[1] };
}

test('the latest changes are there at once, newest first, and new ones follow', async () => {
  const guest = await watching();
  const positions = (await rows(guest.page).locator('.position').allInnerTexts()).map(Number);
  assert.ok(positions.length > 20, String(positions.length));
  assert.deepEqual(positions, positions.toSorted((one, other) => other - one));
  await follow(1_501, 1_502);
  await rows(guest.page).first().getByText('1501 follows 1502').waitFor();
  const post = await site.post(1_503, 'Seen at once');
  await rows(guest.page).first().getByText(`1503 posted ${post}`).waitFor();
  await guest.follow(() => rows(guest.page).first().getByRole('link', { name: post }).click());
  assert.equal(new URL(guest.page.url()).pathname, `/console/posts/${post}`);
  await guest.leave();
});

test('every kind of change is a sentence', async () => {
  const guest = await watching();
  const [one, other] = [1_510, 1_511];
  const says = (sentence) => rows(guest.page).first().getByText(sentence).waitFor();
  await follow(one, other);
  await says(`${one} follows ${other}`);
  await site.rest('DELETE', `/v1/users/${other}/follow`, { actor: one });
  await says(`${one} unfollowed ${other}`);
  await site.rest('DELETE', `/v1/users/${one}/suggestions/${other}`, { actor: one });
  await says(`${one} dismissed the suggestion of ${other}`);
  const post = await site.post(one);
  const { id } = await site.comment(post, other, 'Words');
  await says(`${other} commented on post ${post}`);
  await site.comment(post, one, 'More words', id);
  await says(`${one} replied on post ${post}`);
  await site.rest('PATCH', `/v1/comments/${id}`, { actor: other, body: { body: 'Better words' }, headers: { 'If-Match': '"1"' } });
  await says('(version 2)');
  await site.rest('POST', `/v1/comments/${id}/remove`, { body: { reason: 'rude' } });
  await says(`A comment of ${other} on post ${post} was removed`);
  await site.rest('POST', `/v1/comments/${id}/purge`);
  await says('was purged');
  await site.rest('PUT', `/v1/posts/${post}/comments/lock`);
  await says(`Comments on post ${post} were locked`);
  await site.rest('DELETE', `/v1/posts/${post}/comments/lock`);
  await says(`Comments on post ${post} were unlocked`);
  await site.rest('DELETE', `/v1/posts/${post}`, { actor: one });
  await says(`Post ${post} of ${one} was deleted`);
  await audit(guest.page);
  await guest.leave();
});

test('a paused page holds changes back until it is resumed', async () => {
  const guest = await watching();
  await guest.page.getByRole('button', { name: 'Pause' }).click();
  const first = await rows(guest.page).first().innerText();
  await follow(1_520, 1_521);
  await follow(1_522, 1_523);
  await guest.page.getByRole('button', { name: 'Resume, 2 waiting' }).waitFor();
  assert.equal((await rows(guest.page).first().innerText()).split('\n').at(-1), first.split('\n').at(-1));
  await guest.page.getByRole('button', { name: 'Resume, 2 waiting' }).click();
  await rows(guest.page).first().getByText('1522 follows 1523').waitFor();
  await rows(guest.page).nth(1).getByText('1520 follows 1521').waitFor();
  await guest.page.getByRole('button', { name: 'Pause' }).waitFor();
  await guest.leave();
});

test('kinds of changes are hidden and shown', async () => {
  const guest = await watching();
  const kinds = async () => new Set(await rows(guest.page).locator('.badge').allInnerTexts());
  assert.ok((await kinds()).size > 3);
  await guest.page.getByRole('button', { name: 'None' }).click();
  await guest.page.getByText('No change matches the filter.').waitFor();
  await guest.page.getByRole('checkbox', { name: 'post', exact: true }).check();
  assert.deepEqual([...await kinds()], ['post']);
  await follow(1_530, 1_531);
  const post = await site.post(1_532);
  await rows(guest.page).first().getByText(`1532 posted ${post}`).waitFor();
  assert.deepEqual([...await kinds()], ['post'], 'new changes are filtered, too');
  await guest.page.getByRole('button', { name: 'All' }).click();
  assert.ok((await kinds()).has('follow'));
  await guest.leave();
});

test('the changes of one user are found', async () => {
  const guest = await watching();
  await follow(1_540, 1_541);
  await follow(1_542, 1_540);
  await follow(1_542, 1_543);
  await rows(guest.page).first().getByText('1542 follows 1543').waitFor();
  await guest.page.getByLabel('Only user').fill('1540');
  assert.deepEqual(await rows(guest.page).locator('.what').allInnerTexts(), ['1542 follows 1540', '1540 follows 1541']);
  await guest.page.getByLabel('Only user').fill('154');
  await guest.page.getByText('No change matches the filter.').waitFor();
  await guest.page.getByLabel('Only user').fill('');
  await until('all are back', async () => await rows(guest.page).count() > 20);
  await guest.leave();
});

test('the page keeps at most 500 changes, the newest', async () => {
  const guest = await watching();
  for (let at = 0; at < 520; at += 40) {
    await Promise.all(Array.from({ length: 40 }, (_, number) => follow(fan === '1' ? 2 : 1, 3_000 + at + number)));
  }
  await follow(1_550, 1_551);
  await rows(guest.page).first().getByText('1550 follows 1551').waitFor();
  await until('the oldest made room', async () => await rows(guest.page).count() === 500);
  await guest.leave();
});
