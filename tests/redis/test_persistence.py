"""Every state that commands lead to is the same on replicas, and after RDB files, append-only files, DUMP and
RESTORE, COPY, full and partial resyncs; and what was acknowledged survives a kill."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable

import pytest

from server import MODULE, Server, both, needs_module, wait_until
from workload import (
    Workload,
    Writers,
    assert_quiet,
    count,
    differences,
    is_error,
    run,
    run_script,
    state,
)

pytestmark = needs_module

# A replica obeys the effects of its primary, whatever these say.
OTHER = (
    "sluice.default-fpr 0.1",
    "sluice.key-memory-limit 1",
    "sluice.claims-limit 1",
    "maxmemory 4mb",
)


class Matrix:
    """A primary with an append-only file, a replica, and one with other settings."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.primary = Server(name, "appendonly yes", "appendfsync always", module=MODULE)
        self.replica = Server(name, module=MODULE)
        self.other = Server(name, *OTHER, module=MODULE)
        self.servers = (self.primary, self.replica, self.other)

    def __enter__(self) -> Matrix:
        for server in self.servers:
            server.__enter__()
        for replica in self.servers[1:]:
            replica.replicaof(self.primary)
        return self

    def __exit__(self, *error: object) -> None:
        # Replicas first: a primary that ends waits for its replicas.
        for server in reversed(self.servers):
            server.__exit__(*error)  # type: ignore[arg-type]

    def check(self) -> None:
        for replica in self.servers[1:]:
            replica.wait_for_sync(self.primary)
            before = state(self.primary)
            found = state(replica, before)
            assert differences(before, found, state(self.primary)) == {}

    def loaded_elsewhere(self, *config: str, files: str) -> None:
        """Another server that loads copies of the files holds the same."""
        before = state(self.primary)
        with Server(self.name, *config, module=MODULE) as copy:
            copy.stop()
            shutil.rmtree(copy.folder / files, ignore_errors=True)
            source = self.primary.folder / files
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy.folder / files)
            copy.start()
            found = state(copy, before)
            assert differences(before, found, state(self.primary)) == {}
            assert_quiet(copy)

    # What may happen at any moment.

    def reload(self) -> None:
        before = state(self.primary)
        self.primary.command("DEBUG", "RELOAD")
        found = state(self.primary, before)
        assert differences(before, found, before | {k: v for k, v in found.items() if k in before}) == {}
        assert {k: v for k, v in before.items() if k in found} == found

    def rdb(self) -> None:
        self.primary.command("SAVE")
        self.loaded_elsewhere(files="dump.rdb")

    def aof(self) -> None:
        self.loaded_elsewhere("appendonly yes", files="appendonlydir")

    def rewrite(self) -> None:
        self.primary.client.bgrewriteaof()

        def done() -> bool:
            info = self.primary.info("persistence")
            return not info["aof_rewrite_in_progress"] and not info.get("aof_rewrite_scheduled")

        wait_until(done, "the append-only file is rewritten")
        assert self.primary.info("persistence")["aof_last_bgrewrite_status"] == "ok"
        self.aof()

    def restart(self) -> None:
        before = state(self.primary)
        self.primary.restart(kill=True)
        found = state(self.primary)
        assert {k: before[k] for k in found} == found
        now = time.time() * 1000
        assert all(0 < before[k][1] <= now for k in before.keys() - found.keys())

    def restore(self) -> None:
        client = self.primary.client
        # Whose expiry it is, the module finds out at a key's next write, and a payload has none: so each is
        # written to.
        run(self.primary, [("SLUICE.RELEASE", key, "x", "TOKEN", "t") for key in state(self.primary)])
        for key, (digest, expiry) in state(self.primary).items():
            dumped = client.dump(key)
            if dumped is None:
                continue
            client.restore("restored", max(expiry, 0), dumped, replace=True, absttl=True)
            (again,) = state(self.primary, [b"restored"]).values() or [(digest, expiry)]
            assert again == (digest, expiry), key
        client.delete("restored")

    def copy(self) -> None:
        client = self.primary.client
        for key, old in state(self.primary).items():
            if not client.copy(key, "copied", replace=True):
                continue
            (again,) = state(self.primary, [b"copied"]).values() or [old]
            assert again == old, key
        self.check()
        client.delete("copied")

    def partial(self) -> None:
        before = self.primary.info("stats")["sync_full"]
        self.primary.command("CLIENT", "KILL", "TYPE", "replica")
        self.check()
        assert self.primary.info("stats")["sync_full"] == before

    def full(self) -> None:
        before = self.primary.info("stats")["sync_full"]
        # Another history: nothing of the backlog fits.
        self.replica.replicaof(None)
        self.replica.client.set("astray", 1)
        self.replica.replicaof(self.primary)
        self.check()
        assert self.primary.info("stats")["sync_full"] > before

    def moments(self) -> list[Callable[[], None]]:
        return [self.reload, self.rdb, self.aof, self.rewrite, self.restart, self.restore, self.copy,
                self.partial, self.full]  # fmt: skip


@both
def test_matrix(name: str) -> None:
    work = Workload(seed=1)
    rng = random.Random(2)
    steps = count(300, 5000)
    with Matrix(name) as matrix:
        primary = matrix.primary
        assert [str(answer) for answer in run(primary, work.start()) if is_error(answer)] == []
        matrix.check()
        done, moments = 0, list[Callable[[], None]]()
        due = 0
        while done < steps:
            batch = work.batch()
            done += len(batch)
            match rng.randrange(4):
                case 0:
                    run(primary, batch, transaction=True)
                case 1:
                    run_script(primary, batch)
                case _:
                    run(primary, batch)
            matrix.check()
            if done < due:
                continue
            # Each of them in turn, in a random order.
            due = done + steps // count(10, 200)
            if not moments:
                moments = matrix.moments()
                rng.shuffle(moments)
            moment = moments.pop()
            try:
                moment()
                matrix.check()
            except AssertionError as error:
                error.add_note(f"after {done} commands, {moment.__name__}; the last batch: {batch}")
                raise
        assert_quiet(*matrix.servers)


@both
@pytest.mark.parametrize("making", [(), ("WINDOW", "10m"), ("WINDOW", "10m", "RATE", "1k/s")])
def test_a_kill_loses_nothing_acknowledged(name: str, making: tuple[str, ...]) -> None:
    with Server(name, "appendonly yes", "appendfsync always", module=MODULE) as server:
        server.command("SLUICE.RESERVE", "k", *making)
        writers = Writers()
        for cycle in range(count(2, 20)):
            writers.start(server)
            time.sleep(0.3)
            # Not kill(), which takes the clients' connections away while they are used.
            os.killpg(server.pid, signal.SIGKILL)
            writers.join()
            server.restart(kill=True)
            assert len(writers.items) > 100 * cycle
            writers.check(server)
        # Redis warns of a command that the kill cut; the module of nothing.
        assert "sluice:" not in server.log()
