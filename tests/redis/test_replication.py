"""What happened on a primary happens once on its replicas: by MULTI, by scripts, by parts of an MADD, with other
settings, and over chains of replicas. Effects are accepted from nobody else."""

from __future__ import annotations

import random
import time

import pytest
import redis

from server import MODULE, Server, both, needs_module, wait_until
from workload import Words, assert_quiet, count, run, run_script, state

pytestmark = needs_module


def synced(primary: Server, *replicas: Server) -> None:
    for replica in replicas:
        replica.wait_for_sync(primary)
        assert state(replica) == state(primary)


def stats(server: Server) -> dict[str, dict[str, int]]:
    return {name.lower(): values for name, values in server.info("commandstats").items()}


@both
def test_clients_cannot_send_effects(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.RESERVE", "k")
        before = state(server)
        for words in (
            ("SLUICE.EFFECT", "k", b"\2"),
            ("sluice.effect", "k", b""),
            ("EVAL", "return redis.call('SLUICE.EFFECT', 'k', 'x')", 0),
        ):
            with pytest.raises(redis.ResponseError, match="not for clients"):
                server.command(*words)
        (answer,) = run(server, [("SLUICE.EFFECT", "k", b"\2")], transaction=True)
        assert "not for clients" in str(answer)
        assert state(server) == before


@both
def test_a_key_that_is_made_anew_takes_the_place_of_an_expired_one(name: str) -> None:
    """A server that loads a file drops expired keys and tells no replica, for which they have only expired."""
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        primary.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        primary.command("SLUICE.RESERVE", "k", "WINDOW", 200)
        primary.command("SLUICE.ADD", "k", "old")
        expires_ms = int(time.time() * 1000) + 500
        primary.command("PEXPIREAT", "k", expires_ms)
        replica.wait_for_sync(primary)
        wait_until(lambda: time.time() * 1000 > expires_ms + 1, "the key has expired")
        primary.command("DEBUG", "RELOAD")
        primary.command("SLUICE.RESERVE", "k", "WINDOW", 200)
        primary.command("SLUICE.ADD", "k", "new")
        synced(primary, replica)
        assert replica.command("SLUICE.MEXISTS", "k", "old", "new") == [0, 1]


@both
def test_transactions_and_scripts_replicate_once(name: str) -> None:
    commands = [
        ("SLUICE.RESERVE", "w", "WINDOW", "1m"),
        ("SLUICE.MADD", "w", "a", "b", "a"),
        ("SLUICE.INSERT", "stable", "FILTER", "stable", "EXPECT", 100, "ITEMS", *range(200)),
        ("SLUICE.CLAIM", "w", "c", "TTL", 60000, "TOKEN", "t"),
        ("SLUICE.CONFIRM", "w", "c", "TOKEN", "t"),
        ("SLUICE.ADD", "missing", "x"),
    ]
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        for _ in range(3):
            run(primary, commands, transaction=True)
            synced(primary, replica)
            run_script(primary, commands)
            synced(primary, replica)
        # Nothing but effects, and as many as there were calls.
        there, calls = stats(replica), stats(primary)
        assert "cmdstat_sluice.madd" not in there
        writes = sum(calls[f"cmdstat_sluice.{word}"]["calls"] - calls[f"cmdstat_sluice.{word}"]["failed_calls"]
                     for word in ("reserve", "madd", "claim", "confirm"))  # fmt: skip
        # INSERT makes the key the first time, and adds each time.
        inserts = calls["cmdstat_sluice.insert"]["calls"] + 1
        assert there["cmdstat_sluice.effect"]["calls"] == writes + inserts
        assert_quiet(primary, replica)


@both
def test_a_chain_of_replicas(name: str) -> None:
    with (
        Server(name, module=MODULE) as primary,
        Server(name, "sluice.claims-limit 1", module=MODULE) as middle,
        Server(name, "appendonly yes", "sluice.key-memory-limit 1", module=MODULE) as last,
    ):
        # One after the other: a replica that is not in sync yet refuses its own, which tries again much later.
        middle.replicaof(primary)
        middle.wait_for_sync(primary)
        last.replicaof(middle)
        last.wait_for_sync(middle)
        primary.command("SLUICE.INSERT", "w", "WINDOW", "1m", "AUDIT", "1/4", "ITEMS", *range(3000))
        primary.command("SLUICE.MCLAIM", "w", "TTL", 60000, "TOKEN", "t", "ITEMS", *range(2900, 3300))
        middle.wait_for_sync(primary)
        wait_until(lambda: state(last) == state(primary), "the last replica has it all")
        assert state(middle) == state(primary)
        # What it has written down is the same.
        last.restart(kill=True)
        wait_until(lambda: state(last) == state(primary), "the last replica has it all again")
        assert_quiet(primary, middle, last)


@both
def test_a_part_of_a_batch_is_what_happened(name: str) -> None:
    """Claims beyond the limit are refused; the replica has those before."""
    with Server(name, "sluice.claims-limit 5", module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        primary.command("SLUICE.RESERVE", "k")
        (answers,) = run(primary, [("SLUICE.MCLAIM", "k", "TTL", 60000, "TOKEN", "t", "ITEMS", *range(8))])
        assert answers[:5] == [1] * 5
        assert all("sluice.claims-limit" in str(answer) for answer in answers[5:])
        synced(primary, replica)
        assert replica.command("SLUICE.INFO", "k", "pending") == 5
        # Leases that have ended make room, and the replica drops the same.
        primary.command("DEL", "k")
        primary.command("SLUICE.RESERVE", "k")
        primary.command("SLUICE.MCLAIM", "k", "TTL", 1, "TOKEN", "t", "ITEMS", *range(5))
        time.sleep(0.01)
        assert primary.command("SLUICE.MCLAIM", "k", "TTL", 60000, "TOKEN", "u", "ITEMS", *range(5, 10)) == [1] * 5
        synced(primary, replica)
        assert_quiet(primary, replica)


@both
def test_failover_keeps_claims_and_items(name: str) -> None:
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        primary.command("SLUICE.INSERT", "w", "WINDOW", "10m", "ITEMS", "a", "b")
        primary.command("SLUICE.CLAIM", "w", "c", "TTL", 600000, "TOKEN", "t")
        before = state(primary)
        wait_until(lambda: primary.info("replication")["slave0"]["state"] == "online", "the replica is online")
        primary.command("FAILOVER", "TO", "127.0.0.1", replica.port)
        wait_until(lambda: replica.info("replication")["role"] == "master", "the replica takes over")
        wait_until(lambda: primary.info("replication")["role"] == "slave", "the primary follows")
        assert state(replica) == before
        assert replica.command("SLUICE.MADD", "w", "a", "b", "c", "d") == [0, 0, 2, 1]
        assert replica.command("SLUICE.CONFIRM", "w", "c", "TOKEN", "t") == 1
        synced(replica, primary)
        assert_quiet(primary, replica)


@both
def test_time_of_a_key_never_goes_back(name: str) -> None:
    """A primary whose clock is behind the one before does not reopen the window."""
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.INSERT", "w", "WINDOW", "10m", "ITEMS", "a")
        before = server.command("SLUICE.INFO", "w", "last_write_ms")
        server.command("SLUICE.ADD", "w", "b", "AT", before - 1000)
        assert server.command("SLUICE.INFO", "w", "last_write_ms") >= before
        assert server.command("SLUICE.MEXISTS", "w", "a", "b") == [1, 1]


@both
def test_merge_makes_a_key_that_expires(name: str) -> None:
    """A window that MERGE has made from another lives as long as that one, and no longer."""
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        primary.command("SLUICE.INSERT", "w", "WINDOW", "10m", "ITEMS", "a")
        primary.command("SLUICE.MERGE", "new", "w")
        assert 0 < primary.client.pttl("new") <= 1.1 * 600_000
        synced(primary, replica)


@both
def test_a_window_that_is_full_stays_equal(name: str) -> None:
    """The items for which MEMORY has no room make the window forget its oldest, at the same moment everywhere."""
    rng = random.Random(5)
    making = ("WINDOW", "1m", "EXPECT", 200, "MEMORY", "16KiB")
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        primary.command("SLUICE.RESERVE", "k", *making)
        for step in range(count(250, 2000)):
            items = [rng.randrange(3000) for _ in range(rng.choice((1, 5, 60, 300)))]
            now = time.time_ns() // 1_000_000
            at = ("AT", now - rng.choice((0, 500, 30_000, 59_000, -900, -50_000))) if rng.random() < 0.3 else ()
            command: Words = ("SLUICE.INSERT", "k", *making, *at, "ITEMS", *items)
            match rng.randrange(6):
                case 0:
                    command = ("SLUICE.MCLAIM", "k", "TTL", rng.choice((1, 60000)), "TOKEN", "t", "ITEMS", *items)
                case 1:
                    command = ("SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS", *items)
                case 2:
                    command = ("SLUICE.MFORGET", "k", *items)
            run(primary, [command])
            if step % 40 == 39:
                primary.command("DEBUG", "RELOAD")
            if step % 5 == 4:
                synced(primary, replica)
        assert int(primary.command("SLUICE.INFO", "k", "forgotten")) > 1000
        assert_quiet(primary, replica)
