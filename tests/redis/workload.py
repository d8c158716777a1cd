"""Random commands of the module over a few keys, the same for the same seed, and what keys hold as digests."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterable
from typing import Any

import redis

from server import Server

FULL = os.environ.get("SLUICE_COUNTS", "short") == "full"

Word = str | int | float | bytes
Words = tuple[Word, ...]


def count(short: int, full: int) -> int:
    """SLUICE_COUNTS=full runs the long tests."""
    return full if FULL else short


# Every kind of key, by name: the words after RESERVE key.
MAKINGS: dict[str, Words] = {
    "time": ("WINDOW", "1m"),
    "time:short": ("WINDOW", "2s"),
    "time:rate": ("WINDOW", "10m", "RATE", "2/s"),
    "time:expect": ("WINDOW", "1m", "EXPECT", 200),
    "time:memory": ("WINDOW", "1m", "EXPECT", 200, "MEMORY", "16KiB"),
    "time:refresh": ("WINDOW", "1m", "REFRESH"),
    "time:audit": ("WINDOW", "1m", "AUDIT", "1/4"),
    "time:exact": ("WINDOW", "1m", "FILTER", "exact-window", "EXPECT", 100),
    "time:apbf": ("WINDOW", "1m", "FILTER", "apbf", "EXPECT", 100),
    "time:apbbf": ("WINDOW", "1m", "FILTER", "apbbf", "EXPECT", 100),
    "time:timing": ("WINDOW", "1m", "FILTER", "timing", "EXPECT", 100),
    "time:timer": ("WINDOW", "1m", "FILTER", "timer", "EXPECT", 100),
    "count": ("WINDOW", 300),
    "count:refresh": ("WINDOW", 200, "REFRESH", "FPR", "1e-3"),
    "count:cohort": ("WINDOW", 200, "FILTER", "cohort"),
    "count:audit": ("WINDOW", 200, "AUDIT", "1/2"),
    "forever": (),
    "forever:audit": ("AUDIT", "1/2"),
    "forever:expect": ("EXPECT", 200, "SEED", 7),
    "forever:memory": ("EXPECT", 200, "MEMORY", "4KiB"),
    "forever:exact": ("FILTER", "exact"),
    "forever:bloom": ("FILTER", "bloom", "layout", "classic", "EXPECT", 300, "SEED", 7),
    "forever:bloom2": ("FILTER", "bloom", "layout", "classic", "EXPECT", 300, "SEED", 7),
    "forever:counting": ("FILTER", "counting", "EXPECT", 300),
    "forever:dynamic": ("FILTER", "dynamic", "EXPECT", 50),
    "forever:growing": ("FILTER", "growing", "EXPECT", 50, "SEED", 7),
    "forever:growing2": ("FILTER", "growing", "EXPECT", 50, "SEED", 7),
    "forever:stable": ("FILTER", "stable", "EXPECT", 100),
    "forever:reservoir": ("FILTER", "reservoir", "EXPECT", 100),
    "forever:none": ("FILTER", "none"),
}
NAMES = tuple(MAKINGS)
TOKENS = ("alice", "bob", b"\0\xff")


class Workload:
    """Random commands. Some of them are errors: of a key that does not exist, say."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def start(self) -> list[Words]:
        """Makes every key."""
        return [("SLUICE.RESERVE", name, *making) for name, making in MAKINGS.items()]

    def batch(self, longest: int = 10) -> list[Words]:
        return [self.command() for _ in range(self.rng.randint(1, longest))]

    def command(self) -> Words:
        rng = self.rng
        key = rng.choice(NAMES)
        match rng.choices(range(12), (20, 20, 20, 8, 8, 8, 16, 4, 4, 4, 6, 2))[0]:
            case 0:
                return ("SLUICE.ADD", key, self._item(), *self._at())
            case 1:
                return ("SLUICE.MADD", key, *self._items())
            case 2:
                return ("SLUICE.INSERT", key, *MAKINGS[key], *self._at(), "ITEMS", *self._items())
            case 3:
                return ("SLUICE.MEXISTS", key, *self._items())
            case 4:
                return ("SLUICE.MFORGET", key, *self._items())
            case 5:
                return ("SLUICE.FORGET", key, self._item())
            case 6:
                return self._claim(key)
            case 7:
                return self._merge(key)
            case 8:
                return rng.choice(
                    (("EXPIRE", key, 1000), ("PEXPIRE", key, rng.randint(1, 3000)), ("PERSIST", key))
                )
            case 9:
                return rng.choice((("DEL", key), ("UNLINK", key), ("RENAME", rng.choice(NAMES), key)))
            case 10:
                return ("SLUICE.RESERVE", key, *MAKINGS[key])
            case _:
                return ("COPY", rng.choice(NAMES), key, "REPLACE")

    def _item(self) -> Word:
        return self.rng.randrange(400)

    def _items(self) -> list[Word]:
        # More than are judged at once, now and then.
        size = self.rng.choice((1, 2, 5, 20, 60, 60, 1100 if self.rng.random() < 0.2 else 3))
        return [self.rng.randrange(400 if size < 1000 else 3000) for _ in range(size)]

    def _at(self) -> Words:
        if self.rng.random() < 0.7:
            return ()
        now = time.time_ns() // 1_000_000
        return ("AT", now - self.rng.choice((0, 5, 500, 1900, 30_000, 59_000, 61_000, 10**7, -900)))

    def _merge(self, key: str) -> Words:
        groups = (("forever:bloom", "forever:bloom2"), ("forever:growing", "forever:growing2"))
        sources = list(self.rng.choice(groups)) if self.rng.random() < 0.8 else [key]
        self.rng.shuffle(sources)
        to = self.rng.choice((sources[0], "merged", key))
        return ("SLUICE.MERGE", to, *sources)

    def _claim(self, key: str) -> Words:
        rng = self.rng
        token = ("TOKEN", rng.choice(TOKENS))
        lease = ("TTL", rng.choice((1, 20, 1000, 60_000)))
        match rng.randrange(7):
            case 0 | 1:
                return ("SLUICE.CLAIM", key, self._item(), *lease, *token, *self._at())
            case 2:
                return ("SLUICE.MCLAIM", key, *lease, *token, *self._at(), "ITEMS", *self._items())
            case 3:
                return ("SLUICE.CONFIRM", key, self._item(), *token, *self._at())
            case 4:
                return ("SLUICE.MCONFIRM", key, *token, *self._at(), "ITEMS", *self._items())
            case 5:
                return ("SLUICE.RELEASE", key, self._item(), *token)
            case _:
                return ("SLUICE.MRELEASE", key, *token, "ITEMS", *self._items())


