"""What a Seen does, and what its arguments mean."""

from __future__ import annotations

import copy
import datetime as dt
import doctest
import os
import pickle
import pydoc
from typing import Any

import numpy as np
import pytest

import sluice
from sluice import Seen, Stats


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keys": 1000},
        {"keys": "1k", "fpr": "1%"},
        {"keys": 1e6},
        {"window": "10m"},
        {"window": 1000},
        {"window": np.int64(1000)},
        {"window": "1k"},
        {"window": dt.timedelta(minutes=10)},
        {"window": np.timedelta64(10, "m")},
        {"window": "day"},
        {"window": "10m", "refresh": True},
        {"window": "10m", "rate": "50k/s"},
        {"window": "10m", "rate": 50_000, "memory": "256MiB"},
        {"window": "10m", "max_ahead": dt.timedelta(minutes=5)},
        {"memory": "32MiB"},
        {"memory": 1 << 25},
        {"untrusted_keys": True},
        {"filter": "exact"},
        {"window": 5000, "filter": "apbf"},
        {"seed": 2**64 - 1},
    ],
    ids=repr,
)
def test_lets_each_key_through_once(options: dict[str, Any]) -> None:
    seen = Seen(**options)
    assert "ann" not in seen
    assert seen.first("ann")
    assert not seen.first("ann")
    assert "ann" in seen
    assert seen.observe(["ann", "bob", "bob"]).tolist() == [False, True, False]
    assert seen.stats.keys == 2
    assert seen.nbytes == seen.stats.bytes > 0
    assert (seen.plan is None) == ("filter" in options)
    seen.clear()
    assert seen.first("ann")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fpr": 2}, "fpr= must lie between"),
        ({"fpr": 0}, "fpr= must lie between"),
        ({"fpr": float("nan")}, "fpr="),
        ({"fpr": "often"}, "fpr= 'often'"),
        ({"fpr": True}, "fpr= is True"),
        ({"fpr": []}, "fpr= is"),
        ({"window": "10x"}, "window= '10x' is not a duration or a count"),
        ({"window": 0}, "window= must be"),
        ({"window": -5}, "window= must be"),
        ({"window": 1.5}, "window= is 1.5"),
        ({"window": True}, "window= is True"),
        ({"window": dt.timedelta(0)}, "window= must be longer than nothing"),
        ({"window": dt.timedelta(days=-1)}, "window= must be longer than nothing"),
        ({"window": dt.timedelta(days=99_999_999)}, "window= is too long"),
        ({"window": np.timedelta64("NaT")}, "window= is NaT"),
        ({"window": np.timedelta64(10**6, "Y")}, "window="),
        ({"keys": -1}, "keys= is -1"),
        ({"keys": 2**70}, "keys="),
        ({"keys": "many"}, "keys= 'many'"),
        ({"memory": "64M"}, "memory= '64M' could mean two sizes"),
        ({"memory": -1}, "memory= is -1"),
        ({"memory": 10}, "memory="),
        ({"rate": "fast"}, "rate= 'fast'"),
        ({"rate": 5}, "rate="),
        ({"refresh": True}, "refresh= needs a window="),
        ({"max_ahead": "5m"}, "max_ahead= needs a window="),
        ({"window": "10m", "max_ahead": 5}, "max_ahead= is of type int"),
        ({"window": "10m", "memory": "64MiB"}, "needs keys=.*or rate="),
        ({"filter": "blom"}, "blom"),
        ({"filter": "exact", "memory": "64MiB"}, "memory="),
        ({"seed": -1}, "seed= is -1"),
        ({"seed": 2**64}, "seed= is"),
        ({"window": "\ud800"}, "window= .*lone surrogate"),
        ({"keys": "1\udfffM"}, "keys= .*lone surrogate"),
        ({"memory": "\ud800"}, "memory= .*lone surrogate"),
        ({"rate": "\ud800", "window": "10m"}, "rate= .*lone surrogate"),
        ({"fpr": "\ud800"}, "fpr= .*lone surrogate"),
        ({"max_ahead": "\ud800", "window": "10m"}, "max_ahead= .*lone surrogate"),
        ({"filter": "\ud800"}, "filter= .*lone surrogate"),
        ({"filter": 5}, "filter= is of type int"),
        ({"refresh": "no", "window": "10m"}, "refresh= is 'no'"),
        ({"untrusted_keys": None}, "untrusted_keys= is None"),
    ],
    ids=repr,
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sluice.BadParameters, match=message) as caught:
        Seen(**options)
    assert isinstance(caught.value, ValueError)
    # Keywords, not the fields or flags of others.
    assert "`" not in str(caught.value) and "--" not in str(caught.value)


