"""What sluice raises. Every class is also the builtin exception that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Error(Exception):
    """The base of all exceptions of sluice.

    If :meth:`Seen.observe` raised it, ``judged`` is the number of keys that were judged before, and
    ``first`` has their answers. These keys are remembered; the others are as if they had not come.
    ``rest`` has the keys that were taken from an iterator and not judged.
    """

    judged: int = 0
    first: npt.NDArray[np.bool_] | None = None
    rest: list[Any] | None = None


class BadParameters(Error, ValueError):
    """An argument is impossible: the message names it and says what would be right."""


class BadKey(Error, TypeError):
    """A key is of a type that cannot be a key, or is missing: the message names its position."""


class BadKeyValue(Error, ValueError):
    """A key of the right type cannot be read: the message names its position."""


class BadTime(Error, ValueError):
    """A time is missing, has no zone or no unit, or is no time: the message says which."""


class NoMemory(Error, MemoryError):
    """Memory ran out, or what ``memory=`` allows."""


class CorruptState(Error, ValueError):
    """The bytes or the file are not a complete, undamaged state."""


class IoError(Error, OSError):
    """The system refused; ``errno`` tells why."""

    def __str__(self) -> str:
        return str(self.args[1]) if len(self.args) > 1 else super().__str__()


class NotFound(IoError, FileNotFoundError):
    """There is no such file."""


class NotPermitted(IoError, PermissionError):
    """The file may not be read or written."""


class IsDirectory(IoError, IsADirectoryError):
    """There is a directory of that name."""


def tell(error: BaseException, first: npt.NDArray[np.bool_], rest: list[Any]) -> None:
    """Says in an exception what was judged before it. It may be that of a caller's iterator."""
    judged = len(first)
    told: Any = error
    try:
        told.judged, told.first, told.rest = judged, first, rest
    except Exception:  # a class whose objects do not change
        other = Error(f"the keys ended with {error!r}: {judged:,} were judged before")
        other.judged, other.first, other.rest = judged, first, rest
        raise other from error
    if judged > 0 and not isinstance(error, Error):
        error.add_note(
            f"sluice: {judged:,} keys were judged before this, and are remembered. This exception"
            " has their answers as its attribute first."
        )


def io_error(number: int, message: str) -> IoError:
    """Makes the class that fits the number."""
    builtin = type(OSError(number, message))
    for one in (NotFound, NotPermitted, IsDirectory):
        if issubclass(one, builtin) and builtin is not OSError:
            return one(number, message)
    return IoError(number, message)
