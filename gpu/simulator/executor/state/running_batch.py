"""Running batches: a batch of blocks with its observer, scheduler, asynchronous copies and output."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor.state.batch import BlockBatch, Geometry
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.state.faults import BatchFaults
from gpu.simulator.executor.state.memory import AccessSite, LocalMemory
from gpu.simulator.executor.state.observer import IssuedStep, Observer
from gpu.simulator.executor.state.printf import PrintBuffer
from gpu.simulator.executor.state.registers import Registers, StoreBuffer
from gpu.simulator.executor.state.time_limit import NO_TIME_LIMIT


class WarpOperation:
    """An operation that lanes of a warp execute together: the lanes, their operands and the shared result.

    Parameters
    ----------
    member_mask : scalar or array
        The mask arguments of the lanes, as bits.
    operands : sequence
        The operands, each one value or one per lane of the batch.
    """

    def __init__(self, mask: LaneMask, member_mask: Any, operands: Sequence[Any]) -> None:
        self.mask = mask
        self.member_mask = member_mask
        self.operands = operands
        self._result: Any = None

    def compute_once(self, compute: Callable[[], Any]) -> Any:
        """Return the result of the operation; the first call computes it with `compute` for all lanes."""
        if self._result is None:
            self._result = compute()
        return self._result


class StrongAccess(NamedTuple):
    """A strong access that a part is about to perform.

    Parameters
    ----------
    site : AccessSite
        The access in the source.
    location : hashable
        Identifies the bytes that the first lane accesses.
    writes : bool
        Whether the access may write.
    is_tested : bool
        Whether the value that it reads decides a branch.
    read_bytes : callable
        Returns the bytes that the first lane accesses.
    expected : bytes or None
        Those that a compare-and-swap of the first lane replaces; None for other accesses.
    """

    part: int
    site: AccessSite
    location: Hashable
    writes: bool
    is_tested: bool
    read_bytes: Callable[[], bytes]
    expected: bytes | None


class Conversions(Protocol):
    """Conversions of the values of variables, which may have more attached."""

    def strip(self, value: Any) -> Any:
        """Convert a value to a bare value."""

    def convert(self, function: Callable[[Any], Any], value: Any) -> Any:
        """Replace the bare value of a value by the function's result for it."""


class Scheduler(Protocol):
    """Runs one warp of a batch, or one part of a warp, at a time."""

    notes_accesses: bool
    """Whether the schedule needs calls of `yield_before_strong_access`."""

    statements: int
    """The statements that parts have begun."""

    def pause(self, position: SourcePosition | None = None) -> None:
        """Switch to another part if it is its turn; `position` is that of the running part."""

    def wait_for_phase(self, position: SourcePosition) -> None:
        """Switch to other parts, if possible until an mbarrier changes: the running part found a phase incomplete."""

    def waits_for_ever(self) -> bool:
        """Return whether all parts that can run only test phases, in loops that repeat themselves.

        Such loops call this method in each iteration.
        """

    def recheck_phases(self) -> None:
        """Let the parts that wait for phases test them again, because an mbarrier has changed."""

    def wait_in_loop(self, loop: ir.Loop, variables: list[Any], mask: LaneMask, values: Conversions) -> None:
        """Switch to other parts for a while: the running part probably waits in a loop for what they write.

        Parameters
        ----------
        variables : list
            The variables of the loop's function, which a schedule may change.
        values : Conversions
            The algebra of the variables' values.
        """

    def yield_before_write(self) -> None:
        """Switch to other lanes between the reads and the writes of a statement."""

    def yield_before_strong_access(self, access: StrongAccess) -> None:
        """Switch to other parts before a strong access, if the schedule stops the running part there."""

    def wait_at_barrier(
        self, exited: LaneMask | None, mask: LaneMask, position: SourcePosition, votes: Any
    ) -> tuple[LaneMask, Any]:
        """Wait at a barrier for the rest of the block.

        Parameters
        ----------
        exited : LaneMask or None
            The lanes of the part that have returned; None if there are none.
        mask : LaneMask
            The lanes that arrive.
        votes : scalar or array
            Their votes, one for all lanes or one per lane.

        Returns
        -------
        tuple of LaneMask and array
            The block's lanes that arrived, and their votes, one per lane.

        Raises
        ------
        LaunchError
            Some lanes of the block do not reach the barrier.
        """

    def wait_for_lanes(self, op: str, mask: LaneMask, member_mask: Any, operands: Sequence[Any]) -> WarpOperation:
        """Wait for the lanes of the warp in a mask argument that have not exited.

        Parameters
        ----------
        op : str
            The operation: lanes synchronize only with lanes that have an equal operation and mask argument.
        mask : LaneMask
            The lanes that arrive.
        member_mask : scalar or array
            Their mask arguments, as bits.
        operands : sequence
            Their operands.

        Returns
        -------
        WarpOperation
            The lanes that arrived, with all their operands.

        Raises
        ------
        LaunchError
            Some lanes do not arrive.
        """

    def wait_until(self, condition: Callable[[], bool], create_error: Callable[[], LaunchError]) -> None:
        """Run other parts until a condition is true; if it never is, raise the error of `create_error`."""

    def recheck_conditions(self) -> None:
        """Test the conditions of waiting parts again."""

    @property
    def current_part(self) -> int:
        """The number of the running part."""

    @property
    def running_parts(self) -> int:
        """The number of parts that can run."""

    @property
    def exited_mask(self) -> LaneMask | None:
        """The lanes that have exited."""

    @property
    def returned_mask(self) -> LaneMask | None:
        """The lanes of the parts that have ended, without those that reached the end of the kernel."""

    def local_memory(self, declaration: object, name: str, size: int, *, zeroed: bool, punned: bool) -> LocalMemory:
        """Return the memory of a local array that the running lanes declare.

        Parameters
        ----------
        declaration : object
            The declaration in the kernel's code, which identifies the array.
        name : str
            The variable's name, for messages.
        size : int
            Bytes per lane.
        zeroed : bool
            Whether the memory contains zeros at first, instead of a pattern.
        punned : bool
            Whether elements of several sizes are accessed, as of `LocalMemory`.
        """

    def copy_local_memories(self, mask: LaneMask) -> list[tuple[str, bytes]]:
        """Return the names of all local arrays and what they contain for some lanes."""


