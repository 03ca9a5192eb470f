"""Formatting of values for the cells of the Step tab."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from gpu.declaration.pattern import Array

_MIN_SCIENTIFIC_WIDTH = 5
"""Minimum number of characters for scientific notation."""

_MIN_WHOLE, _MAX_WHOLE = 1e7, 1e10
"""Whole floats in this range are written with all digits; those below have them anyway."""


def format_value(value: Any, max_characters: int = 12) -> str:
    """Return a number in at most `max_characters` characters where possible, with as many digits as fit."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        text = str(value)
        if len(text) <= max_characters:
            return text
    elif not isinstance(value, float):
        return str(value)
    elif not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "NaN")
    elif _MIN_WHOLE <= abs(value) < _MAX_WHOLE and value.is_integer() and len(text := f"{value:.0f}") <= max_characters:
        return text  # float32 counts on to 2**24 exactly: 1.677722e7 would hide that
    for digits in range(min(7, max(max_characters, 1)), 0, -1):
        text = f"{value:.{digits}g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
        if text.startswith(("0.", "-0.")) and len(text) > max_characters:
            text = text.replace("0.", ".", 1)
        if len(text) <= max_characters:
            return text
    return text


@lru_cache(maxsize=16_384, typed=True)
def _format_cached_value(value: Any, max_characters: int) -> str:
    return format_value(value, max_characters)


def format_values(values: Array, max_characters: int) -> list[str]:
    """Return each value in at most `max_characters` characters, or an empty text where that would lose too many digits.

    For example -148 in four characters would become "-1e2", which is too imprecise to be useful.
    """
    # Values repeat often, so texts are cached; 0.0 and -0.0 are not: they are equal but have different texts.
    formatted = [
        _format_cached_value(value, max_characters) if value else format_value(value, max_characters)
        for value in values.tolist()
    ]
    return [text if "e" not in text or max_characters >= _MIN_SCIENTIFIC_WIDTH else "" for text in formatted]
