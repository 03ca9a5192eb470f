"""`printf` as C formats it."""

from __future__ import annotations

import math
import re
from typing import Any

_SPECIFICATION = re.compile(r"%([-+ #0]*)(\*|\d*)(\.(?:\*|\d*))?(?:hh|ll|[hlLzjt])?([diouxXeEfFgGaAcsp%])")

_WIDEST = 1024
"""Characters that a width or a precision may ask for at most."""


class PrintBuffer:
    """What a launch may print: as much as CUDA's buffer of that name holds; what comes later is lost, and counted."""

    BYTES = 1 << 20

    def __init__(self) -> None:
        self._left = self.BYTES
        self._lost = 0

    def takes(self) -> bool:
        """Whether there is room for another call, which is lost where there is none."""
        if self._left <= 0:
            self._lost += 1
        return self._left > 0

    def take(self, text: str) -> None:
        """Take note of a text that is printed; an empty one needs some room too."""
        self._left -= len(text) + 8

    @property
    def complaint(self) -> str:
        """What is said of the calls that were lost, in a line; "" of none."""
        if not self._lost:
            return ""
        calls = "1 more call" if self._lost == 1 else f"{self._lost:,} more calls"
        return f"[{calls} of printf did not fit into the buffer of 1 MB, which CUDA has too.]\n"


def format_c(text: str, values: list[Any]) -> str:
    """Format numbers as C's printf; a specification without a value is left as it stands."""
    remaining = iter(values)

    def one(match: re.Match[str]) -> str:
        flags, width, precision, kind = match.groups()
        if kind == "%":
            return "%"
        try:
            width = _bounded(str(_whole(next(remaining))) if width == "*" else width)
            precision = str(_whole(next(remaining))) if precision == ".*" else (precision or "")[1:]
            # C takes a negative precision for none.
            precision = f".{_bounded(precision)}" if match[3] and not precision.startswith("-") else ""
            return _convert(f"%{flags}{width}{precision}", kind, next(remaining))
        except StopIteration:
            return match.group(0)

    return _SPECIFICATION.sub(one, text)


def _bounded(number: str) -> str:
    """Return a width or a precision, or the most that one may be."""
    return str(max(-_WIDEST, min(int(number), _WIDEST))) if number else ""


def _whole(value: Any) -> int:
    """Return a value that is printed as a whole number; a GPU's conversion of what is none, where it is none."""
    if hasattr(value, "number"):
        return int(value.number())
    return int(value) if abs(value) < math.inf else -(1 << 31)


def _convert(prefix: str, kind: str, value: Any) -> str:
    if kind in "di":
        return (prefix + "d") % _whole(value)
    if kind in "ouxX":
        number = _whole(value)
        if number < 0:
            number += 1 << 8 * getattr(value, "itemsize", 4)
        return (prefix + ("d" if kind == "u" else kind)) % number
    if kind == "c":
        return (prefix + "s") % chr(_whole(value) & 0xFF)
    if kind == "p":
        return (prefix + "s") % hex(_whole(value))
    if kind == "s":
        return (prefix + "s") % str(value)
    real = float(_whole(value) if hasattr(value, "number") else value)
    return real.hex() if kind in "aA" else (prefix + kind) % real
