"""Tensor maps, encoded by the driver's library through ctypes, as PyCUDA has no function for them."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError

DTYPE = np.dtype("V128")
"""The type of the kernel's parameter."""
_ALIGNMENT = 64
_DATA_TYPES = {"uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "float16": 6, "float32": 7, "float64": 8}
_LINE_BYTES, _SWIZZLE_128, _PROMOTION_128 = 128, 3, 2


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
    driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    if dtype.name not in _DATA_TYPES or not hasattr(driver, "cuTensorMapEncodeTiled"):
        raise LaunchError(f"The driver has no tensor maps of {dtype}.", advice="Update the NVIDIA driver.")
    memory = (ctypes.c_uint8 * (DTYPE.itemsize + _ALIGNMENT))()
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
    return bytes(memory[start : start + DTYPE.itemsize])
