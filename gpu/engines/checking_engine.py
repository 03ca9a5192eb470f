"""A simulator engine that runs all checkers in every launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from weakref import WeakSet

import numpy.typing as npt

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.findings import Finding, build_error_finding
from gpu.base.lane_mask import LaneMask
from gpu.base.resource_limits import CPU_SECONDS
from gpu.base.thread_names import Extents
from gpu.engines.base import Argument, Buffer, Extent, Kernel
from gpu.engines.simulator import SimulatedBuffer, SimulatorEngine, get_buffer, get_memory, list_descending_blocks
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.checker_set import create_checkers
from gpu.simulator.checkers.memory.heap import HeapRecords
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.checkers.trials import collect_findings
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.scheduling.choosers import Chooser
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import IssuedStep, Observer
from gpu.simulator.simulated_module import SimulatedModule

MAXIMUM_ROUNDS = 20_000
"""Loop-iteration limit of a kernel, which the simulator with checkers reaches in some seconds."""


class _Coverage(Observer):
    """Records the positions of the statements and conditions that lanes reached, and counts blocks."""

    def __init__(self, reached: set[SourcePosition]) -> None:
        self._reached = reached
        self.blocks = self.steps = 0
        self.extents: Extents = (1, 1, 1), (1, 1, 1)

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self.blocks += math.prod(grid)
        self.extents = _extend(self.extents, (grid, block))

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        self._reached.add(step.position)
        self.steps += 1


class CheckingEngine(SimulatorEngine):
    """Runs a host program and collects findings, up to an error that ends a launch.

    Parameters
    ----------
    checks : bool
        Whether to run the checkers; otherwise it records only the reached positions.
    on_print : callable or None
        Called with thread and text of each `printf`; None for standard output.
    orders_volatile : bool
        As of `RaceChecker`.

    Attributes
    ----------
    findings : list of Finding
        In the order of detection.
    reached : set of SourcePosition
        The statements and conditions that any thread reached.
    blocks : int
        The most blocks of one launch, including its child launches.
    extents : (sequence of int, sequence of int)
        The most blocks of a launch, and threads of a block, in x, y and z.
    steps : int
        The number of statements that the executor has issued for whole batches of blocks.
    extra_observers : tuple of Observer
        Additional observers of launches.
    chooser : Chooser or None
        Selects the next warp, instead of the schedule.
    is_descending : bool
        Whether the blocks of a launch run one after the other, the last one first, if they may.
    max_rounds : int
        Loop-iteration limit of a launch.
    max_seconds : float
        CPU time limit of a launch in seconds.
    """

    def __init__(
        self,
        *,
        checks: bool = True,
        on_print: Callable[[str, str], None] | None = None,
        orders_volatile: bool = False,
    ) -> None:
        super().__init__("lockstep")
        self.extra_observers: tuple[Observer, ...] = ()
        self.chooser: Chooser | None = None
        self.is_descending = False
        self.max_rounds, self.max_seconds = MAXIMUM_ROUNDS, CPU_SECONDS
        self._on_print = on_print
        self._checks, self._orders_volatile = checks, orders_volatile
        self.findings: list[Finding] = []
        self.reached: set[SourcePosition] = set()
        self.blocks = self.steps = 0
        self.extents: Extents = (1, 1, 1), (1, 1, 1)
        self._unwritten: WeakSet[SimulatedBuffer] = WeakSet()
        self._heaps = HeapRecords()

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> SimulatedModule:
        return self.build_simulated_module(file, defines)

    def find_unreached_lines(self, file: str, lines: Collection[int], kernels: Collection[str]) -> dict[int, bool]:
        """Return the lines among `lines` that no thread reached in any build of a file.

        Each has whether the preprocessor skips it in all builds.

        Parameters
        ----------
        file : str
            A name under `kernels/`.
        kernels : collection of str
            The kernels to include, in addition to all functions that are not kernels.
        """
        unreached = [
            module.find_unreached_lines(lines, self.reached, kernels)
            for (name, *_), module in self._modules.items()
            if name == file
        ]
        in_all = set.intersection(*map(set, unreached)) if unreached else set()
        return {line: all(each[line] for each in unreached) for line in sorted(in_all)}

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> SimulatedBuffer:
        buffer = super().allocate(shape, dtype)
        self._unwritten.add(buffer)
        return buffer

    def fill(self, buffer: Buffer, value: float) -> None:
        super().fill(buffer, value)
        assert isinstance(buffer, SimulatedBuffer)
        self._unwritten.discard(buffer)

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        assert isinstance(kernel, SimulatedKernel)
        values = [get_memory(argument) for argument in arguments]
        unwritten = [
            name
            for (name, _), argument in zip(kernel.parameters, arguments, strict=False)
            if get_buffer(argument) in self._unwritten
        ]
        checkers = self._create_checkers(unwritten)
        coverage = _Coverage(self.reached)
        trial = RaceChecker(orders_volatile=self._orders_volatile) if self._checks else None
        is_descending = self.is_descending and kernel.traits.has_separate_blocks
        parts: Sequence[range | None] = list_descending_blocks(grid) if is_descending else (None,)
        try:
            for blocks in parts:
                kernel.launch(
                    grid,
                    block,
                    values,
                    shared_bytes=shared_bytes,
                    on_progress=self.on_progress,
                    observers=(*checkers, coverage, *self.extra_observers),
                    on_print=self._on_print,
                    schedule=self.chooser or self.schedule,
                    max_rounds=self.max_rounds,
                    max_seconds=self.max_seconds,
                    blocks=blocks,
                    trial_observer=trial,
                )
        except LaunchError as error:
            if error.kind:
                self.findings.append(build_error_finding(error))
            raise
        finally:
            self.blocks = max(self.blocks, coverage.blocks)
            self.steps += coverage.steps
            self.extents = _extend(self.extents, coverage.extents)
            self.findings += collect_findings(checkers, trial)
        # The launch may have written its arguments: later launches do not report them as uninitialized.
        for argument in arguments:
            if (buffer := get_buffer(argument)) is not None:
                self._unwritten.discard(buffer)

    def _create_checkers(self, unwritten: Collection[str]) -> tuple[Checker, ...]:
        if not self._checks:
            return ()
        return create_checkers(unwritten, self._heaps, orders_volatile=self._orders_volatile)


def _extend(extents: Extents, others: Extents) -> Extents:
    (grid, block), (other_grid, other_block) = extents, others
    return tuple(map(max, grid, other_grid)), tuple(map(max, block, other_block))
