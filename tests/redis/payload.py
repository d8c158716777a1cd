"""DUMP payloads, taken apart and put together again, so that changed ones pass the server's checks and reach
what loads them.

A payload is a body (the type in one byte, then the value), the version of the RDB format in two bytes, and
CRC-64 of all that in eight; both are little-endian. Only RESTORE with a right checksum looks at the body.

A module's body is its type id and a list of values, each behind an opcode. `module_values` and `module_body`
convert it, so that one value can change while the list stays whole.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import NamedTuple

TYPE_STRING = 0
TYPE_MODULE = 7  # RDB_TYPE_MODULE_2

# How many bytes at the start of a body say what it is: `mutations` leaves them alone.
STRING_HEAD = 1
MODULE_HEAD = 10  # the type, the mark of a 64-bit number, the id

_FOOTER = 10


class PayloadError(ValueError):
    """These bytes are not what DUMP returns."""


# The checksum: CRC-64 with the polynomial of Jones, reflected, from 0 and without a final xor.


def _table() -> list[int]:
    reflected = int(f"{0xAD93D23594C935A9:064b}"[::-1], 2)
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (reflected if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _table()


def crc64(data: bytes, crc: int = 0) -> int:
    """crc64(b"123456789") is 0xe9c6d914c4b8d9ca. crc64(b, crc64(a)) is crc64(a + b)."""
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


# Payloads.


def split(payload: bytes) -> tuple[bytes, int]:
    """The body and the version of the format; the checksum is not looked at."""
    if len(payload) < _FOOTER:
        raise PayloadError(f"a payload has {_FOOTER} bytes at its end, and this one has {len(payload)}")
    return payload[:-_FOOTER], struct.unpack_from("<H", payload, len(payload) - _FOOTER)[0]


def seal(body: bytes, version: int) -> bytes:
    """The payload of a body."""
    versioned = body + struct.pack("<H", version)
    return versioned + struct.pack("<Q", crc64(versioned))


def is_sealed(payload: bytes) -> bool:
    return len(payload) >= _FOOTER and seal(*split(payload)) == payload


def mutations(payload: bytes, seed: int, count: int, head: int = MODULE_HEAD) -> Iterator[tuple[str, bytes]]:
    """So many changed payloads, each with what was done to it; the same for the same seed. They keep the
    version and the first `head` bytes of the body, and have right checksums."""
    body, version = split(payload)
    rng = random.Random(seed)
    for _ in range(count):
        changed, done = body, []
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            what, changed = _mutated(changed, rng, head)
            done.append(what)
        yield "; ".join(done), seal(changed, version)


def cuts(payload: bytes, head: int = MODULE_HEAD) -> Iterator[tuple[str, bytes]]:
    """The payload cut after each byte of its body, with right checksums."""
    body, version = split(payload)
    for length in range(min(head, len(body)), len(body)):
        yield f"cut to {length} bytes", seal(body[:length], version)


def _mutated(body: bytes, rng: random.Random, head: int) -> tuple[str, bytes]:
    if len(body) <= head:
        return "a byte is appended", body + rng.randbytes(1)
    at = rng.randrange(head, len(body))
    length = min(rng.choice((1, 2, 4, 8, 64)), len(body) - at)
    before, part, after = body[:at], body[at : at + length], body[at + length :]
    match rng.randrange(6):
        case 0:
            bit = rng.randrange(8)
            return f"bit {bit} of byte {at} flips", before + bytes([part[0] ^ 1 << bit]) + body[at + 1 :]
        case 1:
            # What is at the edge of a number, a length or an opcode.
            value = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", b"\x01", b"\x40")) * length
            return f"{length} bytes at {at} are {value[:1].hex()}", before + value + after
        case 2:
            return f"{length} bytes at {at} are random", before + rng.randbytes(length) + after
        case 3:
            return f"cut to {at} bytes", before
        case 4:
            return f"{length} bytes at {at} are removed", before + after
        case _:
            return f"{length} bytes at {at} are repeated", before + part + part + after


# Numbers and strings as RDB files hold them.


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise PayloadError(f"{count} bytes are missing at {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def length(self) -> tuple[int, bool]:
        """A number; or, if the second is true, the way in which a string is encoded."""
        first = self.take(1)[0]
        match first >> 6:
            case 0:
                return first, False
            case 1:
                return (first & 0x3F) << 8 | self.take(1)[0], False
            case 3:
                return first & 0x3F, True
        if first == 0x80:
            return int.from_bytes(self.take(4), "big"), False
        if first == 0x81:
            return int.from_bytes(self.take(8), "big"), False
        raise PayloadError(f"no number starts with {first:#x}")

    def number(self) -> int:
        value, encoded = self.length()
        if encoded:
            raise PayloadError("a string where a number is expected")
        return value

    def string(self) -> bytes:
        value, encoded = self.length()
        if not encoded:
            return self.take(value)
        if value < 3:
            return b"%d" % int.from_bytes(self.take(1 << value), "little", signed=True)
        if value != 3:
            raise PayloadError(f"no string has encoding {value}")
        packed, plain = self.number(), self.number()
        return _unpacked(self.take(packed), plain)


def _unpacked(packed: bytes, length: int) -> bytes:
    """What LZF has packed."""
    reader, plain = _Reader(packed), bytearray()
    while reader.at < len(packed):
        control = reader.take(1)[0]
        if control < 32:
            plain += reader.take(control + 1)
            continue
        count = control >> 5
        if count == 7:
            count += reader.take(1)[0]
        back = ((control & 0x1F) << 8 | reader.take(1)[0]) + 1
        if back > len(plain):
            raise PayloadError("LZF refers to bytes before the first")
        # One by one: it may copy what it has just written.
        for _ in range(count + 2):
            plain.append(plain[-back])
    if len(plain) != length:
        raise PayloadError(f"LZF has {len(plain)} bytes, not {length}")
    return bytes(plain)


def _number(value: int) -> bytes:
    if value < 1 << 6:
        return bytes([value])
    if value < 1 << 14:
        return struct.pack(">H", 0x4000 | value)
    if value < 1 << 32:
        return b"\x80" + struct.pack(">I", value)
    return b"\x81" + struct.pack(">Q", value)


def string_value(body: bytes) -> bytes:
    """The value in the body of a plain string."""
    reader = _Reader(body)
    if reader.take(1)[0] != TYPE_STRING:
        raise PayloadError("this is not a plain string")
    value = reader.string()
    if reader.at != len(body):
        raise PayloadError("bytes after the string")
    return value


def string_body(value: bytes) -> bytes:
    return bytes([TYPE_STRING]) + _number(len(value)) + value


# A module's values.


class Value(NamedTuple):
    """`kind` is sint, uint, float, double or string: RedisModule_SaveSigned, SaveUnsigned, SaveFloat,
    SaveDouble, SaveString and SaveStringBuffer write them."""

    kind: str
    value: int | float | bytes


_KINDS = ("end", "sint", "uint", "float", "double", "string")


def module_id(name: str, encver: int) -> int:
    """The id of a module's type: nine characters of a name, and the version of its encoding."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    if len(name) != 9 or not 0 <= encver < 1024:
        raise ValueError("a type has nine characters and a version below 1024")
    number = 0
    for letter in name:
        number = number << 6 | letters.index(letter)
    return number << 10 | encver


