"""A batch while it runs: who watches, how its warps take turns, and what it has started and printed."""

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
    """Lanes of a warp that met in the middle of a statement.

    Parameters
    ----------
    mask : LaneMask
        The lanes.
    named : scalar or array
        The lanes that they name, as bits.
    brought : sequence
        What they brought: each one value, or one a lane of the batch.
    """

    def __init__(self, mask: LaneMask, named: Any, brought: Sequence[Any]) -> None:
        self.mask = mask
        self.named = named
        self.brought = brought
        self._outcome: Any = None

    def outcome(self, make: Callable[[], Any]) -> Any:
        """Return what comes of the meeting, which the first that asks makes for all."""
        if self._outcome is None:
            self._outcome = make()
        return self._outcome


class Scheduler(Protocol):
    """What lets one warp of a batch, or one part of a warp, run at a time."""

    def pause(self, position: SourcePosition | None = None) -> None:
        """Let another one go on, if it is one's turn; `position` is where the one that runs stands."""

    def part(self) -> None:
        """Let other lanes go on between what a statement reads and what it writes."""

    def wait(self, gone: LaneMask | None, mask: LaneMask, position: SourcePosition, votes: Any) -> tuple[LaneMask, Any]:
        """Wait at a barrier for the rest of the block; return the lanes that arrived, and their votes."""

    def meet(self, op: str, mask: LaneMask, named: Any, brought: Sequence[Any]) -> Meeting:
        """Wait for the lanes of the warp that are named, and return what all of them brought."""

    def wait_until(self, holds: Callable[[], bool], otherwise: Callable[[], LaunchError]) -> None:
        """Let others go on until something holds; where it never does, the launch ends with an error."""

    def wake(self) -> None:
        """Let those look again that wait until something holds."""

    @property
    def ended(self) -> LaneMask | None:
        """The lanes of those that have come to their end."""

    def local_memory(self, declaration: object, name: str, size: int, *, zeroed: bool, punned: bool) -> LocalMemory:
        """Return the memory of an array of each thread's own that the running lanes declare."""


class Copies(Protocol):
    """What lanes have started to copy."""

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
        """Start a copy of so many bytes a lane, which `perform` does; `given` of them are read, all by default."""

    def read_on(self, source: Any, size: int, mask: LaneMask, position: SourcePosition) -> None:
        """Let lanes read so many bytes until they wait."""

    def write_on(self, to: Any, size: int, mask: LaneMask, site: AccessSite) -> None:
        """Let so many bytes of each lane be written until it waits."""

    def commit(self, mask: LaneMask) -> None:
        """End the group of copies of each lane."""

    def started_by(self, mask: LaneMask) -> Callable[[LaneMask], None]:
        """Return what lets the copies of lanes arrive that these have started so far."""

    def wait(self, mask: LaneMask, left: Any) -> None:
        """Let copies arrive, but for those of the last groups."""


class Parent(Protocol):
    """The launch by the host that a batch belongs to."""

    def wait(self, batch: RunningBatch) -> None:
        """Run what the threads of a batch have launched so far."""


class RunningBatch(BlockBatch):
    """A batch with all that running it takes; observers ask for no more than where its blocks are.

    Parameters
    ----------
    geometry, grid, first, shared_bytes, cluster
        As of a batch.
    observer : Observer or None
        Who watches.
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
        # Who says which warp, or lane, goes on; None where all go in lockstep.
        self.scheduler: Scheduler | None = None
        # What its threads have started of a kind that they ever started.
        self.started: dict[AsyncKind, Copies] = {}
        # The barriers that its blocks have in memory; None where they have none.
        self.phases: Any = None
        # Who has come to the barriers of its clusters; None where nobody has.
        self.clusters: Any = None
        # What its threads keep of memory; None where each access goes there.
        self.registers: Registers | None = None
        # What its threads have launched that has not run yet, and how many launches it is away from the host.
        self.children: list[ChildLaunch] = []
        self.parent: Parent | None = None
        self.depth = 0
        self.printed: list[tuple[int, str]] = []
        self.print_buffer = PrintBuffer()
        # How often loops have gone round, and may; its parent says how often.
        self.rounds = self.max_rounds = 0
        self.patience = UNHURRIED
        self.clock_calls = 0

    def begin(self, step: IssuedStep, mask: LaneMask) -> None:
        """Tell of a statement that lanes are about to execute, when it is their turn."""
        if self.scheduler is not None:
            self.scheduler.pause(step.position)
        if self.registers is not None:
            self.registers.step = step
        if self.observer is not None:
            self.observer.step(self, step, mask)

    def wait_for_children(self) -> None:
        """Run what the threads have launched so far."""
        assert self.parent is not None
        if self.registers is not None:
            self.registers.settle(self.geometry.everyone)
        self.parent.wait(self)
