// The keyboard: what it reaches, in which order, and what it opens and closes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demo, visitor } from './harness.mjs';

const site = await demo();
const focused = (page) => page.evaluate(() => {
  const { id, textContent, href } = document.activeElement;
  return id || textContent.trim() || href;
});

test('the first stop leads to the content', async () => {
  const guest = await visitor(site);
  await guest.open('/console/changes');
  const { page } = guest;
  const skip = page.getByRole('link', { name: 'Skip to the content' });
  await page.keyboard.press('Tab');
  assert.equal(await focused(page), 'Skip to the content');
  const box = await skip.boundingBox();
  assert.ok(box.x >= 0 && box.y >= 0, 'it can be seen while it has the focus');
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'main');
  await guest.leave();
});

test('the tab key goes through the header to the search and on', async () => {
  const guest = await visitor(site);
  await guest.open('/console/users/1/posts');
  const { page } = guest;
  const stops = [];
  while (stops.length < 8) {
    await page.keyboard.press('Tab');
    stops.push(await focused(page));
  }
  assert.deepEqual(stops.slice(0, 7), ['Skip to the content', 'Kinfolk', 'Overview', 'Changes', 'Admin', 'find', 'Act as a user']);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Shift+Tab');
  assert.equal(await focused(page), 'find');
  await page.keyboard.type(site.fan);
  await guest.follow(() => page.keyboard.press('Enter'));
  assert.equal(new URL(page.url()).pathname, `/console/users/${site.fan}`);
  await guest.leave();
});

test('every stop of the tab key can be seen, and shows that it has the focus', async () => {
  const guest = await visitor(site);
  await guest.open('/console/users/1/posts');
  const { page } = guest;
  for (let stop = 0; stop < 14; stop += 1) {
    await page.keyboard.press('Tab');
    const { name, width, isMarked } = await page.evaluate(() => {
      const node = document.activeElement;
      const box = node.getBoundingClientRect();
      const { outlineStyle, boxShadow } = getComputedStyle(node);
      return { name: node.outerHTML.slice(0, 80), width: box.width, isMarked: outlineStyle !== 'none' || boxShadow !== 'none' };
    });
    assert.ok(width > 0 && isMarked, name);
  }
  await guest.leave();
});

test('a menu is opened with Enter and closed with Escape', async () => {
  const guest = await visitor(site);
  await guest.open('/console/changes');
  const { page } = guest;
  await page.getByText('Act as a user').focus();
  await page.keyboard.press('Enter');
  const field = page.getByLabel('User id', { exact: true });
  await field.waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await focused(page), 'act-as');
  await page.keyboard.press('Escape');
  await field.waitFor({ state: 'hidden' });
  assert.equal(await focused(page), 'Act as a user');
  await guest.leave();
});

test('the picture is one stop, and its users are reached with arrow keys', async () => {
  const guest = await visitor(site);
  const { page } = guest;
  await guest.open(`/console/users/${site.fan}`);
  await page.locator('a.node').first().waitFor();
  const stops = [];
  while (stops.length < 60 && !stops.at(-1)?.startsWith('The same as a table')) {
    await page.keyboard.press('Tab');
    stops.push(await page.evaluate(() => (document.activeElement.closest('svg') ? 'node' : document.activeElement.textContent.trim())));
  }
  assert.equal(stops.filter((stop) => stop === 'node').length, 1, String(stops));
  await guest.leave();
});
