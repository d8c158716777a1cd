"""Real Redis and Valkey servers for tests: started on loopback in a folder of their own, and stopped by pid.

    @both
    def test_something(name: str) -> None:
        with Server(name, "appendonly yes", module=MODULE) as server:
            server.client.set("a", b"\\0")
            server.restart(kill=True)

SLUICE_MODULE is the module's path; SLUICE_SERVERS is where tools/servers keeps the servers.
"""

from __future__ import annotations

import ctypes
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

TREE = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
NAMES = ("redis", "valkey")
MODULE = os.environ.get("SLUICE_MODULE")

# Nothing waits longer for a server: also a busy machine starts one, or syncs a replica, in seconds.
LIMIT_S = 60.0

both = pytest.mark.parametrize("name", NAMES)
needs_module = pytest.mark.skipif(not MODULE, reason="SLUICE_MODULE does not name the module")

_running: set[Server] = set()
_libc = ctypes.CDLL(None)


class ServerError(Exception):
    """A server does not start, has crashed, or does not do in time what a test waits for."""


@functools.cache
def binary(name: str) -> Path:
    """The path of redis-server or valkey-server; its tools are beside it."""
    command = [str(TREE / "tools/servers"), name]
    if "SLUICE_SERVERS" in os.environ:
        command.append(os.environ["SLUICE_SERVERS"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(done.stderr.strip())
    return Path(done.stdout.strip())


def wait_until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    """Asks again until the condition holds; an error that names `what` if it does not in time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise ServerError(f"{what}: not within {limit_s:g} s")
        time.sleep(0.02)


def running() -> list[int]:
    """The pids of servers that run, of those that this process has started."""
    return sorted(server.pid for server in _running if server.alive)


def stop_all() -> None:
    for server in list(_running):
        server.close()


def free_port() -> int:
    """A port that is free now, and so is the cluster bus 10000 above it. Below those that the system gives
    to outgoing connections (from 32768): while a server restarts, nobody takes its port by chance."""
    while True:
        port = random.SystemRandom().randrange(10000, 20000)
        with socket.socket() as one, socket.socket() as bus:
            try:
                one.bind((HOST, port))
                bus.bind((HOST, port + 10000))
            except OSError:
                continue
        return port


def _die_with_parent() -> None:
    # PR_SET_PDEATHSIG: a test run that is killed leaves no servers behind.
    _libc.prctl(1, signal.SIGKILL)


class Server:
    """A redis-server or valkey-server. `config` are lines of its configuration, which override ours. It ends
    when the thread that started it ends."""

    def __init__(
        self,
        name: str = "redis",
        *config: str,
        module: str | os.PathLike[str] | None = None,
        module_args: Sequence[str | int] = (),
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.port = 0
        # What is there already is loaded.
        self.folder = folder or Path(tempfile.mkdtemp(prefix=f"sluice-{name}-"))
        self._config = list(config)
        if module is not None:
            words = [os.fspath(module), *map(str, module_args)]
            self._config.append("loadmodule " + " ".join(map(_quoted, words)))
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[redis.Redis] = []
        self._client: redis.Redis | None = None

    # Start and stop.

    def __enter__(self) -> Server:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        crash = self.crash()
        if error is not None:
            error.add_note(f"The log of {self.name} on port {self.port} ends:\n{self._log_end()}")
        self.close()
        if crash and error is None:
            raise ServerError(crash)

    def start(self) -> None:
        """Starts it, and returns when it answers and has loaded what is on disk."""
        first = self.port == 0
        for attempt in range(20):
            if first:
                self.port = free_port()
                self._client = None
                self._write_config()
            start = len(self.log())
            self._spawn()
            try:
                wait_until(self._ready, f"{self.name} on port {self.port} answers")
                return
            except ServerError as error:
                said = self.log()[start:]
                self.kill()
                # Somebody else has taken the port since.
                if first and attempt < 19 and "in use" in said:
                    continue
                raise ServerError(f"{error}; its log ends:\n{self._log_end()}") from None

    def stop(self) -> None:
        """SIGTERM, and waits: it saves what its configuration says, and must end with 0."""
        process = self._process
        if process is None:
            return
        self._disconnect()
        crash = self.crash()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise ServerError(f"{self.name} does not end after SIGTERM:\n{self._log_end()}") from None
            crash = self.crash()
        self._gone()
        if crash:
            raise ServerError(crash)

    def kill(self) -> None:
        """SIGKILL, for it and for a child that saves: no time to write anything."""
        process = self._process
        if process is None:
            return
        self._disconnect()
        # The group exists as long as its leader is not waited for, or a child is left.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        self._gone()

    def restart(self, kill: bool = False) -> None:
        """The same folder, port and configuration again."""
        if kill:
            self.kill()
        else:
            self.stop()
        self.start()

    def close(self) -> None:
        """Ends it, whatever its state, and removes its folder."""
        try:
            try:
                self.stop()
            except ServerError:
                self.kill()
            for client in self._clients:
                client.close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """Its process; 0 if it does not run."""
        return self._process.pid if self._process else 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def crash(self) -> str:
        """What to say if it has ended by itself and not well; else empty."""
        if self._process is None or self._process.poll() in (None, 0):
            return ""
        return f"{self.name} has ended with status {self._process.returncode}; its log ends:\n{self._log_end()}"

    def log(self) -> str:
        try:
            return (self.folder / "server.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    # Talk to it.

    @property
    def client(self) -> redis.Redis:
        """Connects when it is used, also after a restart. Answers are bytes."""
        if self._client is None:
            self._client = self.connect()
        return self._client

    def connect(self, **options: Any) -> redis.Redis:
        """Another client, with options of redis.Redis. Nothing is sent twice: a command whose answer is lost
        is an error here."""
        settings: dict[str, Any] = {
            "protocol": 2,
            "socket_timeout": LIMIT_S,
            "retry": Retry(NoBackoff(), 0),
        }
        client = redis.Redis(host=HOST, port=self.port, **(settings | options))
        self._clients.append(client)
        return client

    def command(self, *words: str | int | float | bytes) -> Any:
        """The answer to a command that redis.Redis has no method for: of a module, say."""
        return self.client.execute_command(*words)  # type: ignore[no-untyped-call]

    def cli(self, *args: str | int | bytes, stdin: bytes | None = None) -> str:
        """What redis-cli or valkey-cli prints for a command. An error answer raises ServerError."""
        words = [word if isinstance(word, bytes) else str(word) for word in args]
        done = subprocess.run(
            [self.tool("cli"), "-h", HOST, "-p", str(self.port), "-e", *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=2 * LIMIT_S,
            check=False,
        )
        said = done.stdout.decode(errors="surrogateescape")
        if done.returncode != 0:
            raise ServerError((said + done.stderr.decode(errors="replace")).strip())
        return said.removesuffix("\n")

    def tool(self, tool: str) -> str:
        """The path of its `cli` or `benchmark`."""
        return str(binary(self.name).with_name(f"{self.name}-{tool}"))

    def info(self, section: str) -> dict[str, Any]:
        return dict(self.client.info(section))

    # Replication.

    def replicaof(self, primary: Server | None) -> None:
        """Makes it a replica, also after a restart; None makes it a primary again."""
        if primary is None:
            self.client.replicaof("NO", "ONE")
        else:
            self.client.replicaof(HOST, str(primary.port))
        self.client.config_rewrite()

    def wait_for_sync(self, primary: Server, limit_s: float = LIMIT_S) -> None:
        """Returns when this replica has applied all that the primary has sent until now."""
        offset = primary.info("replication")["master_repl_offset"]

        def synced() -> bool:
            here, there = self.info("replication"), primary.info("replication")
            return bool(
                here["role"] == "slave"
                and here["master_link_status"] == "up"
                and here["master_replid"] == there["master_replid"]
                and here["slave_repl_offset"] >= offset
            )

        wait_until(synced, f"{self.name} on port {self.port} is in sync with port {primary.port}", limit_s)

    # Private.

    def _write_config(self) -> None:
        lines = [
            f"bind {HOST}",
            f"port {self.port}",
            f"dir {_quoted(str(self.folder))}",
            'logfile "server.log"',
            "daemonize no",
            'save ""',
            "enable-debug-command yes",
            "enable-module-command yes",
            # A replica is served at once, and not after five seconds in which others may come.
            "repl-diskless-sync-delay 0",
            "cluster-node-timeout 5000",
            *self._config,
        ]
        (self.folder / "server.conf").write_text("\n".join(lines) + "\n")

    def _spawn(self) -> None:
        with open(self.folder / "output", "ab") as output:
            self._process = subprocess.Popen(
                [binary(self.name), self.folder / "server.conf"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        _running.add(self)

    def _ready(self) -> bool:
        if not self.alive:
            assert self._process is not None
            raise ServerError(f"{self.name} does not start: it ends with {self._process.returncode}")
        try:
            self.client.ping()
            # Another server may answer, at a port that is not ours.
            return bool(self.info("server")["process_id"] == self.pid)
        except (redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError):
            return False

    def _gone(self) -> None:
        self._process = None
        _running.discard(self)

    def _disconnect(self) -> None:
        for client in self._clients:
            client.connection_pool.disconnect()

    def _log_end(self, lines: int = 60) -> str:
        output = self.folder / "output"
        said = self.log() + (output.read_text(errors="replace") if output.exists() else "")
        # Of a crash, what comes first matters: the signal and the stack.
        before, mark, report = said.partition("BUG REPORT START")
        if mark:
            return "\n".join([*before.splitlines()[-lines // 3 :], *(mark + report).splitlines()[:lines]])
        return "\n".join(said.splitlines()[-lines:])


class Cluster:
    """Servers that share the slots. nodes[0] to nodes[masters - 1] are primaries at first."""

    def __init__(self, nodes: list[Server]) -> None:
        self.nodes = nodes

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        crashes = [crash for node in self.nodes if (crash := node.crash())]
        self.close()
        if crashes and error is None:
            raise ServerError("\n".join(crashes))

    def close(self) -> None:
        # Replicas first: a primary that ends waits for its replicas.
        for node in reversed(self.nodes):
            node.close()

    def connect(self, **options: Any) -> redis.RedisCluster:
        """A client that follows the slots."""
        return redis.RedisCluster(host=HOST, port=self.nodes[0].port, **({"protocol": 2} | options))

    def primary_of(self, key: str | bytes) -> Server:
        """The node that serves a key now."""
        alive = [node for node in self.nodes if node.alive]
        slot = int(alive[0].command("CLUSTER", "KEYSLOT", key))
        for fields in map(str.split, alive[0].cli("cluster", "nodes").splitlines()):
            for low, _, high in (slots.partition("-") for slots in fields[8:]):
                # In brackets are slots that move.
                if not low.startswith("[") and int(low) <= slot <= int(high or low):
                    port = int(fields[1].split("@")[0].rpartition(":")[2])
                    return next(node for node in self.nodes if node.port == port)
        raise ServerError(f"slot {slot} is served by nobody")

    def replicas_of(self, primary: Server) -> list[Server]:
        return [
            node
            for node in self.nodes
            if node.alive and (info := node.info("replication"))["role"] == "slave" and info["master_port"] == primary.port
        ]

    def wait_until_ok(self, limit_s: float = LIMIT_S) -> None:
        """Returns when all nodes that run agree that all slots are served, and all replicas are linked."""
        wait_until(self._ok, "the cluster is ok", limit_s)

    def _ok(self) -> bool:
        views = set()
        for node in self.nodes:
            if not node.alive:
                continue
            # Not redis-py's parsers: answers are texts with one fact per line.
            state = node.cli("cluster", "info")
            if "cluster_state:ok" not in state or "cluster_slots_ok:16384" not in state:
                return False
            info = node.info("replication")
            if info["role"] == "slave" and info["master_link_status"] != "up":
                return False
            lines = [line.split() for line in node.cli("cluster", "nodes").splitlines()]
            if any("handshake" in fields[2] for fields in lines):
                return False
            # Who is whose primary, and who serves which slots.
            views.add(
                frozenset(
                    (fields[0], fields[2].removeprefix("myself,"), fields[3], *fields[8:])
                    for fields in lines
                )
            )
        return len(views) == 1 and len(next(iter(views))) == len(self.nodes)


def cluster(
    masters: int = 3,
    replicas: int = 3,
    name: str = "redis",
    *config: str,
    module: str | os.PathLike[str] | None = None,
    module_args: Sequence[str | int] = (),
) -> Cluster:
    """A cluster that works, of so many primaries and, in all, so many replicas."""
    if masters < 3 or replicas % masters:
        raise ValueError("a cluster has three primaries or more, and as many replicas for each")
    made = Cluster([])
    try:
        for _ in range(masters + replicas):
            node = Server(
                name, "cluster-enabled yes", *config, module=module, module_args=module_args
            )
            made.nodes.append(node)
            node.start()
        first = made.nodes[0]
        first.cli(
            "--cluster", "create", *(f"{HOST}:{node.port}" for node in made.nodes),
            "--cluster-replicas", replicas // masters, "--cluster-yes",
        )  # fmt: skip
        made.wait_until_ok()
    except BaseException:
        made.close()
        raise
    return made


def _quoted(word: str) -> str:
    """A word of a configuration line."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
