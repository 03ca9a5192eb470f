"""The numbers at the ticks of axes."""

from __future__ import annotations

import pytest

from gui.plots.axes import FigureAxis


@pytest.mark.parametrize(
    ("values", "spacing", "texts"),
    [
        ([4972.25, 4972.5, 4972.75], 0.25, ["4\u202f972.2", "4\u202f972.5", "4\u202f972.8"]),
        ([0.25, 0.5], 0.25, ["0.25", "0.5"]),
        ([1000, 2000], 1000, ["1\u202f000", "2\u202f000"]),
        ([999_999.5, 1_000_000.0], 0.5, ["999\u202f999.5", "1\u202f000\u202f000.0"]),
    ],
)
def test_ticks_closer_than_one_have_decimals(qtbot, values, spacing, texts):
    assert FigureAxis("left").tickStrings(values, 1.0, spacing) == texts
