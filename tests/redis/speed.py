#!/usr/bin/env python3
"""Speed on real servers: `tests/redis/run.sh speed [PART...]` prints ratios, medians of nine interleaved pairs.

    rates     ADD and MADD against SET NX EX, and MADD against a command that does nothing, with the server's own
              benchmark tool, from an empty server on
    steady    the same after a first round, which is not measured: the memory of the filter, and of the keys of SET, is
              touched for the first time only once, which takes a quarter of the time of MADD on Redis
    saving    the longest calls of MADD while 1 GiB of filters is saved, and the memory that this takes
    restore   RESTORE of 100 MB of filter against RESTORE of a string of that size

Other work on the machine disturbs both sides of a pair alike, and absolute rates more than ratios; least of all the
processor time that the server's main thread takes per item, which is printed as well."""

from __future__ import annotations

import csv
import io
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from server import HOST, MODULE, NAMES, TREE, Server

PAIRS = int(os.environ.get("SLUICE_PAIRS", "9"))
KEY = "key:__rand_int__"  # 16 bytes: key: and twelve digits
SET = ("SET", KEY, "1", "NX", "EX", "600")
ADD = ("SLUICE.ADD", "clicks", KEY)
ITEMS = 100
MADD = ("SLUICE.MADD", "clicks", *[KEY] * ITEMS)
EMPTY = ("EMPTY", "clicks", *[KEY] * ITEMS)
MEGABYTE = 1_000_000


def cpu_s(server: Server) -> float:
    info = server.info("cpu")
    return float(info["used_cpu_user_main_thread"]) + float(info["used_cpu_sys_main_thread"])


