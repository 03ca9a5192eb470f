"""Roles of parameters, by which code finds a parameter without knowing its name."""

from __future__ import annotations

from enum import Enum, auto

FROM_FILE = "file"
"""The option of a source for values from a file."""


class Role(Enum):
    """The purpose of a parameter; no two parameters of a pattern have the same role."""

    SUBJECT = auto()
    """The kind of input, for a pattern that takes several."""
    SOURCE = auto()
    """How the input is generated; the option `FROM_FILE` means that it is read from a file."""
    SIZE = auto()
    """The number of elements, columns or bodies to generate."""
    TYPE = auto()
    """The NumPy name of the elements' type."""
    BLOCK = auto()
    """Threads per block."""
    TEXT = auto()
    """The text that is the input."""
    VALUES = auto()
    """The numbers that are the input, as typed."""
    BINS = auto()
    """The number of bins."""
    COEFFICIENTS = auto()
    """The weights of a custom filter."""
    STEPS = auto()
    """The number of time steps of a run."""
    TIME_STEP = auto()
    """The length of a time step."""
    SOFTENING = auto()
    """The softening length, below which gravity is reduced."""
