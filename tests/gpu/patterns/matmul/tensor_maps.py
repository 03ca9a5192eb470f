"""Skip tests of tensor maps on the simulated GPU driver: the GPU's own driver encodes them."""

from __future__ import annotations

import ctypes

from tests import needs


def require_tensor_maps() -> None:
    """Skip the running test without an NVIDIA driver."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        needs.skip(needs.GPU)
