"""Slices of the race checker's records, against the same cells by index."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.simulator.checkers.races.shadow import find_span

LANES = np.arange(256)


@pytest.mark.parametrize("cells", [LANES, 3 * LANES + 5, 7 + LANES[:64]])
def test_equally_spaced_cells_are_a_slice(cells: np.ndarray) -> None:
    span = find_span(cells)
    assert span is not None
    assert np.array_equal(np.arange(2000)[span], cells)


@pytest.mark.parametrize(
    "cells",
    [
        LANES[:8],  # too few
        LANES[::-1],
        LANES // 2,  # two lanes per cell
        np.zeros_like(LANES),
        LANES + 16 * (LANES >= 128),
        np.where(LANES == 100, 101, LANES),
    ],
)
def test_other_cells_are_none(cells: np.ndarray) -> None:
    assert find_span(cells) is None
