"""Split-k: parts of k multiplied in parallel, if C has too few tiles for all multiprocessors, and then summed."""

from __future__ import annotations

import numpy as np

from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Engine, Module

_BLOCK = 256


class SplitKBuffers:
    """Buffers for the partial products of the parts of k: one float32 matrix per part, or C if there is one part.

    Parameters
    ----------
    engine : Engine
    c : Buffer
    part_count : int
        Number of parts.

    Attributes
    ----------
    partial_products : Buffer
        The partial products, shape (number, m, n); C if there is one part.
    """

    def __init__(self, engine: Engine, c: Buffer, part_count: int) -> None:
        self.part_count = part_count
        self._engine, self._c = engine, c
        self.partial_products = engine.allocate((part_count, *c.shape), np.float32) if part_count > 1 else c

    def sum_parts(self, module: Module, kernel: str, params: Params) -> None:
        """Sum the parts, apply alpha and beta, and free them; with one part, the product kernel has already done so."""
        if self.part_count == 1:
            return
        elements = self._c.shape[0] * self._c.shape[1]
        scales = np.float32(params["alpha"]), np.float32(params["beta"])
        sizes = np.int32(elements), np.int32(self.part_count)
        grid = (-(-elements // _BLOCK), 1, 1)
        self._engine.launch(
            module.kernel(kernel), grid, (_BLOCK, 1, 1), self.partial_products, self._c, *sizes, *scales
        )
        self._engine.free(self.partial_products)
