"""A hundred kernel files that mean harm or are just broken: each is answered, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.attacks.kernels import attack


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < 20 else pytest.mark.sweep) for seed in range(0, 100, 10)]
)
def test_odd_kernels_are_answered(seed: int, tmp_path: Path):
    for number in range(seed, seed + 10):
        attack(np.random.default_rng(number), tmp_path)
