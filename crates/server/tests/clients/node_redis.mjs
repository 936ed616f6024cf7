// node-redis against running servers: node node_redis.mjs. See README.md of this folder.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { base, churn, library, range, report } from './steps.mjs';

const { createClient, BasicClientSideCache } = library('redis');
const env = process.env;

async function connect(options = {}, port = env.PORT) {
  const { socket, ...others } = options;
  const client = createClient({ socket: { host: '127.0.0.1', port: Number(port), reconnectStrategy: false, ...socket }, ...others });
  client.on('error', () => {});
  return client.connect();
}

const steps = {
  async follow(client, user) {
    assert.equal(await client.sAdd(`following:${user}`, [`${user + 1}`, `${user + 2}`]), 2);
    assert.equal(await client.sAdd(`following:${user}`, `${user + 1}`), 0);
    assert.equal(await client.sRem(`following:${user}`, `${user + 2}`), 1);
  },
  async check(client, user) {
    assert.equal(await client.sIsMember(`following:${user}`, `${user + 1}`), 1);
    assert.equal(await client.sIsMember(`following:${user}`, `${user + 2}`), 0);
  },
  async bulk(client, user) {
    assert.deepEqual(await client.smIsMember(`following:${user}`, [`${user + 1}`, `${user + 2}`]), [1, 0]);
  },
  async counts(client, user) {
    assert.equal(await client.sCard(`following:${user}`), 1);
    assert.equal(await client.sCard(`followers:${user + 1}`), 1);
  },
  async members(client, user) {
    assert.deepEqual([...(await client.sMembers(`following:${user}`))], [`${user + 1}`]);
    assert.deepEqual([...(await client.sMembers(`followers:${user + 1}`))], [`${user}`]);
  },
  async intersect(client, user) {
    await client.sAdd(`following:${user + 9}`, [`${user + 1}`, `${user + 3}`]);
    const keys = [`following:${user}`, `following:${user + 9}`];
    assert.deepEqual([...(await client.sInter(keys))], [`${user + 1}`]);
    assert.equal(await client.sInterCard(keys), 1);
  },
  async scan(client, user) {
    await client.sAdd(`following:${user}`, range(user + 1000, user + 3000));
    const found = new Set();
    for await (const part of client.sScanIterator(`following:${user}`, { COUNT: 100 })) part.forEach((id) => found.add(id));
    assert.equal(found.size, 2001);
  },
  async pipeline(client, user) {
    const removed = range(user + 1000, user + 3000).map((id) => client.sRem(`following:${user}`, id));
    assert.deepEqual(await Promise.all([...removed, client.sCard(`following:${user}`)]), Array(2001).fill(1));
  },
  async multi(client, user) {
    assert.deepEqual(await client.multi().sAdd(`following:${user}`, `${user + 4}`).sCard(`following:${user}`).exec(), [1, 2]);
  },
  async own(client, user) {
    const ask = (...words) => client.sendCommand(words.map(String));
    const token = await ask('FOLLOW', user, user + 5);
    assert.equal(await ask('AFTER', token), 'OK');
    assert.equal(await ask('FOLLOWS', user, user + 5), 1);
    const [[entry], cursor] = await ask('FOLLOWERS', user + 5, 'LIMIT', 10);
    assert.deepEqual([entry[0], cursor], [`${user}`, null]);
    assert.deepEqual(await ask('COUNTS', user), [3, 0]);
    await ask('FOLLOW', user + 5, user + 6);
    const [[suggested, mutualCount, score, via]] = await ask('SUGGEST', user, 'LIMIT', 1);
    assert.deepEqual([suggested, mutualCount, via], [`${user + 6}`, 1, [`${user + 5}`]]);
    assert(Number(score) >= 0);
    const [post] = await ask('POST', user + 5, 'PAYLOAD', '{"text":"hello"}');
    const [[newest]] = await ask('FEED', user, 'LIMIT', 1);
    assert.deepEqual([newest[0], newest[3]], [post, '{"text":"hello"}']);
  },
  async errors(client, user) {
    await assert.rejects(client.sAdd('somewhere', '1'), /WRONGTYPE/);
    await assert.rejects(client.sAdd(`following:${user}`, `${user}`), /ERR/);
    await assert.rejects(client.sendCommand(['NONSENSE']), /unknown command/);
    assert.equal(await client.ping(), 'PONG');
  },
};

async function key(RESP) {
  const client = await connect({ RESP, password: env.KEY }, env.KEY_PORT);
  assert.equal(await client.sAdd(`following:${base + RESP}`, '1'), 1);
  await client.close();
  await assert.rejects(connect({ RESP, password: 'wrong' }, env.KEY_PORT), /WRONGPASS|NOAUTH/);
}

async function tls(RESP) {
  const client = await connect({ RESP, socket: { tls: true, ca: readFileSync(env.TLS_CA) } }, env.TLS_PORT);
  assert.equal(await client.ping(), 'PONG');
  await client.close();
}

async function cache(first) {
  if (!env.CACHE) return 'the server has no CLIENT TRACKING';
  const clientSideCache = new BasicClientSideCache({ ttl: 0, maxEntries: 0, recordStats: true });
  const client = await connect({ RESP: 3, clientSideCache });
  const other = await connect({ RESP: 2 });
  const reader = { members: (key) => client.sMembers(key), size: (key) => client.sCard(key) };
  await churn(reader, (...words) => other.sendCommand(words), first);
  const { hitCount } = clientSideCache.stats();
  assert(hitCount > 100, `${hitCount} hits`);
  await client.close();
  await other.close();
}

console.log(`version ${library('redis/package.json').version}`);
if (!env.ONLY_CACHE) {
  await report('defaults', async () => {
    const client = await createClient({ url: `redis://127.0.0.1:${env.PORT}` }).connect();
    assert.equal(await client.ping(), 'PONG');
    await client.close();
  });
  for (const RESP of [2, 3]) {
    let client;
    await report(`resp${RESP}`, async () => {
      client = await connect({ RESP });
      assert.equal(await client.ping(), 'PONG');
    });
    for (const [name, step] of Object.entries(steps)) await report(name, () => step(client, base + 10_000 * RESP));
    await report('key', () => key(RESP));
    await report('tls', () => tls(RESP));
    await client?.close();
  }
}
await report('cache', () => cache(base + 50_000));
process.exit(0);
