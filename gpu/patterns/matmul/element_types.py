"""Element types of the matrix product: float32 or float16."""

from __future__ import annotations

import numpy as np

from gpu.declaration.pattern import Array, Choice, Inputs, Params
from gpu.declaration.roles import Role

FLOATS, HALVES = "float32", "float16"

PARAMETER = Choice(
    name="dtype",
    label="Type",
    help="Type that kernels read and write: float32, or float16 (half precision), with products summed in float32 "
    "and rounded once. Tiled, Tiles by warpgroups and cuBLAS support both.",
    options=(FLOATS, HALVES),
    default=FLOATS,
    titles=(FLOATS, HALVES),
    role=Role.TYPE,
)

MAX_FLOAT16 = float(np.finfo(np.float16).max)


def is_float16(params: Params) -> bool:
    """Return whether the elements are float16."""
    return bool(params["dtype"] == HALVES)


def dtype_of(params: Params) -> type[np.float16] | type[np.float32]:
    """Return the element type."""
    return np.float16 if is_float16(params) else np.float32


def to_element_type(values: Array, params: Params) -> Array:
    """Return a matrix in the element type, with contiguous rows; `accept_matrix` has checked that it fits."""
    return np.ascontiguousarray(values, dtype_of(params))


def float16_obstacle(inputs: Inputs, params: Params) -> str:
    """Return why a variant does not support float16; "" for float32."""
    if is_float16(params):
        return "This variant supports only float32; choose Tiled, Tiles by warpgroups or cuBLAS for float16."
    return ""
