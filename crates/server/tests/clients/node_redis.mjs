// node-redis and ioredis in their default ways, against a running server: node node_redis.mjs PORT. Says nothing if
// all is well.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';

// The libraries are where the caller is, not beside this file.
const require = createRequire(join(process.cwd(), 'package.json'));
const { createClient } = require('redis');
const Redis = require('ioredis');

const port = Number(process.argv[2]);
const base = Date.now() * 1000;

for (const RESP of [2, 3]) {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, RESP });
  await client.connect();
  const following = `following:${base + RESP}`;
  assert.equal(await client.sAdd(following, ['8', '9']), 2);
  assert.deepEqual(await client.smIsMember(following, ['8', '10']), [1, 0]);
  // Commands of one turn become one pipeline.
  const members = Array.from({ length: 2000 }, (_, number) => String(1000 + number));
  assert.deepEqual(await Promise.all(members.map((id) => client.sAdd(following, id))), members.map(() => 1));
  assert.deepEqual(await client.multi().sRem(following, '8').sCard(following).exec(), [1, 2001]);
  const scanned = new Set();
  for await (const part of client.sScanIterator(following, { COUNT: 100 })) part.forEach((id) => scanned.add(id));
  assert.equal(scanned.size, 2001);
  assert.equal((await client.sMembers(following)).length, 2001);
  assert.deepEqual(await client.sendCommand(['COUNTS', String(base + RESP)]), [2001, 0]);
  await assert.rejects(client.sAdd('somewhere', '1'), /WRONGTYPE/);
  await client.close();
}

const io = new Redis(port);
const following = `following:${base + 9}`;
assert.equal(await io.sadd(following, 8), 1);
assert.deepEqual(await io.pipeline().sismember(following, 8).scard(following).exec(), [[null, 1], [null, 1]]);
assert.deepEqual(await io.multi().srem(following, 8).scard(following).exec(), [[null, 1], [null, 0]]);
io.disconnect();
