"""Running batches: a batch of blocks with its observer, scheduler, asynchronous copies and output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.batch import BlockBatch, Geometry
from gpu.simulator.executor.child import ChildLaunch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite, LocalMemory
from gpu.simulator.executor.observe import IssuedStep, Observer
from gpu.simulator.executor.patience import UNHURRIED
from gpu.simulator.executor.printf import PrintBuffer
from gpu.simulator.executor.registers import Registers
from gpu.simulator.ir import AsyncKind


class Meeting:
    """An operation that lanes of a warp execute together: the lanes, their operands and the shared result.

    Parameters
    ----------
    mask : LaneMask
        The lanes.
    named : scalar or array
        Their mask arguments, as bits.
    brought : sequence
        The operands, each one value or one per lane of the batch.
    """

    def __init__(self, mask: LaneMask, named: Any, brought: Sequence[Any]) -> None:
        self.mask = mask
        self.named = named
        self.brought = brought
        self._outcome: Any = None

    def outcome(self, make: Callable[[], Any]) -> Any:
        """Return the result of the operation; the first call computes it with `make` for all lanes."""
        if self._outcome is None:
            self._outcome = make()
        return self._outcome


class Scheduler(Protocol):
    """Runs one warp of a batch, or one part of a warp, at a time."""

    def pause(self, position: SourcePosition | None = None) -> None:
        """Switch to another part if it is its turn; `position` is that of the running part."""

    def part(self) -> None:
        """Switch to other lanes between the reads and the writes of a statement."""

    def wait(self, gone: LaneMask | None, mask: LaneMask, position: SourcePosition, votes: Any) -> tuple[LaneMask, Any]:
        """Wait at a barrier for the rest of the block; return the lanes that arrived, and their votes."""

    def meet(self, op: str, mask: LaneMask, named: Any, brought: Sequence[Any]) -> Meeting:
        """Wait for the lanes of the warp in the mask `named`, and return the operands of all of them."""

    def wait_until(self, holds: Callable[[], bool], otherwise: Callable[[], LaunchError]) -> None:
        """Run other parts until a condition is true; if it never is, raise the error of `otherwise`."""

    def wake(self) -> None:
        """Test the conditions of waiting parts again."""

    @property
    def ended(self) -> LaneMask | None:
        """The lanes that have exited."""

    def local_memory(self, declaration: object, name: str, size: int, *, zeroed: bool, punned: bool) -> LocalMemory:
        """Return the memory of a local array that the running lanes declare."""


class Copies(Protocol):
    """The pending asynchronous copies of a batch."""

    def start(
        self,
        to: Any,
        source: Any,
        size: int,
        mask: LaneMask,
        position: SourcePosition,
        perform: Callable[[LaneMask], None],
        given: Any = None,
    ) -> None:
        """Start a copy of `size` bytes per lane by `perform`, of which `given` are read, all by default."""

    def read_on(self, source: Any, size: int, mask: LaneMask, position: SourcePosition) -> None:
        """Start an asynchronous read of `size` bytes per lane."""

    def write_on(self, to: Any, size: int, mask: LaneMask, site: AccessSite) -> None:
        """Start an asynchronous write of `size` bytes per lane."""

    def commit(self, mask: LaneMask) -> None:
        """End the current group of copies of each lane."""

    def started_by(self, mask: LaneMask) -> Callable[[LaneMask], None]:
        """Return a function that completes the copies that lanes have started so far."""

    def wait(self, mask: LaneMask, left: Any) -> None:
        """Complete the copies of all but the last `left` groups; None completes all."""


class Parent(Protocol):
    """The launch by the host that a batch belongs to."""

    def wait(self, batch: RunningBatch) -> None:
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
        self.started: dict[AsyncKind, Copies] = {}
        # The mbarriers; None until the first use.
        self.phases: Any = None
        # The cluster barriers; None until the first use.
        self.clusters: Any = None
        # Values cached in registers; None in schedules without caching.
        self.registers: Registers | None = None
        # Child launches that have not run yet.
        self.children: list[ChildLaunch] = []
        self.parent: Parent | None = None
        # The number of launches between the host and this batch.
        self.depth = 0
        self.printed: list[tuple[int, str]] = []
        self.print_buffer = PrintBuffer()
        # The number of loop iterations so far, and their limit, which the parent sets.
        self.rounds = self.max_rounds = 0
        self.patience = UNHURRIED
        self.clock_calls = 0

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
            self.registers.settle(self.geometry.everyone)
        self.parent.wait(self)
