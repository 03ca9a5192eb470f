"""Device-side `printf`: C formatting and the limit of the print buffer."""

from __future__ import annotations

import math
import re
from typing import Any

_SPECIFICATION = re.compile(r"%([-+ #0]*)(\*|\d*)(\.(?:\*|\d*))?(?:hh|ll|[hlLzjt])?([diouxXeEfFgGaAcsp%])")

_WIDEST = 1024
"""The largest width or precision."""


class PrintBuffer:
    """The space for a launch's printf output, as large as CUDA's buffer; calls that do not fit are only counted."""

    BYTES = 1 << 20

    def __init__(self) -> None:
        self._left = self.BYTES
        self._lost = 0

    def takes(self) -> bool:
        """Return whether there is room for another call; if not, count it as lost."""
        if self._left <= 0:
            self._lost += 1
        return self._left > 0

    def take(self, text: str) -> None:
        """Subtract a printed text from the remaining space; every call takes 8 extra bytes."""
        self._left -= len(text) + 8

    @property
    def complaint(self) -> str:
        """A line that reports the number of lost calls; "" if there are none."""
        if not self._lost:
            return ""
        calls = "1 more call" if self._lost == 1 else f"{self._lost:,} more calls"
        return f"[{calls} of printf did not fit into the buffer of 1 MB, the default size in CUDA.]\n"


def format_c(text: str, values: list[Any]) -> str:
    """Format values as C's printf does; a conversion specification without a value is left unchanged."""
    remaining = iter(values)

    def convert(match: re.Match[str]) -> str:
        flags, width, precision, kind = match.groups()
        if kind == "%":
            return "%"
        try:
            width = _bounded(str(_integer(next(remaining))) if width == "*" else width)
            precision = str(_integer(next(remaining))) if precision == ".*" else (precision or "")[1:]
            # In C, a negative precision means none.
            precision = f".{_bounded(precision)}" if match[3] and not precision.startswith("-") else ""
            return _convert(f"%{flags}{width}{precision}", kind, next(remaining))
        except StopIteration:
            return match.group(0)

    return _SPECIFICATION.sub(convert, text)


def _bounded(number: str) -> str:
    """Clamp a width or a precision, given as text."""
    return str(max(-_WIDEST, min(int(number), _WIDEST))) if number else ""


def _integer(value: Any) -> int:
    """Convert a value to an integer; infinities and NaN become the smallest int, as a GPU converts them."""
    if hasattr(value, "number"):
        return int(value.number())
    return int(value) if abs(value) < math.inf else -(1 << 31)


def _convert(prefix: str, kind: str, value: Any) -> str:
    if kind in "di":
        return (prefix + "d") % _integer(value)
    if kind in "ouxX":
        number = _integer(value)
        if number < 0:
            number += 1 << 8 * getattr(value, "itemsize", 4)
        return (prefix + ("d" if kind == "u" else kind)) % number
    if kind == "c":
        return (prefix + "s") % chr(_integer(value) & 0xFF)
    if kind == "p":
        return (prefix + "s") % hex(_integer(value))
    if kind == "s":
        return (prefix + "s") % str(value)
    real = float(_integer(value) if hasattr(value, "number") else value)
    return real.hex() if kind in "aA" else (prefix + kind) % real
