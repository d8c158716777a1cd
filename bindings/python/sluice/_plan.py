"""Plans: which filter, how large, with which errors, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _core, _quantities


@dataclass(frozen=True)
class Plan:
    """A filter that the planner considered."""

    filter: str  #: its name and layout
    settings: str  #: all its parameters
    holds: int  #: keys of the set or window
    bytes: int  #: of memory
    bits_per_key: float
    fpr: float  #: chance to lose a new key
    fnr: float  #: chance to let a duplicate through
    slack: float  #: how much longer than the window a key may stay, as a share of it
    npws: float  #: the peak share of expired keys still remembered
    lines: float  #: cache lines that a new key touches
    over_bound: float | None  #: bits per key above the theoretical minimum
    why_not: str  #: empty if it is feasible


@dataclass(frozen=True)
class NearRequest:
    """A request that can be met: one argument is relaxed, or as few as necessary."""

    keyword: str
    value: str
    also: str


@dataclass(frozen=True)
class Planning:
    """What the planner answered. ``print(planning)`` shows it as text."""

    candidates: tuple[Plan, ...]  #: the chosen one first, then the other feasible ones
    chosen: Plan | None
    reason: str  #: why it was chosen, or why there is none
    assumed: str  #: assumptions about what was not given
    nearest: tuple[NearRequest, ...]  #: if nothing is feasible

    def __str__(self) -> str:
        lines = []
        if self.chosen is not None:
            plan = self.chosen
            lines.append(
                f"{plan.filter}: {_core.format_size(plan.bytes)},"
                f" {plan.bits_per_key:.1f} bits per key, fpr {plan.fpr:.2g}"
            )
        lines.append(self.reason)
        if self.assumed:
            lines.append(self.assumed)
        for near in self.nearest:
            lines.append(f"{near.keyword}{near.value}" + (f", {near.also}" if near.also else ""))
        return "\n".join(lines)


def planning_of(answer: Any) -> Planning | None:
    """From what the extension returns."""
    if answer is None:
        return None
    candidates, chosen, reason, assumed, nearest = answer
    plans = tuple(Plan(*candidate) for candidate in candidates)
    return Planning(
        plans,
        None if chosen is None else plans[chosen],
        reason,
        assumed,
        tuple(NearRequest(*near) for near in nearest),
    )


def plan(
    *,
    window: _quantities.Window | None = None,
    refresh: bool = False,
    rate: float | str | None = None,
    keys: int | str | None = None,
    fpr: float | str | None = None,
    fnr: float | str | None = None,
    slack: float | None = None,
    npws: float | None = None,
    lines: float | None = None,
    memory: int | str | None = None,
) -> Planning:
    """Plans a filter without making it: which one, how large, with which errors, and why.

    The arguments are those of :class:`Seen`; ``fnr``, ``slack``, ``npws`` and ``lines`` allow or
    demand what docs/planning.md explains.

    >>> import sluice
    >>> planning = sluice.plan(keys="50M", fpr=1e-6)
    >>> planning.chosen.bytes < 300_000_000
    True
    """
    answer = planning_of(
        _core.plan(
            _quantities.window_text(window),
            _quantities.flag("refresh=", refresh),
            _quantities.rate(rate),
            _quantities.count("keys=", keys),
            _quantities.probability("fpr=", fpr),
            _quantities.probability("fnr=", fnr),
            _quantities.number("slack=", slack, "a share of the window, such as 0.1"),
            _quantities.number("npws=", npws, "a share, such as 0.1"),
            _quantities.number("lines=", lines, "a number of cache lines"),
            _quantities.size("memory=", memory),
        )
    )
    assert answer is not None
    return answer
