"""Result types of the queries on a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.base.findings import Finding
from gpu.base.warp import WARP
from gpu.recording.packing import Array


@dataclass(frozen=True)
class TraceArray:
    """An array of a trace.

    Parameters
    ----------
    number : int
        Its index in `Trace.arrays`.
    name : str
        The array's name.
    space : str
        "global", "constant", "shared" or "local".
    dtype : numpy.dtype
        The type of its elements.
    count : int
        The number of elements; for a local array, per thread.
    block : int or None
        The block that a shared array belongs to.
    memory : int
        The number of the recorded memory that contains it.
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
        The lanes that access memory: numbers within the batch, ascending.
    arrays : array
        The number of the array that each lane accesses; in shared memory each block has its own.
    elements : array
        The element of each lane, in elements of the type of `values`.
    values : array
        The value that each lane read or wrote; for an atomic operation, the old value.
    results : array
        For an atomic operation, the value after each lane's operation; else the same as `values`.
    nodes : array
        The node of each lane's value; for an atomic operation that of `results`.
    """

    action: str
    lanes: Array
    arrays: Array
    elements: Array
    values: Array
    results: Array
    nodes: Array


@dataclass(frozen=True)
class TraceLaunch:
    """The host's launch, or a child launch.

    Parameters
    ----------
    number : int
        Its number; 0 for the host's launch.
    kernel : str
        The kernel's name.
    grid, block : tuple of int
        Extents in x, y and z.
    parent : int
        The number of the parent launch; -1 for the host's.
    event : int
        The event that launched it; -1 for the host's launch, and if the recording had ended.
    by_block, by_thread : int
        The launching thread: the number of the block in the parent's grid, and of the thread in the block; else -1.
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
        """The threads per block, padded to whole warps."""
        return -(-self.block[0] * self.block[1] * self.block[2] // WARP) * WARP


@dataclass(frozen=True)
class RegisterState:
    """A variable: `values` and `nodes`, one per lane of the batch, valid where `defined` is True, else 0.

    The values of a pointer are texts: the array and the element that it points to, such as "s[12]", or "null".
    """

    values: Array
    nodes: Array
    defined: Array


@dataclass(frozen=True)
class TraceNode:
    """The provenance of a value: an operation, or an initial element of an array.

    Parameters
    ----------
    number : int
        The node's number.
    operator : str
        Such as "+", "sqrtf" or "atomic add"; "" for an element of an array.
    value : NumPy scalar
        The value.
    sources : tuple of int
        The node of each operand, 0 if it has none, such as constants and thread indices.
    operands : tuple
        The value of each operand without a node; None for the others.
    event : int
        The event of the operation; -1 for an element.
    block, thread : int
        The number of the block in the grid and of the thread in the block; -1 for an element.
    array, element : int
        The array's number and the element's index; -1 for an operation.
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
class FailedAccess:
    """The access that ended a launch, with the lanes whose elements are out of bounds or misaligned.

    Memory is unchanged, so that the access is not among those of its event.

    Parameters
    ----------
    action : str
        "read", "write" or "atomic".
    memory : int
        The number of the recorded memory.
    size : int
        The bytes that each lane accesses.
    offsets : tuple of int
        The first byte of each lane, counted from the beginning of the array; in shared memory, of the lane's block.
    blocks, threads : tuple of int
        The number of each lane's block in the grid, and of its thread in the block.
    """

    action: str
    memory: int
    size: int
    offsets: tuple[int, ...]
    blocks: tuple[int, ...]
    threads: tuple[int, ...]


@dataclass(frozen=True)
class TraceFinding:
    """A finding of a checker, and the event of its first occurrence.

    If the recording had ended by then, the event is the number of events in the trace. `access` is the access that
    ended the launch, if it is what the finding reports.
    """

    event: int
    finding: Finding
    access: FailedAccess | None = None


@dataclass(frozen=True)
class Write:
    """A write of an element: its event, the lane in the batch, and the numbers of the block and of the thread."""

    event: int
    lane: int
    block: int
    thread: int
