"""A key is the same bytes at every door."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sluice
from sluice import Seen, key_bytes

LONG = "a text of more than twelve bytes, so that views point elsewhere"
TEXTS = ["17", "ann", "", "ä", "日本語", "🙂", LONG, "x" * 5000, "0", "-5"]
NUMBERS = [17, 0, -5, 2**31 - 1, -(2**31)]

TEXT_DOORS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "iterator": iter,
    "generator": lambda texts: (text for text in texts),
    "bytes": lambda texts: [text.encode() for text in texts],
    "bytearray": lambda texts: [bytearray(text.encode()) for text in texts],
    "tuples of one": lambda texts: [(text,) for text in texts],
    "np.str_": lambda texts: [np.str_(text) for text in texts],
    "numpy U": lambda texts: np.array(texts),
    "numpy U swapped": lambda texts: np.array(texts).astype(">U5000"),
    "numpy U strided": lambda texts: np.repeat(np.array(texts), 2)[::2],
    "numpy S": lambda texts: np.array([text.encode() for text in texts]),
    "numpy S strided": lambda texts: np.repeat(np.array([t.encode() for t in texts]), 3)[::3],
    "numpy objects": lambda texts: np.array(texts, dtype=object),
    "numpy objects strided": lambda texts: np.repeat(np.array(texts, dtype=object), 2)[::2],
    "numpy StringDType": lambda texts: np.array(texts, dtype=np.dtypes.StringDType()),
    "dict of one column": lambda texts: {"key": texts},
    "pandas str": pd.Series,
    "pandas object": lambda texts: pd.Series(texts, dtype=object),
    "pandas string[python]": lambda texts: pd.Series(texts, dtype="string[python]"),
    "pandas string[pyarrow]": lambda texts: pd.Series(texts, dtype="string[pyarrow]"),
    "pandas ArrowDtype": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.large_string())),
    "pandas category": lambda texts: pd.Series(texts, dtype="category"),
    "pandas Index": pd.Index,
    "pandas in chunks": lambda texts: pd.concat([pd.Series(texts[:3]), pd.Series(texts[3:])]),
    "pandas frame in chunks": lambda texts: pd.concat(
        [pd.DataFrame({"key": texts[:3]}), pd.DataFrame({"key": texts[3:]})]
    ),
    "pandas CategoricalIndex": pd.CategoricalIndex,
    "pandas DataFrame": lambda texts: pd.DataFrame({"key": texts}),
    "pandas Series backwards": lambda texts: pd.Series(texts[::-1], dtype=object)[::-1],
    "arrow string": pa.array,
    "arrow large_string": lambda texts: pa.array(texts, pa.large_string()),
    "arrow binary": lambda texts: pa.array([t.encode() for t in texts], pa.binary()),
    "arrow large_binary": lambda texts: pa.array([t.encode() for t in texts], pa.large_binary()),
    "arrow string_view": lambda texts: pa.array(texts, pa.string_view()),
    "arrow binary_view": lambda texts: pa.array([t.encode() for t in texts], pa.binary_view()),
    "arrow dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "arrow slice": lambda texts: pa.array(["other", None, *texts])[2:],
    "arrow slice of views": lambda texts: pa.array(["o", None, *texts], pa.string_view())[2:],
    "arrow chunks": lambda texts: pa.chunked_array([texts[:3], [], texts[3:]], pa.string()),
    "arrow table": lambda texts: pa.table({"key": texts}),
    "arrow batch": lambda texts: pa.record_batch({"key": texts}),
    "arrow slice of a batch": lambda texts: pa.record_batch({"key": ["o", *texts]})[1:],
    "arrow reader": lambda texts: pa.table({"key": texts}).to_reader(3),
    "polars Series": pl.Series,
    "polars Categorical": lambda texts: pl.Series(texts, dtype=pl.Categorical),
    "polars binary": lambda texts: pl.Series([text.encode() for text in texts]),
    "polars DataFrame": lambda texts: pl.DataFrame({"key": texts}),
    "polars chunks": lambda texts: pl.concat(
        [pl.Series(texts[:4]), pl.Series(texts[4:])], rechunk=False
    ),
}

NUMBER_DOORS: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "numpy scalars": lambda numbers: [np.int64(number) for number in numbers],
    "numpy int64": np.array,
    "numpy int32": lambda numbers: np.array(numbers, dtype=np.int32),
    "numpy int32 swapped": lambda numbers: np.array(numbers, dtype=">i4"),
    "numpy strided": lambda numbers: np.repeat(np.array(numbers), 2)[::2],
    "numpy column": lambda numbers: np.array([[number, 1] for number in numbers])[:, 0],
    "numpy objects": lambda numbers: np.array(numbers, dtype=object),
    "array.array": lambda numbers: array.array("q", numbers),
    "memoryview": lambda numbers: memoryview(array.array("l", numbers)),
    "pandas int64": pd.Series,
    "pandas Int64": lambda numbers: pd.Series(numbers, dtype="Int64"),
    "pandas Arrow": lambda numbers: pd.Series(numbers, dtype=pd.ArrowDtype(pa.int64())),
    "pandas category": lambda numbers: pd.Series(numbers, dtype="category"),
    "pandas Index": pd.Index,
    "arrow": pa.array,
    "arrow int32": lambda numbers: pa.array(numbers, pa.int32()),
    "polars": pl.Series,
}


@pytest.mark.parametrize("door", TEXT_DOORS)
def test_texts_are_the_same_keys_at_every_door(door: str) -> None:
    seen = Seen(filter="exact", seed=1)
    # Each half alone would pass if a door gave other bytes for both calls.
    assert [seen.first(text) for text in TEXTS[:5]] == [True] * 5
    answers = seen.observe(TEXT_DOORS[door](TEXTS))
    assert answers.dtype == np.bool_
    assert answers.tolist() == [False] * 5 + [True] * 5
    assert not any(seen.first(text) for text in TEXTS)
    assert seen.stats.keys == len(TEXTS)


@pytest.mark.parametrize("door", NUMBER_DOORS)
def test_integers_are_their_decimal_text(door: str) -> None:
    seen = Seen(filter="exact", seed=1)
    assert seen.first("17")
    assert seen.observe(NUMBER_DOORS[door](NUMBERS)).tolist() == [False, True, True, True, True]
    assert not any(seen.first(str(number)) for number in NUMBERS)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_signed_integers_of_every_width(dtype: Any) -> None:
    numbers = [np.iinfo(dtype).min, -1, 0, np.iinfo(dtype).max]
    for keys in (np.array(numbers, dtype), pa.array(np.array(numbers, dtype))):
        seen = Seen(filter="exact")
        seen.observe(keys)
        assert all(str(number) in seen for number in numbers)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_integers_of_every_width(dtype: Any) -> None:
    numbers = [0, 1, np.iinfo(dtype).max]
    for keys in (np.array(numbers, dtype), pa.array(np.array(numbers, dtype))):
        seen = Seen(filter="exact")
        seen.observe(keys)
        assert all(str(number) in seen for number in numbers)


def test_large_integers() -> None:
    for number in (2**64, -(2**63) - 1, 10**40):
        assert key_bytes(number) == str(number).encode()


FIELDS: dict[str, list[Any]] = {"user": ["ann", "bob", "a"], "ad": [1, 2, 3]}
FIELD_DOORS: dict[str, Callable[[], Any]] = {
    "tuples": lambda: list(zip(*FIELDS.values())),
    "tuples of text": lambda: [(user, str(ad)) for user, ad in zip(*FIELDS.values())],
    "dict": lambda: FIELDS,
    "dict of arrays": lambda: {"user": np.array(FIELDS["user"]), "ad": pa.array(FIELDS["ad"])},
    "pandas": lambda: pd.DataFrame(FIELDS),
    "pandas MultiIndex": lambda: pd.MultiIndex.from_arrays(list(FIELDS.values())),
    "pandas categories": lambda: pd.DataFrame(FIELDS).astype({"user": "category"}),
    "arrow table": lambda: pa.table(FIELDS),
    "arrow structs": lambda: pa.array([{"u": u, "a": a} for u, a in zip(*FIELDS.values())]),
    "polars": lambda: pl.DataFrame(FIELDS),
    "object tuples": lambda: pd.Series(list(zip(*FIELDS.values()))),
}


@pytest.mark.parametrize("door", FIELD_DOORS)
def test_keys_of_several_fields(door: str) -> None:
    seen = Seen(filter="exact")
    assert seen.first(("ann", 1))
    assert seen.observe(FIELD_DOORS[door]()).tolist() == [False, True, True]
    assert not any(seen.first((user, ad)) for user, ad in zip(*FIELDS.values()))
    assert seen.stats.keys == 3


def test_the_form_of_keys() -> None:
    assert key_bytes("ä") == "ä".encode()
    assert key_bytes(b"\x00\xff") == b"\x00\xff"
    assert key_bytes(17) == b"17"
    assert key_bytes(("user",)) == b"user"
    # Lengths keep ("a", "bc") from ("ab", "c").
    assert key_bytes(("a", "bc")) == b"\x01a\x02bc"
    assert key_bytes(("x" * 200, "")) == b"\xc8\x01" + b"x" * 200 + b"\x00"
    seen = Seen(filter="exact")
    seen.observe({"a": ["x" * 200], "b": [""]})
    assert ("x" * 200, "") in seen


def test_trailing_nuls_are_as_numpy_has_them() -> None:
    seen = Seen(filter="exact")
    seen.observe(np.array([b"a\0b\0\0"], dtype="S8"))
    assert b"a\0b" in seen
    seen.observe(np.array(["ä\0b"], dtype="U8"))
    assert "ä\0b" in seen
    # Bytes elsewhere are kept as they are.
    assert b"a\0b\0\0" not in seen
    seen.observe(pa.array([b"ab\0\0"], pa.binary(4)))
    assert b"ab\0\0" in seen
    assert b"ab" not in seen


def test_nothing_is_nothing() -> None:
    nothing: list[Any] = [[], (), iter([]), np.array([], dtype="U4"), np.array([], dtype=object)]
    nothing += [pa.array([], "utf8"), pa.chunked_array([], pa.string()), pa.array([], pa.null())]
    nothing += [pd.Series([], dtype=object), pl.Series([], dtype=pl.String), pa.table({"a": []})]
    for keys in nothing:
        answers = Seen().observe(keys)
        assert answers.shape == (0,)
        assert answers.dtype == np.bool_


@pytest.mark.parametrize("count", [16383, 16384, 16385, 50000])
def test_more_keys_than_a_slice(count: int) -> None:
    numbers = np.random.default_rng(7).integers(0, count, count)
    texts = [f"user-{number}" for number in numbers]
    known: set[str] = set()
    expected = []
    for text in texts:
        expected.append(text not in known)
        known.add(text)
    doors: list[Any] = [texts, iter(texts), np.array(texts), pa.array(texts), pd.Series(texts)]
    doors.append(pa.chunked_array([texts[:20000], texts[20000:]]))
    doors.append({"a": texts, "b": np.zeros(count, dtype=np.int8)})
    doors.append(pd.Series(texts, dtype="category"))
    for keys in doors:
        assert Seen(filter="exact").observe(keys).tolist() == expected


def test_long_keys_end_a_slice_early() -> None:
    texts = [f"{number}{'x' * 1_000_000}" for number in range(12)]
    wide = [f"{number}{'日' * 400_000}" for number in range(12)]
    for keys in (texts, wide, iter(texts), {"a": texts, "b": wide}, {"a": wide, "b": list(range(12))}):
        seen = Seen(filter="exact")
        assert seen.observe(keys).all()
    assert all(text in Seen.from_bytes(seen.to_bytes()) for text in [(wide[3], 3)])


def missing_rows() -> Iterator[tuple[str, Any]]:
    yield "None", ["a", None, "b"]
    yield "NaN", ["a", float("nan"), "b"]
    yield "NA", ["a", pd.NA, "b"]
    yield "NaT", ["a", pd.NaT, "b"]
    yield "object array", np.array(["a", None, "b"], dtype=object)
    yield "empty object array", np.array(["a", np.empty(1, dtype=object)[0], "b"], dtype=object)
    yield "pandas", pd.Series(["a", None, "b"])
    yield "pandas object", pd.Series(["a", None, "b"], dtype=object)
    yield "pandas category", pd.Series(["a", None, "b"], dtype="category")
    yield "pandas string", pd.Series(["a", None, "b"], dtype="string[python]")
    yield "pandas Int64", pd.Series([1, None, 2], dtype="Int64")
    yield "pandas Arrow", pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(pa.string()))
    yield "arrow", pa.array(["a", None, "b"])
    yield "arrow views", pa.array(["a", None, "b"], pa.string_view())
    yield "arrow dictionary", pa.array(["a", None, "b"]).dictionary_encode()
    yield "arrow null in the dictionary", pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2]), pa.array(["a", None, "b"])
    )
    yield "arrow slice", pa.array(["x", "a", None, "b"])[1:]
    yield "arrow chunks", pa.chunked_array([["a"], [None, "b"]])
    yield "polars", pl.Series(["a", None, "b"])
    yield "tuples", [("a", 1), ("b", None), ("c", 2)]
    yield "table", pd.DataFrame({"u": ["a", None, "b"], "v": [1, 2, 3]})
    yield "arrow table", pa.table({"u": ["a", "c", "b"], "v": [1, None, 3]})
    yield "iterator", iter(["a", None, "b"])
    # What lies under a mask is no value; under this one it would be no key, either.
    yield "masked objects", np.ma.array(["a", 1.5, "b"], mask=[False, True, False], dtype=object)
    yield "masked text", np.ma.array(["a", "a", "b"], mask=[False, True, False])
    yield "masked bytes", np.ma.array([b"a", b"a", b"b"], mask=[False, True, False])
    yield "masked integers", np.ma.array([1, 1, 2], mask=[False, True, False])
    yield "a list of a masked array", list(np.ma.array([1, 1, 2], mask=[False, True, False]))
    yield "masked column", {"u": np.ma.array([1, 1, 2], mask=[False, True, False]), "v": [1, 2, 3]}


@pytest.mark.parametrize("keys", [pytest.param(keys, id=name) for name, keys in missing_rows()])
def test_missing_keys_are_refused_by_position(keys: Any) -> None:
    seen = Seen()
    is_table = isinstance(keys, (dict, pd.DataFrame, pa.Table))
    place = r"keys\['[uv]'\]\[1\]" if is_table else r"keys\[[01]\]"
    with pytest.raises(sluice.BadKey, match=place + ".*missing='pass'") as caught:
        seen.observe(keys)
    # Nothing was judged, so that a second try loses nothing.
    assert caught.value.judged == 0
    assert seen.stats.keys == 0


@pytest.mark.parametrize("keys", [pytest.param(keys, id=name) for name, keys in missing_rows()])
def test_missing_keys_may_pass(keys: Any) -> None:
    seen = Seen()
    assert seen.observe(keys, missing="pass").tolist() == [True, True, True]
    assert seen.stats.keys == 2


def test_missing_keys_pass_every_time_and_with_times() -> None:
    seen = Seen(window="10m")
    for expected in ([True, True, True, False], [False, True, True, False]):
        answers = seen.observe(
            ["a", None, None, "a"], times=[1, 2, 3, 4], unit="s", missing="pass"
        )
        assert answers.tolist() == expected


def test_a_mask_that_hides_nothing() -> None:
    for keys in (np.ma.array([1, 2, 1]), np.ma.array([1, 2, 1], mask=[False] * 3)):
        assert Seen().observe(keys).tolist() == [True, True, False]
    with pytest.raises(sluice.BadKey, match="array of float64"):
        Seen().observe(np.ma.array([1.5, 2.5], mask=[False, True]))
    with pytest.raises(sluice.BadKey, match="key is masked"):
        Seen().first(np.ma.masked)  # type: ignore[arg-type]


def test_integers_with_gaps_get_advice_that_keeps_the_gaps_apart() -> None:
    """pandas makes floats of them, and .astype(str) one key, 'nan', of all gaps."""
    users = pd.Series([17, None, None])
    with pytest.raises(sluice.BadKey, match=r"\.astype\('Int64'\)"):
        Seen().observe(users)
    seen = Seen()
    assert seen.observe(users.astype("Int64"), missing="pass").tolist() == [True, True, True]
    assert not seen.first("17")


def test_a_column_with_nothing_in_it() -> None:
    """pandas makes floats of it; chunks of a file have such columns."""
    for nothing in ([], [None, None]):
        floats = pd.Series(nothing, dtype="float64")
        assert Seen().observe(floats, missing="pass").tolist() == [True] * len(nothing)
        table = pd.DataFrame({"u": floats, "v": ["a"] * len(nothing)})
        assert Seen().observe(table, missing="pass").tolist() == [True] * len(nothing)
    with pytest.raises(sluice.BadKey, match=r"keys\['u'\]\[0\] is NaN"):
        Seen().observe(table)
    with pytest.raises(sluice.BadKey, match=r"keys\['u'\] is an array of float64"):
        Seen().observe(pd.DataFrame({"u": [1.5], "v": [1]}))


def test_sparse_columns() -> None:
    assert Seen().observe(pd.Series([0, 0, 2], dtype="Sparse[int]")).tolist() == [True, False, True]
    with pytest.raises(sluice.BadKey):
        Seen().observe(pd.Series([0.5, 0.0], dtype="Sparse[float]"))


def test_empty_text_is_a_key() -> None:
    seen = Seen()
    assert seen.observe(["", "", "a"], missing="pass").tolist() == [True, False, True]
    assert seen.observe(pd.Series(["", None]), missing="pass").tolist() == [False, True]
    assert key_bytes("") == b""
    assert seen.observe({"a": ["", ""], "b": ["", ""]}).tolist() == [True, False]


def test_all_missing() -> None:
    assert Seen().observe(pa.nulls(3), missing="pass").all()
    with pytest.raises(sluice.BadKey, match="null"):
        Seen().observe(pa.nulls(3))


@pytest.mark.parametrize(
    "keys",
    [
        ["a", 1.5],
        ["a", True],
        ["a", np.True_],
        ["a", object()],
        ["a", ()],
        ["a", (("b",), "c")],
        ["a", ["b"]],
        np.array([1.5]),
        np.array([True]),
        np.array(["2024-01-01"], dtype="datetime64[D]"),
        np.array([["a"]]),
        np.array([1 + 2j]),
        pd.Series([1.5]),
        pd.Series([True]),
        pd.Series(pd.to_datetime(["2024-01-01"])),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([["a"]]),
        pl.Series([1.5]),
        "abc",
        b"abc",
        17,
        None,
        ["a", "\ud800"],
        np.array(["a", "\ud800"]),
    ],
    ids=repr,
)
def test_what_is_no_key_is_refused(keys: Any) -> None:
    seen = Seen()
    with pytest.raises(sluice.Error) as caught:
        seen.observe(keys)
    assert isinstance(caught.value, (TypeError, ValueError))
    assert seen.stats.keys == 0


@pytest.mark.parametrize("key", [None, 1.5, True, (), ["a"], object(), float("nan"), "\udfff"])
def test_one_bad_key(key: Any) -> None:
    seen = Seen()
    for call in (seen.first, seen.contains, seen.forget, seen.__contains__, key_bytes):
        with pytest.raises((sluice.BadKey, sluice.BadKeyValue), match="key"):
            call(key)


def test_an_iterator_that_fails_tells_what_was_judged() -> None:
    def keys() -> Iterator[Any]:
        yield from (f"k{number}" for number in range(20000))
        yield None

    seen = Seen()
    with pytest.raises(sluice.BadKey) as caught:
        seen.observe(keys())
    # Whole slices before the bad one.
    assert caught.value.judged == 16384
    assert caught.value.first is not None
    assert caught.value.first.sum() == 16384
    assert seen.stats.keys == 16384


def test_columns_of_different_lengths() -> None:
    with pytest.raises(sluice.BadParameters, match="differ in length: 2 rows and 1 row"):
        Seen().observe({"a": ["x", "y"], "b": ["z"]})
    with pytest.raises(sluice.BadParameters, match="without columns"):
        Seen().observe({})
    with pytest.raises(sluice.BadParameters, match="without columns"):
        Seen().observe(pd.DataFrame(index=range(3)))


def test_a_key_that_changes_its_list() -> None:
    keys: list[Any] = []

    class Evil:
        def __index__(self) -> int:
            keys.clear()
            return 5

    keys.extend(["a", Evil(), "b", "c"])
    with pytest.raises(sluice.BadKeyValue, match="changed while they were read"):
        Seen().observe(keys)

    class Failing:
        def __index__(self) -> int:
            raise RuntimeError("not today")

    with pytest.raises(sluice.BadKeyValue) as caught:
        Seen().observe(["a", Failing()])
    assert isinstance(caught.value.__cause__, RuntimeError)
