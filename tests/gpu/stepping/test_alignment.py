"""Two recordings on one time line."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.stepping.alignment import align_by_barriers, align_by_phases
from gpu.stepping.phases import Phase, Phases


def make_phases(*stretches: tuple[str, int]) -> Phases:
    """Return phases by their names and lengths."""
    found, at = [], 0
    for name, length in stretches:
        found.append(Phase(at, at + length, name, 0))
        at += length
    return Phases(("",), np.zeros(at, int), tuple(found))


def test_barriers_are_passed_together_and_the_rest_goes_on_to_the_end():
    aligned = align_by_barriers((0, 10, 20), (0, 4, 8, 12, 16), (30, 20))
    assert [aligned.map_moment(moment) for moment in (0, 5, 10, 15, 20, 25, 30)] == [0, 2, 4, 6, 8, 14, 20]


def test_phases_of_the_same_name_begin_and_end_together():
    one = make_phases(("", 2), ("load", 4), ("up-sweep", 10), ("down-sweep", 10), ("write", 4))
    other = make_phases(("", 1), ("load", 2), ("doubling", 40), ("write", 2))
    aligned = align_by_phases(one, other, (30, 45))
    assert [aligned.map_moment(moment) for moment in (0, 2, 6, 16, 26, 30)] == [0, 1, 3, 23, 43, 45]


def test_phases_come_again_in_their_order():
    one = make_phases(("tile 0", 4), ("multiply", 4), ("tile 1", 4), ("multiply", 4))
    other = make_phases(("tile 0", 1), ("multiply", 1), ("tile 1", 1), ("multiply", 1))
    aligned = align_by_phases(one, other, (16, 4))
    assert [aligned.map_moment(4 * step) for step in range(5)] == [0, 1, 2, 3, 4]


def test_without_a_common_name_phases_align_nothing():
    assert align_by_phases(make_phases(("a", 3)), make_phases(("b", 3)), (3, 3)) is None
    assert align_by_phases(make_phases(), make_phases(("b", 3)), (3, 3)) is None


@pytest.mark.parametrize("ends", [(0, 0), (5, 0), (1, 9)])
def test_short_recordings_are_aligned_at_their_ends(ends):
    aligned = align_by_barriers((0,), (0,), ends)
    assert (aligned.map_moment(0), aligned.map_moment(ends[0])) == ((0, ends[1]) if ends[0] else (0, 0))


@given(st.lists(st.integers(1, 9), max_size=9), st.lists(st.integers(1, 9), max_size=9), st.integers(1, 9))
def test_no_step_forward_goes_back_and_all_is_seen_in_the_end(mine, theirs, rest):
    one, other = (np.cumsum([0, *lengths]).tolist() for lengths in (mine, theirs))
    ends = (one[-1] + rest, other[-1] + rest)
    aligned = align_by_barriers(one, other, ends)
    seen = [aligned.map_moment(moment) for moment in range(ends[0] + 1)]
    assert all(before <= after for before, after in pairwise(seen))
    assert (seen[0], seen[-1]) == (0, ends[1])
    for a, b in zip(one, other, strict=False):
        if 0 < a < ends[0] and b < ends[1]:
            assert aligned.map_moment(a) == b
