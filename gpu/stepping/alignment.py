"""Two recordings on one time line: which moment of the other belongs to a moment of the one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np

from gpu.stepping.phases import Phase, Phases


@dataclass(frozen=True)
class Alignment:
    """Moments that belong together, ascending in both: between two of them time goes on evenly.

    Parameters
    ----------
    pairs : tuple of (int, int)
        Moments of the one and of the other; the first pair is (0, 0), the last one is of both ends.
    """

    pairs: tuple[tuple[int, int], ...]

    def other(self, moment: int) -> int:
        """Return the moment of the other recording that belongs to one of the first."""
        one, other = zip(*self.pairs, strict=True)
        return int(np.interp(moment, one, other))


def by_barrier(one: Sequence[int], other: Sequence[int], ends: tuple[int, int]) -> Alignment:
    """Return two recordings barrier by barrier, by the moments at which they pass them, and to the ends."""
    return _aligned(list(zip(_inner(one, ends[0]), _inner(other, ends[1]), strict=False)), ends)


def by_phase(one: Phases, other: Phases, ends: tuple[int, int]) -> Alignment | None:
    """Return two recordings phase by phase, by those that have the same names in the same order; None without any."""
    mine, theirs = ([stretch for stretch in phases.stretches if stretch.name] for phases in (one, other))
    found: list[tuple[int, int]] = []
    for block in SequenceMatcher(None, _names(mine), _names(theirs), autojunk=False).get_matching_blocks():
        for step in range(block.size):
            a, b = mine[block.a + step], theirs[block.b + step]
            found += [(a.first, b.first), (a.last, b.last)]
    return _aligned(found, ends) if found else None


def _names(stretches: Sequence[Phase]) -> list[str]:
    return [stretch.name for stretch in stretches]


def _inner(moments: Sequence[int], end: int) -> list[int]:
    return [moment for moment in moments if 0 < moment < end]


def _aligned(found: list[tuple[int, int]], ends: tuple[int, int]) -> Alignment:
    """Return pairs with the beginning and the ends, where both go on."""
    kept = [(0, 0)]
    for one, other in sorted(found):
        if one > kept[-1][0] and other >= kept[-1][1]:
            kept.append((one, other))
    kept = [pair for pair in kept if pair[0] < ends[0]] if ends[0] else kept[:1]
    if ends != kept[-1]:
        kept.append(ends)
    assert all(a[0] < b[0] or ends[0] == 0 for a, b in pairwise(kept))
    return Alignment(tuple(kept))
