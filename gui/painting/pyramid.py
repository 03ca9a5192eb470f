"""Image pyramid: repeatedly halved copies, computed in the background, to paint a picture at any zoom."""

from __future__ import annotations

from typing import Any

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtGui import QImage
from PyQt6.sip import voidptr

from gpu.declaration.pattern import Array
from gui.qt.background import run_in_background

_MIN_SIZE = 256
_ROWS_PER_STEP = 128
"""Rows halved at a time: few enough that the main thread can run in between."""


def to_qimage(picture: Array) -> QImage:
    """Return a QImage that shares a uint8 picture's memory; the caller must keep the array alive."""
    height, width = picture.shape[:2]
    gray = picture.ndim == 2
    kind = QImage.Format.Format_Grayscale8 if gray else QImage.Format.Format_RGB888
    memory: Any = voidptr(picture.ctypes.data)  # the stubs declare a different voidptr
    return QImage(memory, width, height, picture.strides[0], kind)


def halve_picture(picture: Array) -> Array:
    """Return the means of all 2 x 2 pixel groups; an odd last row or column is dropped."""
    height, width = picture.shape[0] // 2, picture.shape[1] // 2
    out = np.empty((height, width, *picture.shape[2:]), np.uint8)
    for top in range(0, height, _ROWS_PER_STEP):
        rows = picture[2 * top : 2 * min(top + _ROWS_PER_STEP, height), : 2 * width]
        total = rows[0::2, 0::2].astype(np.uint16)
        for corner in (rows[1::2, 0::2], rows[0::2, 1::2], rows[1::2, 1::2]):
            total += corner
        out[top : top + _ROWS_PER_STEP] = (total + 2) >> 2
    return out


class Pyramid(QObject):
    """A picture and its halved copies; `completed` is emitted when all copies exist."""

    completed = pyqtSignal()

    def __init__(self, picture: Array) -> None:
        super().__init__()
        self.shape: tuple[int, int] = (picture.shape[0], picture.shape[1])
        self._arrays = [picture]
        self._images = [to_qimage(picture)]
        self._abandoned = False
        if max(self.shape) > 2 * _MIN_SIZE:
            run_in_background(self._compute_levels)

    def _compute_levels(self) -> None:
        smaller = self._arrays[0]
        while max(smaller.shape[:2]) > _MIN_SIZE and min(smaller.shape[:2]) > 1 and not self._abandoned:
            smaller = halve_picture(smaller)
            self._arrays.append(smaller)
            self._images.append(to_qimage(smaller))
        if not self._abandoned:
            self.completed.emit()

    def abandon(self) -> None:
        """Stop computing copies, because the picture is no longer shown."""
        self._abandoned = True

    def level_for(self, scale: float) -> QImage:
        """Return the copy to paint where one picture pixel covers `scale` screen pixels."""
        level = 0
        while level + 1 < len(self._images) and scale * 2 ** (level + 1) <= 1.0:
            level += 1
        return self._images[level]
