// A post with its thread: reading all of it, and writing, editing and deleting comments.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, demo, until, visitor } from './harness.mjs';

const site = await demo();
const { fan, celebrity } = site;
const path = (post) => `/console/posts/${post}`;
const comment = (page, { id }) => page.locator(`#comment-${id}`);
const anchors = (page) => page.locator('article.comment').evaluateAll((articles) => articles.map(({ id }) => id.replace('comment-', '')));

/** A thread with more comments than a page shows, at each level. */
async function bigThread(author) {
  const post = await site.post(author, 'Much discussed');
  const written = [];
  for (let number = 0; number < 25; number += 1) written.push(await site.comment(post, author, `Comment ${number}`));
  for (let number = 0; number < 12; number += 1) written.push(await site.comment(post, author, `Reply ${number}`, written[0].id));
  let last = written[0];
  for (let depth = 0; depth < 12; depth += 1) written.push(last = await site.comment(post, author, `Deeper, ${depth}`, last.id));
  return { post, ids: written.map(({ id }) => id).sort() };
}

test('a post shows its payload, its facts and its comments as a tree', async () => {
  const guest = await visitor(site);
  const post = await site.rest('GET', `/v1/posts/${site.busiestPost}`);
  await guest.open(path(post.id));
  assert.deepEqual(JSON.parse(await guest.page.locator('pre.payload').innerText()), post.payload);
  assert.ok((await guest.page.locator('.facts').innerText()).includes(post.author));
  const { items } = await site.rest('GET', `/v1/posts/${post.id}/comments/tree?limit=20&depth=1`);
  const shown = await guest.page.locator('.thread > li > article').evaluateAll((articles) => articles.map(({ id }) => id));
  assert.deepEqual(shown, items.map(({ id }) => `comment-${id}`));
  const [first] = items;
  const replies = guest.page.locator('.thread > li').first().locator(':scope > ol > li > article');
  assert.equal(await replies.count(), first.reply_count);
  await guest.leave();
});

test('scripts load the rest of a long thread in its place, each comment once', async () => {
  const { post, ids } = await bigThread(2_100);
  const guest = await visitor(site);
  await guest.open(path(post));
  await guest.page.evaluate(() => { window.isSamePage = true; });
  for (;;) {
    const links = guest.page.locator('a[data-more]');
    const before = await links.count();
    if (before === 0) break;
    const shown = await guest.page.locator('article.comment').count();
    await links.first().click();
    await until('more comments', async () => await guest.page.locator('article.comment').count() > shown);
    assert.match(await guest.page.locator('[data-thread-status]').innerText(), /^\d+ more comments?$/);
    assert.ok(await guest.page.evaluate(() => document.activeElement.localName === 'article'), 'the focus is on the first new comment');
  }
  assert.ok(await guest.page.evaluate(() => window.isSamePage), 'no page was loaded anew');
  assert.deepEqual((await anchors(guest.page)).sort(), ids);
  await audit(guest.page);
  await guest.leave();
});

test('without JavaScript the same links lead to pages with the rest', async () => {
  const { post, ids } = await bigThread(2_101);
  const guest = await visitor(site, { javaScriptEnabled: false });
  const found = new Set();
  const addresses = [path(post)];
  for (const address of addresses) {
    await guest.open(address);
    for (const id of await guest.page.locator('article.comment').evaluateAll((articles) => articles.map(({ id }) => id.replace('comment-', '')))) found.add(id);
    addresses.push(...await guest.page.locator('a[data-more]').evaluateAll((links) => links.map((link) => link.getAttribute('href'))));
  }
  assert.deepEqual([...found].sort(), ids);
  guest.check();
});

test('loading more that fails can be tried again', async () => {
  const { post } = await bigThread(2_102);
  const guest = await visitor(site);
  guest.expected.add(503);
  await guest.page.route('**/*fragment=1*', (route) => route.fulfill({ status: 503, body: '' }), { times: 1 });
  await guest.open(path(post));
  const before = await guest.page.locator('article.comment').count();
  await guest.page.locator('a[data-more]').first().click();
  const failed = guest.page.getByText('(loading failed, try again)');
  await failed.click();
  await until('more comments', async () => await guest.page.locator('article.comment').count() > before);
  await guest.leave();
});

test('a comment and a reply are written, and lead to their places', async () => {
  const post = await site.post(celebrity);
  const guest = await visitor(site);
  await guest.actAs(fan);
  await guest.open(path(post));
  await guest.page.getByText('No comments yet').waitFor();
  const body = 'First <b>line</b> & "quotes"\n\nthird line 🍳';
  await guest.page.getByLabel(`New comment as ${fan}`).fill(body);
  await guest.press('Comment');
  assert.equal(await guest.notice(), 'The comment was written.');
  const [written] = await site.all(`/v1/posts/${post}/comments`);
  assert.equal(written.body.replaceAll('\r\n', '\n'), body);
  assert.equal(new URL(guest.page.url()).hash, `#comment-${written.id}`);
  assert.equal(await comment(guest.page, written).locator('.comment-body').innerText(), body);

  await comment(guest.page, written).getByText('Reply', { exact: true }).first().click();
  const reply = comment(guest.page, written).getByLabel(`Reply to ${fan}`);
  await until('the focus in the field', () => reply.evaluate((field) => field === document.activeElement));
  await audit(guest.page);
  await reply.fill('I agree with myself.');
  await guest.press('Reply', comment(guest.page, written));
  const answer = (await site.all(`/v1/posts/${post}/comments`)).find(({ id }) => id !== written.id);
  assert.equal(answer.reply_to, written.id);
  assert.equal(new URL(guest.page.url()).hash, `#comment-${answer.id}`);
  assert.equal(await guest.page.locator('.thread > li > ol article').count(), 1);
  await guest.leave();
});

