"""Initial values of `__constant__` and `__device__` variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu.base.errors import InputError
from gpu.kernel.arguments import to_variable_bytes
from gpu.simulator.simulated_module import SimulatedModule


def set_variables(module: SimulatedModule, values: Mapping[str, Any]) -> None:
    """Set variables of a kernel file, as `cudaMemcpyToSymbol` does.

    Parameters
    ----------
    values : mapping
        Values by variable name, in the forms that `bind` accepts; for an array, the first elements suffice.

    Raises
    ------
    InputError
        The file has no such variable, or the values do not fit it.
    """
    types = module.variables
    for name, value in values.items():
        if name not in types:
            names = ", ".join(types) or "none"
            raise InputError(f"The file has no __constant__ or __device__ variable {name!r}; it has {names}.")
        module.set_constant(name, to_variable_bytes(name, value, types[name]))
