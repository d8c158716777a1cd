"""The redis-cli sessions of the documents do what they show, on both servers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from server import HOST, MODULE, TREE, Server, both, needs_module
from sessions import same, steps


def answer(server: Server, command: str) -> str:
    """What redis-cli prints on a terminal."""
    done = subprocess.run(
        [server.tool("cli"), "-h", HOST, "-p", str(server.port), "--no-raw"],
        input=command + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@needs_module
@both
@pytest.mark.parametrize(("document", "least"), [("docs/redis.md", 60), ("README.md", 4)])
def test_sessions(name: str, document: str, least: int) -> None:
    ran = 0
    wrong = []
    with Server(name, module=MODULE) as server:
        for step in steps(TREE / document):
            ran += 1
            said = answer(server, step.command)
            if not same(step.shown, said):
                wrong.append(f"{document}:{step.line}: {step.command}\nshown:\n{step.shown}\nsaid:\n{said}")
    assert not wrong, "\n\n".join(wrong)
    assert ran >= least, f"{document} has only {ran} commands in its sessions"


def test_the_test(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(
        "text\n```redis\n> PING\nPONG\n> SLUICE.MADD k a b\n1) (integer) 1\n2) (integer) 0\n```\n> no\n```sh\n> no\n```\n"
    )
    found = list(steps(document))
    assert [step.command for step in found] == ["PING", "SLUICE.MADD k a b"]
    assert [step.line for step in found] == [3, 5]
    assert same(found[0].shown, "PONG\n") and not same(found[0].shown, "PANG\n")
    assert same(found[1].shown, "1) (integer) 1\n2) (integer) 0") and not same(found[1].shown, "1) (integer) 1")
    assert same("(integer) 1795009562355", "(integer) 1795009559352") and not same("(integer) 3", "(integer) 4")
    assert same('"1e-06"', '"9.9999999999999995e-07"') and same('"1e-06"', '"0.000001"')
    assert not same('"1e-06"', '"2e-06"')
    assert same("ERR a ... c", "ERR a b c") and not same("ERR a ... c", "ERR a b")
