"""Export menu of the Step tab: picture, animation, handout, slides, player, recording, or copy to the clipboard."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PyQt6.QtCore import QObject, QPoint, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QPainter
from PyQt6.QtWidgets import QApplication, QMenu, QWidget

from gpu.base.errors import InputError
from gpu.declaration.pattern import CountedText
from gpu.files.file_access import open_for_reading, replace_file, write_file
from gui.painting.theme import look
from gui.qt.background import run_in_background
from gui.qt.exported_files import paint_image, write_painting
from gui.step_view.arrays.view import MemoryView
from gui.step_view.dataflow.layout import DataflowLayout
from gui.step_view.dataflow.view import FlowView
from gui.step_view.export.files import (
    FRAME_SIZE,
    Caption,
    Film,
    FlowPicture,
    PaintFrame,
    paint_footer,
    plan_frames,
)
from gui.step_view.export.handout import Handout
from gui.step_view.export.html_player import write_page
from gui.step_view.export.slides import MAX_SLIDES, STRIP_WIDTH, SlideWriter, make_slides
from gui.step_view.recording.models import RecordingModels
from gui.step_view.time.snapshots import Snapshot, Snapshots, Thread
from gui.widgets.file_dialogs import choose_new_file

_PICTURE, _COPY = "Picture…", "Copy picture"
_PICTURES = "PNG image (*.png);;SVG drawing (*.svg)"
_FILMS = "GIF animation (*.gif);;MP4 film (*.mp4)"
_HANDOUTS = "PDF document (*.pdf);;SVG drawing (*.svg)"
_SLIDES = "ZIP archive (*.zip);;Folder (*)"
_PLAYERS = "HTML page (*.html)"
_RECORDINGS = "Recording (*.lockstep)"
_FOLDER_ADVICE = "Choose a writable folder"
_FOOTER_HEIGHT = 84
_IMAGE_RATIO = 2.0
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
_RIGHT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
_HEAD_HEIGHT = 48
_VIEW_SIZE = QSize(FRAME_SIZE.width(), FRAME_SIZE.height() - _FOOTER_HEIGHT - _HEAD_HEIGHT)


@dataclass(frozen=True)
class ExportState:
    """The state of a tab that exports need.

    Parameters
    ----------
    stem : str
        Start of suggested file names.
    file : str
        The recording's file.
    picture : QWidget
        The visible picture.
    moment, end : int
        The current and the last moment.
    steps_per_second : float
        Playback speed.
    followed : (int, int) or None
        Block and thread that is followed.
    text : CountedText or None
        For a histogram of a text, the names of its arrays and bins.
    """

    stem: str
    caption: Caption
    file: str
    models: RecordingModels
    snapshots: Snapshots
    picture: QWidget
    moment: int
    end: int
    steps_per_second: float
    followed: Thread | None
    text: CountedText | None = None


@dataclass(frozen=True)
class StaticPicture:
    """A picture that is not of a recording: start of its file names, its size, and a function that paints it."""

    stem: str
    size: QSize
    paint: Callable[[QPainter], None]


class Exports(QObject):
    """The export menu of a tab.

    Parameters
    ----------
    tab : QWidget
        Parent of the dialogs.
    export_state : callable
        Returns the tab's state, or None if it shows nothing.
    static_picture : callable
        Returns the picture that the tab shows instead of a recording, or None; only that picture can be saved then.
    """

    status_message = pyqtSignal(str)
    """A completed export, as a message."""
    failed = pyqtSignal(str, str)
    """An error message, and advice."""
    progressed = pyqtSignal(str)
    """Progress of an animation as text; "" when it is finished."""
    _write_finished = pyqtSignal(str, str)
    """The name of a file, and why it could not be written or ""."""

    def __init__(
        self,
        tab: QWidget,
        export_state: Callable[[], ExportState | None],
        static_picture: Callable[[], StaticPicture | None],
    ) -> None:
        super().__init__(tab)
        self._tab, self._export_state, self._static_picture = tab, export_state, static_picture
        self.film: Film | None = None
        self.slide_writer: SlideWriter | None = None
        self._write_finished.connect(self._report_written)
        self.menu = QMenu(tab)
        writers: tuple[tuple[str, str, str, Callable[[Path], object]], ...] = (
            ("Animation…", "Save animation", _FILMS, self.write_film),
            ("Handout…", "Save handout", _HANDOUTS, self.write_handout),
            ("Slides, one per phase…", "Save slides", _SLIDES, self.write_slides),
            ("Player for browsers…", "Save player", _PLAYERS, self.write_player),
            ("Recording…", "Save recording", _RECORDINGS, self.write_recording),
        )
        self._add_action(_PICTURE, self.export_picture)
        for text, title, kinds, write in writers:
            self._add_action(text, partial(self._export, title, kinds, write))
        self._add_action(_COPY, self.copy_picture)

    def _add_action(self, text: str, do: Callable[[], object]) -> None:
        action = self.menu.addAction(text)
        assert action is not None
        action.triggered.connect(lambda: do())

    def open(self, anchor: QWidget) -> None:
        """Show the menu below a widget, right-aligned with it."""
        has_static_picture = self._static_picture() is not None
        for action in self.menu.actions():
            action.setVisible(not has_static_picture or action.text() in (_PICTURE, _COPY))
        self.menu.popup(anchor.mapToGlobal(QPoint(anchor.width() - self.menu.sizeHint().width(), anchor.height())))

    def _require_state(self) -> ExportState | None:
        """Return the tab's state, or report that there is nothing to save."""
        state = self._export_state()
        if state is None:
            self.failed.emit("There is no picture to save yet.", "")
        return state

    def _export(self, title: str, kinds: str, write: Callable[[Path], object]) -> None:
        """Ask for a file, and write it."""
        picture = self._static_picture() or self._require_state()
        if picture is not None:
            suffix = kinds.split("*")[1].split(")")[0]
            path = choose_new_file(self._tab, title, f"{picture.stem}{suffix}", kinds, "pictures")
            if path is not None:
                write(path)

    # --- pictures

    def export_picture(self) -> None:
        """Ask for a file, and save the tab's picture."""
        self._export("Save picture", _PICTURES, self.write_picture)

    def write_picture(self, path: Path) -> bool:
        """Write the current picture, and report success or failure; return whether it was written."""
        picture = self._static_picture() or self._require_state()
        if picture is None:
            return False

        def write() -> None:
            if isinstance(picture, StaticPicture):
                write_painting(path, picture.size, picture.paint, _IMAGE_RATIO)
            elif isinstance(picture.picture, FlowView):
                _make_flow_picture(picture).write(path, picture.moment, picture.picture.marks.highlighted)
            else:
                _write_widget(picture.picture, path)

        return self._write(path, write, f"{_FOLDER_ADVICE} and a name that ends in .png or .svg.")

    def _write(self, path: Path, write: Callable[[], None], advice: str) -> bool:
        """Call a function that writes a file, and report success or failure; return whether it was written."""
        try:
            write()
        except InputError as error:
            self.failed.emit(error.message, advice)
            return False
        self.status_message.emit(f"Saved {path.name}")
        return True

    def copy_picture(self) -> None:
        """Copy the picture to the clipboard."""
        clipboard, shown = QApplication.clipboard(), self._static_picture() or self._require_state()
        if shown is None or clipboard is None:
            return
        if isinstance(shown, StaticPicture):
            clipboard.setImage(paint_image(shown.size, shown.paint, _IMAGE_RATIO))
        elif isinstance(shown.picture, FlowView):
            clipboard.setImage(_make_flow_picture(shown).image(shown.moment, shown.picture.marks.highlighted))
        else:
            clipboard.setPixmap(shown.picture.grab())
        self.status_message.emit("Copied the picture")

    # --- a handout

    def write_handout(self, path: Path) -> bool:
        """Write a handout of all phases, and report success or failure; return whether it was written."""
        state = self._require_state()
        if state is None:
            return False
        advice = f"{_FOLDER_ADVICE} and a name that ends in .pdf or .svg."
        if path.suffix.lower() not in (".pdf", ".svg"):
            self.failed.emit(f"Cannot write {path.name}.", advice)
            return False
        handout = Handout(_visible_layout(state), state.models, state.caption)
        return self._write(path, lambda: handout.write(path), advice)

    # --- slides

    def write_slides(self, path: Path) -> None:
        """Start writing an image of each phase as SVG and PNG: into a .zip archive, else into a new folder."""
        state = self._require_state()
        if state is None:
            return
        if self.slide_writer is not None:
            self.failed.emit("Other slides are still being saved.", "")
            return
        handout = Handout(_visible_layout(state), state.models, state.caption, STRIP_WIDTH)
        if len(handout.phases) > MAX_SLIDES:
            self.failed.emit(
                f"The recording has {len(handout.phases)} phases; at most {MAX_SLIDES} can become slides.",
                "Choose a smaller input, or a schedule in lockstep.",
            )
            return
        self.slide_writer = SlideWriter(path, make_slides(handout, state.caption), self)
        self.slide_writer.progressed.connect(lambda share: self.progressed.emit(f"saving {share:.0%}"))
        self.slide_writer.finished.connect(lambda problem: self._end_slides(path.name, problem))
        self.slide_writer.start()

    def _end_slides(self, name: str, problem: str) -> None:
        self.slide_writer = None
        self._report_written(name, problem)

    # --- a player

    def write_player(self, path: Path) -> None:
        """Start writing a page that plays the recording; it is assembled in the background."""
        state = self._require_state()
        if state is None:
            return
        self.progressed.emit("saving the player")
        layout = _visible_layout(state)
        in_symbols = layout.symbols is not None

        def write() -> None:
            problem = ""
            try:
                write_file(path, write_page(state.models, state.caption, state.text, in_symbols=in_symbols))
            except InputError as error:
                problem = error.message
            with suppress(RuntimeError):  # the tab may have been deleted in the meantime
                self._write_finished.emit(path.name, problem)

        run_in_background(write)

    def _report_written(self, name: str, problem: str, advice: str = f"{_FOLDER_ADVICE}.") -> None:
        self.progressed.emit("")
        if problem:
            self.failed.emit(problem, advice)
        else:
            self.status_message.emit(f"Saved {name}")

    # --- the recording

    def write_recording(self, path: Path) -> bool:
        """Copy the recording's file, and report success or failure; return whether it was copied."""
        state = self._require_state()
        if state is None:
            return False

        def write() -> None:
            with open_for_reading(state.file) as source, replace_file(path) as file:
                shutil.copyfileobj(source, file)

        return self._write(path, write, f"{_FOLDER_ADVICE}.")

    # --- animations

    def write_film(self, path: Path) -> None:
        """Start writing an animation from the first step to the last, at the selected speed."""
        if self.film is not None:
            self.failed.emit("Another animation is still being saved.", "")
            return
        state = self._require_state()
        if state is None:
            return
        if path.suffix.lower() not in (".gif", ".mp4"):
            self.failed.emit(f"Cannot write {path.name}.", "Choose a name that ends in .gif or .mp4.")
            return
        moments, rate = plan_frames(state.end, state.steps_per_second)
        self.film = Film(path, moments, _make_frame_painter(state), rate, self)
        self.film.progressed.connect(lambda share: self.progressed.emit(f"saving {share:.0%}"))
        self.film.finished.connect(lambda problem: self._end_film(path.name, problem))
        self.film.start()

    def _end_film(self, name: str, problem: str) -> None:
        self.film = None
        self._report_written(name, problem, advice="")

    def cancel(self) -> None:
        """Cancel an animation or slides that are being written."""
        if self.slide_writer is not None:
            self.slide_writer.cancel()
            self.slide_writer = None
        if self.film is not None:
            self.film.cancel()
            self.film = None
            self.progressed.emit("")


