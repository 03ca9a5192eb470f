"""Exported files: images and SVG drawings, each written completely or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import QBuffer, QIODevice, QRectF, QSize
from PyQt6.QtGui import QImage, QPainter, QPixmap
from PyQt6.QtSvg import QSvgGenerator

from gpu.base.errors import InputError
from gpu.files.file_access import format_path, write_file

_NOT_IN_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]|\xed[\xa0-\xbf][\x80-\xbf]")
"""Encoded characters that XML does not allow: control characters, surrogates, U+FFFE and U+FFFF."""


def write_image(path: Path, image: QImage | QPixmap) -> None:
    """Write an image in the format of the name's suffix; raise InputError if that fails."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not image.save(buffer, path.suffix.removeprefix(".") or "-"):
        raise InputError(f"Cannot write {format_path(path)}: {path.suffix or 'its name'} names no format of images.")
    write_file(path, buffer.data().data())


def write_painting(path: Path, size: QSize, paint: Callable[[QPainter], None], ratio: float) -> None:
    """Write what `paint` paints: as SVG by the name's suffix, else as an image; raise InputError if that fails.

    Parameters
    ----------
    ratio : float
        The image's pixels per unit of `size`.
    """
    if path.suffix.lower() == ".svg":
        write_svg(path, size, paint)
    else:
        write_image(path, paint_image(size, paint, ratio))


def paint_image(size: QSize, paint: Callable[[QPainter], None], ratio: float) -> QImage:
    """Return what `paint` paints as an image with `ratio` pixels per unit of `size`."""
    image = QImage(size * ratio, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    painter = QPainter(image)
    paint(painter)
    painter.end()
    return image


def write_svg(path: Path, size: QSize, paint: Callable[[QPainter], None]) -> None:
    """Write what `paint` paints as an SVG file; raise InputError if that fails."""
    write_file(path, paint_svg(size, paint))


def paint_svg(size: QSize, paint: Callable[[QPainter], None]) -> bytes:
    """Return what `paint` paints as an SVG drawing."""
    drawing = QBuffer()
    generator = QSvgGenerator()
    generator.setOutputDevice(drawing)
    generator.setSize(size)
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    painter = QPainter(generator)
    paint(painter)
    painter.end()
    return _NOT_IN_XML.sub("\ufffd".encode(), drawing.data().data())
