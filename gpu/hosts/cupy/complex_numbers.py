"""Operations on complex numbers that CuPy's kernels round differently from NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.simulator.ir.numpy_functions import fused_multiply_add


def _divide(x: Any, y: Any) -> Any:
    dtype = np.result_type(x, y)
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    with np.errstate(all="ignore"):
        scale = 1 / (abs(y.real) + abs(y.imag))
        a, b, c, d = x.real * scale, x.imag * scale, y.real * scale, y.imag * scale
        inverse = 1 / fused_multiply_add(c, c, d * d)
        result = np.empty(np.broadcast_shapes(x.shape, y.shape), dtype)
        result.real = fused_multiply_add(a, c, b * d) * inverse
        result.imag = fused_multiply_add(b, c, -(a * d)) * inverse
    return result


def _absolute(x: Any) -> Any:
    return np.hypot(np.real(x), np.imag(x))


_REPLACEMENTS: dict[Any, Callable[..., Any]] = {np.divide: _divide, np.absolute: _absolute}


def find_replacement(function: Any, arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the function that computes an operation of NumPy on complex arguments as CuPy's kernels do, if any."""
    if not isinstance(function, np.ufunc) or function not in _REPLACEMENTS or len(arguments) != function.nin:
        return None
    return _REPLACEMENTS[function] if np.result_type(*arguments).kind == "c" else None
