"""The values of a picture's pixels: as text, and written in pixels that are large enough."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QImage, QPainter

from gpu.declaration.pattern import Array
from gui.painting.theme import code_font, look
from gui.widgets.basic import format_figure

_MARGIN = 0.1
"""Free space at each side of a pixel, relative to its size."""
_MAX_FONT_SHARE = 0.34
"""Largest font, relative to a pixel."""
_DARK, _LIGHT = QColor("#000000"), QColor("#ffffff")
_MIN_BRIGHTNESS_FOR_DARK_TEXT = 118
"""The gray level at which black and white text have about the same contrast."""


def describe_pixel(values: Array, pixel: tuple[int, int]) -> str:
    """Return a pixel's coordinates and its value, or the three values of a color; no value outside the array."""
    return f"x {pixel[0]}  y {pixel[1]}   {' '.join(_format_parts(values, pixel))}"


def _format_parts(values: Array, pixel: tuple[int, int]) -> list[str]:
    x, y = pixel
    if y >= values.shape[0] or x >= values.shape[1]:
        return []
    value = values[y, x]
    parts = [value] if values.ndim == 2 else list(value)
    return [str(int(part)) if values.dtype.kind in "ui" else format_figure(float(part)) for part in parts]


def paint_pixel_values(painter: QPainter, values: Array, picture: QImage, visible: QRectF) -> None:
    """Write the values of the visible pixels in them, a line per channel, if all of them fit in legible text.

    Parameters
    ----------
    painter : QPainter
        In the picture's coordinates: one unit per pixel.
    values : array of shape (rows, columns) or (rows, columns, channels)
    picture : QImage
        The picture, whose colors are behind the texts.
    visible : QRectF
        The visible part, in pixels.
    """
    transform = painter.transform()
    size = abs(transform.m11())
    smallest = look().small_px
    channels = 1 if values.ndim == 2 else values.shape[2]
    # One digit must fit, at least; this excludes pictures of many pixels without formatting their values.
    if size * (1 - 2 * _MARGIN) < max(channels * smallest, QFontMetricsF(code_font(smallest)).horizontalAdvance("0")):
        return
    left, top = max(int(visible.left()), 0), max(int(visible.top()), 0)
    right, bottom = min(int(visible.right()) + 1, values.shape[1]), min(int(visible.bottom()) + 1, values.shape[0])
    texts = {(x, y): _format_parts(values, (x, y)) for y in range(top, bottom) for x in range(left, right)}
    longest = max((part for parts in texts.values() for part in parts), key=len, default="")
    pixels = int(min(_MAX_FONT_SHARE * size, (1 - 2 * _MARGIN) * size / (1.2 * channels)))
    while pixels >= smallest and _width(longest, pixels) > (1 - 2 * _MARGIN) * size:
        pixels -= 1
    if pixels < smallest:
        return
    painter.save()
    painter.resetTransform()
    painter.setFont(code_font(pixels))
    for (x, y), parts in texts.items():
        box = QRectF(transform.map(QPointF(x, y)), transform.map(QPointF(x + 1, y + 1))).normalized()
        is_bright = picture.pixelColor(x, y).lightness() > _MIN_BRIGHTNESS_FOR_DARK_TEXT
        painter.setPen(_DARK if is_bright else _LIGHT)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "\n".join(parts))
    painter.restore()


def _width(text: str, pixels: int) -> float:
    return QFontMetricsF(code_font(pixels)).horizontalAdvance(text)
