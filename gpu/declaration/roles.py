"""What parameters are for, whatever a pattern calls them: who asks for a role need not know a name."""

from __future__ import annotations

from enum import Enum, auto

FROM_FILE = "file"
"""The option of a source that says: the values come from a file."""


class Role(Enum):
    """What a parameter is for; of one pattern no two have the same role."""

    SUBJECT = auto()
    """Which kind of input is taken, where a pattern takes several."""
    SOURCE = auto()
    """How the input is made; `FROM_FILE` among its options says that it is read."""
    SIZE = auto()
    """How many elements, columns or bodies are made."""
    TYPE = auto()
    """The elements' type, as NumPy calls it."""
    BLOCK = auto()
    """The threads of a block."""
    TEXT = auto()
    """The text that is the input."""
    VALUES = auto()
    """The numbers that are the input, as somebody typed them."""
    BINS = auto()
    """How many bins there are."""
    COEFFICIENTS = auto()
    """The values of a filter, where it is none that has a name."""
    STEPS = auto()
    """The steps of time that a run takes."""
    TIME_STEP = auto()
    """How long a step of time is."""
    SOFTENING = auto()
    """The length below which gravity fades."""
