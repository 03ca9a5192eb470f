"""The work of each warp of a whole grid, if loaded values determine it: only the control flow is executed.

In counting loops, each lane's iterations are predicted from the first ones, however many they are. So the longest row
of a sparse matrix is found among a million, which no sample would include.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.lane_mask import union_masks
from gpu.base.warp import WARP
from gpu.timing.ptx.analysis.backward_slices import find_jump_slice
from gpu.timing.ptx.analysis.control_flow import NaturalLoop
from gpu.timing.ptx.lanes import SampleLanes
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.path import Visit
from gpu.timing.ptx.program import PtxInstruction, PtxKernel
from gpu.timing.ptx.sampled_blocks import BlockMemory, GridShape, LoopState, SampledBlocks
from gpu.timing.ptx.values import select_lanes

Array = npt.NDArray[Any]

_LANES_PER_BATCH = 1 << 15
"""Lanes that are executed together: their registers fit in a CPU's cache."""
_MAX_VISITS = 600
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
        is_predictable = find_jump_slice(kernel) is not None
        self._machine = _ControlFlowMachine(kernel, addresses, np.asarray(slots, float)) if is_predictable else None

    def count_issue_slots(
        self,
        shape: GridShape,
        parameters: Array,
        blocks: Sequence[int],
        memory: SampledMemory,
        max_visits: int = _MAX_VISITS,
    ) -> Array | None:
        """Return the issue slots of each warp of some blocks.

        Parameters
        ----------
        shape : GridShape
            The extents of the launch.
        parameters : uint8 array
            The bytes of the kernel's parameters.
        blocks : sequence of int
            The numbers of the blocks, x fastest.
        memory : SampledMemory
            The arguments' arrays, from which values are loaded.
        max_visits : int
            The most basic blocks that a batch of blocks may visit.

        Returns
        -------
        float array of shape (blocks, warps per block), or None
            None if the control flow cannot be predicted, or exceeds `max_visits`.
        """
        if self._machine is None:
            return None
        blocks_at_once = max(1, _LANES_PER_BATCH // (shape.warps * WARP))
        parts = []
        for first in range(0, len(blocks), blocks_at_once):
            slots = self._machine.count_issue_slots(
                shape, parameters, blocks[first : first + blocks_at_once], memory, max_visits
            )
            if slots is None:
                return None
            parts.append(slots.reshape(-1, shape.warps))
        return np.concatenate(parts)


class _CensusBlocks(SampledBlocks):
    """Sampled blocks without recording of memory requests."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.predicted_slots = np.zeros(self.lanes // WARP)

    def record_request(self, *_arguments: Any, **_keywords: Any) -> None:
        """Ignore a memory request."""


class _ControlFlowMachine(PtxMachine):
    """Execute only the instructions that determine control flow, and skip counting loops."""

    always_executed: tuple[str, ...] = ()
    counts_guarded_lanes = False

    def __init__(self, kernel: PtxKernel, addresses: Mapping[str, np.int64], slots: Array) -> None:
        super().__init__(kernel, addresses, values=False)
        self._slots = slots
        loops = self.loops.values()
        self._predictable_loops = {
            loop for loop in loops if loop.has_single_exit and not any(other.blocks < loop.blocks for other in loops)
        }

    @staticmethod
    def find_required_instructions(kernel: PtxKernel) -> set[PtxInstruction]:
        return find_jump_slice(kernel) or set()

    def count_issue_slots(
        self, shape: GridShape, parameters: Array, blocks: Sequence[int], memory: SampledMemory, max_visits: int
    ) -> Array | None:
        """Return the issue slots of each warp of some blocks; None if they visit too many basic blocks."""
        run = _CensusBlocks(BlockMemory(0, 0), shape, parameters, blocks, memory)
        with np.errstate(all="ignore"):
            self.execute_path(run, max_visits)
        if not run.path.completed:
            return None
        slots = run.predicted_slots
        for step in run.path.steps:
            assert isinstance(step, Visit)
            slots += self._slots[step.block] * (step.lanes > 0)
        return slots

    def skip_loop_iterations(
        self,
        run: SampledBlocks,
        last: int,
        header: int,
        repeating_lanes: SampleLanes,
        leaving_lanes: SampleLanes | None,
    ) -> tuple[SampleLanes | None, SampleLanes | None]:
        loop = self.loops[last, header]
        state = run.loops.setdefault(loop, LoopState(repeating_lanes))
        state.mask = repeating_lanes
        state.registers.append({name: run.registers[name] for name in loop.written_registers if name in run.registers})
        del state.registers[:-_EXECUTED_ITERATIONS]
        if len(state.registers) < _EXECUTED_ITERATIONS or loop not in self._predictable_loops:
            return repeating_lanes, leaving_lanes
        rounds = self.predict_iterations(run, loop, state)
        if rounds is None:
            return repeating_lanes, leaving_lanes
        assert isinstance(run, _CensusBlocks)
        remaining = np.zeros(run.lanes, np.int64)
        remaining[repeating_lanes.bits] = rounds
        run.predicted_slots += remaining.reshape(-1, WARP).max(axis=1) * sum(
            float(self._slots[block]) for block in loop.blocks
        )
        _advance_registers(run, loop, state, remaining)
        del run.loops[loop]
        return None, union_masks(repeating_lanes, leaving_lanes)


def _advance_registers(run: SampledBlocks, loop: NaturalLoop, state: LoopState, iterations: Array) -> None:
    """Advance each register that changes linearly by its lane's remaining iterations."""
    for name in loop.written_registers:
        older, old, now = (register.get(name) for register in state.registers)
        if older is None or old is None or now is None or now.dtype.kind not in "iu":
            continue
        if np.array_equal(select_lanes(old - older, state.mask), select_lanes(now - old, state.mask)):
            run.registers[name] = now + (now - old) * iterations.astype(now.dtype)
