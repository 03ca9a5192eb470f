"""Data of cuRAND in the driver's module; its device generators are in a header for kernels."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.faults import NOT_SUPPORTED, build_logic_error
from gpu.hosts.pycuda.memory.device_memory import host_bytes
from gpu.hosts.pycuda.names import MODULE, NAMES, export

Array = npt.NDArray[Any]

NAMES["direction_vector_set"] = IntEnum(
    "direction_vector_set",
    {"VECTOR_32": 101, "SCRAMBLED_VECTOR_32": 102, "VECTOR_64": 103, "SCRAMBLED_VECTOR_64": 104},
    module=MODULE,
)
_SETS_OF_64_BITS = (103, 104)
_DIMENSIONS = 20_000


@export("get_curand_version")
def get_curand_version() -> tuple[int, int, int]:
    """Return the cuRAND version of the headers."""
    return 10, 40, 0


@cache
def direction_vectors(bits: int) -> Array:
    """Compute the direction vectors of Sobol sequences from Joe and Kuo's numbers, as cuRAND does.

    Source: S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci.
    Comput. 30 (2008); SciPy contains their table.

    Parameters
    ----------
    bits : int
        32 or 64.

    Returns
    -------
    array of uint32 or uint64, (20000, bits)

    Raises
    ------
    DriverLogicError
        If SciPy does not contain the table.
    """
    table = resources.files("scipy.stats") / "_sobol_direction_numbers.npz"
    if not table.is_file():
        raise build_logic_error(
            "curandGetDirectionVectors", NOT_SUPPORTED, "this SciPy has no table of direction numbers"
        )
    with resources.as_file(table) as file, np.load(file) as numbers:
        polynomials = numbers["poly"][:_DIMENSIONS].astype(np.uint64)
        initial = numbers["vinit"][:_DIMENSIONS].astype(np.uint64)
    vectors = np.zeros((_DIMENSIONS, bits), np.uint64)
    degrees = np.array([int(polynomial).bit_length() - 1 for polynomial in polynomials])
    for degree in range(1, degrees.max() + 1):
        selected = np.flatnonzero(degrees == degree)
        vectors[selected, :degree] = initial[selected, :degree]
        for index in range(degree, bits):
            new = vectors[selected, index - degree].copy()
            for back in range(1, degree + 1):
                coefficients = polynomials[selected] >> np.uint64(degree - back) & np.uint64(1)
                new ^= coefficients * (vectors[selected, index - back] << np.uint64(back))
            vectors[selected, index] = new
    vectors[0] = 1  # the first dimension has no polynomial
    shifts = np.arange(bits - 1, -1, -1, dtype=np.uint64)
    return (vectors << shifts).astype(f"u{bits // 8}")


def _copy_vectors(vector_set: int, target: Any, count: int) -> None:
    """Copy the vectors of `count` sequences; scrambled sequences use the same ones with a shift."""
    vectors = direction_vectors(64 if int(vector_set) in _SETS_OF_64_BITS else 32)
    data = host_bytes(target, writable=True).view(vectors.dtype)
    count = min(count, data.size)
    data[: count * vectors.shape[1]] = vectors[np.arange(count) % _DIMENSIONS].reshape(-1)


def _copy_scrambles(bits: int, target: Any, count: int) -> None:
    """Copy the scrambling constants of `count` sequences, which differ from cuRAND's."""
    numbers = np.random.default_rng(bits).integers(0, 1 << bits, _DIMENSIONS, f"u{bits // 8}")
    written = host_bytes(target, writable=True).view(numbers.dtype)[:count]
    written[:] = numbers[np.arange(written.size) % _DIMENSIONS]


NAMES["_get_direction_vectors"] = _copy_vectors
NAMES["_get_scramble_constants32"] = lambda target, count: _copy_scrambles(32, target, count)
NAMES["_get_scramble_constants64"] = lambda target, count: _copy_scrambles(64, target, count)
