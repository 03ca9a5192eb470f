"""A worker's scratch memory: arrays with one value per thread of a block."""

from __future__ import annotations

from gpu.base.warp import WARP
from gpu.simulator.compiled.llvm.assembly import Assembly

ALIGNMENT = 64
"""Alignment of each array in bytes."""

_MARGIN = 32 * 8
"""Bytes before and after the arrays, so that lanes next to the first or last one can be read."""


class Scratch:
    """Lays out arrays, and writes the addresses of their elements.

    Parameters
    ----------
    threads : int
        Threads per block.
    """

    def __init__(self, asm: Assembly, threads: int) -> None:
        self._asm = asm
        self._end = _MARGIN
        self._offsets: dict[object, int] = {}
        self.stride = -(-threads // WARP) * WARP
        """The number of elements of an array, a multiple of the warp size."""

    @property
    def size(self) -> int:
        """The bytes of scratch memory per worker."""
        return self._end + _MARGIN

    def allocate(self, key: object, size: int) -> int:
        """Return the offset of the array of a key, with elements of `size` bytes; allocate it at the first call."""
        if key not in self._offsets:
            self._offsets[key] = self._end
            self._end += -(-size * self.stride // ALIGNMENT) * ALIGNMENT
        return self._offsets[key]

    def element_address(self, offset: int, size: int, thread: str) -> str:
        """Return the address of a thread's element."""
        if thread.isdigit():
            return self.array_address(offset + size * int(thread))
        start = self.array_address(offset)
        if size in (1, 2, 4, 8):
            return self._asm.value(f"getelementptr i{8 * size}, ptr {start}, i64 {thread}", "p")
        return self._asm.offset(start, self._asm.value(f"mul nsw i64 {thread}, {size}"))

    def array_address(self, offset: int) -> str:
        """Return the address of an array."""
        return self._asm.offset("%scratch", offset)
