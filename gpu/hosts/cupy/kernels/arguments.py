"""Arguments of kernels as bytes, as CuPy passes them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import DeviceArray
from gpu.hosts.cupy.faults import build_driver_error
from gpu.hosts.driver.faults import INVALID_VALUE
from gpu.hosts.driver.launches import compute_parameter_layout
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.types import Pointer, Scalar, Type


def pack_arguments(kernel: SimulatedKernel, arguments: Sequence[Any]) -> bytes:
    """Return the packed arguments of a launch.

    Parameters
    ----------
    arguments : sequence
        Device arrays, pointers, and numbers: a Python int is a 64-bit integer, a float a double; a NumPy scalar has
        its own type, and an array of NumPy with one element is passed by value.

    Raises
    ------
    TypeError
        If a kernel does not take an argument of this type.
    CUDADriverError
        If arguments are missing.
    """
    offsets, size = compute_parameter_layout(kernel)
    parameters = kernel.parameters
    if len(arguments) < len(parameters):
        raise build_driver_error(
            INVALID_VALUE, f"{kernel.name} needs {_describe(kernel)}, but {len(arguments)} arguments are passed"
        )
    if len(arguments) > len(parameters):
        _warn(
            f"{kernel.name} takes {_describe(kernel)}, but {len(arguments)} arguments are passed; the rest is ignored"
        )
    packed = bytearray(size)
    for offset, (name, type_), argument in zip(offsets, parameters, arguments, strict=False):
        raw = to_bytes(argument)
        _check_type(f"{kernel.name}: argument {name!r}", type_, argument, raw)
        packed[offset : offset + type_.size] = raw[: type_.size].ljust(type_.size, b"\0")
    return bytes(packed)


def to_bytes(argument: Any) -> bytes:
    """Return an argument's bytes; raise TypeError for other types than `pack_arguments` takes."""
    if isinstance(argument, DeviceArray):
        return argument.ptr.to_bytes(8, "little")
    if isinstance(argument, bool):
        return bytes([argument])
    if isinstance(argument, np.generic):
        return argument.tobytes()
    if isinstance(argument, int):
        return argument.to_bytes(8, "little", signed=argument < 1 << 63)
    if isinstance(argument, float):
        return np.float64(argument).tobytes()
    if isinstance(argument, complex):
        return np.complex128(argument).tobytes()
    if isinstance(argument, np.ndarray):
        if argument.size != 1:
            raise TypeError(
                f"A kernel takes an array of numpy by value, so with one element, but it has {argument.size}; convert "
                "it with cupy.asarray"
            )
        return argument.tobytes()
    if isinstance(pointer := getattr(argument, "ptr", None), int):
        return pointer.to_bytes(8, "little")
    raise TypeError(f"Unsupported type {type(argument)}")


def _check_type(place: str, type_: Type, argument: Any, raw: bytes) -> None:
    """Warn about an argument whose bytes mean something else to the kernel."""
    is_address = isinstance(argument, DeviceArray) or (
        hasattr(argument, "ptr") and not isinstance(argument, np.generic)
    )
    if isinstance(type_, Pointer) and not is_address and not isinstance(argument, int | np.integer):
        _warn(f"{place} is a pointer, but the value is {type(argument).__name__}")
    if len(raw) < type_.size:
        _warn(f"{place} has {type_.size} bytes ({type_}), but the value has {len(raw)} ({_name_type(argument)})")
    elif isinstance(type_, Scalar):
        kind = "u" if is_address else np.asarray(argument).dtype.kind
        is_float = type_.dtype.kind == "f"
        if is_float != (kind == "f") or (is_float and len(raw) != type_.size):
            _warn(
                f"{place} is {type_}, but the value is {_name_type(argument)}, whose bytes mean another number; pass "
                f"numpy.{type_.dtype.name}(...)"
            )


def _name_type(argument: Any) -> str:
    if isinstance(argument, float):
        return "a double (a Python float)" if not isinstance(argument, np.generic) else str(argument.dtype)
    return str(argument.dtype) if isinstance(argument, np.generic | np.ndarray) else type(argument).__name__


def _describe(kernel: SimulatedKernel) -> str:
    declaration = ", ".join(f"{type_} {name}" for name, type_ in kernel.parameters)
    return f"{len(kernel.parameters)} arguments ({declaration or 'nothing'})"


def _warn(message: str) -> None:
    depth, frame = 2, sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and "/gpu/hosts/" in frame.f_code.co_filename.replace("\\", "/"):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(f"{message}.", UserWarning, stacklevel=depth)
