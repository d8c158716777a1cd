"""Arrow structs that lie: built by hand, as no library would."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

import sluice
from sluice import Seen


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


_RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
_RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", _RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", _RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Made:
    """Two keys, "ab" and "c", as an array of strings; `change` makes it wrong."""

    def __init__(self, change: Callable[[Made], None] = lambda made: None) -> None:
        self.released = 0
        self.offsets = (ctypes.c_int32 * 3)(0, 2, 3)
        self.data = ctypes.create_string_buffer(b"abc")
        self.buffers = (ctypes.c_void_p * 4)(
            None, ctypes.addressof(self.offsets), ctypes.addressof(self.data), None
        )
        self.schema = Schema(format=b"u", release=_RELEASE_SCHEMA(lambda schema: None))
        self.array = Array(length=2, n_buffers=3, buffers=self.buffers)
        self.array.release = self.on_release = _RELEASE_ARRAY(self._release)
        change(self)

    def _release(self, array: Any) -> None:
        self.released += 1

    def __arrow_c_array__(self, requested: object = None) -> tuple[Any, Any]:
        return (
            _new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )


def test_a_good_array_is_read_and_released() -> None:
    made = Made()
    seen = Seen(filter="exact")
    assert seen.observe(made).tolist() == [True, True]
    assert "ab" in seen and "c" in seen
    assert made.released == 1
    # It was moved out: the capsule must not be used again.
    with pytest.raises(sluice.BadKeyValue, match="was used"):
        seen.observe(made)


def _set(**fields: Any) -> Callable[[Made], None]:
    def change(made: Made) -> None:
        for name, value in fields.items():
            setattr(made.array, name, value)

    return change


def _offsets(*offsets: int) -> Callable[[Made], None]:
    def change(made: Made) -> None:
        made.offsets[:] = list(offsets)

    return change


def _format(text: bytes) -> Callable[[Made], None]:
    def change(made: Made) -> None:
        made.schema.format = text

    return change


def _no_buffer(number: int) -> Callable[[Made], None]:
    def change(made: Made) -> None:
        made.buffers[number] = None

    return change


def _view(size: int, buffer: int, offset: int, bytes_in_buffer: int) -> Callable[[Made], None]:
    def change(made: Made) -> None:
        made.schema.format = b"vu"
        made.views = (ctypes.c_int32 * 4)(size, 0, buffer, offset)  # type: ignore[attr-defined]
        made.sizes = (ctypes.c_int64 * 1)(bytes_in_buffer)  # type: ignore[attr-defined]
        made.buffers[1] = ctypes.addressof(made.views)  # type: ignore[attr-defined]
        made.buffers[3] = ctypes.addressof(made.sizes)  # type: ignore[attr-defined]
        made.array.length = 1
        made.array.n_buffers = 4

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_set(length=-1), id="negative length"),
        pytest.param(_set(length=2**62), id="huge length"),
        pytest.param(_set(offset=-1), id="negative offset"),
        pytest.param(_set(offset=2**63 - 1), id="huge offset"),
        pytest.param(_set(n_buffers=2), id="too few buffers"),
        pytest.param(_set(n_buffers=-1), id="negative buffers"),
        pytest.param(_set(buffers=None), id="no buffers"),
        pytest.param(_set(null_count=3), id="more nulls than rows"),
        pytest.param(_set(null_count=-2), id="negative null_count"),
        pytest.param(_set(null_count=1), id="nulls without a bitmap"),
        pytest.param(_no_buffer(1), id="no offsets"),
        pytest.param(_no_buffer(2), id="no data"),
        pytest.param(_offsets(0, 3, 2), id="offsets that go back"),
        pytest.param(_offsets(-1, 2, 3), id="negative offsets"),
        pytest.param(_format(b"w:x"), id="a width that is no number"),
        pytest.param(_format(b"w:99999999999"), id="a huge width"),
        pytest.param(_format(b"+s"), id="a struct without columns"),
        pytest.param(_view(13, 1, 0, 100), id="a view of a buffer that is not there"),
        pytest.param(_view(13, -1, 0, 100), id="a view of a negative buffer"),
        pytest.param(_view(13, 0, 1, 13), id="a view past the end"),
        pytest.param(_view(13, 0, -1, 100), id="a view before the start"),
        pytest.param(_view(-1, 0, 0, 100), id="a view of negative size"),
        pytest.param(_view(2**31 - 1, 0, 2**31 - 1, 100), id="a view that overflows"),
    ],
)
def test_damaged_arrays_are_refused(change: Callable[[Made], None]) -> None:
    made = Made(change)
    seen = Seen()
    with pytest.raises((sluice.BadKeyValue, sluice.BadParameters), match="damaged|without columns"):
        seen.observe(made)
    assert seen.stats.keys == 0
    assert made.released == 1


@pytest.mark.parametrize("format", [b"g", b"b", b"tsn:UTC", b"+l", b"", b"vx", b"\xff"])
def test_other_types_are_refused(format: bytes) -> None:
    with pytest.raises(sluice.BadKey, match="Arrow type"):
        Seen().observe(Made(_format(format)))


def test_what_is_no_capsule_is_refused() -> None:
    class Liar:
        def __arrow_c_array__(self, requested: object = None) -> tuple[Any, Any]:
            return 1, 2

    class Stream:
        def __arrow_c_stream__(self, requested: object = None) -> Any:
            return _new_capsule(1, b"other", None)

    for liar in (Liar(), Stream()):
        with pytest.raises(sluice.BadKey, match="not a capsule"):
            Seen().observe(liar)


def test_a_stream_that_fails() -> None:
    pa = pytest.importorskip("pyarrow")

    def batches() -> Any:
        yield pa.record_batch({"k": ["a", "b"]})
        raise RuntimeError("the source is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.string()}), batches())
    seen = Seen()
    with pytest.raises((sluice.Error, RuntimeError), match="the source is gone") as caught:
        seen.observe(reader)
    # What came before was judged, and the exception tells it.
    assert isinstance(caught.value, sluice.Error)
    assert caught.value.judged == 2
    assert seen.stats.keys == 2
