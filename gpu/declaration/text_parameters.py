"""Parameters entered as text: a text, bin edges, and lists of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.pattern import Array, Parameter


@dataclass(frozen=True, kw_only=True)
class Text(Parameter):
    """A text of up to `maximum` characters."""

    default: str
    maximum: int

    def check(self, value: Any) -> str:
        text = str(value)
        if len(text) > self.maximum:
            raise InputError(f"--{self.name} has up to {self.maximum} characters, not {len(text)}.")
        return text


@dataclass(frozen=True, kw_only=True)
class BinEdges(Parameter):
    """Bin edges: increasing float32 numbers, in text separated by commas or spaces; the last one ends the last bin."""

    default: tuple[float, ...]
    maximum: int

    def check(self, value: Any) -> tuple[float, ...]:
        parts: Iterable[Any] = value.replace(",", " ").split() if isinstance(value, str) else value
        edges = tuple(_parse_number(self.name, part) for part in parts)
        if not 2 <= len(edges) <= self.maximum:
            raise InputError(f"--{self.name} has 2 to {self.maximum} numbers, not {len(edges)}.")
        for low, high in itertools.pairwise(edges):
            if not low < high:
                raise InputError(f"--{self.name} must increase, but {high:g} follows {low:g}.")
        return edges


@dataclass(frozen=True, kw_only=True)
class Numbers(Parameter):
    """Up to `maximum` finite numbers as typed, separated by spaces or commas."""

    default: str
    maximum: int

    def check(self, value: Any) -> str:
        parts = str(value).replace(",", " ").split()
        if len(parts) > self.maximum:
            raise InputError(f"--{self.name} has up to {self.maximum} numbers, not {len(parts)}.")
        for part in parts:
            try:
                finite = math.isfinite(float(part))
            except ValueError:
                finite = False
            if not finite:
                raise InputError(f"--{self.name} takes finite numbers, such as {self.default}, not {part!r}.")
        return " ".join(parts)


def parse_numbers(text: str) -> Array:
    """Parse numbers that have been checked: int64 if all are whole and fit, else float64."""
    parts = text.split()
    try:
        return np.array([int(part) for part in parts], np.int64)
    except (ValueError, OverflowError):
        return np.array([float(part) for part in parts], np.float64)


def format_edges(edges: Iterable[float]) -> str:
    """Format edges as text."""
    return ", ".join(f"{edge:.9g}" for edge in edges)


def _parse_number(name: str, part: Any) -> float:
    try:
        with np.errstate(over="ignore"):
            number = float(np.float32(part))
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"--{name} takes finite float32 numbers, not {part!r}.")
    return number