def module_values(body: bytes) -> tuple[int, list[Value]]:
    """The type's id, and the values that the module has written."""
    reader = _Reader(body)
    if reader.take(1)[0] != TYPE_MODULE:
        raise PayloadError("this is not a value of a module")
    identity, values = reader.number(), list[Value]()
    while True:
        opcode = reader.number()
        if opcode >= len(_KINDS):
            raise PayloadError(f"there is no opcode {opcode}")
        kind = _KINDS[opcode]
        match kind:
            case "end":
                break
            case "sint":
                number = reader.number()
                values.append(Value(kind, number - (1 << 64) if number >> 63 else number))
            case "uint":
                values.append(Value(kind, reader.number()))
            case "float":
                values.append(Value(kind, struct.unpack("<f", reader.take(4))[0]))
            case "double":
                values.append(Value(kind, struct.unpack("<d", reader.take(8))[0]))
            case "string":
                values.append(Value(kind, reader.string()))
    if reader.at != len(body):
        raise PayloadError("bytes after the last value")
    return identity, values


def module_body(identity: int, values: list[Value]) -> bytes:
    """The body with these values. Strings are not packed, which servers read as well."""
    parts = [bytes([TYPE_MODULE]), b"\x81" + struct.pack(">Q", identity)]
    for kind, value in values:
        parts.append(_number(_KINDS.index(kind)))
        if isinstance(value, bytes):
            parts.append(_number(len(value)) + value)
        elif isinstance(value, int):
            parts.append(_number(value & (1 << 64) - 1))
        else:
            parts.append(struct.pack("<f" if kind == "float" else "<d", value))
    return b"".join([*parts, b"\0"])


def value_mutations(payload: bytes, seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Like `mutations`, of a module's payload: one or two values change, and the list stays whole, so that
    the module gets every one of them."""
    body, version = split(payload)
    identity, values = module_values(body)
    if not values:
        return
    rng = random.Random(seed)
    for _ in range(count):
        changed, done = list(values), []
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(len(changed))
            what, new = _mutated_value(changed[at], rng)
            changed[at] = new
            done.append(f"value {at} ({new.kind}): {what}")
        yield "; ".join(done), seal(module_body(identity, changed), version)


def _mutated_value(old: Value, rng: random.Random) -> tuple[str, Value]:
    if isinstance(old.value, bytes):
        what, changed = _mutated(old.value, rng, 0)
        return what, Value(old.kind, changed)
    new: int | float
    if isinstance(old.value, int):
        signed = old.kind == "sint"
        new = rng.choice(
            (0, 1, old.value + 1, old.value - 1, old.value ^ 1 << rng.randrange(64), 1 << 31, 1 << 32,
             (1 << 63) - 1, 1 << 63, (1 << 64) - 1, rng.getrandbits(64))
        ) & (1 << 64) - 1  # fmt: skip
        if signed and new >> 63:
            new -= 1 << 64
    else:
        new = rng.choice((0.0, -0.0, -1.0, 1e-38, 1e38, float("inf"), float("-inf"), float("nan")))
    return f"{old.value} becomes {new}", Value(old.kind, new)
