"""Makes the checksums of a changed snapshot right again, so that it reaches what lies behind them. Written from
docs/format.md."""

from __future__ import annotations

import xxhash

_HEADER_LENGTH_AT = 5
_CHUNK = 1 << 20


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("no number is that long")


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _with_payload_bytes(header: bytes, payload: int) -> bytes:
    """The header, made to say that this many bytes of payload follow, if the number takes no other length."""
    _, at = _varint(header, 0)
    _, at = _varint(header, at)
    length, at = _varint(header, at)
    at += length
    start = at
    _, at = _varint(header, at)
    end = at
    at += 1 + 32
    labels, at = _varint(header, at)
    for _ in range(2 * min(labels, 1024)):
        length, at = _varint(header, at)
        at += length
    sections, at = _varint(header, at)
    for _ in range(min(sections, 64)):
        length, at = _varint(header, at + 1)
        length, at = _varint(header, at + length)
        payload -= min(payload, length)
    number = _encoded(payload)
    return header[:start] + number + header[end:] if len(number) == end - start else header


def repaired(snapshot: bytes) -> bytes:
    """With right checksums, as far as there are any."""
    try:
        length, at = _varint(snapshot, _HEADER_LENGTH_AT)
    except (IndexError, ValueError):
        return snapshot
    end = at + length
    if end + 8 > len(snapshot):
        return snapshot
    header, rest = snapshot[at:end], snapshot[end + 8 :]
    chunks = (len(rest) + _CHUNK + 7) // (_CHUNK + 8)
    try:
        header = _with_payload_bytes(header, max(len(rest) - 8 * chunks, 0))
    except (IndexError, ValueError):
        pass
    done = snapshot[:at] + header
    checksum = xxhash.xxh3_64_intdigest(done)
    done += checksum.to_bytes(8, "little")
    while len(rest) > 8:
        size = min(len(rest) - 8, _CHUNK)
        checksum = xxhash.xxh3_64_intdigest(rest[:size], seed=checksum)
        done += rest[:size] + checksum.to_bytes(8, "little")
        rest = rest[size + 8 :]
    return done + rest
