"""Colors of the Step tab: one per warp, and blends of theme colors."""

from __future__ import annotations

from functools import lru_cache

from PyQt6.QtGui import QColor

from gui.painting.theme import Theme

# Red, amber and the theme's green are left out: they mark errors, warnings and success.
_WARPS = {
    "dark": ("#4cc2ff", "#b79cff", "#45d6c0", "#f2a66a", "#f08cc4", "#a9d35f", "#8fb4e8", "#d9c46a"),
    "light": ("#0969c3", "#6d46c9", "#0b7a70", "#a8520e", "#ad2f7b", "#4c7612", "#3f6596", "#7d6500"),
}


@lru_cache(maxsize=64)
def warp_color(theme: Theme, warp: int) -> QColor:
    """Return the color of a warp by its number in the grid."""
    colors = _WARPS[theme.name]
    return QColor(colors[warp % len(colors)])


@lru_cache(maxsize=512)
def mix_colors(color: str, ground: str, share: float) -> QColor:
    """Return a blend of `share` of `color` and 1 - `share` of `ground`."""
    first, second = QColor(color), QColor(ground)
    parts = zip(first.getRgb()[:3], second.getRgb()[:3], strict=True)
    return QColor(*(round(share * a + (1 - share) * b) for a, b in parts))
