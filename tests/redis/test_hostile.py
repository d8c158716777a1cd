"""Nothing that a client sends stops the server: changed and cut payloads of RESTORE, numbers at the edges of every
argument, and memory comes back after each."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
import redis

import payload as p
import snapshot
from server import MODULE, Server, both, needs_module
from test_memory import settled
from workload import MAKINGS, Word, Words, count, run, state

pytestmark = needs_module

NUMBERS = (
    "0", "1", "-1", "2147483647", "2147483649", "4294967295", "4294967297", "9223372036854775807",
    "9223372036854775808", "18446744073709551615", "NaN", "inf", "-inf", "1e-300", "1e300", "", " 1", "1 ",
    "0x10", "\0", "1/0", "999999999999999999999999",
)  # fmt: skip


def dumps(server: Server) -> dict[str, bytes]:
    """A payload of every kind of key, with items and claims."""
    for kind, making in MAKINGS.items():
        run(
            server,
            [
                ("SLUICE.RESERVE", kind, *making),
                ("PERSIST", kind),
                ("SLUICE.MADD", kind, *range(150)),
                ("SLUICE.MCLAIM", kind, "TTL", 60000, "TOKEN", "t", "ITEMS", *range(200, 210)),
                ("SLUICE.MCONFIRM", kind, "TOKEN", "t", "ITEMS", *range(200, 205)),
            ],
        )
    # With a short list, and empty.
    run(server, [("SLUICE.INSERT", "listed", "WINDOW", "10m", "ITEMS", "a"), ("SLUICE.RESERVE", "empty")])
    found = {key.decode(): server.client.dump(key) for key in server.client.keys("*")}  # type: ignore[union-attr]
    return {key: dumped for key, dumped in sorted(found.items()) if dumped is not None}


def offered(server: Server, dumped: bytes, what: str) -> bool:
    """Whether it is loaded. What is loaded can be used, written and loaded again."""
    try:
        server.client.restore("x", 0, dumped, replace=True)
    except redis.ResponseError as error:
        assert "Bad data format" in str(error) or "checksum" in str(error), what
        assert server.client.ping()
        return False
    except (redis.ConnectionError, redis.TimeoutError) as error:
        error.add_note(what)
        raise
    try:
        answers = run(
            server,
            [
                ("SLUICE.INFO", "x"),
                ("SLUICE.MEXISTS", "x", *range(20)),
                ("SLUICE.MADD", "x", *range(100, 250)),
                ("SLUICE.CLAIM", "x", "c", "TTL", 1000, "TOKEN", "t"),
                ("SLUICE.CONFIRM", "x", "c", "TOKEN", "t"),
                ("MEMORY", "USAGE", "x"),
                ("COPY", "x", "y", "REPLACE"),
                ("DEL", "y"),
            ],
        )
        assert len(answers) == 8
        server.client.persist("x")
        again = server.client.dump("x")
        assert again is not None
        before = state(server, [b"x"])
        server.client.restore("x", 0, again, replace=True)
        assert state(server, [b"x"]) == before, what
    except (redis.ConnectionError, redis.TimeoutError) as error:
        error.add_note(what)
        raise
    server.client.delete("x")
    return True


def changed_snapshots(dumped: bytes, seed: int, number: int) -> Iterator[tuple[str, bytes]]:
    """Bytes of the snapshot itself change, and its own checksums are right."""
    body, version = p.split(dumped)
    identity, values = p.module_values(body)
    whole = b"".join(value.value for value in values if isinstance(value.value, bytes))
    rng = random.Random(seed)
    for i in range(number):
        data = bytearray(whole)
        done = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            # Most of what decides lies in the header and in the sections at the end.
            size = len(data)
            at = rng.choice(
                (rng.randrange(size), rng.randrange(min(size, 160)), -rng.randrange(1, min(size, 200)))
            )
            new = rng.choice((data[at] ^ 1 << rng.randrange(8), 0, 255, 127, 128, rng.randrange(256)))
            done.append(f"byte {at} of {len(data)}: {data[at]} becomes {new}")
            data[at] = new
        if rng.random() < 0.1:
            cut = rng.randrange(len(data))
            del data[cut:]
            done.append(f"cut to {cut}")
        yield "; ".join(done), sealed(identity, version, snapshot.repaired(bytes(data)))


def sealed(identity: int, version: int, whole: bytes) -> bytes:
    parts = [whole[at : at + (1 << 20)] for at in range(0, len(whole), 1 << 20)] + [b""]
    return p.seal(p.module_body(identity, [p.Value("string", part) for part in parts]), version)


@both
def test_changed_payloads(name: str) -> None:
    with Server(name, "proto-max-bulk-len 100mb", "maxmemory 200mb", module=MODULE) as server:
        all_kinds = dumps(server)
        assert len(all_kinds) > len(MAKINGS) - 3
        # The repair repairs: unchanged bytes are what they were.
        for kind, dumped in all_kinds.items():
            body, version = p.split(dumped)
            identity, values = p.module_values(body)
            whole = b"".join(value.value for value in values if isinstance(value.value, bytes))
            assert snapshot.repaired(whole) == whole, kind
            assert offered(server, sealed(identity, version, whole), kind)
        before = settled(server)
        loaded = refused = 0
        for seed, (kind, dumped) in enumerate(all_kinds.items()):
            for what, changed in itertools.chain(
                p.value_mutations(dumped, seed, count(5, 100)),
                p.mutations(dumped, seed, count(5, 100)),
                changed_snapshots(dumped, seed, count(15, 600)),
            ):
                if offered(server, changed, f"{kind}: {what}"):
                    loaded += 1
                else:
                    refused += 1
        # Both happen: what is changed beside the structure is another filter.
        assert loaded > 20 and refused > 150, (loaded, refused)
        assert settled(server) < before + (1 << 20)


@both
def test_cut_payloads(name: str) -> None:
    with Server(name, module=MODULE) as server:
        all_kinds = dumps(server)
        before = settled(server)
        for kind in ("listed", "empty", "forever:audit", "time"):
            dumped = all_kinds[kind]
            body, version = p.split(dumped)
            identity, values = p.module_values(body)
            whole = b"".join(value.value for value in values if isinstance(value.value, bytes))
            step = max(1, len(whole) // count(60, 3000))
            for length in itertools.chain(range(0, min(len(whole), 120)), range(120, len(whole), step)):
                assert not offered(server, sealed(identity, version, snapshot.repaired(whole[:length])), f"{kind}: {length}")
            for what, changed in itertools.islice(p.cuts(dumped), 0, None, step):
                assert not offered(server, changed, f"{kind}: {what}")
        assert settled(server) < before + (1 << 20)


COMMANDS: tuple[Words, ...] = (
    ("SLUICE.RESERVE", "n", "WINDOW", "#"),
    ("SLUICE.RESERVE", "n", "WINDOW", "#s"),
    ("SLUICE.RESERVE", "n", "FPR", "#"),
    ("SLUICE.RESERVE", "n", "EXPECT", "#"),
    ("SLUICE.RESERVE", "n", "WINDOW", "10m", "RATE", "#/s"),
    ("SLUICE.RESERVE", "n", "WINDOW", "10m", "RATE", "#"),
    ("SLUICE.RESERVE", "n", "WINDOW", "10m", "EXPECT", "#"),
    ("SLUICE.RESERVE", "n", "MEMORY", "#"),
    ("SLUICE.RESERVE", "n", "WINDOW", "1m", "EXPECT", "100", "MEMORY", "#"),
    ("SLUICE.RESERVE", "n", "WINDOW", "1m", "SLACK", "#"),
    ("SLUICE.RESERVE", "n", "SEED", "#"),
    ("SLUICE.RESERVE", "n", "AUDIT", "1/#"),
    ("SLUICE.RESERVE", "n", "AUDIT", "#"),
    ("SLUICE.PLAN", "WINDOW", "#", "FPR", "#"),
    ("SLUICE.PLAN", "WINDOW", "#s", "RATE", "#/s", "MEMORY", "#"),
    ("SLUICE.PLAN", "EXPECT", "#", "MEMORY", "#"),
    *(("SLUICE.RESERVE", "n", "FILTER", filter_name, parameter, "#", *rest)
      for filter_name, parameters, rest in (
          ("bloom", ("bytes", "probes"), ()),
          ("counting", ("bytes", "probes"), ()),
          ("stable", ("bytes", "probes", "max", "decrements", "seed"), ()),
          ("reservoir", ("bytes", "filters", "threshold", "seed"), ()),
          ("growing", ("slot",), ()),
          ("dynamic", ("keys",), ()),
          ("cohort", ("slot", "generations", "bytes"), ("WINDOW", "1000")),
          ("apbf", ("k", "l", "bytes"), ("WINDOW", "1000")),
          ("apbbf", ("k", "l", "block"), ("WINDOW", "1000")),
          ("timing", ("bytes", "probes", "bits", "generations"), ("WINDOW", "1000")),
          ("timer", ("bytes", "probes", "bits", "generations"), ("WINDOW", "1000")),
      ) for parameter in parameters),
    ("SLUICE.INSERT", "n", "EXPECT", "#", "ITEMS", "a"),
    ("SLUICE.INSERT", "n", "WINDOW", "1m", "AT", "#", "ITEMS", "a"),
    ("SLUICE.ADD", "w", "a", "AT", "#"),
    ("SLUICE.ADD", "f", "a", "AT", "#"),
    ("SLUICE.EXISTS", "w", "a", "AT", "#"),
    ("SLUICE.CLAIM", "w", "a", "TTL", "#", "TOKEN", "#"),
    ("SLUICE.CLAIM", "w", "b", "TTL", "10", "TOKEN", "t", "AT", "#"),
    ("SLUICE.MCLAIM", "w", "TTL", "#", "TOKEN", "t", "AT", "#", "ITEMS", "a", "b"),
    ("SLUICE.CONFIRM", "w", "b", "TOKEN", "t", "AT", "#"),
    ("SLUICE.MCONFIRM", "w", "TOKEN", "t", "AT", "#", "ITEMS", "a"),
    ("SLUICE.INFO", "w", "#"),
    ("CONFIG", "SET", "sluice.default-fpr", "#"),
    ("CONFIG", "SET", "sluice.key-memory-limit", "#"),
    ("CONFIG", "SET", "sluice.claims-limit", "#"),
)  # fmt: skip


def filled(words: Words, number: str) -> list[Word]:
    return [word.replace("#", number) if isinstance(word, str) else word for word in words]


@both
def test_numbers_at_the_edges(name: str) -> None:
    with Server(name, "maxmemory 100mb", "maxmemory-policy noeviction", module=MODULE) as server:
        run(server, [("SLUICE.RESERVE", "w", "WINDOW", "1m"), ("PERSIST", "w"), ("SLUICE.RESERVE", "f")])
        before = settled(server)
        for words, number in itertools.product(COMMANDS, NUMBERS):
            sent = filled(words, number)
            try:
                answers = run(server, [sent])  # type: ignore[list-item]
                if not isinstance(answers[0], redis.RedisError) and words[1] == "n":
                    # What was made can be used.
                    run(server, [("SLUICE.MADD", "n", *range(50)), ("SLUICE.INFO", "n"), ("DEL", "n")])
                assert server.client.ping()
            except (redis.ConnectionError, redis.TimeoutError) as error:
                error.add_note(str(sent))
                raise
            run(server, [("CONFIG", "SET", "sluice.default-fpr", "1e-6"),
                         ("CONFIG", "SET", "sluice.key-memory-limit", "0"),
                         ("CONFIG", "SET", "sluice.claims-limit", "65536")])  # fmt: skip
        assert server.client.dbsize() == 2, server.client.keys("*")
        assert settled(server) < before + (4 << 20)


@both
def test_words_in_any_number_and_order(name: str) -> None:
    """Random words of the commands: an error or an answer, and nothing else."""
    rng = random.Random(3)
    vocabulary: list[Word] = [
        "WINDOW", "10m", "100", "FOREVER", "FPR", "0.01", "EXPECT", "RATE", "1/s", "MEMORY", "2MiB", "SLACK",
        "FILTER", "bloom", "cohort", "exact", "layout", "classic", "bytes", "REFRESH", "SEED", "1", "AUDIT", "1/2",
        "AT", "ITEMS", "TOKEN", "t", "TTL", "NOCREATE", b"\0", b"\xff" * 100, "", "k", "w", b"x" * 100_000,
    ]  # fmt: skip
    names = ["RESERVE", "PLAN", "ADD", "MADD", "INSERT", "EXISTS", "MEXISTS", "FORGET", "MFORGET", "CLAIM", "MCLAIM",
             "CONFIRM", "MCONFIRM", "RELEASE", "MRELEASE", "MERGE", "INFO", "EFFECT"]  # fmt: skip
    with Server(name, module=MODULE) as server:
        for _ in range(count(40, 1000)):
            run(
                server,
                [
                    (f"SLUICE.{rng.choice(names)}", *rng.choices(vocabulary, k=rng.randrange(9)))
                    for _ in range(100)
                ],
            )
            assert server.client.ping()
        server.client.flushall()


@both
def test_another_version_is_refused(name: str) -> None:
    with Server(name, module=MODULE) as server:
        server.command("SLUICE.INSERT", "k", "ITEMS", "a")
        dumped = server.client.dump("k")
        assert dumped is not None
        body, version = p.split(dumped)
        identity, values = p.module_values(body)
        assert identity == p.module_id("sluiceflt", 1)
        for other in (p.module_id("sluiceflt", 2), p.module_id("sluiceflt", 0)):
            with pytest.raises(redis.ResponseError):
                server.client.restore("l", 0, p.seal(p.module_body(other, values), version))
        assert "newer version of the module" in server.log()
