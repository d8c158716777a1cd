"""Items that somebody has chosen against a filter: they hit every filter that hashes alike, and no other. That they
hit at all is seen on a filter whose secret the adversary knows (SEED), as it would be without one."""

from __future__ import annotations

import math

import pytest

from server import MODULE, Server, both, needs_module
from workload import Word, Words, count

pytestmark = needs_module

FPR = 0.02
FILLED = 2000
# Every kind that errs, at a rate at which errors can be counted.
MAKINGS: dict[str, Words] = {
    "cohort": ("WINDOW", FILLED, "FILTER", "cohort"),
    "growing": ("FILTER", "growing", "slot", 16),
    "bloom": ("EXPECT", FILLED),
    "classic": ("EXPECT", FILLED, "FILTER", "bloom", "layout", "classic"),
    "counting": ("EXPECT", FILLED, "FILTER", "counting"),
    "dynamic": ("EXPECT", FILLED, "FILTER", "dynamic"),
    "apbf": ("WINDOW", FILLED, "FILTER", "apbf"),
    "apbbf": ("WINDOW", FILLED, "FILTER", "apbbf"),
    "timing": ("WINDOW", "10m", "EXPECT", FILLED, "FILTER", "timing"),
    "timer": ("WINDOW", "10m", "EXPECT", FILLED, "FILTER", "timer"),
}


def filled(server: Server, key: str, *making: Word) -> None:
    server.command("SLUICE.RESERVE", key, "FPR", FPR, *making)
    for first in range(0, FILLED, 500):
        server.command("SLUICE.MADD", key, *(f"honest-{i}" for i in range(first, first + 500)))


def hits(server: Server, key: str, items: list[str]) -> list[str]:
    """Which of these items, none of which was added, the filter takes for known."""
    found: list[str] = []
    for first in range(0, len(items), 1000):
        some = items[first : first + 1000]
        answers = server.command("SLUICE.MEXISTS", key, *some)
        found += [item for item, answer in zip(some, answers, strict=True) if answer == 1]
    return found


@both
@pytest.mark.parametrize("kind", MAKINGS)
def test_chosen_items_hit_only_a_filter_whose_secret_is_known(name: str, kind: str) -> None:
    making = MAKINGS[kind]
    tries = count(20_000, 100_000)
    with Server(name, module=MODULE) as server:
        # The adversary tries items on a filter of their own.
        filled(server, "own", "SEED", 41, *making)
        chosen = hits(server, "own", [f"tried-{i}" for i in range(tries)])
        assert len(chosen) > 20
        filled(server, "known", "SEED", 41, *making)
        assert hits(server, "known", chosen) == chosen
        for i in range(3):
            filled(server, f"secret-{i}", *making)
        others = [hits(server, f"secret-{i}", chosen) for i in range(3)]
        # As for any other items: its own error, within six standard errors of what may be at most.
        for i, found in enumerate(others):
            expected = float(server.command("SLUICE.INFO", f"secret-{i}", "predicted_fpr")) * len(chosen)
            assert len(found) <= expected + 6 * math.sqrt(expected) + 3, (i, len(found), expected)
        # The errors of two filters have nothing to do with each other.
        assert len(set(others[0]) & set(others[1])) <= 3 + 2 * FPR * len(chosen)
