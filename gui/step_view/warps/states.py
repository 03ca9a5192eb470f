"""Colors and names of the warps' states."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from PyQt6.QtGui import QColor

from gpu.timing.timeline import WarpState
from gui.painting.theme import Theme

ABSENT = len(WarpState)
"""Value next to the states for an absent warp: no block is resident, or the warp has finished."""

STATE_NAMES = {
    WarpState.ISSUING: "issuing",
    WarpState.ELIGIBLE: "ready, not selected",
    WarpState.DEPENDENCY: "waits for a result",
    WarpState.MEMORY: "waits for memory",
    WarpState.SHARED: "waits for shared memory",
    WarpState.PIPE: "waits for its pipe",
    WarpState.BARRIER: "waits at a barrier",
}

SHORT_STATE_NAMES = {
    WarpState.ISSUING: "issuing",
    WarpState.ELIGIBLE: "ready",
    WarpState.DEPENDENCY: "result",
    WarpState.MEMORY: "memory",
    WarpState.SHARED: "shared",
    WarpState.PIPE: "pipe",
    WarpState.BARRIER: "barrier",
}
"""Short names for little space."""

# Chosen to be distinguishable with color blindness too; paler colors mean less waiting.
_COLORS = {
    "dark": ("#35e191", "#135f44", "#8b919b", "#e76218", "#f5dc52", "#cf86e0", "#2d76f1"),
    "light": ("#0ca466", "#94d2b9", "#707478", "#da620f", "#f7cd29", "#b84fd0", "#134787"),
}


@lru_cache(maxsize=32)
def state_color(theme: Theme, state: int) -> QColor:
    """Return the color of a state; the background for ABSENT."""
    return QColor(theme.surface if state == ABSENT else _COLORS[theme.name][state])


@lru_cache(maxsize=4)
def palette_of(theme: Theme) -> npt.NDArray[Any]:
    """Return the colors of all states and of ABSENT, uint32 as QRgb."""
    return np.array([state_color(theme, state).rgb() for state in range(ABSENT + 1)], np.uint32)
