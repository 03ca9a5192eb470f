"""How the states of warps look, and what they are called."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from PyQt6.QtGui import QColor

from gpu.timing.timeline import WarpState
from gui.painting.theme import Theme

ABSENT = len(WarpState)
"""Beside the states: no block is there, or the warp has ended."""

NAMES = {
    WarpState.ISSUING: "issuing",
    WarpState.ELIGIBLE: "ready, not its turn",
    WarpState.DEPENDENCY: "waits for a result",
    WarpState.MEMORY: "waits for memory",
    WarpState.SHARED: "waits for shared memory",
    WarpState.PIPE: "its pipe is taken",
    WarpState.BARRIER: "waits at a barrier",
}

SHORT = {
    WarpState.ISSUING: "issuing",
    WarpState.ELIGIBLE: "ready",
    WarpState.DEPENDENCY: "result",
    WarpState.MEMORY: "memory",
    WarpState.SHARED: "shared",
    WarpState.PIPE: "pipe",
    WarpState.BARRIER: "barrier",
}
"""The same in a word, where there is little room."""

# Chosen by how far apart they are for eyes that lack one of the cones, too; what waits least is the palest.
_COLORS = {
    "dark": ("#35e191", "#135f44", "#8b919b", "#e76218", "#f5dc52", "#cf86e0", "#2d76f1"),
    "light": ("#0ca466", "#94d2b9", "#707478", "#da620f", "#f7cd29", "#b84fd0", "#134787"),
}


@lru_cache(maxsize=32)
def state_color(theme: Theme, state: int) -> QColor:
    """Return the color of a state; of ABSENT that of the ground."""
    return QColor(theme.surface if state == ABSENT else _COLORS[theme.name][state])


@lru_cache(maxsize=4)
def palette_of(theme: Theme) -> npt.NDArray[Any]:
    """Return the colors of all states, and of ABSENT, as words of 32 bits."""
    return np.array([state_color(theme, state).rgb() for state in range(ABSENT + 1)], np.uint32)
