"""Align two recordings on one time line: map the moments of one to those of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np

from gpu.stepping.phases import Phase, Phases


@dataclass(frozen=True)
class Alignment:
    """Pairs of corresponding moments, ascending in both recordings; moments in between are interpolated.

    Parameters
    ----------
    pairs : tuple of (int, int)
        Moments of the first and the second recording; the first pair is (0, 0), the last is both ends.
    """

    pairs: tuple[tuple[int, int], ...]

    def map_moment(self, moment: int) -> int:
        """Return the moment of the second recording that corresponds to one of the first."""
        one, other = zip(*self.pairs, strict=True)
        return int(np.interp(moment, one, other))


def align_by_barriers(first_moments: Sequence[int], second_moments: Sequence[int], ends: tuple[int, int]) -> Alignment:
    """Align two recordings barrier by barrier, given the moments at which they pass barriers, and their ends."""
    return _align(
        list(zip(_inner_moments(first_moments, ends[0]), _inner_moments(second_moments, ends[1]), strict=False)), ends
    )


def align_by_phases(first: Phases, second: Phases, ends: tuple[int, int]) -> Alignment | None:
    """Align two recordings by phases with equal names in equal order; return None if there are none."""
    first_phases, second_phases = (
        [stretch for stretch in phases.intervals if stretch.name] for phases in (first, second)
    )
    pairs: list[tuple[int, int]] = []
    for block in SequenceMatcher(
        None, _phase_names(first_phases), _phase_names(second_phases), autojunk=False
    ).get_matching_blocks():
        for step in range(block.size):
            a, b = first_phases[block.a + step], second_phases[block.b + step]
            pairs += [(a.first, b.first), (a.last, b.last)]
    return _align(pairs, ends) if pairs else None


def _phase_names(phases: Sequence[Phase]) -> list[str]:
    return [stretch.name for stretch in phases]


def _inner_moments(moments: Sequence[int], end: int) -> list[int]:
    return [moment for moment in moments if 0 < moment < end]


def _align(pairs: list[tuple[int, int]], ends: tuple[int, int]) -> Alignment:
    """Return an alignment of ascending pairs, with the beginning and the ends added."""
    ascending = [(0, 0)]
    for one, other in sorted(pairs):
        if one > ascending[-1][0] and other >= ascending[-1][1]:
            ascending.append((one, other))
    ascending = [pair for pair in ascending if pair[0] < ends[0]] if ends[0] else ascending[:1]
    if ends != ascending[-1]:
        ascending.append(ends)
    assert all(a[0] < b[0] or ends[0] == 0 for a, b in pairwise(ascending))
    return Alignment(tuple(ascending))
