"""CuPy routines for library variants, with PyCUDA's context and stream and arrays over its memory."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, LockstepError
from gpu.engines.base import Routine


def explain_missing_library() -> str:
    """Return a sentence why no library can be called on this machine's GPU; "" if one can."""
    if importlib.util.find_spec("cupy"):
        return ""
    return "CuPy is not installed; run `pip install cupy-cuda13x`, or cupy-cuda12x for CUDA 12."


def call(
    routine: Routine,
    memories: Sequence[tuple[int, tuple[int, ...], np.dtype[Any]]],
    time_call: Callable[[], AbstractContextManager[None]],
) -> None:
    """Call a routine on arrays over existing memory.

    The first call loads code and allocates work memory, so it runs on copies and is not timed.

    Parameters
    ----------
    memories : sequence of (int, tuple of int, numpy.dtype)
        The address, shape and type of each array.
    time_call : callable
        Returns the context in which the call is timed.

    Raises
    ------
    LaunchError
        CuPy does not load, or the routine fails.
    """
    cupy = _import_cupy()
    try:
        arrays = [_wrap_memory(cupy, *memory) for memory in memories]
        routine(cupy, *(array.copy() for array in arrays))
        with time_call():
            routine(cupy, *arrays)
        cupy.get_default_memory_pool().free_all_blocks()  # the engine cannot see this pool
    except LockstepError:
        raise
    except Exception as error:  # each library behind CuPy has its own error classes
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise LaunchError(f"CuPy failed: {reason}.", detail=traceback.format_exc()) from error


def _import_cupy() -> Any:
    try:
        import cupy
        import cupy.cublas
    except Exception as error:  # a wheel for another CUDA version fails because of a missing library
        raise LaunchError(
            f"CuPy does not load: {error}.", advice="Install the CuPy package for this driver's CUDA version."
        ) from error
    return cupy


def _wrap_memory(cupy: Any, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = cupy.cuda.UnownedMemory(address, size, None, 0)  # device 0 is the engine's
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
