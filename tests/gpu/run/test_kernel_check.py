"""Checks of edited kernels: their small inputs, and the inputs that tell mistakes apart."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.declaration.pattern import Progress
from gpu.engines.base import kernel_text
from gpu.messages.verdicts import decide_verdict
from gpu.patterns import find_pattern
from gpu.run.kernel_check import check_variant


def ignore_progress(_: Progress) -> None:
    """Ignore the progress."""


STENCIL = find_pattern("stencil")


@pytest.mark.parametrize("params", [{"n": 64}, {"n": 30, "rows": 25, "planes": 3}, {"n": 40, "rows": 5}])
@pytest.mark.parametrize("variant", [each.name for each in STENCIL.variants])
def test_a_large_grid_is_cropped_to_whole_planes(variant: str, params: dict[str, int]) -> None:
    inputs = STENCIL.prepare_inputs({}, STENCIL.check(params), 0)
    sources = {"stencil.cu": kernel_text("stencil.cu", {}) + "\n"}
    check = check_variant(STENCIL, STENCIL.variant(variant), inputs, params, ignore_progress, sources=sources)[1]
    assert decide_verdict(True, edited=True, check=check).kind == "verified"


def test_a_grid_from_a_file_is_cropped_to_whole_planes() -> None:
    params = STENCIL.check({"input": "file", "rows": 30})
    grid = np.arange(25 * 30 * 40, dtype=np.float32).reshape(25, 30, 40)
    assert STENCIL.crop_input is not None
    small = STENCIL.crop_input({"values": grid.reshape(-1, 40)}, params, {**params, "rows": 7, "n": 5, "planes": 3})
    np.testing.assert_array_equal(small["values"], grid[:3, :7, :5].reshape(-1, 5))
    sources = {"stencil.cu": kernel_text("stencil.cu", {}) + "\n"}
    inputs = {"values": grid.reshape(-1, 40)}
    check = check_variant(STENCIL, STENCIL.variant("naive"), inputs, params, ignore_progress, sources=sources)[1]
    assert check.clean
