"""Servers for tests start, stop, die, come back, replicate and form clusters, and are gone afterwards."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from server import HOST, Server, ServerError, both, cluster, running, wait_until

BINARY = bytes(range(256))


def exists(pid: int) -> bool:
    """A process that is dead and not waited for exists too."""
    return Path(f"/proc/{pid}").exists()


@both
def test_answers_and_is_gone(name: str) -> None:
    with Server(name) as server:
        assert server.client.ping()
        assert server.cli("ping") == "PONG"
        server.client.set(BINARY, BINARY)
        assert server.client.get(BINARY) == BINARY
        assert server.cli("config", "get", "dir").splitlines() == ["dir", str(server.folder)]
        version = server.info("server")
        assert ("valkey_version" in version) == (name == "valkey")
        assert "Ready to accept connections" in server.log()
        pid, folder = server.pid, server.folder
        assert running() == [pid]
    assert running() == []
    assert not exists(pid)
    assert not folder.exists()


@both
def test_an_error_answer_of_the_cli_is_an_error(name: str) -> None:
    with Server(name) as server, pytest.raises(ServerError, match="unknown command"):
        server.cli("no-such-command")


@both
def test_survives_kill_with_append_only_file(name: str) -> None:
    with Server(name, "appendonly yes", "appendfsync always") as server:
        server.client.set("a", BINARY)
        before = server.pid
        server.restart(kill=True)
        assert server.pid != before
        assert not exists(before)
        assert server.client.get("a") == BINARY


@both
def test_without_persistence_a_kill_loses_all(name: str) -> None:
    with Server(name) as server:
        server.client.set("a", "b")
        server.restart(kill=True)
        assert server.client.get("a") is None


@both
def test_a_stop_saves_what_the_configuration_says(name: str) -> None:
    with Server(name, "save 3600 1") as server:
        server.client.set("a", "b")
        server.restart()
        assert server.client.get("a") == b"b"


@both
def test_replica_syncs(name: str) -> None:
    with Server(name) as primary, Server(name) as replica:
        primary.client.set("before", "1")
        replica.replicaof(primary)
        replica.wait_for_sync(primary)
        assert replica.client.get("before") == b"1"
        for i in range(1000):
            primary.client.set(f"key:{i}", i)
        replica.wait_for_sync(primary)
        assert replica.client.dbsize() == 1001
        with pytest.raises(redis.ReadOnlyError):
            replica.client.set("x", "y")
        # Also after a restart.
        replica.restart(kill=True)
        replica.wait_for_sync(primary)
        assert replica.client.dbsize() == 1001
        replica.replicaof(None)
        replica.client.set("x", "y")


@both
def test_waiting_for_what_does_not_come_ends(name: str) -> None:
    with Server(name) as primary, Server(name) as replica:
        with pytest.raises(ServerError, match="in sync with port"):
            replica.wait_for_sync(primary, limit_s=0.2)


@both
def test_cluster_works_and_fails_over(name: str) -> None:
    with cluster(3, 3, name) as nodes:
        client = nodes.connect()
        for i in range(300):
            client.set(f"key:{i}", i)
        assert [client.get(f"key:{i}") for i in range(300)] == [b"%d" % i for i in range(300)]
        client.close()
        pids = [node.pid for node in nodes.nodes]
        assert len(set(pids)) == 6
        for node in nodes.nodes[:3]:
            assert node.client.dbsize() > 50

        primary = nodes.primary_of("key:7")
        (replica,) = nodes.replicas_of(primary)
        replica.wait_for_sync(primary)
        primary.kill()
        wait_until(lambda: replica.info("replication")["role"] == "master", "the replica takes over")
        wait_until(lambda: "cluster_state:ok" in replica.cli("cluster", "info"), "slots are served")
        assert replica.client.get("key:7") == b"7"
        wait_until(lambda: nodes.primary_of("key:7") is replica, "the other nodes have heard of it")
        primary.start()
        nodes.wait_until_ok()
        assert nodes.replicas_of(replica) == [primary]
    assert running() == []
    assert not any(map(exists, pids))


@both
def test_a_crash_is_told(name: str) -> None:
    with pytest.raises(ServerError, match="(?s)has ended with status -11.*crashed by signal"):
        with Server(name) as server:
            with pytest.raises(redis.ConnectionError):
                server.command("DEBUG", "SEGFAULT")
            wait_until(lambda: not server.alive, "the server ends")
    assert running() == []


@both
def test_a_failing_test_shows_the_log_and_stops_the_server(name: str) -> None:
    pid = 0
    with pytest.raises(ValueError) as failure:
        with Server(name) as server:
            pid = server.pid
            raise ValueError("the test")
    assert "Ready to accept connections" in "".join(failure.value.__notes__)
    assert not exists(pid)


@both
def test_a_wrong_configuration_is_told(name: str) -> None:
    with pytest.raises(ServerError, match="(?s)does not start.*no-such-setting"):
        with Server(name, "no-such-setting 1"):
            pass


@both
def test_a_module_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(ServerError, match="(?s)does not start.*no such module.so"):
        with Server(name, module="/nowhere/no such module.so", module_args=["a b", 1]):
            pass


@both
def test_a_port_that_another_server_takes_is_replaced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import server as module

    with Server(name) as first:
        ports = [first.port, module.free_port()]
        monkeypatch.setattr(module, "free_port", lambda: ports.pop(0))
        with Server(name) as second:
            assert second.port != first.port
            assert second.client.info("server")["process_id"] == second.pid != first.pid
        assert ports == []


@both
def test_servers_of_a_killed_test_run_end(name: str) -> None:
    program = f"""
from server import Server
import sys
server = Server({name!r})
server.start()
print(server.pid, server.folder, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        pid, folder = run.stdout.readline().split()
        assert exists(int(pid))
        run.send_signal(signal.SIGKILL)
        run.wait()
    wait_until(lambda: not alive(int(pid)), "the server ends with its test run")
    subprocess.run(["rm", "-r", folder], check=True)


def alive(pid: int) -> bool:
    """Whether it runs: whoever inherits a dead one may wait for it late."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_nothing_is_left_on_the_ports() -> None:
    with Server() as server:
        port = server.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))
