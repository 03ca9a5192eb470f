"""Texture objects over linear memory, which PyCUDA has not: made by cuda-bindings, in the context that is current."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.errors import LaunchError

_FORMATS = {
    "uint8": "CU_AD_FORMAT_UNSIGNED_INT8",
    "uint16": "CU_AD_FORMAT_UNSIGNED_INT16",
    "uint32": "CU_AD_FORMAT_UNSIGNED_INT32",
    "int32": "CU_AD_FORMAT_SIGNED_INT32",
    "float32": "CU_AD_FORMAT_FLOAT",
}


def create(address: int, dtype: np.dtype[Any], count: int) -> int:
    """Return a texture object whose elements are read as they are, by `tex1Dfetch`.

    Parameters
    ----------
    address : int
        Of the memory.
    dtype : numpy.dtype
        Of an element: an integer of up to 32 bits, or float32.
    count : int
        Elements.

    Raises
    ------
    LaunchError
        Where cuda-bindings is not installed, or the driver makes no texture.
    """
    driver = _driver()
    resource = driver.CUDA_RESOURCE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    linear = resource.res.linear
    linear.devPtr = address
    linear.format = getattr(driver.CUarray_format, _FORMATS[dtype.name])
    linear.numChannels = 1
    linear.sizeInBytes = count * dtype.itemsize
    how = driver.CUDA_TEXTURE_DESC()
    how.flags = driver.CU_TRSF_READ_AS_INTEGER if dtype.kind in "iu" else 0
    status, texture = driver.cuTexObjectCreate(resource, how, None)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise LaunchError(f"The driver makes no texture of {count} x {dtype}: {status.name}.")
    return int(texture)


def destroy(texture: int) -> None:
    """Give a texture object back."""
    _driver().cuTexObjectDestroy(texture)


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        raise LaunchError(
            "Textures need the package cuda-bindings, which is not installed here.",
            advice="`pip install cuda-bindings` brings it; every other variant runs without.",
        ) from None
    return driver
