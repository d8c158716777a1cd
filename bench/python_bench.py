"""observe() against a set, pandas and rbloom: time, and memory above the input.

Each is run in a process of its own, in turns, and the best of its runs counts: the time of observe()
and the like alone, by the wall clock and by the processor, and the peak of the process's memory above
what it was when the input was complete, the answers included.

Prints a table, and for each bar how far it is met. `./dev bench python` runs it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

FPR = 1e-6
Contest = Callable[[Any], Any]


def texts(count: int) -> list[str]:
    """Keys of 16 bytes: `count` draws out of as many, so that 63 % are distinct."""
    import numpy as np

    drawn = np.random.default_rng(7).integers(0, count, count)
    return [f"user-{number:011d}" for number in drawn.tolist()]


def series(count: int) -> Any:
    """The same as a pandas column of the default type."""
    import pandas as pd

    return pd.Series(texts(count))


def by_loop(keys: list[str], seen: Any) -> list[bool]:
    first = []
    for key in keys:
        if key in seen:
            first.append(False)
        else:
            seen.add(key)
            first.append(True)
    return first


def by_set(keys: list[str]) -> Any:
    return by_loop(keys, set())


def by_pandas(keys: Any) -> Any:
    return ~keys.duplicated()


def by_rbloom(keys: list[str]) -> Any:
    """As its documentation says: Bloom(items, error), `in` and add()."""
    from rbloom import Bloom

    return by_loop(keys, Bloom(len(keys), FPR))


def by_sluice(keys: Any) -> Any:
    import sluice

    return sluice.Seen(fpr=FPR).observe(keys)


def by_sluice_sized(keys: Any) -> Any:
    import sluice

    return sluice.Seen(keys=len(keys), fpr=FPR).observe(keys)


CONTESTS: dict[str, tuple[str, Callable[[int], Any], Contest]] = {
    "sluice": ("Seen().observe(list)", texts, by_sluice),
    "sluice-sized": ("Seen(keys=n).observe(list)", texts, by_sluice_sized),
    "set": ("a loop with a set", texts, by_set),
    "rbloom": ("a loop with rbloom", texts, by_rbloom),
    "sluice-pandas": ("Seen().observe(Series)", series, by_sluice),
    "pandas": ("Series.duplicated()", series, by_pandas),
}
# (ours, theirs, times as fast, share of the memory or none)
BARS = [
    ("sluice", "set", 5.0, 1 / 3),
    ("sluice-pandas", "pandas", 1.5, 1 / 3),
    ("sluice", "rbloom", 2.0, None),
]


def status(field: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def run_one(name: str, count: int) -> dict[str, float]:
    """One contest, in this process."""
    import numpy as np

    _, make, contest = CONTESTS[name]
    small = make(10)
    contest(small)  # what is loaded on first use is no part of the cost
    keys = make(count)
    # From here on, the peak counts what is added.
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = status("VmRSS:")
    cpu, wall = time.process_time(), time.perf_counter()
    first = contest(keys)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = status("VmHWM:") - before
    return {"cpu": cpu, "wall": wall, "peak": peak, "first": int(np.sum(first))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", choices=CONTESTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run_one(given.one, given.keys)))
        return 0
    best: dict[str, dict[str, float]] = {}
    for _ in range(given.repeats):
        for name in CONTESTS:
            answer = subprocess.run(
                [sys.executable, __file__, "--one", name, "--keys", str(given.keys)],
                check=True,
                stdout=subprocess.PIPE,
            ).stdout
            result: dict[str, float] = json.loads(answer)
            for measure in ("cpu", "wall", "peak"):
                known = best.get(name, result)
                result[measure] = min(result[measure], known[measure])
            best[name] = result
    print(f"{given.keys:,} keys of 16 bytes, fpr {FPR}; the best of {given.repeats}")
    print(f"{'':28} {'wall s':>8} {'cpu s':>8} {'MiB above input':>16} {'new keys':>12}")
    for name, (title, _, _) in CONTESTS.items():
        is_ = best[name]
        print(
            f"{title:28} {is_['wall']:8.2f} {is_['cpu']:8.2f} {is_['peak'] / 2**20:16.1f}"
            f" {is_['first']:12,.0f}"
        )
    for ours, theirs, times, share in BARS:
        faster = best[theirs]["wall"] / best[ours]["wall"]
        faster_cpu = best[theirs]["cpu"] / best[ours]["cpu"]
        line = f"{CONTESTS[ours][0]} is {faster:.1f} × as fast as {CONTESTS[theirs][0]}"
        line += f" ({faster_cpu:.1f} × by processor time; the bar is {times})"
        if share is not None:
            part = best[ours]["peak"] / max(best[theirs]["peak"], 1)
            line += f", with {part:.2f} of its memory (the bar is {share:.2f})"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
