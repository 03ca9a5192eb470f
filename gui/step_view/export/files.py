"""Picture and animation files of a recording, painted frame by frame and encoded in the background."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PyQt6.QtCore import QObject, QPointF, QRectF, QSize, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QColor, QImage, QPainter

from gpu.base.errors import InputError
from gpu.declaration.pattern import Array
from gui.model.films import FilmAbandonedError, write_film
from gui.painting.theme import code_font, look, resize_font
from gui.qt.exported_files import paint_image, write_painting
from gui.step_view.dataflow.flow_painter import FlowPainter
from gui.step_view.dataflow.labels import label_font, label_width
from gui.step_view.dataflow.layout import DataflowLayout, compute_metrics

_COLUMN_WIDTH = 40.0
_MARGIN = 16
_MAX_IMAGE_WIDTH = 16_000
"""Maximum width and height in pixels of an image of a whole dataflow."""
FRAME_SIZE = QSize(1280, 720)
MAX_FRAMES = 600
_MAX_QUEUED_FRAMES = 6


@dataclass(frozen=True)
class Caption:
    """Texts above a picture; `phase` is the phase of its moment, or ""."""

    title: str
    settings: str
    phase: str = ""

    @property
    def right_text(self) -> str:
        """Return the text to the right of the title."""
        return "  ·  ".join(part for part in (self.phase, self.settings) if part)


class FlowPicture:
    """A picture of a whole dataflow with title and labels."""

    def __init__(self, layout: DataflowLayout, caption: Caption) -> None:
        self._look = look()
        self._layout, self._caption = layout, caption
        column = _COLUMN_WIDTH if layout.columns <= 64 else max(2.0, 2560 / layout.columns)
        sizes = compute_metrics(self._look, column, label_width(layout, self._look, 260))
        self._painter = FlowPainter(layout, sizes, self._look)
        self._head = self._look.px(40)
        width = sizes.label + layout.width(sizes) + _MARGIN
        self.size = QSize(round(max(width, self._look.px(420))), round(self._head + layout.height(sizes) + _MARGIN))

    def paint(self, painter: QPainter, moment: int, highlighted: dict[int, list[int]] | None = None) -> None:
        """Paint the dataflow at a moment, highlighting the cells in `highlighted`, or else those of the last event."""
        theme, layout, flow = self._look.theme, self._layout, self._painter
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(QRectF(0, 0, self.size.width(), self.size.height()), QColor(theme.surface))
        font = resize_font(label_font(self._look), self._look.text_px)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor(theme.text))
        head = QRectF(self._look.px(14), 0, self.size.width() - 2 * self._look.px(14), self._head)
        painter.drawText(head, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self._caption.title)
        painter.setFont(label_font(self._look))
        painter.setPen(QColor(theme.muted))
        painter.drawText(head, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, self._caption.right_text)
        current = layout.row_at(moment)
        if current >= 0 and not highlighted:
            flow.labels.paint_band(painter, current, self._head, self.size.width())
        rows = range(len(layout.rows))
        flow.labels.paint(painter, rows, moment, -1 if highlighted else current, self._head, self.size.width())
        painter.save()
        painter.translate(QPointF(flow.sizes.label, self._head))
        phases, done = layout.all_progress(moment)
        painter.setOpacity(0.4 if highlighted else 1.0)
        right = layout.width(flow.sizes)
        for row in rows:
            painter.save()
            gap = flow.sizes.pitch - flow.sizes.cell
            painter.setClipRect(QRectF(-2, flow.sizes.top(row) - gap, right + 4, flow.sizes.pitch + 2))
            flow.paint_row(painter, row, int(phases[row]), done, 0, right)
            painter.restore()
        painter.setOpacity(1.0)
        if highlighted:
            for row, cells in highlighted.items():
                flow.paint_highlight(painter, row, cells)
        elif current >= 0:
            flow.paint_highlight(painter, current, layout.cells_at(current, moment).tolist())
        painter.restore()

    @property
    def _ratio(self) -> float:
        """The pixels of an image per unit of the size: two, or fewer if the picture is very large."""
        return min(2.0, _MAX_IMAGE_WIDTH / max(self.size.width(), self.size.height()))

    def image(self, moment: int, highlighted: dict[int, list[int]] | None = None) -> QImage:
        """Return the picture as an image."""
        return paint_image(self.size, lambda painter: self.paint(painter, moment, highlighted), self._ratio)

    def write(self, path: Path, moment: int, highlighted: dict[int, list[int]] | None = None) -> None:
        """Write a .png or .svg file; raise InputError if that fails."""
        write_painting(path, self.size, lambda painter: self.paint(painter, moment, highlighted), self._ratio)


PaintFrame = Callable[[QPainter, int], None]


class Film(QObject):
    """Writer of an animation: it paints one frame at a time between other events, and encodes them in a thread.

    Parameters
    ----------
    path : Path
        A .gif or .mp4 file.
    moments : sequence of int
        The moment of each frame.
    paint : callable
        Paints a frame of size `FRAME_SIZE`, given a painter and a moment.
    """

    progressed = pyqtSignal(float)
    finished = pyqtSignal(str)
    """Why the file could not be written, or "" on success."""
    _encoding_ended = pyqtSignal(str)

    def __init__(
        self,
        path: Path,
        moments: Sequence[int],
        paint: PaintFrame,
        frames_per_second: float,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        gif = path.suffix.lower() == ".gif"
        samples = [moments[len(moments) // 2], moments[-1]] if gif else []
        self._path, self._moments, self._paint, self._rate = path, [*samples, *moments], paint, frames_per_second
        self._next = 0
        self._frames: queue.Queue[Array | None] = queue.Queue(_MAX_QUEUED_FRAMES)
        self._stopped = threading.Event()
        self._failed = threading.Event()
        self._timer = QTimer(self)
        self._timer.setInterval(4)
        self._timer.timeout.connect(self._paint_next)
        self._encoding_ended.connect(self._report_end)
        self._thread = threading.Thread(target=self._encode, daemon=True)

    def start(self) -> None:
        """Start painting and encoding."""
        self._thread.start()
        self._timer.start()

    def cancel(self) -> None:
        """Stop without replacing an existing file."""
        if self._timer.isActive() or self._thread.is_alive():
            self._timer.stop()
            self._stopped.set()
            self._thread.join()

    def _paint_next(self) -> None:
        if self._frames.full() or self._failed.is_set():
            return
        if self._next >= len(self._moments):
            self._timer.stop()
            self._frames.put(None)
            return
        image = QImage(FRAME_SIZE, QImage.Format.Format_RGB888)
        painter = QPainter(image)
        self._paint(painter, self._moments[self._next])
        painter.end()
        bits = image.constBits()
        assert bits is not None
        memory: Any = bits.asarray(image.sizeInBytes())
        pixels = np.frombuffer(memory, np.uint8)
        self._frames.put(pixels.reshape(FRAME_SIZE.height(), image.bytesPerLine())[:, : 3 * FRAME_SIZE.width()].copy())
        self._next += 1
        self.progressed.emit(self._next / len(self._moments))

    def _encode(self) -> None:
        problem = ""
        try:
            write_film(self._path, self._received_frames(), self._rate)
        except InputError as error:
            problem = str(error)
        except FilmAbandonedError:
            pass
        self._failed.set()
        self._encoding_ended.emit(problem)

    def _received_frames(self) -> Iterator[Array]:
        """Yield frames as they are painted."""
        while True:
            if self._stopped.is_set():
                raise FilmAbandonedError
            try:
                frame = self._frames.get(timeout=0.1)
            except queue.Empty:
                continue
            if frame is None:
                return
            yield frame.reshape(FRAME_SIZE.height(), FRAME_SIZE.width(), 3)

    def _report_end(self, problem: str) -> None:
        if self._stopped.is_set():
            return  # the thread sent this before it was joined, and another film may have begun
        self._timer.stop()
        self.finished.emit(problem)


def plan_frames(end: int, steps_per_second: float) -> tuple[list[int], float]:
    """Return the moments of a film's frames up to `end`, at most MOST_FRAMES, and its frames per second."""
    stride = max(1, -(-(end + 1) // MAX_FRAMES))
    moments = list(range(0, end + 1, stride))
    if moments[-1] != end:
        moments.append(end)
    rate = min(max(steps_per_second / stride, 1.0), 30.0)
    # Hold the last frame, so that it can be read.
    return moments + [end] * round(1.5 * rate), rate


def paint_footer(painter: QPainter, box: QRectF, code: str, effect: str, step: str) -> None:
    """Paint the footer of a frame.

    Parameters
    ----------
    box : QRectF
        The footer's box, below the frame's picture.
    code : str
        The last executed source line.
    effect : str
        The values that the line read and wrote.
    """
    theme, current_look = look().theme, look()
    painter.fillRect(box, QColor(theme.raised))
    painter.setFont(code_font(current_look.px(16)))
    painter.setPen(QColor(theme.text))
    inner = box.adjusted(24, 0, -24, 0)
    top = QRectF(inner.left(), inner.top() + 8, inner.width(), inner.height() / 2 - 6)
    bottom = QRectF(inner.left(), inner.top() + inner.height() / 2, inner.width(), inner.height() / 2 - 8)
    left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    painter.drawText(top, left, code.strip())
    painter.setPen(QColor(theme.accent))
    painter.drawText(bottom, left, effect)
    painter.setFont(label_font(current_look))
    painter.setPen(QColor(theme.muted))
    painter.drawText(top, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, step)
