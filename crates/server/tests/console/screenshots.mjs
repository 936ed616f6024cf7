// Draws the pictures of the documentation: node screenshots.mjs FOLDER, through scripts/console --screenshots.
// The overview is drawn after two minutes of load, so that its charts have something to show.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { after, test } from 'node:test';
import { demo, visitor } from './harness.mjs';

const LOAD_MS = 120_000;
const WIDE = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 844 };

const folder = process.argv.at(-1);
const site = await demo({ edges: 1_000_000 });
const { fan, celebrity, busiestPost } = site;

/** Reads and writes as an application would, more and less in turn, until it is told to stop. */
function load() {
  const state = { ended: false };
  const client = async (number) => {
    for (let call = 0; !state.ended; call += 1) {
      const user = 1 + ((call * 7_919 + number * 104_729) % 50_000);
      await site.rest('POST', '/v1/check', { body: { pairs: [[String(user), celebrity]] } });
      if (call % 3 === 0) await site.rest('GET', `/v1/users/${user}/followers?limit=50`);
      if (call % 5 === 0) await site.rest('GET', `/v1/users/${user}/feed?limit=20`);
      if (call % 8 === 0) await site.rest('POST', `/v1/users/${1 + (call % 5_000)}/follow`, { actor: 40_000 + (user % 9_000) + 6_000 });
      await delay(2 + 6 * (1 + Math.sin(Date.now() / 9_000)));
    }
  };
  const clients = [1, 2, 3].map(client);
  return async () => { state.ended = true; await Promise.all(clients); };
}

/** Opens a page as the fan, who may do everything. */
async function look(path, { viewport = WIDE, colorScheme = 'light', ready }) {
  const guest = await visitor(site, { viewport, colorScheme, deviceScaleFactor: 1.5 });
  await guest.context.addCookies([{ name: 'kinfolk_actor', value: fan, url: `${site.url}/console`, httpOnly: true, sameSite: 'Strict' }]);
  await guest.open(path);
  if (ready) await guest.page.locator(ready).first().waitFor();
  return guest;
}

async function draw(name, path, options = {}) {
  const guest = await look(path, options);
  await options.prepare?.(guest.page);
  await guest.page.screenshot({ path: join(folder, `console-${name}.png`) });
  guest.check();
}

test('pictures of the console', async () => {
  const stop = load();
  await delay(LOAD_MS);
  const live = { ready: '[data-chart="rate"] .curve' };
  await draw('overview-light', '/console', live);
  await draw('overview-dark', '/console', { ...live, colorScheme: 'dark' });
  await draw('changes', '/console/changes', { ready: '[data-log] > li:nth-child(12)' });
  await stop();

  const graph = { ready: 'a.node' };
  const toGraph = (page) => page.locator('#graph-title').scrollIntoViewIfNeeded();
  await draw('user-light', `/console/users/${fan}`, graph);
  await draw('user-dark', `/console/users/${fan}`, { ...graph, colorScheme: 'dark' });
  await draw('user-phone', `/console/users/${fan}`, { ...graph, viewport: PHONE, prepare: toGraph });
  await draw('post', `/console/posts/${busiestPost}`);
  await draw('admin', '/console/admin');
});
