"""Parts of k that are multiplied side by side, where C has too few elements for all multiprocessors, and added up."""

from __future__ import annotations

import numpy as np

from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Engine, Module

_BLOCK = 256


class PartsOfK:
    """Where parts of k put what they come to: a matrix of floats each, or where there is one part, C itself.

    Parameters
    ----------
    engine : Engine
    c : Buffer
    number : int
        How many parts.

    Attributes
    ----------
    sums : Buffer
        C where there is one part.
    """

    def __init__(self, engine: Engine, c: Buffer, number: int) -> None:
        self.number = number
        self._engine, self._c = engine, c
        self.sums = engine.allocate((number, *c.shape), np.float32) if number > 1 else c

    def add(self, module: Module, kernel: str, params: Params) -> None:
        """Add up the parts, with alpha and beta, and free them; one part alone has done that."""
        if self.number == 1:
            return
        elements = self._c.shape[0] * self._c.shape[1]
        scales = np.float32(params["alpha"]), np.float32(params["beta"])
        sizes = np.int32(elements), np.int32(self.number)
        grid = (-(-elements // _BLOCK), 1, 1)
        self._engine.launch(module.kernel(kernel), grid, (_BLOCK, 1, 1), self.sums, self._c, *sizes, *scales)
        self._engine.free(self.sums)
