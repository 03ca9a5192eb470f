"""Arrays of a lesson's kernel, and the generation of their values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.declaration.value_changes import make_equal, make_negative, sort_ascending, sort_descending
from gpu.lessons.expressions import Array, evaluate_number
from gpu.messages.judgments import RANDOM_KIND

FRACTIONS_KIND, NEAR_KIND = "fractions", "near"
INPUT_KINDS = (RANDOM_KIND, "equal", "lowest", "highest", "only the last", "only the first", "falling", "rising",
               "negative", "alternating", FRACTIONS_KIND, "precise", "tiny", "large", "close", NEAR_KIND)  # fmt: skip
"""Kinds of generated inputs: random, and special cases that reveal common mistakes.

"fractions", "precise" and "tiny" differ from random only for floats, "large" and "close" only for arrays without a
declared range. "large" integers include the lowest and the highest. "close" are the largest integers, which differ by
less than a float's rounding.
"near" differs from random only for floats if a launch has parameters that do not depend on n, such as bounds: half of
the values are close to one of them.
"precise" has random bits in the whole mantissa; its values have one sign, so that sums do not cancel.
"""

_FRACTION = 1 / 16
"""Step of generated fractions. Products of two have at most 20 bits, so that float32 sums are nearly exact."""
_FLOAT_SCALE = 2.0**20
"""Factor of large floats, and divisor of tiny ones."""
MARGIN = 24
"""Half bits that large integers leave for sums if the lesson has no expectation from which to compute the largest."""

_CLOSE = 200
"""Difference of the largest and the smallest integer of the kind "close"."""
_NEAR_BITS = (3.0, 13.0)
"""Range of the distances of values of the kind "near" from a parameter, as negative powers of two of its magnitude."""
LARGE_KINDS = ("large", "close")

PERMUTATION, OFFSETS = "permutation", "offsets"
_ARRAY = re.compile(r"(?P<use>inout|in|out)\s+(?P<size>[^=]+?)(?:\s+of\s+(?P<low>[^.]+?)\.\.(?P<high>[^=]+?))?"
                    rf"(?:\s+(?P<order>sorted|{PERMUTATION}|{OFFSETS})|\s*=\s*(?P<fill>.+))?")  # fmt: skip


@dataclass(frozen=True)
class StageArray:
    """Array argument of a kernel.

    Parameters
    ----------
    use : {"in", "inout", "out"}
        Whether it is initialized before the launch and checked after it.
    size : str
        Number of elements, as an expression.
    low, high : str
        Range of generated values, as expressions; "" for the default.
    fill : str
        Initial content, as an expression; "" for random values, or for an uninitialized output.
    order : {"", "sorted", "permutation", "offsets"}
        "sorted": generated values ascend. "permutation": they are 0 to SIZE - 1, each once. "offsets": they are 0 and
        then the sums of generated lengths, such as the offsets of the rows of a sparse matrix.
    """

    use: str
    size: str
    low: str = ""
    high: str = ""
    fill: str = ""
    order: str = ""

    @classmethod
    def parse(cls, text: str) -> StageArray | None:
        """Parse "in n", "in n of 0..9 sorted", "out 1 = 0" or "inout n"; return None if the text is not an array.

        Raises
        ------
        InputError
            If a permutation has a range, or offsets have none.
        """
        match = _ARRAY.fullmatch(text.strip())
        if match is None:
            return None
        low, high, fill = (match[group] or "" for group in ("low", "high", "fill"))
        order = match["order"] or ""
        if order == PERMUTATION and low:
            raise InputError(f'{text!r} has a range, but a permutation has 0 to SIZE - 1: write "in SIZE permutation".')
        if order == OFFSETS and not low:
            raise InputError(f'{text!r} needs the lengths\' range: write "in SIZE of LOW..HIGH offsets".')
        return cls(match["use"], match["size"].strip(), low, high, fill, order)

    @property
    def is_free(self) -> bool:
        """Whether values are generated without a declared range."""
        return not (self.low or self.fill or self.order == PERMUTATION)


def find_range(
    name: str,
    array: StageArray,
    dtype: np.dtype[Any],
    names: Mapping[str, Any],
    kind: str,
    *,
    for_display: bool,
    spare: int,
) -> tuple[float, float]:
    """Return the range of an array's generated values: declared, large, for display, or the default.

    Large integers have the range of their type, without as many half bits as `spare`.

    Raises
    ------
    InputError
        If the array's type cannot store the integers of this range.
    """
    if kind in LARGE_KINDS and dtype.kind in "iu" and array.is_free:
        limits = np.iinfo(dtype)
        most = min(int(limits.max), 2**53 - 1)
        if spare:
            most = int(most / 2 ** (spare / 2))
        if kind == "close":
            return float(max(most - _CLOSE, most // 2)), float(most)
        return float(max(-most if spare else -most - 1, limits.min)), float(most)
    low = evaluate_number(array.low, names) if array.low else 1.0 if for_display else -50.0
    # The highest is odd and the lowest is even: arrays of only odd and only even numbers occur.
    high = evaluate_number(array.high, names) if array.high else 9.0 if for_display else 51.0
    if dtype.kind == "u":
        low = max(low, 0.0)
    _check_range(name, low, high, dtype)
    return low, high


def generate_array(
    generator: np.random.Generator,
    size: int,
    bounds: tuple[float, float],
    kind: str,
    array: StageArray,
    dtype: np.dtype[Any],
    parameters: Sequence[float] = (),
) -> Array:
    """Generate an array's values, within the bounds; see `INPUT_KINDS`. Those "near" are close to the parameters.

    Raises
    ------
    InputError
        If a permutation or offsets do not fit in the array's type, or offsets descend.
    """
    low, high = bounds
    if array.order == PERMUTATION:
        _check_order(array, 0.0, size - 1.0, dtype)
        return _generate_permutation(generator, size, kind).astype(dtype)
    if array.order == OFFSETS:
        _check_order(array, low, high * (size - 1), dtype)
        lengths = generate_array(generator, max(size - 1, 0), bounds, kind, replace(array, order=""), np.dtype("i8"))
        return np.concatenate([[0], np.cumsum(lengths)])[:size].astype(dtype)
    values = _generate_values(generator, size, bounds, kind, dtype, parameters)
    if kind in ("large", "close") and dtype.kind in "iu" and array.is_free and size > 1:
        # Random integers hardly ever include the lowest and the highest, which overflow in a difference.
        values[generator.choice(size, 2, replace=False)] = low, high
    values = values.clip(min(low, high), high)
    if dtype.kind == "f" and kind == "large" and not array.low:
        values *= _FLOAT_SCALE
    if dtype.kind == "f" and kind == "tiny" and low <= 0.0 <= high:
        values /= _FLOAT_SCALE
    if array.order == "sorted":
        values = sort_ascending(values)
    return values.astype(dtype)


def _generate_values(
    generator: np.random.Generator,
    size: int,
    bounds: tuple[float, float],
    kind: str,
    dtype: np.dtype[Any],
    parameters: Sequence[float],
) -> npt.NDArray[np.float64]:
    """Generate values without an order, of a kind that does not depend on the array."""
    low, high = bounds
    # Sums of integers are exact in float32 in any order.
    values = generator.integers(int(np.ceil(low)), int(high), size, endpoint=True).astype(np.float64)
    match kind:
        case "equal":
            values = make_equal(values)
        case "lowest":
            values[:] = low
        case "highest":
            values[:] = high
        case "only the last" | "only the first":
            index = -1 if kind == "only the last" else 0
            values[:] = min(max(low, 0.0), high)
            values[index:][:1] = high
        case "falling":
            values = sort_descending(values)
        case "rising":
            values = sort_ascending(values)
        case "negative":
            values = make_negative(values)
        case "alternating":
            values = np.where(np.arange(size) % 2 == 0, low, high)
        case "fractions" | "tiny" | "large" if dtype.kind == "f":
            values += _FRACTION * generator.integers(1, round(1 / _FRACTION), size)
        case "precise" if dtype.kind == "f":
            values = max(high, low, key=abs) * generator.uniform(0.5, 1.0, size)
        case "near" if dtype.kind == "f" and parameters:
            centers = generator.choice(parameters, size)
            distances = 2.0 ** -generator.uniform(*_NEAR_BITS, size) * generator.choice((-1.0, 1.0), size)
            values = np.where(generator.random(size) < 0.5, centers + distances * np.abs(centers).clip(1.0), values)
    return values


def _generate_permutation(generator: np.random.Generator, size: int, kind: str) -> Array:
    match kind:
        case "rising":
            return np.arange(size)
        case "falling":
            return np.arange(size)[::-1]
    return generator.permutation(size)


def _check_order(array: StageArray, low: float, last: float, dtype: np.dtype[Any]) -> None:
    """Raise InputError if offsets descend, or the last element of an order does not fit in the array's type."""
    if low < 0:
        raise InputError(f"Offsets have lengths from {low:g}: write LOW..HIGH with a LOW of at least 0.")
    limit = np.iinfo(dtype).max if dtype.kind in "iu" else 2**24
    if last > limit:
        verb = "need" if array.order == OFFSETS else "needs"
        raise InputError(
            f"An array of {dtype.name} holds integers up to {limit}, but its {array.order} {verb} {last:.0f}."
        )


def _check_range(name: str, low: float, high: float, dtype: np.dtype[Any]) -> None:
    """Raise InputError if numbers from `low` to `high` cannot be generated exactly in an array's type."""
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    first, last = (-(2**53), 2**53) if limits is None else (max(limits.min, -(2**53)), min(limits.max, 2**53))
    if not (first <= low and high <= last and np.ceil(low) <= int(high)):
        raise InputError(
            f"The array {name!r} of {dtype.name} has no integers from {low:g} to {high:g}: "
            f"write LOW..HIGH, within {first}..{last}."
        )
