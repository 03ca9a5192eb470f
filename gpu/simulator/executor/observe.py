"""What an observer of a launch sees: the one interface that tracing, counting and checking build on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.child import ChildLaunch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite, DeviceMemory, LocalMemory

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class IssuedStep:
    """A statement that lanes are about to execute, or a condition that they are about to test.

    Parameters
    ----------
    position : SourcePosition
    kind : str
        "evaluate", "declare", "if", "loop", "switch", "return" or "barrier".
    operations : int
        The operations on data that every lane does in it, as `gpu.simulator.executor.work` defines them.
    executed : Statement, Expression or None
        The statement, or the expression that is the step of a `for`; None at a barrier.
    """

    position: SourcePosition
    kind: str
    operations: int
    executed: ir.Statement | ir.Expression | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Access:
    """One access to memory by the lanes of a mask, which has happened.

    Parameters
    ----------
    site : AccessSite
        Where in the source, and "read", "write" or "atomic".
    memory : DeviceMemory
        What is accessed: its `space` is "global", "constant", "shared" or "local".
    element : int or array
        The index in elements of `size` bytes, one for all lanes, or one a lane of the batch. In shared memory it counts
        from the beginning of the block's array.
    size : int
        Bytes of one lane's access.
    mask : LaneMask
        The lanes that take part.
    values : scalar, array or tuple
        What was read or written, one for all lanes or one a lane; of a struct, one for each leaf. Of an atomic, the
        operand.
    used : bool
        Of an atomic, whether the lanes want to know what was there before.
    register : bool array or None
        Where threads keep what is in memory in registers: the lanes of the batch whose read took the value from there,
        or whose write has stayed there; None where they keep nothing.
    """

    site: AccessSite
    memory: DeviceMemory
    element: Any
    size: int
    mask: LaneMask
    values: Any
    used: bool = True
    register: Array | None = None

    @property
    def elements(self) -> Array:
        """The index for each lane of `mask.lanes`, as int64."""
        if isinstance(self.element, np.ndarray):
            return self.element[self.mask.lanes].astype(np.int64)
        return np.full(self.mask.count, self.element, np.int64)


@dataclass(frozen=True)
class WarpMeeting:
    """A `__syncwarp`, or an operation by which lanes of a warp exchange values, that the lanes of a mask come to.

    Parameters
    ----------
    position : SourcePosition
    name : str
        Such as "__syncwarp" or "__shfl_down_sync".
    mask : LaneMask
        The lanes that are here.
    named : scalar or array
        The lanes that each of them says take part: uint32, one for all lanes, or one a lane of the batch.
    ended : LaneMask or None
        The lanes whose threads have ended.
    sources : array or None
        Of a shuffle, the number in its warp of the lane that each lane reads: shape (warps, 32).
    """

    position: SourcePosition
    name: str
    mask: LaneMask
    named: Any
    ended: LaneMask | None
    sources: Array | None = None


@dataclass(frozen=True)
class HeapCall:
    """A call of malloc or free by the lanes of a mask.

    Parameters
    ----------
    position : SourcePosition
    memory : DeviceMemory or None
        What the pointer leads into; None where it is null, or no pointer at all.
    offset : int or array
        Its offset there in bytes, one for all lanes, or one a lane of the batch; without a memory, the pointer as a
        number.
    size : scalar, array or None
        How many bytes were allocated; None where the pointer is freed.
    mask : LaneMask
    """

    position: SourcePosition
    memory: DeviceMemory | None
    offset: Any
    size: Any
    mask: LaneMask


class Observer:
    """Sees a launch as it happens. Every method may be left as it is."""

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        """Take note of a launch."""

    def batch_begins(self, batch: BlockBatch) -> None:
        """Take note of blocks that start."""

    def switch(self, batch: BlockBatch, part: int) -> None:
        """Take note that what follows is done by a warp of the batch, or a part of one, which goes on where it was.

        Where all warps run in lockstep nothing is told.
        """

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        """Take note of a statement that the lanes of `mask` are about to execute."""

    def side(self, batch: BlockBatch, position: SourcePosition, operations: int, mask: LaneMask) -> None:
        """Take note that the lanes of `mask` are about to execute a side of `?:`, `&&` or `||`.

        Each does so many operations on data there, which the statement's step has left out; `position` is the
        statement's.
        """

    def advance(self, batch: BlockBatch, loop: ir.Loop, mask: LaneMask) -> None:
        """Take note that the lanes of `mask` are about to do the step of a `for`, which stands at its position."""

    def branch(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, taken: LaneMask | None) -> None:
        """Take note that of the lanes of `mask` those of `taken` (none: None) go one way, the others the other."""

    def access(self, batch: BlockBatch, access: Access) -> None:
        """Take note of an access to memory."""

    def written_back(self, batch: BlockBatch, step: IssuedStep, access: Access, mask: LaneMask) -> None:
        """Take note that a write that was told of, and stayed in registers, comes to memory for some lanes."""

    def copying(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        """Take note of an asynchronous copy that lanes have started, or that arrives now.

        `access` is what it reads or writes, without values; as an access it is told of when it arrives, after this.
        """

    def read_until(self, batch: BlockBatch, access: Access) -> None:
        """Take note that a read may have been as late as now, of what was told of as an access when it began.

        So do products of tiles that lanes start, and now wait for.
        """

    def phase(self, batch: BlockBatch, phase: int, lane: int, *, passes: bool) -> None:
        """Take note of a lane that arrives at a barrier in memory, or finds that a phase of it is over.

        `phase` is the barrier's number in the batch, times two, and the phase's parity.
        """

    def bound(self, batch: BlockBatch, access: Access) -> None:
        """Take note of copies in bulk that are to tell a barrier in memory of their bytes: `access` reads its word."""

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        """Take note of a barrier that the lanes of `mask`, whole blocks, have passed."""

    def cluster_arrives(self, batch: BlockBatch, mask: LaneMask) -> None:
        """Take note of lanes that arrive at the barrier of their clusters."""

    def cluster_passes(self, batch: BlockBatch, mask: LaneMask) -> None:
        """Take note of lanes that know all others of their clusters to have arrived there, or to have ended."""

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, named: Any = None) -> None:
        """Take note of `__threadfence`, `__threadfence_block`, `__threadfence_system` or `__syncwarp`.

        `named` are the lanes that `__syncwarp` names: one uint32 for all threads, or one a lane; None for all lanes.
        """

    def warp_meets(self, batch: BlockBatch, meeting: WarpMeeting) -> None:
        """Take note that lanes come to a `__syncwarp`, or exchange values."""

    def local_ends(self, batch: BlockBatch, memory: LocalMemory, declared: SourcePosition, mask: LaneMask) -> None:
        """Take note that the lanes of `mask` leave the scope where they have declared a variable in memory."""

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        """Take note of memory that malloc has given out, or that is given back."""

    def launched(self, batch: BlockBatch, child: ChildLaunch) -> None:
        """Take note that a thread launches a kernel, which runs later."""

    def child_begins(self, child: ChildLaunch) -> None:
        """Take note that the launch that begins next is that of a child."""

    def launch_resumes(self, batch: BlockBatch) -> None:
        """Take note that the launch of a batch goes on, and that all that came before is ordered before what follows.

        The batch has waited until its children ended, or until all threads of the grid came to a barrier.
        """

    def batch_ends(self, batch: BlockBatch) -> None:
        """Take note of blocks that have finished."""

    def launch_ends(self) -> None:
        """Take note of the end, which a failed launch does not reach."""


class Observers(Observer):
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        for observer in self._observers:
            observer.launch_begins(kernel, grid, block)

    def batch_begins(self, batch: BlockBatch) -> None:
        for observer in self._observers:
            observer.batch_begins(batch)

    def switch(self, batch: BlockBatch, part: int) -> None:
        for observer in self._observers:
            observer.switch(batch, part)

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.step(batch, step, mask)

    def side(self, batch: BlockBatch, position: SourcePosition, operations: int, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.side(batch, position, operations, mask)

    def advance(self, batch: BlockBatch, loop: ir.Loop, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.advance(batch, loop, mask)

    def branch(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, taken: LaneMask | None) -> None:
        for observer in self._observers:
            observer.branch(batch, position, mask, taken)

    def access(self, batch: BlockBatch, access: Access) -> None:
        for observer in self._observers:
            observer.access(batch, access)

    def written_back(self, batch: BlockBatch, step: IssuedStep, access: Access, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.written_back(batch, step, access, mask)

    def copying(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        for observer in self._observers:
            observer.copying(batch, access, begins=begins)

    def read_until(self, batch: BlockBatch, access: Access) -> None:
        for observer in self._observers:
            observer.read_until(batch, access)

    def phase(self, batch: BlockBatch, phase: int, lane: int, *, passes: bool) -> None:
        for observer in self._observers:
            observer.phase(batch, phase, lane, passes=passes)

    def bound(self, batch: BlockBatch, access: Access) -> None:
        for observer in self._observers:
            observer.bound(batch, access)

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.barrier(batch, position, mask)

    def cluster_arrives(self, batch: BlockBatch, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.cluster_arrives(batch, mask)

    def cluster_passes(self, batch: BlockBatch, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.cluster_passes(batch, mask)

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, named: Any = None) -> None:
        for observer in self._observers:
            observer.fence(batch, name, mask, named)

    def warp_meets(self, batch: BlockBatch, meeting: WarpMeeting) -> None:
        for observer in self._observers:
            observer.warp_meets(batch, meeting)

    def local_ends(self, batch: BlockBatch, memory: LocalMemory, declared: SourcePosition, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.local_ends(batch, memory, declared, mask)

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        for observer in self._observers:
            observer.heap_call(batch, call)

    def launched(self, batch: BlockBatch, child: ChildLaunch) -> None:
        for observer in self._observers:
            observer.launched(batch, child)

    def child_begins(self, child: ChildLaunch) -> None:
        for observer in self._observers:
            observer.child_begins(child)

    def launch_resumes(self, batch: BlockBatch) -> None:
        for observer in self._observers:
            observer.launch_resumes(batch)

    def batch_ends(self, batch: BlockBatch) -> None:
        for observer in self._observers:
            observer.batch_ends(batch)

    def launch_ends(self) -> None:
        for observer in self._observers:
            observer.launch_ends()
