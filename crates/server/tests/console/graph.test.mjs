// The picture of a user's neighbourhood: what it shows, and how it is walked with keys and pointer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, demo, until, visitor } from './harness.mjs';

const site = await demo();
const path = `/console/users/${site.fan}`;

/** Opens a user, and waits for its picture. */
async function picture(options) {
  const guest = await visitor(site, options);
  await guest.open(path);
  await guest.page.locator('.graph-stage a.node').first().waitFor();
  return guest;
}

const focused = (page) => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.id);

test('the picture has the users that the server names, and its table the same', async () => {
  const guest = await picture();
  const { nodes } = await (await site.fetch(`${path}/graph.json`)).json();
  assert.ok(nodes.length > 50 && nodes.length <= 150, String(nodes.length));
  const expected = nodes.map(({ id }) => id).sort();
  const shown = await guest.page.locator('a.node').evaluateAll((anchors) => anchors.map((anchor) => anchor.getAttribute('href').split('/').at(-1)));
  assert.deepEqual(shown.sort(), expected);
  for (const kind of ['center', 'friend', 'following', 'follower', 'suggestion']) {
    assert.equal(await guest.page.locator(`a.node.kind-${kind}`).count(), nodes.filter((node) => node.kind === kind).length, kind);
  }
  await guest.page.getByText('The same as a table').click();
  const rows = guest.page.locator('[data-graph-table] th');
  assert.deepEqual((await rows.allInnerTexts()).sort(), expected);
  await audit(guest.page);
  await guest.leave();
});

test('arrow keys walk from user to user, and Enter opens one', async () => {
  const guest = await picture();
  const { page } = guest;
  await page.locator('a.node[tabindex="0"]').focus();
  const visited = [await focused(page)];
  assert.match(visited[0], new RegExp(`^${site.fan}, this user`));
  for (const key of ['ArrowRight', 'ArrowDown', 'ArrowLeft']) {
    await page.keyboard.press(key);
    visited.push(await focused(page));
  }
  assert.equal(new Set(visited).size, visited.length, `each key leads to another user: ${visited}`);
  assert.equal(await page.locator('a.node[tabindex="0"]').count(), 1, 'the picture is one stop of the tab key');
  const [id] = visited.at(-1).split(',');
  assert.equal(await page.locator('.graph-card strong').innerText(), id, 'the card names the user');
  await guest.follow(() => page.keyboard.press('Enter'));
  assert.equal(new URL(page.url()).pathname, `/console/users/${id}`);
  await page.locator('.graph-stage a.node').first().waitFor();
  await guest.leave();
});

test('pointing at a user shows its neighbours, and a click opens it', async () => {
  const guest = await picture();
  const { page } = guest;
  const node = page.locator('a.node.kind-friend').first();
  await node.locator('circle:not(.halo)').hover();
  const id = await page.locator('.graph-card strong').innerText();
  assert.match(await page.locator('.graph-card').innerText(), /followers · follows/);
  assert.ok(await page.locator('a.node.near').count() > 1);
  await guest.follow(() => page.mouse.down().then(() => page.mouse.up()));
  assert.equal(new URL(page.url()).pathname, `/console/users/${id}`);
  await page.locator('.graph-stage a.node').first().waitFor();
  await guest.leave();
});

test('a user is dragged without being opened, and the picture is zoomed and fitted again', async () => {
  const guest = await picture();
  const { page } = guest;
  const circle = page.locator('a.node.kind-center circle:not(.halo)');
  const before = await circle.boundingBox();
  const [x, y] = [before.x + before.width / 2, before.y + before.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 60, y + 30, { steps: 4 });
  await page.mouse.up();
  await until('the dragged user stays where it was put', async () => Math.abs((await circle.boundingBox()).x - before.x - 60) < 3);
  assert.equal(new URL(page.url()).pathname, path);
  const { width } = await circle.boundingBox();
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await until('it is larger', async () => (await circle.boundingBox()).width > width);
  await page.getByRole('button', { name: 'Show everything' }).click();
  await until('all users are in sight', () => page.evaluate(() => {
    const stage = document.querySelector('.graph-stage').getBoundingClientRect();
    return [...document.querySelectorAll('a.node circle:not(.halo)')].every((circle) => {
      const box = circle.getBoundingClientRect();
      return box.left >= stage.left && box.right <= stage.right && box.top >= stage.top && box.bottom <= stage.bottom;
    });
  }));
  await guest.leave();
});

test('a picture that could not be loaded is tried again', async () => {
  const guest = await visitor(site);
  guest.expected.add(503);
  await guest.page.route('**/graph.json', (route) => route.fulfill({ status: 503, body: '{}' }), { times: 1 });
  await guest.open(path);
  await guest.page.getByText('The picture could not be loaded: status 503.').waitFor();
  await guest.page.getByRole('button', { name: 'Try again' }).click();
  await guest.page.locator('.graph-stage a.node').first().waitFor();
  await guest.leave();
});
