"""Functions of `cupy.cuda.runtime`."""

from __future__ import annotations

import ctypes
from typing import Any

from gpu.hosts.cupy import memory
from gpu.hosts.cupy.devices import CupyDevice, CupyEvent, CupyStream, attribute_name, get_elapsed_time
from gpu.hosts.cupy.faults import CUDARuntimeError
from gpu.hosts.driver.attributes import DEVICE_ATTRIBUTES, VALUE_BY_NUMBER, device_name
from gpu.hosts.driver.memory import free_memory, total_memory

_VERSION = 13_000
_objects: dict[int, Any] = {}


def _get_properties(device: int) -> dict[str, Any]:
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


class _PointerAttributes:
    """The attributes of an address."""

    def __init__(self, address: int) -> None:
        is_device = memory.is_device_address(address)
        self.device, self.type = 0, 2 if is_device else 0
        self.devicePointer, self.hostPointer = (address, 0) if is_device else (0, address)


_limits = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048, 5: 64}
"""The limits of the device by CUDA's numbers, such as 2 for the heap's size."""


def _get_limit(limit: int) -> int:
    if limit not in _limits:
        raise CUDARuntimeError("cudaErrorUnsupportedLimit: limit is not supported on this architecture")
    return _limits[limit]


def _set_limit(limit: int, value: int) -> None:
    _get_limit(limit)
    _limits[limit] = value


def _begin_capture(handle: int, mode: int = 2) -> None:
    _find(handle).begin_capture(mode)


def _end_capture(handle: int) -> int:
    return _keep(_find(handle).end_capture())


def _keep(value: Any) -> int:
    handle = id(value)
    _objects[handle] = value
    return handle


_host_buffers: dict[int, Any] = {}


def _allocate_host(size: int, flags: int = 0) -> int:
    """Allocate memory of the host; return its address."""
    buffer = ctypes.create_string_buffer(max(size, 1))
    address = ctypes.addressof(buffer)
    _host_buffers[address] = buffer
    return address


def _free_host(address: int) -> None:
    if address and _host_buffers.pop(address, None) is None:
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")


def _ignore(*arguments: Any) -> None:
    """Do nothing: all work is complete."""


_CONSTANTS = """
streamDefault=0 streamNonBlocking=1 streamLegacy=1 streamPerThread=2
streamCaptureModeGlobal=0 streamCaptureModeThreadLocal=1 streamCaptureModeRelaxed=2
streamCaptureStatusNone=0 streamCaptureStatusActive=1 streamCaptureStatusInvalidated=2
eventDefault=0 eventBlockingSync=1 eventDisableTiming=2 eventInterprocess=4
hostAllocDefault=0 hostAllocPortable=1 hostAllocMapped=2 hostAllocWriteCombined=4
memAttachGlobal=1 memAttachHost=2 memAttachSingle=4
cudaMemAttachGlobal=1 cudaMemAttachHost=2 cudaMemAttachSingle=4
memoryTypeUnregistered=0 memoryTypeHost=1 memoryTypeDevice=2 memoryTypeManaged=3
cudaMemoryTypeHost=1 cudaMemoryTypeDevice=2 cudaCpuDeviceId=-1 cudaInvalidDeviceId=-2
cudaMemAdviseSetReadMostly=1 cudaMemAdviseUnsetReadMostly=2 cudaMemAdviseSetPreferredLocation=3
cudaMemAdviseUnsetPreferredLocation=4 cudaMemAdviseSetAccessedBy=5 cudaMemAdviseUnsetAccessedBy=6
CUDA_R_32F=0 CUDA_R_64F=1 CUDA_R_16F=2 CUDA_R_8I=3 CUDA_C_32F=4 CUDA_C_64F=5 CUDA_C_16F=6 CUDA_C_8I=7 CUDA_R_8U=8
CUDA_C_8U=9 CUDA_R_16BF=14
cudaLimitStackSize=0 cudaLimitPrintfFifoSize=1 cudaLimitMallocHeapSize=2 cudaLimitDevRuntimeSyncDepth=3
cudaLimitDevRuntimePendingLaunchCount=4 cudaLimitMaxL2FetchGranularity=5
cudaArrayDefault=0 cudaArraySurfaceLoadStore=2
errorInvalidValue=1 errorMemoryAllocation=2 errorPeerAccessAlreadyEnabled=704 errorContextIsDestroyed=709
errorInvalidResourceHandle=400 deviceAttributeComputeCapabilityMajor=75 deviceAttributeComputeCapabilityMinor=76
"""
"""Constants of CUDA, by CuPy's names."""
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
    "streamCreateWithPriority": lambda flags, priority: _create(CupyStream(priority=priority)),
    "streamGetFlags": lambda handle: int(_find(handle).non_blocking),
    "streamGetPriority": lambda handle: _find(handle).priority,
    "streamBeginCapture": _begin_capture,
    "streamEndCapture": _end_capture,
    "streamIsCapturing": lambda handle: _find(handle).is_capturing(),
    "graphInstantiate": lambda graph: graph,
    "graphLaunch": lambda graph, stream: _find(graph).launch(),
    "graphUpload": _ignore,
    "graphDestroy": lambda handle: _objects.pop(handle, None) and None,
    "graphExecDestroy": _ignore,
    "launchHostFunc": lambda stream, callback, argument: callback(argument),
    "hostAlloc": _allocate_host,
    "hostRegister": _ignore,
    "hostUnregister": _ignore,
    "freeHost": _free_host,
    "deviceGetLimit": _get_limit,
    "deviceSetLimit": _set_limit,
    "deviceEnablePeerAccess": lambda peer: _set_device(peer),
    "deviceDisablePeerAccess": lambda peer: _set_device(peer),
    "pointerGetAttributes": _PointerAttributes,
    "memPrefetchAsync": _ignore,
    "memAdvise": _ignore,
    "memcpyPeer": lambda dst, dst_device, src, src_device, size: memory.copy_bytes(dst, src, size),
    "memcpyPeerAsync": lambda dst, dst_device, src, src_device, size, stream: memory.copy_bytes(dst, src, size),
    "profilerStart": _ignore,
    "profilerStop": _ignore,
    **{
        f"memcpy{name}": value
        for value, name in enumerate(("HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice", "Default"))
    },
    **{name: int(value) for name, _, value in (each.partition("=") for each in _CONSTANTS.split())},
    **{f"cudaDevAttr{attribute_name(name)}": number for name, (number, _) in DEVICE_ATTRIBUTES.items()},
    **{f"cudaChannelFormatKind{name}": value for value, name in enumerate(("Signed", "Unsigned", "Float", "None"))},
    **{f"cudaResourceType{name}": value for value, name in enumerate(("Array", "MipmappedArray", "Linear", "Pitch2D"))},
    **{f"cudaAddressMode{name}": value for value, name in enumerate(("Wrap", "Clamp", "Mirror", "Border"))},
    **{f"cudaFilterMode{name}": value for value, name in enumerate(("Point", "Linear"))},
    **{f"cudaReadMode{name}": value for value, name in enumerate(("ElementType", "NormalizedFloat"))},
}
"""The module's names."""
