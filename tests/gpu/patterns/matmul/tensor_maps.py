"""Skip tests of tensor maps on the simulated GPU driver: the GPU's own driver encodes them."""

from __future__ import annotations

from gpu.base.devices.probe import load_driver
from tests import needs


def require_tensor_maps() -> None:
    """Skip the running test without an NVIDIA driver."""
    try:
        load_driver()
    except OSError:
        needs.skip(needs.GPU)
