"""Messages about the thread that wrote an element of a result."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.engines.base import Device
from gpu.messages.requests import Request
from gpu.messages.runs.pattern_runs import RunPattern
from gpu.messages.runs.recordings import RecordingFile

Index3 = tuple[int, int, int]

MAX_STATEMENTS = 500_000
"""Most lane statements of a block that can be stepped through alone; such a recording loads in a few seconds."""


@dataclass(frozen=True)
class Writer:
    """Thread that wrote an element, and its access.

    Parameters
    ----------
    launch : int
        Index of the launch in the host program.
    grid, block_shape : tuple of int
        Blocks of the launch, and threads of a block, in x, y and z.
    block, thread : tuple of int
        `blockIdx` and `threadIdx`.
    text : str
        The source line, stripped.
    atomic : bool
        Whether the access is an atomic operation.
    lanes : int
        Lanes of the warp that participate in the access, which is one request.
    sectors, ideal_sectors : int
        32-byte sectors that the request moves, and the minimum for its bytes.
    queue : int
        For an atomic operation, the most lanes of the warp with the same address; otherwise 1.
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
        """Linear index of the block in the grid, x fastest."""
        return _linear_index(self.block, self.grid)

    @property
    def thread_number(self) -> int:
        """Linear index of the thread in its block, x fastest."""
        return _linear_index(self.thread, self.block_shape)


@dataclass(frozen=True)
class WrittenElement:
    """Origin of an element of a result.

    Parameters
    ----------
    output : str
        The result's name.
    element : tuple of int
        The element's index in it.
    array : str
        Name of the array in the kernel; "" if no kernel wrote the element.
    index : int
        The element's linear index in that array.
    shape : tuple of int
        Shape of the array in the host program.
    launches : int
        Number of launches of the host program.
    writer : Writer or None
        The last observed writer.
    first : Writer or None
        The first writer in that launch.
    writes, threads, blocks : int
        Number of writes in that launch, and of the threads and blocks that made them.
    is_complete : bool
        Whether all blocks of that launch were observed, so that the list of writes is complete.
    statements : int
        Lane statements that the writer's block executes; the mean over blocks if all were observed.
    unknown_reason : str
        Why the writer is unknown, as a sentence; "" if it is known.
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
    is_complete: bool = False
    statements: int = 0
    unknown_reason: str = ""

    @property
    def is_steppable(self) -> bool:
        """Whether its block is small enough to be stepped through at full size."""
        return self.statements <= MAX_STATEMENTS


@dataclass(frozen=True)
class FindWriter(Request[WrittenElement]):
    """Find the thread that wrote an element of a run's result.

    It runs in the simulator's process.

    Parameters
    ----------
    run : RunPattern
        The run that computed the result.
    output : str
        One of its outputs.
    element : tuple of int
        Index of the element.
    device : Device or None
        Device of the run, which determines the host program's launches; None for the simulator.
    """

    run: RunPattern
    output: str
    element: tuple[int, ...]
    device: Device | None = None


@dataclass(frozen=True)
class StepWriter(Request[RecordingFile]):
    """Record the block that wrote an element, in its launch at full size.

    Parameters
    ----------
    request : FindWriter
        The request that found the writer.
    written_element : WrittenElement
        Its result, with a known writer.
    """

    request: FindWriter
    written_element: WrittenElement

    @property
    def writer(self) -> Writer:
        """The thread that wrote the element."""
        assert self.written_element.writer is not None
        return self.written_element.writer


def _linear_index(index: Index3, extents: Index3) -> int:
    return (index[2] * extents[1] + index[1]) * extents[0] + index[0]
