from __future__ import annotations

import numpy as np
import pytest

from gpu.run.chart import HEIGHT, MIN_WIDTH, draw_counts


def test_bars_stand_on_the_lower_edge_and_the_highest_reaches_the_top():
    picture = draw_counts(np.array([[0, 5, 10]], np.uint32))
    third = picture.shape[1] // 3
    bright = picture == 255
    assert picture.shape[0] == HEIGHT
    assert picture.shape[1] >= MIN_WIDTH
    assert not bright[:, :third].any()
    assert bright[HEIGHT // 2 :, third : 2 * third].all()
    assert not bright[: HEIGHT // 2, third : 2 * third].any()
    assert bright[:, 2 * third :].all()


def test_three_channels_add_up():
    picture = draw_counts(np.array([[4, 0], [4, 4], [0, 4]], np.uint32))
    assert picture.ndim == 3
    assert picture[-1, 0].tolist() == [255, 255, 24]
    assert picture[-1, -1].tolist() == [24, 255, 255]


@pytest.mark.parametrize("bins", [1, 7, 256, 8192])
def test_any_number_of_bins_and_no_counts_at_all(bins: int):
    assert (draw_counts(np.zeros((1, bins), np.uint32)) == 24).all()
