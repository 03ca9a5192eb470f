"""How many blocks a multiprocessor holds at once, as the driver computes it."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.timing.gpus import GpuDescription
from gpu.warp import WARP

_MOST_REGISTERS = 255


@dataclass(frozen=True)
class Occupancy:
    """What a multiprocessor holds at once, and which of its resources ends first.

    Parameters
    ----------
    blocks, warps : int
    limited_by : str
        "blocks", "warps", "registers" or "shared memory"; "grid" where there are no more blocks.
    """

    blocks: int
    warps: int
    limited_by: str


def occupancy(gpu: GpuDescription, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Return what a multiprocessor holds of blocks of so many threads.

    Parameters
    ----------
    gpu : GpuDescription
    threads : int
        Of a block.
    registers : int
        Of a thread.
    shared_bytes : int
        Of a block, static and dynamic.
    """
    warps = -(-threads // WARP)
    of_warp = -(-max(registers, 1) * WARP // gpu.register_unit) * gpu.register_unit
    # Each scheduler has a file of registers of its own, and warps go to schedulers in turn.
    held = gpu.registers // gpu.schedulers // of_warp * gpu.schedulers
    reserved = shared_bytes + gpu.shared_reserved_bytes if gpu.shared_reserved_bytes > 1 else shared_bytes
    of_block = -(-reserved // gpu.shared_unit) * gpu.shared_unit
    limits = {
        "blocks": gpu.blocks,
        "warps": gpu.warps // warps,
        "registers": held // warps if registers <= _MOST_REGISTERS else 0,
        "shared memory": gpu.shared_bytes // of_block if of_block else gpu.blocks,
    }
    blocks = min(limits.values())
    # Of several that end together, what a programmer can change is named first.
    order = ("registers", "shared memory", "warps", "blocks")
    return Occupancy(blocks, blocks * warps, next(name for name in order if limits[name] == blocks))
