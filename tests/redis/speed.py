#!/usr/bin/env python3
"""Speed against SET NX EX on the same server, with its own benchmark tool: `speed.py [PAIRS]` prints ratios,
medians of nine interleaved pairs unless told otherwise. SLUICE_MODULE names the module. Other work on the machine
disturbs both sides of a pair alike, and absolute rates more than ratios; least of all the processor time that the
server's main thread takes per item, which is printed as well."""

from __future__ import annotations

import csv
import io
import statistics
import subprocess
import sys

from server import HOST, MODULE, NAMES, Server

KEY = "k:__rand_int__"  # 14 bytes: k: and twelve digits
SET = ("SET", KEY, "1", "NX", "EX", "600")
ADD = ("SLUICE.ADD", "clicks", KEY)
ITEMS = 100


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


def prepare(server: Server) -> None:
    server.client.flushall()
    server.command("SLUICE.RESERVE", "clicks", "WINDOW", "10m", "EXPECT", "10M")


def compare(server: Server, pairs: int) -> None:
    madd = ("SLUICE.MADD", "clicks", *[KEY] * ITEMS)
    # What, its words, requests, depth; and the same of what it is compared with; items per request.
    rows = (
        ("ADD / SET NX EX, unpipelined", (ADD, 10_000, 1), (SET, 10_000, 1), 1, 0.9),
        ("ADD / SET NX EX, depth 128", (ADD, 150_000, 128), (SET, 150_000, 128), 1, 2.0),
        ("items of MADD 100 at depth 16 / SET NX EX at depth 128", (madd, 5_000, 16), (SET, 150_000, 128), ITEMS, 10.0),
    )
    for what, ours, theirs, items, wanted in rows:
        ratios, rates, cpu = [], [], []
        for i in range(pairs):
            prepare(server)
            measured = {}
            for side in ((0, 1), (1, 0))[i % 2]:
                words, requests, depth = (ours, theirs)[side]
                measured[side] = rate(server, requests, depth, 50 if depth == 1 else 4, words)
            ratios.append(items * measured[0][0] / measured[1][0])
            cpu.append(items * measured[0][1] / measured[1][1])
            rates.append((items * measured[0][0], measured[1][0]))
        middle = statistics.median(ratios)
        own, other = (statistics.median(side) for side in zip(*rates, strict=True))
        print(
            f"{server.name}: {what}: {middle:.2f} (wanted {wanted:g}; {min(ratios):.2f} to {max(ratios):.2f}); "
            f"{own:,.0f}/s against {other:,.0f}/s; by processor time {statistics.median(cpu):.2f}",
            flush=True,
        )


def main() -> None:
    if MODULE is None:
        sys.exit("SLUICE_MODULE must name the module")
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    for name in NAMES:
        with Server(name, module=MODULE) as server:
            compare(server, pairs)


if __name__ == "__main__":
    main()
