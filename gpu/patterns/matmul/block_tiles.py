"""Tile shapes of the variants that use multiply-add instructions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BlockTile:
    """A block's tile of `rows` x `columns` elements, computed in steps of `depth`, and each thread's part of it."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int

    @property
    def defines(self) -> dict[str, int | str]:
        """Macros for a kernel file."""
        return {
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "DEPTH": self.depth,
            "THREAD_ROWS": self.thread_rows,
            "THREAD_COLUMNS": self.thread_columns,
        }

    @property
    def threads(self) -> int:
        """Threads per block."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    def blocks(self, m: int, n: int) -> int:
        """Return the number of blocks for m x n elements."""
        return -(-m // self.rows) * -(-n // self.columns)
