// The lists of a user, page by page: every entry is there once, in the order of the API.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demo, visitor } from './harness.mjs';

const site = await demo();
const { fan, celebrity } = site;
const ids = (items) => items.map(({ id }) => id);

/** All entries of a list, through its links to the next page. */
async function walk(guest, path, selector) {
  await guest.open(path);
  const pages = [];
  for (;;) {
    pages.push(await guest.page.locator(selector).evaluateAll((links) => links.map((link) => link.getAttribute('href').split('/').at(-1))));
    const next = guest.page.getByRole('link', { name: 'Next page' });
    if (await next.count() === 0) return pages;
    await guest.follow(() => next.click());
  }
}

const USERS = '.rows > li > .row-main > a';
const POSTS = '.posts .byline-end';
const COMMENTS = '.posts .byline > a.muted';

for (const [list, selector] of [['following', USERS], ['followers', USERS], ['friends', USERS], ['suggestions', USERS], ['posts', POSTS], ['feed', POSTS]]) {
  test(`the list ${list} of a user has every entry once`, async () => {
    const guest = await visitor(site);
    const found = (await walk(guest, `/console/users/${fan}/${list}`, selector)).flat();
    const expected = list === 'suggestions'
      ? ids((await site.rest('GET', `/v1/users/${fan}/suggestions?limit=100`)).items)
      : ids(await site.all(`/v1/users/${fan}/${list}`));
    assert.ok(expected.length > 1, `${expected.length} entries`);
    assert.deepEqual(found, expected);
    await guest.leave();
  });
}

test('two thousand followers are read page by page', async () => {
  const found = [];
  let path = `/console/users/${celebrity}/followers`;
  let pages = 0;
  while (path) {
    const html = await (await site.fetch(path)).text();
    found.push(...[...html.matchAll(/<div class="row-main"><a class="id" href="\/console\/users\/(\d+)"/g)].map(([, id]) => id));
    path = /rel="next" href="([^"]+)"/.exec(html)?.[1].replaceAll('&amp;', '&');
    pages += 1;
  }
  assert.equal(pages, Math.ceil(found.length / 50));
  assert.deepEqual(found, ids(await site.all(`/v1/users/${celebrity}/followers`)));
});

test('the first page is one click away from any other', async () => {
  const guest = await visitor(site);
  await guest.open(`/console/users/${celebrity}/followers`);
  const first = () => guest.page.locator(USERS).allInnerTexts();
  const before = await first();
  assert.equal(before.length, 50);
  assert.equal(await guest.page.getByRole('link', { name: 'First page' }).count(), 0);
  for (let page = 0; page < 2; page += 1) await guest.follow(() => guest.page.getByRole('link', { name: 'Next page' }).click());
  assert.notDeepEqual(await first(), before);
  await guest.follow(() => guest.page.getByRole('link', { name: 'First page' }).click());
  assert.deepEqual(await first(), before);
  await guest.leave();
});

test('long lists of posts and comments have pages, too', async () => {
  const author = 2_100;
  const posts = [];
  for (let number = 0; number < 55; number += 1) posts.push(await site.post(author, `Post ${number}`));
  const comments = [];
  for (let number = 0; number < 55; number += 1) comments.push((await site.comment(posts[0], author, `Comment ${number}`)).id);
  const guest = await visitor(site);
  const shownPosts = await walk(guest, `/console/users/${author}/posts`, POSTS);
  assert.deepEqual(shownPosts.map((page) => page.length), [50, 5]);
  assert.deepEqual(shownPosts.flat(), posts.toReversed());
  const shownComments = await walk(guest, `/console/users/${author}/comments`, COMMENTS);
  assert.deepEqual(shownComments.map((page) => page.length), [50, 5]);
  assert.deepEqual(shownComments.flat(), comments.toReversed());
  await guest.leave();
});

test('the lists about two users are those of the user to act as', async () => {
  const guest = await visitor(site);
  guest.expected.add(400);
  await guest.open(`/console/users/${celebrity}/common`);
  assert.match(await guest.page.getByRole('main').innerText(), /the user that you act as: choose one first/);
  await guest.open(`/console/users/${celebrity}`);
  assert.equal(await guest.page.getByRole('link', { name: 'Known followers' }).count(), 0);

  // Both follow sixty others, which also follow the second. The demo knows none of them.
  const [one, other] = [50_000, 50_001];
  const others = Array.from({ length: 60 }, (_, at) => 50_100 + at);
  for (const user of others) {
    await site.rest('POST', `/v1/users/${user}/follow`, { actor: one });
    await site.rest('POST', `/v1/users/${user}/follow`, { actor: other });
    await site.rest('POST', `/v1/users/${other}/follow`, { actor: user });
  }
  await guest.actAs(one);
  for (const [name, list] of [['Common followees', 'common'], ['Known followers', 'known-followers']]) {
    await guest.open(`/console/users/${other}/posts`);
    await guest.follow(() => guest.page.getByRole('navigation', { name: 'This user' }).getByRole('link', { name, exact: true }).click());
    assert.match(await guest.page.getByRole('heading', { level: 2 }).first().innerText(), new RegExp(`^${name}\\s*60$`));
    const pages = await walk(guest, `/console/users/${other}/${list}`, USERS);
    assert.deepEqual(pages.map((page) => page.length), [50, 10], name);
    assert.deepEqual(pages.flat().map(Number).sort((one, other) => one - other), others);
  }
  await guest.leave();
});

test('a cursor of another list is refused', async () => {
  const guest = await visitor(site);
  guest.expected.add(400);
  const { next } = await site.rest('GET', `/v1/users/${celebrity}/followers?limit=1`);
  for (const cursor of [next, 'nonsense']) {
    const response = await guest.open(`/console/users/${fan}/followers?cursor=${cursor}`);
    assert.equal(response.status(), 400, cursor);
  }
  await guest.leave();
});
