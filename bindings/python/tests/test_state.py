"""Files and bytes: survive, interoperate with the command, and cannot harm."""

from __future__ import annotations

import json
import os
import pickle
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Command

import sluice
from sluice import Seen


def test_save_and_load(tmp_path: Path) -> None:
    file = tmp_path / "seen.state"
    for name in (file, str(file)):
        seen = Seen(window="1h")
        seen.observe(["a", "b"])
        seen.save(name)
        again = Seen.load(name)
        assert again.observe(["a", "b", "c"]).tolist() == [False, False, True]
        assert again.labels == ()
    assert (tmp_path / "seen.state.previous").exists()
    # A state has the secret of its hash.
    assert file.stat().st_mode & 0o077 == 0


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file") as caught:
        Seen.load(tmp_path / "none")
    assert isinstance(caught.value, sluice.IoError) and isinstance(caught.value, sluice.Error)
    assert caught.value.errno == 2
    with pytest.raises(IsADirectoryError):
        Seen.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        Seen().save(tmp_path / "no" / "folder")
    with pytest.raises(ValueError):
        Seen.load("a\0b")


def test_names_of_any_bytes(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe4 name")
    Seen().save(name)
    assert not Seen.load(name).contains("a")


def test_damaged_files(tmp_path: Path) -> None:
    file = tmp_path / "seen.state"
    file.write_bytes(b"not a state")
    with pytest.raises(sluice.CorruptState, match="seen.state") as caught:
        Seen.load(file)
    assert isinstance(caught.value, ValueError)


def test_hostile_bytes() -> None:
    seen = Seen(seed=1, keys=100)
    seen.observe(np.arange(100))
    state = seen.to_bytes()
    generator = random.Random(5)
    for _ in range(300):
        damaged = bytearray(state)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        if damaged == state:
            continue
        with pytest.raises(sluice.CorruptState):
            Seen.from_bytes(damaged)
    for length in range(0, len(state), 7):
        with pytest.raises(sluice.CorruptState):
            Seen.from_bytes(state[:length])
    with pytest.raises(TypeError):
        Seen.from_bytes("text")  # type: ignore[arg-type]
    assert 5 in Seen.from_bytes(memoryview(state))
    assert 5 in Seen.from_bytes(bytearray(state))


def test_hostile_pickles() -> None:
    pickled = bytearray(pickle.dumps(Seen(seed=1, keys=100)))
    at = len(pickled) // 2
    pickled[at] ^= 0xFF
    with pytest.raises(sluice.CorruptState):
        pickle.loads(bytes(pickled))


def test_the_command_continues_a_state_of_python(tmp_path: Path, command: Command) -> None:
    file = str(tmp_path / "lines.state")
    seen = Seen()
    seen.observe(["ann", "ä", 17])
    seen.save(file, labels={"records": "lines"})
    run = command("dedup", "--state", file, stdin="ann\nbob\nä\n17\n")
    assert (run.returncode, run.stdout) == (0, "bob\n")
    # And back: with what the command added, and its labels.
    again = Seen.load(file)
    assert again.labels == (("records", "lines"),)
    assert again.observe(["bob", "eve"]).tolist() == [False, True]
    again.save(file)
    run = command("dedup", "--state", file, stdin="eve\nzoe\n")
    assert (run.returncode, run.stdout) == (0, "zoe\n")


def test_without_labels_the_command_says_what_it_wants(tmp_path: Path, command: Command) -> None:
    file = str(tmp_path / "plain.state")
    Seen().save(file)
    run = command("dedup", "--state", file, stdin="a\n")
    assert run.returncode == 2
    assert "records=lines" in run.stderr
    assert command("inspect", file).returncode == 0


def test_python_continues_a_state_of_the_command(tmp_path: Path, command: Command) -> None:
    file = str(tmp_path / "command.state")
    lines = "a\nb\n17\n"
    (tmp_path / "in.txt").write_text(lines)
    output = str(tmp_path / "out.txt")
    run = command("dedup", "--window", "1h", "--arrival-time", "--state", file, "--output", output,
                  str(tmp_path / "in.txt"))
    assert run.returncode == 0, run.stderr
    seen = Seen.load(file)
    assert seen.observe(np.array([17, 18])).tolist() == [False, True]
    assert seen.observe(["a", "c"]).tolist() == [False, True]
    seen.save(file)
    run = command("dedup", "--window", "1h", "--state", file, stdin="18\nc\nd\n")
    assert (run.returncode, run.stdout) == (0, "d\n"), run.stderr


def test_keys_of_several_columns_are_those_of_the_command(tmp_path: Path, command: Command) -> None:
    file = str(tmp_path / "csv.state")
    csv = "user,ad\nann,1\nann,2\nbob,1\nann,1\n" + "x" * 200 + ",\n"
    run = command("dedup", "--csv", "--key", "user,ad", "--state", file, stdin=csv)
    assert run.returncode == 0, run.stderr
    seen = Seen.load(file)
    assert seen.labels == (("records", "csv"), ("key", "user,ad"))
    frame = pd.DataFrame({"user": ["ann", "bob", "bob"], "ad": [2, 1, 2]})
    assert seen.observe(frame).tolist() == [False, False, True]
    assert ("x" * 200, "") in seen
    seen.save(file)
    run = command("dedup", "--csv", "--key", "user,ad", "--state", file,
                  stdin="user,ad\nbob,2\nbob,3\n")
    assert (run.returncode, run.stdout) == (0, "user,ad\nbob,3\n"), run.stderr
    # Started in Python, too.
    fresh = Seen()
    fresh.observe(frame)
    fresh.save(file, labels=[("records", "csv"), ("key", "user,ad")])
    run = command("dedup", "--csv", "--key", "user,ad", "--state", file,
                  stdin="user,ad\nbob,2\nbob,3\n")
    assert (run.returncode, run.stdout) == (0, "user,ad\nbob,3\n"), run.stderr


def test_one_column_is_the_key_as_it_is(tmp_path: Path, command: Command) -> None:
    file = str(tmp_path / "one.state")
    seen = Seen()
    seen.observe(pd.DataFrame({"user": ["ann"]}))
    seen.save(file, labels={"records": "csv", "key": "user"})
    run = command("dedup", "--csv", "--key", "user", "--state", file,
                  stdin="user,x\nann,1\nbob,1\n")
    assert (run.returncode, run.stdout) == (0, "user,x\nbob,1\n"), run.stderr


def test_json_keys_are_those_of_the_command(tmp_path: Path, command: Command) -> None:
    file = str(tmp_path / "json.state")
    values = ["ann", 3, -0.5, 1e300, 10**30, True, None, [1, "ä"], {"b": 1, "a": {"c": []}}, "🙂\n"]
    lines = "".join(json.dumps({"u": value, "n": 1}) + "\n" for value in values)
    run = command("dedup", "--json", "--key", "/u", "--empty-keys", "--state", file, stdin=lines)
    assert run.returncode == 0, run.stderr
    seen = Seen.load(file)
    assert not any(seen.first(sluice.json_key(value)) for value in values)
    assert seen.first(sluice.json_key("bob"))
    seen.save(file)
    run = command("dedup", "--json", "--key", "/u", "--empty-keys", "--state", file, stdin='{"u":"bob"}\n{"u":1}\n')
    assert run.stdout == '{"u":1}\n', run.stderr
    # Two pointers.
    two = str(tmp_path / "two.state")
    fresh = Seen()
    fresh.first(sluice.json_key("ann", 3))
    fresh.save(two, labels={"records": "json", "key": "/user,/ad"})
    run = command("dedup", "--json", "--key", "/user,/ad", "--state", two,
                  stdin='{"ad":3.0,"user":"ann"}\n{"ad":4,"user":"ann"}\n')
    assert run.stdout == '{"ad":4,"user":"ann"}\n', run.stderr
    for bad in (float("nan"), {1, 2}, "\ud800"):
        with pytest.raises(ValueError):
            sluice.json_key(bad)
    with pytest.raises(sluice.BadParameters):
        sluice.json_key()


def test_labels_are_any_bytes(tmp_path: Path, command: Command) -> None:
    file = str(tmp_path / "bytes.state")
    name = os.fsdecode(b"user\xff")
    run = command("dedup", "--tsv", "--key", name, "--state", file, stdin=f"{name}\tx\nann\t1\n")
    assert run.returncode == 0, run.stderr
    seen = Seen.load(file)
    assert seen.labels == (("records", "tsv"), ("key", name))
    seen.save(file)
    assert Seen.load(file).labels == seen.labels
    Seen().save(file, labels={"records": "tsv", "key": name})
    assert Seen.load(file).labels == seen.labels


def test_labels_stay_if_a_file_cannot_be_written(tmp_path: Path) -> None:
    seen = Seen()
    with pytest.raises(FileNotFoundError):
        seen.save(tmp_path / "no" / "folder", labels={"records": "lines"})
    assert seen.labels == ()


def test_labels_that_are_too_much(tmp_path: Path) -> None:
    with pytest.raises(sluice.BadParameters):
        Seen().save(tmp_path / "a", labels=[("a", "b")] * 2000)
    with pytest.raises(sluice.BadParameters):
        Seen().save(tmp_path / "a", labels={"a": "b" * 100_000})
    assert not (tmp_path / "a").exists()
