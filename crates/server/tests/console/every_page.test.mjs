// Every page, for somebody who acts as a user and may do everything: no errors, accessible in both colour schemes, fit for a phone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, demo, visitor } from './harness.mjs';

const site = await demo();
const { fan, celebrity, busiestPost } = site;
await site.rest('PATCH', `/v1/comments/${site.comments[0].id}`, {
  actor: site.comments[0].author, body: { body: 'Edited' }, headers: { 'If-Match': '"1"' },
});
const lists = ['following', 'followers', 'friends', 'suggestions', 'posts', 'feed', 'comments'];

/** Each page with its title, and with what has to be there before it is looked at. */
const PAGES = [
  ['/console', 'Overview', '[data-live-state][data-state=live]'],
  ['/console/changes', 'Changes', '[data-log] > li'],
  ['/console/admin', 'Administration'],
  [`/console/users/${fan}`, `User ${fan}`, 'a.node'],
  [`/console/users/${celebrity}?check=${fan}`, `User ${celebrity}`, 'a.node'],
  ...lists.map((list) => [`/console/users/${fan}/${list}`]),
  [`/console/users/${celebrity}/common`, `Common followees of ${celebrity}`],
  [`/console/users/${celebrity}/known-followers`, `Known followers of ${celebrity}`],
  [`/console/users/${fan}/followers?done=followed`],
  [`/console/posts/${busiestPost}`, `Post ${busiestPost}`],
  [`/console/comments/${site.comments[0].id}`, 'Comment'],
  ['/console/users/999999', 'User 999999', '.graph-message'],
];
const ERRORS = [
  ['/console/posts/1', 404, 'Not found'],
  ['/console/nothing', 404, 'Not found'],
  ['/console/users/nobody', 400, 'Not possible'],
  ['/console/comments/00000000-0000-7000-8000-000000000000', 404, 'Not found'],
  [`/console/users/${fan}/followers?cursor=x`, 400, 'Not possible'],
];

/** A visitor that acts as the fan. */
async function acting() {
  const guest = await visitor(site);
  await guest.context.addCookies([{ name: 'kinfolk_actor', value: fan, url: `${site.url}/console`, httpOnly: true, sameSite: 'Strict' }]);
  return guest;
}

for (const [path, title, selector] of PAGES) {
  const name = path.replace(busiestPost, 'ID').replace(site.comments[0].id, 'ID');
  test(`${name} is a whole page`, async () => {
    const guest = await acting();
    const response = await guest.open(path);
    assert.equal(response.status(), 200);
    if (title) assert.equal(await guest.page.title(), `${title} · Kinfolk`);
    if (selector) await guest.page.locator(selector).first().waitFor();
    assert.equal(await guest.page.getByRole('heading', { level: 1 }).count(), 1);
    await audit(guest.page);
    await guest.leave();
  });
}

for (const [path, status, title] of ERRORS) {
  test(`${path} is a page that says what is wrong`, async () => {
    const guest = await acting();
    guest.expected.add(status);
    const response = await guest.open(path);
    assert.equal(response.status(), status);
    assert.equal(await guest.page.getByRole('heading', { level: 1 }).innerText(), title);
    await audit(guest.page);
    await guest.follow(() => guest.page.getByRole('link', { name: 'Overview' }).click());
    assert.equal(await guest.page.title(), 'Overview · Kinfolk');
    await guest.leave();
  });
}
