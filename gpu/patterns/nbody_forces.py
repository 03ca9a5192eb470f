"""The ladder's force kernels, and how each is launched for so many bodies on a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu.engines.base import Buffer, Engine, Kernel

FILE = "nbody.cu"

_WARP = 32
_THREADS_PER_MULTIPROCESSOR = 1024
_MOST_THREADS_PER_BODY = 32


@dataclass(frozen=True)
class Rung:
    """A force kernel.

    Parameters
    ----------
    kernel : str
    bodies_per_thread : int
    splits : bool
        Whether several threads share a body where bodies are few.
    """

    kernel: str
    bodies_per_thread: int = 1
    splits: bool = False


RUNGS = {
    "naive": Rung("nbody_naive"),
    "tiled": Rung("nbody_tiled"),
    "registers": Rung("nbody_registers", bodies_per_thread=4),
    "split": Rung("nbody_split", splits=True),
}
"""By the variant's name."""


class Forces:
    """A force kernel, built for a number of bodies.

    Parameters
    ----------
    engine : Engine
    variant : str
        A key of `RUNGS`.
    n : int
    block : int
        Threads in a block.
    """

    def __init__(self, engine: Engine, variant: str, n: int, block: int) -> None:
        rung = RUNGS[variant]
        self._engine = engine
        self._count = np.int32(n)
        self._block = block
        defines = {"BLOCK_SIZE": block}
        bodies_per_block = block * rung.bodies_per_thread
        if rung.bodies_per_thread > 1:
            defines["BODIES_PER_THREAD"] = rung.bodies_per_thread
        if rung.splits:
            shared_by = threads_per_body(n, block, engine.device.multiprocessors)
            defines["THREADS_PER_BODY"] = shared_by
            bodies_per_block = block // shared_by
        self._grid = -(-n // bodies_per_block)
        self._kernel: Kernel = engine.build(FILE, defines).kernel(rung.kernel)

    def launch(self, bodies: Buffer, accelerations: Buffer, softening_squared: np.float32) -> None:
        """Compute the accelerations at the bodies' places; both buffers are float32 of shape (n, 4)."""
        self._engine.launch(
            self._kernel,
            (self._grid, 1, 1),
            (self._block, 1, 1),
            bodies,
            accelerations,
            self._count,
            softening_squared,
        )


def threads_per_body(n: int, block: int, multiprocessors: int) -> int:
    """Return how many threads share a body, so that all multiprocessors have threads enough: a power of two."""
    wanted = multiprocessors * _THREADS_PER_MULTIPROCESSOR
    # A warp's lanes share a part of the tile, where a block has warps at all.
    most = min(_MOST_THREADS_PER_BODY, max(block // _WARP, 2))
    shared_by = 1
    while shared_by < most and shared_by * n < wanted:
        shared_by *= 2
    return shared_by
