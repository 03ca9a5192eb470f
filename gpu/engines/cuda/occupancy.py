"""Registers, memory and resident blocks of a compiled kernel, as reported by the driver."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from gpu.base.devices.probe import load_driver
from gpu.base.errors import LaunchError

_SHARED, _LOCAL, _REGISTERS = 1, 3, 4  # CU_FUNC_ATTRIBUTE_..._SIZE_BYTES, NUM_REGS
_MAX_DYNAMIC_SHARED = 8


@dataclass(frozen=True)
class Residency:
    """Resources that a launch uses on a multiprocessor.

    Parameters
    ----------
    registers : int
        Registers per thread.
    shared_bytes, local_bytes : int
        Bytes of static shared memory per block; bytes of local memory per thread, for spills and arrays.
    blocks : int
        Resident blocks per multiprocessor, from `cuOccupancyMaxActiveBlocksPerMultiprocessor`.
    """

    registers: int
    shared_bytes: int
    local_bytes: int
    blocks: int


def query_residency(image: bytes, kernel: str, threads: int, dynamic_shared_bytes: int) -> Residency:
    """Query a launch's resource usage from the driver, in the current context.

    Parameters
    ----------
    image : bytes
        The cubin.
    kernel : str
        The function's name in the cubin.
    threads : int
        Threads per block.

    Raises
    ------
    LaunchError
        A driver call failed.
    """
    driver = load_driver()
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _check(driver.cuModuleLoadData(ctypes.byref(module), image), kernel)
    try:
        _check(driver.cuModuleGetFunction(ctypes.byref(function), module, kernel.encode()), kernel)
        attributes = []
        for attribute in (_REGISTERS, _SHARED, _LOCAL):
            value = ctypes.c_int()
            _check(driver.cuFuncGetAttribute(ctypes.byref(value), attribute, function), kernel)
            attributes.append(value.value)
        blocks = ctypes.c_int()
        _check(driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, dynamic_shared_bytes), kernel)
        size = ctypes.c_size_t(dynamic_shared_bytes)
        _check(
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(blocks), function, threads, size), kernel
        )
    finally:
        driver.cuModuleUnload(module)
    return Residency(attributes[0], attributes[1], attributes[2], blocks.value)


def _check(status: int, kernel: str) -> None:
    if status:
        raise LaunchError(f"The driver does not report the resources of {kernel}: error {status}.")
