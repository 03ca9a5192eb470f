"""Colors of an array's cells, and marks on the accessed cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from PyQt6.QtGui import QColor

from gpu.declaration.pattern import Array
from gui.painting.colors import mix_colors
from gui.painting.theme import look
from gui.step_view.arrays.panels import Panel

_LIGHT_LUMINANCE = 0.18
"""Relative luminance above which dark text is more readable than light text."""

ValueRange = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Mark:
    """Cells that one warp accesses.

    Parameters
    ----------
    cells : int array
        Row-major cell numbers.
    color : QColor
        The warp's color.
    strong : bool
        False if another thread is followed.
    """

    cells: Array
    color: QColor
    strong: bool
    writes: bool

    @property
    def fill_color(self) -> QColor:
        """Return the fill color, which is stronger for writes."""
        return self._with_opacity(0.62 if self.writes else 0.18)

    @property
    def frame_color(self) -> QColor:
        """Return the frame color."""
        return self._with_opacity(1.0)

    def _with_opacity(self, opacity: float) -> QColor:
        color = QColor(self.color)
        color.setAlphaF(opacity * (1.0 if self.strong else 0.25))
        return color


class Shades:
    """Background colors of one array's cells, updated where the array changed.

    Attributes
    ----------
    colors : uint32 array, shape (rows, columns)
        Colors as QRgb.
    light : bool array, same shape
        True for cells that need dark text.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.colors: Array = np.zeros(shape, np.uint32)
        self.light: Array = np.zeros(shape, bool)
        self._panel: Panel | None = None
        self._range: ValueRange | None = None

    def update_panel(self, panel: Panel, value_range: ValueRange | None) -> Array:
        """Set a panel, dark for small values of `value_range`, light for large; return the mask of changed cells."""
        before, self._panel = self._panel, panel
        if before is not None and self._range == value_range and _panels_equal(before, panel):
            return np.zeros(panel.shape, bool)
        self._range = value_range
        old, self.colors = self.colors, _compute_colors(panel, _scale_values(panel, value_range))
        self.light = are_light(self.colors)
        if before is None or before.values.dtype != panel.values.dtype:
            return np.ones(panel.shape, bool)
        values_differ = (_to_bytes(before.values) != _to_bytes(panel.values)).any(axis=-1)
        changed: Array = (self.colors != old) | (before.has_value != panel.has_value) | values_differ
        return changed


def blend_marks(colors: Array, marks: Sequence[Mark], *, frames: bool = False) -> Array:
    """Return cell colors, uint32 as QRgb, blended with the marks' fill colors, or with their frame colors.

    Where marks of one kind overlap, the last one is visible.
    """
    result: Array = colors.copy()
    for _, same_kind in groupby(marks, lambda mark: (mark.writes, mark.strong)):
        group = list(same_kind)
        over = [mark.frame_color if frames else mark.fill_color for mark in group]
        share = over[0].alphaF()
        cells = np.concatenate([mark.cells for mark in group])
        laid = np.repeat([color.getRgb()[:3] for color in over], [mark.cells.size for mark in group], axis=0)
        parts = np.round((1 - share) * _split_channels(result[cells]) + share * laid).astype(np.uint32)
        result[cells] = np.uint32(0xFF000000) | parts[:, 0] << 16 | parts[:, 1] << 8 | parts[:, 2]
    return result


def are_light(colors: Array) -> Array:
    """Return which colors, uint32 as QRgb, need dark text, by their relative luminance as defined in WCAG 2."""
    light: Array = (_split_channels(colors) / 255) ** 2.2 @ np.array([0.2126, 0.7152, 0.0722]) > _LIGHT_LUMINANCE
    return light


def _split_channels(colors: Array) -> Array:
    """Return red, green and blue in an added last axis."""
    channels: Array = colors[..., np.newaxis] >> np.array([16, 8, 0], np.uint32) & 0xFF
    return channels


def _panels_equal(one: Panel, other: Panel) -> bool:
    return (
        one.values.dtype == other.values.dtype
        and one.values.tobytes() == other.values.tobytes()
        and np.array_equal(one.has_value, other.has_value)
    )


def _to_bytes(values: Array) -> Array:
    """Return the values as bytes, shape (rows, columns, bytes), so that NaN equals NaN."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, values.dtype.itemsize)


def _scale_values(panel: Panel, value_range: ValueRange | None) -> Array:
    """Return each value's position in the range `value_range`, clipped to 0 to 1."""
    low, high = value_range or (0.0, 1.0)
    with np.errstate(all="ignore"):
        share = (panel.values.astype(float) - low) / ((high - low) or 1.0)
    return np.clip(np.nan_to_num(share, nan=0.0), 0, 1)


def _compute_colors(panel: Panel, share: Array) -> Array:
    """Return the color of each cell: uint32, as QRgb."""
    dark, light = (np.array(QColor(each).getRgb()[:3], float) for each in ("#1c232d", "#dfe6ef"))
    parts = (dark + share[..., np.newaxis] * (light - dark)).astype(np.uint32)
    rgb = np.uint32(0xFF000000) | parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2]
    rgb[~panel.has_value] = mix_colors(look().theme.border, look().theme.surface, 0.35).rgb()
    rgb[~panel.is_inside.reshape(panel.shape)] = QColor(look().theme.surface).rgb()
    colors: Array = rgb.astype(np.uint32)
    return colors
