"""Changes of generated values that tell mistakes apart: signs, order, equal values and extremes.

Each function returns an array of the same shape and type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.pattern import Array

_LARGE = 1000


@dataclass(frozen=True)
class ValueChange:
    """A named change of an array's values.

    Parameters
    ----------
    name : str
        Name of the changed values, such as "negative values".
    apply : callable
        values -> changed values; raises InputError if the type has no such values.
    kinds : str
        Kinds of NumPy types for which it differs from the other changes.
    is_order : bool
        Whether it only changes the order of the values, which matters in one dimension.
    """

    name: str
    apply: Callable[[Array], Array]
    kinds: str = "iuf"
    is_order: bool = False


def make_negative(values: Array) -> Array:
    """Return negative values of the same magnitudes, -1 for 0; raise InputError for an unsigned type."""
    if values.dtype.kind == "u":
        raise InputError(f"{values.dtype} has no negative values.")
    return np.where(values > 0, -values, np.where(values == 0, values.dtype.type(-1), values)).astype(values.dtype)


def mix_signs(values: Array) -> Array:
    """Return values of which every third is negative."""
    mixed = make_negative(values)
    np.copyto(mixed, values, where=np.arange(values.size).reshape(values.shape) % 3 > 0)
    return mixed


def make_equal(values: Array) -> Array:
    """Return copies of the first value, or of 1 if it is 0."""
    return np.full_like(values, values.flat[0] or 1) if values.size else values


def sort_ascending(values: Array) -> Array:
    """Return the values in ascending order."""
    return np.sort(values, axis=None).reshape(values.shape)


def sort_descending(values: Array) -> Array:
    """Return the values in descending order."""
    return np.sort(values, axis=None)[::-1].reshape(values.shape).copy()


def make_extreme(values: Array) -> Array:
    """Return random extremes of the type, and a few small values."""
    limits: Any = np.finfo(values.dtype) if values.dtype.kind == "f" else np.iinfo(values.dtype)
    choices = np.array([limits.min, limits.max, 0, 1, limits.max, limits.min, limits.max - 1], values.dtype)
    return np.random.default_rng(values.size).choice(choices, values.shape)


def keep_only_last(values: Array) -> Array:
    """Return zeros, and 9 as the last value."""
    last = np.zeros_like(values)
    last.flat[-1:] = 9
    return last


def repeat_values(values: Array, choices: Iterable[float]) -> Array:
    """Return the choices, one more and one less, in turn."""
    around = np.array([each + more for each in choices for more in (0, -1, 1)]).astype(values.dtype)
    return np.resize(around, values.shape)


def _scale_up(values: Array) -> Array:
    large: Array = mix_signs(values) * values.dtype.type(_LARGE)
    return large


def _shift_down(values: Array) -> Array:
    large: Array = make_negative(values) - values.dtype.type(_LARGE)
    return large


def _make_special(values: Array) -> Array:
    special = values.copy()
    special.flat[::5], special.flat[2::7], special.flat[3::11] = np.nan, np.inf, -np.inf
    return special


VALUE_CHANGES = (
    ValueChange("negative values", make_negative),
    ValueChange("values of both signs", mix_signs, "if"),
    ValueChange("equal values", make_equal),
    ValueChange("ascending values", sort_ascending, is_order=True),
    ValueChange("descending values", sort_descending, is_order=True),
    ValueChange("only the last value not 0", keep_only_last),
    ValueChange("extremes of the type", make_extreme),
    ValueChange("large magnitudes", _scale_up, "f"),
    ValueChange("large negative values", _shift_down, "f"),
    ValueChange("infinities and NaN", _make_special, "f"),
)
