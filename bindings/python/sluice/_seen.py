"""Seen: has this key been seen before?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, Union

import numpy as np
import numpy.typing as npt

from . import _core, _keys, _plan, _quantities, _times
from ._errors import BadKeyValue, BadParameters, Error, tell

if TYPE_CHECKING:
    import datetime as dt

    Part = Union[str, bytes, int]
    #: One key: a str (its UTF-8), bytes, an int (its decimal text), or a tuple of these.
    Key = Union[Part, tuple[Part, ...]]
    When = Union["dt.datetime", np.datetime64, int, float]

Missing = Literal["error", "pass"]
Labels = Union[Mapping[str, Union[str, Sequence[str]]], Iterable[tuple[str, str]]]


class Stats(NamedTuple):
    """The state of a filter. Of a window: as of the last key that was judged."""

    keys: int  #: keys remembered
    capacity: int  #: keys it was planned for; 0: any number
    bytes: int  #: of memory
    target_fpr: float  #: the error it was planned for; 0: none given
    predicted_fpr: float  #: chance to lose a new key, at this fill
    planned_fpr: float  #: the same at the planned fill; 0: equals target_fpr
    stash: int  #: keys kept beside the table, if the filter has a stash
    listed: int  #: keys in a short list, exact: all of them, or none once there is a table
    forgotten: int  #: keys taken back since it was made or loaded
    forget_misses: int  #: keys to be taken back that were not found
    forget_kept: int  #: keys not removed, because it was not clear whose trace they were
    disbelieved: int  #: with max_ahead=: events whose times were too far ahead
    over_target: bool  #: the error is above target_fpr


class Seen(_core.Seen):
    """Remembers keys, and tells whether a key is new.

    >>> from sluice import Seen
    >>> seen = Seen(window="10m", fpr=1e-6)
    >>> seen.first("user-17:ad-3")
    True
    >>> seen.first("user-17:ad-3")
    False
    >>> seen.observe(["user-18:ad-3", "user-17:ad-3"])
    array([ True, False])

    Say what you know, and leave out the rest:

    ==========================  ====================================================
    ``Seen()``                  every key, forever; memory grows with the keys
    ``Seen(keys="50M")``        every key, with room for that many from the start
    ``Seen(window="10m")``      the keys let through in the last ten minutes
    ``Seen(window=1_000_000)``  the last million keys let through
    ``Seen(memory="64MiB")``    as much of the past as fits in 64 MiB
    ==========================  ====================================================

    A key that was seen is never taken for a new one while its window lasts. A new key may be taken
    for one that was seen, with probability ``fpr``; its event is then lost.

    A key is a ``str`` (its UTF-8), ``bytes`` or an ``int`` (its decimal text): ``17``, ``"17"`` and
    ``b"17"`` are one key, as they are one line for the ``sluice`` command. A tuple of these is a key
    of several fields, as of ``sluice dedup --key user,ad``.

    Several threads may use one ``Seen``. ``observe`` releases the GIL while it judges.

    Arguments:
      window          "10m", "1M" (keys), "hour" or "day" (since the last full one, UTC), a
                      ``timedelta``, or an ``int``: so many keys. None: forever.
      fpr             chance to lose a new key: 1e-6 if not given or, with ``memory``, the least that
                      fits, but 1e-6 for a window of time, which grows in the rest of the memory. More
                      than 1 % is refused until it is given.
      keys            how many distinct keys to expect: in all, or in one window of time.
      rate            distinct keys per second, instead of ``keys``; for a window of time.
      memory          the most bytes to take, or a text such as "64MiB". With a window of time it
                      needs ``keys`` or ``rate``.
      refresh         every repeat restarts the key's window.
      max_ahead       "5m" or a ``timedelta``: an event time further than this ahead of the latest
                      is not believed until a second one agrees, and its key is let through.
      filter          "cohort,slot=32": this filter, instead of the planner's choice.
      untrusted_keys  True if strangers choose the keys: a keyed hash.
      seed            the same seed gives the same answers; none: random.
    """

    def __init__(
        self,
        window: _quantities.Window | None = None,
        fpr: float | str | None = None,
        *,
        keys: int | str | None = None,
        rate: float | str | None = None,
        memory: int | str | None = None,
        refresh: bool = False,
        max_ahead: _quantities.Duration | None = None,
        filter: str | None = None,
        untrusted_keys: bool = False,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            _core.make(
                _quantities.window(window),
                _quantities.flag("refresh=", refresh),
                _quantities.duration("max_ahead=", max_ahead),
                _quantities.count("keys=", keys),
                _quantities.rate(rate),
                _quantities.probability("fpr=", fpr),
                _quantities.size("memory=", memory),
                _quantities.text("filter=", filter or ""),
                _quantities.flag("untrusted_keys=", untrusted_keys),
                _quantities.seed(seed),
            )
        )

    @classmethod
    def _of(cls, made: _core.Made) -> Self:
        self = cls.__new__(cls)
        _core.Seen.__init__(self, made)
        return self

    if TYPE_CHECKING:
        # These are the extension's, which is faster for one key at a time.
        def first(
            self, key: Key, when: When | None = None, *, unit: _times.Unit | None = None
        ) -> bool: ...
        def contains(
            self, key: Key, when: When | None = None, *, unit: _times.Unit | None = None
        ) -> bool: ...
        def forget(self, key: Key) -> bool: ...

    def observe(
        self,
        keys: Any,
        times: Any = None,
        *,
        unit: _times.Unit | None = None,
        missing: Missing = "error",
    ) -> npt.NDArray[np.bool_]:
        """Judges many keys in order: an array that is True where the key is new.

        >>> seen = Seen()
        >>> seen.observe(["ann", "bob", "ann"])
        array([ True,  True, False])

        ``df[seen.observe(df["user"])]`` keeps each user's first row, and
        ``seen.observe(df[["user", "ad"]])`` takes two columns for the key.

        Arguments:
          keys     a list, tuple or iterable of keys; a NumPy array of integers, bytes (S), text (U)
                   or objects; a pandas Series, Index or DataFrame; an Arrow array, chunked array or
                   table, a Polars Series or DataFrame, or anything else with the Arrow C data
                   interface; a dict of columns. The columns of a table are the fields of the key.
          times    when the events happened: an array of datetime64 (UTC), datetimes with a zone, or
                   numbers with ``unit``. None: now. Only windows of time look at them.
          unit     of times that are numbers: "s", "ms", "us" or "ns" since 1970.
          missing  what to do with rows without a key (None, NaN, null): "error" raises
                   :class:`BadKey` before any key is judged; "pass" lets them through (True) and
                   does not remember them.

        If a key cannot be read, nothing has been judged: the keys are checked first. Only an
        iterator is checked piece by piece. If it gives a bad key or fails itself, if memory runs
        out, and at Ctrl-C, the exception has ``judged``, the number of keys that were judged,
        ``first``, their answers, and ``rest``, the keys that were taken from an iterator and not
        judged. What was judged is remembered: without ``first`` its events are lost.
        """
        if missing not in ("error", "pass"):
            raise BadParameters(f"missing={missing!r} is unknown: give 'error' or 'pass'")
        whens = None
        if times is not None:
            whens = _times.nanoseconds(times, unit)
        elif unit is not None:
            raise BadParameters("unit= needs times=: give both or neither")
        found, whole = _keys.columns(keys, missing == "pass")
        if whole or whens is not None:
            parts = list(found)
            for part in parts:
                part.check()
            return self._judge(parts, whens)
        answers: list[npt.NDArray[np.bool_]] = []
        total = judged = 0
        try:
            for part in found:
                part.check()
                answers.append(np.empty(len(part), dtype=np.bool_))
                judged, error = self._observe(part, None, answers[-1])
                if error is not None:
                    raise _of_keys(error, total + judged)
                total, judged = total + judged, 0
        except BaseException as error:
            total += judged
            rest = found.taken[total - found.start :] if isinstance(found, _keys.Slices) else []
            tell(error, _joined(answers)[:total], rest)
            raise
        return _joined(answers)

    def _judge(
        self, parts: list[_core.Column], whens: npt.NDArray[np.int64] | None
    ) -> npt.NDArray[np.bool_]:
        total = sum(len(part) for part in parts)
        if whens is not None and len(whens) != total:
            raise BadParameters(f"there are {total} keys and {len(whens)} times: give one per key")
        first = np.empty(total, dtype=np.bool_)
        begin = 0
        for part in parts:
            end = begin + len(part)
            judged, error = self._observe(
                part, None if whens is None else whens[begin:end], first[begin:end]
            )
            if error is not None:
                error = _of_keys(error, begin + judged)
                tell(error, first[: begin + judged].copy(), [])
                raise error
            begin = end
        return first

    def merge(self, other: Seen) -> None:
        """Takes in what ``other`` remembers.

        Both must have the same arguments and the same ``seed``, or one be a copy of the other.
        Windows cannot be merged.
        """
        if not isinstance(other, Seen):
            raise BadParameters(f"other is of type {type(other).__name__}: give a Seen")
        self._merge(other)

    def save(self, file: str | os.PathLike[str], *, labels: Labels | None = None) -> None:
        """Writes a file, which :meth:`load` and the ``sluice`` command read.

        Even in a crash the file is replaced completely or not at all; the previous one stays as
        FILE.previous. It contains the secret of the hash: protect it like a password.

        The command asks how records were cut into keys before it continues a state. ``labels``
        says it: ``{"records": "lines"}`` for lines that are keys, ``{"records": "csv", "key":
        "user,ad"}`` for ``--csv --key user,ad``. Without, they are those of the file that was
        loaded, or none.
        """
        before = self._labels()
        if labels is not None:
            self._set_labels(_pairs(labels))
        try:
            self._save(_path(file))
        except BaseException:
            self._set_labels(before)
            raise

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Self:
        """Reads a file that :meth:`save` or the ``sluice`` command wrote.

        Raises :class:`NotFound`, a ``FileNotFoundError``, if there is none, and
        :class:`CorruptState` if it is damaged.
        """
        return cls._of(_core.load(_path(file)))

    def to_bytes(self) -> bytes:
        """What :meth:`save` writes. It contains the secret of the hash."""
        return self._to_bytes()

    @classmethod
    def from_bytes(cls, state: bytes | bytearray | memoryview) -> Self:
        """The reverse of :meth:`to_bytes`. The bytes may come from anywhere."""
        return cls._of(_core.from_bytes(state))

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """How the command cuts records into keys, as (name, value) pairs; see :meth:`save`."""
        return tuple(
            (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
            for name, value in self._labels()
        )

    @property
    def plan(self) -> _plan.Planning | None:
        """The plan and its reason. None if this was loaded, or if ``filter`` was given."""
        return _plan.planning_of(self._plan())

    @property
    def stats(self) -> Stats:
        """How many keys it remembers, in how many bytes, with which error."""
        return Stats(*self._stats())

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._nbytes()

    def copy(self) -> Self:
        """An independent copy."""
        return self._of(self._clone())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        filter, window = self._about()
        stats = self.stats
        return (
            f"<sluice.Seen of {window or 'every key'}: {stats.keys:,} keys in"
            f" {_core.format_size(stats.bytes)}, filter {filter},"
            f" predicted fpr {stats.predicted_fpr:.2g}>"
        )


def _of_keys(error: BaseException, judged: int) -> BaseException:
    """What a key raised when it was read, as an error of keys; others as they are."""
    if isinstance(error, Error) or not isinstance(error, Exception):
        return error
    bad = BadKeyValue(f"keys[{judged}] or one of the next {_keys.SLICE:,} keys raised {error!r}")
    bad.__cause__ = error
    return bad


def _joined(answers: list[npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
    return np.concatenate(answers) if answers else np.empty(0, dtype=np.bool_)


def _pairs(labels: Labels) -> list[tuple[bytes, bytes]]:
    pairs: list[tuple[str, str]] = []
    try:
        if isinstance(labels, Mapping):
            for name, values in labels.items():
                pairs.extend((name, one) for one in ([values] if isinstance(values, str) else values))
        else:
            pairs.extend(labels)
        return [
            (name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape"))
            for name, value in pairs
        ]
    except (AttributeError, TypeError, ValueError) as error:
        raise BadParameters(
            "labels= are not names and texts: give a dict such as {'records': 'csv', 'key': 'user'}"
        ) from error


def _path(file: str | os.PathLike[str]) -> bytes:
    try:
        path = os.fsencode(file)
    except UnicodeError as error:
        raise BadParameters(f"file {file!r} has a lone surrogate, which no name has") from error
    if b"\0" in path:
        raise BadParameters(f"file {file!r} has a NUL character, which no name has")
    return path


def key_bytes(key: Key) -> bytes:
    """The bytes that are hashed for a key: what makes two keys the same.

    >>> key_bytes("ä"), key_bytes(17), key_bytes(("user", "ad"))
    (b'\\xc3\\xa4', b'17', b'\\x04user\\x02ad')
    """
    return _core.key_bytes(key)


def json_key(*values: Any) -> bytes:
    """The key of ``sluice dedup --json`` for these values, one per pointer of ``--key``.

    Values are compared, not their text: members in any order, numbers as exact decimals.

    >>> json_key("ann", 3) == json_key("ann", 3.0)
    True
    >>> json_key({"a": 1, "b": 2}) == json_key({"b": 2, "a": 1})
    True
    """
    if not values:
        raise BadParameters("json_key() needs a value: give one per pointer of --key")
    try:
        texts = [json.dumps(value, ensure_ascii=False, allow_nan=False) for value in values]
        "".join(texts).encode()  # refuses halves of characters
    except (TypeError, ValueError) as error:
        raise BadKeyValue(f"a value is not JSON: {error}") from error
    return b"".join(_core.json_form(text) for text in texts)
