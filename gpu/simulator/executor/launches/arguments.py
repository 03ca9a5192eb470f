"""Arguments of a launch: the host's arrays, scalars and textures become values of the kernel's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import LaunchError
from gpu.simulator import ir
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer
from gpu.simulator.executor.textures import SimulatedTensorMap, Texture
from gpu.simulator.types import Pointer, Scalar, Struct, leaves

Array = npt.NDArray[Any]
Argument = Array | Texture | SimulatedTensorMap | PointerValue | np.generic | None


def bind_arguments(kernel: ir.Function, arguments: Sequence[Argument]) -> list[Any]:
    """Return the values of a kernel's parameters.

    Parameters
    ----------
    arguments : sequence
        As of `SimulatedKernel.launch`.

    Raises
    ------
    LaunchError
        The arguments do not match the parameters.
    """
    if len(arguments) != len(kernel.parameters):
        raise LaunchError(f"{kernel.name} takes {len(kernel.parameters)} arguments, not {len(arguments)}.")
    values: list[Any] = []
    for (name, type), argument in zip(kernel.parameters, arguments, strict=True):
        if isinstance(argument, SimulatedTensorMap):
            argument = argument.encode_for_lockstep(name)
        if isinstance(type, Pointer) and isinstance(argument, np.ndarray):
            values.append(PointerValue(FlatMemory(name, "global", argument, element_bytes=type.element.size)))
        elif isinstance(type, Pointer) and isinstance(argument, Texture):
            values.append(PointerValue(argument.to_memory(name)))
        elif isinstance(type, Pointer) and isinstance(argument, PointerValue):
            values.append(argument)
        elif isinstance(type, Pointer) and argument is None:
            values.append(PointerValue(None))
        elif isinstance(type, Scalar) and isinstance(argument, np.generic) and argument.dtype == type.dtype:
            values.append(argument)
        elif isinstance(type, Struct) and isinstance(argument, np.void) and argument.nbytes == type.size:
            data = np.frombuffer(argument.tobytes(), np.uint8)
            values.append(tuple(_read_leaf(data, offset, leaf) for offset, leaf in leaves(type)))
        else:
            given = "an array" if isinstance(argument, np.ndarray) else getattr(argument, "dtype", argument)
            raise LaunchError(f"{kernel.name}: the argument {name} is {type}, not {given}.")
    return values


def _read_leaf(data: Array, offset: int, leaf: Scalar | Pointer) -> Any:
    if isinstance(leaf, Pointer):
        return to_pointer(data[offset : offset + leaf.size].view(np.int64)[0])
    return data[offset : offset + leaf.size].view(leaf.dtype)[0]
