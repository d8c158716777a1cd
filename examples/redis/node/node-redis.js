// node node-redis.js [PORT]: each webhook is handled once in 24 hours, with the package `redis`.
import { createClient } from "redis";

const client = createClient({ socket: { port: Number(process.argv[2] ?? 6379) } });
await client.connect();

// The ids that were not seen in the last 24 hours: one round trip for all.
async function once(ids) {
  const answers = await client.sendCommand(["SLUICE.INSERT", "webhooks", "WINDOW", "24h", "ITEMS", ...ids]);
  return ids.filter((_, i) => answers[i] === 1);
}

console.log("first batch:", ...(await once(["evt_1", "evt_2", "evt_1"])));
console.log("second batch:", ...(await once(["evt_2", "evt_3"])));
await client.close();
