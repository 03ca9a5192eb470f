"""Limits that a GPU sets on launches, in one place; the simulator refuses the launches that a GPU refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from gpu.base.warp import WARP


@dataclass(frozen=True)
class Limits:
    """The limits of a GPU.

    Parameters
    ----------
    grid, block : tuple of int
        The most blocks of a grid, and threads of a block, along x, y and z.
    threads : int
        The most threads of a block.
    shared_bytes : int
        The most shared memory per block in bytes, static and dynamic, without an opt-in.
    optin_shared_bytes : int
        The most with an opt-in by the host, on GPUs of compute capability 9.0.
    constant_bytes : int
        The most bytes of all `__constant__` variables of a program together.
    cluster_blocks : int
        The most blocks of a cluster; more than 8 need the host's permission.

    Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". The limits up to
    `constant_bytes`, except the one with an opt-in, have been the same since compute capability 3.0.
    """

    grid: tuple[int, int, int] = (2**31 - 1, 65_535, 65_535)
    block: tuple[int, int, int] = (1024, 1024, 64)
    threads: int = 1024
    shared_bytes: int = 48 * 1024
    optin_shared_bytes: int = 227 * 1024
    constant_bytes: int = 64 * 1024
    cluster_blocks: int = 16

    def find_cluster_violation(self, grid: Sequence[int], cluster: Sequence[int]) -> str:
        """Return why a grid cannot have clusters of this size, as the rest of a sentence; "" if it can."""
        if min(cluster) < 1:
            return f"a cluster of {tuple(cluster)} blocks is empty."
        if prod(cluster) > self.cluster_blocks:
            return (
                f"a cluster of {prod(cluster)} blocks; at most 8 are possible on every GPU, and {self.cluster_blocks} "
                "where the host allows them."
            )
        for axis, extent, size in zip("xyz", grid, cluster, strict=True):
            if extent % size:
                return f"a grid of {extent} blocks along {axis}, which is not a multiple of the cluster's {size}."
        return ""

    def find_launch_violation(self, grid: Sequence[int], block: Sequence[int]) -> str:
        """Return why a grid and block size cannot be launched, as the rest of a sentence; "" if they can."""
        if min(*grid, *block) < 1:
            return f"a grid of {tuple(grid)} blocks of {tuple(block)} threads is empty."
        if prod(block) > self.threads:
            return f"a block of {prod(block)} threads; at most {self.threads} are possible."
        for group, extents, limits in (("block", block, self.block), ("grid", grid, self.grid)):
            for axis, extent, most in zip("xyz", extents, limits, strict=True):
                if extent > most:
                    unit = "threads" if group == "block" else "blocks"
                    return f"a {group} of {extent} {unit} along {axis}; at most {most} are possible."
        return ""


LIMITS = Limits()


@dataclass
class ResidencyLimits:
    """How many blocks a GPU holds at once. Registers are not counted.

    Parameters
    ----------
    threads, blocks : int
        The most threads and blocks of a multiprocessor.
    shared_bytes, reserved_bytes : int
        The shared memory of a multiprocessor in bytes, and the part that each block reserves.
    """

    multiprocessors: int = 132
    threads: int = 2048
    blocks: int = 32
    shared_bytes: int = 228 * 1024
    reserved_bytes: int = 1024

    def count_resident_blocks(self, block: Sequence[int], shared_bytes: int) -> int:
        """Return the most blocks that are resident at once; `shared_bytes` is the shared memory of a block."""
        threads = -(-prod(block) // WARP) * WARP
        per_multiprocessor = min(
            self.blocks, self.threads // threads, self.shared_bytes // (shared_bytes + self.reserved_bytes)
        )
        return max(per_multiprocessor, 1) * self.multiprocessors

    def describe_excess(self, grid: Sequence[int], block: Sequence[int], shared_bytes: int) -> str:
        """Return why not all blocks of a grid are resident at once, as the rest of a sentence; "" if they are."""
        resident = self.count_resident_blocks(block, shared_bytes)
        if prod(grid) <= resident:
            return ""
        return (
            f"the grid has {prod(grid)} blocks of {prod(block)} threads, and at most {resident} of them are resident "
            f"at once on a GPU with {self.multiprocessors} multiprocessors"
        )


RESIDENCY = ResidencyLimits()
"""The residency of the described GPU: by default that of an H200."""

RESIDENCY_ADVICE = "Launch at most as many blocks as are resident at once, and let each of them do several parts."
