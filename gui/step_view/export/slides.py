"""Slides: an image of each phase of a recording, as SVG and PNG, in a ZIP archive or a folder."""

from __future__ import annotations

import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from PyQt6.QtCore import QBuffer, QIODevice, QObject, QRectF, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QColor, QFont, QImage, QPainter

from gpu.base.errors import InputError
from gpu.files.file_access import check_target, replace_file, replace_path
from gui.painting.theme import FONT_SIZES, LIGHT, Look
from gui.qt.background import run_in_background
from gui.qt.exported_files import paint_image, paint_svg
from gui.step_view.dataflow.labels import label_font
from gui.step_view.export.files import FRAME_SIZE, Caption
from gui.step_view.export.handout import SIDE, Handout, Paint

STRIP_WIDTH = 720
"""Width of a phase's figure in the handout's units; the slide is wider, so the text becomes larger."""
MAX_SLIDES = 200
_MARGIN = 40
_HEAD_HEIGHT = 64
_RATIO = 2
"""Pixels of a PNG image per unit of the slide."""
_MAX_NAME_LENGTH = 40


class Slide(NamedTuple):
    """A slide of the size of a film's frame: the start of its file names, and a function that paints it."""

    name: str
    paint: Paint


def make_slides(handout: Handout, caption: Caption) -> list[Slide]:
    """Return a slide for each phase of a handout; the names are numbered in order.

    Parameters
    ----------
    handout : Handout
        Of width `STRIP_WIDTH`.
    caption : Caption
        Title and settings, repeated on each slide.
    """
    phases, panels = handout.phases, handout.panels[1:]
    digits = max(2, len(str(len(phases))))
    return [
        Slide(
            f"{number:0{digits}}-{_make_file_name(phase.name)}",
            _make_painter(handout.width, panel.height, panel.paint, caption),
        )
        for number, (phase, panel) in enumerate(zip(phases, panels, strict=True), 1)
    ]


def _make_file_name(name: str) -> str:
    """Return a phase's name as a part of a file name that is valid on every system."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return words[:_MAX_NAME_LENGTH].strip("-") or "phase"


def _make_painter(width: float, height: float, paint_panel: Paint, caption: Caption) -> Paint:
    """Return a function that paints a panel as large as fits below the caption."""
    room_width, room_height = FRAME_SIZE.width() - 2 * _MARGIN, FRAME_SIZE.height() - _HEAD_HEIGHT - _MARGIN
    scale = min(room_width / (width - 2 * SIDE), room_height / height)  # the panel's text begins below the caption

    def paint(painter: QPainter) -> None:
        painter.fillRect(QRectF(0, 0, FRAME_SIZE.width(), FRAME_SIZE.height()), QColor(LIGHT.surface))
        painter.save()
        painter.translate((FRAME_SIZE.width() - width * scale) / 2, _HEAD_HEIGHT + (room_height - height * scale) / 2)
        painter.scale(scale, scale)
        paint_panel(painter)
        # SVG drawings are not clipped: hide the lines to the first row above the panel.
        painter.fillRect(QRectF(-width, -height, 3 * width, height), QColor(LIGHT.surface))
        painter.restore()
        head = QRectF(_MARGIN, 0, room_width, _HEAD_HEIGHT)
        font = QFont(label_font(Look(LIGHT, FONT_SIZES["normal"])))
        for text, px, color, side in (
            (caption.title, 24, LIGHT.text, Qt.AlignmentFlag.AlignLeft),
            (caption.settings, 18, LIGHT.muted, Qt.AlignmentFlag.AlignRight),
        ):
            font.setPixelSize(px)
            font.setBold(color == LIGHT.text)
            painter.setFont(font)
            painter.setPen(QColor(color))
            painter.drawText(head, side | Qt.AlignmentFlag.AlignVCenter, text)

    return paint


class SlideWriter(QObject):
    """Writer of slides: it paints one at a time between other events, and encodes and writes in the background.

    Parameters
    ----------
    path : Path
        A .zip archive, or a folder that does not exist yet.
    """

    progressed = pyqtSignal(float)
    finished = pyqtSignal(str)
    """Why the slides could not be written, or "" on success."""
    _encoded = pyqtSignal(bytes)

    def __init__(self, path: Path, slides: list[Slide], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path, self._slides = path, slides
        self._files: list[tuple[str, bytes]] = []
        self._canceled = False
        self._encoded.connect(self._add_image)

    def start(self) -> None:
        """Start painting; nothing is painted if the target cannot be written."""
        try:
            check_target(self._path)
        except InputError as error:
            self.finished.emit(error.message)
            return
        self._paint_next()

    def cancel(self) -> None:
        """Stop, and write nothing."""
        self._canceled = True

    def _paint_next(self) -> None:
        number = len(self._files) // 2
        if self._canceled:
            return
        if number == len(self._slides):
            run_in_background(self._write)
            return
        slide = self._slides[number]
        self._files.append((f"{slide.name}.svg", paint_svg(FRAME_SIZE, slide.paint)))
        image = paint_image(FRAME_SIZE, slide.paint, _RATIO)
        run_in_background(lambda: self._encode(image))

    def _encode(self, image: QImage) -> None:
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        image.save(buffer, "PNG")
        with suppress(RuntimeError):  # the tab may have been deleted in the meantime
            self._encoded.emit(buffer.data().data())

    def _add_image(self, data: bytes) -> None:
        self._files.append((f"{self._slides[len(self._files) // 2].name}.png", data))
        self.progressed.emit(len(self._files) / (2 * len(self._slides)))
        QTimer.singleShot(0, self._paint_next)

    def _write(self) -> None:
        """Write all files, or none."""
        problem = ""
        try:
            if self._path.suffix.lower() == ".zip":
                with replace_file(self._path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                    for name, data in self._files:
                        archive.writestr(name, data)
            else:
                with replace_path(self._path) as folder:
                    folder.mkdir()
                    for name, data in self._files:
                        (folder / name).write_bytes(data)
        except InputError as error:
            problem = error.message
        with suppress(RuntimeError):  # the tab may have been deleted in the meantime
            self.finished.emit(problem)
