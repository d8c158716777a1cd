"""Arguments as people write them: "10m", "64MiB", 1e-6, timedelta(minutes=10)."""

from __future__ import annotations

import datetime as dt
import operator
from typing import Any, SupportsIndex, Union

import numpy as np

from . import _core
from ._errors import BadParameters
from ._times import NANOSECONDS, nanoseconds_of

Window = Union[str, int, dt.timedelta, "np.timedelta64"]
Duration = Union[str, dt.timedelta, "np.timedelta64"]

_MOST = 2**63 - 1
_MOST_UNSIGNED = 2**64 - 1


def _nanoseconds(name: str, value: dt.timedelta | np.timedelta64) -> int:
    if isinstance(value, dt.timedelta):
        return min(nanoseconds_of(value), _MOST)
    if np.isnat(value):
        raise BadParameters(f"{name} is NaT: give a duration such as '10m'")
    unit, step = np.datetime_data(value.dtype)
    if unit not in NANOSECONDS:
        raise BadParameters(f"{name} is {value!r}: give it in weeks to nanoseconds")
    return min(int(value.view(np.int64)) * step * NANOSECONDS[unit], _MOST)


def window(value: Any) -> str | int | tuple[int] | None:
    """A text, a number of keys, or (nanoseconds,)."""
    if value is None:
        return None
    if isinstance(value, str):
        return text("window=", value)
    if isinstance(value, (dt.timedelta, np.timedelta64)):
        return (_nanoseconds("window=", value),)
    whole = _whole("window=", value, "a duration such as '10m', a timedelta, or a number of keys")
    return min(max(whole, 0), _MOST)


def window_text(value: Any) -> str | None:
    """The same as a text, for the planner."""
    known = window(value)
    if isinstance(known, tuple):
        return f"{known[0]}ns"
    return None if known is None else str(known)


def duration(name: str, value: Any) -> int | None:
    """Nanoseconds."""
    if value is None:
        return None
    if isinstance(value, str):
        return _core.parse_duration(name, text(name, value))
    if isinstance(value, (dt.timedelta, np.timedelta64)):
        return _nanoseconds(name, value)
    raise BadParameters(f"{name} is of type {type(value).__name__}: give '5m' or a timedelta")


def text(name: str, value: Any) -> str:
    """A text that the extension can read."""
    if not isinstance(value, str):
        raise BadParameters(f"{name} is of type {type(value).__name__}: give a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadParameters(
            f"{name} {value!r} has a lone surrogate: give text of whole characters"
        ) from error
    return str(value)


def flag(name: str, value: Any) -> bool:
    """True or False; nothing else, because "no" would be true."""
    if not isinstance(value, (bool, np.bool_)):
        raise BadParameters(f"{name} is {value!r}: give True or False")
    return bool(value)


def number(name: str, value: Any, wanted: str) -> float | None:
    """A number, not its text."""
    return None if value is None else _number(name, value, wanted)


def _whole(name: str, value: Any, wanted: str) -> int:
    if not isinstance(value, (bool, np.bool_)) and isinstance(value, SupportsIndex):
        return operator.index(value)
    if isinstance(value, float) and value.is_integer():  # 1e6
        return int(value)
    raise BadParameters(f"{name} is {value!r}: give {wanted}")


def _unsigned(name: str, value: Any, wanted: str) -> int:
    whole = _whole(name, value, wanted)
    if whole < 0:
        raise BadParameters(f"{name} is {whole}: give {wanted}")
    return min(whole, _MOST_UNSIGNED)


def count(name: str, value: Any) -> int | None:
    """A number of keys: 1000000, 1e6, "1M"."""
    if value is None:
        return None
    if isinstance(value, str):
        return _core.parse_count(name, text(name, value))
    return _unsigned(name, value, "a whole number, such as 1_000_000 or '1M'")


def size(name: str, value: Any) -> int | None:
    """Bytes: 67108864, "64MiB"."""
    if value is None:
        return None
    if isinstance(value, str):
        return _core.parse_size(name, text(name, value))
    return _unsigned(name, value, "a number of bytes, or a text such as '64MiB'")


def seed(value: Any) -> int | None:
    """64 bits."""
    if value is None:
        return None
    whole = _whole("seed=", value, "a whole number")
    if not 0 <= whole <= _MOST_UNSIGNED:
        raise BadParameters(f"seed= is {whole}: give a number from 0 to 2**64 - 1")
    return whole


def rate(value: Any) -> float | None:
    """Distinct keys per second: 50000, "50k/s"."""
    if value is None:
        return None
    if isinstance(value, str):
        return _core.parse_rate("rate=", text("rate=", value))
    return _number("rate=", value, "distinct keys per second, such as 50_000 or '50k/s'")


def probability(name: str, value: Any) -> float | None:
    """1e-6, "1%"."""
    if value is None:
        return None
    if isinstance(value, str):
        return _core.parse_probability(name, text(name, value))
    return _number(name, value, "a probability, such as 1e-6 or '1%'")


def _number(name: str, value: Any, wanted: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__float__"):
        raise BadParameters(f"{name} is {value!r}: give {wanted}")
    return float(value)
