"""Keys as Python has them, to columns of the extension."""

from __future__ import annotations

import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._errors import BadKey

# Keys of an iterator that are held at a time.
SLICE = 16384


def columns(keys: Any, passes: bool) -> tuple[Iterator[_core.Column], bool]:
    """The keys as columns, one after the other, and whether all of them are in memory already."""
    if isinstance(keys, (str, bytes, bytearray)):
        raise BadKey(
            f"keys is one {type(keys).__name__}, and observe() takes many: call first(key), or give"
            " a list"
        )
    if isinstance(keys, (list, tuple)):
        return iter([_core.list_column(keys, "", passes, 0)]), True
    if _is_frame(keys) or isinstance(keys, Mapping):
        return iter([_fields(keys, passes)]), True
    if _is_pandas(keys) and _is_arrow(keys.dtype):
        keys = keys.array.__arrow_array__()
    if _is_pandas(keys) or isinstance(keys, np.ndarray):
        return iter([_column(keys, "", passes)]), True
    if hasattr(keys, "__arrow_c_stream__"):
        stream = _core.ArrowStream(keys.__arrow_c_stream__(), passes)
        return iter(stream.next, None), hasattr(keys, "__len__")
    if hasattr(keys, "__arrow_c_array__"):
        return iter([_of_arrow(keys, "", passes)]), True
    if isinstance(keys, (array.array, memoryview)):
        return iter([_column(np.asarray(keys), "", passes)]), True
    if isinstance(keys, Iterable):
        return Slices(iter(keys), passes), False
    raise BadKey(
        f"keys is of type {type(keys).__name__}: give a list, an array, a column or an iterable"
    )


class Slices(Iterator[_core.Column]):
    """The keys of an iterator, a slice at a time: all that it gave, also if it fails."""

    def __init__(self, keys: Iterator[Any], passes: bool) -> None:
        self._keys = keys
        self._passes = passes
        self.start = 0  #: keys before the last slice
        self._failure: BaseException | None = None
        self.taken: list[Any] = []  #: the keys of the last slice

    def __next__(self) -> _core.Column:
        self.start += len(self.taken)
        self.taken = []
        if self._failure is None:
            try:
                self.taken.extend(islice(self._keys, SLICE))
            except BaseException as error:
                self._failure = error
        if self.taken:
            return _core.list_column(self.taken, "", self._passes, self.start)
        if self._failure is not None:
            raise self._failure
        raise StopIteration


def _is_pandas(keys: object) -> bool:
    return type(keys).__module__.partition(".")[0] == "pandas" and hasattr(keys, "dtype")


def _is_frame(keys: object) -> bool:
    module = type(keys).__module__.partition(".")[0]
    return module == "pandas" and (hasattr(keys, "columns") or hasattr(keys, "levels"))


def _fields(keys: Any, passes: bool) -> _core.Column:
    """A table: each column is a field of the key."""
    if isinstance(keys, Mapping):
        named = list(keys.items())
    elif hasattr(keys, "levels"):  # a MultiIndex
        named = [(name, keys.get_level_values(i)) for i, name in enumerate(keys.names)]
    else:
        named = [(name, keys.iloc[:, i]) for i, name in enumerate(keys.columns)]
    found = [_column(values, _printable(name), passes) for name, values in named]
    return _core.fields_column(found)


def _printable(name: object) -> str:
    return str(name).encode("utf-8", "backslashreplace").decode()


def _column(keys: Any, name: str, passes: bool) -> _core.Column:
    """One column whose rows are in memory."""
    if isinstance(keys, (list, tuple)):
        return _core.list_column(keys, name, passes, 0)
    if isinstance(keys, np.ndarray):
        return _of_array(keys, name, passes)
    if _is_pandas(keys):
        return _of_pandas(keys, name, passes)
    found, whole = columns(keys, passes)
    parts = list(found)
    if not whole or len(parts) != 1:
        raise BadKey(
            f"keys[{name!r}] comes in {len(parts)} parts: combine its chunks, or give a table"
        )
    return parts[0]


def _of_pandas(keys: Any, name: str, passes: bool) -> _core.Column:
    dtype = keys.dtype
    if hasattr(dtype, "categories"):
        categorical = keys.array
        codes = np.ascontiguousarray(categorical.codes, dtype=np.int64)
        return _core.coded_column(codes, _column(categorical.categories, name, True), name, passes)
    if isinstance(dtype, np.dtype):
        return _of_array(keys.to_numpy(), name, passes)
    # Extension types: those of Arrow have its buffers, masked integers a mask.
    if _is_arrow(dtype):
        values = keys.array.__arrow_array__()
        if hasattr(values, "num_chunks"):  # several chunks are copied
            values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
        return _of_arrow(values, name, passes)
    numbers = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", None))  # masked, sparse
    if getattr(numbers, "kind", "O") in "iu" and not keys.isna().any():
        return _of_array(keys.to_numpy(dtype=numbers), name, passes)
    return _of_array(keys.to_numpy(dtype=object), name, passes)


def _of_arrow(keys: Any, name: str, passes: bool) -> _core.Column:
    schema, values = keys.__arrow_c_array__()
    return _core.arrow_column(schema, values, name, passes)


def _is_arrow(dtype: Any) -> bool:
    return getattr(dtype, "storage", "") == "pyarrow" or hasattr(dtype, "pyarrow_dtype")


def _of_array(keys: npt.NDArray[Any], name: str, passes: bool) -> _core.Column:
    what = f"keys[{name!r}]" if name else "keys"
    if keys.ndim != 1:
        raise BadKey(
            f"{what} is an array of {keys.ndim} dimensions: give one, or for keys of several fields"
            " a dict or table of columns"
        )
    kind = keys.dtype.kind
    if type(keys) is not np.ndarray and isinstance(keys, np.ma.MaskedArray):
        keys = _unmasked(keys) if kind in "OiuSUT" else np.asarray(keys)
        kind = keys.dtype.kind
    if kind == "T":  # NumPy's strings of any length
        keys, kind = keys.astype(object), "O"
    if kind == "f" and np.isnan(keys).all():  # how pandas reads a column with nothing in it
        keys, kind = keys.astype(object), "O"
    if kind not in "OiuSU":
        raise BadKey(
            f"{what} is an array of {keys.dtype}: give str, bytes or integers" + _advice(kind)
        )
    if not keys.dtype.isnative:
        keys = keys.astype(keys.dtype.newbyteorder("="))
    return _core.array_column(keys, kind, name, passes)


def _advice(kind: str) -> str:
    if kind in "fc":
        return (
            ". pandas makes floats of integers where some are missing: .astype('Int64') makes them"
            " integers again. (.astype(str) would make 'nan' of all that are missing: one key)"
        )
    return " (.astype(str) makes text)"


class MaskedConstant:
    """What a mask hides, with the name by which the extension knows NumPy's own.

    That is an array, of which NumPy would store the 0.0 that is in it.
    """


_MASKED = MaskedConstant()


def _unmasked(keys: np.ma.MaskedArray[Any, Any]) -> npt.NDArray[Any]:
    """Without its mask: what is masked has no value."""
    mask = np.ma.getmaskarray(keys)
    if not mask.any():
        return np.asarray(keys.data)
    objects = keys.data.astype(object)
    objects[mask] = _MASKED
    return objects
