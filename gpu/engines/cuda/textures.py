"""Texture objects over linear memory, created by cuda-bindings in the current context, as PyCUDA has none."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.base.errors import LaunchError

_FORMATS = {
    "uint8": "CU_AD_FORMAT_UNSIGNED_INT8",
    "uint16": "CU_AD_FORMAT_UNSIGNED_INT16",
    "uint32": "CU_AD_FORMAT_UNSIGNED_INT32",
    "int32": "CU_AD_FORMAT_SIGNED_INT32",
    "float32": "CU_AD_FORMAT_FLOAT",
}


def create(address: int, dtype: np.dtype[Any], count: int) -> int:
    """Return a texture object for reading elements by `tex1Dfetch` without conversion.

    Parameters
    ----------
    address : int
        Device address of the memory.
    dtype : numpy.dtype
        Type of an element: an integer of up to 32 bits, or float32.
    count : int
        Number of elements.

    Raises
    ------
    LaunchError
        cuda-bindings is not installed, or the driver cannot create the texture.
    """
    driver = _import_driver()
    resource = driver.CUDA_RESOURCE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    linear = resource.res.linear
    linear.devPtr = address
    linear.format = getattr(driver.CUarray_format, _FORMATS[dtype.name])
    linear.numChannels = 1
    linear.sizeInBytes = count * dtype.itemsize
    description = driver.CUDA_TEXTURE_DESC()
    description.flags = driver.CU_TRSF_READ_AS_INTEGER if dtype.kind in "iu" else 0
    status, texture = driver.cuTexObjectCreate(resource, description, None)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise LaunchError(f"The driver cannot create a texture of {count} x {dtype}: {status.name}.")
    return int(texture)


def destroy(texture: int) -> None:
    """Destroy a texture object."""
    _import_driver().cuTexObjectDestroy(texture)


def _import_driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        raise LaunchError(
            "Textures need the package cuda-bindings, which is not installed.",
            advice="Run `pip install cuda-bindings`; all other variants run without it.",
        ) from None
    return driver
