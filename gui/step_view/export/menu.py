"""The Export button of the Step tab: a picture, an animation, the recording itself, or a copy for the clipboard."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PyQt6.QtCore import QObject, QPoint, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QImage, QPainter
from PyQt6.QtWidgets import QApplication, QFileDialog, QMenu, QWidget

from gui.painting.theme import look
from gui.step_view.arrays.view import MemoryView
from gui.step_view.dataflow.view import FlowView
from gui.step_view.export.files import FRAME, Caption, Film, FlowPicture, frames_of, paint_footer, write_svg
from gui.step_view.time.player import STEPS_A_SECOND

if TYPE_CHECKING:
    from gui.step_view.tab import StepTab

_PICTURES = "PNG image (*.png);;SVG drawing (*.svg)"
_FILMS = "GIF animation (*.gif);;MP4 film (*.mp4)"
_RECORDINGS = "Recording (*.lockstep)"
_ADVICE = "Choose a folder that you may write to"
_FOOTER = 84
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
_RIGHT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
_HEAD = 48


class Exports(QObject):
    """What a tab can be saved as.

    Parameters
    ----------
    tab : StepTab
    """

    said = pyqtSignal(str)
    """What has been done."""
    failed = pyqtSignal(str, str)
    """What could not be done, and what to do about it."""

    def __init__(self, tab: StepTab) -> None:
        super().__init__(tab)
        self._tab = tab
        self.film: Film | None = None
        self._view: QWidget | None = None
        self.menu = QMenu(tab)
        for text, do in (
            ("Picture…", self.ask_picture),
            ("Animation…", self.ask_film),
            ("Recording…", self.ask_recording),
            ("Copy picture", self.copy),
        ):
            action = self.menu.addAction(text)
            assert action is not None
            action.triggered.connect(lambda _=False, do=do: do())

    def open(self, at: QWidget) -> None:
        """Show the menu above a widget."""
        self.menu.popup(at.mapToGlobal(QPoint(0, -self.menu.sizeHint().height())))

    @property
    def stem(self) -> str:
        """How the names of files begin."""
        return f"{self._tab.pattern.name}-{self._tab.variant}"

    @property
    def _caption(self) -> Caption:
        tab = self._tab
        return Caption(f"{tab.pattern.title}: {tab.pattern.variant(tab.variant).title}", tab.settings.text)

    def _ask(self, title: str, kinds: str) -> Path | None:
        suffix = kinds.split("*")[1].split(")")[0]
        name, chosen = QFileDialog.getSaveFileName(self._tab, title, str(Path.home() / f"{self.stem}{suffix}"), kinds)
        if not name:
            return None
        path = Path(name)
        suffix = chosen.split("*")[1].split(")")[0] if "*" in chosen else suffix
        return path if path.suffix else path.with_name(path.name + suffix)

    # --- pictures

    def ask_picture(self) -> None:
        """Ask where to, and save a picture as the tab shows it."""
        path = self._ask("Save picture", _PICTURES)
        if path is not None:
            self.write_picture(path)

    def write_picture(self, path: Path) -> bool:
        """Write the whole dataflow, or the arrays, at the moment that is shown; say so, or why not."""
        tab = self._tab
        if tab.models is None:
            self.failed.emit("There is nothing to save yet.", "")
            return False
        if tab.shows_flow:
            well = self._flow_picture().write(path, tab.player.moment, tab.flow.marks.lit)
        else:
            well = _write_widget(tab.pictures.currentWidget() or tab, path)
        if well:
            self.said.emit(f"Saved {path.name}")
        else:
            self.failed.emit(f"{path.name} cannot be written.", f"{_ADVICE}, and .png or .svg.")
        return well

    def copy(self) -> None:
        """Put the picture on the clipboard."""
        clipboard, tab = QApplication.clipboard(), self._tab
        if tab.models is None or clipboard is None:
            return
        if tab.shows_flow:
            clipboard.setImage(self._flow_picture().image(tab.player.moment, tab.flow.marks.lit))
        else:
            clipboard.setPixmap((tab.pictures.currentWidget() or tab).grab())
        self.said.emit("Copied the picture")

    def _flow_picture(self) -> FlowPicture:
        tab = self._tab
        assert tab.models is not None
        assert tab.flow.viewport.layout is not None
        return FlowPicture(
            tab.flow.viewport.layout, tab.models.warps, self._caption, several_blocks=tab.models.several_blocks
        )

    # --- the recording

    def ask_recording(self) -> None:
        """Ask where to, and save the recording."""
        path = self._ask("Save recording", _RECORDINGS)
        if path is not None:
            self.write_recording(path)

    def write_recording(self, path: Path) -> bool:
        """Copy the recording's file; say so, or why not."""
        if self._tab.models is None:
            self.failed.emit("There is nothing to save yet.", "")
            return False
        try:
            shutil.copyfile(self._tab.stepper.path, path)
        except OSError as error:
            self.failed.emit(f"{path.name} cannot be written: {error.strerror}.", f"{_ADVICE}.")
            return False
        self.said.emit(f"Saved {path.name}")
        return True

    # --- animations

    def ask_film(self) -> None:
        """Ask where to, and save an animation of the whole recording."""
        path = self._ask("Save animation", _FILMS)
        if path is not None:
            self.write_film(path)

    def write_film(self, path: Path) -> None:
        """Begin to write an animation from the first step to the last, at the speed that is chosen."""
        tab = self._tab
        if tab.models is None or self.film is not None:
            self.failed.emit("An animation is being saved." if self.film else "There is nothing to save yet.", "")
            return
        if path.suffix.lower() not in (".gif", ".mp4"):
            self.failed.emit(f"{path.name} cannot be written.", "Let the name end in .gif or .mp4.")
            return
        moments, rate = frames_of(tab.player.end, STEPS_A_SECOND * tab.player.speed)
        self.film = Film(path, moments, self._frame_painter(), rate, self)
        self.film.progressed.connect(lambda share: tab.state.say(f"saving {share:.0%}", "neutral"))
        self.film.finished.connect(lambda problem: self._finish(path, problem))
        self.film.start()

    def _finish(self, path: Path, problem: str) -> None:
        self.film = self._view = None
        self._tab.state.say("", "neutral")
        if problem:
            self.failed.emit(f"{path.name} cannot be written: {problem}", "")
        else:
            self.said.emit(f"Saved {path.name}")

    def cancel(self) -> None:
        """Give up an animation that is being written."""
        if self.film is not None:
            self.film.cancel()
            self.film = self._view = None

    def _frame_painter(self) -> Callable[[QPainter, int], None]:
        tab = self._tab
        # Of the recording as it is now: another may be shown before all frames are painted.
        models, caption, snapshots, end = tab.models, self._caption, tab.snapshots, tab.player.end
        assert models is not None
        assert snapshots is not None
        view: FlowView | MemoryView
        if tab.pictures.currentWidget() is tab.memory:
            view = MemoryView()
            view.hidden_too = True
        else:
            view = FlowView(patient=True)
        self._view = view
        view.resize(QSize(FRAME.width(), FRAME.height() - _FOOTER - _HEAD))
        if isinstance(view, FlowView):
            view.open(models.layout, models.warps, several_blocks=models.several_blocks)
        else:
            view.open(models)
        followed = tab.followed

        def paint(painter: QPainter, moment: int) -> None:
            if isinstance(view, FlowView):
                view.show_moment(moment)
            else:
                view.show_moment(moment, snapshots(moment, followed).block, followed)
            painter.fillRect(QRectF(0, 0, FRAME.width(), FRAME.height()), QColor(look().theme.surface))
            painter.setPen(QColor(look().theme.text))
            font = painter.font()
            font.setPixelSize(look().px(18))
            font.setBold(True)
            painter.setFont(font)
            head = QRectF(24, 0, FRAME.width() - 48, _HEAD)
            painter.drawText(head, _LEFT, caption.title)
            font.setPixelSize(look().px(13))
            font.setBold(False)
            painter.setFont(font)
            painter.setPen(QColor(look().theme.muted))
            painter.drawText(head, _RIGHT, caption.settings)
            view.render(painter, QPoint(0, _HEAD), flags=QWidget.RenderFlag.DrawChildren)
            now = snapshots(moment, followed)
            step = f"step {moment} of {end}"
            paint_footer(
                painter, QRectF(0, FRAME.height() - _FOOTER, FRAME.width(), _FOOTER), now.code, now.words, step
            )

        return paint


def _write_widget(widget: QWidget, path: Path) -> bool:
    size = widget.size()

    def paint(painter: QPainter) -> None:
        painter.fillRect(QRectF(0, 0, size.width(), size.height()), QColor(look().theme.surface))
        widget.render(painter, flags=QWidget.RenderFlag.DrawChildren)

    if path.suffix.lower() == ".svg":
        return write_svg(path, size, paint)
    image = QImage(size * 2, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(2)
    painter = QPainter(image)
    paint(painter)
    painter.end()
    return image.save(str(path))
