"""Windows of a few seconds: no repeat inside is called distinct, and what has expired is free again; also after
failovers and restarts, and for a replica that nobody writes to."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import pytest

from server import HOST, MODULE, Server, both, needs_module, wait_until
from workload import count, state

pytestmark = needs_module

WINDOW_S = 2.0
# Where the planner made the window, its slack is a generation of 24: more than a twelfth would be a fault.
SLACK = 0.15

# At 1e-6, one of a million items that came long ago would be a false positive.
MAKINGS = {
    "list": ("WINDOW", "2s", "FPR", 1e-9),
    "cohort": ("WINDOW", "2s", "RATE", "2k/s", "FPR", 1e-9),
    "refresh": ("WINDOW", "2s", "REFRESH", "FPR", 1e-9),
    "exact": ("WINDOW", "2s", "FILTER", "exact-window", "EXPECT", 2000),
    "apbf": ("WINDOW", "2s", "FILTER", "apbf", "EXPECT", 2000, "SLACK", "0.1", "FPR", 1e-9),
}


class Model:
    """When each item was let through or, with REFRESH, came at last."""

    def __init__(self, refresh: bool) -> None:
        self.refresh = refresh
        self.last: dict[int, tuple[float, float]] = {}
        self.repeats = self.freed = 0

    def judged(self, items: list[int], answers: list[int], before: float, after: float) -> None:
        """`before` and `after` are when it was sent and answered."""
        for item, answer in zip(items, answers, strict=True):
            known = self.last.get(item)
            if known is not None:
                if after - known[0] < WINDOW_S:
                    assert answer == 0, f"{item} came {after - known[0]:.3f} s ago and is called distinct"
                    self.repeats += 1
                elif before - known[1] > WINDOW_S * (1 + SLACK) + 0.01:
                    assert answer == 1, f"{item} came {before - known[1]:.3f} s ago and is called a duplicate"
                    self.freed += 1
            if answer == 1 or self.refresh:
                self.last[item] = (before, after)


def drive(server: Server, models: dict[str, Model], first: int, seconds: float) -> int:
    """Adds batches of fresh items and of items of the last 4 s, or of the last 4000 if these go back further, for so
    long; returns the next fresh item."""
    end = time.time() + seconds
    marks: deque[tuple[float, int]] = deque()  # which item was fresh at which time
    step = 0
    while (now := time.time()) < end:
        step += 1
        marks.append((now, first))
        while now - marks[0][0] > 4:
            marks.popleft()
        span = max(4000, first - marks[0][1])
        fresh = list(range(first, first + 10))
        old = [(first - back) for back in range(7, span, span // 75 + step % 11) if first - back >= 0]
        items = fresh + old
        for key, model in models.items():
            before = time.time()
            answers = server.command("SLUICE.INSERT", key, *MAKINGS[key], "ITEMS", *items)
            model.judged(items, answers, before, time.time())
        first += 10
    return first


def models() -> dict[str, Model]:
    return {key: Model(key == "refresh") for key in MAKINGS}


@both
def test_windows_hold_and_free(name: str) -> None:
    with Server(name, module=MODULE) as server:
        known = models()
        drive(server, known, 0, count(5, 60))
        for key, model in known.items():
            assert model.repeats > 100, key
            assert model.freed > 20 or model.refresh, key


@both
def test_after_failover(name: str) -> None:
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        known = models()
        first = drive(primary, known, 0, 2)
        replica.wait_for_sync(primary)
        primary.kill()
        replica.replicaof(None)
        drive(replica, known, first, count(3, 20))
        for model in known.values():
            assert model.repeats > 50


@both
@pytest.mark.parametrize("idle_s", [0.5, 2.6])
def test_after_a_restart_from_rdb(name: str, idle_s: float) -> None:
    with Server(name, "save 3600 1", module=MODULE) as server:
        known = models()
        first = drive(server, known, 0, 1.5)
        server.stop()
        time.sleep(idle_s)
        server.start()
        # Those of before are all free, or still known, by their age: the model says which.
        drive(server, known, first, count(2, 10))


@both
def test_an_idle_replica_asks_its_own_clock(name: str) -> None:
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        for key, making in MAKINGS.items():
            assert primary.command("SLUICE.INSERT", key, *making, "ITEMS", "a", "b") == [1, 1]
            # It must not expire as a whole, or that would be the answer.
            primary.client.persist(key)
        since = time.time()
        replica.wait_for_sync(primary)
        before = state(replica)
        assert len(before) == len(MAKINGS)
        for key in MAKINGS:
            answers = replica.command("SLUICE.MEXISTS", key, "a", "b", "c")
            if time.time() < since + WINDOW_S:
                assert answers == [1, 1, 0]
        wait_until(lambda: time.time() > since + WINDOW_S * (1 + SLACK) + 0.05, "the window passes")
        for key in MAKINGS:
            assert replica.command("SLUICE.MEXISTS", key, "a", "b", "c") == [0, 0, 0], key
            assert primary.command("SLUICE.MEXISTS", key, "a", "b", "c") == [0, 0, 0], key
        # Nothing was written to answer.
        assert state(replica) == before == state(primary)
        for key in MAKINGS:
            assert primary.command("SLUICE.MADD", key, "a", "b") == [1, 1]


@both
def test_an_idle_window_is_gone(name: str) -> None:
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        primary.command("SLUICE.INSERT", "w", "WINDOW", "2s", "ITEMS", "a")
        primary.command("SLUICE.INSERT", "kept", "WINDOW", "2s", "ITEMS", "a")
        primary.client.persist("kept")
        primary.command("SLUICE.ADD", "kept", "b")
        primary.command("SLUICE.INSERT", "longer", "WINDOW", "2s", "ITEMS", "a")
        primary.client.expire("longer", 100)
        primary.command("SLUICE.ADD", "longer", "b")
        written = time.time()
        assert WINDOW_S * 1000 <= primary.client.pttl("w") + 100
        assert primary.client.pttl("w") <= WINDOW_S * 1000 * (1 + SLACK) + 50
        replica.wait_for_sync(primary)
        for key in ("w", "kept", "longer"):
            assert replica.client.pexpiretime(key) == primary.client.pexpiretime(key)
        wait_until(lambda: primary.client.dbsize() == 2 and replica.client.dbsize() == 2, "it is gone")
        assert time.time() - written >= WINDOW_S - 0.2
        assert primary.client.pttl("kept") == -1
        assert primary.client.pttl("longer") > 90_000


@both
def test_a_lease_outlives_a_short_window(name: str) -> None:
    """A key of a short window must not expire while somebody delivers one of its items."""
    with Server(name, module=MODULE) as server, Server(name, module=MODULE) as replica:
        replica.replicaof(server)
        replica.wait_for_sync(server)
        server.command("SLUICE.RESERVE", "w", "WINDOW", "1s")
        assert server.command("SLUICE.CLAIM", "w", "a", "TTL", 60000, "TOKEN", "t") == 1
        server.command("SLUICE.ADD", "w", "b")
        server.command("DEBUG", "RELOAD")
        replica.wait_for_sync(server)
        server.command("SLUICE.ADD", "w", "b")
        replica.wait_for_sync(server)
        assert state(replica) == state(server)
        time.sleep(1.6)
        assert server.command("SLUICE.EXISTS", "w", "a") == 2
        assert server.command("SLUICE.CLAIM", "w", "a", "TTL", 60000, "TOKEN", "u") == 2
        assert server.command("SLUICE.CONFIRM", "w", "a", "TOKEN", "t") == 1
        # Without leases it lives as long as every window.
        assert server.client.pttl("w") < 1500


def moved_with_ttl(source: Server, target: Server, key: str) -> None:
    source.command("MIGRATE", HOST, target.port, key, 0, 10_000)


def restored_with_ttl(source: Server, target: Server, key: str) -> None:
    # By hand, some time passes between the two: the expiry ends up later by it.
    ttl = source.client.pttl(key)
    target.command("RESTORE", key, ttl + 150, source.command("DUMP", key))
    source.command("DEL", key)


@both
@pytest.mark.parametrize("move", [moved_with_ttl, restored_with_ttl])
def test_a_window_that_was_moved_lives_while_it_is_used(name: str, move: Callable[[Server, Server, str], None]) -> None:
    """The journey moves the expiry. It is still the module's own, on the target, its replica, and one that syncs
    afterwards."""
    with (
        Server(name, module=MODULE) as source,
        Server(name, "appendonly yes", module=MODULE) as target,
        Server(name, module=MODULE) as replica,
        Server(name, module=MODULE) as later,
    ):
        replica.replicaof(target)
        replica.wait_for_sync(target)
        source.command("SLUICE.INSERT", "w", "WINDOW", "2s", "ITEMS", "a")
        source.command("SLUICE.RESERVE", "long", "WINDOW", "2s")
        source.client.expire("long", 1000)
        source.command("SLUICE.ADD", "long", "a")
        for key in ("w", "long"):
            move(source, target, key)
        assert source.client.dbsize() == 0
        later.replicaof(target)
        later.wait_for_sync(target)
        let_through, end = 0, time.time() + 5
        while time.time() < end:
            let_through += target.command("SLUICE.ADD", "w", "a")
            target.command("SLUICE.ADD", "long", "a")
            time.sleep(0.02)
        assert let_through <= 3, "a repeat inside the window passed"
        assert 1500 < target.client.pttl("w") <= 2300
        assert target.client.pttl("long") > 900_000, "a person's expiry counts"
        for other in (replica, later):
            other.wait_for_sync(target)
            assert state(other) == state(target)
            assert other.command("PEXPIRETIME", "w") == target.command("PEXPIRETIME", "w")
        target.client.persist("w")
        target.restart()
        assert target.client.ttl("w") == -1
        assert target.command("SLUICE.ADD", "w", "b") == 1
        assert target.client.ttl("w") == -1, "PERSIST counts"


@both
def test_a_window_that_was_moved_lives_after_a_restart(name: str) -> None:
    """Between RESTORE and the first write: from an append-only file, and from an RDB file."""
    for config in (("appendonly yes", "appendfsync always", "aof-use-rdb-preamble no"), ("save 1000 1",)):
        with Server(name, module=MODULE) as source, Server(name, *config, module=MODULE) as target:
            source.command("SLUICE.INSERT", "w", "WINDOW", "3s", "ITEMS", "a")
            restored_with_ttl(source, target, "w")
            target.restart()
            time.sleep(0.3)
            before = target.command("PEXPIRETIME", "w")
            assert target.command("SLUICE.ADD", "w", "a") == 0
            assert target.command("PEXPIRETIME", "w") > before


@both
def test_a_window_restored_without_ttl_stays(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.INSERT", "w", "WINDOW", "1s", "ITEMS", "a")
        server.command("RESTORE", "copy", 0, server.command("DUMP", "w"))
        assert server.command("SLUICE.ADD", "copy", "a") == 0
        assert server.client.ttl("copy") == -1
