"""`printf` as C formats it."""

from __future__ import annotations

import re
from typing import Any

_SPECIFICATION = re.compile(r"%([-+ #0]*)(\*|\d*)(\.(?:\*|\d*))?(?:hh|ll|[hlLzjt])?([diouxXeEfFgGaAcsp%])")


def format_c(text: str, values: list[Any]) -> str:
    """Format numbers as C's printf; a specification without a value is left as it stands."""
    remaining = iter(values)

    def one(match: re.Match[str]) -> str:
        flags, width, precision, kind = match.groups()
        if kind == "%":
            return "%"
        try:
            width = str(int(next(remaining))) if width == "*" else width
            precision = f".{int(next(remaining))}" if precision == ".*" else precision or ""
            return _convert(f"%{flags}{width}{precision}", kind, next(remaining))
        except StopIteration:
            return match.group(0)

    return _SPECIFICATION.sub(one, text)


def _convert(prefix: str, kind: str, value: Any) -> str:
    if kind in "di":
        return (prefix + "d") % int(value)
    if kind in "ouxX":
        number = int(value)
        if number < 0:
            number += 1 << 8 * getattr(value, "itemsize", 4)
        return (prefix + ("d" if kind == "u" else kind)) % number
    if kind == "c":
        return (prefix + "s") % chr(int(value) & 0xFF)
    if kind == "p":
        return (prefix + "s") % hex(int(value.number()) if hasattr(value, "number") else int(value))
    if kind in "aA":
        return float(value).hex()
    return (prefix + kind) % (str(value) if kind == "s" else float(value))
