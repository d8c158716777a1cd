"""`sluice dedup` with a filter on servers, and `sluice cluster`, which makes it.

SLUICE is the command's path, if it is not in build/release."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from server import HOST, MODULE, TREE, Cluster, Server, both, cluster, needs_module
from sessions import same
from workload import count

SLUICE = os.environ.get("SLUICE", str(TREE / "build/release/apps/cli/sluice"))
PASSWORD = "correct horse"
START_MS = 1_700_000_000_000
TIMES = ("--json", "--key", "/user,/ad", "--event-time", "/time")

pytestmark = [
    pytest.mark.skipif(not os.access(SLUICE, os.X_OK), reason=f"there is no command {SLUICE}"),
    needs_module,
]


def sluice(
    *args: str | Path, stdin: str = "", code: int | None = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command; fails with what it says if it ends with another code. None: with any."""
    done = subprocess.run(
        [SLUICE, *args], input=stdin, env=os.environ | environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert code is None or done.returncode == code, (args, done.returncode, done.stderr)
    return done


def error(*args: str | Path, code: int = 1, **environment: str) -> str:
    return sluice(*args, code=code, **environment).stderr


class Place:
    """Servers, and the address of a filter there."""

    def __init__(self, servers: list[Server], of: Cluster | None = None) -> None:
        self.servers = servers
        self.cluster = of
        scheme = "redis+cluster" if of else "redis"
        self.url = f"{scheme}://" + ",".join(f"{HOST}:{server.port}" for server in servers) + "/clicks"

    def create(self, *args: str) -> None:
        sluice("cluster", "create", self.url, *args)

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(sluice("cluster", "status", self.url, "--json").stdout)
        return status

    def at(self, server: str) -> Server:
        return next(each for each in self.servers if server == f"{HOST}:{each.port}")

    def keys(self) -> list[bytes]:
        """Of all servers."""
        primaries = [each for each in self.servers if each.info("replication")["role"] == "master"]
        return sorted(key for server in primaries for key in server.client.keys("*"))


@contextlib.contextmanager
def one(name: str, *config: str) -> Iterator[Place]:
    with Server(name, *config, module=MODULE) as server:
        yield Place([server])


@contextlib.contextmanager
def several(name: str) -> Iterator[Place]:
    """That know nothing of each other."""
    with ExitStack() as stack:
        yield Place([stack.enter_context(Server(name, module=MODULE)) for _ in range(3)])


@contextlib.contextmanager
def clustered(name: str, *config: str) -> Iterator[Place]:
    with cluster(3, 3, name, *config, module=MODULE) as made:
        yield Place(made.nodes, made)


places = pytest.mark.parametrize("place", [one, several, clustered])


class Producer:
    """A run of dedup that reads lines as they are given, and whose output is read as it comes."""

    def __init__(self, url: str, *args: str) -> None:
        self._process = subprocess.Popen(
            [SLUICE, "dedup", "--filter", url, "--stats", "json", *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=0,
        )  # fmt: skip
        self.said = ""

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def give(self, lines: list[str]) -> None:
        assert self._process.stdin
        self._process.stdin.write("".join(line + "\n" for line in lines))

    def take(self, lines: int) -> list[str]:
        """Waits for that many lines."""
        assert self._process.stdout
        return [self._process.stdout.readline().removesuffix("\n") for _ in range(lines)]

    def end(self, code: int = 0) -> tuple[list[str], dict[str, Any]]:
        """The rest of its output, and its statistics."""
        out, self.said = self._process.communicate(timeout=300)
        assert self._process.returncode == code, self.said
        statistics = [line for line in self.said.splitlines() if line.startswith("{")]
        return out.splitlines(), json.loads(statistics[-1]) if statistics else {}

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)


def names(first: int, number: int) -> list[str]:
    return [f"key-{first + i}" for i in range(number)]


# Verdicts.


@both
@places
def test_verdicts_are_those_of_a_local_run(name: str, place: Any, tmp_path: Path) -> None:
    clicks, bad = tmp_path / "clicks", tmp_path / "bad"
    records = count(30_000, 300_000)
    sluice("generate", "clicks", "--records", str(records), "--users", str(records // 20), "--seed", "3",
           "--output", clicks)  # fmt: skip
    lines = clicks.read_text().splitlines()
    # Some come late, and some clocks are wrong.
    for i in range(len(lines) * 2 // 3, len(lines), 97):
        lines.insert(i, lines[i // 10])
        lines.insert(i, json.dumps({"user": f"w{i}", "ad": "x", "time": START_MS + i * 10**8}))
    bad.write_text("\n".join(lines) + "\n")
    with place(name) as servers:
        servers.create("--window", "20s", "--filter", "exact-window")
        for what in (clicks, bad):
            got = {}
            for where, flags in {
                "local": ["--window", "20s", "--filter", "exact-window", "--untrusted-keys"],
                "shared": ["--filter", servers.url],
            }.items():
                held = tmp_path / f"held-{where}"
                done = sluice("dedup", *TIMES, *flags, "--duplicates", held, "--late", "drop", "--stats", "json", what)
                statistics = json.loads([line for line in done.stderr.splitlines() if line.startswith("{")][-1])
                got[where] = (done.stdout, held.read_text(), statistics["late"], statistics["window"]["disbelieved"])
                assert where == "local" or statistics["shared"]["ruled"] == 0, statistics
            assert got["local"] == got["shared"]
            assert got["local"][1].count("\n") > records / 20
            assert what == clicks or got["local"][2] > 10
            sluice("cluster", "drop", servers.url, "--yes")
            servers.create("--window", "20s", "--filter", "exact-window")


@both
@places
def test_without_a_window(name: str, place: Any) -> None:
    lines = [f"key-{i * i % 7001}" for i in range(20_000)]
    with place(name) as servers:
        servers.create("--expect", "10k", "--fpr", "1e-9", "--sites", "5")
        out = sluice("dedup", "--filter", servers.url, stdin="\n".join(lines) + "\n").stdout
        assert out.splitlines() == list(dict.fromkeys(lines))
        again = sluice("dedup", "--filter", servers.url, "--invert", "--threads", "1", stdin="\n".join(lines) + "\n")
        assert again.stdout.splitlines() == lines
        status = servers.status()
        assert sum(each["keys"] for each in status["slices"]) == len(set(lines))
        assert [each["slice"] for each in status["slices"]] == list(range(5))
        assert {each["server"] for each in status["slices"]} == {
            f"{HOST}:{server.port}" for server in servers.servers
            if server.info("replication")["role"] == "master"
        }  # fmt: skip


@both
def test_a_window_of_a_count_on_one_server(name: str) -> None:
    lines = [f"key-{i * i % 701}" for i in range(3000)]
    with one(name) as servers:
        assert "each would count only its own part of the stream" in error(
            "cluster", "create", servers.url, "--window", "100", "--sites", "2", code=2
        )
        servers.create("--window", "100", "--filter", "exact-window")
        shared = sluice("dedup", "--filter", servers.url, stdin="\n".join(lines) + "\n").stdout
        local = sluice("dedup", "--window", "100", "--filter", "exact-window", stdin="\n".join(lines) + "\n").stdout
        assert shared == local


@both
@places
def test_of_producers_that_race_one_lets_a_key_through(name: str, place: Any, tmp_path: Path) -> None:
    lines = [f"key-{i}" for i in range(count(20_000, 200_000))]
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    with place(name) as servers:
        servers.create("--window", "1h")
        runs = [
            subprocess.Popen(
                [SLUICE, "dedup", "--filter", servers.url, "--arrival-time", "--stats", "none", tmp_path / "in"],
                stdout=subprocess.PIPE, text=True,
            )
            for _ in range(3)
        ]  # fmt: skip
        outs = [run.communicate(timeout=300)[0].splitlines() for run in runs]
        assert [run.returncode for run in runs] == [0, 0, 0]
        assert sorted(line for out in outs for line in out) == sorted(lines)


# The layout.


@both
def test_a_producer_that_is_stale_ends(name: str) -> None:
    """Another filter took its name: it writes nothing more, and says so."""
    with one(name) as servers:
        servers.create("--window", "1h", "--sites", "4")
        with Producer(servers.url) as producer:
            producer.give(names(0, 500))
            assert producer.take(500) == names(0, 500)
            sluice("cluster", "drop", servers.url, "--yes")
            servers.create("--window", "2h", "--sites", "2")
            before = servers.keys()
            producer.give(names(500, 100))
            # Judged by the rule `wait`: nothing is lost.
            assert producer.take(100) == names(500, 100)
            producer.give(names(600, 100))
            assert producer.end(code=1)[0] == []
        assert "the filter 'clicks' was dropped" in producer.said
        assert "600 records were judged and written" in producer.said
        assert servers.keys() == before
        assert sum(each["keys"] for each in servers.status()["slices"]) == 0


@both
def test_a_layout_that_the_servers_lost_is_put_back(name: str) -> None:
    with one(name) as servers:
        servers.create("--window", "1h", "--sites", "3")
        version = servers.status()["version"]
        with Producer(servers.url) as producer:
            producer.give(names(0, 500))
            assert producer.take(500) == names(0, 500)
            servers.servers[0].command("FLUSHALL")
            producer.give(names(0, 600))
            # All is forgotten, and passes once more.
            assert producer.take(600) == names(0, 600)
            producer.give(names(0, 600))
            out, statistics = producer.end()
        assert out == []
        assert "the servers had lost the filter's layout: it was put back" in producer.said
        assert servers.status()["version"] == version
        assert all(each["lost_contents"] for each in servers.status()["slices"])
        assert statistics["shared"]["ruled"] > 0


@both
def test_what_a_producer_refuses(name: str) -> None:
    with one(name) as servers:
        server = servers.servers[0]
        said = error("dedup", "--filter", servers.url)
        assert f"sluice cluster create {servers.url} --window 10m" in said
        assert "there is no filter 'clicks'" in error("cluster", "status", servers.url)
        assert "there is no filter 'clicks'" in error("cluster", "drop", servers.url, "--yes")
        servers.create("--window", "1h", "--sites", "2")
        assert "there is a filter 'clicks' already" in error("cluster", "create", servers.url, "--window", "10m")
        assert "add --yes" in error("cluster", "drop", servers.url, code=2)
        layout = server.client.get("{clicks}:layout:1")
        assert isinstance(layout, bytes)
        # Another server, or none, in the list.
        twice = servers.url.replace("/clicks", f",{HOST}:{server.port}/clicks")
        assert "was made on 1 server" in error("dedup", "--filter", twice)
        # Hostile bytes.
        damaged = bytearray(layout)
        damaged[40] ^= 0xFF
        for value in (b"", b"hello", layout[:50], bytes(damaged), layout + b"x", b"sluicelay\x63\x00" + layout[11:]):
            server.client.set("{clicks}:layout:1", value)
            assert "this is not a layout of a filter that this sluice can read" in error("dedup", "--filter", servers.url)
            error("cluster", "status", servers.url)
            error("cluster", "drop", servers.url, "--yes")
        server.client.delete("{clicks}:layout:1")
        server.client.rpush("{clicks}:layout:1", "x")
        assert "WRONGTYPE" in error("dedup", "--filter", servers.url)
        server.client.delete("{clicks}:layout:1")
        server.client.set("{clicks}:layout:1", layout)
        # A slice that is not what the layout says.
        key = servers.status()["slices"][1]["key"]
        server.client.delete(key)
        server.command("SLUICE.RESERVE", key, "WINDOW", "30m")
        said = error("dedup", "--filter", servers.url)
        assert "slice 1 of 'clicks' remembers 'the last 30 minutes', and the layout says 'the last 1 hour'" in said
        server.client.delete(key)
        server.client.set(key, "x")
        assert "WRONGTYPE" in error("dedup", "--filter", servers.url)
        # One that is missing is made anew.
        server.client.delete(key)
        assert "slice 1 is missing" in sluice("dedup", "--filter", servers.url).stderr


@both
def test_flags_that_do_not_fit_the_window(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    with one(name) as servers:
        servers.create("--window", "10m")
        said = error("dedup", "--filter", servers.url, tmp_path / "in", code=2)
        assert "is a file, so all its records would arrive now" in said
        sluice("cluster", "drop", servers.url, "--yes")
        servers.create()
        for flags in (["--event-time", "2"], ["--arrival-time"], ["--late", "drop"], ["--max-ahead", "1h"]):
            said = error("dedup", "--filter", servers.url, *flags, tmp_path / "in", code=2)
            assert f"{flags[0]} needs a window of time, and the filter '{servers.url}' remembers forever" in said


# Servers that are gone.


@both
def test_a_server_without_the_module(name: str) -> None:
    with Server(name) as server:
        servers = Place([server])
        assert "load the module, sluice.so" in error("cluster", "create", servers.url, "--window", "10m")
        assert servers.keys() == []


@both
def test_a_password(name: str, tmp_path: Path) -> None:
    secret, wrong = tmp_path / "secret", tmp_path / "wrong"
    secret.write_text(PASSWORD + "\n")
    wrong.write_text("guess\n")
    with Server(name, module=MODULE) as server:
        servers = Place([server])
        server.command("ACL", "SETUSER", "app", "on", f">{PASSWORD}", "~*", "+@all")
        server.command("CONFIG", "SET", "requirepass", PASSWORD)
        assert "NOAUTH" in error("cluster", "create", servers.url)
        assert "AUTH: WRONGPASS" in error("cluster", "create", servers.url, "--password-file", wrong)
        servers.create("--password-file", str(secret))
        said = error("dedup", "--filter", servers.url, "--password-file", wrong)
        assert "AUTH: WRONGPASS" in said and "guess" not in said
        for filter_url, args, environment in (
            (servers.url, ["--password-file", secret], {}),
            (servers.url, [], {"SLUICE_REDIS_PASSWORD": PASSWORD}),
            (servers.url.replace("redis://", "redis://app@"), ["--password-file", secret], {}),
        ):
            done = sluice("dedup", "--filter", filter_url, *args, stdin="a\na\n", **environment)
            assert PASSWORD not in done.stderr
        assert "it has a password" in error(
            "dedup", "--filter", servers.url.replace("redis://", "redis://app:x@"), code=2
        )


@both
@pytest.mark.parametrize("rule", ["wait", "duplicate", "distinct"])
def test_a_server_that_is_killed_and_comes_back_empty(name: str, rule: str) -> None:
    with several(name) as servers:
        servers.create("--window", "1h", "--sites", "6")
        with Producer(servers.url, "--when-unreachable", rule) as producer:
            producer.give(names(0, 600))
            assert producer.take(600) == names(0, 600)
            killed = servers.servers[1]
            killed.kill()
            # Repeats, and new keys: a third of each is on the server that is gone.
            producer.give(names(0, 600) + names(1000, 600))
            if rule != "wait":
                # Before the server is back: those of the others, or these and all of its own.
                taken = producer.take(300 if rule == "duplicate" else 700)
                assert rule == "distinct" or set(taken) <= set(names(1000, 600))
            killed.start()
            out, statistics = producer.end()
        shared = statistics["shared"]
        assert statistics["records"] == 1800
        if rule == "wait":
            # What the server had known passes once more; nothing is lost.
            assert set(names(1000, 600)) <= set(out)
            assert 100 < len(out) - 600 < 300
            assert len(out) == len(set(out))
        elif rule == "duplicate":
            assert shared["ruled"] > 200
            assert statistics["distinct"] < 600 + 600 - 100
        else:
            assert shared["ruled"] > 200
            assert statistics["distinct"] > 600 + 600 + 100
        assert shared["problem"] or rule == "wait"


@both
def test_a_primary_that_is_killed_costs_nothing_but_time(name: str) -> None:
    with clustered(name, "cluster-require-full-coverage no") as servers:
        servers.create("--window", "1h", "--sites", "6")
        with Producer(servers.url) as producer:
            producer.give(names(0, 1000))
            assert producer.take(1000) == names(0, 1000)
            assert servers.cluster
            killed = servers.at(servers.status()["slices"][0]["server"])
            for replica in servers.cluster.replicas_of(killed):
                replica.wait_for_sync(killed)
            killed.kill()
            producer.give(names(500, 1000))
            out, statistics = producer.end()
        assert out == names(1000, 500)
        assert statistics["duplicates"] == 500
        assert statistics["shared"]["ruled"] == statistics["shared"]["unsure"] == 0
        servers.cluster.wait_until_ok()


@both
def test_waiting_ends_with_a_signal(name: str) -> None:
    """What has no verdict is let through: it is not lost, and may pass once more."""
    with one(name) as servers:
        servers.create("--window", "1h")
        with Producer(servers.url) as producer:
            producer.give(names(0, 100))
            assert producer.take(100) == names(0, 100)
            servers.servers[0].kill()
            producer.give(names(0, 200))
            assert producer._process.stderr
            line = producer._process.stderr.readline()
            while "waits for the servers of the filter" not in line:
                line = producer._process.stderr.readline()
            producer.stop()
            out, statistics = producer.end(code=130)
        assert out == names(0, 200)
        assert statistics["shared"]["ruled"] == 200
        servers.servers[0].start()


@both
def test_an_answer_that_comes_too_late(name: str) -> None:
    """The server is stopped for longer than a request may take. Nothing is lost."""
    with one(name) as servers:
        servers.create("--window", "1h")
        server = servers.servers[0]
        with Producer(servers.url) as producer:
            producer.give(names(0, 100))
            assert producer.take(100) == names(0, 100)
            os.kill(server.pid, signal.SIGSTOP)
            producer.give(names(100, 100))
            assert producer._process.stderr
            line = producer._process.stderr.readline()
            while "waits for the servers of the filter" not in line:
                line = producer._process.stderr.readline()
            os.kill(server.pid, signal.SIGCONT)
            assert producer.take(100) == names(100, 100)
            producer.give(names(0, 200))
            out, statistics = producer.end()
        assert out == []
        assert statistics["distinct"] == 200


# Documents.


@both
def test_the_sessions_of_the_document(name: str, tmp_path: Path) -> None:
    """Each command of docs/cluster.md prints what is shown; `...` stands for anything."""
    document = TREE / "docs/cluster.md"
    blocks = document.read_text().split("```console\n")[1:]
    ran = 0
    with one(name) as servers:
        here = servers.url.removeprefix("redis://").removesuffix("/clicks")
        for block in blocks:
            for step in block.split("```")[0].removeprefix("$ ").split("\n$ "):
                command, _, shown = step.partition("\n")
                if command.startswith("cat "):
                    (tmp_path / command.removeprefix("cat ")).write_text(shown.rstrip("\n") + "\n")
                    continue
                done = subprocess.run(
                    command.replace("127.0.0.1:6379", here), shell=True, capture_output=True, text=True, cwd=tmp_path,
                    env=os.environ | {"PATH": f"{Path(SLUICE).parent}:{os.environ['PATH']}"}, check=False,
                )  # fmt: skip
                said = (done.stdout + done.stderr).replace(here, "127.0.0.1:6379")
                # Columns are as wide as the port.
                assert same(" ".join(shown.split()), " ".join(said.split())), f"{command}\n{shown}\n{said}"
                ran += 1
    assert ran >= 6