def test_lone_surrogates_elsewhere() -> None:
    with pytest.raises(sluice.BadParameters, match="lone surrogate"):
        sluice.plan(window="\ud800")
    with pytest.raises(sluice.BadParameters, match="slack= is"):
        sluice.plan(window="10m", slack="\ud800")  # type: ignore[arg-type]
    for call in (Seen().save, Seen.load):
        with pytest.raises(sluice.BadParameters, match="lone surrogate"):
            call("\ud800")
    for labels in ({"key": "\ud800"}, {"\ud800": "a"}, {"key": 5}, 5, [("a",)]):
        with pytest.raises(sluice.BadParameters, match="labels="):
            Seen().save("never", labels=labels)  # type: ignore[arg-type]
    # The name of a column is only for messages.
    with pytest.raises(sluice.BadKey, match=r"keys\['\\ud800'\]\[1\] is None"):
        Seen().observe({"\ud800": ["a", None]})
    with pytest.raises(sluice.BadKeyValue, match=r"keys\[1\] has a lone surrogate"):
        Seen().observe(iter(["a", "\ud800"]))


def test_unknown_options_are_refused_by_python() -> None:
    with pytest.raises(TypeError, match="expect"):
        Seen(expect=5)  # type: ignore[call-arg]


def test_windows_end() -> None:
    seen = Seen(window=3)
    answers = seen.observe(["a", "b", "c", "d", "e", "a"])
    assert answers.tolist() == [True, True, True, True, True, True]


def test_forget() -> None:
    seen = Seen()
    seen.observe(["a", "b"])
    assert seen.forget("a")
    assert not seen.forget("never")
    assert seen.first("a")
    assert not seen.first("b")
    with pytest.raises(sluice.BadParameters, match="cannot take keys back"):
        Seen(keys=1000).forget("a")


def test_merge() -> None:
    one, other = Seen(seed=7), Seen(seed=7)
    one.first("a")
    other.first("b")
    one.merge(other)
    assert "b" in one and "a" not in other
    one.merge(one)
    assert one.stats.keys == 2
    with pytest.raises(sluice.BadParameters, match="give both one seed="):
        one.merge(Seen())
    with pytest.raises(sluice.BadParameters, match="untrusted_keys="):
        one.merge(Seen(seed=7, untrusted_keys=True))
    for windows in ((Seen(window=5), Seen(window=5)), (Seen(window=5),) * 2):
        with pytest.raises(sluice.BadParameters):
            windows[0].merge(windows[1])
    with pytest.raises(sluice.BadParameters, match="type set"):
        one.merge({"a"})  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_answers() -> None:
    one, other = Seen(seed=7, keys=10), Seen(seed=7, keys=10)
    one.observe(list(range(1000)))
    other.observe(np.arange(1000))
    assert one.to_bytes() == other.to_bytes()
    assert Seen(seed=8, keys=10).to_bytes() != Seen(seed=7, keys=10).to_bytes()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, Seen.copy])
def test_copies_are_independent(copied: Any) -> None:
    seen = Seen(window="10m")
    seen.first("a")
    other = copied(seen)
    assert type(other) is Seen
    assert not other.first("a")
    assert other.first("b")
    assert "b" not in seen
    assert other.plan is not None


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol: int) -> None:
    seen = Seen(window="10m")
    seen.first("a")
    other = pickle.loads(pickle.dumps(seen, protocol))
    assert not other.first("a")
    assert other.first("b")
    assert other.plan is None


def test_pickled_errors_keep_their_class() -> None:
    for error in (sluice.BadKey("a"), sluice.NotFound(2, "b"), sluice.NoMemory("c")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)


def test_subclasses_stay_what_they_are() -> None:
    class Mine(Seen):
        pass

    mine = Mine(window=100)
    mine.first("a")
    for other in (mine.copy(), Mine.from_bytes(mine.to_bytes())):
        assert type(other) is Mine and "a" in other


@pytest.mark.filterwarnings("ignore:nanobind")
def test_an_object_that_was_never_made() -> None:
    with pytest.raises((TypeError, RuntimeError)):
        Seen.__new__(Seen).first("a")

    class Careless(Seen):
        def __init__(self) -> None:
            pass

    with pytest.raises((TypeError, RuntimeError)):
        Careless().first("a")


