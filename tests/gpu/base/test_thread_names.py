from __future__ import annotations

import numpy as np
import pytest

from gpu.base.thread_names import (
    format_index,
    format_sanitizer_name,
    name_thread,
    parse_sanitizer_name,
    rename_threads,
)


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


RACE = "by thread (128,0,0) in block (2,0,0) and Read access by thread (0,0,0) in block (0,0,0): 3 (4,5,6)"


@pytest.mark.parametrize(
    ("text", "extents", "names_single_block", "expected"),
    [
        (RACE, None, True, "by block 2, thread 128 and Read access by block 0, thread 0: 3 (4,5,6)"),
        (
            RACE.replace("(2,", "(0,"),
            ((1, 1, 1), (256, 1, 1)),
            False,
            "by thread 128 and Read access by thread 0: 3 (4,5,6)",
        ),
        (format_sanitizer_name((3, 0, 0), (0, 0, 0)), ((2, 3, 1), (8, 4, 1)), False, "block (0, 0), thread (3, 0)"),
        (format_sanitizer_name((3, 0, 0), (0, 0, 0)), ((1, 1, 1), (8, 4, 1)), True, "block 0, thread (3, 0)"),
        (format_sanitizer_name((0, 0, 2), (0, 7, 0)), ((1, 1, 1), (8, 1, 1)), False, "block (0, 7), thread (0, 0, 2)"),
        ("memory of block (1,0,0)", None, True, "memory of block 1"),
        ("no thread", None, True, "no thread"),
    ],
)
def test_the_sanitizers_names_in_a_text_become_the_windows(text, extents, names_single_block, expected) -> None:
    assert rename_threads(text, extents, names_single_block=names_single_block) == expected


def test_a_renamed_thread_has_the_name_of_its_number() -> None:
    grid, block_shape = (3, 2, 1), (4, 3, 2)
    for number in range(24):
        z, y, x = (int(each) for each in np.unravel_index(number, block_shape[::-1]))
        name = format_sanitizer_name((x, y, z), (2, 1, 0))
        assert parse_sanitizer_name(name) == ((x, y, z), (2, 1, 0))
        assert rename_threads(name, (grid, block_shape)) == name_thread(5, number, grid, block_shape, names_block=True)
    assert parse_sanitizer_name("block (0,0,0)") is None
