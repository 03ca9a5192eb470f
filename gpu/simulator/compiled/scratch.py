"""A worker's scratch memory: arrays of one value for each thread of a block."""

from __future__ import annotations

from gpu.simulator.compiled.assembly import Assembly
from gpu.warp import WARP

ALIGNMENT = 64
"""Of each array, in bytes."""

_AROUND = 32 * 8
"""The bytes before and after the arrays, so that the lane next to the first or the last one may be read."""


class Scratch:
    """Lays out arrays, and writes the addresses of their elements.

    Parameters
    ----------
    asm : Assembly
    threads : int
        Of a block.
    """

    def __init__(self, asm: Assembly, threads: int) -> None:
        self._asm = asm
        self._end = _AROUND
        self._offsets: dict[object, int] = {}
        self.stride = -(-threads // WARP) * WARP
        """The elements of an array: whole warps."""

    @property
    def size(self) -> int:
        """The bytes that a worker needs."""
        return self._end + _AROUND

    def take(self, key: object, size: int) -> int:
        """Return the offset of the array of a key, of elements of so many bytes."""
        if key not in self._offsets:
            self._offsets[key] = self._end
            self._end += -(-size * self.stride // ALIGNMENT) * ALIGNMENT
        return self._offsets[key]

    def element(self, offset: int, size: int, thread: str) -> str:
        """Return the address of a thread's element."""
        if thread.isdigit():
            return self.address(offset + size * int(thread))
        start = self.address(offset)
        if size in (1, 2, 4, 8):
            return self._asm.value(f"getelementptr i{8 * size}, ptr {start}, i64 {thread}", "p")
        return self._asm.offset(start, self._asm.value(f"mul nsw i64 {thread}, {size}"))

    def address(self, offset: int) -> str:
        """Return the address of an array."""
        return self._asm.offset("%scratch", offset)
