"""Replacement of `cuda.bindings.driver`: texture and surface objects, which PyCUDA does not support.

Scripts create them with cuda-bindings in PyCUDA's context, as does `gpu/engines/cuda/textures.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

from gpu.hosts.driver.faults import INVALID_VALUE, NOT_SUPPORTED, DriverError, build_logic_error
from gpu.hosts.driver.memory import address_of, bytes_at
from gpu.hosts.pycuda.devices import current_context
from gpu.hosts.pycuda.memory.arrays import ADDRESSING, FORMAT_BYTES, SimulatedArray, find_array
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.textures import Sampling, Surface, Texture


def _enumeration(name: str, members: dict[str, int]) -> Any:
    kind: Any = IntEnum
    return kind(name, members)


_RESULTS = _enumeration("CUresult", {"CUDA_SUCCESS": 0, "CUDA_ERROR_INVALID_VALUE": 1, "CUDA_ERROR_NOT_SUPPORTED": 801})
_RESOURCES = _enumeration(
    "CUresourcetype",
    {f"CU_RESOURCE_TYPE_{name}": value for value, name in enumerate(("ARRAY", "MIPMAPPED_ARRAY", "LINEAR", "PITCH2D"))},
)
_FORMATS = _enumeration(
    "CUarray_format",
    {
        **{f"CU_AD_FORMAT_UNSIGNED_INT{8 << which}": 1 + which for which in range(3)},
        **{f"CU_AD_FORMAT_SIGNED_INT{8 << which}": 8 + which for which in range(3)},
        "CU_AD_FORMAT_HALF": 16,
        "CU_AD_FORMAT_FLOAT": 32,
    },
)
_ADDRESS_MODES = _enumeration(
    "CUaddress_mode",
    {f"CU_TR_ADDRESS_MODE_{name}": value for value, name in enumerate(("WRAP", "CLAMP", "MIRROR", "BORDER"))},
)
_FILTER_MODES = _enumeration("CUfilter_mode", {"CU_TR_FILTER_MODE_POINT": 0, "CU_TR_FILTER_MODE_LINEAR": 1})
_ARRAY, _LINEAR = 0, 2
_HALF, _FLOAT = 16, 32
_READ_AS_INTEGER, _NORMALIZED = 1, 2
_ONLY_NORMALIZED = ("wrap", "mirror")

_objects: dict[int, FlatMemory] = {}
"""Existing texture and surface objects, by number."""


def _create_resource() -> SimpleNamespace:
    """Return an empty resource description."""
    linear = SimpleNamespace(devPtr=0, format=_FLOAT, numChannels=1, sizeInBytes=0)
    resources = SimpleNamespace(array=SimpleNamespace(hArray=0), linear=linear)
    return SimpleNamespace(resType=_ARRAY, res=resources, flags=0)


def _sampling_description() -> SimpleNamespace:
    """Return the default texture description, without filtering."""
    modes = [0] * 3
    return SimpleNamespace(addressMode=modes, filterMode=0, flags=0)


def _build_creating_routine(create: Callable[..., FlatMemory]) -> Callable[..., tuple[IntEnum, int | None]]:
    """Return a routine in the style of cuda-bindings, which returns a status and an object."""

    def routine(*arguments: Any) -> tuple[IntEnum, int | None]:
        try:
            memory = create(*arguments)
        except DriverError as error:
            return _RESULTS(801 if error.reason == NOT_SUPPORTED else 1), None
        number = address_of(memory)
        _objects[number] = memory
        return _RESULTS(0), number

    return routine


def _create_texture(resource: Any, description: Any, view: Any = None) -> FlatMemory:
    name = "cuTexObjectCreate"
    current_context(name)
    kind, format_ = int(resource.resType), None
    if kind == _ARRAY:
        array = _find_array(resource, name)
        data, extents, size, format_ = (
            array.bordered_data,
            array.dimensions,
            array.element_bytes,
            array.descriptor.format,
        )
    elif kind == _LINEAR:
        linear = resource.res.linear
        format_, size = linear.format, FORMAT_BYTES[int(linear.format)] * int(linear.numChannels)
        count = int(linear.sizeInBytes) // size
        data, extents = bytes_at(int(linear.devPtr), count * size, name), (count,)
    else:
        raise build_logic_error(name, NOT_SUPPORTED, "a texture needs an array or linear memory")
    flags = int(description.flags)
    if view is not None or (format_ not in (_HALF, _FLOAT) and not flags & _READ_AS_INTEGER):
        raise build_logic_error(name, NOT_SUPPORTED, "views and conversions of elements are not supported")
    addressing, normalized = ADDRESSING[int(description.addressMode[0])], bool(flags & _NORMALIZED)
    if kind == _LINEAR or (addressing in _ONLY_NORMALIZED and not normalized):
        addressing = "clamp"
    sampling = Sampling(bool(int(description.filterMode)), normalized, addressing)
    return Texture(data, extents, size, sampling).to_memory("a texture")


def _create_surface(resource: Any) -> FlatMemory:
    name = "cuSurfObjectCreate"
    current_context(name)
    if int(resource.resType) != _ARRAY:
        raise build_logic_error(name, INVALID_VALUE, "a surface needs an array")
    array = _find_array(resource, name)
    if not array.supports_surfaces:
        raise build_logic_error(name, INVALID_VALUE, "the array was created without SURFACE_LDST")
    return Surface(array.bordered_data, array.dimensions, array.element_bytes).to_memory("a surface")


def _find_array(resource: Any, routine: str) -> SimulatedArray:
    array = find_array(int(resource.res.array.hArray))
    if array is None:
        raise build_logic_error(routine, INVALID_VALUE, "there is no such array")
    return array


def _destroy(number: Any) -> tuple[IntEnum]:
    return (_RESULTS(1 if _objects.pop(int(number), None) is None else 0),)


BINDINGS: dict[str, Any] = {
    **{each.__name__: each for each in (_RESULTS, _RESOURCES, _FORMATS, _ADDRESS_MODES, _FILTER_MODES)},
    **dict.fromkeys(("CUdeviceptr", "CUarray", "CUtexObject", "CUsurfObject"), int),
    "CUDA_RESOURCE_DESC": _create_resource,
    "CUDA_TEXTURE_DESC": _sampling_description,
    "CU_TRSF_READ_AS_INTEGER": _READ_AS_INTEGER,
    "CU_TRSF_NORMALIZED_COORDINATES": _NORMALIZED,
    "cuTexObjectCreate": _build_creating_routine(_create_texture),
    "cuTexObjectDestroy": _destroy,
    "cuSurfObjectCreate": _build_creating_routine(_create_surface),
    "cuSurfObjectDestroy": _destroy,
}
"""Content of the module, by name."""