def rate(
    server: Server, requests: int, depth: int, clients: int, words: tuple[str, ...]
) -> tuple[float, float]:
    """Requests per second, and requests per second of the server's processor time."""
    before = cpu_s(server)
    done = subprocess.run(
        [server.tool("benchmark"), "-h", HOST, "-p", str(server.port), "-n", str(requests), "-P", str(depth),
         "-c", str(clients), "-r", "100000000000", "--csv", *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [row for row in csv.reader(io.StringIO(done.stdout)) if len(row) > 1]
    return float(rows[-1][1]), requests / (cpu_s(server) - before)


def rates(name: str, warm: bool = False) -> None:
    # What, its words, requests, depth; the same of what it is compared with; items per request, and what we want.
    rows = (
        ("ADD / SET NX EX, unpipelined", (ADD, 10_000, 1), (SET, 10_000, 1), 1, 0.9),
        ("ADD / SET NX EX, depth 128", (ADD, 150_000, 128), (SET, 150_000, 128), 1, 2.0),
        ("items of MADD 100 at depth 16 / SET NX EX at depth 128", (MADD, 5_000, 16), (SET, 150_000, 128), ITEMS, 10.0),
        ("MADD 100 at depth 16 / a command that does nothing", (MADD, 5_000, 16), (EMPTY, 5_000, 16), 1, 0.6),
    )
    when = ", after a first round" if warm else ""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty.so")
        header = TREE / "build/servers"
        subprocess.run([TREE / "tools/servers", "header", header], check=True, stdout=subprocess.DEVNULL)
        source = Path(__file__).with_name("empty_module.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-isystem", header, source, "-o", empty], check=True)
        with Server(name, f"loadmodule {empty}", module=MODULE) as server:
            for what, ours, theirs, items, wanted in rows:
                ratios, cpu, own, other = [], [], [], []
                for i in range(PAIRS):
                    server.client.flushall()
                    # Of a count: items come faster than any rate that a person would plan for.
                    server.command("SLUICE.RESERVE", "clicks", "WINDOW", "10M")
                    measured = {}
                    for side in ((0, 1), (1, 0))[i % 2]:
                        words, requests, depth = (ours, theirs)[side]
                        if warm:
                            # Enough for all of a filter.
                            first = (SET, requests, depth) if words is SET else (MADD, 5_000, 16)
                            rate(server, first[1], first[2], 4, first[0])
                        measured[side] = rate(server, requests, depth, 50 if depth == 1 else 4, words)
                    ratios.append(items * measured[0][0] / measured[1][0])
                    cpu.append(items * measured[0][1] / measured[1][1])
                    own.append(items * measured[0][0])
                    other.append(measured[1][0])
                print(
                    f"{name}: {what}{when}: {statistics.median(ratios):.2f} (wanted {wanted:g}; {min(ratios):.2f} to "
                    f"{max(ratios):.2f}); {statistics.median(own):,.0f}/s against {statistics.median(other):,.0f}/s; "
                    f"by processor time {statistics.median(cpu):.2f}",
                    flush=True,
                )


def slowest_ms(server: Server, command: str) -> list[float]:
    """Calls of this command above a millisecond since the last SLOWLOG RESET, the slowest first."""
    log = server.client.slowlog_get(10_000)
    assert isinstance(log, list)
    return sorted((e["duration"] / 1000 for e in log if e["command"].startswith(command.encode())), reverse=True)


def saving(name: str) -> None:
    """Eight windows of 128 MiB, filled; items are added to all of them while the server saves."""
    with Server(name, "slowlog-log-slower-than 1000", "slowlog-max-len 10000", module=MODULE) as server:
        keys = [f"w{i}" for i in range(8)]
        for key in keys:
            server.command("SLUICE.RESERVE", key, "WINDOW", "29M")
        numbers = itertools.count()

        def add(batches: int) -> None:
            pipe = server.client.pipeline(transaction=False)
            for _ in range(batches):
                at = next(numbers)
                items = [b"%016d" % i for i in range(at * ITEMS, (at + 1) * ITEMS)]
                pipe.execute_command("SLUICE.MADD", keys[at % len(keys)], *items)  # type: ignore[no-untyped-call]
            pipe.execute()

        # Each page is written to once, so that all of them have to be copied.
        while not all(int(server.command("SLUICE.INFO", key, "items")) > MEGABYTE for key in keys):
            add(500)
        memory = server.info("memory")
        server.client.slowlog_reset()
        for _ in range(200):
            add(100)
        quiet = slowest_ms(server, "SLUICE.MADD")
        server.client.slowlog_reset()
        before = int(server.info("memory")["used_memory_rss"])
        most, calls = before, 0
        server.client.bgsave()
        while server.info("persistence")["rdb_bgsave_in_progress"]:
            add(100)
            calls += 100
            resident = int(server.info("memory")["used_memory_rss"])
            child = sum(private(pid) for pid in children(server.pid))
            most = max(most, resident + child)
        busy = slowest_ms(server, "SLUICE.MADD")
        fork = int(server.info("stats")["latest_fork_usec"]) / 1000
        print(
            f"{name}: {int(memory['used_memory']) / 2**30:.2f} GiB of filters. MADD 100 without BGSAVE: slowest "
            f"{max([0.0, *quiet]):.1f} ms of 20,000 calls; during BGSAVE (fork {fork:.1f} ms): slowest "
            f"{max([0.0, *busy]):.1f} ms of {calls:,} calls, {sum(ms > 10 for ms in busy)} above 10 ms (wanted 0); "
            f"resident memory {most / before:.2f} x (wanted 2.1)",
            flush=True,
        )


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def private(pid: int) -> int:
    """Bytes of a process that it does not share."""
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(1024 * int(row.split()[1]) for row in rows if row.startswith("Private_"))


def restore(name: str) -> None:
    making: dict[str, tuple[str, ...]] = {
        "cohort": ("WINDOW", "21M"),
        "growing": (),
    }
    with Server(name, "proto-max-bulk-len 512mb", module=MODULE) as server:
        for kind, words in making.items():
            server.command("SLUICE.RESERVE", kind, *words)
            numbers = itertools.count()
            while (size := int(server.command("SLUICE.INFO", kind, "bytes"))) < 100 * MEGABYTE or (
                int(server.command("SLUICE.INFO", kind, "items")) < 15 * MEGABYTE
            ):
                pipe = server.client.pipeline(transaction=False)
                for _ in range(100):
                    items = [b"%016d" % next(numbers) for _ in range(1000)]
                    pipe.execute_command("SLUICE.MADD", kind, *items)  # type: ignore[no-untyped-call]
                pipe.execute()
            dumped = server.client.dump(kind)
            server.client.delete(kind)
            assert dumped is not None
            server.client.set("text", os.urandom(len(dumped)))
            text = server.client.dump("text")
            server.client.delete("text")
            assert text is not None

            def timed(payload: bytes) -> float:
                """By the server's own count: without the time that the payload takes to come."""
                server.command("CONFIG", "RESETSTAT")
                server.client.restore("x", 0, payload)
                server.client.delete("x")
                return float(server.info("commandstats")["cmdstat_restore"]["usec"]) / 1000

            times = [(timed(dumped), timed(text)) for _ in range(PAIRS)]
            own, other = (statistics.median(side) for side in zip(*times, strict=True))
            print(
                f"{name}: RESTORE of {kind}, {len(dumped) / MEGABYTE:.0f} MB ({size / MEGABYTE:.0f} MB in memory): "
                f"{own:.0f} ms; of a string of that size {other:.0f} ms: {own - other:.0f} ms more (wanted 150)",
                flush=True,
            )


def steady(name: str) -> None:
    rates(name, warm=True)


PARTS: dict[str, Callable[[str], None]] = {"rates": rates, "steady": steady, "saving": saving, "restore": restore}


def main() -> None:
    if MODULE is None:
        sys.exit("SLUICE_MODULE must name the module")
    for part in sys.argv[1:] or PARTS:
        if part not in PARTS:
            sys.exit(f"there is no part '{part}': choose of {', '.join(PARTS)}")
        for name in NAMES:
            PARTS[part](name)


if __name__ == "__main__":
    main()
