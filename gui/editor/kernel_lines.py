"""Locate a kernel in its file."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=32)
def find_kernel_lines(text: str, kernel: str) -> tuple[int, int]:
    """Return the first and last line (from 0) of a kernel, including the comment above it; (0, 0) if not found."""
    name = kernel.split("<")[0].rpartition("::")[2].strip()
    match = re.search(rf"^[^\n/]*__global__[^;{{]*?\b{re.escape(name)}\s*\([^;{{]*\{{", text, re.MULTILINE)
    if not name or not match:
        return 0, 0
    lines = text.split("\n")
    start = text.count("\n", 0, match.start())
    first = start
    while first > 0 and lines[first - 1].lstrip().startswith(("//", "template", "extern")):
        first -= 1
    depth, last = 0, start
    for last in range(start, len(lines)):
        code = lines[last].split("//")[0]
        depth += code.count("{") - code.count("}")
        if depth <= 0 and "}" in code:
            break
    return first, last