test('a form that is sent twice writes one comment', async () => {
  const post = await site.post(celebrity);
  const guest = await visitor(site);
  await guest.actAs(fan);
  await guest.open(path(post));
  await guest.page.getByLabel('New comment as').fill('Once');
  const sent = guest.page.waitForRequest((request) => request.method() === 'POST');
  await guest.press('Comment');
  const request = await sent;
  const { headers } = { headers: await request.allHeaders() };
  const again = await site.fetch(`${path(post)}/comments`, {
    method: 'POST', body: request.postData(),
    headers: { 'Content-Type': headers['content-type'], Origin: site.url, Cookie: headers.cookie },
  });
  assert.equal(again.status, 303);
  assert.equal((await site.all(`/v1/posts/${post}/comments`)).length, 1);
  await guest.leave();
});

test('an author edits a comment, and its page shows both versions', async () => {
  const post = await site.post(celebrity);
  const written = await site.comment(post, fan, 'Frist!');
  const guest = await visitor(site);
  await guest.actAs(fan);
  await guest.open(path(post));
  await comment(guest.page, written).getByText('Edit', { exact: true }).click();
  const field = comment(guest.page, written).getByLabel('Comment', { exact: true });
  assert.equal(await field.inputValue(), 'Frist!');
  await field.fill('First!');
  await guest.press('Save', comment(guest.page, written));
  assert.equal(await guest.notice(), 'The comment was edited.');
  assert.match(await comment(guest.page, written).innerText(), /edited just now/);
  await guest.follow(() => comment(guest.page, written).getByRole('link', { name: 'History' }).click());
  const versions = guest.page.getByRole('region', { name: 'Versions' }).getByRole('listitem');
  assert.deepEqual(await versions.locator('.comment-body').allInnerTexts(), ['Frist!', 'First!']);
  assert.match(await versions.nth(1).innerText(), /Version 2\s+current/);
  await guest.follow(() => guest.page.getByRole('link', { name: 'Show in its thread' }).click());
  assert.equal(new URL(guest.page.url()).hash, `#comment-${written.id}`);
  await guest.leave();
});

test('of two tabs that edit one comment, the second is told of the first', async () => {
  const post = await site.post(celebrity);
  const written = await site.comment(post, fan, 'Original');
  const guest = await visitor(site);
  guest.expected.add(409).add(412);
  await guest.actAs(fan);
  const one = guest.page;
  const other = await guest.tab();
  for (const page of [one, other]) {
    await guest.open(path(post), page);
    await comment(page, written).getByText('Edit', { exact: true }).click();
    await comment(page, written).getByLabel('Comment', { exact: true }).fill(page === one ? 'By the first tab' : 'By the second tab');
  }
  await guest.follow(() => comment(one, written).getByRole('button', { name: 'Save' }).click(), one);
  await guest.follow(() => comment(other, written).getByRole('button', { name: 'Save' }).click(), other);
  assert.match(await other.getByRole('main').innerText(), /version_conflict[\s\S]*somebody has edited this comment since you opened the page/i);
  assert.equal((await site.rest('GET', `/v1/comments/${written.id}`)).body, 'By the first tab');
  await guest.leave();
});

test('a comment is deleted, and its replies stay', async () => {
  const post = await site.post(celebrity);
  const written = await site.comment(post, fan, 'To be deleted');
  const reply = await site.comment(post, celebrity, 'A reply that stays', written.id);
  const guest = await visitor(site);
  await guest.actAs(fan);
  await guest.open(path(post));
  assert.equal(await comment(guest.page, reply).getByText('Edit', { exact: true }).count(), 0, 'it is of somebody else');
  await comment(guest.page, written).getByText('Delete', { exact: true }).click();
  await guest.press('Delete this comment', comment(guest.page, written));
  assert.equal(await guest.notice(), 'The comment was deleted.');
  assert.match(await comment(guest.page, written).innerText(), /Deleted by its author/);
  assert.match(await comment(guest.page, reply).innerText(), /A reply that stays/);
  assert.equal((await site.rest('GET', `/v1/comments/${written.id}`)).status, 'deleted');
  await guest.leave();
});

test('an empty comment is not sent', async () => {
  const post = await site.post(celebrity);
  const guest = await visitor(site);
  await guest.actAs(fan);
  await guest.open(path(post));
  await guest.page.getByRole('button', { name: 'Comment', exact: true }).click();
  assert.ok(await guest.page.getByLabel('New comment as').evaluate((field) => !field.validity.valid));
  assert.deepEqual(await site.all(`/v1/posts/${post}/comments`), []);
  await guest.leave();
});
