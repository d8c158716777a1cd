"""observe() that stops on the way: nothing that was judged or taken is lost."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sluice
from sluice import Seen

SLICE = 16384


def failing(count: int, error: BaseException) -> Iterator[str]:
    yield from (f"k{number}" for number in range(count))
    raise error


@pytest.mark.parametrize("count", [0, 5, SLICE - 1, SLICE, SLICE + 1, 40_000])
@pytest.mark.parametrize("error", [OSError(5, "gone"), KeyError("k"), KeyboardInterrupt()])
def test_an_iterator_that_raises(count: int, error: BaseException) -> None:
    seen = Seen(filter="exact")
    seen.first("k3")
    with pytest.raises(type(error)) as caught:
        seen.observe(failing(count, error))
    # The iterator's own exception, with what was judged: all that the iterator gave.
    raised: Any = caught.value
    assert caught.value is error
    assert raised.judged == len(raised.first) == count
    assert raised.first.dtype == np.bool_
    assert raised.first.tolist() == [number != 3 for number in range(count)]
    assert raised.rest == []
    assert all(f"k{number}" in seen for number in range(count))
    notes = getattr(error, "__notes__", [])
    assert any(f"{count:,} keys were judged" in note for note in notes) == (count > 0)
    error.__dict__.clear()


def test_an_exception_that_takes_no_attributes() -> None:
    @dataclasses.dataclass(frozen=True)
    class Frozen(Exception):
        code: int

    def keys() -> Iterator[str]:
        yield "a"
        raise Frozen(7)

    with pytest.raises(sluice.Error, match="1 were judged before") as caught:
        Seen().observe(keys())
    assert isinstance(caught.value.__cause__, Frozen)
    assert caught.value.first is not None and caught.value.first.tolist() == [True]


def test_a_bad_key_of_an_iterator_returns_what_was_taken() -> None:
    keys: list[Any] = [f"k{number}" for number in range(50_000)]
    keys[20_000] = None
    source = iter(keys)
    seen = Seen(filter="exact")
    # Its position counts from the start.
    with pytest.raises(sluice.BadKey, match=r"keys\[20000\] is None") as caught:
        seen.observe(source)
    error = caught.value
    assert error.first is not None and error.rest is not None
    assert error.judged == len(error.first) == SLICE
    assert error.first.all()
    # Judged, taken, and still in the iterator: together these are all keys.
    assert error.rest == keys[SLICE : 2 * SLICE]
    again = seen.observe([*error.rest, *source], missing="pass")
    assert len(error.first) + len(again) == len(keys)
    assert again.all()


def test_a_key_that_raises_in_an_iterator() -> None:
    class Failing:
        def __index__(self) -> int:
            raise RuntimeError("not today")

    keys: list[Any] = [f"k{number}" for number in range(SLICE)]
    with pytest.raises(sluice.BadKeyValue, match=r"keys\[16384\] or one of.*not today") as caught:
        Seen().observe(iter([*keys, "a", Failing()]))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.judged == SLICE
    assert caught.value.rest is not None and caught.value.rest[0] == "a"


def test_memory_that_ends_in_an_iterator() -> None:
    seen = Seen(window="10m", keys=1000, memory="16KiB", fpr=1e-4)
    keys = [f"key-{number}" for number in range(200_000)]
    source = iter(keys)
    with pytest.raises(sluice.NoMemory) as caught:
        seen.observe(source)
    error = caught.value
    assert error.first is not None and error.rest is not None
    assert [*keys[: error.judged], *error.rest, *source] == keys
    assert len(error.first) == error.judged == seen.stats.keys


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(iter([f"k{number}" for number in range(20_000)] + [1.5]), id="iterator"),
        pytest.param(pa.chunked_array([["a"] * 20_000, [None]]), id="arrow chunks"),
        pytest.param(
            pa.Table.from_batches(
                [
                    pa.record_batch({"u": pa.array(part, pa.string())})
                    for part in (["a"] * 20_000, [None])
                ]
            ),
            id="arrow table",
        ),
        pytest.param(
            pa.Table.from_batches(
                [
                    pa.record_batch({"u": pa.array(part, pa.string()), "v": ["b"] * len(part)})
                    for part in (["a"] * 20_000, [None])
                ]
            ),
            id="arrow table of two",
        ),
        pytest.param(
            pa.chunked_array(
                [
                    pa.array(part, pa.string()).dictionary_encode()
                    for part in (["a"] * 20_000, [None])
                ]
            ),
            id="arrow dictionaries",
        ),
    ],
)
def test_positions_count_from_the_start(keys: Any) -> None:
    with pytest.raises(sluice.BadKey, match=r"\[20000\]"):
        Seen().observe(keys)


def interrupted(keys: Any) -> tuple[Seen, BaseException]:
    """observe() with a SIGINT that arrives while it judges."""
    seen = Seen()
    begun = threading.Event()

    def interrupt() -> None:
        begun.wait()
        # Not before the call has judged something, so that there is something to tell.
        while seen.stats.keys == 0:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    begun.set()
    try:
        seen.observe(keys)
    except KeyboardInterrupt as error:
        return seen, error
    finally:
        thread.join()
    raise AssertionError("the signal was not heeded")


@pytest.mark.parametrize("kind", ["buffer", "list", "iterator"])
def test_ctrl_c_tells_what_was_judged(kind: str) -> None:
    numbers = np.arange(4_000_000)
    keys: Any = numbers if kind == "buffer" else numbers.tolist()
    seen, error = interrupted(iter(keys) if kind == "iterator" else keys)
    told: Any = error
    # Some are lost by the filter: 4e6 keys at 1e-6.
    assert 0 < told.judged <= len(numbers)
    assert abs(told.first.sum() - told.judged) <= 30
    assert abs(seen.stats.keys - told.judged) <= 30


def test_a_subinterpreter_refuses_the_package() -> None:
    interpreters = pytest.importorskip("_xxsubinterpreters")
    assert interpreters
    code = """
import _xxsubinterpreters as interpreters
{before}
other = interpreters.create()
interpreters.run_string(other, '''
try:
    import sluice
except ImportError as error:
    print("refused:", error)
''')
interpreters.destroy(other)
import sluice
print(sluice.Seen().observe(["a", "a"]))
"""
    for before in ("", "import sluice"):
        run = subprocess.run(
            [sys.executable, "-c", code.format(before=before)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "refused: sluice does not work in subinterpreters" in run.stdout, run.stderr
        assert run.stdout.endswith("[ True False]\n"), run.stderr
