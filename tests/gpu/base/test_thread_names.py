from __future__ import annotations

import numpy as np
import pytest

from gpu.base.thread_names import format_index, name_thread


@pytest.mark.parametrize(
    ("index", "extents", "text"),
    [
        ((3, 0, 0), (64, 1, 1), "3"),
        ((3, 4, 0), (32, 8, 1), "(3, 4)"),
        ((0, 4, 0), (1, 8, 1), "(0, 4)"),
        ((3, 0, 2), (32, 1, 4), "(3, 0, 2)"),
        ((0, 0, 0), (1, 1, 1), "0"),
        ((7,), (9,), "7"),
    ],
)
def test_an_index_has_as_many_components_as_the_extents_need(index, extents, text) -> None:
    assert format_index(index, extents) == text


@pytest.mark.parametrize("extents", [(31, 7, 1), (5, 3, 2), (1, 1, 9)])
def test_a_number_is_named_by_its_index_with_x_fastest(extents) -> None:
    grid = (40, 1, 1)
    for number in range(int(np.prod(extents))):
        z, y, x = np.unravel_index(number, extents[::-1])
        index = (int(x), int(y), int(z))[: 2 if extents[2] == 1 else 3]
        expected = f"({', '.join(map(str, index))})"
        assert name_thread(39, number, grid, extents, names_block=True) == f"block 39, thread {expected}"
        assert name_thread(0, number, grid, extents, names_block=False) == f"thread {expected}"


def test_a_block_of_a_child_launch_keeps_its_number() -> None:
    assert name_thread(12, 3, (4, 2, 1), (64, 1, 1), names_block=True) == "block 12, thread 3"
