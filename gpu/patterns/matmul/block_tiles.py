"""What blocks of the rungs by multiply-adds make."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BlockTile:
    """What a block makes, `rows` x `columns` elements in steps of `depth`, and a thread of it."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int

    @property
    def defines(self) -> dict[str, int | str]:
        """Return what a kernel file is built with."""
        return {
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "DEPTH": self.depth,
            "THREAD_ROWS": self.thread_rows,
            "THREAD_COLUMNS": self.thread_columns,
        }

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    def blocks(self, m: int, n: int) -> int:
        """Return how many blocks make m x n elements."""
        return -(-m // self.rows) * -(-n // self.columns)
