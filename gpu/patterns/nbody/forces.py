"""The ladder's force kernels, and how each is launched for so many bodies on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Engine, Kernel
from gpu.warp import WARP

FILE = "nbody.cu"

AUTO = "auto"
"""The block that suits the kernel."""

_BLOCK = 256
# Large blocks read each tile less often, and let more threads share a body.
_SPLIT_BLOCK = 1024
_THREADS_PER_MULTIPROCESSOR = 960
_MOST_THREADS_PER_BODY = 128
# What is left of a block when many threads share a body.
_FEWEST_BODIES_PER_BLOCK = 8
# Parts of what a tile meets: so many that the last warps to finish leave little of the chip idle for long.
_PAIR_PARTS = 64


@dataclass(frozen=True)
class ForcePlan:
    """A launch of a force kernel.

    Parameters
    ----------
    kernel : str
    grid, block : int
        Blocks, and threads in each.
    defines : dict
        Of the build.
    arguments : tuple
        Behind those that all force kernels take.
    adds : bool
        Whether accelerations are added to what is in their array, which must begin as zeros.
    """

    kernel: str
    grid: int
    block: int
    defines: dict[str, int | str] = field(default_factory=dict)
    arguments: tuple[np.generic, ...] = ()
    adds: bool = False


Planner = Callable[[int, int | None, int], ForcePlan]
"""(bodies, threads in a block or None for what suits the kernel, multiprocessors) -> ForcePlan."""


def _one_body_a_thread(kernel: str) -> Planner:
    def plan(n: int, block: int | None, multiprocessors: int) -> ForcePlan:
        block = block or _BLOCK
        return ForcePlan(kernel, -(-n // block), block, {"BLOCK_SIZE": block})

    return plan


def _registers(n: int, block: int | None, multiprocessors: int) -> ForcePlan:
    """ForcePlan for as many bodies a thread as leave a block for nearly each multiprocessor."""
    many = n > 4 * 512 * 0.9 * multiprocessors
    bodies_per_thread = 4 if many else 2
    block = block or (512 if many else _BLOCK)
    defines = {"BLOCK_SIZE": block, "BODIES_PER_THREAD": bodies_per_thread}
    return ForcePlan("nbody_registers", -(-n // (block * bodies_per_thread)), block, {**defines})


def _split(n: int, block: int | None, multiprocessors: int) -> ForcePlan:
    block = block or _SPLIT_BLOCK
    shared_by = threads_per_body(n, block, multiprocessors)
    defines = {"BLOCK_SIZE": block, "THREADS_PER_BODY": shared_by}
    return ForcePlan("nbody_split", -(-n // (block // shared_by)), block, {**defines})


def _pairs(n: int, block: int | None, multiprocessors: int) -> ForcePlan:
    """ForcePlan for warps that need no block: they take as much of a circle of tiles as keeps all of them busy."""
    bodies_per_lane = 8 if n >= 2**15 else 4 if n >= 2**12 else 2
    tiles = -(-n // (WARP * bodies_per_lane))
    met = tiles // 2 + 1
    tiles_per_warp = max(1, met // _PAIR_PARTS)
    warps = tiles * -(-met // tiles_per_warp)
    threads = 128 if n >= 2**16 else WARP  # warps share nothing; small blocks end sooner
    return ForcePlan(
        "nbody_pairs",
        -(-warps * WARP // threads),
        threads,
        {"BODIES_PER_THREAD": bodies_per_lane, "PAIR_BLOCK": threads},
        (np.int32(tiles), np.int32(tiles_per_warp)),
        adds=True,
    )


def threads_per_body(n: int, block: int, multiprocessors: int) -> int:
    """Return how many threads share a body, so that all multiprocessors have threads enough: a power of two."""
    wanted = multiprocessors * _THREADS_PER_MULTIPROCESSOR
    # Where a warp's lanes share a part of the tile, they read the same body; with few bodies idle threads cost more.
    most = min(_MOST_THREADS_PER_BODY, max(block // _FEWEST_BODIES_PER_BLOCK, 2))
    shared_by = 1
    while shared_by < most and shared_by * n < wanted:
        shared_by *= 2
    return shared_by


PLANS: dict[str, Planner] = {
    "naive": _one_body_a_thread("nbody_naive"),
    "tiled": _one_body_a_thread("nbody_tiled"),
    "registers": _registers,
    "split": _split,
    "pairs": _pairs,
}
"""By the variant's name."""


@dataclass(frozen=True)
class Motion:
    """How bodies are moved: the length of a step, that of the softening, and the threads of a block.

    `block` None is what suits the kernel.
    """

    time_step: float
    softening: float
    block: int | None = None


def motion_of(params: Params) -> Motion:
    """Return how the parameters say that bodies are moved."""
    return Motion(params["dt"], params["softening"], None if params["block"] == AUTO else int(params["block"]))


class Forces:
    """A force kernel, built for a number of bodies.

    Parameters
    ----------
    engine : Engine
    variant : str
        A key of `PLANS`.
    n : int
    block : int or None
        Threads in a block, where the variant lets one choose; None for what suits it.
    among : int or None
        How many bodies pull, where the first n of them are all whose accelerations are wanted.
    """

    def __init__(
        self, engine: Engine, variant: str, n: int, block: int | None = None, *, among: int | None = None
    ) -> None:
        self._engine = engine
        self._count = np.int32(n if among is None else among)
        self._plan = PLANS[variant](n, block, engine.device.multiprocessors)
        self._kernel: Kernel = engine.build(FILE, self._plan.defines).kernel(self._plan.kernel)

    def launch(self, bodies: Buffer, accelerations: Buffer, softening_squared: np.float32) -> None:
        """Compute the accelerations at the bodies' places; both buffers are float32, of shape (n, 4) or (among, 4)."""
        plan = self._plan
        if plan.adds:
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
