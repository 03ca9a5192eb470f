"""How many loads a warp has under way before it waits for one of them: what hides the latency of memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from gpu.timing import caches
from gpu.timing.costs import ALIAS, MEMORY
from gpu.timing.multiprocessor import GLOBAL, MachineCode
from gpu.timing.ptx.path import Step
from gpu.timing.ptx.program import PtxInstruction, PtxKernel


@dataclass(frozen=True)
class LoadsUnderWay:
    """Loads from global memory, as sampled warps make them.

    Parameters
    ----------
    together : float
        Loads that are under way when a warp begins to wait for one, the mean; 0 where nothing is loaded.
    bytes : float
        What a load brings a thread, the mean.
    rounds : float
        How often a warp waits so, from its begin to its end.
    """

    together: float = 0.0
    bytes: float = 0.0
    rounds: float = 0.0


NO_LOADS = LoadsUnderWay()


def loads_under_way(kernel: PtxKernel, code: MachineCode, path: Sequence[Step], warps: int) -> LoadsUnderWay:
    """Return what so many sampled warps had under way.

    Parameters
    ----------
    kernel : PtxKernel
        What `code` was made of.
    code : MachineCode
    path : sequence of Step
    warps : int
    """

    @cache
    def of_block(block: int) -> tuple[int, int, float]:
        return _of_block(kernel, code, block)

    loads = groups = size = 0.0
    for visit, times in caches.visits(path):
        active = float(np.count_nonzero(visit.lanes[:warps])) * times
        own_loads, own_groups, own_bytes = of_block(visit.block)
        loads += active * own_loads
        groups += active * own_groups
        size += active * own_bytes
    if not groups:
        return NO_LOADS
    return LoadsUnderWay(loads / groups, size / loads, groups / warps)


def _of_block(kernel: PtxKernel, code: MachineCode, block: int) -> tuple[int, int, float]:
    """Return a basic block's loads, how many waits they are for, and the bytes of all of them together."""
    places = {row: place for place, row in code.requests[block].items()}
    loads, groups, size = 0, 0, 0.0
    outstanding: set[int] = set()
    for number in range(int(code.first_operation[block]), int(code.first_operation[block + 1])):
        read = set(code.reads[code.first_read[number] : code.first_read[number + 1]].tolist())
        if code.kinds[number] == ALIAS:
            if read & outstanding:
                outstanding.add(int(code.written[number]))
            continue
        if read & outstanding:
            groups += 1
            outstanding.clear()
        if code.kinds[number] == MEMORY and code.spaces[number] == GLOBAL and code.written[number] >= 0:
            loads += 1
            size += _bytes(kernel.blocks[block].instructions[places[int(code.request_of[number])]])
            outstanding.add(int(code.written[number]))
    return loads, groups + bool(outstanding), size


def _bytes(instruction: PtxInstruction) -> float:
    """Return what a load brings a thread."""
    lanes = next((int(word[1:]) for word in instruction.words if re.fullmatch(r"v[248]", word)), 1)
    bits = re.search(r"\d+$", instruction.words[-1])
    return lanes * int(bits[0]) / 8 if bits else 4.0
