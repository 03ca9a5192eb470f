"""The columns of a trace's tables."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from gpu.simulator.trace.recorder import EVENT
from gpu.simulator.trace.trace import Trace

Array = npt.NDArray[Any]


def event_column(trace: Trace, name: str) -> Array:
    """Return a column of the events: int32, one an event."""
    column: Array = trace.data.arrays["events"][:, EVENT.index(name)]
    return column
