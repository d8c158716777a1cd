// node bf.js PORT: the commands of RedisBloom, with each client that people use for them from Node.
import assert from "node:assert/strict";
import { createClient } from "redis";
import bloom from "@redis/bloom";
import { Redis } from "ioredis";

const host = "127.0.0.1";
const port = Number(process.argv[2]);

async function nodeRedis(RESP) {
  const modules = bloom.default ?? bloom;
  const client = createClient({ RESP, modules, socket: { host, port, reconnectStrategy: false } });
  await client.connect();
  try {
    await client.flushAll();
    assert.equal(await client.bf.reserve("visits", 0.001, 1000, { EXPANSION: 3 }), "OK");
    assert.equal(await client.bf.add("visits", "a"), true);
    assert.equal(await client.bf.add("visits", "a"), false);
    assert.deepEqual(await client.bf.mAdd("visits", ["a", "b", "c"]), [false, true, true]);
    assert.equal(await client.bf.exists("visits", "b"), true);
    assert.equal(await client.bf.exists("nothing", "b"), false);
    assert.deepEqual(await client.bf.mExists("visits", ["a", "x"]), [true, false]);
    assert.equal(await client.bf.card("visits"), 3);
    const made = { CAPACITY: 10, ERROR: 0.01, NONSCALING: true };
    assert.deepEqual(await client.bf.insert("made", ["a", "b", "a"], made), [true, true, false]);
    const info = await client.bf.info("visits");
    assert.equal(info["Capacity"], 1000);
    assert.equal(info["Number of filters"], 1);
    assert.equal(info["Number of items inserted"], 3);
    assert.equal(info["Expansion rate"], 3);
    assert.equal((await client.bf.info("made"))["Expansion rate"], null);
    await assert.rejects(client.bf.reserve("visits", 0.01, 100), { message: "ERR item exists" });
    await assert.rejects(client.bf.info("nothing"), { message: "ERR not found" });
  } finally {
    client.destroy();
  }
}

async function ioredis() {
  const client = new Redis({ host, port, lazyConnect: true, retryStrategy: null });
  await client.connect();
  try {
    await client.flushall();
    assert.equal(await client.call("BF.RESERVE", "visits", 0.001, 1000), "OK");
    assert.deepEqual(await client.call("BF.MADD", "visits", "a", "b", "a"), [1, 1, 0]);
    assert.equal(await client.call("BF.EXISTS", "visits", "b"), 1);
    assert.deepEqual(await client.call("BF.INFO", "visits", "CAPACITY"), [1000]);
    assert.equal((await client.call("BF.INFO", "visits"))[0], "Capacity");
    await assert.rejects(client.call("BF.ADD", "visits"), /wrong number of arguments for 'bf.add' command/);
  } finally {
    client.disconnect();
  }
}

const clients = {
  "redis with @redis/bloom, RESP 2": () => nodeRedis(2),
  "redis with @redis/bloom, RESP 3": () => nodeRedis(3),
  ioredis,
};
for (const [name, use] of Object.entries(clients)) {
  await use();
  console.log(`${name}: as expected`);
}
