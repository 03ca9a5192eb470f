"""CuPy beside PyCUDA, for the rungs that are a library's: the same context and stream, arrays over the same memory."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gpu.engines.base import Routine
from gpu.errors import LaunchError, LockstepError


def why_none() -> str:
    """Return why no library can be called on a GPU of this machine, as a sentence; "" where one can."""
    if importlib.util.find_spec("cupy"):
        return ""
    return "CuPy is not installed here; `pip install cupy-cuda13x` brings it, or cupy-cuda12x for CUDA 12."


def call(
    routine: Routine,
    memories: Sequence[tuple[int, tuple[int, ...], np.dtype[Any]]],
    timed: Callable[[], AbstractContextManager[None]],
) -> None:
    """Call a routine on arrays that lie in memory of others.

    What it needs besides, its code and memory to work in, it takes at the first call, which therefore works on copies
    and is not timed.

    Parameters
    ----------
    routine : Routine
    memories : sequence of (int, tuple of int, numpy.dtype)
        The address, shape and type of each array.
    timed : callable
        Returns the context in which the call is timed.

    Raises
    ------
    LaunchError
        Where CuPy does not load, or the routine fails.
    """
    cupy = _cupy()
    try:
        arrays = [_array(cupy, *memory) for memory in memories]
        routine(cupy, *(array.copy() for array in arrays))
        with timed():
            routine(cupy, *arrays)
        cupy.get_default_memory_pool().free_all_blocks()  # which the engine knows nothing of
    except LockstepError:
        raise
    except Exception as error:  # each of the libraries behind CuPy has errors of its own
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise LaunchError(f"CuPy failed: {reason}.", detail=traceback.format_exc()) from error


def _cupy() -> Any:
    try:
        import cupy
        import cupy.cublas
    except Exception as error:  # its wheel may be for another CUDA: then a library is missing
        raise LaunchError(
            f"CuPy does not load here: {error}.", advice="Its package has to be the one for this driver's CUDA."
        ) from error
    return cupy


def _array(cupy: Any, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = cupy.cuda.UnownedMemory(address, size, None, 0)  # of device 0, which is the engine's
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
