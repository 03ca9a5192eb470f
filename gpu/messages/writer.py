"""Who wrote one element of a result: what crosses between processes of that."""

from __future__ import annotations

from dataclasses import dataclass

Index3 = tuple[int, int, int]

MOST_STATEMENTS = 500_000
"""Statements of single lanes of a block that is stepped through alone: what is looked at is read in a few seconds."""


@dataclass(frozen=True)
class Writer:
    """A thread that wrote an element, and the access by which it did.

    Parameters
    ----------
    kernel : str
    launch : int
        The launch's number among those of the host program, from 0.
    grid, block_shape : tuple of int
        Blocks of the launch and threads of a block, in x, y and z.
    block, thread : tuple of int
        `blockIdx` and `threadIdx`.
    file : str
    line : int
    text : str
        That line of the kernel's text, without what stands around it.
    atomic : bool
        Whether the access is an atomic.
    lanes : int
        Lanes of its warp that take part: the access is one request of theirs.
    sectors, ideal_sectors : int
        32-byte sectors that this request moves, and as many as would do.
    queue : int
        Of an atomic, the most lanes of the warp that want one address; else 1.
    """

    kernel: str
    launch: int
    grid: Index3
    block_shape: Index3
    block: Index3
    thread: Index3
    file: str
    line: int
    text: str
    atomic: bool
    lanes: int
    sectors: int
    ideal_sectors: int
    queue: int

    @property
    def block_number(self) -> int:
        """The block's number in the grid, x fastest."""
        return _number(self.block, self.grid)

    @property
    def thread_number(self) -> int:
        """The thread's number in its block, x fastest."""
        return _number(self.thread, self.block_shape)


@dataclass(frozen=True)
class WrittenElement:
    """What is known of how an element of a result came there.

    Parameters
    ----------
    output : str
        The result's name.
    element : tuple of int
        Its index there.
    array : str
        What the kernel calls the array; "" where no kernel wrote it.
    index : int
        The element's number in that array.
    shape : tuple of int
        The array's, as the host program has it.
    launches : int
        How many launches the host program made.
    writer : Writer or None
        Who wrote it last, of those that were watched.
    first : Writer or None
        Who wrote it first in that launch.
    writes, threads, blocks : int
        How many writes there were in that launch, by how many threads of how many blocks.
    whole : bool
        Whether all blocks of that launch were watched, so that there were no others.
    statements : int
        Statements of single lanes that its block executes; where all blocks were watched, their mean.
    unknown : str
        Why no writer is known, as a sentence; "" where one is.
    """

    output: str
    element: tuple[int, ...]
    array: str = ""
    index: int = 0
    shape: tuple[int, ...] = ()
    launches: int = 0
    writer: Writer | None = None
    first: Writer | None = None
    writes: int = 0
    threads: int = 0
    blocks: int = 0
    whole: bool = False
    statements: int = 0
    unknown: str = ""

    @property
    def steps_alone(self) -> bool:
        """Whether its block can be stepped through at true size."""
        return self.statements <= MOST_STATEMENTS


def _number(index: Index3, extents: Index3) -> int:
    return (index[2] * extents[1] + index[1]) * extents[0] + index[0]
