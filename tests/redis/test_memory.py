"""The server's own count of memory moves as MEMORY USAGE says; what does not fit is refused before anything is
allocated; what is deleted comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from server import MODULE, Server, both, needs_module, wait_until
from workload import MAKINGS, count, is_error, run, state

pytestmark = needs_module

MIB = 1 << 20


def used(server: Server) -> int:
    # A new connection: the buffers of one that was used are part of the server's memory.
    server.client.connection_pool.disconnect()
    return int(server.info("memory")["used_memory"])


def settled(server: Server) -> int:
    """Used memory, once the buffers of clients and of the cron are as they were."""
    last = used(server)
    for _ in range(50):
        time.sleep(0.02)
        now = used(server)
        if abs(now - last) < 64:
            return now
        last = now
    return last


def usage(server: Server, *keys: Any) -> int:
    pipe = server.client.pipeline(transaction=False)
    for key in keys:
        pipe.memory_usage(key, samples=0)
    return sum(pipe.execute())


def assert_moves_alike(
    server: Server, before: int, keys: list[Any], kind: str = "", fixed: int = 72 << 10
) -> None:
    """What the keys say they take is what the server's count has risen by. Commands keep up to 64 KiB for
    what they tell replicas, until the next one."""
    server.command("SLUICE.INSERT", "first", "ITEMS", "x")
    said, taken = usage(server, *keys), settled(server) - before
    assert abs(taken - said) <= 0.02 * max(said, taken) + fixed, f"{kind}: said {said}, taken {taken}"


@both
def test_each_kind(name: str) -> None:
    with Server(name, module=MODULE) as server:
        # Those that expire in 2 s would be gone.
        for kind in sorted(MAKINGS.keys() - {"time:short"})[:: count(4, 1)]:
            moves_alike(server, kind)


def moves_alike(server: Server, kind: str) -> None:
    keys = [f"k{i}" for i in range(150)]
    # What is allocated once: plans, and buffers.
    through_life(server, kind, keys, lambda: None)
    before = settled(server)
    through_life(server, kind, keys, lambda: assert_moves_alike(server, before, keys, kind))
    assert abs(settled(server) - before) < 72 << 10, kind


def through_life(server: Server, kind: str, keys: list[str], check: Callable[[], None]) -> None:
    run(server, [("SLUICE.INSERT", key, *MAKINGS[kind], "ITEMS", *range(20)) for key in keys])
    check()
    # Growth.
    run(server, [("SLUICE.MADD", key, *range(400)) for key in keys])
    check()
    # Claims.
    items = range(2000, 2100)
    run(server, [("SLUICE.MCLAIM", key, "TTL", 60000, "TOKEN", "t", "ITEMS", *items) for key in keys])
    check()
    run(server, [("SLUICE.MCONFIRM", key, "TOKEN", "t", "ITEMS", *items) for key in keys])
    check()
    server.client.delete(*keys)


@both
def test_one_large_key(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.RESERVE", "first", "EXPECT", "1M")
        before = settled(server)
        server.command("SLUICE.RESERVE", "large", "EXPECT", "20M")
        assert usage(server, "large") > 50 * MIB
        assert_moves_alike(server, before, ["large"])
        said = server.command("SLUICE.INFO", "large", "bytes")
        assert abs(said - usage(server, "large")) < 1024
        # Off the main thread.
        server.client.unlink("large")
        wait_until(lambda: abs(used(server) - before) < MIB, "UNLINK gives the memory back")
        server.command("SLUICE.RESERVE", "large", "EXPECT", "20M")
        server.client.flushall(asynchronous=True)
        wait_until(lambda: used(server) < before + MIB, "FLUSHALL ASYNC gives the memory back")
        assert int(server.info("sluice")["sluice_memory_bytes"]) < MIB


@both
def test_growth(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.RESERVE", "first")
        before = settled(server)
        server.command("SLUICE.RESERVE", "grows")
        server.command("SLUICE.RESERVE", "window", "WINDOW", "10m")
        for first in range(0, 400_000, 20_000):
            for key in ("grows", "window"):
                server.command("SLUICE.MADD", key, *range(first, first + 20_000))
            assert_moves_alike(server, before, ["grows", "window"], fixed=MIB)
        assert_moves_alike(server, before, ["grows", "window"])


@both
def test_what_does_not_fit_is_refused_before_it_is_allocated(name: str) -> None:
    with Server(name, "maxmemory 20mb", "maxmemory-policy noeviction", module=MODULE) as server:
        before, peak = settled(server), server.info("memory")["used_memory_peak"]
        for making in (
            ("EXPECT", "100M"),
            ("WINDOW", "10m", "RATE", "1M/s"),
            ("WINDOW", "100M"),
            ("WINDOW", "10m", "EXPECT", "10M", "MEMORY", "100MiB"),
            ("MEMORY", "1GiB"),
            ("FILTER", "bloom", "bytes", "100MiB"),
            ("FILTER", "exact", "EXPECT", "100M"),
            ("WINDOW", "10m", "FILTER", "apbf", "EXPECT", "100M"),
        ):
            for words in (("SLUICE.RESERVE", "k", *making), ("SLUICE.INSERT", "k", *making, "ITEMS", "a")):
                with pytest.raises(redis.ResponseError, match="maxmemory"):
                    server.command(*words)
        assert server.client.dbsize() == 0
        assert abs(settled(server) - before) < 256 << 10
        assert server.info("memory")["used_memory_peak"] < peak + 2 * MIB


@both
def test_a_full_server_adds_nothing_but_settles_claims(name: str) -> None:
    with Server(name, "maxmemory-policy noeviction", module=MODULE) as server:
        for key, making in (("w", ("WINDOW", "10m")), ("f", ()), ("b", ("EXPECT", 1000))):
            server.command("SLUICE.RESERVE", key, *making)
            assert server.command("SLUICE.MCLAIM", key, "TTL", 60000, "TOKEN", "t", "ITEMS", *range(600)) == [1] * 600
        server.client.config_set("maxmemory", used(server) - MIB // 4)
        for key in "wfb":
            for words in (
                ("SLUICE.MADD", key, "x", "y"),
                ("SLUICE.ADD", key, "x"),
                ("SLUICE.INSERT", key, "ITEMS", "x"),
                ("SLUICE.CLAIM", key, "x", "TTL", 10, "TOKEN", "t"),
                ("SLUICE.RESERVE", "new"),
                ("SLUICE.MERGE", "new", key),
            ):
                with pytest.raises(redis.OutOfMemoryError):
                    server.command(*words)
            assert server.command("SLUICE.MCONFIRM", key, "TOKEN", "t", "ITEMS", *range(300)) == [1] * 300
            assert server.command("SLUICE.CONFIRM", key, 300, "TOKEN", "t") == 1
            assert server.command("SLUICE.MRELEASE", key, "TOKEN", "t", "ITEMS", *range(301, 600)) == [1] * 299
            assert server.command("SLUICE.MEXISTS", key, *range(301)) == [1] * 301
            assert server.command("SLUICE.INFO", key, "pending") == 0


@both
def test_a_full_server_answers_long_commands(name: str) -> None:
    """What they need for themselves, some 50 kB here, is not refused."""
    items = range(3000)
    with Server(name, "maxmemory-policy noeviction", module=MODULE) as server:
        for key, making in (("w", ("WINDOW", "10m")), ("f", ()), ("t", ("FILTER", "dynamic", "forget", "yes"))):
            server.command("SLUICE.RESERVE", key, *making)
            server.command("SLUICE.MADD", key, *(f"a{i}" for i in items))
            for token in ("t", "u"):
                words = (f"{token}{i}" for i in items)
                server.command("SLUICE.MCLAIM", key, "TTL", 60000, "TOKEN", token, "ITEMS", *words)
        server.command("SLUICE.RESERVE", "small", "FILTER", "bloom", "bytes", 70_000)
        server.command("SLUICE.RESERVE", "large", "FILTER", "bloom", "bytes", "3MiB")
        server.client.config_set("maxmemory", used(server) - MIB // 4)
        for key in "wft":
            assert server.command("SLUICE.MEXISTS", key, *(f"a{i}" for i in items)) == [1] * 3000
            assert server.command("SLUICE.MFORGET", key, *(f"a{i}" for i in items)) == [1] * 3000
            confirm = ("SLUICE.MCONFIRM", key, "TOKEN", "t", "ITEMS", *(f"t{i}" for i in items))
            assert server.command(*confirm) == [1] * 3000
            release = ("SLUICE.MRELEASE", key, "TOKEN", "u", "ITEMS", *(f"u{i}" for i in items))
            assert server.command(*release) == [1] * 3000
        for key, bytes_ in (("small", 70_000), ("large", 3 * MIB)):
            cursor, dumped = 0, 0
            while True:
                cursor, chunk = server.command("SLUICE.SCANDUMP", key, cursor)
                dumped += len(chunk)
                if cursor == 0:
                    break
            assert dumped > bytes_


@both
@pytest.mark.parametrize("policy", ["volatile-lru", "allkeys-lru"])
def test_a_full_server_that_evicts_makes_filters(name: str, policy: str) -> None:
    most = 20 * MIB
    with Server(name, f"maxmemory {most}", f"maxmemory-policy {policy}", module=MODULE) as server:
        pipe = server.client.pipeline(transaction=False)
        for i in range(400):
            pipe.set(f"s{i}", b"x" * 100_000, ex=3600)
        pipe.execute()
        assert int(server.info("stats")["evicted_keys"]) > 100
        assert server.command("SLUICE.RESERVE", "set", "EXPECT", "1M") == b"OK"
        assert server.command("SLUICE.INSERT", "made", "EXPECT", "500k", "ITEMS", "a", "a") == [1, 0]
        assert server.command("SLUICE.RESERVE", "window", "WINDOW", "10m", "RATE", "500/s") == b"OK"
        server.client.set("next", "x", ex=3600)
        assert used(server) < most + MIB
        # What is larger than all of maxmemory is refused before anything is evicted for it.
        keys = server.client.dbsize()
        for words in (("SLUICE.RESERVE", "k", "EXPECT", "100M"), ("SLUICE.INSERT", "k", "EXPECT", "100M", "ITEMS", 1)):
            with pytest.raises(redis.ResponseError, match="maxmemory"):
                server.command(*words)
        assert server.client.dbsize() >= keys - 1


@both
def test_an_audit_costs_nothing_on_a_full_server(name: str) -> None:
    """Whatever headroom is left below maxmemory: new items are 1 or refused, all that are claimed can be confirmed,
    and the primary, its replica and its append-only file remember the same."""
    items = [f"x{i}" for i in range(1500)]
    config = ("maxmemory-policy noeviction", "appendonly yes", "appendfsync no")
    with Server(name, *config, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        full = 0
        for making in (("WINDOW", "10m", "AUDIT", "1/1"), ("AUDIT", "1/1")):
            for headroom in range(0, 400_000, count(40_000, 5_000)):
                primary.client.config_set("maxmemory", 0)
                primary.client.flushall()
                for key in ("added", "claimed"):
                    primary.command("SLUICE.RESERVE", key, *making)
                claims = primary.command("SLUICE.MCLAIM", "claimed", "TTL", 600_000, "TOKEN", "t", "ITEMS", *items)
                assert claims == [1] * len(items)
                primary.client.config_set("maxmemory", used(primary) + headroom)
                (answers,) = run(primary, [("SLUICE.MADD", "added", *items)])
                confirmed = primary.command("SLUICE.MCONFIRM", "claimed", "TOKEN", "t", "ITEMS", *items)
                primary.client.config_set("maxmemory", 0)
                # The command itself may be refused.
                answers = answers if isinstance(answers, list) else [answers] * len(items)
                assert [answer for answer in answers if answer != 1 and not is_error(answer)] == []
                assert primary.command("SLUICE.INFO", "added", "items") == answers.count(1), headroom
                assert confirmed == [1] * len(items), headroom
                full += answers.count(1) < len(items)
                replica.wait_for_sync(primary)
                assert state(replica) == state(primary), headroom
                before = state(primary)
                primary.client.execute_command("DEBUG", "LOADAOF")
                assert state(primary) == before, headroom
        assert full > 0


@both
def test_a_chunk_is_loaded_or_refused(name: str) -> None:
    """Whatever headroom is left below maxmemory: the replica has what the primary has. A chunk that was refused can be
    sent again; if it was the last one, the key is gone, and all are."""
    with Server(name, "maxmemory-policy noeviction", module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        primary.command("SLUICE.RESERVE", "from", "FILTER", "bloom", "bytes", "2MiB")
        chunks, cursor = [], 0
        while True:
            cursor, chunk = primary.command("SLUICE.SCANDUMP", "from", cursor)
            if cursor == 0:
                break
            chunks.append((cursor, chunk))
        assert len(chunks) > 2
        refused = 0
        for headroom in range(0, 6 * MIB, count(MIB, 128 << 10)):
            primary.client.delete("to")
            for cursor, chunk in chunks:
                primary.client.config_set("maxmemory", used(primary) + headroom)
                (reply,) = run(primary, [("SLUICE.LOADCHUNK", "to", cursor, chunk)])
                primary.client.config_set("maxmemory", 0)
                replica.wait_for_sync(primary)
                assert state(replica) == state(primary), (headroom, cursor)
                if is_error(reply):
                    refused += 1
                    again = [(cursor, chunk)] if primary.client.exists("to") or cursor == chunks[0][0] else chunks
                    for each in again:
                        assert primary.command("SLUICE.LOADCHUNK", "to", *each) == b"OK"
            assert primary.command("SLUICE.INFO", "to", "bytes") == primary.command("SLUICE.INFO", "from", "bytes")
        assert refused > 0


@both
def test_limit_per_key(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.client.config_set("sluice.key-memory-limit", "64kb")
        with pytest.raises(redis.ResponseError, match="key-memory-limit"):
            server.command("SLUICE.RESERVE", "large", "EXPECT", "1M")
        server.command("SLUICE.RESERVE", "grows")
        refused = 0
        for first in range(0, 100_000, 500):
            (answers,) = run(server, [("SLUICE.MADD", "grows", *range(first, first + 500))])
            refused += any(map(is_error, answers))
        assert refused > 10
        assert usage(server, "grows") < 256 << 10
        # Also within one command.
        answers = server.command("SLUICE.INSERT", "batch", "WINDOW", "10m", "SEED", 1, "ITEMS", *range(200_000))
        judged = answers.index(next(answer for answer in answers if is_error(answer)))
        assert answers[:judged] == [1] * judged and judged > 1000
        assert all("key-memory-limit" in str(answer) for answer in answers[judged:])
        assert usage(server, "batch") < 256 << 10


@both
def test_info_counts_audits(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.RESERVE", "plain", "SEED", 1)
        server.command("SLUICE.RESERVE", "audited", "SEED", 1, "AUDIT", "1/1")
        taken = int(server.info("sluice")["sluice_memory_bytes"])
        before = usage(server, "plain", "audited")
        for key in ("plain", "audited"):
            server.command("SLUICE.MADD", key, *range(10_000))
        assert usage(server, "audited") > usage(server, "plain") + 300_000
        server.command("SLUICE.ADD", "plain", "x")  # commands keep no more than 64 KiB for the next one
        grown = usage(server, "plain", "audited") - before
        counted = int(server.info("sluice")["sluice_memory_bytes"]) - taken
        assert abs(counted - grown) < 96 << 10
        server.client.flushall()
        wait_until(
            lambda: int(server.info("sluice")["sluice_memory_bytes"]) < taken + (96 << 10),
            "FLUSHALL gives the memory of audits back",
        )


@both
def test_many_small_keys(name: str) -> None:
    """Keys of 10 items in windows of 10 minutes: at most 600 bytes of the server's memory for each."""
    keys = count(50_000, 1_000_000)
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.INSERT", "first", "WINDOW", "10m", "ITEMS", 1)
        before = settled(server)
        items = list(range(10))
        for first in range(0, keys, 1000):
            answers = run(
                server,
                (("SLUICE.INSERT", f"user:{i}", "WINDOW", "10m", "ITEMS", *items) for i in range(first, first + 1000)),
            )
            assert answers == [[1] * 10] * 1000
        each = (settled(server) - before) / keys
        print(f"{name}: {each:.0f} bytes per key; MEMORY USAGE says {usage(server, 'user:7')}")
        assert each <= 600
