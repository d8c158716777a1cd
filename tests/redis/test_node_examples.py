"""The programs of examples/redis/node print what stands beside them. SLUICE_NODE_MODULES is where run.sh has put
their packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from server import MODULE, TREE, Server, both, needs_module
from test_examples import check

EXAMPLES = TREE / "examples/redis/node"
MODULES = os.environ.get("SLUICE_NODE_MODULES")
pytestmark = [
    needs_module,
    pytest.mark.skipif(not MODULES, reason="SLUICE_NODE_MODULES does not name a folder"),
]


@both
@pytest.mark.parametrize("program", ["node-redis", "ioredis"])
def test_node(name: str, program: str, tmp_path: Path) -> None:
    assert MODULES
    for file in (f"{program}.js", "package.json"):
        shutil.copy(EXAMPLES / file, tmp_path)
    (tmp_path / "node_modules").symlink_to(MODULES)
    with Server(name, module=MODULE) as server:
        command = ["node", str(tmp_path / f"{program}.js"), str(server.port)]
        check(EXAMPLES / f"{program}.js", command, server, tmp_path)
        # A second start finds what is there.
        subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, timeout=120, check=True)


def test_the_packages_are_those_of_the_tests() -> None:
    """The examples run with the packages of tests/redis/node: both must ask for the same."""
    wanted = json.loads((EXAMPLES / "package.json").read_text())["dependencies"]
    tested = json.loads((TREE / "tests/redis/node/package.json").read_text())["dependencies"]
    assert wanted == {name: tested[name] for name in wanted}
    lock = (EXAMPLES / "package-lock.json").read_text()
    assert '"resolved"' not in lock, "a lock file names a registry"
