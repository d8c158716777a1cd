"""While nobody listens, commands are not told: no effect is made, changes are counted all the same. From the moment
that a replica or an append-only file begins to listen, everything is told, and nothing was missed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from server import MODULE, Server, both, cluster, needs_module, wait_until
from workload import Workload, assert_quiet, count, differences, is_error, run, run_script, state

pytestmark = needs_module


def told(server: Server) -> int:
    return int(server.info("sluice")["sluice_effects_told"])


def wait_for_silence(server: Server) -> None:
    """Returns when the module knows that nobody listens."""

    def silent() -> bool:
        before = told(server)
        server.command("SLUICE.ADD", "probe", time.monotonic_ns())
        return told(server) == before

    if not server.client.exists("probe"):
        server.command("SLUICE.RESERVE", "probe")
    wait_until(silent, f"{server.name} knows that nobody listens")


def listens(server: Server) -> bool:
    before = told(server)
    server.command("SLUICE.ADD", "probe", time.monotonic_ns())
    return told(server) > before


def keeps_listening(server: Server) -> bool:
    """For longer than the module takes to read again whether somebody listens."""
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        if not listens(server):
            return False
    return True


def same(primary: Server, replica: Server) -> None:
    replica.wait_for_sync(primary)
    before = state(primary)
    assert differences(before, state(replica, before), state(primary)) == {}


@contextmanager
def adding(server: Server) -> Iterator[None]:
    """Batches, transactions and scripts of other clients, all the time."""
    done = threading.Event()
    problems: list[BaseException] = []

    def work(at: int) -> None:
        client = server.connect()
        try:
            while not done.is_set():
                items = range(at, at + 20)
                pipe = client.pipeline(transaction=at % 40 == 0)
                pipe.execute_command("SLUICE.MADD", "w", *items)  # type: ignore[no-untyped-call]
                pipe.execute_command("SLUICE.ADD", "t", at)  # type: ignore[no-untyped-call]
                pipe.execute_command("SLUICE.CLAIM", "t", f"c{at}", "TTL", 60000, "TOKEN", "t")  # type: ignore[no-untyped-call]
                # Or more would be pending than may be.
                pipe.execute_command("SLUICE.CONFIRM", "t", f"c{at}", "TOKEN", "t")  # type: ignore[no-untyped-call]
                pipe.execute_command("EVAL", "return redis.call('SLUICE.ADD', 'w', ARGV[1])", 0, f"s{at}")  # type: ignore[no-untyped-call]
                pipe.execute()
                at += 20
        except BaseException as error:
            problems.append(error)

    server.command("SLUICE.RESERVE", "w", "WINDOW", "100k")
    server.command("SLUICE.RESERVE", "t", "WINDOW", "10m")
    threads = [threading.Thread(target=work, args=(at * 10_000_000,)) for at in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not problems, problems


def counted(server: Server, *words: str | int) -> int:
    before = int(server.info("persistence")["rdb_changes_since_last_save"])
    server.command(*words)
    return int(server.info("persistence")["rdb_changes_since_last_save"]) - before


@both
def test_changes_count_for_save_points(name: str) -> None:
    commands: tuple[tuple[str | int, ...], ...] = (
        ("SLUICE.RESERVE", "k", "WINDOW", "1m"),
        ("SLUICE.ADD", "k", "a"),
        ("SLUICE.ADD", "k", "a"),
        ("SLUICE.MADD", "k", "b", "c"),
        ("SLUICE.INSERT", "n", "ITEMS", "b", "c"),
        ("SLUICE.FORGET", "n", "b"),
        ("SLUICE.CLAIM", "n", "d", "TTL", 60000, "TOKEN", "t"),
        ("SLUICE.CONFIRM", "n", "d", "TOKEN", "t"),
        ("SLUICE.MERGE", "m", "k"),
        ("EVAL", "redis.call('SLUICE.ADD', 'k', 'x') return redis.call('SLUICE.ADD', 'k', 'y')", 0),
    )
    with Server(name, module=MODULE) as silent, Server(name, "appendonly yes", module=MODULE) as file:
        wait_for_silence(silent)
        before = told(silent)
        for words in commands:
            changes = counted(silent, *words)
            assert changes == counted(file, *words), words
            assert changes >= 1, words
        assert told(silent) == before
        assert told(file) >= len(commands)
        assert silent.command("SLUICE.MEXISTS", "k", "a", "b", "c", "x", "y", "z") == [1, 1, 1, 1, 1, 0]


@both
def test_a_save_point_is_reached(name: str) -> None:
    with Server(name, "save 1 10", module=MODULE) as server:
        wait_for_silence(server)
        before = server.info("persistence")["rdb_last_save_time"]
        server.command("SLUICE.RESERVE", "k")
        pipe = server.client.pipeline(transaction=False)
        for item in range(20):
            pipe.execute_command("SLUICE.ADD", "k", item)  # type: ignore[no-untyped-call]
        pipe.execute()
        wait_until(lambda: server.info("persistence")["rdb_last_save_time"] > before, "the save point is reached")
        server.restart(kill=True)
        assert server.command("SLUICE.MEXISTS", "k", *range(20)) == [1] * 20


# A replica that copies keys from a socket, and from a file; it attaches, and loses its link, while items are added.
@both
@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_a_replica_that_attaches_misses_nothing(name: str, diskless: str) -> None:
    config = (f"repl-diskless-sync {diskless}",)
    with Server(name, *config, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        with adding(primary):
            wait_for_silence(primary)
            wait_until(lambda: primary.command("SLUICE.INFO", "w", "items") > 100, "items are added")
            replica.replicaof(primary)
            wait_until(lambda: replica.info("replication")["master_link_status"] == "up", "it is linked")
            for resumed in range(count(3, 20)):
                before = primary.info("stats")
                assert before["sync_partial_ok"] == resumed
                primary.command("CLIENT", "KILL", "TYPE", "replica")
                wait_until(lambda: primary.info("stats")["sync_partial_ok"] > resumed, "it has resumed")
                assert primary.info("stats")["sync_full"] == before["sync_full"]
        assert keeps_listening(primary)
        same(primary, replica)
        calls = {key.lower() for key in replica.info("commandstats")}
        assert "cmdstat_sluice.effect" in calls
        assert not {"cmdstat_sluice.add", "cmdstat_sluice.madd", "cmdstat_sluice.claim"} & calls
        assert_quiet(primary, replica)


@both
def test_silence_again_when_the_backlog_is_gone(name: str) -> None:
    with Server(name, "repl-backlog-ttl 1", module=MODULE) as primary, Server(name, module=MODULE) as replica:
        with adding(primary):
            for _ in range(count(2, 10)):
                wait_for_silence(primary)
                replica.replicaof(primary)
                wait_until(lambda: replica.info("replication")["master_link_status"] == "up", "it is linked")
                assert listens(primary)
                # With a backlog it may come back, and is told for so long.
                replica.replicaof(None)
                assert listens(primary)
        replica.replicaof(primary)
        same(primary, replica)
        assert_quiet(primary, replica)


@both
def test_an_append_only_file_that_is_switched_on(name: str) -> None:
    with Server(name, "appendfsync always", module=MODULE) as server:
        with adding(server):
            wait_for_silence(server)
            server.client.config_set("appendonly", "yes")
            assert listens(server)

        def written() -> bool:
            info = server.info("persistence")
            return not info["aof_rewrite_in_progress"] and not info.get("aof_rewrite_scheduled")

        wait_until(written, "the append-only file is written")
        assert keeps_listening(server)
        before = state(server)
        server.client.config_rewrite()
        server.restart(kill=True)
        assert differences(before, state(server, before), state(server)) == {}
        assert_quiet(server)
        server.client.config_set("appendonly", "no")
        wait_for_silence(server)
        server.client.config_set("appendonly", "yes")
        assert listens(server)
        # Before it is written, Valkey does not end.
        wait_until(written, "the append-only file is written again")


@both
def test_primaries_that_change_their_roles(name: str) -> None:
    with Server(name, module=MODULE) as first, Server(name, module=MODULE) as second:
        with adding(first):
            wait_for_silence(first)
            wait_for_silence(second)
            second.replicaof(first)
            wait_until(lambda: second.info("replication")["master_link_status"] == "up", "it is linked")
        same(first, second)
        # It has a backlog of what it was told, from which the other one goes on.
        second.replicaof(None)
        assert listens(second)
        second.command("SLUICE.MADD", "w", *(f"n{i}" for i in range(100)))
        first.replicaof(second)
        same(second, first)
        second.command("SLUICE.MADD", "w", *(f"o{i}" for i in range(100)))
        same(second, first)
        assert_quiet(first, second)


@both
def test_every_command_from_silence_on(name: str) -> None:
    """Of all commands, half are not told, and a replica that comes then has all the same."""
    work = Workload(seed=3)
    with Server(name, module=MODULE) as primary, Server(name, module=MODULE) as replica:
        wait_for_silence(primary)
        before = told(primary)
        assert [str(answer) for answer in run(primary, work.start()) if is_error(answer)] == []
        for half in range(2):
            done = 0
            while done < count(150, 2000):
                batch = work.batch()
                if done % 3 == 0:
                    run_script(primary, batch)
                else:
                    run(primary, batch, transaction=done % 3 == 1)
                done += len(batch)
                if half == 1 and done % 5 == 0:
                    same(primary, replica)
            if half == 0:
                assert told(primary) == before
                replica.replicaof(primary)
            same(primary, replica)
        assert told(primary) > before
        assert_quiet(primary, replica)


@both
def test_a_cluster_always_tells(name: str) -> None:
    """Slots may move to servers that count as no replicas."""
    with cluster(3, 0, name, module=MODULE) as made:
        node = made.primary_of("probe")
        node.command("SLUICE.RESERVE", "probe")
        assert keeps_listening(node)
