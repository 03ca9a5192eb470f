"""Functions of `cupy.cuda.runtime`."""

from __future__ import annotations

from typing import Any

from gpu.hosts.cupy import memory
from gpu.hosts.cupy.devices import CupyDevice, CupyEvent, CupyStream, attribute_name, get_elapsed_time
from gpu.hosts.cupy.faults import CUDARuntimeError
from gpu.hosts.driver.attributes import DEVICE_ATTRIBUTES, VALUE_BY_NUMBER, device_name
from gpu.hosts.driver.memory import free_memory, total_memory

_VERSION = 13_000
_objects: dict[int, Any] = {}


def _get_properties(device: int) -> dict[str, Any]:
    """Return the properties of the device."""
    CupyDevice(device)
    value = {name: VALUE_BY_NUMBER[number] for name, (number, _) in DEVICE_ATTRIBUTES.items()}
    extents = {
        field: tuple(value[f"MAX_{kind}_DIM_{axis}"] for axis in "XYZ")
        for field, kind in (("maxThreadsDim", "BLOCK"), ("maxGridSize", "GRID"))
    }
    return {
        "name": device_name().encode(),
        "uuid": bytes(16),
        "totalGlobalMem": total_memory(),
        "sharedMemPerBlock": value["MAX_SHARED_MEMORY_PER_BLOCK"],
        "sharedMemPerBlockOptin": value["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"],
        "sharedMemPerMultiprocessor": value["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"],
        "regsPerBlock": value["MAX_REGISTERS_PER_BLOCK"],
        "regsPerMultiprocessor": value["MAX_REGISTERS_PER_MULTIPROCESSOR"],
        "warpSize": value["WARP_SIZE"],
        "maxThreadsPerBlock": value["MAX_THREADS_PER_BLOCK"],
        "maxThreadsPerMultiProcessor": value["MAX_THREADS_PER_MULTIPROCESSOR"],
        "maxBlocksPerMultiProcessor": value["MAX_BLOCKS_PER_MULTIPROCESSOR"],
        **extents,
        "clockRate": value["CLOCK_RATE"],
        "memoryClockRate": value["MEMORY_CLOCK_RATE"],
        "memoryBusWidth": value["GLOBAL_MEMORY_BUS_WIDTH"],
        "l2CacheSize": value["L2_CACHE_SIZE"],
        "totalConstMem": value["TOTAL_CONSTANT_MEMORY"],
        "major": value["COMPUTE_CAPABILITY_MAJOR"],
        "minor": value["COMPUTE_CAPABILITY_MINOR"],
        "multiProcessorCount": value["MULTIPROCESSOR_COUNT"],
        "concurrentKernels": value["CONCURRENT_KERNELS"],
        "managedMemory": value["MANAGED_MEMORY"],
        "unifiedAddressing": value["UNIFIED_ADDRESSING"],
        "canMapHostMemory": value["CAN_MAP_HOST_MEMORY"],
        "integrated": 0,
        "ECCEnabled": 0,
        "pciBusID": 0,
        "pciDeviceID": 0,
        "pciDomainID": 0,
        "cooperativeLaunch": 1,
    }


def _get_attribute(attribute: int, device: int = 0) -> int:
    if attribute not in VALUE_BY_NUMBER:
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")
    return VALUE_BY_NUMBER[attribute]


def _set_device(device: int) -> None:
    CupyDevice(device)


def _create(value: Any) -> int:
    _objects[value.ptr] = value
    return int(value.ptr)


def _find(handle: int) -> Any:
    if handle not in _objects:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return _objects[handle]


def _copy_2d(dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int) -> None:
    for row in range(height):
        memory.copy_bytes(dst + row * dpitch, src + row * spitch, width)


def _ignore(*arguments: Any) -> None:
    """Do nothing: all work is complete."""


NAMES: dict[str, Any] = {
    "CUDARuntimeError": CUDARuntimeError,
    "is_hip": False,
    "deviceSynchronize": _ignore,
    "streamSynchronize": _ignore,
    "eventSynchronize": _ignore,
    "streamWaitEvent": _ignore,
    "getDeviceCount": lambda: 1,
    "getDevice": lambda: 0,
    "setDevice": _set_device,
    "getDeviceProperties": _get_properties,
    "deviceGetAttribute": _get_attribute,
    "deviceCanAccessPeer": lambda device, peer: 0,
    "deviceGetPCIBusId": lambda device: "0000:00:00.0",
    "memGetInfo": lambda: (free_memory(), total_memory()),
    "driverGetVersion": lambda: _VERSION,
    "runtimeGetVersion": lambda: _VERSION,
    "getLocalRuntimeVersion": lambda: _VERSION,
    "malloc": memory.malloc,
    "mallocManaged": lambda size, flags=1: memory.malloc(size),
    "mallocAsync": lambda size, stream: memory.malloc(size),
    "free": memory.free,
    "freeAsync": lambda ptr, stream: memory.free(ptr),
    "memcpy": lambda dst, src, size, kind: memory.copy_bytes(dst, src, size),
    "memcpyAsync": lambda dst, src, size, kind, stream: memory.copy_bytes(dst, src, size),
    "memcpy2D": _copy_2d,
    "memcpy2DAsync": lambda *arguments: _copy_2d(*arguments[:-1]),
    "memset": memory.set_bytes,
    "memsetAsync": lambda ptr, value, size, stream: memory.set_bytes(ptr, value, size),
    "streamCreate": lambda: _create(CupyStream()),
    "streamCreateWithFlags": lambda flags: _create(CupyStream(non_blocking=bool(flags))),
    "streamDestroy": lambda handle: _objects.pop(handle, None) and None,
    "streamQuery": lambda handle: 0,
    "eventCreate": lambda: _create(CupyEvent()),
    "eventCreateWithFlags": lambda flags: _create(CupyEvent(disable_timing=bool(flags & 2))),
    "eventDestroy": lambda handle: _objects.pop(handle, None) and None,
    "eventRecord": lambda event, stream: _find(event).record(),
    "eventQuery": lambda handle: 0,
    "eventElapsedTime": lambda start, end: get_elapsed_time(_find(start), _find(end)),
    "profilerStart": _ignore,
    "profilerStop": _ignore,
    **{
        f"memcpy{name}": value
        for value, name in enumerate(("HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice", "Default"))
    },
    "streamDefault": 0,
    "streamNonBlocking": 1,
    "eventDefault": 0,
    "eventBlockingSync": 1,
    "eventDisableTiming": 2,
    "cudaArrayDefault": 0,
    "cudaArraySurfaceLoadStore": 2,
    "memAttachGlobal": 1,
    "cudaMemAttachGlobal": 1,
    **{f"cudaDevAttr{attribute_name(name)}": number for name, (number, _) in DEVICE_ATTRIBUTES.items()},
    **{f"cudaChannelFormatKind{name}": value for value, name in enumerate(("Signed", "Unsigned", "Float", "None"))},
    **{f"cudaResourceType{name}": value for value, name in enumerate(("Array", "MipmappedArray", "Linear", "Pitch2D"))},
    **{f"cudaAddressMode{name}": value for value, name in enumerate(("Wrap", "Clamp", "Mirror", "Border"))},
    **{f"cudaFilterMode{name}": value for value, name in enumerate(("Point", "Linear"))},
    **{f"cudaReadMode{name}": value for value, name in enumerate(("ElementType", "NormalizedFloat"))},
}
"""The module's names."""
