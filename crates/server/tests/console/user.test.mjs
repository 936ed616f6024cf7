// The page of a user: what it shows, and what somebody who acts as a user does there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, demo, visitor } from './harness.mjs';

const site = await demo();
const { fan } = site;
const ids = (items) => items.map(({ id }) => id);
const section = (page, name) => page.getByRole('region', { name, exact: true });

test('a profile shows the counts and the first entries of each list', async () => {
  const guest = await visitor(site);
  await guest.open(`/console/users/${fan}`);
  const { page } = guest;
  assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), fan);
  const { following, followers } = await site.rest('GET', `/v1/users/${fan}/counts`);
  assert.deepEqual(await page.locator('.stats dd').allInnerTexts(), [following, followers].map(String));
  for (const [name, list] of [['Following', 'following'], ['Followers', 'followers'], ['Friends', 'friends'], ['Suggestions', 'suggestions']]) {
    const expected = ids((await site.rest('GET', `/v1/users/${fan}/${list}?limit=5`)).items);
    assert.ok(expected.length > 0, list);
    const shown = section(page, name).locator('.rows > li > .row-main > a.id');
    assert.deepEqual(await shown.allInnerTexts(), expected, name);
  }
  for (const [name, list] of [['Posts', 'posts'], ['Home feed', 'feed']]) {
    const expected = ids((await site.rest('GET', `/v1/users/${fan}/${list}?limit=5`)).items);
    assert.deepEqual(await section(page, name).locator('.byline-end .id').allInnerTexts(), expected, name);
  }
  const comments = await site.rest('GET', `/v1/users/${fan}/comments?limit=5`);
  assert.deepEqual(await section(page, 'Comments').locator('p.comment-body').allInnerTexts(), comments.items.map(({ body }) => body));
  await guest.leave();
});

test('a user that nobody knows has a page with empty lists', async () => {
  const guest = await visitor(site);
  await guest.open('/console/users/999999');
  assert.match(await section(guest.page, 'Following').innerText(), /This user follows nobody\./);
  assert.match(await section(guest.page, 'Neighbourhood').innerText(), /no neighbours yet/);
  await guest.leave();
});

test('without acting as a user there is nothing to write with', async () => {
  const guest = await visitor(site);
  await guest.open(`/console/users/${fan}`);
  for (const name of ['Follow', 'Unfollow', 'Remove', 'Dismiss', 'Post']) {
    assert.equal(await guest.page.getByRole('button', { name, exact: true }).count(), 0, name);
  }
  await guest.leave();
});

test('the user to act as is chosen in the header or on a page, and given up again', async () => {
  const guest = await visitor(site);
  await guest.open('/console/changes');
  const header = guest.page.getByRole('banner');
  await header.getByText('Act as a user').click();
  await header.getByLabel('User id', { exact: true }).fill(fan);
  await audit(guest.page);
  await guest.press('Act as this user', header);
  assert.match(await guest.notice(), /^You are acting as this user now/);
  assert.equal(new URL(guest.page.url()).pathname, '/console/changes', 'it leads back to the page');
  await guest.open(`/console/users/${fan}`);
  await guest.page.getByText('Acting as this user', { exact: true }).waitFor();
  await header.getByText(`Acting as ${fan}`).click();
  await audit(guest.page);
  await guest.press('Stop acting as this user', header);
  assert.match(await guest.notice(), /^You are not acting as a user any more/);
  await header.getByText('Act as a user').waitFor();
  await guest.leave();
});

test('following and unfollowing change the graph and what the page says of it', async () => {
  const guest = await visitor(site);
  const stranger = 1_001;
  await guest.actAs(fan);
  await guest.open(`/console/users/${stranger}`);
  const relationship = section(guest.page, 'Relationship');
  assert.match(await relationship.innerText(), /does not follow this user/);
  await guest.press('Follow', relationship);
  assert.equal(await guest.notice(), 'Followed.');
  assert.match(await relationship.innerText(), new RegExp(`${fan} follows this user since just now`));
  assert.ok((await site.rest('GET', `/v1/users/${fan}/relationships?id=${stranger}`)).items[0].since);
  await guest.press('Unfollow', relationship);
  assert.equal(await guest.notice(), 'Unfollowed.');
  assert.match(await relationship.innerText(), /does not follow this user/);
  assert.equal((await site.rest('GET', `/v1/users/${fan}/relationships?id=${stranger}`)).items[0].since, undefined);
  await guest.leave();
});

test('friends are told apart from those who only follow', async () => {
  const guest = await visitor(site);
  await site.rest('POST', '/v1/users/2001/follow', { actor: 2_002 });
  await guest.actAs(2_001);
  await guest.open('/console/users/2002');
  const relationship = section(guest.page, 'Relationship');
  assert.match(await relationship.innerText(), /does not follow this user, and is followed back/);
  await guest.press('Follow', relationship);
  assert.match(await relationship.innerText(), /Friends/);
  await guest.leave();
});

