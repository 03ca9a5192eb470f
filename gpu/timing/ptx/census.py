"""The work of each warp of a whole grid, if loaded values determine it: only the control flow is executed.

In counting loops, each lane's iterations are predicted from the first ones, however many they are. So the longest row
of a sparse matrix is found among a million, which no sample would include.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.timing.ptx.deciding import leading
from gpu.timing.ptx.flow import NaturalLoop
from gpu.timing.ptx.lanes import SampleLanes, together
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.path import Visit
from gpu.timing.ptx.program import PtxInstruction, PtxKernel
from gpu.timing.ptx.running import BlockMemory, GridShape, LoopState, SampledBlocks
from gpu.timing.ptx.values import of_lanes
from gpu.warp import WARP

Array = npt.NDArray[Any]

_LANES_AT_ONCE = 1 << 15
"""Lanes that are executed together: their registers fit in a CPU's cache."""
_MOST_VISITS = 600
"""The most basic blocks to visit; beyond it, the work of a lane is unknown."""
_EXECUTED_ITERATIONS = 3


class GridCensus:
    """Count the instructions that each warp of a kernel issues.

    Parameters
    ----------
    kernel : PtxKernel
    addresses : mapping of str to int
        The addresses of its file's variables.
    slots : sequence of float or array
        The issue slots of each basic block per warp.
    """

    def __init__(self, kernel: PtxKernel, addresses: Mapping[str, np.int64], slots: Sequence[float] | Array) -> None:
        is_predictable = leading(kernel) is not None
        self._machine = _ControlFlowMachine(kernel, addresses, np.asarray(slots, float)) if is_predictable else None

    def count(
        self,
        shape: GridShape,
        parameters: Array,
        blocks: Sequence[int],
        memory: SampledMemory,
        most_visits: int = _MOST_VISITS,
    ) -> Array | None:
        """Return the issue slots of each warp of some blocks, shape (blocks, warps per block), or None.

        None means that the control flow cannot be predicted, or that lanes visit more than `most_visits` basic blocks.
        """
        if self._machine is None:
            return None
        blocks_at_once = max(1, _LANES_AT_ONCE // (shape.warps * WARP))
        parts = []
        for first in range(0, len(blocks), blocks_at_once):
            slots = self._machine.issued(shape, parameters, blocks[first : first + blocks_at_once], memory, most_visits)
            if slots is None:
                return None
            parts.append(slots.reshape(-1, shape.warps))
        return np.concatenate(parts)


class _CensusBlocks(SampledBlocks):
    """Sampled blocks without recording of memory requests."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.foreseen = np.zeros(self.lanes // WARP)

    def ask(self, *_given: Any, **_how: Any) -> None:
        """Ignore a memory request."""


class _ControlFlowMachine(PtxMachine):
    """Execute only the instructions that determine control flow, and skip counting loops."""

    kept: tuple[str, ...] = ()

    def __init__(self, kernel: PtxKernel, addresses: Mapping[str, np.int64], slots: Array) -> None:
        super().__init__(kernel, addresses, values=False)
        self._slots = slots
        loops = self.loops.values()
        self._foreseeable = {
            loop for loop in loops if loop.leaves_once and not any(other.blocks < loop.blocks for other in loops)
        }

    @staticmethod
    def deciding(kernel: PtxKernel) -> set[PtxInstruction]:
        return leading(kernel) or set()

    def issued(
        self, shape: GridShape, parameters: Array, blocks: Sequence[int], memory: SampledMemory, most_visits: int
    ) -> Array | None:
        """Return the issue slots of each warp of some blocks; None if they visit too many basic blocks."""
        run = _CensusBlocks(BlockMemory(0, 0), shape, parameters, blocks, memory)
        with np.errstate(all="ignore"):
            self.follow(run, most_visits)
        if not run.path.ended:
            return None
        slots = run.foreseen
        for step in run.path.steps:
            assert isinstance(step, Visit)
            slots += self._slots[step.block] * (step.lanes > 0)
        return slots

    def look_at_loop(
        self, run: SampledBlocks, last: int, header: int, taken: SampleLanes, other: SampleLanes | None
    ) -> tuple[SampleLanes | None, SampleLanes | None]:
        loop = self.loops[last, header]
        state = run.loops.setdefault(loop, LoopState(taken))
        state.mask = taken
        state.registers.append({name: run.registers[name] for name in loop.written if name in run.registers})
        del state.registers[:-_EXECUTED_ITERATIONS]
        if len(state.registers) < _EXECUTED_ITERATIONS or loop not in self._foreseeable:
            return taken, other
        rounds = self.rounds_of_lanes(run, loop, state)
        if rounds is None:
            return taken, other
        assert isinstance(run, _CensusBlocks)
        remaining = np.zeros(run.lanes, np.int64)
        remaining[taken.bits] = rounds
        run.foreseen += remaining.reshape(-1, WARP).max(axis=1) * sum(
            float(self._slots[block]) for block in loop.blocks
        )
        _advance_registers(run, loop, state, remaining)
        del run.loops[loop]
        return None, together(taken, other)


def _advance_registers(run: SampledBlocks, loop: NaturalLoop, state: LoopState, rounds: Array) -> None:
    """Advance each register that changes linearly by its lane's remaining iterations."""
    for name in loop.written:
        older, old, now = (each.get(name) for each in state.registers)
        if older is None or old is None or now is None or now.dtype.kind not in "iu":
            continue
        if np.array_equal(of_lanes(old - older, state.mask), of_lanes(now - old, state.mask)):
            run.registers[name] = now + (now - old) * rounds.astype(now.dtype)
