// Moderation: comments are removed with a reason, purged and looked at, and threads are locked.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, demo, visitor } from './harness.mjs';

const site = await demo();
const { fan, celebrity } = site;
const comment = (page, { id }) => page.locator(`#comment-${id}`);

/** Opens the moderation of a comment on the page of its post. */
async function moderating(written, post) {
  const guest = await visitor(site);
  await guest.open(`/console/posts/${post}`);
  await comment(guest.page, written).getByText('Moderate', { exact: true }).click();
  return guest;
}

test('a comment is removed with a reason, which needs one', async () => {
  const post = await site.post(celebrity);
  const written = await site.comment(post, fan, 'Buy cheap followers');
  const guest = await moderating(written, post);
  const place = comment(guest.page, written);
  await audit(guest.page);
  await place.getByRole('button', { name: 'Remove', exact: true }).click();
  assert.ok(await place.getByLabel('Reason').evaluate((field) => !field.validity.valid));
  await place.getByLabel('Reason').fill('spam');
  await guest.press('Remove', place);
  assert.equal(await guest.notice(), 'The comment was removed.');
  assert.match(await place.innerText(), /Removed by a moderator.*: spam/);
  await place.getByText('Show the text, which only moderators see').click();
  assert.match(await place.innerText(), /Buy cheap followers/);
  const { status, reason } = await site.rest('GET', `/v1/comments/${written.id}`);
  assert.deepEqual([status, reason], ['removed', 'spam']);
  await guest.leave();
});

test('a comment is purged after a question, and its text is gone', async () => {
  const post = await site.post(celebrity);
  const written = await site.comment(post, fan, 'A phone number');
  const guest = await moderating(written, post);
  const place = comment(guest.page, written);
  guest.page.once('dialog', (dialog) => dialog.dismiss());
  await place.getByRole('button', { name: 'Purge' }).click();
  assert.equal((await site.rest('GET', `/v1/comments/${written.id}`)).status, 'active');
  guest.page.once('dialog', (dialog) => dialog.accept());
  await guest.press('Purge', place);
  assert.match(await guest.notice(), /^The comment was purged\./);
  assert.match(await place.innerText(), /Purged: the text is erased/);
  assert.ok(!(await guest.page.content()).includes('A phone number'));
  await guest.follow(() => place.getByRole('link', { name: 'History' }).click());
  assert.ok(!(await guest.page.content()).includes('A phone number'));
  await guest.leave();
});

test('a locked thread refuses comments until it is unlocked', async () => {
  const post = await site.post(celebrity);
  const guest = await visitor(site);
  guest.expected.add(423).add(403).add(409);
  await guest.actAs(fan);
  await guest.open(`/console/posts/${post}`);
  const other = guest.page;
  const page = await guest.tab();
  await guest.open(`/console/posts/${post}`);
  await guest.press('Lock comments');
  assert.match(await guest.notice(), /^The comments are locked/);
  await page.getByText('Comments locked', { exact: true }).waitFor();
  assert.equal(await page.getByLabel('New comment as').count(), 0);
  await audit(page);
  // A tab that was open before still has the form.
  await other.getByLabel('New comment as').fill('Too late');
  await guest.follow(() => other.getByRole('button', { name: 'Comment', exact: true }).click(), other);
  assert.match(await other.getByRole('main').innerText(), /locked/i);
  assert.deepEqual(await site.all(`/v1/posts/${post}/comments`), []);
  await guest.press('Unlock comments');
  assert.equal(await guest.notice(), 'The comments are open again.');
  await page.getByLabel('New comment as').waitFor();
  await guest.leave();
});

test('moderators see what was written before', async () => {
  const post = await site.post(celebrity);
  const written = await site.comment(post, fan, 'Something rude');
  await site.rest('PATCH', `/v1/comments/${written.id}`, { actor: fan, body: { body: 'Something nice' }, headers: { 'If-Match': '"1"' } });
  const guest = await visitor(site);
  await guest.open(`/console/comments/${written.id}`);
  const versions = guest.page.getByRole('region', { name: 'Versions' });
  assert.deepEqual(await versions.locator('.comment-body').allInnerTexts(), ['Something rude', 'Something nice']);
  await guest.leave();
});
