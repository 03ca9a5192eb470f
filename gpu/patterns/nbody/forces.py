"""Launch configurations of the force kernels, by number of bodies and device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gpu.base.warp import WARP
from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Engine, Kernel

FILE = "nbody.cu"

AUTO = "auto"
"""The option of the parameter `block` that selects the best block size for the kernel."""

_BLOCK = 256
# Large blocks read each tile less often, and allow more threads per body.
_SPLIT_BLOCK = 1024
_THREADS_PER_MULTIPROCESSOR = 960
_MAX_THREADS_PER_BODY = 128
# The fewest bodies per block, when many threads share a body.
_MIN_BODIES_PER_BLOCK = 8
# Parts of a tile's interactions: enough that the last warps leave little of the chip idle.
_PAIR_PARTS = 64


@dataclass(frozen=True)
class ForcePlan:
    """A launch of a force kernel.

    Parameters
    ----------
    grid, block : int
        Number of blocks, and threads per block.
    defines : dict
        Macros of the build.
    arguments : tuple
        Arguments after those of all force kernels.
    accumulates : bool
        Whether the kernel adds accelerations to their array, which must be zeroed first.
    """

    kernel: str
    grid: int
    block: int
    defines: dict[str, int | str] = field(default_factory=dict)
    arguments: tuple[np.generic, ...] = ()
    accumulates: bool = False


Planner = Callable[[int, int | None, int], ForcePlan]
"""(bodies, threads per block or None for the best, multiprocessors) -> ForcePlan."""


def _simple_planner(kernel: str) -> Planner:
    def plan(n: int, block: int | None, multiprocessors: int) -> ForcePlan:
        block = block or _BLOCK
        return ForcePlan(kernel, -(-n // block), block, {"BLOCK_SIZE": block})

    return plan


def _plan_registers(n: int, block: int | None, multiprocessors: int) -> ForcePlan:
    """Plan as many bodies per thread as leave a block for nearly every multiprocessor."""
    many = n > 4 * 512 * 0.9 * multiprocessors
    bodies_per_thread = 4 if many else 2
    block = block or (512 if many else _BLOCK)
    defines = {"BLOCK_SIZE": block, "BODIES_PER_THREAD": bodies_per_thread}
    return ForcePlan("nbody_registers", -(-n // (block * bodies_per_thread)), block, {**defines})


def _plan_split(n: int, block: int | None, multiprocessors: int) -> ForcePlan:
    block = block or _SPLIT_BLOCK
    shared_by = threads_per_body(n, block, multiprocessors)
    defines = {"BLOCK_SIZE": block, "THREADS_PER_BODY": shared_by}
    return ForcePlan("nbody_split", -(-n // (block // shared_by)), block, {**defines})


def _plan_pairs(n: int, block: int | None, multiprocessors: int) -> ForcePlan:
    """Plan warps that work independently of blocks, each on a part of a tile's interactions around the circle."""
    bodies_per_lane = 8 if n >= 2**15 else 4 if n >= 2**12 else 2
    tiles = -(-n // (WARP * bodies_per_lane))
    partner_tiles = tiles // 2 + 1
    tiles_per_warp = max(1, partner_tiles // _PAIR_PARTS)
    warps = tiles * -(-partner_tiles // tiles_per_warp)
    threads = 128 if n >= 2**16 else WARP  # warps share nothing; small blocks finish sooner
    return ForcePlan(
        "nbody_pairs",
        -(-warps * WARP // threads),
        threads,
        {"BODIES_PER_THREAD": bodies_per_lane, "PAIR_BLOCK": threads},
        (np.int32(tiles), np.int32(tiles_per_warp)),
        accumulates=True,
    )


def threads_per_body(n: int, block: int, multiprocessors: int) -> int:
    """Return the number of threads per body, a power of two, so that all multiprocessors have enough threads."""
    target = multiprocessors * _THREADS_PER_MULTIPROCESSOR
    # The lanes of a warp read different bodies if they share one; but for few bodies, idle threads cost more.
    limit = min(_MAX_THREADS_PER_BODY, max(block // _MIN_BODIES_PER_BLOCK, 2))
    shared_by = 1
    while shared_by < limit and shared_by * n < target:
        shared_by *= 2
    return shared_by


PLANS: dict[str, Planner] = {
    "naive": _simple_planner("nbody_naive"),
    "tiled": _simple_planner("nbody_tiled"),
    "registers": _plan_registers,
    "split": _plan_split,
    "pairs": _plan_pairs,
}
"""Planners by variant name."""


@dataclass(frozen=True)
class Motion:
    """Time step, softening length, and threads per block of a simulation.

    `block` None selects the best for the kernel.
    """

    time_step: float
    softening: float
    block: int | None = None


def motion_from_params(params: Params) -> Motion:
    """Return the motion that the parameters specify."""
    return Motion(params["dt"], params["softening"], None if params["block"] == AUTO else int(params["block"]))


class ForceKernel:
    """A force kernel, built for a number of bodies.

    Parameters
    ----------
    variant : str
        A key of `PLANS`.
    block : int or None
        Threads per block, for variants with a free block size; None for the best.
    total : int or None
        Number of bodies that exert gravity, if accelerations are needed only for the first n of them.
    """

    def __init__(
        self, engine: Engine, variant: str, n: int, block: int | None = None, *, total: int | None = None
    ) -> None:
        self._engine = engine
        self._count = np.int32(n if total is None else total)
        self._plan = PLANS[variant](n, block, engine.device.multiprocessors)
        self._kernel: Kernel = engine.build(FILE, self._plan.defines).kernel(self._plan.kernel)

    def launch(self, bodies: Buffer, accelerations: Buffer, softening_squared: np.float32) -> None:
        """Compute the bodies' accelerations; both buffers are float32, of shape (n, 4) or (among, 4)."""
        plan = self._plan
        if plan.accumulates:
            self._engine.fill(accelerations, 0)
        self._engine.launch(
            self._kernel,
            (plan.grid, 1, 1),
            (plan.block, 1, 1),
            bodies,
            accelerations,
            self._count,
            softening_squared,
            *plan.arguments,
        )
