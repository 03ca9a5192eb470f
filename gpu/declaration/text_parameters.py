"""Parameters that are written: a text, and numbers in a line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.declaration.pattern import Array, Parameter
from gpu.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Text(Parameter):
    """A text of up to `maximum` characters."""

    default: str
    maximum: int

    @property
    def initial(self) -> str:
        return self.default

    def check(self, value: Any) -> str:
        text = str(value)
        if len(text) > self.maximum:
            raise InputError(f"--{self.name} has up to {self.maximum} characters, not {len(text)}.")
        return text


@dataclass(frozen=True, kw_only=True)
class BinEdges(Parameter):
    """Where ranges begin, and where the last ends: rising float32 numbers, in text separated by commas or spaces."""

    default: tuple[float, ...]
    maximum: int

    @property
    def initial(self) -> tuple[float, ...]:
        return self.default

    def check(self, value: Any) -> tuple[float, ...]:
        parts: Iterable[Any] = value.replace(",", " ").split() if isinstance(value, str) else value
        edges = tuple(_number(self.name, part) for part in parts)
        if not 2 <= len(edges) <= self.maximum:
            raise InputError(f"--{self.name} has 2 to {self.maximum} numbers, not {len(edges)}.")
        for low, high in itertools.pairwise(edges):
            if not low < high:
                raise InputError(f"--{self.name} rises from number to number, but {high:g} follows {low:g}.")
        return edges


@dataclass(frozen=True, kw_only=True)
class Numbers(Parameter):
    """Up to `maximum` finite numbers in a line, as they were typed, with blanks or commas between."""

    default: str
    maximum: int

    @property
    def initial(self) -> str:
        return self.default

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
                raise InputError(f"--{self.name} is made of finite numbers, such as {self.default}, not {part!r}.")
        return " ".join(parts)


def numbers_of(text: str) -> Array:
    """Return typed numbers that have been checked: int64 where all are whole and fit, else float64."""
    parts = text.split()
    try:
        return np.array([int(part) for part in parts], np.int64)
    except (ValueError, OverflowError):
        return np.array([float(part) for part in parts], np.float64)


def as_text(edges: Iterable[float]) -> str:
    """Return edges as people write them."""
    return ", ".join(f"{edge:.9g}" for edge in edges)


def _number(name: str, part: Any) -> float:
    try:
        with np.errstate(over="ignore"):
            number = float(np.float32(part))
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"--{name} is made of finite float32 numbers, not {part!r}.")
    return number
