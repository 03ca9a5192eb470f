"""The simulator as an engine that looks for mistakes in every launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from weakref import WeakSet

import numpy.typing as npt

from gpu.bounds import SECONDS
from gpu.engines.base import Argument, Buffer, Extent, Kernel
from gpu.engines.simulator import SimulatedBuffer, SimulatorEngine
from gpu.errors import LaunchError, SourcePosition
from gpu.schedules import ROUND_ROBIN
from gpu.simulator.checkers.every import every_checker
from gpu.simulator.checkers.findings import Finding, finding_of
from gpu.simulator.checkers.heap import HeapRecords
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.observe import IssuedStep, Observer
from gpu.simulator.module import SimulatedModule

MAXIMUM_ROUNDS = 20_000
"""Rounds of loops after which a kernel counts as endless: some seconds under the checkers' eyes."""


class _Coverage(Observer):
    """Takes down the statements and conditions that lanes came to, by their places, and how many blocks ran."""

    def __init__(self, reached: set[SourcePosition]) -> None:
        self._reached = reached
        self.blocks = 0

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self.blocks += math.prod(grid)

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        self._reached.add(step.position)


class CheckingEngine(SimulatorEngine):
    """Runs a host program and gathers what its kernels do wrong, up to a mistake that ends a launch.

    Parameters
    ----------
    checks : bool
        Whether the checkers watch; else only what is reached is taken down.
    on_print : callable or None
        Called with thread and text of each `printf`; None writes them to standard output.

    Attributes
    ----------
    findings : list of Finding
        In the order in which they were found.
    reached : set of SourcePosition
        The statements and conditions that any thread came to.
    blocks : int
        The most blocks of one launch, with those of the kernels that it launched.
    schedule : str
        The order in which threads run, one of `gpu.schedules.NAMES`; it may be changed between launches.
    also : tuple of Observer
        Who else watches launches.
    max_rounds : int
        Rounds of loops after which a launch counts as endless.
    max_seconds : float
        Seconds of computing after which it does.
    """

    def __init__(self, *, checks: bool = True, on_print: Callable[[str, str], None] | None = None) -> None:
        super().__init__("lockstep")
        self.schedule = ROUND_ROBIN
        self.also: tuple[Observer, ...] = ()
        self.max_rounds, self.max_seconds = MAXIMUM_ROUNDS, SECONDS
        self._on_print = on_print
        self._checks = checks
        self.findings: list[Finding] = []
        self.reached: set[SourcePosition] = set()
        self.blocks = 0
        self._unwritten: WeakSet[SimulatedBuffer] = WeakSet()
        self._heaps = HeapRecords()

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> SimulatedModule:
        return self.built(file, defines)

    def unreached(self, file: str, lines: Collection[int], kernels: Collection[str]) -> set[int]:
        """Return those of a file's lines that hold code which no thread came to in any build.

        Parameters
        ----------
        file : str
            A name under `kernels/`.
        lines : collection of int
        kernels : collection of str
            The kernels that matter, beside all that is no kernel.
        """
        found = [
            module.unreached(lines, self.reached, kernels)
            for (name, *_), module in self._modules.items()
            if name == file
        ]
        return set.intersection(*found) if found else set()

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
        values = [argument.data if isinstance(argument, SimulatedBuffer) else argument for argument in arguments]
        unwritten = [
            name
            for (name, _), argument in zip(kernel.parameters, arguments, strict=False)
            if isinstance(argument, SimulatedBuffer) and argument in self._unwritten
        ]
        checkers = every_checker(unwritten, self._heaps) if self._checks else ()
        coverage = _Coverage(self.reached)
        try:
            kernel.launch(
                grid,
                block,
                values,  # type: ignore[arg-type]
                shared_bytes=shared_bytes,
                on_progress=self.on_progress,
                observers=(*checkers, coverage, *self.also),
                on_print=self._on_print,
                schedule=self.schedule,
                max_rounds=self.max_rounds,
                max_seconds=self.max_seconds,
            )
        except LaunchError as error:
            if error.kind:
                self.findings.append(finding_of(error))
            raise
        finally:
            self.blocks = max(self.blocks, coverage.blocks)
            for checker in checkers:
                self.findings += checker.findings
        # What a launch is given it may have written: of a later one nothing is claimed.
        for argument in arguments:
            if isinstance(argument, SimulatedBuffer):
                self._unwritten.discard(argument)
