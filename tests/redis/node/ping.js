// node ping.js PORT: connects with each client that people use from Node, and sends PING.
import { createClient } from "redis";
import bloom from "@redis/bloom";
import { Redis } from "ioredis";

const host = "127.0.0.1";
const port = Number(process.argv[2]);

async function nodeRedis(RESP, modules) {
  const client = createClient({ RESP, modules, socket: { host, port, reconnectStrategy: false } });
  await client.connect();
  try {
    return await client.ping();
  } finally {
    client.destroy();
  }
}

async function ioredis() {
  const client = new Redis({ host, port, lazyConnect: true, retryStrategy: null });
  await client.connect();
  try {
    return await client.ping();
  } finally {
    client.disconnect();
  }
}

const clients = {
  "redis, RESP 2": () => nodeRedis(2),
  "redis, RESP 3": () => nodeRedis(3),
  "redis with @redis/bloom": () => nodeRedis(2, bloom.default ?? bloom),
  ioredis,
};
for (const [name, ping] of Object.entries(clients)) {
  console.log(`${name}: ${await ping()}`);
}
