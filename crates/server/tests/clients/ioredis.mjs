// ioredis against running servers: node ioredis.mjs. See README.md of this folder.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { base, library, range, report } from './steps.mjs';

const Redis = library('ioredis');
const env = process.env;

async function connect(options = {}, port = env.PORT) {
  const client = new Redis({ host: '127.0.0.1', port: Number(port), lazyConnect: true, retryStrategy: null, ...options });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const results = (replies) => replies.map(([error, reply]) => assert.equal(error, null) ?? reply);

const steps = {
  async follow(client, user) {
    assert.equal(await client.sadd(`following:${user}`, user + 1, user + 2), 2);
    assert.equal(await client.sadd(`following:${user}`, user + 1), 0);
    assert.equal(await client.srem(`following:${user}`, user + 2), 1);
  },
  async check(client, user) {
    assert.equal(await client.sismember(`following:${user}`, user + 1), 1);
    assert.equal(await client.sismember(`following:${user}`, user + 2), 0);
  },
  async bulk(client, user) {
    assert.deepEqual(await client.smismember(`following:${user}`, user + 1, user + 2), [1, 0]);
  },
  async counts(client, user) {
    assert.equal(await client.scard(`following:${user}`), 1);
    assert.equal(await client.scard(`followers:${user + 1}`), 1);
  },
  async members(client, user) {
    assert.deepEqual(await client.smembers(`following:${user}`), [`${user + 1}`]);
    assert.deepEqual(await client.smembers(`followers:${user + 1}`), [`${user}`]);
  },
  async intersect(client, user) {
    await client.sadd(`following:${user + 9}`, user + 1, user + 3);
    const keys = [`following:${user}`, `following:${user + 9}`];
    assert.deepEqual(await client.sinter(...keys), [`${user + 1}`]);
    assert.equal(await client.sintercard(2, ...keys), 1);
  },
  async scan(client, user) {
    await client.sadd(`following:${user}`, range(user + 1000, user + 3000));
    const found = new Set();
    for await (const part of client.sscanStream(`following:${user}`, { count: 100 })) part.forEach((id) => found.add(id));
    assert.equal(found.size, 2001);
  },
  async pipeline(client, user) {
    const pipeline = client.pipeline();
    for (const id of range(user + 1000, user + 3000)) pipeline.srem(`following:${user}`, id);
    assert.deepEqual(results(await pipeline.scard(`following:${user}`).exec()), Array(2001).fill(1));
  },
  async multi(client, user) {
    const replies = await client.multi().sadd(`following:${user}`, user + 4).scard(`following:${user}`).exec();
    assert.deepEqual(results(replies), [1, 2]);
  },
  async own(client, user) {
    const ask = (...words) => client.call(...words.map(String));
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
    await assert.rejects(client.sadd('somewhere', 1), /WRONGTYPE/);
    await assert.rejects(client.sadd(`following:${user}`, user), /ERR/);
    await assert.rejects(client.call('NONSENSE'), /unknown command/);
    assert.equal(await client.ping(), 'PONG');
  },
};

async function key(protocol) {
  const client = await connect({ protocol, password: env.KEY }, env.KEY_PORT);
  assert.equal(await client.sadd(`following:${base + protocol}`, 1), 1);
  client.disconnect();
  const refused = async () => (await connect({ protocol, password: 'wrong' }, env.KEY_PORT)).scard('following:1');
  await assert.rejects(refused);
}

async function tls(protocol) {
  const client = await connect({ protocol, tls: { ca: readFileSync(env.TLS_CA) } }, env.TLS_PORT);
  assert.equal(await client.ping(), 'PONG');
  client.disconnect();
}

console.log(`version ${library('ioredis/package.json').version}`);
if (!env.ONLY_CACHE) {
  await report('defaults', async () => {
    const client = new Redis(Number(env.PORT));
    assert.equal(await client.ping(), 'PONG');
    client.disconnect();
  });
  for (const protocol of [2, 3]) {
    let client;
    await report(`resp${protocol}`, async () => {
      client = await connect({ protocol });
      assert.equal(await client.ping(), 'PONG');
    });
    for (const [name, step] of Object.entries(steps)) await report(name, () => step(client, base + 10_000 * protocol));
    await report('key', () => key(protocol));
    await report('tls', () => tls(protocol));
    client?.disconnect();
  }
}
await report('cache', () => 'the library has no cache');
process.exit(0);
