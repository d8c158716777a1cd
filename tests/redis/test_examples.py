"""The programs of examples/redis print what stands beside them, on both servers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from server import MODULE, TREE, Server, both, needs_module

EXAMPLES = TREE / "examples/redis"
pytestmark = needs_module


def check(program: Path, command: list[str], server: Server, folder: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"REDIS_CLI": server.tool("cli"), "REDIS_PORT": str(server.port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == program.with_suffix(".txt").read_text()
    assert done.returncode == 0


@both
def test_shell(name: str, tmp_path: Path) -> None:
    program = EXAMPLES / "shell/webhooks.sh"
    with Server(name, module=MODULE) as server:
        check(program, ["bash", str(program)], server, tmp_path)


@both
def test_python(name: str, tmp_path: Path) -> None:
    program = EXAMPLES / "python/worker.py"
    with Server(name, module=MODULE) as server:
        check(program, [sys.executable, str(program), str(server.port)], server, tmp_path)
        # Nothing waits for anybody any more.
        assert server.command("SLUICE.INFO", "events:seen", "pending") == 0
        # A second start delivers nothing again.
        again = subprocess.run(
            [sys.executable, str(program), str(server.port)], capture_output=True, text=True, timeout=120, check=True
        )
        assert again.stderr == "" and ": delivered " not in again.stdout
        assert again.stdout.endswith("delivered: evt_1 evt_2 evt_3\n")
