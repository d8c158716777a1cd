#!/usr/bin/env python3
"""Times as logs write them, with the moments they are, by Python's calendar and mail library.

    python3 tests/support/log_times.py >tests/support/log_times.tsv

A line has the format, the year (0 if the text says it), the text, and the moment in nanoseconds since
1970. Sluice's readers must agree (sluice/stream/time_reader_test.cpp).
"""
import email.utils
import random
from datetime import datetime, timedelta, timezone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
PATTERNS = ("%d.%m.%Y %H:%M:%S %z", "%Y%m%d%H%M%S%z", "%a %b %d %H:%M:%S.%f %z %Y",
            "%A, %d. %B %Y %I:%M:%S %p %z", "%j/%Y %T %z", "%y-%m-%dT%H.%M.%S,%f%z", "%F %R %z")
random.seed(20001010)


def nanoseconds(moment):
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def say(form, year, text, moment):
    print(form, year, text, nanoseconds(moment), sep="\t")


for i in range(150):
    seconds = random.randrange(-2_000_000_000, 4_400_000_000)
    offset = timezone(timedelta(minutes=15 * random.randrange(-48, 57)))
    when = (EPOCH + timedelta(seconds=seconds)).astimezone(offset)
    clf = when.strftime("%d/%b/%Y:%H:%M:%S %z")
    say("clf", 0, f"[{clf}]" if i % 2 else clf, when)
    mail = email.utils.format_datetime(when)
    assert email.utils.parsedate_to_datetime(mail) == when
    say("rfc2822", 0, mail if i % 2 else mail.partition(", ")[2], when)
    # %e is not known to Python on all systems.
    say("syslog", when.year, f"{when:%b} {when.day:2d} {when:%H:%M:%S}",
        when.replace(tzinfo=timezone.utc))
    pattern = PATTERNS[i % len(PATTERNS)]
    when += timedelta(microseconds=random.randrange(1_000_000) if "%f" in pattern else 0)
    if "%y" in pattern and not 1969 <= when.year <= 2068:
        continue
    text = when.strftime(pattern)
    plain = pattern.replace("%F", "%Y-%m-%d").replace("%R", "%H:%M").replace("%T", "%H:%M:%S")
    say(f"strptime:{pattern}", 0, text, datetime.strptime(text, plain))
