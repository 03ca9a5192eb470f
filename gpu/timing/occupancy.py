"""The number of resident blocks per multiprocessor, computed as in the driver."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.base.warp import WARP
from gpu.timing.gpus import GpuDescription

_MAXIMUM_REGISTERS = 255


@dataclass(frozen=True)
class Occupancy:
    """The blocks and warps that a multiprocessor holds at once, and the limiting resource.

    Parameters
    ----------
    blocks, warps : int
    limiting_resource : str
        "blocks", "warps", "registers" or "shared memory"; "grid" if the grid has no more blocks.
    """

    blocks: int
    warps: int
    limiting_resource: str


def compute_occupancy(gpu: GpuDescription, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Return the occupancy for blocks of a kernel.

    Parameters
    ----------
    gpu : GpuDescription
    threads : int
        Threads per block.
    registers : int
        Registers per thread.
    shared_bytes : int
        Shared memory per block, static and dynamic.
    """
    warps = -(-threads // WARP)
    registers_per_warp = -(-max(registers, 1) * WARP // gpu.register_unit) * gpu.register_unit
    # Each scheduler has its own register file, and warps are assigned to schedulers in turn.
    resident_warps = gpu.registers // gpu.schedulers // registers_per_warp * gpu.schedulers
    reserved = shared_bytes + gpu.shared_reserved_bytes if gpu.shared_reserved_bytes > 1 else shared_bytes
    shared_per_block = -(-reserved // gpu.shared_unit) * gpu.shared_unit
    limits = {
        "blocks": gpu.blocks,
        "warps": gpu.warps // warps,
        "registers": resident_warps // warps if registers <= _MAXIMUM_REGISTERS else 0,
    }
    if shared_per_block:
        limits["shared memory"] = gpu.shared_bytes // shared_per_block
    blocks = min(limits.values())
    # If several limits are equal, the one that a programmer can change is reported first.
    order = ("registers", "shared memory", "warps", "blocks")
    return Occupancy(blocks, blocks * warps, next(name for name in order if limits.get(name) == blocks))
