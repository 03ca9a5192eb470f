"""What the queries of a trace answer with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.simulator.checkers.findings import Finding
from gpu.simulator.trace.packing import Array
from gpu.warp import WARP


@dataclass(frozen=True)
class TraceArray:
    """An array of a trace.

    Parameters
    ----------
    number : int
        Its place in `Trace.arrays`.
    name : str
    space : str
        "global", "constant", "shared" or "local".
    dtype : numpy.dtype
    count : int
        How many elements it has; of a thread's own array ("local"), those of one thread.
    block : int or None
        The block that a shared array belongs to.
    memory : int
        The recorded memory that it is a part of.
    """

    number: int
    name: str
    space: str
    dtype: np.dtype[Any]
    count: int
    block: int | None
    memory: int


@dataclass(frozen=True)
class TraceAccess:
    """One access of an event.

    Parameters
    ----------
    action : str
        "read", "write" or "atomic".
    lanes : array
        Who takes part: numbers within the batch, ascending.
    arrays : array
        The number of the array that each lane accesses: in shared memory every block has its own.
    elements : array
        The element of each lane, in elements of `values`' type.
    values : array
        What each lane read or wrote; of an atomic, what it found there.
    after : array
        Of an atomic what each lane left there, else the same as `values`.
    nodes : array
        The node of each lane's value; of an atomic that of `after`.
    """

    action: str
    lanes: Array
    arrays: Array
    elements: Array
    values: Array
    after: Array
    nodes: Array


@dataclass(frozen=True)
class TraceLaunch:
    """The launch by the host, which comes first, or one by a kernel.

    Parameters
    ----------
    number : int
    kernel : str
    grid, block : tuple of int
        Extents in x, y and z.
    parent : int
        The number of the launch whose kernel launched this one; -1 for the host's.
    event : int
        The statement that launched it; -1 for the host's, and where the recording had ended.
    by_block, by_thread : int
        Who launched it: the number of the block in the parent's grid, and of the thread in the block; else -1.
    """

    number: int
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    parent: int = -1
    event: int = -1
    by_block: int = -1
    by_thread: int = -1

    @property
    def lanes_per_block(self) -> int:
        """The threads of a block, filled up to whole warps."""
        return -(-self.block[0] * self.block[1] * self.block[2] // WARP) * WARP


@dataclass(frozen=True)
class Register:
    """A variable: `values` and `nodes`, one a lane of the batch, where `defined`; 0 elsewhere.

    Those of a pointer are texts: the array and the element that it points to, such as "s[12]", or "null".
    """

    values: Array
    nodes: Array
    defined: Array


@dataclass(frozen=True)
class TraceNode:
    """What made a value: an operation, or an element of an array at the launch.

    Parameters
    ----------
    number : int
    operator : str
        Such as "+", "sqrtf" or "atomic add"; "" for an element of an array.
    value : NumPy scalar
    sources : tuple of int
        The node of each operand, 0 where it has none, as constants and thread numbers have.
    operands : tuple
        The value of each operand that has no node; None for the others.
    event : int
        When; -1 for an element.
    block, thread : int
        Who, by the numbers of the block in the grid and of the thread in the block; -1 for an element.
    array, element : int
        Of an element, which one; else -1.
    """

    number: int
    operator: str
    value: Any
    sources: tuple[int, ...]
    operands: tuple[Any, ...]
    event: int
    block: int
    thread: int
    array: int
    element: int


@dataclass(frozen=True)
class TraceFinding:
    """A mistake of the kernel's, and the event in which it was found: that of its first, where it came more often.

    Where the recording had ended by then, the event is the trace's number of events.
    """

    event: int
    finding: Finding


@dataclass(frozen=True)
class Write:
    """Who wrote an element: an event, and the block and the thread, by their numbers; `lane` is that in the batch."""

    event: int
    lane: int
    block: int
    thread: int
