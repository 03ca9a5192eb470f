"""What the driver says of a compiled kernel: its registers, its memory, and how many blocks a multiprocessor holds."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass

from gpu.errors import LaunchError

_SHARED, _LOCAL, _REGISTERS = 1, 3, 4  # CU_FUNC_ATTRIBUTE_..._SIZE_BYTES, NUM_REGS
_MOST_DYNAMIC = 8


@dataclass(frozen=True)
class Residency:
    """What a launch takes of a multiprocessor.

    Parameters
    ----------
    registers : int
        Of a thread.
    shared_bytes, local_bytes : int
        Static shared memory of a block; memory for spills and arrays of a thread.
    blocks : int
        How many blocks a multiprocessor holds at once, as `cuOccupancyMaxActiveBlocksPerMultiprocessor` says.
    """

    registers: int
    shared_bytes: int
    local_bytes: int
    blocks: int


def residency(image: bytes, kernel: str, threads: int, dynamic_shared_bytes: int) -> Residency:
    """Ask the driver about a launch, in the context that is current.

    Parameters
    ----------
    image : bytes
        The cubin.
    kernel : str
        The function's name in it.
    threads : int
        Of a block.
    dynamic_shared_bytes : int

    Raises
    ------
    LaunchError
        The driver does not answer.
    """
    driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _check(driver.cuModuleLoadData(ctypes.byref(module), image), kernel)
    try:
        _check(driver.cuModuleGetFunction(ctypes.byref(function), module, kernel.encode()), kernel)
        found = []
        for attribute in (_REGISTERS, _SHARED, _LOCAL):
            value = ctypes.c_int()
            _check(driver.cuFuncGetAttribute(ctypes.byref(value), attribute, function), kernel)
            found.append(value.value)
        blocks = ctypes.c_int()
        _check(driver.cuFuncSetAttribute(function, _MOST_DYNAMIC, dynamic_shared_bytes), kernel)
        size = ctypes.c_size_t(dynamic_shared_bytes)
        _check(
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(blocks), function, threads, size), kernel
        )
    finally:
        driver.cuModuleUnload(module)
    return Residency(found[0], found[1], found[2], blocks.value)


def _check(status: int, kernel: str) -> None:
    if status:
        raise LaunchError(f"The driver says nothing of {kernel}: error {status}.")
