"""Memory per key, as docs/redis.md states it: with 1 M keys at full counts, with 100 k otherwise. Prints what it
measures (run.sh memory -s)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from server import MODULE, Server, both, needs_module

COUNT = 1_000_000 if os.environ.get("SLUICE_COUNTS", "full") == "full" else 100_000
pytestmark = needs_module

Words = tuple[bytes | str | int, ...]


def used(server: Server) -> int:
    return int(server.info("memory")["used_memory"])


def send(server: Server, commands: Iterator[Words], together: int) -> None:
    pipeline = server.client.pipeline(transaction=False)
    for number, words in enumerate(commands, 1):
        pipeline.execute_command(*words)  # type: ignore[no-untyped-call]
        if number % together == 0:
            pipeline.execute()
    pipeline.execute()


def per_key(server: Server, commands: Iterator[Words], together: int = 1000) -> float:
    """Bytes of used_memory that the commands take, divided by COUNT."""
    server.command("FLUSHALL", "SYNC")  # Valkey would free the old keys later
    before = used(server)
    send(server, commands, together)
    return (used(server) - before) / COUNT


@both
def test_a_window_takes_a_twentieth_of_set_nx_ex(name: str) -> None:
    items = [b"%016d" % i for i in range(COUNT)]

    def window() -> Iterator[Words]:
        yield ("SLUICE.RESERVE", "w", "WINDOW", "10m", "FPR", "1e-6", "RATE", f"{COUNT // 600 + 1}/s")
        for i in range(0, COUNT, 100):
            yield ("SLUICE.MADD", "w", *items[i : i + 100])

    with Server(name, module=MODULE) as server:
        plain = per_key(server, (("SET", item, 1, "NX", "EX", 3600) for item in items))
        ours = per_key(server, window(), 20)
        # At 1e-6, one item of a million is a false positive.
        assert COUNT - 10 <= server.command("SLUICE.INFO", "w", "items") <= COUNT
    print(f"\n{name}, {COUNT:,} keys: SET NX EX {plain:.1f}, a window {ours:.2f} bytes per key: {plain / ours:.1f} x")
    # What the server takes besides does not depend on the count.
    assert ours <= plain / (20 if COUNT == 1_000_000 else 15)


@both
def test_small_windows(name: str) -> None:
    def windows() -> Iterator[Words]:
        for i in range(COUNT):
            yield ("SLUICE.INSERT", b"user:%07d" % i, "WINDOW", "10m", "ITEMS", *range(10 * i, 10 * i + 10))

    with Server(name, module=MODULE) as server:
        names = per_key(server, (("SET", b"user:%07d" % i, 1, "EX", 3600) for i in range(COUNT)))
        total = per_key(server, windows(), 200)
        value = server.command("SLUICE.INFO", "user:0000001", "bytes")
        assert server.client.dbsize() == COUNT
    print(f"\n{name}, {COUNT:,} windows of 10 items: {total:.0f} bytes per key; names {names:.0f}, values {value}")
    # The figures of docs/redis.md. They may fall: then change them there.
    assert value == pytest.approx(464, abs=8)
    assert total == pytest.approx(names + value + 32, abs=12)
