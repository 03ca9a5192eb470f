"""Colors of the Step tab: one a warp, and mixtures of a theme's own."""

from __future__ import annotations

from functools import lru_cache

from PyQt6.QtGui import QColor

from gui.painting.theme import Theme

# Red, amber and the good green are left out: they say something.
_WARPS = {
    "dark": ("#4cc2ff", "#b79cff", "#45d6c0", "#f2a66a", "#f08cc4", "#a9d35f", "#8fb4e8", "#d9c46a"),
    "light": ("#0969c3", "#6d46c9", "#0b7a70", "#a8520e", "#ad2f7b", "#4c7612", "#3f6596", "#7d6500"),
}


@lru_cache(maxsize=64)
def warp_color(theme: Theme, warp: int) -> QColor:
    """Return the color of a warp, numbered through the grid."""
    colors = _WARPS[theme.name]
    return QColor(colors[warp % len(colors)])


@lru_cache(maxsize=512)
def mixed(color: str, ground: str, share: float) -> QColor:
    """Return `ground` with a share of `color` in it."""
    one, other = QColor(color), QColor(ground)
    parts = zip(one.getRgb()[:3], other.getRgb()[:3], strict=True)
    return QColor(*(round(share * a + (1 - share) * b) for a, b in parts))
