"""The redis-cli sessions of a document: blocks of the language `redis`. A line after `> ` is a command, what
follows is what redis-cli prints for it.

Of what one machine or one moment decides only the form is compared: times in ms since 1970, how servers print
fractions, and `...`, which stands for anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Step(NamedTuple):
    line: int
    command: str
    shown: str


def steps(document: Path) -> Iterator[Step]:
    inside = False
    command, shown, start = "", list[str](), 0
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if line.startswith("```") or (inside and line.startswith("> ")):
            if command:
                yield Step(start, command, "\n".join(shown))
            command, shown, start = line.removeprefix("> "), [], number
        elif inside:
            shown.append(line)
        if line.startswith("```"):
            inside = line == "```redis"
            command = ""


def same(shown: str, said: str) -> bool:
    """Whether `said` is what a document shows."""
    parts = [re.escape(part) for part in _settled(shown).split("...")]
    return re.fullmatch(".*".join(parts), _settled(said), re.DOTALL) is not None


def _settled(text: str) -> str:
    text = re.sub(r"\b1[0-9]{12}\b", "MS", text.strip())
    # One server prints 1e-06 as 0.000001, another as 9.9999999999999995e-07.
    return re.sub(
        r'"([0-9]+\.[0-9]+(?:e-[0-9]+)?|[0-9.]+e-[0-9]+)"', lambda found: f'"{float(found[1]):.3g}"', text
    )
