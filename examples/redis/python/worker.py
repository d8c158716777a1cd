"""Workers that deliver each event of a Redis stream, and lose none if they are killed.

    python worker.py [PORT]

An event is claimed, delivered and confirmed. A worker that is killed in between leaves its claim; when the lease
ends, another worker gets the event. With SLUICE.ADD the event would be lost: it would be remembered before it
is delivered. Needs the package `redis`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid

import redis

QUEUE, GROUP, SEEN = "events", "workers", "events:seen"
LEASE_MS = 1000  # several times as long as a delivery takes


def deliver(client: redis.Redis, event: str) -> None:
    """What must happen once: here it goes to a list."""
    client.rpush("delivered", event)


class Worker:
    def __init__(self, client: redis.Redis, name: str, killed_at: str | None) -> None:
        self.client, self.name, self.killed_at = client, name, killed_at
        self.token = f"{name}:{uuid.uuid4()}"  # nobody else may use it

    def run(self) -> None:
        while entries := self.fresh() or self.left_by_others():
            for entry, fields in entries:
                if self.handle(fields["id"]):
                    self.client.xack(QUEUE, GROUP, entry)

    def handle(self, event: str) -> bool:
        """Whether the event can be acknowledged."""
        claimed = self.client.execute_command(
            "SLUICE.CLAIM", SEEN, event, "TTL", LEASE_MS, "TOKEN", self.token
        )
        if claimed == 0:
            print(f"{self.name}: {event} was delivered before", flush=True)
            return True
        if claimed == 2:  # somebody is delivering it, or was killed: it comes back when the lease has ended
            return False
        if event == self.killed_at:
            print(f"{self.name}: killed while it handles {event}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            deliver(self.client, event)
        except Exception:
            self.client.execute_command("SLUICE.RELEASE", SEEN, event, "TOKEN", self.token)
            raise
        print(f"{self.name}: delivered {event}", flush=True)
        if self.client.execute_command("SLUICE.CONFIRM", SEEN, event, "TOKEN", self.token) == 0:
            print(f"{self.name}: the lease on {event} ended: it may be delivered twice", flush=True)
        return True

    def fresh(self) -> list:
        answer = self.client.xreadgroup(GROUP, self.name, {QUEUE: ">"}, count=1)
        return [entry for _, entries in answer for entry in entries]

    def left_by_others(self) -> list:
        """Events that somebody took and did not acknowledge within a lease; waits for them while there are any."""
        while self.client.xpending(QUEUE, GROUP)["pending"] > 0:
            _, entries, *_ = self.client.xautoclaim(QUEUE, GROUP, self.name, min_idle_time=LEASE_MS, count=1)
            if entries:
                return entries
            self.client.blpop(["nothing:comes:here"], timeout=0.1)  # type: ignore[arg-type]
        return []


def connect(port: str) -> redis.Redis:
    return redis.Redis(port=int(port), decode_responses=True, protocol=2)


def make(client: redis.Redis, there: str, *words: str) -> None:
    """Makes what is not there yet: the program may be started again."""
    try:
        client.execute_command(*words)
    except redis.ResponseError as error:
        if there not in str(error):
            raise


def main(port: str) -> None:
    client = connect(port)
    make(client, "exists already", "SLUICE.RESERVE", SEEN, "WINDOW", "24h")
    client.persist(SEEN)  # or it would expire when nothing is written for a day, and CLAIM would be refused
    make(client, "BUSYGROUP", "XGROUP", "CREATE", QUEUE, GROUP, "0", "MKSTREAM")
    for event in ["evt_1", "evt_2", "evt_1", "evt_3"]:  # evt_1 is sent twice
        client.xadd(QUEUE, {"id": event})
    for name, killed_at in [("worker-1", "evt_2"), ("worker-2", "")]:
        subprocess.run([sys.executable, __file__, port, name, killed_at], check=False)
    print("delivered:", *sorted(client.lrange("delivered", 0, -1)))


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["6379"]
    if len(arguments) == 1:
        main(arguments[0])
    else:
        Worker(connect(arguments[0]), arguments[1], arguments[2] or None).run()
