"""What the product's elements are: float32 or halves, as kernels take them."""

from __future__ import annotations

import numpy as np

from gpu.declaration.pattern import Array, Choice, Inputs, Params
from gpu.declaration.roles import Role

FLOATS, HALVES = "float32", "float16"

PARAMETER = Choice(
    name="dtype",
    label="Type",
    help="What kernels read and write: float32, or float16, halves, of half the bytes, whose products are added up in "
    "float32 and rounded once. Tiled, Tiles by warpgroups and cuBLAS take both.",
    options=(FLOATS, HALVES),
    default=FLOATS,
    titles=(FLOATS, HALVES),
    role=Role.TYPE,
)

LARGEST_HALF = float(np.finfo(np.float16).max)


def are_halves(params: Params) -> bool:
    """Whether kernels take halves."""
    return bool(params["dtype"] == HALVES)


def dtype_of(params: Params) -> type[np.float16] | type[np.float32]:
    """Return the type of an element."""
    return np.float16 if are_halves(params) else np.float32


def taken(values: Array, params: Params) -> Array:
    """Return a matrix as kernels take it, one row after the other; `accept_matrix` has seen that its elements fit."""
    return np.ascontiguousarray(values, dtype_of(params))


def of_floats_alone(inputs: Inputs, params: Params) -> str:
    """Say why a rung does not take halves."""
    if are_halves(params):
        return "This rung reads and writes float32; halves are taken by Tiled, Tiles by warpgroups and cuBLAS."
    return ""
