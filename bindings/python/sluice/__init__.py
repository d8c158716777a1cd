"""Sluice removes duplicates from endless streams, in bounded memory.

>>> import sluice
>>> seen = sluice.Seen(window="10m", fpr=1e-6)
>>> seen.first("user-17:ad-3"), seen.first("user-17:ad-3")
(True, False)

:class:`Seen` is all that most programs need; ``help(sluice.Seen)`` says what it can do.
:func:`plan` tells which filter would be made for a job, how large and why.
"""

from ._core import version as __version__
from ._errors import (
    BadKey,
    BadKeyValue,
    BadParameters,
    BadTime,
    CorruptState,
    Error,
    IoError,
    IsDirectory,
    NoMemory,
    NotFound,
    NotPermitted,
)
from ._plan import NearRequest, Plan, Planning, plan
from ._seen import Seen, Stats, json_key, key_bytes

__all__ = [
    "BadKey",
    "BadKeyValue",
    "BadParameters",
    "BadTime",
    "CorruptState",
    "Error",
    "IoError",
    "IsDirectory",
    "NearRequest",
    "NoMemory",
    "NotFound",
    "NotPermitted",
    "Plan",
    "Planning",
    "Seen",
    "Stats",
    "__version__",
    "json_key",
    "key_bytes",
    "plan",
]