def test_plan() -> None:
    planning = sluice.plan(keys="50M", fpr=1e-6)
    assert planning.chosen is not None
    assert planning.chosen is planning.candidates[0]
    assert planning.chosen.fpr <= 1e-6
    assert planning.chosen.bytes < 300e6
    assert len(planning.candidates) > 1
    assert planning.reason in str(planning)
    # What is planned is what is made.
    made = Seen(keys=1_000_000)
    assert made.plan is not None and made.plan.chosen is not None
    assert made.nbytes <= made.plan.chosen.bytes
    window = sluice.plan(window=dt.timedelta(minutes=10), rate=1000)
    assert window.chosen is not None and window.chosen.holds >= 600_000
    impossible = sluice.plan(keys="1G", fpr=1e-9, memory="1MiB")
    assert impossible.chosen is None
    assert {near.keyword for near in impossible.nearest} & {"memory=", "keys=", "fpr="}
    with pytest.raises(sluice.BadParameters, match="fpr="):
        sluice.plan(fpr=7)


def test_stats_and_repr() -> None:
    seen = Seen(window="10m", keys=1000)
    seen.observe(["a", "b"])
    stats = seen.stats
    assert isinstance(stats, Stats)
    assert (stats.keys, stats.target_fpr) == (2, 1e-6)
    assert "predicted_fpr=" in repr(stats)
    assert repr(seen).startswith("<sluice.Seen of the last 10 minutes: 2 keys in ")
    assert "every key" in repr(Seen())
    # Not its length: an empty one would be false, and `seen or Seen()` a trap.
    assert Seen()
    with pytest.raises(TypeError):
        len(seen)  # type: ignore[arg-type]


def test_the_error_is_what_was_asked_for() -> None:
    seen = Seen(keys=100_000, fpr=0.01, seed=11)
    seen.observe(np.arange(100_000))
    lost = (~seen.observe(np.arange(10**6, 10**6 + 1000))).sum()
    # Binomial, 1000 × 0.01: a mean of 10 at most, and 25 is nearly five standard errors above it.
    assert lost <= 25
    assert seen.stats.predicted_fpr <= 0.0105


def test_help_helps() -> None:
    text = pydoc.plain(pydoc.render_doc(Seen))
    for word in ("window", "untrusted_keys", "max_ahead", "observe", "first", "contains", "forget"):
        assert word in text
    for name in ("first", "contains", "forget", "clear", "observe", "merge", "save", "load"):
        assert len(getattr(Seen, name).__doc__) > 60, name


@pytest.mark.parametrize("name", ["__init__", "_seen", "_plan"])
def test_examples_in_docstrings(name: str) -> None:
    module = sluice if name == "__init__" else __import__(f"sluice.{name}", fromlist=["x"])
    result = doctest.testmod(module)
    assert result.attempted >= 2 and result.failed == 0


def test_version() -> None:
    from importlib.metadata import version

    assert sluice.__version__ == version("sluice")


def test_memory_that_runs_out_tells_what_was_judged() -> None:
    seen = Seen(window="10m", keys=1000, memory="16KiB", fpr=1e-4)
    keys = [f"key-{number}" for number in range(200_000)]
    with pytest.raises(sluice.NoMemory, match="memory=") as caught:
        seen.observe(keys, times=np.full(len(keys), 5), unit="s")
    error = caught.value
    assert isinstance(error, MemoryError)
    assert 1000 <= error.judged < len(keys)
    assert error.first is not None and len(error.first) == error.judged
    assert error.first.sum() == seen.stats.keys
    # The keys that were judged are remembered, and the others are as if they had not come.
    assert seen.contains(keys[error.judged - 1], 5, unit="s")
    assert not seen.contains(keys[error.judged], 5, unit="s")
    with pytest.raises(sluice.NoMemory):
        seen.first(keys[error.judged], 5, unit="s")
    # When the others have left the window there is room again.
    assert seen.first(keys[error.judged], 5000, unit="s")


def test_a_fork_may_go_on() -> None:
    seen = Seen()
    seen.observe(np.arange(300_000))
    child = os.fork()
    if child == 0:
        good = seen.observe(np.arange(300_000, 900_000)).sum() > 590_000 and 5 in seen
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert seen.observe(np.arange(300_000, 900_000)).sum() > 590_000
