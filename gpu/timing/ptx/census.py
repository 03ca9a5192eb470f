"""How much each warp of a whole grid has to do, where what is loaded decides that: ways are followed, and nothing else.

Of a loop that counts, each lane's rounds are foreseen from its first ones, however many they are: the longest row of a
sparse matrix is found among a million, which no sample would have in it.
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

_AT_ONCE = 1 << 15
"""Lanes that go together: their registers stay in a processor's cache."""
_MOST_VISITS = 600
"""Basic blocks after which it is not known what some lanes do."""
_ROUNDS_BEFORE = 3


class GridCensus:
    """A kernel whose warps can be counted.

    Parameters
    ----------
    kernel : PtxKernel
    addresses : mapping of str to int
        Where its file's variables are.
    slots : sequence of float or array
        What a warp issues in each basic block.
    """

    def __init__(self, kernel: PtxKernel, addresses: Mapping[str, np.int64], slots: Sequence[float] | Array) -> None:
        known = leading(kernel) is not None
        self._machine = _WayMachine(kernel, addresses, np.asarray(slots, float)) if known else None

    def count(
        self,
        shape: GridShape,
        parameters: Array,
        blocks: Sequence[int],
        memory: SampledMemory,
        most_visits: int = _MOST_VISITS,
    ) -> Array | None:
        """Return what each warp of some blocks issues, shape (blocks, warps of one); None where none can foresee it.

        Nor is it known where some of them come to more basic blocks than `most_visits`.
        """
        if self._machine is None:
            return None
        each = max(1, _AT_ONCE // (shape.warps * WARP))
        found = []
        for first in range(0, len(blocks), each):
            issued = self._machine.issued(shape, parameters, blocks[first : first + each], memory, most_visits)
            if issued is None:
                return None
            found.append(issued.reshape(-1, shape.warps))
        return np.concatenate(found)


class _CountedBlocks(SampledBlocks):
    """Blocks of which nobody asks what they want of memory."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.foreseen = np.zeros(self.lanes // WARP)

    def ask(self, *_given: Any, **_how: Any) -> None:
        """Write nothing down."""


class _WayMachine(PtxMachine):
    """Runs only what decides where lanes go, and leads them out of loops that count."""

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
        """Return what each warp of some blocks issues; None where they come to more basic blocks."""
        run = _CountedBlocks(BlockMemory(0, 0), shape, parameters, blocks, memory)
        with np.errstate(all="ignore"):
            self.follow(run, most_visits)
        if not run.path.ended:
            return None
        found = run.foreseen
        for step in run.path.steps:
            assert isinstance(step, Visit)
            found += self._slots[step.block] * (step.lanes > 0)
        return found

    def look_at_loop(
        self, run: SampledBlocks, last: int, header: int, taken: SampleLanes, other: SampleLanes | None
    ) -> tuple[SampleLanes | None, SampleLanes | None]:
        loop = self.loops[last, header]
        state = run.loops.setdefault(loop, LoopState(taken))
        state.mask = taken
        state.registers.append({name: run.registers[name] for name in loop.written if name in run.registers})
        del state.registers[:-_ROUNDS_BEFORE]
        if len(state.registers) < _ROUNDS_BEFORE or loop not in self._foreseeable:
            return taken, other
        rounds = self.rounds_of_lanes(run, loop, state)
        if rounds is None:
            return taken, other
        assert isinstance(run, _CountedBlocks)
        rest = np.zeros(run.lanes, np.int64)
        rest[taken.bits] = rounds
        run.foreseen += rest.reshape(-1, WARP).max(axis=1) * sum(float(self._slots[block]) for block in loop.blocks)
        _move_on(run, loop, state, rest)
        del run.loops[loop]
        return None, together(taken, other)


def _move_on(run: SampledBlocks, loop: NaturalLoop, state: LoopState, rounds: Array) -> None:
    """Move every register that moves by the same in each round as many rounds ahead as its lane is still to go."""
    for name in loop.written:
        older, old, now = (each.get(name) for each in state.registers)
        if older is None or old is None or now is None or now.dtype.kind not in "iu":
            continue
        if np.array_equal(of_lanes(old - older, state.mask), of_lanes(now - old, state.mask)):
            run.registers[name] = now + (now - old) * rounds.astype(now.dtype)