def _visible_layout(state: ExportState) -> DataflowLayout:
    """Return the dataflow with the visible texts: values or symbols."""
    view = state.picture
    return (view.viewport.layout if isinstance(view, FlowView) else None) or state.models.layout


def _make_flow_picture(state: ExportState) -> FlowPicture:
    return FlowPicture(_visible_layout(state), state.caption)


def _make_frame_painter(state: ExportState) -> PaintFrame:
    """Return a function that paints frames of the state `export_state`, independent of later changes in the tab."""
    view, show = _make_arrays_view(state) if isinstance(state.picture, MemoryView) else _make_flow_view(state)

    def paint(painter: QPainter, moment: int) -> None:
        now = state.snapshots(moment, state.followed)
        show(moment, now)
        painter.fillRect(QRectF(0, 0, FRAME_SIZE.width(), FRAME_SIZE.height()), QColor(look().theme.surface))
        painter.setPen(QColor(look().theme.text))
        font = painter.font()
        font.setPixelSize(look().px(18))
        font.setBold(True)
        painter.setFont(font)
        head = QRectF(24, 0, FRAME_SIZE.width() - 48, _HEAD_HEIGHT)
        painter.drawText(head, _LEFT, state.caption.title)
        font.setPixelSize(look().px(13))
        font.setBold(False)
        painter.setFont(font)
        painter.setPen(QColor(look().theme.muted))
        painter.drawText(head, _RIGHT, state.caption.settings)
        view.render(painter, QPoint(0, _HEAD_HEIGHT), flags=QWidget.RenderFlag.DrawChildren)
        step = f"step {moment} of {state.end}"
        foot = QRectF(0, FRAME_SIZE.height() - _FOOTER_HEIGHT, FRAME_SIZE.width(), _FOOTER_HEIGHT)
        paint_footer(painter, foot, now.code, now.effect, f"{now.phase}  ·  {step}" if now.phase else step)

    return paint


def _make_flow_view(state: ExportState) -> tuple[QWidget, Callable[[int, Snapshot], None]]:
    """Return a dataflow view of a frame's size, and a function that shows a moment in it."""
    view = FlowView(complete_frames=True)
    view.resize(_VIEW_SIZE)
    view.open(_visible_layout(state))
    return view, lambda moment, now: view.show_moment(moment)


def _make_arrays_view(state: ExportState) -> tuple[QWidget, Callable[[int, Snapshot], None]]:
    """Return an arrays view of a frame's size, and a function that shows a moment in it."""
    view = MemoryView()
    view.updates_when_hidden = True
    view.resize(_VIEW_SIZE)
    view.open(state.models)
    return view, lambda moment, now: view.show_moment(moment, now.block, state.followed)


def _write_widget(widget: QWidget, path: Path) -> None:
    size = widget.size()

    def paint(painter: QPainter) -> None:
        painter.fillRect(QRectF(0, 0, size.width(), size.height()), QColor(look().theme.surface))
        widget.render(painter, flags=QWidget.RenderFlag.DrawChildren)

    write_painting(path, size, paint, _IMAGE_RATIO)
