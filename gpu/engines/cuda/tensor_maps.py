"""Tensor maps, and launches with them or with attributes, by the driver's library through ctypes.

PyCUDA has no function for tensor maps. It packs all arguments into one buffer, at whose start the driver does not place
a parameter of this alignment; it has to be given each argument's address. Nor has it launches with attributes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpu.base.devices.probe import load_driver
from gpu.base.errors import LaunchError

_BYTES, _ALIGNMENT = 128, 64
_MAX_DYNAMIC_SHARED, _CLUSTER_WIDTH, _LARGE_CLUSTERS = 8, 11, 14
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, _REQUIRED_CLUSTER_WIDTH, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED."""
_PORTABLE_CLUSTER = 8
"""The most blocks of a cluster that every GPU with clusters supports."""
_DATA_TYPES = {"uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "float16": 6, "float32": 7, "float64": 8}
_LINE_BYTES, _SWIZZLE_128, _PROMOTION_128 = 128, 3, 2
_PROGRAMMATIC_STREAM_SERIALIZATION = 6


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute with an integer value."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_int * 16))


class _Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


def has_launch_attributes() -> bool:
    """Return whether the driver's library is loadable and launches with attributes."""
    try:
        return hasattr(load_driver(), "cuLaunchKernelEx")
    except OSError:
        return False


def encode(address: int, shape: tuple[int, ...], dtype: np.dtype[Any], box_rows: int) -> bytes:
    """Return the tensor map of a row-major matrix, with zeros outside of it.

    Parameters
    ----------
    address : int
        Device address of the matrix.
    shape : tuple of int
        Rows and columns of the matrix.
    dtype : numpy.dtype
        Type of an element.
    box_rows : int
        Rows of the box, with 128 bytes each.

    Raises
    ------
    LaunchError
        The driver has no tensor maps, or rejects this one.
    """
    driver = load_driver()
    if dtype.name not in _DATA_TYPES or not hasattr(driver, "cuTensorMapEncodeTiled"):
        raise LaunchError(f"The driver has no tensor maps of {dtype}.", advice="Update the NVIDIA driver.")
    memory = (ctypes.c_uint8 * (_BYTES + _ALIGNMENT))()
    start = -ctypes.addressof(memory) % _ALIGNMENT
    rows, columns = shape
    extents, strides = (ctypes.c_uint64 * 2)(columns, rows), (ctypes.c_uint64 * 1)(columns * dtype.itemsize)
    box, steps = (ctypes.c_uint32 * 2)(_LINE_BYTES // dtype.itemsize, box_rows), (ctypes.c_uint32 * 2)(1, 1)
    modes = 0, _SWIZZLE_128, _PROMOTION_128, 0
    target, matrix = ctypes.c_void_p(ctypes.addressof(memory) + start), ctypes.c_void_p(address)
    status = driver.cuTensorMapEncodeTiled(
        target, _DATA_TYPES[dtype.name], 2, matrix, extents, strides, box, steps, *modes
    )
    if status:
        raise LaunchError(f"The driver rejects a tensor map of a {rows} x {columns} matrix of {dtype}: error {status}.")
    return bytes(memory[start : start + _BYTES])


def load_function(image: bytes, name: str) -> ctypes.c_void_p:
    """Load a cubin into the current context, where it stays, and return the handle of its function.

    Raises
    ------
    LaunchError
        The driver rejects the cubin, or it has no such function.
    """
    driver, module, function = load_driver(), ctypes.c_void_p(), ctypes.c_void_p()
    status = driver.cuModuleLoadData(ctypes.byref(module), image)
    status = status or driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    if status:
        raise LaunchError(f"The driver cannot load {name}: error {status}.")
    width = ctypes.c_int()
    driver.cuFuncGetAttribute(ctypes.byref(width), _CLUSTER_WIDTH, function)
    if width.value > _PORTABLE_CLUSTER:
        driver.cuFuncSetAttribute(function, _LARGE_CLUSTERS, 1)
    return function


def prepare_launch(
    function: ctypes.c_void_p,
    grid: Sequence[int],
    block: Sequence[int],
    values: Sequence[bytes],
    shared_bytes: int,
    stream: int,
    *,
    overlapped: bool = False,
) -> Callable[[], int]:
    """Return a function that launches a kernel and returns the driver's status, with little work of its own.

    Parameters
    ----------
    function : c_void_p
        The kernel's handle.
    grid, block : sequence of int
        Blocks of the grid, and threads of a block, in x, y and z.
    values : sequence of bytes
        Each argument's bytes.
    shared_bytes : int
        Dynamic shared memory of a block.
    stream : int
        The handle of the stream; 0 for the default stream.
    overlapped : bool
        Whether it may begin before the previous launch of the stream has ended (programmatic dependent launch).

    Raises
    ------
    LaunchError
        A block cannot have so much shared memory.
    """
    driver = load_driver()
    # A timed launch must not wait for Python's lock, which other threads take while a call of CDLL runs.
    launches = load_driver(keeps_lock=True)
    memories = [(ctypes.c_uint8 * len(value)).from_buffer_copy(value) for value in values]
    addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, memories))
    if driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared_bytes):
        raise LaunchError(f"The driver rejects {shared_bytes} bytes of shared memory for a block.")
    if overlapped:
        attribute = _Attribute(_PROGRAMMATIC_STREAM_SERIALIZATION, 0, (ctypes.c_int * 16)(1))
        extents = (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block)
        configuration = _Configuration(*extents, shared_bytes, stream, ctypes.pointer(attribute), 1)
        launch = partial(launches.cuLaunchKernelEx, ctypes.byref(configuration), function, addresses, None)
    else:
        sizes = map(ctypes.c_uint, (*grid, *block, shared_bytes))
        launch = partial(launches.cuLaunchKernel, function, *sizes, ctypes.c_void_p(stream), addresses, None)

    def run() -> int:
        status: int = launch()
        del memories[:]  # they are needed until here
        return status

    return run
