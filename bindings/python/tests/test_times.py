"""Times as Python, NumPy, pandas, Arrow and Polars have them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sluice
from sluice import Seen
from sluice._times import instant, nanoseconds

START = dt.datetime(2024, 3, 1, 12, tzinfo=dt.timezone.utc)
# Minutes after the start: the last is ten minutes and more after the first.
MINUTES = [0, 5, 11]
INSTANTS = [START + dt.timedelta(minutes=minutes) for minutes in MINUTES]
SECONDS = [int(time.timestamp()) for time in INSTANTS]
EXACT = [seconds * 10**9 for seconds in SECONDS]
TOKYO = dt.timezone(dt.timedelta(hours=9))

DOORS: dict[str, tuple[Any, Any]] = {
    "datetime": (INSTANTS, None),
    "datetime elsewhere": ([time.astimezone(TOKYO) for time in INSTANTS], None),
    "generator": ((time for time in INSTANTS), None),
    "tuple": (tuple(INSTANTS), None),
    "datetime64 list": ([np.datetime64(seconds, "s") for seconds in SECONDS], None),
    "datetime64[s]": (np.array(SECONDS, "datetime64[s]"), None),
    "datetime64[ms]": (np.array(SECONDS, "datetime64[s]").astype("datetime64[ms]"), None),
    "datetime64[us]": (np.array(SECONDS, "datetime64[s]").astype("datetime64[us]"), None),
    "datetime64[ns]": (np.array(SECONDS, "datetime64[s]").astype("datetime64[ns]"), None),
    "datetime64[m]": (np.array(SECONDS, "datetime64[s]").astype("datetime64[m]"), None),
    "datetime64[30s]": (np.array(SECONDS, "datetime64[s]").astype("datetime64[30s]"), None),
    "datetime64[s] swapped": (np.array(SECONDS, "datetime64[s]").astype(">M8[s]"), None),
    "datetime64 strided": (np.repeat(np.array(SECONDS, "datetime64[s]"), 2)[::2], None),
    "seconds": (SECONDS, "s"),
    "float seconds": ([float(seconds) for seconds in SECONDS], "s"),
    "milliseconds": ([seconds * 1000 for seconds in SECONDS], "ms"),
    "microseconds": (np.array(SECONDS) * 10**6, "us"),
    "nanoseconds": (np.array(EXACT), "ns"),
    "unsigned nanoseconds": (np.array(EXACT, dtype=np.uint64), "ns"),
    "pandas naive": (pd.Series(np.array(SECONDS, "datetime64[s]")), None),
    "pandas UTC": (pd.Series(INSTANTS), None),
    "pandas Tokyo": (pd.Series(INSTANTS).dt.tz_convert("Asia/Tokyo"), None),
    "pandas index": (pd.DatetimeIndex(INSTANTS).tz_convert("Asia/Tokyo"), None),
    "pandas objects": (pd.Series(INSTANTS, dtype=object), None),
    "pandas Timestamps": ([pd.Timestamp(time) for time in INSTANTS], None),
    "pandas integers": (pd.Series(SECONDS), "s"),
    "arrow": (pa.array(INSTANTS), None),
    "arrow chunks": (pa.chunked_array([pa.array(INSTANTS)]), None),
    "polars": (pl.Series(INSTANTS), None),
}


@pytest.mark.parametrize("door", DOORS)
def test_times_are_the_same_at_every_door(door: str) -> None:
    times, unit = DOORS[door]
    if door == "generator":
        times = iter(INSTANTS)
    assert nanoseconds(times, unit).tolist() == EXACT
    if door == "generator":
        times = iter(INSTANTS)
    seen = Seen(window="10m")
    assert seen.observe(["a"] * 3, times=times, unit=unit).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("when", "unit"),
    [
        (INSTANTS[0], None),
        (INSTANTS[0].astimezone(TOKYO), None),
        (np.datetime64(SECONDS[0], "s"), None),
        (SECONDS[0], "s"),
        (float(SECONDS[0]), "s"),
        (np.int64(SECONDS[0] * 1000), "ms"),
        (EXACT[0], "ns"),
        (pd.Timestamp(INSTANTS[0]), None),
    ],
)
def test_one_time(when: Any, unit: Any) -> None:
    assert instant(when, unit) == EXACT[0]
    seen = Seen(window="10m")
    assert seen.first("a", when, unit=unit)
    assert not seen.first("a", INSTANTS[1])
    assert seen.contains("a", INSTANTS[1])
    assert seen.first("a", when=INSTANTS[2])


def test_no_precision_is_lost() -> None:
    exact = 1_709_294_400_123_456_789
    assert instant(np.datetime64(exact, "ns")) == exact
    assert instant(pd.Timestamp(exact, unit="ns", tz="UTC")) == exact
    assert nanoseconds(pd.Series(pd.to_datetime([exact], utc=True))).tolist() == [exact]
    late = dt.datetime(2024, 3, 1, 12, 0, 0, 123457, tzinfo=dt.timezone.utc)
    assert instant(late) == 1_709_294_400_123_457_000
    # The fraction of a float is not rounded with its whole part.
    assert abs(instant(1_709_294_400.5, "s") - 1_709_294_400_500_000_000) == 0


def test_times_before_1970_and_far_away() -> None:
    assert instant(np.datetime64("1969-12-31T23:59:59.5")) == -500_000_000
    assert instant(np.datetime64("1969-12-31")) == -86_400 * 10**9
    assert instant(-1.5, "s") == -1_500_000_000
    # The library would take all of these for one moment.
    for far in (
        np.datetime64("9999-01-01", "s"),
        np.datetime64("5000", "Y"),
        np.datetime64("0001-01-01", "s"),
        2**62,
        -(2**62),
        1e18,
    ):
        unit = None if isinstance(far, np.datetime64) else "s"
        with pytest.raises(sluice.BadTime, match="between the years 1823 and 2116"):
            instant(far, unit)
        array = np.array([far]) if unit is None else np.array([far], dtype=type(far))
        with pytest.raises(sluice.BadTime, match=r"times\[0\] is not between the years"):
            nanoseconds(array, unit)
    with pytest.raises(sluice.BadTime, match=r"times\[1\] is not between the years"):
        nanoseconds(np.array([0, 2**64 - 1], dtype=np.uint64), "ns")
    # Milliseconds given as seconds.
    with pytest.raises(sluice.BadTime, match="check its unit"):
        sluice.Seen(window="10m").observe(["a", "a"], [1_709_294_400_000, 1_709_380_800_000], unit="s")


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps"])
def test_every_unit_of_datetime64(unit: str) -> None:
    when = np.datetime64("1975-06-01T00:00:00", "s").astype(f"datetime64[{unit}]")
    assert instant(when) == int(when.astype("datetime64[ns]").view(np.int64))


@pytest.mark.parametrize(
    ("times", "unit", "message"),
    [
        ([dt.datetime(2024, 1, 1)], None, r"times\[0\] is a datetime without a zone"),
        ([START, None], None, r"times\[1\] is None"),
        (np.array(["2024-01-01", "NaT"], "datetime64[s]"), None, r"times\[1\] is NaT"),
        (pd.Series([START, pd.NaT]), None, r"times\[1\] is NaT"),
        (pd.Series([START, pd.NaT], dtype=object), None, r"times\[1\] is NaT"),
        ([1, 2], None, "numbers need their unit"),
        ([1.5, float("nan")], "s", r"times\[1\] is nan"),
        ([1.5, float("inf")], "s", r"times\[1\] is inf"),
        ([1, 2], "minutes", "no unit of time"),
        (["2024-01-01", "2024-01-02"], None, "are of type"),
        ([True, False], "s", "are of type bool"),
        (5, "s", "as many times as keys"),
        ("2024", None, "as many times as keys"),
        (np.array([[1, 2]]), "s", "2 dimensions"),
        ([START], None, "2 keys and 1 times"),
        (None, "s", "unit= needs times="),
        (np.ma.array([1, 2], mask=[False, True]), "s", r"times\[1\] is masked"),
        (np.ma.array([1, 2], mask=[False, True]).astype("datetime64[s]"), None, r"times\[1\] is masked"),
    ],
)
def test_bad_times_are_refused(times: Any, unit: Any, message: str) -> None:
    seen = Seen(window="10m")
    with pytest.raises(sluice.Error, match=message) as caught:
        seen.observe(["a", "b"], times=times, unit=unit)
    assert isinstance(caught.value, ValueError)
    assert seen.stats.keys == 0


@pytest.mark.parametrize(
    ("when", "unit", "message"),
    [
        (dt.datetime(2024, 1, 1), None, "without a zone"),
        (np.datetime64("NaT"), None, "NaT"),
        (pd.NaT, None, "NaT"),
        (17, None, "need their unit"),
        (float("nan"), "s", "nan"),
        (True, "s", "bool"),
        ("2024-01-01", None, "of type str"),
        (None, "s", "give both or neither"),
        (dt.date(2024, 1, 1), None, "of type date"),
    ],
)
def test_one_bad_time(when: Any, unit: Any, message: str) -> None:
    seen = Seen(window="10m")
    calls: list[Callable[..., bool]] = [seen.first, seen.contains]
    for call in calls:
        with pytest.raises(sluice.BadTime, match=message):
            call("a", when, unit=unit)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_whole_numbers_of_first_are_read_as_those_of_observe(unit: Any) -> None:
    """first() reads them without Python's help, within what the clock knows."""
    each = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    for exact in (0, -each, EXACT[0], 2**62 // each * each, -(2**62 // each * each)):
        seen = Seen(window="10m")
        assert seen.first("a", exact // each, unit=unit)
        assert seen.observe(["a"], [exact // each], unit=unit).tolist() == [False]
    for far in (2**62 // each + 1, -(2**62 // each) - 1, 2**70):
        with pytest.raises(sluice.BadTime, match="between the years"):
            Seen(window="10m").first("a", far, unit=unit)


def test_late_events_and_times_far_ahead() -> None:
    seen = Seen(window="10m", max_ahead="1h")
    assert seen.first("a", 10_000, unit="s")
    assert seen.first("b", 10_100, unit="s")
    # A window or more behind: let through, and not remembered.
    assert seen.first("late", 5_000, unit="s")
    assert seen.first("late", 5_000, unit="s")
    # Not believed: let through.
    assert seen.first("a", 10**9, unit="s")
    assert seen.stats.disbelieved == 1
    assert not seen.first("a", 10_200, unit="s")
