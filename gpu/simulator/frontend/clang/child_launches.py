"""Kernel launches in device code, which clang does not parse: rewrite the text and map positions back.

`child<<<grid, block>>>(arguments)` becomes `child(arguments), __lockstep_launch(grid, block)`. Both are plain calls, so
clang checks and converts the arguments and deduces template arguments.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from gpu.files.source_lexer import blank_comments_and_literals, find_launches

CONFIGURE_FUNCTION = "__lockstep_launch"

# The shim's __global__ adds this annotation to kernels if kernels launch kernels; otherwise it is clang's attribute.
KERNEL_MARK = "lockstep kernel"

_LAUNCH_ERROR = re.compile(
    r"reference to (__global__ function '.*'|__host__ function '(cudaConfigureCall|__cudaPushCallConfiguration)')"
    r" in (__global__|__device__|__host__ __device__) function"
)


def is_child_launch(message: str) -> bool:
    """Return whether an error of clang reports that device code launches a kernel."""
    return _LAUNCH_ERROR.fullmatch(message) is not None


@dataclass(frozen=True)
class SourceMap:
    """Source map of a rewritten text: where each piece was before, as byte offsets.

    Parameters
    ----------
    text : bytes
        The original text.
    starts, origins : tuple of int
        Where each piece starts in the rewritten text, and where it started in the original.
    is_copied : tuple of bool
        Whether a piece was copied from the original; an inserted piece maps to its origin as a whole.
    """

    text: bytes
    starts: tuple[int, ...]
    origins: tuple[int, ...]
    is_copied: tuple[bool, ...]

    def find_original_position(self, offset: int) -> tuple[int, int]:
        """Return the line and column, both from 1, that an offset in the rewritten text had in the original."""
        piece = bisect_right(self.starts, offset) - 1
        original = self.origins[piece] + (offset - self.starts[piece]) * self.is_copied[piece]
        return self.text.count(b"\n", 0, original) + 1, original - self.text.rfind(b"\n", 0, original)


def rewrite_launches(text: str) -> tuple[str, SourceMap]:
    """Return the text with every launch rewritten as two calls, and the source map back to `text`."""
    original = text.encode()
    pieces: list[tuple[bytes, int, bool]] = []
    copied = 0
    for launch in find_launches(blank_comments_and_literals(original)):
        first, last = launch.configuration
        pieces += [
            (original[copied : launch.start], copied, True),
            (original[launch.end : launch.closing + 1], launch.end, True),
            (b", " + CONFIGURE_FUNCTION.encode() + b"(", launch.start, False),
            (original[first:last], first, True),
            (b")", last, False),
        ]
        copied = launch.closing + 1
    pieces.append((original[copied:], copied, True))
    texts, origins, kept = zip(*pieces, strict=True)
    starts = (0, *accumulate(map(len, texts[:-1])))
    return b"".join(texts).decode(), SourceMap(original, starts, origins, kept)
