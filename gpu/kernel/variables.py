"""What `__constant__` and `__device__` variables hold before a launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu.errors import InputError
from gpu.kernel.arguments import variable_of
from gpu.simulator.module import SimulatedModule


def set_variables(module: SimulatedModule, values: Mapping[str, Any]) -> None:
    """Fill variables of a kernel file, as `cudaMemcpyToSymbol` does.

    Parameters
    ----------
    module : SimulatedModule
    values : mapping
        For each variable's name what `bind` takes for an argument; of an array its first elements will do.

    Raises
    ------
    InputError
        There is no such variable, or the values do not fit it.
    """
    known = module.variables
    for name, given in values.items():
        if name not in known:
            has = ", ".join(known) or "none"
            raise InputError(f"There is no __constant__ or __device__ variable {name!r}; the file has {has}.")
        module.set_constant(name, variable_of(name, given, known[name]))
