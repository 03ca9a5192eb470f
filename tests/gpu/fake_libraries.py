"""NumPy in CuPy's place: the routines that host programs hand to an engine, run without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpu.engines.base import Array, Buffer, Routine
from gpu.engines.simulator import SimulatedBuffer, SimulatorEngine


def _gemm(transa: str, transb: str, a: Array, b: Array, out: Array, alpha: float, beta: float) -> None:
    assert (transa, transb) == ("N", "N")
    assert a.dtype == b.dtype == out.dtype == np.float32
    before = beta * out if beta else 0  # as in BLAS: what stood there may be NaN
    out[:] = alpha * (a.astype(np.float64) @ b) + before


def _geam(transa: str, transb: str, alpha: float, a: Array, beta: float, b: Array, out: Array) -> None:
    assert (transa, transb, beta) == ("T", "N", 0)
    assert a.dtype == b.dtype == out.dtype == np.float32
    assert a.shape == b.shape[::-1] == out.shape[::-1]
    out[:] = alpha * a.T


def _argsort(keys: Array) -> Array:
    return np.argsort(keys, kind="stable")


def _matmul(a: Array, b: Array, out: Array) -> None:
    assert a.dtype == b.dtype == out.dtype == np.float16
    out[:] = a.astype(np.float32) @ b.astype(np.float32)


LIBRARY: Any = SimpleNamespace(argsort=_argsort, matmul=_matmul, cublas=SimpleNamespace(gemm=_gemm, geam=_geam))


class LibraryEngine(SimulatorEngine):
    """The simulator, and NumPy as the library that a GPU would have."""

    def __init__(self) -> None:
        super().__init__()
        self.device = replace(self.device, no_library="")

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        with self._time_phase("kernel"):
            routine(LIBRARY, *map(_array, buffers))


def _array(buffer: Buffer) -> Array:
    assert isinstance(buffer, SimulatedBuffer)
    shape: Sequence[int] = buffer.shape
    return buffer.data.view(buffer.dtype).reshape(shape)
