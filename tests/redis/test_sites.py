"""Slices on real servers: a C++ program (sites*_test.cpp) asks and judges, and what it wants to happen to the servers
is done here. Slices of bits need no module; filter slices do.

SLUICE_SITES_TESTS is the program's path, if it is not in build/release."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from server import HOST, MODULE, TREE, Cluster, Server, both, cluster, needs_module, wait_until
from workload import count

PROGRAM = os.environ.get("SLUICE_SITES_TESTS", str(TREE / "build/release/tests/redis/sluice_sites_tests"))
PASSWORD = "correct horse"

pytestmark = pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason=f"there is no program {PROGRAM}")


class Stage:
    """Servers, and what tests can ask for: each public method is a request, with words as its arguments."""

    def __init__(self, servers: list[Server], of: Cluster | None = None) -> None:
        self._servers = servers
        self._cluster = of
        self._threads = ThreadPoolExecutor()
        self._moving: Future[None] | None = None
        self._killing: Future[None] | None = None
        self._killed: Server | None = None

    @property
    def url(self) -> str:
        scheme = "redis+cluster" if self._cluster else "redis"
        return f"{scheme}://" + ",".join(f"{HOST}:{server.port}" for server in self._servers)

    def run(self, tests: str, **environment: str) -> None:
        """Runs tests of the program, and fails with what it says if it fails."""
        said: list[str] = []
        with subprocess.Popen(
            [PROGRAM, f"--gtest_filter={tests}", "--gtest_brief=1"],
            env=os.environ | {"SLUICE_SITES": self.url} | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as program:
            assert program.stdin and program.stdout
            try:
                for line in program.stdout:
                    if line.startswith("@ "):
                        print(self._do(line.split()[1:]), file=program.stdin, flush=True)
                    said.append(line)
            finally:
                program.kill()
        text = "".join(said)
        assert program.returncode == 0 and "[  PASSED  ]" in text and "[  PASSED  ] 0 " not in text, text

    def _do(self, words: list[str]) -> str:
        action: Callable[..., str | None] = getattr(self, words[0].rstrip("?"))
        return action(*words[1:]) or "done"

    def _at(self, endpoint: str) -> Server:
        return next(server for server in self._servers if endpoint == f"{HOST}:{server.port}")

    def flush(self, endpoint: str) -> None:
        self._at(endpoint).command("FLUSHALL")

    def restart(self, endpoint: str) -> None:
        self._at(endpoint).restart(kill=True)

    def stop(self, endpoint: str) -> None:
        os.kill(self._at(endpoint).pid, signal.SIGSTOP)

    def resume(self, endpoint: str) -> None:
        os.kill(self._at(endpoint).pid, signal.SIGCONT)

    def disconnect(self) -> None:
        for server in self._servers:
            server.command("CLIENT", "KILL", "TYPE", "normal")

    def kill(self, endpoint: str) -> None:
        """Soon, while the test goes on. Its replica has all, and does not take over yet."""
        assert self._cluster
        self._killed = server = self._at(endpoint)
        for replica in self._cluster.replicas_of(server):
            replica.wait_for_sync(server)
            replica.command("CONFIG", "SET", "cluster-replica-no-failover", "yes")
        # A Valkey that is killed before does not read its file again: valkey-io/valkey#774.
        wait_until(lambda: _shards_agree(server), "the killed server's file has one id per shard")
        self._killing = self._threads.submit(server.kill)

    def killed(self) -> None:
        assert self._killing
        self._killing.result()

    def down(self) -> None:
        """All others know that slots have no server."""
        alive = [server for server in self._servers if server.alive]
        wait_until(
            lambda: all("cluster_state:fail" in server.cli("cluster", "info") for server in alive),
            "the cluster is down",
        )

    def failover(self) -> None:
        """The replica of the killed server takes over."""
        assert self._cluster
        for server in self._servers:
            if server.alive:
                server.command("CONFIG", "SET", "cluster-replica-no-failover", "no")
        self._cluster.wait_until_ok()

    def revive(self) -> None:
        """The killed server comes back, as a replica of the one that took over."""
        assert self._cluster and self._killed
        self._killed.start()
        self._cluster.wait_until_ok()

    def move(self, *slots: str) -> None:
        """Moves each slot several times, while the test goes on."""
        self._moving = self._threads.submit(self._move_all, list(map(int, slots)))

    def moved(self) -> str:
        assert self._moving
        if not self._moving.done():
            return "not yet"
        self._moving.result()
        return "all"

    def _move_all(self, slots: list[int]) -> None:
        primaries = self._primaries()
        ids = {server: server.cli("cluster", "myid") for server in primaries}
        for turn in range(count(2, 20)):
            for slot in slots:
                at = next(server for server in primaries if _has_slot(server, ids[server], slot))
                to = primaries[(primaries.index(at) + 1 + turn % 2) % len(primaries)]
                to.cli("cluster", "setslot", slot, "importing", ids[at])
                at.cli("cluster", "setslot", slot, "migrating", ids[to])
                while keys := at.cli("cluster", "getkeysinslot", slot, 100).split():
                    for key in keys:
                        at.cli("migrate", HOST, to.port, key, 0, 60000)
                for server in (to, at, *primaries):
                    server.cli("cluster", "setslot", slot, "node", ids[to])

    def _primaries(self) -> list[Server]:
        return [server for server in self._servers if server.info("replication")["role"] == "master"]


def _shards_agree(server: Server) -> bool:
    """Whether each replica in its file of the cluster has the shard of its primary."""
    lines = [line.split() for line in (server.folder / "nodes.conf").read_text().splitlines()]
    nodes = [fields for fields in lines if len(fields) >= 8 and fields[0] != "vars"]
    shards = {fields[0]: fields[1].partition("shard-id=")[2] for fields in nodes}
    return all(fields[3] == "-" or shards[fields[0]] == shards.get(fields[3]) for fields in nodes)


def _has_slot(server: Server, own_id: str, slot: int) -> bool:
    for fields in map(str.split, server.cli("cluster", "nodes").splitlines()):
        for low, _, high in (slots.partition("-") for slots in fields[8:]):
            if fields[0] == own_id and not low.startswith("[") and int(low) <= slot <= int(high or low):
                return True
    return False


@both
def test_one_server(name: str) -> None:
    with Server(name) as server:
        Stage([server]).run("Sites.*-Sites.AServerThatWasFlushed*")


@both
def test_a_list_of_servers(name: str) -> None:
    """That know nothing of each other."""
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(name)) for _ in range(3)]
        Stage(servers).run("Sites.*:PlainSites.*")


@both
def test_a_cluster(name: str) -> None:
    with cluster(3, 3, name) as made:
        Stage(made.nodes, made).run("Sites.*")


@both
def test_slots_that_move(name: str) -> None:
    with cluster(3, 0, name) as made:
        Stage(made.nodes, made).run("ClusterSites.*SlotsMove")
        # And the client was told so, in both ways.
        errors = [node.info("errorstats") for node in made.nodes]
        for error in ("errorstat_ASK", "errorstat_MOVED"):
            assert any(error in said for said in errors), errors


@both
def test_a_primary_that_is_killed(name: str) -> None:
    # Others serve their slots meanwhile.
    with cluster(3, 3, name, "cluster-require-full-coverage no") as made:
        Stage(made.nodes, made).run("ClusterSites.AKilledPrimary*")


@both
def test_a_cluster_that_is_down(name: str) -> None:
    with cluster(3, 3, name) as made:
        Stage(made.nodes, made).run("WholeClusterSites.*")


@both
def test_a_password(name: str) -> None:
    with Server(name) as server:
        server.command("ACL", "SETUSER", "app", "on", f">{PASSWORD}", "~*", "+@all")
        server.command("CONFIG", "SET", "requirepass", PASSWORD)
        Stage([server]).run("LockedSites.*", SLUICE_SITES_PASSWORD=PASSWORD)


# Windows over slices of cells.


@both
def test_windows_on_one_server(name: str) -> None:
    with Server(name) as server:
        Stage([server]).run("WindowSites.*-WindowSites.AServerThatWasFlushed*")


@both
def test_windows_on_a_list_of_servers(name: str) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(name)) for _ in range(3)]
        Stage(servers).run("WindowSites.*")


@both
def test_windows_on_a_cluster(name: str) -> None:
    with cluster(3, 3, name) as made:
        Stage(made.nodes, made).run("WindowSites.*")


@both
def test_windows_that_move(name: str) -> None:
    with cluster(3, 0, name) as made:
        Stage(made.nodes, made).run("ClusterWindowSites.*SlotsMove")
        errors = [node.info("errorstats") for node in made.nodes]
        for error in ("errorstat_ASK", "errorstat_MOVED"):
            assert any(error in said for said in errors), errors


@both
def test_windows_on_a_primary_that_is_killed(name: str) -> None:
    with cluster(3, 3, name, "cluster-require-full-coverage no") as made:
        Stage(made.nodes, made).run("ClusterWindowSites.AKilledPrimary*")


# Filter slices.


@both
@needs_module
def test_filters_on_one_server(name: str) -> None:
    with Server(name, module=MODULE) as server:
        Stage([server]).run("FilterSites.*")


@both
@needs_module
def test_filters_on_a_list_of_servers(name: str) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(name, module=MODULE)) for _ in range(3)]
        Stage(servers).run("FilterSites.*:PlainFilterSites.*")


@both
@needs_module
def test_filters_on_a_cluster(name: str) -> None:
    with cluster(3, 3, name, module=MODULE) as made:
        Stage(made.nodes, made).run("FilterSites.*")


@both
@needs_module
def test_filters_that_move(name: str) -> None:
    with cluster(3, 0, name, module=MODULE) as made:
        Stage(made.nodes, made).run("ClusterFilterSites.*SlotsMove")
        errors = [node.info("errorstats") for node in made.nodes]
        for error in ("errorstat_ASK", "errorstat_MOVED"):
            assert any(error in said for said in errors), errors


@both
@needs_module
def test_filters_on_a_primary_that_is_killed(name: str) -> None:
    with cluster(3, 3, name, "cluster-require-full-coverage no", module=MODULE) as made:
        Stage(made.nodes, made).run("ClusterFilterSites.AKilledPrimary*")


@both
def test_filters_without_the_module(name: str) -> None:
    with Server(name) as server:
        Stage([server]).run("BareFilterSites.*")
