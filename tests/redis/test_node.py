"""Clients that people use from Node connect. SLUICE_NODE_MODULES is where run.sh has put them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from server import Server, both

PROGRAMS = Path(__file__).parent / "node"
MODULES = os.environ.get("SLUICE_NODE_MODULES")
pytestmark = pytest.mark.skipif(not MODULES, reason="SLUICE_NODE_MODULES does not name a folder")


def node(folder: Path, program: str, *args: object) -> list[str]:
    """What a program of `node` prints. It is copied: Node looks for modules beside it."""
    assert MODULES
    shutil.copy(PROGRAMS / program, folder)
    shutil.copy(PROGRAMS / "package.json", folder)
    (folder / "node_modules").symlink_to(MODULES)
    done = subprocess.run(
        ["node", folder / program, *map(str, args)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@both
def test_each_client_connects(name: str, tmp_path: Path) -> None:
    with Server(name) as server:
        assert node(tmp_path, "ping.js", server.port) == [
            "redis, RESP 2: PONG",
            "redis, RESP 3: PONG",
            "redis with @redis/bloom: PONG",
            "ioredis: PONG",
        ]


def test_a_port_where_nobody_listens_is_an_error(tmp_path: Path) -> None:
    with Server() as server:
        port = server.port
    with pytest.raises(AssertionError, match="ECONNREFUSED"):
        node(tmp_path, "ping.js", port)
