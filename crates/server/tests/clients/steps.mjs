// What the programs for Node have in common: the report of a step, and the churn that a cache has to survive.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';

// The libraries are where the caller is, not beside this file.
export const library = createRequire(join(process.cwd(), 'package.json'));
export const base = Number(process.env.USERS);
export const range = (from, to) => Array.from({ length: to - from }, (_, at) => String(from + at));

// Runs a step, and says how it went.
export async function report(feature, step) {
  try {
    const reason = await step();
    console.log(typeof reason === 'string' ? `${feature} no ${reason}` : `${feature} yes`);
  } catch (error) {
    console.log(`${feature} failed ${error}`.replaceAll('\n', ' '));
  }
}

// Numbers that look random, the same in each run.
function chance(seed) {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

// Another client changes sets while the cache reads. Invalidations come in order, so that once the cache shows the last
// write, everything that it says must be right.
export async function churn(reader, writer, first) {
  const next = chance(first);
  const mark = `following:${first}`;
  const truth = new Map(range(first + 1, first + 11).map((user) => [`following:${user}`, new Set()]));
  if (process.env.FOLLOWERS) for (const id of range(first + 101, first + 121)) truth.set(`followers:${id}`, new Set());
  assert.equal(await reader.size(mark), 0);
  for (let turn = 0; turn < 50; turn++) {
    const writes = [];
    for (let write = 0; write < 20; write++) {
      const [user, followee, isFollow] = [first + 1 + next(10), first + 101 + next(20), next(10) < 6];
      for (const [key, member] of [[`following:${user}`, followee], [`followers:${followee}`, user]]) {
        if (isFollow) truth.get(key)?.add(String(member));
        else truth.get(key)?.delete(String(member));
      }
      writes.push(writer(isFollow ? 'SADD' : 'SREM', `following:${user}`, String(followee)));
      const key = [...truth.keys()][next(truth.size)];
      await Promise.all([reader.members(key), reader.size(key)]);
    }
    await Promise.all(writes);
    await writer('SADD', mark, String(first + 1000 + turn));
    const deadline = Date.now() + 10_000;
    while ((await reader.size(mark)) !== turn + 1) {
      assert(Date.now() < deadline, 'the cache did not learn of a write for 10 s');
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const [key, expected] of truth) {
      assert.deepEqual([...(await reader.members(key))].sort(), [...expected].sort(), `turn ${turn}, ${key}`);
      assert.equal(await reader.size(key), expected.size, key);
    }
  }
}
