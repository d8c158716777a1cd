"""Times as Python has them, to nanoseconds since 1970."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ._errors import BadTime

Unit = Literal["s", "ms", "us", "ns"]

NANOSECONDS: dict[str, int] = {
    "W": 7 * 86400 * 10**9,
    "D": 86400 * 10**9,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "μs": 10**3,
    "ns": 1,
}
_FINER: dict[str, int] = {"ps": 10**3, "fs": 10**6, "as": 10**9}
# The library knows no times before 1823 and after 2116: it would take all of them for one moment, and
# lose the events.
_MOST = 2**62
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_UNITS = "unit='s', 'ms', 'us' or 'ns'"


def _known(value: int, what: str) -> int:
    if not -_MOST <= value <= _MOST:
        raise BadTime(f"{what} is not between the years 1823 and 2116: check its unit")
    return value


def _need_known(outside: npt.NDArray[np.bool_], what: str) -> None:
    if outside.any():
        place = f"{what}[{_first(outside)}]" if what == "times" else what
        raise BadTime(f"{place} is not between the years 1823 and 2116: check its unit")


def nanoseconds_of(delta: dt.timedelta) -> int:
    """The exact number: a timedelta counts microseconds."""
    return ((delta.days * 86400 + delta.seconds) * 10**6 + delta.microseconds) * 1000


def _per_unit(unit: object, what: str) -> int:
    if unit is None:
        raise BadTime(f"{what} is a number, and numbers need their unit: give {_UNITS}")
    if unit not in ("s", "ms", "us", "ns"):
        raise BadTime(f"unit={unit!r} is no unit of time: give {_UNITS}")
    return NANOSECONDS[str(unit)]


def instant(when: object, unit: object = None, what: str = "when=") -> int:
    """One time as nanoseconds since 1970."""
    if when is None:
        raise BadTime(f"{what} is None, and there is a unit=: give both or neither")
    if isinstance(when, (np.datetime64,)):
        return int(_of_datetime64(np.asarray(when).reshape(1), what)[0])
    if isinstance(when, dt.datetime):
        if when != when:  # pandas' NaT
            raise BadTime(f"{what} is NaT, and no time")
        if when.tzinfo is None or when.utcoffset() is None:
            raise BadTime(
                f"{what} is a datetime without a zone: give it one, for example"
                " .replace(tzinfo=datetime.timezone.utc)"
            )
        exact = getattr(when, "nanosecond", 0)  # pandas' Timestamp
        return _known(nanoseconds_of(when - _EPOCH) // 1000 * 1000 + int(exact), what)
    if isinstance(when, (bool, np.bool_)):
        raise BadTime(f"{what} is a bool, and no time")
    if isinstance(when, (int, np.integer)):
        return _known(int(when) * _per_unit(unit, what), what)
    if isinstance(when, (float, np.floating)):
        per_unit = _per_unit(unit, what)
        if not math.isfinite(when):
            raise BadTime(f"{what} is {when}, and no time")
        # Whole seconds and the rest apart: a product of floats would round to microseconds.
        whole = math.floor(when)
        return _known(whole * per_unit + round((float(when) - whole) * per_unit), what)
    raise BadTime(
        f"{what} is of type {type(when).__name__}: give a datetime with a zone, a datetime64,"
        f" or a number with {_UNITS}"
    )


def _first(mask: npt.NDArray[np.bool_]) -> int:
    return int(np.argmax(mask))


def _of_datetime64(times: npt.NDArray[Any], what: str) -> npt.NDArray[np.int64]:
    absent = np.isnat(times)
    if absent.any():
        place = f"{what}[{_first(absent)}]" if what == "times" else what
        raise BadTime(f"{place} is NaT, and no time")
    unit, step = np.datetime_data(times.dtype)
    if unit in ("Y", "M"):
        days = times.clip(np.datetime64("0001"), np.datetime64("9999")).astype("datetime64[D]")
        unit, step, times = "D", 1, days
    if unit not in NANOSECONDS and unit not in _FINER:
        raise BadTime(f"{what} is a datetime64 without a unit")
    counts = times.astype(f"datetime64[{step}{unit}]").view(np.int64)
    if unit in _FINER:  # in Python's arithmetic, which knows no overflow
        return np.array([int(count) * step // _FINER[unit] for count in counts], dtype=np.int64)
    factor = NANOSECONDS[unit] * step
    most = _MOST // factor
    _need_known((counts < -most) | (counts > most), what)
    return np.asarray(counts * factor, dtype=np.int64)


def _of_numbers(times: npt.NDArray[Any], unit: object) -> npt.NDArray[np.int64]:
    per_unit = _per_unit(unit, "times")
    if times.dtype.kind == "f":
        bad = ~np.isfinite(times)
        if bad.any():
            raise BadTime(f"times[{_first(bad)}] is {times[_first(bad)]}, and no time")
        most = float(_MOST // per_unit)
        exact = times.astype(np.float64)
        _need_known((exact < -most) | (exact > most), "times")
        whole = np.floor(exact)
        rest = np.rint((exact - whole) * per_unit).astype(np.int64)
        return np.asarray(whole.astype(np.int64) * per_unit + rest, dtype=np.int64)
    most_count = _MOST // per_unit
    outside = times > most_count
    if times.dtype.kind == "i":
        outside |= times < -most_count
    _need_known(outside, "times")
    return times.astype(np.int64) * per_unit


def nanoseconds(times: Any, unit: object = None) -> npt.NDArray[np.int64]:
    """Many times as a contiguous array of nanoseconds since 1970."""
    if isinstance(times, (str, bytes)) or not hasattr(times, "__iter__"):
        raise BadTime(f"times= is one {type(times).__name__}: give as many times as keys")
    dtype = getattr(times, "dtype", None)
    if getattr(dtype, "tz", None) is not None and hasattr(times, "to_numpy"):
        # pandas with a zone: its values are UTC.
        array = times.to_numpy(dtype="datetime64[ns]")
    elif hasattr(times, "__array__"):
        array = np.asarray(times)
        if isinstance(times, np.ma.MaskedArray) and (mask := np.ma.getmaskarray(times)).any():
            raise BadTime(f"times[{_first(mask.ravel())}] is masked, and no time")
    elif hasattr(times, "__arrow_c_stream__") or hasattr(times, "__arrow_c_array__"):
        array = np.asarray(list(times))
    else:
        values = list(times)
        if any(isinstance(value, dt.datetime) or value is None for value in values):
            return _of_objects(values, unit)
        array = np.asarray(values)
    if array.ndim != 1:
        raise BadTime(f"times= has {array.ndim} dimensions: give one")
    if array.dtype.kind == "M":
        result = _of_datetime64(array, "times")
    elif array.dtype.kind in "iuf":
        result = _of_numbers(array, unit)
    elif array.dtype.kind == "O" or array.size == 0:
        return _of_objects(array.tolist(), unit)
    else:
        raise BadTime(
            f"times= are of type {array.dtype}: give datetimes with a zone, datetime64,"
            f" or numbers with {_UNITS}"
        )
    return np.ascontiguousarray(result)


def _of_objects(values: list[Any], unit: object) -> npt.NDArray[np.int64]:
    result = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        place = f"times[{row}]"
        if value is None:
            raise BadTime(f"{place} is None, and no time")
        result[row] = instant(value, unit, place)
    return result
