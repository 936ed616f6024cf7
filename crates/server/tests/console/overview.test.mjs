// The overview: its figures, and charts that move with the load.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, demo, until, visitor } from './harness.mjs';

const site = await demo();
const figure = (page, name) => page.locator(`[data-figure="${name}"]`).innerText();

/** Calls the REST API over and over while something is awaited. */
async function underLoad(act) {
  let ended = false;
  const client = async (number) => {
    for (let call = 0; !ended; call += 1) {
      await site.rest('GET', `/v1/users/${(call * 7 + number) % 2_000}/followers?limit=10`);
      if (call % 5 === 0) await site.rest('POST', `/v1/users/${20_000 + call}/follow`, { actor: 10_000 + number });
      if (call % 20 === 0) await site.fetch(`/v1/posts/${call}`);
      // Some hundred requests a second are enough to be seen.
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const clients = [client(1), client(2)];
  try {
    return await act();
  } finally {
    ended = true;
    await Promise.all(clients);
  }
}

test('figures say what is served here', async () => {
  const guest = await visitor(site);
  await guest.open('/console');
  const { page } = guest;
  await page.locator('[data-live-state]').getByText('Live').waitFor();
  const metrics = await (await site.fetch('/metrics')).text();
  const metric = (name) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)[1]);
  assert.equal(await figure(page, 'edges'), metric('kinfolk_edges').toLocaleString('en-US'));
  assert.equal(await figure(page, 'position'), metric('kinfolk_log_position_newest').toLocaleString('en-US'));
  assert.match(await page.locator('.facts').innerText(), /Profile\s+embedded[\s\S]*Ids\s+integers[\s\S]*Authentication\s+off/);
  await page.getByText('Ready', { exact: true }).waitFor();
  assert.equal(await page.locator('[data-warnings] li').count(), 0);
  await guest.leave();
});

test('figures, charts and operations follow the load', async () => {
  const guest = await visitor(site);
  const { page } = guest;
  await guest.open('/console');
  await page.locator('[data-live-state]').getByText('Live').waitFor();
  const number = async (name) => Number((await figure(page, name)).replaceAll(',', ''));
  const [edges, position] = [await number('edges'), await number('position')];
  await underLoad(async () => {
    const operation = (name) => page.locator('[data-operations] tr').filter({ has: page.getByRole('rowheader', { name, exact: true }) });
    const rateOf = async (name) => {
      if (await operation(name).count() === 0) return 0;
      return Number.parseFloat((await operation(name).locator('td').nth(1).innerText()).replaceAll(',', '')) || 0;
    };
    await until('the rate of reads', async () => await rateOf('followers') > 1);
    await until('the rate of writes', async () => await rateOf('follow') > 0.1);
    assert.match(await operation('followers').locator('td').nth(3).innerText(), /\d.*(µs|ms|s)$/);
    await until('more edges', async () => await number('edges') > edges);
    assert.ok(await number('position') > position);
    const label = (chart) => page.locator(`[data-chart="${chart}"] svg`).getAttribute('aria-label');
    assert.match(await label('rate'), /^Requests: now [\d.,]+\/s/);
    assert.match(await label('latency'), /^p50: now .+ p99: now .+/);
    await until('a curve of more than one sample', async () =>
      (await page.locator('[data-chart="rate"] .curve').first().getAttribute('d')).split('L').length > 1);
    const drawn = await page.locator('[data-chart="rate"] .curve').first().getAttribute('d');
    await until('the curve moves', async () => await page.locator('[data-chart="rate"] .curve').first().getAttribute('d') !== drawn);
  });
  const box = await page.locator('[data-chart="rate"] svg').boundingBox();
  await page.mouse.move(box.x + box.width - 20, box.y + box.height / 2);
  assert.match(await page.locator('[data-chart="rate"] .chart-tip').innerText(), /\d\d:\d\d:\d\d\s*Requests\s*[\d.,]+\/s/);
  await audit(page);
  await guest.leave();
});