class Copies(Protocol):
    """The pending asynchronous copies of a batch."""

    def start_copy(
        self,
        to: Any,
        source: Any,
        size: int,
        mask: LaneMask,
        position: SourcePosition,
        perform: Callable[[LaneMask], None],
        read_bytes: Any = None,
    ) -> Callable[[LaneMask], None]:
        """Start a copy; a copy to memory other than shared memory is performed at once.

        Parameters
        ----------
        to, source : PointerValue
            Destination and source.
        size : int
            Bytes per lane.
        position : SourcePosition
            The statement.
        perform : callable
            Performs the copy for the lanes that it is called with.
        read_bytes : int, array or None
            The number of bytes that each lane reads; the rest is filled with zeros. None for all.

        Returns
        -------
        callable
            Completes the copy for the lanes that it is called with.

        Raises
        ------
        LaunchError
            The size is not supported: 4, 8 or 16 bytes, or for a bulk copy a multiple of 16.
        """

    def start_box(self, box: Any, mask: LaneMask) -> Callable[[LaneMask], None]:
        """Start a `TensorBoxCopy` of the only lane of a mask; return a function that completes it."""

    def start_read(self, source: Any, size: int, mask: LaneMask, position: SourcePosition) -> None:
        """Start an asynchronous read; until the wait, no thread may change the bytes.

        Parameters
        ----------
        source : PointerValue
            The address of each lane.
        size : int
            Bytes per lane.
        position : SourcePosition
            The statement.
        """

    def start_write(self, to: Any, size: int, mask: LaneMask, site: AccessSite) -> None:
        """Start an asynchronous write; until the wait, no thread may access the bytes.

        Parameters
        ----------
        to : PointerValue
            The address of each lane.
        size : int
            Bytes per lane.
        site : AccessSite
            The access in the source.
        """

    def commit(self, mask: LaneMask) -> None:
        """End the current group of copies of each lane."""

    def bind_completion(self, mask: LaneMask) -> Callable[[LaneMask], None]:
        """Return a function that completes the copies that lanes have started so far."""

    def complete_groups(self, mask: LaneMask, pending_groups: Any) -> None:
        """Complete the copies of all but the last `pending_groups` groups; None completes all."""


class Parent(Protocol):
    """The launch by the host that a batch belongs to."""

    def run_children(self, batch: RunningBatch) -> None:
        """Run the children that the threads of a batch have launched so far."""


class RunningBatch(BlockBatch):
    """A batch with its execution state. Observers use only the base class.

    Parameters
    ----------
    geometry, grid, first, shared_bytes, cluster
        As of `BlockBatch`.
    observer : Observer or None
        The observer to notify.
    """

    def __init__(
        self,
        geometry: Geometry,
        grid: Sequence[int],
        first: int,
        shared_bytes: int,
        observer: Observer | None = None,
        cluster: Sequence[int] = (1, 1, 1),
    ) -> None:
        super().__init__(geometry, grid, first, shared_bytes, cluster)
        self.observer = observer
        # None in lockstep schedules.
        self.scheduler: Scheduler | None = None
        # Asynchronous copies by kind; kinds that were never used are absent.
        self.async_copies: dict[ir.AsyncKind, Copies] = {}
        # The mbarriers; None until the first use.
        self.mbarriers: Any = None
        # The named barriers; None until the first use.
        self.named_barriers: Any = None
        # The barrier of the grid, in schedules of warps or lanes; None until the first use.
        self.grid_barrier: Any = None
        # The cluster barriers; None until the first use.
        self.cluster_barriers: Any = None
        # Values cached in registers, or writes in store buffers; None in schedules without them.
        self.registers: Registers | StoreBuffer | None = None
        # Lanes that have ended by an invalid access; None if the first one ends the launch.
        self.faults: BatchFaults | None = None
        # Child launches that have not run yet.
        self.pending_children: list[ChildLaunch] = []
        self.parent: Parent | None = None
        # The number of launches between the host and this batch.
        self.depth = 0
        self.printed_texts: list[tuple[int, str]] = []
        self.print_buffer = PrintBuffer()
        # The number of loop iterations so far, and their limit, which the parent sets.
        self.rounds = self.max_rounds = 0
        self.time_limit = NO_TIME_LIMIT
        # Whether all lanes wait for ever in the fairest order, so that no lane can end the loop of another one.
        self.is_deadlock = False
        self.clock_calls = 0

    def exclude_ended(self, mask: LaneMask) -> LaneMask | None:
        """Return the lanes of a mask that no invalid access has ended, or None if there are none."""
        return mask if self.faults is None else self.faults.exclude(mask)

    def begin(self, step: IssuedStep, mask: LaneMask) -> None:
        """Wait for the lanes' turn, then notify the observer of the statement that they are about to execute."""
        if self.scheduler is not None:
            self.scheduler.pause(step.position)
        if self.registers is not None:
            self.registers.step = step
        if self.observer is not None:
            self.observer.step(self, step, mask)

    def wait_for_children(self) -> None:
        """Run the children that the threads have launched so far."""
        assert self.parent is not None
        if self.registers is not None:
            self.registers.flush_lanes(self.geometry.thread_mask)
        self.parent.run_children(self)
