"""Payloads that we seal are those of the servers, and changed ones pass their checks."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest
import redis

import payload as p
from server import Server, ServerError, binary, both

VALUES = [
    b"",
    b"a",
    b"7",
    b"-300",
    b"70000",
    bytes(range(256)),
    b"x" * 63,
    b"y" * 64,
    b"compressible " * 2000,
    random.Random(1).randbytes(20000),
]


def test_checksum() -> None:
    assert p.crc64(b"123456789") == 0xE9C6D914C4B8D9CA
    assert p.crc64(b"") == 0
    assert p.crc64(b"56789", p.crc64(b"1234")) == p.crc64(b"123456789")


@both
def test_strings_of_the_server_are_read_and_written(name: str) -> None:
    with Server(name) as server:
        for value in VALUES:
            server.client.set("a", value)
            dumped = server.client.dump("a")
            assert dumped is not None
            assert p.is_sealed(dumped)
            body, version = p.split(dumped)
            assert p.seal(body, version) == dumped
            assert p.string_value(body) == value
            server.client.restore("b", 0, p.seal(p.string_body(value), version), replace=True)
            assert server.client.get("b") == value


@both
def test_a_changed_body_is_loaded_only_with_its_checksum(name: str) -> None:
    with Server(name) as server:
        server.client.set("a", "some text")
        dumped = server.client.dump("a")
        assert dumped is not None
        changed = dumped.replace(b"text", b"test")
        assert not p.is_sealed(changed)
        with pytest.raises(redis.ResponseError, match="checksum"):
            server.client.restore("b", 0, changed)
        server.client.restore("b", 0, p.seal(*p.split(changed)))
        assert server.client.get("b") == b"some test"


@both
def test_a_later_version_is_refused(name: str) -> None:
    with Server(name) as server:
        server.client.set("a", "b")
        dumped = server.client.dump("a")
        assert dumped is not None
        body, version = p.split(dumped)
        with pytest.raises(redis.ResponseError, match="version"):
            server.client.restore("b", 0, p.seal(body, version + 1))
        server.client.restore("b", 0, p.seal(body, 9))
        assert server.client.get("b") == b"b"


@both
def test_mutated_strings_reach_the_loader(name: str) -> None:
    with Server(name) as server:
        server.client.set("a", "0123456789" * 5)
        dumped = server.client.dump("a")
        assert dumped is not None
        loaded = refused = 0
        changes = [*p.mutations(dumped, 1, 500, p.STRING_HEAD), *p.cuts(dumped, p.STRING_HEAD)]
        for what, changed in changes:
            assert p.is_sealed(changed), what
            assert changed[0] == p.TYPE_STRING, what
            try:
                server.client.restore("b", 0, changed, replace=True)
                loaded += 1
            except redis.ResponseError as error:
                # Not the checksum: it was looked at, and is wrong in itself.
                assert "Bad data format" in str(error), what
                refused += 1
        assert loaded > 50
        assert refused > 50
        assert server.client.get("a") == b"0123456789" * 5


def test_mutations_repeat() -> None:
    sealed = p.seal(p.string_body(b"0123456789"), 10)
    assert list(p.mutations(sealed, 3, 50, 1)) == list(p.mutations(sealed, 3, 50, 1))
    assert list(p.mutations(sealed, 3, 50, 1)) != list(p.mutations(sealed, 4, 50, 1))


MODULE_VALUES = [
    p.Value("uint", 0),
    p.Value("uint", (1 << 64) - 1),
    p.Value("sint", -5),
    p.Value("sint", 70000),
    p.Value("float", 0.5),
    p.Value("double", -0.1),
    p.Value("string", b""),
    p.Value("string", bytes(range(256)) * 4),
]


def test_values_of_a_module_are_taken_apart_and_put_together() -> None:
    identity = p.module_id("sluice--x", 3)
    body = p.module_body(identity, MODULE_VALUES)
    assert p.module_values(body) == (identity, MODULE_VALUES)
    sealed = p.seal(body, 10)
    for what, changed in p.value_mutations(sealed, 1, 500):
        assert p.is_sealed(changed), what
        assert changed[: p.MODULE_HEAD] == body[: p.MODULE_HEAD]
        found, values = p.module_values(p.split(changed)[0])
        assert found == identity
        assert [value.kind for value in values] == [value.kind for value in MODULE_VALUES], what


def test_what_is_no_payload_is_refused() -> None:
    with pytest.raises(p.PayloadError):
        p.split(b"short")
    body = p.module_body(p.module_id("sluice--x", 3), MODULE_VALUES)
    for length in range(0, 300):
        with pytest.raises(p.PayloadError):
            p.module_values(body[:length] if length else b"")
    with pytest.raises(p.PayloadError):
        p.module_values(body + b"\0")


@both
def test_the_servers_own_check_reads_what_we_write_of_a_module(name: str, tmp_path: Path) -> None:
    body = p.module_body(p.module_id("sluice--x", 3), MODULE_VALUES)
    # A file with this value under "k" and a string after it: who reads too little or too much of the one
    # does not find the other.
    contents = b"REDIS0010\xfe\x00" + body[:1] + b"\x01k" + body[1:] + b"\x00\x01s\x01v" + b"\xff"
    file = tmp_path / "dump.rdb"
    file.write_bytes(contents + struct.pack("<Q", p.crc64(contents)))
    program = binary(name).with_name(f"{name}-check-rdb")
    # It never ends if the list of values does not, so it is shown no wrong one.
    said = subprocess.run([program, file], capture_output=True, text=True, timeout=60, check=False).stdout
    assert "RDB looks OK" in said
    assert "2 keys read" in said
    # The file is whole, and the server names the type that it does not know.
    with Server(name) as server:
        with pytest.raises(redis.ResponseError, match="Bad data format"):
            server.client.restore("a", 0, p.seal(body, 10))
        server.stop()
        (server.folder / "dump.rdb").write_bytes(file.read_bytes())
        with pytest.raises(ServerError, match="sluice--x"):
            server.start()