test('a followee is unfollowed and a follower removed from the list itself', async () => {
  const guest = await visitor(site);
  await guest.actAs(fan);
  for (const [list, button, notice] of [['following', 'Unfollow', 'Unfollowed.'], ['followers', 'Remove', 'The follower was removed.']]) {
    await guest.open(`/console/users/${fan}/${list}`);
    const first = guest.page.locator('.rows > li').first();
    const other = await first.locator('.row-main > a').innerText();
    await guest.press(`${button} ${other}`, first);
    assert.equal(await guest.notice(), notice);
    assert.equal(new URL(guest.page.url()).pathname, `/console/users/${fan}/${list}`);
    assert.ok(!(await guest.page.locator('.row-main > a').allInnerTexts()).includes(other));
    assert.ok(!ids(await site.all(`/v1/users/${fan}/${list}`)).includes(other));
  }
  await guest.leave();
});

test('a suggestion is dismissed for good, and another one followed', async () => {
  const guest = await visitor(site);
  await guest.actAs(fan);
  await guest.open(`/console/users/${fan}`);
  const rows = section(guest.page, 'Suggestions').locator('.rows > li');
  const [dismissed, followed] = await rows.locator('.row-main > a').allInnerTexts();
  await guest.press(`Dismiss ${dismissed}`, rows.first());
  assert.match(await guest.notice(), /^Dismissed/);
  await guest.press(`Follow ${followed}`, rows.filter({ has: guest.page.getByRole('link', { name: followed, exact: true }) }).first());
  assert.equal(await guest.notice(), 'Followed.');
  await guest.open(`/console/users/${fan}/suggestions`);
  const left = await guest.page.locator('.rows .row-main > a').allInnerTexts();
  assert.ok(!left.includes(dismissed) && !left.includes(followed), String(left));
  await guest.open(`/console/users/${fan}/following`);
  assert.equal(await guest.page.locator('.row-main > a').first().innerText(), followed);
  await guest.leave();
});

test('whether one user follows another is answered both ways', async () => {
  const guest = await visitor(site);
  await site.rest('POST', '/v1/users/2003/follow', { actor: 2_004 });
  await guest.open('/console/users/2003');
  const check = section(guest.page, 'Does it follow…?');
  await check.getByLabel('This user and').fill('2004');
  await guest.press('Check', check);
  const answers = await check.getByRole('listitem').allInnerTexts();
  assert.match(answers[0], /^No\s+2003 follows 2004/);
  assert.match(answers[1], /^Yes\s+2004 follows 2003/);
  await guest.leave();
});

test('a post is written once, shown, and deleted after a question', async () => {
  const guest = await visitor(site);
  await guest.actAs(2_005);
  await guest.open('/console/users/2005');
  await audit(guest.page);
  await guest.page.getByLabel('Payload').fill('{"title": "From the console", "number": 12345678901234567890}');
  await guest.press('Post');
  assert.equal(await guest.notice(), 'The post was registered.');
  // Sent again, as by somebody who goes back: it is the same post.
  await guest.follow(() => guest.page.goBack());
  await guest.page.getByLabel('Payload').fill('{"title": "From the console", "number": 12345678901234567890}');
  const posts = () => site.all('/v1/users/2005/posts');
  assert.equal((await posts()).length, 1);
  await guest.open('/console/users/2005/posts');
  const [{ id }] = await posts();
  await guest.follow(() => guest.page.getByRole('link', { name: `Post ${id}` }).click());
  assert.match(await guest.page.locator('pre.payload').innerText(), /"number": 12345678901234567890/);
  assert.equal(new URL(guest.page.url()).pathname, `/console/posts/${id}`);

  assert.equal(await guest.page.getByRole('button', { name: 'Delete post' }).isVisible(), false);
  await guest.page.getByText('Delete…', { exact: true }).click();
  await guest.press('Delete post');
  assert.equal(await guest.notice(), 'The post was deleted.');
  assert.deepEqual(await posts(), []);
  guest.expected.add(404);
  const response = await guest.open(`/console/posts/${id}`);
  assert.equal(response.status(), 404);
  assert.match(await guest.page.getByRole('main').innerText(), /was deleted/);
  await guest.leave();
});

test('a payload that is not JSON is refused with a reason', async () => {
  const guest = await visitor(site);
  guest.expected.add(400);
  await guest.actAs(2_006);
  await guest.open('/console/users/2006');
  await guest.page.getByLabel('Payload').fill('{"title": ');
  await guest.press('Post');
  assert.match(await guest.page.getByRole('main').innerText(), /400 invalid_request/);
  assert.deepEqual(await site.all('/v1/users/2006/posts'), []);
  await guest.follow(() => guest.page.goBack());
  assert.equal(await guest.page.getByLabel('Payload').inputValue(), '{"title": ', 'what was typed is still there');
  await guest.leave();
});

test('pages and forms work without JavaScript', async () => {
  const guest = await visitor(site, { javaScriptEnabled: false });
  await guest.actAs(2_007);
  await guest.open('/console/users/2007');
  assert.match(await section(guest.page, 'Neighbourhood').innerText(), /The picture needs JavaScript/);
  await guest.open('/console/users/1001');
  await guest.press('Follow', section(guest.page, 'Relationship'));
  assert.equal(await guest.notice(), 'Followed.');
  guest.check();
});
