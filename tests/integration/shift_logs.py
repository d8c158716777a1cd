#!/usr/bin/env python3
"""shift_logs.py SEED: writes a log in this folder and rotates it as logrotate does, log.1 to log.2 and log to log.1,
faster than it can be looked at. Its 8 records are 0 to 6, and `last`."""

import os
import random
import sys
import time


def rotate() -> None:
    last = 1
    while os.path.exists(f"log.{last}"):
        last += 1
    for number in range(last, 1, -1):
        os.rename(f"log.{number - 1}", f"log.{number}")
    os.rename("log", "log.1")
    with open("log", "x"):
        pass


def write(text: str) -> None:
    with open("log", "a") as log:
        log.write(f"{text}\n")


rng = random.Random(int(sys.argv[1]))
for record in range(7):
    if record == 3:
        time.sleep(0.4)
    write(str(record))
    rotate()
    if rng.random() < 0.5:
        time.sleep(rng.random() * 0.004)
write("last")