def run(server: Server, commands: Iterable[Words], transaction: bool = False) -> list[Any]:
    """Their answers; an error is an answer."""
    pipe = server.client.pipeline(transaction=transaction)
    for words in commands:
        pipe.execute_command(*words)  # type: ignore[no-untyped-call]
    return list(pipe.execute(raise_on_error=False))


def run_script(server: Server, commands: Iterable[Words]) -> None:
    """The same commands, in one script."""
    flat: list[Word] = []
    sizes = []
    for words in commands:
        sizes.append(len(words))
        flat += words
    script = """
        local at = 1
        local sizes = tonumber(ARGV[1])
        local first = sizes + 2
        for i = 1, sizes do
            local size = tonumber(ARGV[i + 1])
            redis.pcall(unpack(ARGV, first, first + size - 1))
            first = first + size
        end"""
    server.command("EVAL", script, 0, len(sizes), *sizes, *flat)


State = dict[bytes, tuple[bytes, int]]


def state(server: Server, keys: Iterable[bytes] | None = None) -> State:
    """The digest of every key, and when it expires."""
    names = sorted(server.client.keys("*") if keys is None else keys)  # type: ignore[arg-type]
    pipe = server.client.pipeline(transaction=False)
    for name in names:
        pipe.execute_command("DEBUG", "DIGEST-VALUE", name)  # type: ignore[no-untyped-call]
        pipe.execute_command("PEXPIRETIME", name)  # type: ignore[no-untyped-call]
    answers = pipe.execute()
    return {
        name: (_bytes(answers[2 * i][0]), answers[2 * i + 1])
        for i, name in enumerate(names)
        if answers[2 * i + 1] != -2
    }


