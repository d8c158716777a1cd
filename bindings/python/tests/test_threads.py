"""One Seen in several threads: every key is let through exactly once, and others run meanwhile."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from sluice import Seen

COUNT = 200_000


def kinds() -> list[Any]:
    texts = [f"user-{number}" for number in range(COUNT)]
    return [
        pytest.param(texts, id="list"),
        pytest.param(np.array(texts), id="buffer"),
        pytest.param(np.array(texts, dtype=object), id="objects"),
    ]


@pytest.mark.parametrize("keys", kinds())
@pytest.mark.parametrize("window", [None, "1h"])
def test_each_key_is_let_through_by_one_thread(keys: Any, window: str | None) -> None:
    seen = Seen(window=window, seed=3)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: seen.observe(keys), range(4)))
    through = np.sum(answers, axis=0)
    # All but those that the filter takes for others: 2e5 keys at 1e-6.
    assert (through == 1).sum() >= COUNT - 5
    assert through.max() == 1


def test_all_calls_at_once() -> None:
    seen = Seen(seed=3)
    other = Seen(seed=3)
    other.observe(np.arange(1000))
    stop = threading.Event()
    failures: list[BaseException] = []

    def repeat(call: Any) -> None:
        try:
            while not stop.is_set():
                call()
        except BaseException as error:
            failures.append(error)

    calls = [
        lambda: seen.observe(np.arange(50_000)),
        lambda: seen.observe([str(number) for number in range(5000)]),
        lambda: [seen.first(number) for number in range(1000)],
        lambda: seen.contains("a"),
        lambda: seen.stats,
        lambda: repr(seen),
        lambda: seen.copy(),
        lambda: Seen.from_bytes(seen.to_bytes()),
        lambda: seen.merge(other),
        lambda: other.merge(seen),
        lambda: seen.forget("5"),
        seen.clear,
    ]
    threads = [threading.Thread(target=repeat, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    time.sleep(1)  # how long they are let run, not what they wait for
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert failures == []


def test_the_gil_is_released() -> None:
    """A counting thread goes on while buffers are judged."""
    keys = np.random.default_rng(1).integers(0, 2**60, 3_000_000)
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    seen = Seen(keys=len(keys))
    thread.start()
    before = counted
    seen.observe(keys)
    during = counted - before
    done.set()
    thread.join()
    # With the GIL held it would count a few times at most, when the call begins and ends.
    assert during > 100


def test_a_list_that_another_thread_changes() -> None:
    keys = [f"key-{number}" for number in range(COUNT)]
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for at in range(0, COUNT, 1000):
                keys[at] = f"other-{at}-{time.monotonic_ns()}"

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20):
            assert len(Seen().observe(keys)) == COUNT
    finally:
        stop.set()
        thread.join()
