"""The observer interface of the lockstep executor, used by the recorder, the counters and the checkers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator import ir
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.state.memory import AccessSite, DeviceMemory, LocalMemory
from gpu.simulator.types import Scalar

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class IssuedStep:
    """A statement that lanes are about to execute, or a condition that they are about to test.

    Parameters
    ----------
    position : SourcePosition
        The position of the statement.
    kind : str
        "evaluate", "declare", "if", "loop", "switch", "return" or "barrier".
    operations : int
        The number of operations on data per lane, as `gpu.simulator.executor.operation_counter` defines them.
    executed : Statement, Expression or None
        The statement, or the step expression of a `for`; None at a barrier.
    """

    position: SourcePosition
    kind: str
    operations: int
    executed: ir.Statement | ir.Expression | None = field(default=None, compare=False, repr=False)


class Access(NamedTuple):
    """A completed memory access by the lanes of a mask.

    Parameters
    ----------
    site : AccessSite
        The source position, and "read", "write" or "atomic".
    memory : DeviceMemory
        The accessed memory: its `space` is "global", "constant", "shared" or "local".
    element : int or array
        The index in elements of `size` bytes, one for all lanes, or one per lane of the batch. In shared memory it
        counts from the beginning of the block's array.
    size : int
        Bytes per lane.
    mask : LaneMask
        The lanes that access memory.
    values : scalar, array or tuple
        The values read or written, one for all lanes or one per lane; for a struct, one for each leaf. For an atomic
        operation, the operand.
    used : bool
        For an atomic operation, whether the kernel uses its return value.
    register : bool array or None
        In schedules that cache values in registers: the lanes of the batch that read from a register or wrote to one.
        None in other schedules.
    old : scalar, array or None
        For an atomic operation, the values before it, if they are known.
    compared : scalar, array or None
        For a compare-and-swap, the values that are compared with the old ones.
    """

    site: AccessSite
    memory: DeviceMemory
    element: Any
    size: int
    mask: LaneMask
    values: Any
    used: bool = True
    register: Array | None = None
    old: Any = None
    compared: Any = None

    @property
    def elements(self) -> Array:
        """The element index of each lane of `mask.lanes`, as int64."""
        if isinstance(self.element, np.ndarray):
            return self.element[self.mask.lanes].astype(np.int64)
        return np.full(self.mask.count, self.element, np.int64)


@dataclass(frozen=True)
class StaleRead:
    """A lane reads an old value, although it has read a later write of the lane that has written a new one.

    Parameters
    ----------
    access : Access
        The read, without values.
    write : Access
        The write of the new value, which is not visible yet.
    writer : int
        The lane that writes.
    later : Access
        The later write.
    known : bytes
        What the lane has read where the later write is.
    earlier : AccessSite or None
        The read in the source of the later write, if no fence separates it from the read of the old value; None if none
        separates the two writes.
    is_repeated : bool
        Whether the lane has read the same place before the later write.
    """

    access: Access
    lane: int
    write: Access
    writer: int
    later: Access
    known: bytes
    earlier: AccessSite | None = None
    is_repeated: bool = False


@dataclass(frozen=True)
class WarpSync:
    """A `__syncwarp` or an exchange of values within a warp, executed by the lanes of a mask.

    Parameters
    ----------
    position : SourcePosition
        The position of the call.
    name : str
        Such as "__syncwarp" or "__shfl_down_sync".
    mask : LaneMask
        The lanes that call it.
    member_mask : scalar or array
        The mask argument, as uint32: one for all lanes, or one per lane of the batch.
    exited_mask : LaneMask or None
        The lanes that have exited.
    sources : array or None
        For a shuffle, the lane of its warp that each lane reads: shape (warps, 32).
    width : scalar or array
        For a shuffle, the width argument: one for all lanes, or one per lane of the batch.
    """

    position: SourcePosition
    name: str
    mask: LaneMask
    member_mask: Any
    exited_mask: LaneMask | None
    sources: Array | None = None
    width: Any = WARP


@dataclass(frozen=True)
class PhaseChange:
    """A lane arrives at an mbarrier or a named barrier, or finds a phase of it completed.

    Parameters
    ----------
    phase : int
        Twice the barrier's number in the batch, plus the phase's parity. Named barriers have negative numbers.
    lane : int
        The lane's number in the batch.
    passes : bool
        True if it finds the phase completed, False if it arrives.
    completes_copy : bool
        Whether a copy that the lane has started arrives, not the lane itself.
    is_relaxed : bool
        Whether this orders no accesses without a fence: one before the arrival, or one after the wait.
    """

    phase: int
    lane: int
    passes: bool
    completes_copy: bool = False
    is_relaxed: bool = False


@dataclass(frozen=True)
class HeapCall:
    """A call of malloc or free by the lanes of a mask.

    Parameters
    ----------
    memory : DeviceMemory or None
        The memory that the pointer points into; None if it is null or not a valid pointer.
    offset : int or array
        The pointer's offset in that memory in bytes, one for all lanes, or one per lane of the batch; without a memory,
        the pointer as a number.
    size : scalar, array or None
        The number of bytes allocated; None for a call of free.
    """

    position: SourcePosition
    memory: DeviceMemory | None
    offset: Any
    size: Any
    mask: LaneMask


@dataclass(frozen=True)
class OperatorSite:
    """An integer division, remainder or shift whose result may be undefined in C++.

    Parameters
    ----------
    position : SourcePosition
        The position of the operation.
    op : str
        "/", "%", "<<" or ">>".
    type : Scalar
        The type of the left operand, after integer promotion.
    """

    position: SourcePosition
    op: str
    type: Scalar


class Observer:
    """Receives notifications during a launch. The methods do nothing; subclasses override those that they need.

    The parameter `batch` is always the running batch of blocks, and `mask` contains lanes of it.
    """

    outlives_faults = False
    """Whether it is notified of what other threads do after an invalid access, if the launch goes on then."""

    @property
    def has_findings(self) -> bool:
        """Whether it has found an error of the kernel."""
        return False

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        """Handle the beginning of a launch."""

    def batch_begins(self, batch: BlockBatch) -> None:
        """Handle the beginning of a batch of blocks."""

    def switch(self, batch: BlockBatch, part: int) -> None:
        """Handle a switch to another warp of the batch, or part of a warp, which continues where it stopped.

        In lockstep schedules this is never called.
        """

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        """Handle a statement that the lanes of `mask` are about to execute."""

    def conditional_operand(self, batch: BlockBatch, position: SourcePosition, operations: int, mask: LaneMask) -> None:
        """Handle a conditional operand of `?:`, `&&` or `||` that lanes are about to evaluate.

        Parameters
        ----------
        batch : BlockBatch
            The running batch.
        position : SourcePosition
            The position of the statement.
        operations : int
            The operand's operations on data per lane, which the statement's step does not include.
        mask : LaneMask
            The lanes that evaluate it.
        """

    def operands(self, batch: BlockBatch, site: OperatorSite, left: Any, right: Any, mask: LaneMask) -> None:
        """Handle the operands of an integer division, remainder or shift: one for all lanes, or one per lane."""

    def advance(self, batch: BlockBatch, loop: ir.Loop, mask: LaneMask) -> None:
        """Handle the step expression of a `for` loop that the lanes of `mask` are about to evaluate."""

    def branch(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, true_mask: LaneMask | None) -> None:
        """Handle the result of a condition of an `if` or a loop.

        Parameters
        ----------
        batch : BlockBatch
            The running batch.
        position : SourcePosition
            The position of the statement.
        mask : LaneMask
            The lanes that tested the condition.
        true_mask : LaneMask or None
            Those for which it is true; None if there are none.
        """

    def inner_branch(self, batch: BlockBatch, mask: LaneMask, true_mask: LaneMask | None) -> None:
        """Handle a condition of `&&`, `||` or `?:` that decides which lanes access memory or have effects.

        Parameters
        ----------
        batch : BlockBatch
            The running batch.
        mask : LaneMask
            The lanes that tested the condition.
        true_mask : LaneMask or None
            Those that evaluate the right side, or the first of the two values; None if there are none.
        """

    def choose_case(
        self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, entering: Sequence[LaneMask | None]
    ) -> None:
        """Handle the jump of a `switch`.

        Parameters
        ----------
        batch : BlockBatch
            The running batch.
        position : SourcePosition
            The position of the statement.
        mask : LaneMask
            The lanes that evaluated its value.
        entering : sequence of (LaneMask or None)
            For each section, the lanes that jump to its label; other lanes of `mask` jump past the `switch`.
        """

    def access(self, batch: BlockBatch, access: Access) -> None:
        """Handle a memory access."""

    def write_back(self, batch: BlockBatch, step: IssuedStep, access: Access, mask: LaneMask) -> None:
        """Handle the write-back to memory of an earlier write that stayed in registers.

        Parameters
        ----------
        batch : BlockBatch
            The running batch.
        step : IssuedStep
            The statement of the earlier write.
        access : Access
            The earlier write, as it was reported then.
        mask : LaneMask
            The lanes of it that write back now.
        """

    def stale_read(self, batch: BlockBatch, read: StaleRead) -> None:
        """Handle a read of an old value, before its access."""

    def async_copy(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        """Handle the start of an asynchronous copy, or its completion if not `begins`.

        `access` is its read or its write, without values. At completion, `access` is called afterwards as well.
        """

    def async_read_ends(self, batch: BlockBatch, access: Access) -> None:
        """Handle the wait for an asynchronous read, such as that of a matrix product.

        The read was reported as an access when it started, but may have been performed as late as now.
        """

    def phase(self, batch: BlockBatch, change: PhaseChange) -> None:
        """Handle a lane that arrives at an mbarrier or a named barrier, or finds a phase of it completed."""

    def mbarrier_bound(self, batch: BlockBatch, access: Access) -> None:
        """Handle bulk copies that will signal their bytes to an mbarrier; `access` is the read of its word."""

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        """Handle a barrier that the lanes of `mask`, as whole blocks, have passed."""

    def cluster_arrives(self, batch: BlockBatch, mask: LaneMask, *, is_relaxed: bool) -> None:
        """Handle lanes that arrive at the cluster barrier; a relaxed arrival orders no accesses."""

    def cluster_passes(self, batch: BlockBatch, mask: LaneMask) -> None:
        """Handle lanes that pass the cluster barrier: all other lanes of the cluster have arrived or exited."""

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, member_mask: Any = None) -> None:
        """Handle a memory fence or `__syncwarp`.

        Parameters
        ----------
        batch : BlockBatch
            The running batch.
        name : str
            The name of the function, such as "__threadfence", "__threadfence_block" or "__syncwarp".
        mask : LaneMask
            The lanes that call it.
        member_mask : scalar, array or None
            The mask argument of `__syncwarp`: one uint32 for all lanes, or one per lane; None for all lanes.
        """

    def warp_sync(self, batch: BlockBatch, sync: WarpSync) -> None:
        """Handle a `__syncwarp` or an exchange of values within warps."""

    def local_ends(self, batch: BlockBatch, memory: LocalMemory, declaration: SourcePosition, mask: LaneMask) -> None:
        """Handle the end of the scope of a variable in local memory.

        Parameters
        ----------
        batch : BlockBatch
            The running batch.
        memory : LocalMemory
            The variable's memory, for all lanes.
        mask : LaneMask
            The lanes in which the scope ends.
        """

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        """Handle a call of malloc or free."""

    def child_launched(self, batch: BlockBatch, child: ChildLaunch) -> None:
        """Handle a child launch by a thread; the child runs later."""

    def child_begins(self, child: ChildLaunch) -> None:
        """Handle the beginning of a child launch; `launch_begins` follows."""

    def launch_resumes(self, batch: BlockBatch) -> None:
        """Handle the continuation of a batch's launch; all earlier events happen before all later ones.

        The batch has waited for its children, or all threads of the grid have reached a grid barrier.
        """

    def batch_ends(self, batch: BlockBatch) -> None:
        """Handle the end of a batch of blocks."""

    def launch_ends(self) -> None:
        """Handle the end of a launch; not called if the launch fails."""


class Observers(Observer):
    """An observer that forwards each notification to several others."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.outlives_faults = any(observer.outlives_faults for observer in observers)
        self._set_observers(observers)

    def _set_observers(self, observers: Sequence[Observer]) -> None:
        """Set the observers; those that ignore a frequent notification are not called for it."""
        self._observers = tuple(observers)

        def find_handlers(name: str) -> list[Callable[..., None]]:
            ignoring = getattr(Observer, name)
            return [getattr(each, name) for each in observers if getattr(type(each), name) is not ignoring]

        self._step_handlers, self._branch_handlers, self._access_handlers = map(
            find_handlers, ("step", "branch", "access")
        )
        self._operand_handlers, self._inner_branch_handlers, self._switch_handlers, self._advance_handlers = map(
            find_handlers, ("operands", "inner_branch", "switch", "advance")
        )

    def drop_after_fault(self) -> None:
        """Notify only the observers with `outlives_faults` from now on."""
        self._set_observers([observer for observer in self._observers if observer.outlives_faults])

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        for observer in self._observers:
            observer.launch_begins(kernel, grid, block)

    def batch_begins(self, batch: BlockBatch) -> None:
        for observer in self._observers:
            observer.batch_begins(batch)

    def switch(self, batch: BlockBatch, part: int) -> None:
        for handle in self._switch_handlers:
            handle(batch, part)

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        for handle in self._step_handlers:
            handle(batch, step, mask)

    def conditional_operand(self, batch: BlockBatch, position: SourcePosition, operations: int, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.conditional_operand(batch, position, operations, mask)

    def operands(self, batch: BlockBatch, site: OperatorSite, left: Any, right: Any, mask: LaneMask) -> None:
        for handle in self._operand_handlers:
            handle(batch, site, left, right, mask)

    def advance(self, batch: BlockBatch, loop: ir.Loop, mask: LaneMask) -> None:
        for handle in self._advance_handlers:
            handle(batch, loop, mask)

    def branch(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, true_mask: LaneMask | None) -> None:
        for handle in self._branch_handlers:
            handle(batch, position, mask, true_mask)

    def inner_branch(self, batch: BlockBatch, mask: LaneMask, true_mask: LaneMask | None) -> None:
        for handle in self._inner_branch_handlers:
            handle(batch, mask, true_mask)

    def choose_case(
        self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, entering: Sequence[LaneMask | None]
    ) -> None:
        for observer in self._observers:
            observer.choose_case(batch, position, mask, entering)

    def access(self, batch: BlockBatch, access: Access) -> None:
        for handle in self._access_handlers:
            handle(batch, access)

    def write_back(self, batch: BlockBatch, step: IssuedStep, access: Access, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.write_back(batch, step, access, mask)

    def stale_read(self, batch: BlockBatch, read: StaleRead) -> None:
        for observer in self._observers:
            observer.stale_read(batch, read)

    def async_copy(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        for observer in self._observers:
            observer.async_copy(batch, access, begins=begins)

    def async_read_ends(self, batch: BlockBatch, access: Access) -> None:
        for observer in self._observers:
            observer.async_read_ends(batch, access)

    def phase(self, batch: BlockBatch, change: PhaseChange) -> None:
        for observer in self._observers:
            observer.phase(batch, change)

    def mbarrier_bound(self, batch: BlockBatch, access: Access) -> None:
        for observer in self._observers:
            observer.mbarrier_bound(batch, access)

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.barrier(batch, position, mask)

    def cluster_arrives(self, batch: BlockBatch, mask: LaneMask, *, is_relaxed: bool) -> None:
        for observer in self._observers:
            observer.cluster_arrives(batch, mask, is_relaxed=is_relaxed)

    def cluster_passes(self, batch: BlockBatch, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.cluster_passes(batch, mask)

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, member_mask: Any = None) -> None:
        for observer in self._observers:
            observer.fence(batch, name, mask, member_mask)

    def warp_sync(self, batch: BlockBatch, sync: WarpSync) -> None:
        for observer in self._observers:
            observer.warp_sync(batch, sync)

    def local_ends(self, batch: BlockBatch, memory: LocalMemory, declaration: SourcePosition, mask: LaneMask) -> None:
        for observer in self._observers:
            observer.local_ends(batch, memory, declaration, mask)

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        for observer in self._observers:
            observer.heap_call(batch, call)

    def child_launched(self, batch: BlockBatch, child: ChildLaunch) -> None:
        for observer in self._observers:
            observer.child_launched(batch, child)

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
