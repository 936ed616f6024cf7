// A restart of the server underneath: pages say that the connection is lost and go on by themselves, and sessions survive.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort, kinfolk, serve, temporary, visitor } from './harness.mjs';

const folder = temporary();
const file = join(folder, 'keys.toml');
const key = await kinfolk(folder, 'keys', 'add', 'operator', '--scopes', 'read,write,moderate,admin', '--file', file);
const start = async (port) => serve({ folder, port, flags: ['--auth-keys', file] });

test('pages outlive the server', async () => {
  const port = await freePort();
  let site = await start(port);
  const follow = (follower, followee) => site.rest('POST', `/v1/users/${followee}/follow`, { actor: follower, key });
  const guest = await visitor(site);
  await guest.open('/console');
  await guest.page.getByLabel('API key').fill(key);
  await guest.press('Sign in');
  const overview = guest.page;
  const changes = await guest.tab();
  await guest.open('/console/changes', changes);
  const overviewSays = (text) => overview.locator('[data-live-state]').getByText(text).waitFor();
  const changesSay = (text) => changes.locator('[data-stream-state]').getByText(text).waitFor();
  await overviewSays('Live');
  await changesSay('Live');
  await follow(1, 2);
  await changes.getByText('1 follows 2').waitFor();

  guest.isOffline = true;
  await site.stop();
  // Tabs in the background do not poll.
  await overview.bringToFront();
  await overviewSays('Connection lost, retrying');
  assert.ok(await overview.locator('[data-live][data-stale]').count(), 'old figures look old');
  await changesSay('Connection lost, retrying');
  site = await start(port);
  await follow(1, 3);
  await overviewSays('Live');
  assert.equal(await overview.locator('[data-live][data-stale]').count(), 0);
  await changesSay('Live');
  guest.isOffline = false;

  await changes.getByText('1 follows 3').waitFor();
  await follow(1, 4);
  await changes.getByText('1 follows 4').waitFor();
  assert.deepEqual(await changes.locator('[data-log] .what').allInnerTexts(), ['1 follows 4', '1 follows 3', '1 follows 2'],
    'no change is missing or there twice');
  guest.site = site;
  await guest.open('/console/admin', overview);
  assert.equal(new URL(overview.url()).pathname, '/console/admin', 'the session goes on');
  await guest.leave();
  await site.stop();
});
