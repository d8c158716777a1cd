"""The commands of RedisBloom, through the clients that people use for them: redis-py here, and those of Node."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from test_node import node

from server import HOST, MODULE, NAMES, Server, both, needs_module, wait_until

pytestmark = needs_module
COMPAT = ("bf-compat", "yes")


@pytest.fixture(params=NAMES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(request.param, module=MODULE, module_args=COMPAT) as started:
        yield started


def problem(server: Server, *words: str | int | float | bytes) -> str:
    """The error of a command, without ERR: redis-py leaves that out."""
    with pytest.raises(redis.ResponseError) as raised:
        server.command(*words)
    return str(raised.value)


def raw(server: Server, *words: str, protocol: int = 2) -> bytes:
    """The bytes of an answer, as they come over the wire; with protocol 3, after those of HELLO."""
    with socket.create_connection((HOST, server.port), 30) as connection:
        if protocol == 3:
            connection.sendall(b"HELLO 3\r\n")
        connection.sendall((" ".join(words) + "\r\nECHO the-end\r\n").encode())
        answer = b""
        while not answer.endswith(b"$7\r\nthe-end\r\n"):
            part = connection.recv(65536)
            assert part
            answer += part
    return answer.removesuffix(b"$7\r\nthe-end\r\n")


def test_redis_py_in_both_protocols(server: Server) -> None:
    for protocol in (2, 3):
        client = server.connect(protocol=protocol, decode_responses=True)
        client.flushall()
        bloom: Any = client.bf()
        assert bloom.reserve("visits", 0.001, 1000) in (True, "OK")
        assert bloom.add("visits", "a") == 1
        assert bloom.add("visits", "a") == 0
        assert bloom.madd("visits", "a", "b", "c") == [0, 1, 1]
        assert bloom.exists("visits", "b") == 1
        assert bloom.exists("visits", "x") == 0
        assert bloom.mexists("visits", "a", "x") == [1, 0]
        assert bloom.insert("made", ["a", "b", "a"], capacity=10, error=0.01, expansion=4) == [1, 1, 0]
        assert bloom.card("visits") == 3
        assert bloom.card("nothing") == 0
        info = bloom.info("made")
        shown = info if isinstance(info, dict) else vars(info)
        assert list(shown.values()) == [10, *server.command("BF.INFO", "made", "SIZE"), 1, 2, 4]
        # Booleans in RESP3, numbers in RESP2.
        kind = bool if protocol == 3 else int
        for answer in (
            client.execute_command("BF.ADD", "kinds", "a"),
            client.execute_command("BF.MADD", "kinds", "a")[0],
            client.execute_command("BF.EXISTS", "kinds", "a"),
            client.execute_command("BF.MEXISTS", "none", "a")[0],
            client.execute_command("BF.INSERT", "kinds", "ITEMS", "a")[0],
        ):
            assert type(answer) is kind


def test_replies_byte_by_byte(server: Server) -> None:
    assert raw(server, "BF.RESERVE", "a", "0.01", "100") == b"+OK\r\n"
    assert raw(server, "BF.ADD", "a", "x") == b":1\r\n"
    assert raw(server, "BF.MADD", "a", "x", "y") == b"*2\r\n:0\r\n:1\r\n"
    assert raw(server, "BF.INFO", "a", "items") == b"*1\r\n:2\r\n"
    info = raw(server, "BF.INFO", "a")
    assert info.startswith(b"*10\r\n+Capacity\r\n:100\r\n+Size\r\n:")
    assert info.endswith(b"+Number of filters\r\n:1\r\n+Number of items inserted\r\n:2\r\n+Expansion rate\r\n:2\r\n")
    assert raw(server, "BF.RESERVE", "n", "0.01", "1", "NONSCALING") == b"+OK\r\n"
    assert raw(server, "BF.MADD", "n", "a", "a", "b", "c") == b"*3\r\n:1\r\n:0\r\n-ERR non scaling filter is full\r\n"
    assert raw(server, "BF.ADD", "n", "b") == b"-ERR non scaling filter is full\r\n"
    assert raw(server, "BF.ADD", "n", "a") == b":0\r\n"
    assert raw(server, "BF.INFO", "n", "EXPANSION") == b"*1\r\n$-1\r\n"
    assert raw(server, "BF.ADD", "a", "x", protocol=3).endswith(b"#f\r\n")
    assert b"%5\r\n+Capacity\r\n:100\r\n" in raw(server, "BF.INFO", "a", protocol=3)


def test_errors_have_the_texts_of_redisbloom(server: Server) -> None:
    server.command("SET", "text", "x")
    server.command("BF.RESERVE", "there", 0.01, 100)
    for words, text in {
        ("BF.RESERVE", "there", 0.01, 100): "item exists",
        ("BF.RESERVE", "k", "x", 100): "bad error rate",
        ("BF.RESERVE", "k", "nan", 100): "bad error rate",
        ("BF.RESERVE", "k", 0, 100): "(0 < error rate range < 1) ",
        ("BF.RESERVE", "k", 1, 100): "(0 < error rate range < 1) ",
        ("BF.RESERVE", "k", "inf", 100): "(0 < error rate range < 1) ",
        ("BF.RESERVE", "k", 0.01, "x"): "bad capacity",
        ("BF.RESERVE", "k", 0.01, 1 << 64): "bad capacity",
        ("BF.RESERVE", "k", 0.01, 0): "(capacity should be larger than 0)",
        ("BF.RESERVE", "k", 0.01, -1): "(capacity should be larger than 0)",
        ("BF.RESERVE", "k", 0.01, 10, "EXPANSION"): "no expansion",
        ("BF.RESERVE", "k", 0.01, 10, "EXPANSION", "x"): "bad expansion",
        ("BF.RESERVE", "k", 0.01, 10, "EXPANSION", 0): "expansion should be greater or equal to 1",
        ("BF.RESERVE", "k", 0.01, 10, "NONSCALING", "EXPANSION", 2): "Nonscaling filters cannot expand",
        ("BF.RESERVE", "k", 0.01): "wrong number of arguments for 'bf.reserve' command",
        ("BF.RESERVE", "k", 0.01, 1, 2, 3, 4, 5): "wrong number of arguments for 'bf.reserve' command",
        ("BF.ADD", "k"): "wrong number of arguments for 'bf.add' command",
        ("BF.ADD", "k", 1, 2): "wrong number of arguments for 'bf.add' command",
        ("BF.EXISTS", "k", 1, 2): "wrong number of arguments for 'bf.exists' command",
        ("BF.INSERT", "k", "NOCREATE", "ITEMS", "a"): "not found",
        ("BF.INSERT", "k", "NOCREATE", "ITEMS"): "wrong number of arguments for 'bf.insert' command",
        ("BF.INSERT", "k", "NOCREATE", "NONSCALING"): "wrong number of arguments for 'bf.insert' command",
        ("BF.INSERT", "k", "NOCREATE", "CAPACITY"): "wrong number of arguments for 'bf.insert' command",
        ("BF.INSERT", "k", "SOMETHING", "ITEMS", "a"): "Unknown argument received",
        ("BF.INSERT", "k", "CAPACITY", "x", "ITEMS", "a"): "Bad capacity",
        ("BF.INSERT", "k", "ERROR", "x", "ITEMS", "a"): "Bad error rate",
        ("BF.INSERT", "k", "EXPANSION", "x", "ITEMS", "a"): "Bad expansion",
        ("BF.INSERT", "k", "EXPANSION", 0, "ITEMS", "a"): "Bad argument received",
        ("BF.INSERT", "k", "ERROR", 1, "ITEMS", "a"): "Bad argument received",
        ("BF.INSERT", "k", "CAPACITY", 0, "ITEMS", "a"): "Bad argument received",
        ("BF.INFO", "k"): "not found",
        ("BF.INFO", "there", "x"): "Invalid information value",
        ("BF.INFO", "there", "SIZE", "ITEMS"): "wrong number of arguments for 'bf.info' command",
    }.items():
        assert problem(server, *words) == text, words
        assert server.command("EXISTS", "k") == 0
    for words in (("ADD", "text", "a"), ("MADD", "text", "a"), ("INFO", "text"), ("CARD", "text")):
        assert problem(server, "BF." + words[0], *words[1:]).startswith("WRONGTYPE")
    assert problem(server, "BF.RESERVE", "text", 0.01, 100).startswith("WRONGTYPE")
    assert server.command("BF.EXISTS", "text", "a") == 0


def test_some_errors_have_no_code(server: Server) -> None:
    """As those of RedisBloom: clients that show the code would show another text."""
    server.command("BF.RESERVE", "there", 0.01, 100)
    server.command("SET", "text", "x")
    for words, answer in {
        ("BF.RESERVE", "k", "0.01", "10", "NONSCALING", "EXPANSION", "2"): b"-Nonscaling filters cannot expand\r\n",
        ("BF.RESERVE", "k", "x", "10"): b"-ERR bad error rate\r\n",
        ("BF.INSERT", "k", "CAPACITY", "x", "ITEMS", "a"): b"-Bad capacity\r\n",
        ("BF.INSERT", "k", "ERROR", "x", "ITEMS", "a"): b"-Bad error rate\r\n",
        ("BF.INSERT", "k", "EXPANSION", "x", "ITEMS", "a"): b"-Bad expansion\r\n",
        ("BF.INSERT", "k", "ERROR", "1", "ITEMS", "a"): b"-Bad argument received\r\n",
        ("BF.INSERT", "k", "SOMETHING", "ITEMS", "a"): b"-Unknown argument received\r\n",
        ("BF.INFO", "there", "x"): b"-Invalid information value\r\n",
        ("BF.SCANDUMP", "there", "x"): b"-Second argument must be numeric\r\n",
        ("BF.LOADCHUNK", "none", "x", "y"): b"-ERR Second argument must be numeric\r\n",
        ("BF.LOADCHUNK", "none", "5", "y"): b"-ERR not found\r\n",
        ("BF.LOADCHUNK", "none", "1", "y"): b"-ERR received bad data\r\n",
        ("BF.LOADCHUNK", "text", "1", "y"): b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    }.items():
        assert raw(server, *words) == answer, words


def test_growth_and_the_error_that_was_asked_for(server: Server) -> None:
    for expansion, filters in ((1, 25), (2, 5), (4, 4)):
        key = f"by{expansion}"
        server.command("BF.RESERVE", key, 1e-6, 4, "EXPANSION", expansion)
        assert server.command("BF.MADD", key, *range(100)) == [1] * 100
        assert server.command("BF.MEXISTS", key, *range(100)) == [1] * 100
        assert server.command("BF.INFO", key, "FILTERS") == [filters]
        assert server.command("BF.INFO", key, "EXPANSION") == [expansion]
    # A key that BF.ADD makes has 1 % and 100 items. 20,000 items and 20,000 others: the share of false
    # positives has a standard error of 0.07 % at 1 %.
    for start in range(0, 20_000, 1000):
        server.command("BF.MADD", "standard", *range(start, start + 1000))
    assert server.command("BF.INFO", "standard")[1] == 100 * (2**8 - 1)
    wrong = sum(sum(server.command("BF.MEXISTS", "standard", *range(-s - 1000, -s))) for s in range(0, 20_000, 1000))
    assert wrong / 20_000 < 0.013
    assert 19_700 < server.command("BF.CARD", "standard") <= 20_000
    # A large factor is shown as it was given, and does not take all memory at once.
    server.command("BF.RESERVE", "steep", 0.001, 1024, "EXPANSION", 30_000)
    server.command("BF.MADD", "steep", *range(5000))
    assert server.command("BF.INFO", "steep", "EXPANSION") == [30_000]
    assert server.command("BF.INFO", "steep", "SIZE")[0] < 1 << 20


def test_nonscaling(server: Server) -> None:
    server.command("BF.RESERVE", "n", 0.000001, 600, "NONSCALING")
    assert server.command("BF.MADD", "n", *(i % 599 for i in range(5000))) == [1] * 599 + [0] * 4401
    answer = server.command("BF.MADD", "n", *range(5), "one", *range(5), "one", 7, "two", "three", 8)
    assert answer[:13] == [0] * 5 + [1] + [0] * 7
    assert len(answer) == 14
    assert str(answer[13]) == "non scaling filter is full"
    assert server.command("BF.CARD", "n") == 600
    assert server.command("BF.EXISTS", "n", "three") == 0
    info = server.command("BF.INFO", "n")
    assert info[1] == 600
    assert info[-1] is None
    server.command("BF.RESERVE", "fixed", 0.001, 1000, "NONSCALING")
    server.command("BF.RESERVE", "scaling", 0.001, 1000)
    assert server.command("BF.INFO", "fixed", "SIZE") < server.command("BF.INFO", "scaling", "SIZE")
    for error in (0.99, 0.9999999999999999):
        assert server.command("BF.INSERT", f"loose{error}", "ERROR", error, "NONSCALING", "ITEMS", "a") == [1]
    assert server.command("BF.INSERT", "both", "NONSCALING", "EXPANSION", 2, "ITEMS", "a") == [1]
    assert server.command("BF.INFO", "both", "EXPANSION") == [None]


def test_arguments_at_their_limits_are_errors_or_work(server: Server) -> None:
    limits = (0, 1, -1, 2**31 - 1, 2**31 + 1, 2**32 + 1, 2**63 - 1, "nan", "inf", "1e-300", "1e-400", "")
    server.command("CONFIG", "SET", "maxmemory", "200mb")
    for limit in limits:
        for words in (
            ("BF.RESERVE", "k", limit, 100),
            ("BF.RESERVE", "k", 0.01, limit),
            ("BF.RESERVE", "k", 0.01, 10, "EXPANSION", limit),
            ("BF.INSERT", "k", "CAPACITY", limit, "ITEMS", *range(200)),
            ("BF.INSERT", "k", "ERROR", limit, "ITEMS", *range(200)),
            ("BF.INSERT", "k", "EXPANSION", limit, "ITEMS", *range(200)),
        ):
            server.command("DEL", "k")
            try:
                server.command(*words)
                server.command("BF.ADD", "k", "a")
                assert server.command("BF.EXISTS", "k", "a") == 1
            except redis.ResponseError:
                pass
            assert server.client.ping()
    assert problem(server, "BF.RESERVE", "k", 0.01, 10**12).startswith("Insufficient memory to create filter")
    assert problem(server, "BF.RESERVE", "k", 0.01, 10**18).startswith("could not create filter")
    assert server.command("EXISTS", "k") == 0


def test_a_filter_that_may_not_grow_still_knows_its_items(server: Server) -> None:
    server.command("BF.RESERVE", "k", 0.0001, 100_000, "EXPANSION", 16)
    for start in range(0, 99_000, 1000):
        server.command("BF.MADD", "k", *range(start, start + 1000))
    used = server.info("memory")["used_memory"]
    server.command("CONFIG", "SET", "maxmemory", used + (2 << 20))
    new = server.command("BF.MADD", "k", *(f"n{i}" for i in range(2000)))
    taken = [answer for answer in new if answer == 1]
    assert 990 < len(taken) <= 1000 + 100
    assert str(new[-1]).startswith("OOM") or "no memory" in str(new[-1])
    assert server.command("BF.MADD", "k", *range(10)) == [0] * 10
    server.command("CONFIG", "SET", "maxmemory", 0)
    assert set(server.command("BF.MADD", "k", *(f"n{i}" for i in range(2000)))) <= {0, 1}


def digest(server: Server) -> Any:
    return server.command("DEBUG", "DIGEST")


@both
def test_what_a_key_was_told_survives(name: str) -> None:
    with (
        Server(name, "appendonly yes", module=MODULE, module_args=COMPAT) as primary,
        # A replica does what its primary did, without commands of this name.
        Server(name, module=MODULE) as replica,
    ):
        replica.replicaof(primary)
        primary.command("BF.RESERVE", "grows", 0.01, 10, "EXPANSION", 30_000)
        primary.command("BF.MADD", "grows", *range(100))
        primary.command("BF.INSERT", "fixed", "CAPACITY", 5, "NONSCALING", "ITEMS", *range(9))
        primary.command("BF.ADD", "standard", "x")

        def shown(key: str) -> Any:
            return primary.command("BF.INFO", key)

        told = {key: shown(key) for key in ("grows", "fixed", "standard")}
        assert told["grows"][-1] == 30_000
        assert told["fixed"][-1] is None
        replica.wait_for_sync(primary)
        assert digest(replica) == digest(primary)
        for key, info in told.items():
            primary.command("COPY", key, "copy")
            assert shown("copy") == info
            primary.command("DEL", "copy")
            primary.command("RESTORE", "copy", 0, primary.command("DUMP", key))
            assert shown("copy") == info
            primary.command("DEL", "copy")
        before = digest(primary)
        primary.command("DEBUG", "RELOAD")
        assert digest(primary) == before
        primary.restart()
        assert digest(primary) == before
        assert {key: shown(key) for key in told} == told
        assert problem(primary, "BF.ADD", "fixed", "another") == "non scaling filter is full"
        replica.wait_for_sync(primary)
        assert digest(replica) == before


@both
def test_an_append_only_file_without_a_preamble_keeps_it_too(name: str) -> None:
    lines = ("appendonly yes", "aof-use-rdb-preamble no")
    with Server(name, *lines, module=MODULE, module_args=COMPAT) as server:
        server.command("BF.RESERVE", "grows", 0.01, 10, "EXPANSION", 3)
        server.command("BF.INSERT", "fixed", "CAPACITY", 5, "NONSCALING", "ITEMS", *range(9))
        before = digest(server)
        server.command("BGREWRITEAOF")
        wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == 0, "the file is rewritten")
        assert server.info("persistence")["aof_last_bgrewrite_status"] == "ok"
        server.restart()
        assert digest(server) == before
        assert server.command("BF.INFO", "grows", "EXPANSION") == [3]
        assert server.command("BF.INFO", "fixed", "EXPANSION") == [None]


def test_a_key_in_chunks(server: Server) -> None:
    bloom: Any = server.connect().bf()
    bloom.reserve("from", 0.001, 2_000_000, expansion=3)
    server.command("BF.MADD", "from", *range(1000))
    chunks = []
    cursor = 0
    while True:
        cursor, chunk = bloom.scandump("from", cursor)
        if cursor == 0:
            break
        chunks.append((cursor, chunk))
    assert len(chunks) > 2
    for cursor, chunk in chunks:
        bloom.loadchunk("to", cursor, chunk)
    assert server.command("BF.MEXISTS", "to", *range(1000)) == [1] * 1000
    assert server.command("BF.INFO", "to") == server.command("BF.INFO", "from")
    assert server.command("DEBUG", "DIGEST-VALUE", "to") == server.command("DEBUG", "DIGEST-VALUE", "from")
    for words, text in {
        ("BF.SCANDUMP", "nothing", 0): "not found",
        ("BF.SCANDUMP", "from", "x"): "Second argument must be numeric",
        ("BF.SCANDUMP", "from"): "wrong number of arguments for 'bf.scandump' command",
        ("BF.LOADCHUNK", "other", "x", "y"): "Second argument must be numeric",
        ("BF.LOADCHUNK", "other", 1, "y"): "received bad data",
        ("BF.LOADCHUNK", "other", 1): "wrong number of arguments for 'bf.loadchunk' command",
    }.items():
        assert problem(server, *words) == text


# A module that has two of the names.
OTHER = """
#include <redismodule.h>
static int answer(RedisModuleCtx* ctx, RedisModuleString** argv, int argc) {
  (void)argv, (void)argc;
  return RedisModule_ReplyWithSimpleString(ctx, "another");
}
int RedisModule_OnLoad(RedisModuleCtx* ctx, RedisModuleString** argv, int argc) {
  (void)argv, (void)argc;
  if (RedisModule_Init(ctx, "other", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) return REDISMODULE_ERR;
  return RedisModule_CreateCommand(ctx, NAME, answer, "readonly", 0, 0, 0);
}
"""


@both
@pytest.mark.parametrize("taken", ["bf.reserve", "bf.card"])
def test_names_that_another_module_has_stay_with_it(name: str, taken: str, tmp_path: Path) -> None:
    header = Path(str(MODULE)).parents[2] / "redismodule"
    if not header.is_dir() or shutil.which("cc") is None:
        pytest.skip("there is no compiler, or no redismodule.h")
    (tmp_path / "other.c").write_text(OTHER)
    other = tmp_path / "other.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-w", f"-I{header}", f'-DNAME="{taken}"', "-o", other, tmp_path / "other.c"],
        check=True,
    )
    with Server(name, f"loadmodule {other}", module=MODULE, module_args=COMPAT) as server:
        assert server.command(taken, "a", "b", "c") == b"another"
        assert f"has a command {taken} already" in server.log()
        if taken == "bf.reserve":
            assert "unknown command" in problem(server, "BF.ADD", "a", "b")
        else:
            assert server.command("BF.ADD", "a", "b") == 1
        assert server.command("SLUICE.RESERVE", "s") == b"OK"


def test_keys_are_shared_with_the_other_commands(server: Server) -> None:
    server.command("BF.ADD", "bf", "a")
    assert server.command("SLUICE.ADD", "bf", "a") == 0
    assert server.command("SLUICE.ADD", "bf", "b") == 1
    assert server.command("BF.CARD", "bf") == 2
    for key, words in {"set": ("EXPECT", 1000), "open": (), "window": ("WINDOW", "10m", "RATE", "100/s")}.items():
        server.command("SLUICE.RESERVE", key, *words)
        assert server.command("BF.MADD", key, "a", "b", "a") == [1, 1, 0]
        assert server.command("BF.EXISTS", key, "a") == 1
        assert server.command("BF.CARD", key) == 2
        assert server.command("BF.INFO", key, "EXPANSION") == [None]
        assert server.command("SLUICE.EXISTS", key, "b") == 1
        assert problem(server, "BF.RESERVE", key, 0.01, 100) == "item exists"


@both
def test_only_when_it_is_asked_for(name: str) -> None:
    with Server(name, module=MODULE) as server:
        assert "unknown command" in problem(server, "BF.ADD", "a", "b")
    with Server(name, module=MODULE, module_args=COMPAT) as server:
        assert server.command("CONFIG", "GET", "sluice.bf-compat") == [b"sluice.bf-compat", b"yes"]
        assert server.cli("COMMAND", "DOCS", "bf.reserve").startswith("bf.reserve\nsummary\n")


@both
@pytest.mark.skipif(not os.environ.get("SLUICE_NODE_MODULES"), reason="SLUICE_NODE_MODULES does not name a folder")
def test_clients_of_node(name: str, tmp_path: Path) -> None:
    with Server(name, module=MODULE, module_args=COMPAT) as server:
        assert node(tmp_path, "bf.js", server.port) == [
            "redis with @redis/bloom, RESP 2: as expected",
            "redis with @redis/bloom, RESP 3: as expected",
            "ioredis: as expected",
        ]
