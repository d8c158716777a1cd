"""Power cuts: what a disk holds at a random moment of a server that syncs each command (`appendfsync always`).

The server's folder is a file system in an image that is mounted as a disk. The server is stopped (SIGSTOP), and the
image is copied as it is: what the kernel has not written to that disk yet is missing from the copy. A server that
starts on the copy must know all that was acknowledged. Skipped where nothing can be mounted."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server import MODULE, Server, both, needs_module
from workload import Writers, count

pytestmark = needs_module

# Files are rewritten all the time, so that some cuts meet the moment between the old and the new ones.
REWRITES = ("auto-aof-rewrite-percentage 30", "auto-aof-rewrite-min-size 64kb")


def tool(*words: str | Path) -> None:
    """Of what is missing, only what a mount needs may be missing: that skips the test."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"there is no {words[0]}")
    if done.returncode != 0:
        pytest.skip(f"{words[0]} is not allowed here: {done.stderr.strip()}")


def new_disk(image: Path) -> None:
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    tool("mkfs.ext4", "-q", image)


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    """The folder `server` of the disk."""
    folder.mkdir(exist_ok=True)
    tool("mount", "-o", "loop", image, folder)
    try:
        (folder / "server").mkdir(exist_ok=True)
        yield folder / "server"
    finally:
        subprocess.run(["umount", folder], check=True)


def cut_power(server: Server, writers: Writers, disk: Path, cut: Path) -> None:
    os.killpg(server.pid, signal.SIGSTOP)
    shutil.copyfile(disk, cut)
    os.killpg(server.pid, signal.SIGKILL)
    writers.join()
    server.kill()


@both
@pytest.mark.parametrize("making", [(), ("WINDOW", "10m", "RATE", "1k/s")])
def test_a_power_cut_loses_nothing_acknowledged(name: str, making: tuple[str, ...], tmp_path: Path) -> None:
    seed = int(os.environ.get("SLUICE_SEED", random.SystemRandom().randrange(100_000)))
    print(f"SLUICE_SEED={seed}")
    rng = random.Random(seed)
    disk, cut = tmp_path / "disk", tmp_path / "cut"
    new_disk(disk)
    writers = Writers()
    for cycle in range(count(2, 13)):
        with mounted(disk, tmp_path / "before") as folder:
            server = Server(name, "appendonly yes", "appendfsync always", *REWRITES, module=MODULE, folder=folder)
            try:
                server.start()
                if cycle == 0:
                    server.command("SLUICE.RESERVE", "k", *making)
                else:
                    # What the last cut left: only what it had written before.
                    writers.check(server)
                known = len(writers.items)
                writers.start(server)
                while len(writers.items) < known + 100:
                    assert server.alive
                time.sleep(rng.uniform(0, 0.5))
                cut_power(server, writers, disk, cut)
            finally:
                # Not close(): the folder goes with its disk.
                server.kill()
                writers.join()
        cut.replace(disk)
    with mounted(disk, tmp_path / "after") as folder:
        server = Server(name, "appendonly yes", module=MODULE, folder=folder)
        try:
            server.start()
            writers.check(server)
            assert len(writers.items) > 100 and len(writers.confirmed) > 10
            # A command that the cut tore is cut off; of the module there is nothing to say.
            assert "sluice:" not in server.log()
        finally:
            server.kill()
