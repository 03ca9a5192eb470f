"""What the driver's module says of cuRAND, whose generators on the device are a header of kernels."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from gpu.driver.faults import NOT_SUPPORTED, wrong
from gpu.pycuda.names import MODULE, NAMES, exported

NAMES["direction_vector_set"] = IntEnum(
    "direction_vector_set",
    {"VECTOR_32": 101, "SCRAMBLED_VECTOR_32": 102, "VECTOR_64": 103, "SCRAMBLED_VECTOR_64": 104},
    module=MODULE,
)


@exported("get_curand_version")
def get_curand_version() -> tuple[int, int, int]:
    """Return the version of cuRAND that the headers stand for."""
    return 10, 4, 0


def _refuse(*given: Any, **named: Any) -> None:
    raise wrong("curandGetDirectionVectors", NOT_SUPPORTED, "the simulator has no Sobol sequences")


NAMES |= dict.fromkeys(("_get_direction_vectors", "_get_scramble_constants32", "_get_scramble_constants64"), _refuse)
