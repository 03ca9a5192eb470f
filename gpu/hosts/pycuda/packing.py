"""Packing of arguments: replacement of `pycuda._pvt_struct`, the struct module extended by NumPy's types."""

from __future__ import annotations

import re
import struct
from typing import Any

_CODE = re.compile(r"\s*(\d*)([a-zA-Z?])")
_SIZES = {
    **{code: struct.calcsize(f"@{code}") for code in "xcbB?hHiIlLqQnNfdPs"},
    "F": 8,
    "D": 16,
}
_ALIGNMENTS = {**{code: size for code, size in _SIZES.items() if code not in "xs"}, "x": 1, "s": 1, "F": 4, "D": 8}
_INTEGERS = "bBhHiIlLqQnNP"


def _parse_codes(format: str) -> list[tuple[int, str]]:  # noqa: A002
    text = format.removeprefix("@")
    codes: list[tuple[int, str]] = []
    end = 0
    for match in _CODE.finditer(text):
        if match.start() != end or match[2] not in _SIZES:
            break
        end = match.end()
        count = int(match[1]) if match[1] else 1
        codes += [(count, "s")] if match[2] == "s" else [(1, match[2])] * count
    if text[end:].strip():
        raise struct.error(f"bad char in struct format: {text[end:].strip()[0]!r} of {format!r}")
    return codes


def calcsize(format: str) -> int:  # noqa: A002
    """Return the size in bytes of values of a format."""
    offset = 0
    for count, code in _parse_codes(format):
        offset = -(-offset // _ALIGNMENTS[code]) * _ALIGNMENTS[code] + count * _SIZES[code]
    return offset


def pack(format: str, *values: Any) -> bytes:  # noqa: A002
    """Pack values, each at a multiple of its alignment."""
    codes = _parse_codes(format)
    count_needed = sum(code != "x" for _, code in codes)
    if count_needed != len(values):
        raise struct.error(f"pack requires exactly {count_needed} arguments, not {len(values)}")
    data = bytearray()
    remaining = iter(values)
    for count, code in codes:
        data += bytes(-len(data) % _ALIGNMENTS[code])
        data += bytes(count) if code == "x" else _pack_value(code, count, next(remaining))
    return bytes(data)


def _pack_value(code: str, count: int, value: Any) -> bytes:
    if code == "s":
        if hasattr(value, "tobytes"):
            raw: bytes = value.tobytes("A")
        elif hasattr(value, "__index__"):  # bytes() would create that number of zeros
            raise struct.error("argument for 's' must be a bytes object")
        else:
            raw = bytes(value)
        return raw[:count].ljust(count, b"\0")
    if code in "FD":
        number = complex(value)
        return struct.pack("@2f" if code == "F" else "@2d", number.real, number.imag)
    if code == "P" or (code in _INTEGERS and not isinstance(value, float)):
        number = int(value)
        if code == "P":
            return struct.pack("@Q", number % (1 << 64))
        return struct.pack(f"@{code}", number)
    if code in "fd":
        return struct.pack(f"@{code}", float(value))
    if code == "?":
        return struct.pack("@?", bool(value))
    return struct.pack(f"@{code}", value)
