// Administration: jobs with their results, files to download, the settings.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { audit, demo, kinfolk, temporary, until, visitor } from './harness.mjs';

const site = await demo();
const folder = temporary();
const job = (page, name) => page.getByRole('region', { name, exact: true });

async function administrator() {
  const guest = await visitor(site);
  await guest.open('/console/admin');
  return guest;
}

/** Starts a job, and returns the fields of its result. */
async function run(guest, name, button) {
  const card = job(guest.page, name);
  await card.getByRole('button', { name: button, exact: true }).click();
  await card.getByText(/^Done in /).waitFor();
  await until('the button again', () => card.getByRole('button', { name: button, exact: true }).isEnabled());
  const [keys, values] = [await card.locator('dt').allInnerTexts(), await card.locator('.job-result dd').allInnerTexts()];
  return Object.fromEntries(keys.map((key, at) => [key.toLowerCase(), values[at]]));
}

/** Downloads what a link or a button leads to. */
async function download(guest, control) {
  const [file] = await Promise.all([guest.page.waitForEvent('download'), control.click()]);
  assert.equal(await file.failure(), null);
  return { name: file.suggestedFilename(), path: await file.path() };
}

test('a verification reports that everything is right', async () => {
  const guest = await administrator();
  const result = await run(guest, 'Verify', 'Verify');
  assert.equal(Number(result.edges?.replaceAll(',', '')) > 20_000, true, JSON.stringify(result));
  await audit(guest.page);
  await guest.open('/console');
  assert.match(await guest.page.locator('[data-figure="verify"]').innerText(), /^\d+ s ago$/);
  await guest.leave();
});

test('suggestions for everyone are computed', async () => {
  const guest = await administrator();
  const result = await run(guest, 'Suggestions for everyone', 'Compute');
  assert.ok(Object.keys(result).length > 0);
  await guest.open(`/console/users/${site.fan}/suggestions`);
  assert.match(await guest.page.getByRole('main').innerText(), /Computed (just now|\d+ seconds ago)/);
  await guest.leave();
});

test('files are compacted', async () => {
  const guest = await administrator();
  await run(guest, 'Compact', 'Compact');
  await guest.leave();
});

test('a file of edges is imported, and the format follows its name', async () => {
  const guest = await administrator();
  const card = job(guest.page, 'Import edges');
  const file = join(folder, 'edges.csv');
  writeFileSync(file, '70001,70002\n70001,70003,2020-01-02T03:04:05Z\n');
  await card.getByLabel('File').setInputFiles({ name: 'edges.parquet', mimeType: '', buffer: Buffer.from('') });
  assert.equal(await card.getByLabel('Format').inputValue(), 'parquet');
  await card.getByLabel('File').setInputFiles(file);
  assert.equal(await card.getByLabel('Format').inputValue(), 'csv');
  await run(guest, 'Import edges', 'Import');
  await guest.open('/console/users/70001/following');
  assert.deepEqual((await guest.page.locator('.rows .row-main > a').allInnerTexts()).sort(), ['70002', '70003']);
  await guest.page.locator('time[datetime^="2020-01-02T03:04:05"]').waitFor();
  await guest.leave();
});

test('a file with a malformed line changes nothing, unless such lines are skipped', async () => {
  const guest = await administrator();
  guest.expected.add(400);
  const card = job(guest.page, 'Import edges');
  const file = { name: 'edges.csv', mimeType: 'text/csv', buffer: Buffer.from('70011,70012\n70011,somebody\n') };
  await card.getByLabel('File').setInputFiles(file);
  await card.getByRole('button', { name: 'Import' }).click();
  await card.locator('.notice-bad').getByText('somebody').waitFor();
  assert.deepEqual(await site.all('/v1/users/70011/following'), []);
  await audit(guest.page);
  await card.getByLabel('Skip and count malformed lines').check();
  await run(guest, 'Import edges', 'Import');
  assert.equal((await site.all('/v1/users/70011/following')).length, 1);
  await guest.leave();
});

test('a backup is downloaded, and can be restored', async () => {
  const guest = await administrator();
  const { name, path } = await download(guest, guest.page.getByRole('link', { name: 'Download a backup' }));
  assert.match(name, /backup/);
  await kinfolk(folder, 'restore', path, '--data', join(folder, 'restored'), '--quiet');
  const of = ['counts', site.celebrity, '--json', '--data', join(folder, 'restored')];
  const restored = JSON.parse(await kinfolk(folder, ...of));
  const now = await site.rest('GET', `/v1/users/${site.celebrity}/counts`);
  assert.ok(JSON.stringify(restored).includes(`"followers":${now.followers}`), JSON.stringify(restored));
  await guest.leave();
});

test('edges and comments are exported', async () => {
  const guest = await administrator();
  const card = job(guest.page, 'Downloads');
  const button = card.getByRole('button', { name: 'Download the export' });
  const edges = await download(guest, button);
  assert.match(edges.name, /\.csv$/);
  const lines = readFileSync(edges.path, 'utf8').trim().split('\n');
  assert.ok(lines.length > 20_000, String(lines.length));
  await card.getByLabel('Format').selectOption('csv.gz');
  const packed = await download(guest, button);
  assert.match(packed.name, /\.csv\.gz$/);
  assert.ok(gunzipSync(readFileSync(packed.path)).toString().split('\n').length > 20_000);
  await card.getByLabel('Export').selectOption({ label: 'Comments' });
  const comments = await download(guest, button);
  assert.ok(readFileSync(comments.path).length > 0);
  await guest.leave();
});

test('settings are filtered by words', async () => {
  const guest = await administrator();
  const rows = guest.page.locator('#settings tbody tr:visible');
  const all = await rows.count();
  assert.ok(all > 30, String(all));
  await guest.page.getByLabel('Filter settings').fill('limits');
  const shown = await rows.allInnerTexts();
  assert.ok(shown.length > 1 && shown.length < all && shown.every((row) => /limits/i.test(row)), String(shown));
  await guest.page.getByText(`${shown.length} of ${all} match`).waitFor();
  assert.match(shown.join('\n'), /limits\.changes\s+none\s+--limit-changes/);
  await guest.page.getByLabel('Filter settings').fill('LIMITS changes');
  assert.equal(await rows.count(), 1);
  await guest.leave();
});
