"""Device-side `printf`: C formatting and the limit of the print buffer."""

from __future__ import annotations

import math
import re
from typing import Any

_SPECIFICATION = re.compile(r"%([-+ #0]*)(\*|\d*)(\.(?:\*|\d*))?(?:hh|ll|[hlLzjt])?([diouxXeEfFgGaAcsp%])")

_MAX_WIDTH = 1024
"""The largest width or precision."""


class PrintBuffer:
    """The space for a launch's printf output, as large as CUDA's buffer; calls that do not fit are only counted."""

    BYTES = 1 << 20

    def __init__(self) -> None:
        self._remaining_bytes = self.BYTES
        self._lost_calls = 0

    def reserve_call(self) -> bool:
        """Return whether there is room for another call; if not, count it as lost."""
        if self._remaining_bytes <= 0:
            self._lost_calls += 1
        return self._remaining_bytes > 0

    def consume(self, text: str) -> None:
        """Subtract a printed text from the remaining space; every call takes 8 extra bytes."""
        self._remaining_bytes -= len(text) + 8

    @property
    def overflow_message(self) -> str:
        """A line that reports the number of lost calls; "" if there are none."""
        if not self._lost_calls:
            return ""
        calls = "1 more call" if self._lost_calls == 1 else f"{self._lost_calls:,} more calls"
        return f"[{calls} of printf did not fit into the buffer of 1 MB, the default size in CUDA.]\n"


def format_c(text: str, values: list[Any]) -> str:
    """Format values as C's printf does; a conversion specification without a value is left unchanged."""
    remaining = iter(values)

    def convert(match: re.Match[str]) -> str:
        flags, width, precision, kind = match.groups()
        if kind == "%":
            return "%"
        try:
            width = _clamp_width(str(_to_integer(next(remaining))) if width == "*" else width)
            precision = str(_to_integer(next(remaining))) if precision == ".*" else (precision or "")[1:]
            # In C, a negative precision means none.
            precision = f".{_clamp_width(precision)}" if match[3] and not precision.startswith("-") else ""
            return _format_value(f"%{flags}{width}{precision}", kind, next(remaining))
        except StopIteration:
            return match.group(0)

    return _SPECIFICATION.sub(convert, text)


def _clamp_width(number: str) -> str:
    """Clamp a width or a precision, given as text."""
    return str(max(-_MAX_WIDTH, min(int(number), _MAX_WIDTH))) if number else ""


def _to_integer(value: Any) -> int:
    """Convert a value to an integer; infinities and NaN become the smallest int, as a GPU converts them."""
    if hasattr(value, "number"):
        return int(value.number())
    return int(value) if abs(value) < math.inf else -(1 << 31)


def _format_value(prefix: str, kind: str, value: Any) -> str:
    if kind in "di":
        return (prefix + "d") % _to_integer(value)
    if kind in "ouxX":
        number = _to_integer(value)
        if number < 0:
            number += 1 << 8 * getattr(value, "itemsize", 4)
        return (prefix + ("d" if kind == "u" else kind)) % number
    if kind == "c":
        return (prefix + "s") % chr(_to_integer(value) & 0xFF)
    if kind == "p":
        return (prefix + "s") % hex(_to_integer(value))
    if kind == "s":
        return (prefix + "s") % str(value)
    real = float(_to_integer(value) if hasattr(value, "number") else value)
    return real.hex() if kind in "aA" else (prefix + kind) % real
