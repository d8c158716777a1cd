// node ioredis.js [PORT]: an event is remembered only when it was delivered, with the package `ioredis`.
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";

const client = new Redis({ port: Number(process.argv[2] ?? 6379) });
const token = randomUUID(); // of this process: nobody else may use it

// Whether the event can be acknowledged to its sender.
async function handle(event, deliver) {
  const claimed = await client.call("SLUICE.CLAIM", "jobs", event, "TTL", "30000", "TOKEN", token);
  if (claimed === 0) return true; // delivered before
  if (claimed === 2) return false; // somebody else is delivering it: it comes again
  try {
    await deliver(event);
  } catch (error) {
    console.log(`${error.message}: given back`);
    await client.call("SLUICE.RELEASE", "jobs", event, "TOKEN", token);
    return false;
  }
  await client.call("SLUICE.CONFIRM", "jobs", event, "TOKEN", token);
  return true;
}

// The program may be started again: then the key is there.
await client.call("SLUICE.RESERVE", "jobs", "WINDOW", "24h").catch((error) => {
  if (!error.message.includes("exists already")) throw error;
});
await client.persist("jobs");
let attempts = 0;
const deliver = async (event) => {
  if (event === "evt_2" && ++attempts === 1) throw new Error(`${event} was not delivered`);
  console.log(`${event} was delivered`);
};
for (const event of ["evt_1", "evt_2", "evt_1", "evt_2", "evt_2"]) {
  console.log(`${event}: ${(await handle(event, deliver)) ? "acknowledged" : "to be sent again"}`);
}
client.disconnect();
