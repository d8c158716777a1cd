"""The module does what servers and their clients expect of a data type: descriptions of its commands, shapes of
answers, events, WATCH, ACLs, logs, settings, loading, clusters."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import redis

from server import HOST, MODULE, Server, ServerError, both, cluster, needs_module, wait_until
from workload import run, state

pytestmark = needs_module

READS = ("EXISTS", "MEXISTS", "AGE", "INFO", "PLAN", "SCANDUMP")
WRITES = (
    "RESERVE", "ADD", "MADD", "INSERT", "FORGET", "MFORGET", "CLAIM", "MCLAIM", "CONFIRM", "MCONFIRM",
    "RELEASE", "MRELEASE", "MERGE", "LOADCHUNK",
)  # fmt: skip
# They free memory, or use what a claim has reserved.
NO_MEMORY_NEEDED = ("FORGET", "MFORGET", "CONFIRM", "MCONFIRM", "RELEASE", "MRELEASE")


def plain(server: Server, *words: Any) -> Any:
    """The answer as it comes: redis-py changes some."""
    client = server.connect()
    connection = client.connection_pool.get_connection()
    connection.send_command(*words)
    answer = connection.read_response()
    client.connection_pool.release(connection)
    return answer


def pairs(answer: list[Any]) -> dict[Any, Any]:
    return dict(zip(answer[::2], answer[1::2], strict=True))


@both
def test_commands_are_described(name: str) -> None:
    with Server(name, module=MODULE) as server:
        for command in READS + WRITES:
            (info,) = plain(server, "COMMAND", "INFO", f"SLUICE.{command}")
            flags = {flag.decode() if isinstance(flag, bytes) else str(flag) for flag in info[2]}
            assert ("write" in flags) == (command in WRITES), command
            assert ("readonly" in flags) == (command in READS), command
            assert ("denyoom" in flags) == (command in WRITES and command not in NO_MEMORY_NEEDED), command
            keys = (0, 0, 0) if command == "PLAN" else (1, -1, 1) if command == "MERGE" else (1, 1, 1)
            assert tuple(info[3:6]) == keys, command
            docs = pairs(pairs(plain(server, "COMMAND", "DOCS", f"SLUICE.{command}")).popitem()[1])
            assert docs[b"summary"].endswith(b"."), command
            assert docs[b"complexity"] and docs[b"since"], command
        for words, keys in (
            (("SLUICE.ADD", "k", "i"), [b"k"]),
            (("SLUICE.MADD", "k", "i", "j"), [b"k"]),
            (("SLUICE.INSERT", "k", "WINDOW", 5, "ITEMS", "i"), [b"k"]),
            (("SLUICE.MERGE", "d", "s", "t"), [b"d", b"s", b"t"]),
            (("SLUICE.CLAIM", "k", "i", "TTL", 1, "TOKEN", "t"), [b"k"]),
        ):
            assert plain(server, "COMMAND", "GETKEYS", *words) == keys


@both
def test_shapes_of_answers(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.RESERVE", "k", "AUDIT", "1/2")
        for protocol in (2, 3):
            client = server.connect(protocol=protocol)

            def ask(*words: Any) -> Any:
                return client.execute_command(*words)  # type: ignore[no-untyped-call]

            item = f"i{protocol}"
            assert ask("SLUICE.ADD", "k", item) == 1
            assert ask("SLUICE.MADD", "k", item, item + "b") == [0, 1]
            assert ask("SLUICE.EXISTS", "k", item) == 1
            assert ask("SLUICE.MEXISTS", "missing", item) == [0]
            assert ask("SLUICE.CLAIM", "k", item + "c", "TTL", 1000, "TOKEN", "t") == 1
            assert ask("SLUICE.ADD", "k", item + "c") == 2
            assert ask("SLUICE.RELEASE", "k", item + "c", "TOKEN", "t") == 1
            for answer in (ask("SLUICE.INFO", "k"), ask("SLUICE.PLAN", "WINDOW", "10m")):
                fields = answer if protocol == 3 else pairs(answer)
                assert isinstance(fields, dict)
                assert fields[b"filter"]
                numbers = [fields[b"bytes"], fields.get(b"pending", 0)]
                assert all(isinstance(number, int) for number in numbers)
                real = fields.get(b"target_fpr", fields.get(b"fpr"))
                assert isinstance(real, float if protocol == 3 else bytes)
                assert 0 < float(real) < 1
            assert ask("SLUICE.INFO", "k", "Items") >= 2
            with pytest.raises(redis.ResponseError, match="items"):
                ask("SLUICE.INFO", "k", "no-such-field")
            with pytest.raises(redis.ResponseError, match="SLUICE.RESERVE.*SLUICE.INSERT"):
                ask("SLUICE.ADD", "missing", "x")
            client.set("string", "x")
            for words in (("ADD", "string", "x"), ("EXISTS", "string", "x"), ("INFO", "string"),
                          ("MERGE", "new", "string"), ("RESERVE", "string")):  # fmt: skip
                with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                    client.execute_command("SLUICE." + words[0], *words[1:])  # type: ignore[no-untyped-call]
            with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                client.get("k")


@both
def test_events(name: str) -> None:
    with Server(name, "notify-keyspace-events KEA", module=MODULE) as server:
        heard = server.connect().pubsub()  # type: ignore[no-untyped-call]
        heard.psubscribe("__keyspace@0__:*")
        assert heard.get_message(timeout=5)["type"] == "psubscribe"
        run(
            server,
            [
                ("SLUICE.RESERVE", "k", "WINDOW", "1m"),
                ("SLUICE.ADD", "k", "a"),
                ("SLUICE.EXISTS", "k", "a"),
                ("SLUICE.FORGET", "k", "a"),
                ("SLUICE.CLAIM", "k", "b", "TTL", 1000, "TOKEN", "t"),
                ("SLUICE.CONFIRM", "k", "b", "TOKEN", "t"),
                ("SLUICE.RELEASE", "k", "b", "TOKEN", "t"),
                ("SLUICE.MERGE", "l", "k"),
                ("DEL", "k"),
            ],
        )
        events = []
        while (message := heard.get_message(timeout=0.5)) is not None:
            events.append((message["channel"][-1:], message["data"]))
        ours = [event for event in events if event[1].startswith((b"sluice", b"del"))]
        wanted = [b"sluice.reserve", b"sluice.add", b"sluice.forget", b"sluice.claim", b"sluice.confirm",
                  b"sluice.release"]  # fmt: skip
        assert ours[: len(wanted)] == [(b"k", event) for event in wanted]
        assert ours[-1] == (b"k", b"del")
        heard.close()


@both
def test_watch(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.RESERVE", "k")
        for words, changes in ((("SLUICE.ADD", "k", "a"), True), (("SLUICE.EXISTS", "k", "a"), False)):
            pipe = server.connect().pipeline()
            pipe.watch("k")
            server.command(*words)
            pipe.multi()
            pipe.execute_command("SLUICE.ADD", "k", "b")  # type: ignore[no-untyped-call]
            if changes:
                with pytest.raises(redis.WatchError):
                    pipe.execute()
            else:
                assert pipe.execute() == [1]


@both
def test_acl(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.RESERVE", "app:k")
        server.command("SLUICE.RESERVE", "other:k")
        words = [f"+sluice.{word}" for word in ("exists", "mexists", "info")]
        server.command("ACL", "SETUSER", "reader", "on", ">x", "%R~app:*", "-@all", *words)
        server.command("ACL", "SETUSER", "blind", "on", ">x", "%R~app:*", "+@all")
        reader = server.connect(username="reader", password="x")
        blind = server.connect(username="blind", password="x")
        assert reader.execute_command("SLUICE.EXISTS", "app:k", "a") == 0  # type: ignore[no-untyped-call]
        for client, command in (
            (reader, ("SLUICE.ADD", "app:k", "a")),
            (reader, ("SLUICE.EXISTS", "other:k", "a")),
            # All commands, but no key to write to.
            (blind, ("SLUICE.ADD", "app:k", "a")),
            (blind, ("SLUICE.MERGE", "app:k", "app:k")),
            (blind, ("SLUICE.INFO", "other:k")),
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command)  # type: ignore[no-untyped-call]
        # Where the server lets a module have categories.
        (info,) = plain(server, "COMMAND", "INFO", "SLUICE.ADD")
        if categories := {bytes(each) for each in info[6]}:
            assert b"@write" in categories
            server.command("ACL", "SETUSER", "careful", "on", ">x", "~*", "+@all", "-@write")
            careful = server.connect(username="careful", password="x")
            assert careful.execute_command("SLUICE.EXISTS", "app:k", "a") == 0  # type: ignore[no-untyped-call]
            with pytest.raises(redis.exceptions.NoPermissionError):
                careful.execute_command("SLUICE.ADD", "app:k", "a")  # type: ignore[no-untyped-call]
        elif name == "valkey":
            pytest.fail("Valkey has categories for commands of modules")


@both
def test_the_seed_is_in_no_log(name: str) -> None:
    with Server(name, "slowlog-log-slower-than 0", module=MODULE) as server:
        server.command("SLUICE.RESERVE", "k", "WINDOW", "1m", "SEED", 918273645)
        server.command("SLUICE.INSERT", "l", "SEED", 918273645, "ITEMS", "a")
        run(server, [("SLUICE.RESERVE", "k", "SEED", 918273645), ("SLUICE.RESERVE", "m", "SEED", 918273645, "BAD"),
                     ("SLUICE.RESERVE", "m", "SEED", "918273645x"), ("SLUICE.PLAN", "SEED", 918273645),
                     ("SLUICE.INSERT", "l", "SEED", 918273645, "BAD")])  # fmt: skip
        logged = str(plain(server, "SLOWLOG", "GET", -1))
        assert "SLUICE.RESERVE" in logged and "(redacted)" in logged
        assert "918273645" not in logged
        assert "918273645" not in server.log()


@both
def test_settings(name: str) -> None:
    with Server(name, "sluice.claims-limit 77", module=MODULE) as server:
        client = server.client
        assert client.config_get("sluice.*") == {
            "sluice.default-fpr": "1e-6",
            "sluice.key-memory-limit": "0",
            "sluice.claims-limit": "77",
            "sluice.bf-compat": "no",
        }
        client.config_set("sluice.default-fpr", "0.01")
        client.config_set("sluice.key-memory-limit", "1mb")
        server.command("SLUICE.RESERVE", "k")
        assert float(server.command("SLUICE.INFO", "k", "target_fpr")) == 0.01
        for setting, value in (
            ("default-fpr", "0"), ("default-fpr", "2"), ("default-fpr", "x"), ("default-fpr", "nan"),
            ("key-memory-limit", "-1"), ("claims-limit", "0"), ("claims-limit", str(1 << 62)), ("bf-compat", "yes"),
        ):  # fmt: skip
            with pytest.raises(redis.ResponseError):
                client.config_set(f"sluice.{setting}", value)
        assert client.config_get("sluice.default-fpr") == {"sluice.default-fpr": "0.01"}
        client.config_rewrite()
        server.restart()
        found = server.client.config_get("sluice.*")
        assert found["sluice.default-fpr"] == "0.01"
        assert found["sluice.key-memory-limit"] == str(1 << 20)
        assert found["sluice.claims-limit"] == "77"


@both
def test_loading(name: str) -> None:
    assert MODULE is not None
    with Server(name) as server:
        for arguments in (("ARGS", "nonsense"), ("ARGS", "bf-compat"), ("ARGS", "bf-compat", "maybe"),
                          ("CONFIG", "sluice.default-fpr", "7")):  # fmt: skip
            # Not a CONFIG that does not exist: the servers cannot unload a module with a data type, and Valkey 8.0
            # crashes when it tries.
            with pytest.raises(redis.ResponseError):
                server.command("MODULE", "LOADEX", MODULE, *arguments)
            assert server.client.ping()
            with pytest.raises(redis.ResponseError, match="unknown command"):
                server.command("SLUICE.RESERVE", "k")
        server.command("MODULE", "LOADEX", MODULE, "CONFIG", "sluice.default-fpr", "0.1", "ARGS", "bf-compat", "yes")
        assert server.client.config_get("sluice.*")["sluice.default-fpr"] == "0.1"
        assert server.client.config_get("sluice.*")["sluice.bf-compat"] == "yes"
        server.command("SLUICE.RESERVE", "k")
        for _ in range(2):
            with pytest.raises(redis.ResponseError):
                server.command("MODULE", "UNLOAD", "sluice")
            with pytest.raises(redis.ResponseError):
                server.command("MODULE", "LOAD", MODULE)
            assert server.command("SLUICE.MADD", "k", "a", "a")[1] == 0
        info = server.info("sluice")
        assert info["sluice_version"]
        assert int(info["sluice_judged_items"]) == 4
        assert int(info["sluice_duplicate_items"]) == 3
        assert int(info["sluice_memory_bytes"]) > 0
        assert "sluice" in server.cli("info", "everything")
    with Server(name, module=MODULE, module_args=["bf-compat", "yes"]) as server:
        assert server.client.config_get("sluice.bf-compat") == {"sluice.bf-compat": "yes"}
    with pytest.raises(ServerError, match="(?s)nonsense.*is no argument of the module"):
        with Server(name, module=MODULE, module_args=["nonsense"]):
            pass


@both
def test_cluster(name: str) -> None:
    with cluster(3, 3, name, module=MODULE) as nodes:
        client = nodes.connect()

        def ask(*words: Any) -> Any:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]

        for i in range(30):
            assert ask("SLUICE.INSERT", f"k{i}", "WINDOW", "10m", "ITEMS", "a", "b") == [1, 1]
        for key in ("{tag}a", "{tag}b"):
            ask("SLUICE.RESERVE", key, "EXPECT", 100, "SEED", 1)
            ask("SLUICE.MADD", key, key)
        ask("SLUICE.MERGE", "{tag}a", "{tag}b")
        assert ask("SLUICE.MEXISTS", "{tag}a", "{tag}a", "{tag}b") == [1, 1]
        source = nodes.primary_of("{tag}a")
        with pytest.raises(redis.ResponseError, match="same slot"):
            source.command("SLUICE.MERGE", "{tag}a", "k1", "k2", "k3", "k4")
        ask("SLUICE.CLAIM", "{tag}a", "c", "TTL", 60000, "TOKEN", "t")
        ask("SLUICE.INSERT", "{tag}w", "WINDOW", "10m", "ITEMS", "a")

        # The slot moves to another node, with its keys.
        target = next(node for node in nodes.nodes[:3] if node is not source)
        keys = [b"{tag}a", b"{tag}b", b"{tag}w"]
        before = state(source, keys)
        slot = source.command("CLUSTER", "KEYSLOT", "{tag}a")
        ids = {node.port: node.cli("cluster", "myid") for node in (source, target)}
        target.cli("cluster", "setslot", slot, "importing", ids[source.port])
        source.cli("cluster", "setslot", slot, "migrating", ids[target.port])
        moved = source.cli("cluster", "getkeysinslot", slot, 10).split()
        assert sorted(moved) == sorted(key.decode() for key in keys)
        source.cli("migrate", HOST, target.port, "", 0, 5000, "keys", *moved)
        for node in (target, source):
            node.cli("cluster", "setslot", slot, "node", ids[target.port])
        wait_until(lambda: nodes.primary_of("{tag}a") is target, "the slot has moved")
        after = state(target, keys)
        # MIGRATE sends what is left to live, in ms. A window holds its expiry, which the journey has moved.
        assert [after[key][0] for key in keys[:2]] == [before[key][0] for key in keys[:2]]
        assert all(abs(after[key][1] - before[key][1]) < 1000 for key in keys)
        client.close()
        client = nodes.connect()
        assert ask("SLUICE.MADD", "{tag}a", "{tag}a", "c", "d") == [0, 2, 1]
        assert ask("SLUICE.MADD", "{tag}w", "a", "b") == [0, 1]
        assert ask("SLUICE.CONFIRM", "{tag}a", "c", "TOKEN", "t") == 1
        for primary in nodes.nodes[:3]:
            for replica in nodes.replicas_of(primary):
                replica.wait_for_sync(primary)
                replica.command("READONLY")
                assert state(replica) == state(primary)
        client.close()


@both
def test_command_line_client_gets_answers(name: str) -> None:
    with Server(name, module=MODULE) as server:
        assert server.cli("SLUICE.RESERVE", "k") == "OK"
        assert server.cli("SLUICE.MADD", "k", "a", "a").split() == ["1", "0"]
        said = subprocess.run(
            [server.tool("cli"), "-p", str(server.port), "--bigkeys"], capture_output=True, text=True, check=False
        )
        assert said.returncode == 0
        assert server.client.type("k") == b"sluiceflt"
        assert [key for key in server.client.scan_iter(_type="sluiceflt")] == [b"k"]
        assert server.client.object("ENCODING", "k") in (b"raw", "raw")
