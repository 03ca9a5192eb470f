"""What a kernel does besides computing: it prints, asserts, and orders its memory accesses."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.frame import Frame
from gpu.simulator.executor.lanes import Mask
from gpu.simulator.executor.printf import format_c


def print_lanes(frame: Frame, mask: Mask, text: str, values: list[Any]) -> np.int32:
    """Format a text for each lane, in lane order, and return what printf does."""
    for lane in mask.lanes:
        own = [value[lane] if isinstance(value, np.ndarray) else value for value in values]
        frame.gang.printed.append((int(lane), format_c(text, own)))
    return np.int32(len(values))


def tell_fence(frame: Frame, name: str, mask: Mask, named: Any) -> None:
    """Let an observer know of a fence; lanes that go together have nothing left to order."""
    if frame.gang.observer is not None:
        frame.gang.observer.fence(frame.gang, name, mask, named)


def assert_lanes(frame: Frame, mask: Mask, holds: Any, text: str, position: SourcePosition) -> None:
    """End the launch where a lane finds an assertion false."""
    _, failed = mask.split(holds)
    if failed is not None:
        raise LaunchError(
            f"{position}: {frame.gang.describe(int(failed.lanes[0]))} finds the assertion `{text}` false.",
            position=position,
            kind="assertion",
            thread=frame.gang.describe(int(failed.lanes[0])),
        )
