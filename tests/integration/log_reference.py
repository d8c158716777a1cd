#!/usr/bin/env python3
"""Logs of a web server, and an exact check of what was made of them.

    log_reference.py write SEED COUNT    rotated logs in the current directory: access.log,
                                         access.log.1 ...; access.log is the newest
    log_reference.py check WINDOW_S SLACK FIELDS OUT FILE...
                                         OUT holds what a deduplication by FIELDS (ip,url ...) within
                                         WINDOW_S seconds of event time let through of FILEs

Every verdict is checked: a record less than a window after the one of its key that was let through
must be missing, one that is a window and its slack or more after it must be there, and so must every
record that has no key or is late. Between these two ages both are right.
"""
import random
import sys
from datetime import datetime, timedelta, timezone

FORMAT = "%d/%b/%Y:%H:%M:%S %z"
START = datetime(2026, 3, 1, 22, 0, 0, tzinfo=timezone.utc)
# What clients send that is no request, as nginx writes it.
BROKEN = ["-", "", r"\x16\x03\x01\x02\x00\x01", r"GET /\x22quoted\x22", "GET /with blank HTTP/1.1",
          "PRI", r"\x5Cback\x5Cslash"]


def write(seed, count):
    rng = random.Random(seed)
    ips = [f"203.0.113.{i}" for i in range(1, 60)] + [f"2001:db8::{i:x}" for i in range(1, 40)]
    urls = [f"/page/{i}" for i in range(30)] + [r"/a\x22b", "/?q=%20&x=\"".replace('"', "%22"), "*",
                                                 "/" + "long" * 500]
    zones = [timezone.utc, timezone(timedelta(hours=-7)), timezone(timedelta(hours=5, minutes=30))]
    files = 5
    for number in range(files):
        name = "access.log" if number == files - 1 else f"access.log.{files - 1 - number}"
        with open(name, "w", encoding="ascii") as out:
            for i in range(count):
                # One record per second and a half, out of order by up to four seconds.
                second = 1.5 * (number * count + i) + rng.uniform(-4, 4)
                time = (START + timedelta(seconds=second)).astimezone(rng.choice(zones))
                request = f"{rng.choice(['GET', 'POST'])} {rng.choice(urls)} HTTP/{rng.choice(['1.1', '2.0'])}"
                if rng.random() < 0.02:
                    request = rng.choice(BROKEN)
                user = rng.choice(["-", "-", "-", "ann", "john doe"])
                # The number makes every line different.
                print(f'{rng.choice(ips)} - {user} [{time.strftime(FORMAT)}] "{request}" '
                      f'{rng.choice([200, 200, 404])} {rng.randrange(9999)} "-" "agent {number}.{i}"', file=out)


def parse(line):
    """The fields of a line, without a url if its request is none."""
    address, rest = line.split(" - ", 1)
    user, rest = rest.split(" [", 1)
    time, rest = rest.split('] "', 1)
    request, rest = rest.split('" ', 1)
    status, _ = rest.split(" ", 1)
    fields = {"ip": address, "user": user, "request": request, "status": status}
    words = request.split(" ")
    if len(words) == 3 and words[0] and words[1] and words[2].startswith("HTTP/"):
        fields |= {"method": words[0], "url": words[1]}
    return fields, datetime.strptime(time, FORMAT).timestamp()


def check(window, slack, names, out, files):
    with open(out, encoding="ascii") as file:
        passed = set(file.read().splitlines())
    now = None
    seen = {}  # key: the time of its last record that was let through
    counts = {"passed": 0, "held": 0, "without": 0, "late": 0, "either": 0}
    total = 0
    for name in files:
        with open(name, encoding="ascii") as file:
            for line in file.read().splitlines():
                total += 1
                fields, time = parse(line)
                there = line in passed
                if any(each not in fields for each in names):
                    assert there, f"has no key and was held back: {line}"
                    counts["without"] += 1
                    continue
                key = tuple(fields[each] for each in names)
                now = time if now is None else max(now, time)
                if now - time >= window:
                    assert there, f"is late and was held back: {line}"
                    counts["late"] += 1
                    continue
                age = now - seen[key] if key in seen else None
                if age is None or age >= window * (1 + slack):
                    assert there, f"is lost, age {age}: {line}"
                elif age < window:
                    assert not there, f"is a duplicate, age {age}: {line}"
                else:
                    counts["either"] += 1
                counts["passed" if there else "held"] += 1
                if there:
                    seen[key] = time
    assert len(passed) == counts["passed"] + counts["without"] + counts["late"], "other lines came out"
    print(" ".join(f"{key}={value}" for key, value in counts.items()), f"records={total}")


if sys.argv[1] == "write":
    write(int(sys.argv[2]), int(sys.argv[3]))
else:
    check(float(sys.argv[2]), float(sys.argv[3]), sys.argv[4].split(","), sys.argv[5], sys.argv[6:])
