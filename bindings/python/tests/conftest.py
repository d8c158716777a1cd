"""Shared by the tests. SLUICE is the command; without it, tests of state files shared with it are skipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command() -> Command:
    """Runs the sluice command with an input: command("dedup", "--state", file, stdin="a\\n")."""
    program = os.environ.get("SLUICE")
    if not program:
        pytest.skip("SLUICE does not name the command")

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )

    return run
