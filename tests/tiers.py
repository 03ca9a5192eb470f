"""Products of parameters, of which the first tier has a part that contains all pairs of values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def spread(*axes: Iterable[Any], one_in: int = 2) -> list[Any]:
    """Return all combinations of the axes' values; the first tier has one in `one_in`, `make sweep` the others.

    A combination belongs to the first tier if `one_in` divides the sum of its values' indices. Of three axes or more,
    each with at least `one_in` values, the first tier has all pairs of values; of two, it has each value.
    """
    return [
        pytest.param(
            *(value for _, value in combination),
            marks=[pytest.mark.sweep] * (sum(index for index, _ in combination) % one_in != 0),
        )
        for combination in itertools.product(*map(enumerate, axes))
    ]