def _bytes(digest: bytes | str) -> bytes:
    return digest if isinstance(digest, bytes) else digest.encode()


def differences(wanted: State, found: State, still: State) -> dict[bytes, Any]:
    """What differs. `still` is what `wanted` is a little later: keys that expire meanwhile do not count."""
    return {
        name: (wanted.get(name), found.get(name))
        for name in wanted.keys() | found.keys()
        if wanted.get(name) == still.get(name) and wanted.get(name) != found.get(name)
        # It expires while `found` is asked, or before.
        and not (name not in still and 0 < found[name][1] < time.time() * 1000)
        and not (name not in found and 0 < wanted[name][1] < time.time() * 1000)
    }


def complaints(server: Server) -> list[str]:
    """Warnings of the module in its log, and those of the server about what the module has written. Others,
    such as of links that break, come whatever a module does."""
    marks = ("sluice:", "CRITICAL", "Internal error", "Bad data format", "orrupt", "Error loading", "Short read")
    return [line for line in server.log().splitlines() if any(mark in line for mark in marks)]


def assert_quiet(*servers: Server) -> None:
    """Nothing was warned of, and no effect was refused."""
    for server in servers:
        assert complaints(server) == []
        assert server.info("stats")["unexpected_error_replies"] == 0


def is_error(answer: Any) -> bool:
    return isinstance(answer, redis.RedisError)


class Writers:
    """Three clients that add items to the key `k`, claim, and confirm half of what they claimed, until the server is
    gone; `check` asks a server whether all that was acknowledged is still known."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self.claimed: list[int] = []
        self.confirmed: list[int] = []
        self._threads: list[threading.Thread] = []

    def start(self, server: Server) -> None:
        clients = [server.connect() for _ in range(3)]
        # Items that nobody has added so far.
        first = max((*self.items, *self.claimed, 0)) + 1
        self._threads = [
            threading.Thread(target=self._write, args=(client, first + i * 1_000_000))
            for i, client in enumerate(clients)
        ]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Waits until all of them have noticed that the server is gone."""
        for thread in self._threads:
            thread.join()

    def check(self, server: Server) -> None:
        assert set(server.command("SLUICE.MEXISTS", "k", *self.items)) == {1}
        known = set(self.confirmed)
        answers = server.command("SLUICE.MEXISTS", "k", *(f"c{at}" for at in self.claimed))
        for at, answer in zip(self.claimed, answers, strict=True):
            # A confirmation that was not acknowledged may have happened.
            assert answer == 1 if at in known else answer in (1, 2) if at % 2 else answer == 2

    def _write(self, client: redis.Redis, at: int) -> None:
        try:
            while True:
                items = list(range(at, at + 7))
                client.execute_command("SLUICE.MADD", "k", *items)  # type: ignore[no-untyped-call]
                self.items.extend(items)
                claim = f"c{at}"
                client.execute_command("SLUICE.CLAIM", "k", claim, "TTL", 600000, "TOKEN", "t")  # type: ignore[no-untyped-call]
                self.claimed.append(at)
                if at % 2:
                    client.execute_command("SLUICE.CONFIRM", "k", claim, "TOKEN", "t")  # type: ignore[no-untyped-call]
                    self.confirmed.append(at)
                at += 7
        except (redis.ConnectionError, redis.TimeoutError):
            pass
