"""The number of loads that a warp has in flight before it waits for one, which hides memory latency."""

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
class LoadsInFlight:
    """Loads from global memory in flight, averaged over sampled warps.

    Parameters
    ----------
    mean_count : float
        The mean number of loads in flight when a warp begins to wait for one; 0 without loads.
    bytes_per_load : float
        The mean number of bytes per load and thread.
    waits_per_warp : float
        The number of such waits per warp, from its start to its end.
    """

    mean_count: float = 0.0
    bytes_per_load: float = 0.0
    waits_per_warp: float = 0.0


NO_LOADS = LoadsInFlight()


def count_loads_in_flight(kernel: PtxKernel, code: MachineCode, path: Sequence[Step], warps: int) -> LoadsInFlight:
    """Return the loads in flight of the first sampled warps.

    Parameters
    ----------
    kernel : PtxKernel
        The kernel from which `code` was generated.
    code : MachineCode
    path : sequence of Operation
    warps : int
    """

    @cache
    def cached_block_loads(block: int) -> tuple[int, int, float]:
        return _count_block_loads(kernel, code, block)

    loads = groups = size = 0.0
    for visit, times in caches.iterate_visits(path):
        active = float(np.count_nonzero(visit.lanes[:warps])) * times
        own_loads, own_groups, own_bytes = cached_block_loads(visit.block)
        loads += active * own_loads
        groups += active * own_groups
        size += active * own_bytes
    if not groups:
        return NO_LOADS
    return LoadsInFlight(loads / groups, size / loads, groups / warps)


def _count_block_loads(kernel: PtxKernel, code: MachineCode, block: int) -> tuple[int, int, float]:
    """Return a basic block's number of loads, number of waits for loads, and bytes loaded per thread."""
    index_of_request = {
        request_row: instruction_index for instruction_index, request_row in code.requests[block].items()
    }
    loads, groups, size = 0, 0, 0.0
    outstanding: set[int] = set()
    for number in range(int(code.first_operation[block]), int(code.first_operation[block + 1])):
        read = set(code.read_registers[code.first_read[number] : code.first_read[number + 1]].tolist())
        if code.kinds[number] == ALIAS:
            if read & outstanding:
                outstanding.add(int(code.written_registers[number]))
            continue
        if read & outstanding:
            groups += 1
            outstanding.clear()
        if code.kinds[number] == MEMORY and code.spaces[number] == GLOBAL and code.written_registers[number] >= 0:
            loads += 1
            size += _load_bytes(kernel.blocks[block].instructions[index_of_request[int(code.request_of[number])]])
            outstanding.add(int(code.written_registers[number]))
    return loads, groups + bool(outstanding), size


def _load_bytes(instruction: PtxInstruction) -> float:
    """Return the bytes per thread of a load."""
    lanes = next((int(word[1:]) for word in instruction.modifiers if re.fullmatch(r"v[248]", word)), 1)
    bits = re.search(r"\d+$", instruction.modifiers[-1])
    return lanes * int(bits[0]) / 8 if bits else 4.0
