"""What a kernel's text is compiled for, and what GPUs of a compute capability have."""

from __future__ import annotations

import pytest

from gpu.base.devices.architecture import explain_missing_warpgroups, target_architecture


@pytest.mark.parametrize(
    ("capability", "text", "name"),
    [
        ((9, 0), 'asm volatile("wgmma.fence.sync.aligned;");', "sm_90a"),
        ((9, 0), 'asm("setmaxnreg.inc.sync.aligned.u32 240;");', "sm_90a"),
        ((9, 0), 'extern "C" __global__ void matmul_wgmma(float *c) {}', "sm_90"),
        ((8, 6), "__global__ void f() {}", "sm_86"),
        ((10, 0), "__global__ void f() {}", "sm_100"),
    ],
)
def test_what_only_one_architecture_has_is_compiled_for_that_alone(
    capability: tuple[int, int], text: str, name: str
) -> None:
    assert target_architecture(capability, text) == name


def test_only_hopper_has_warpgroups() -> None:
    assert explain_missing_warpgroups("9.0") == ""
    assert explain_missing_warpgroups("10.0").endswith("this GPU has 10.0.")
