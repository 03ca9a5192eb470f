"""Enumerations of the CUDA driver API with PyCUDA's names and CUDA's numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from gpu.hosts.driver.attributes import DEVICE_ATTRIBUTES
from gpu.hosts.pycuda.names import MODULE, NAMES

_ENUMERATIONS: dict[str, dict[str, int]] = {
    "ipc_mem_flags": {"LAZY_ENABLE_PEER_ACCESS": 1},
    "ctx_flags": {
        "SCHED_AUTO": 0,
        "SCHED_SPIN": 1,
        "SCHED_YIELD": 2,
        "BLOCKING_SYNC": 4,
        "SCHED_BLOCKING_SYNC": 4,
        "SCHED_MASK": 7,
        "MAP_HOST": 8,
        "LMEM_RESIZE_TO_MAX": 16,
        "FLAGS_MASK": 255,
    },
    "event_flags": {"DEFAULT": 0, "BLOCKING_SYNC": 1, "DISABLE_TIMING": 2, "INTERPROCESS": 4},
    "array_format": {
        "UNSIGNED_INT8": 1,
        "UNSIGNED_INT16": 2,
        "UNSIGNED_INT32": 3,
        "SIGNED_INT8": 8,
        "SIGNED_INT16": 9,
        "SIGNED_INT32": 10,
        "HALF": 16,
        "FLOAT": 32,
    },
    "address_mode": {"WRAP": 0, "CLAMP": 1, "MIRROR": 2, "BORDER": 3},
    "filter_mode": {"POINT": 0, "LINEAR": 1},
    "device_attribute": {name: number for name, (number, _) in DEVICE_ATTRIBUTES.items()},
    "pointer_attribute": {"CONTEXT": 1, "MEMORY_TYPE": 2, "DEVICE_POINTER": 3, "HOST_POINTER": 4},
    "profiler_output_mode": {"KEY_VALUE_PAIR": 0, "CSV": 1},
    "func_cache": {"PREFER_NONE": 0, "PREFER_SHARED": 1, "PREFER_L1": 2, "PREFER_EQUAL": 3},
    "shared_config": {"DEFAULT_BANK_SIZE": 0, "FOUR_BYTE_BANK_SIZE": 1, "EIGHT_BYTE_BANK_SIZE": 2},
    "function_attribute": {
        "MAX_THREADS_PER_BLOCK": 0,
        "SHARED_SIZE_BYTES": 1,
        "CONST_SIZE_BYTES": 2,
        "LOCAL_SIZE_BYTES": 3,
        "NUM_REGS": 4,
        "PTX_VERSION": 5,
        "BINARY_VERSION": 6,
        "CACHE_MODE_CA": 7,
        "MAX_DYNAMIC_SHARED_SIZE_BYTES": 8,
        "PREFERRED_SHARED_MEMORY_CARVEOUT": 9,
        "MAX": 16,
    },
    "memory_type": {"HOST": 1, "DEVICE": 2, "ARRAY": 3, "UNIFIED": 4},
    "compute_mode": {"DEFAULT": 0, "PROHIBITED": 2, "EXCLUSIVE_PROCESS": 3},
    "jit_option": {
        "MAX_REGISTERS": 0,
        "THREADS_PER_BLOCK": 1,
        "WALL_TIME": 2,
        "INFO_LOG_BUFFER": 3,
        "INFO_LOG_BUFFER_SIZE_BYTES": 4,
        "ERROR_LOG_BUFFER": 5,
        "ERROR_LOG_BUFFER_SIZE_BYTES": 6,
        "OPTIMIZATION_LEVEL": 7,
        "TARGET_FROM_CUCONTEXT": 8,
        "TARGET": 9,
        "FALLBACK_STRATEGY": 10,
    },
    "jit_target": {
        f"COMPUTE_{number}": number for number in (30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 90)
    },
    "jit_fallback": {"PREFER_PTX": 0, "PREFER_BINARY": 1},
    "jit_input_type": {"CUBIN": 0, "PTX": 1, "FATBINARY": 2, "OBJECT": 3, "LIBRARY": 4},
    "limit": {
        "STACK_SIZE": 0,
        "PRINTF_FIFO_SIZE": 1,
        "MALLOC_HEAP_SIZE": 2,
        "DEV_RUNTIME_SYNC_DEPTH": 3,
        "DEV_RUNTIME_PENDING_LAUNCH_COUNT": 4,
    },
    "mem_attach_flags": {"GLOBAL": 1, "HOST": 2, "SINGLE": 4},
    "graphics_register_flags": {
        "NONE": 0,
        "READ_ONLY": 1,
        "WRITE_DISCARD": 2,
        "SURFACE_LDST": 4,
        "TEXTURE_GATHER": 8,
    },
    "array_cubemap_face": {
        "POSITIVE_X": 0,
        "NEGATIVE_X": 1,
        "POSITIVE_Y": 2,
        "NEGATIVE_Y": 3,
        "POSITIVE_Z": 4,
        "NEGATIVE_Z": 5,
    },
}
_FLAGS: dict[str, dict[str, int]] = {
    "array3d_flags": {
        "ARRAY3D_2DARRAY": 1,
        "ARRAY3D_LAYERED": 1,
        "2DARRAY": 1,
        "SURFACE_LDST": 2,
        "CUBEMAP": 4,
        "TEXTURE_GATHER": 8,
    },
    "host_alloc_flags": {"PORTABLE": 1, "DEVICEMAP": 2, "WRITECOMBINED": 4},
    "mem_host_register_flags": {"PORTABLE": 1, "DEVICEMAP": 2},
}


class _Enumeration(IntEnum):
    """An enumeration whose members are printed as PyCUDA prints its own: by name."""

    def __str__(self) -> str:
        return self.name


_create: Any = _Enumeration  # mypy takes a call of a subclass for one of a member
for _name, _values in _ENUMERATIONS.items():
    NAMES[_name] = _create(_name, _values, module=MODULE)
for _name, _values in _FLAGS.items():
    NAMES[_name] = type(_name, (), {"__module__": MODULE, **_values})
NAMES |= {"TRSA_OVERRIDE_FORMAT": 1, "TRSF_READ_AS_INTEGER": 1, "TRSF_NORMALIZED_COORDINATES": 2, "TR_DEFAULT": -1}
