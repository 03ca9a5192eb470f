"""Export menu of the Step tab: picture, animation, handout, slides, player, recording, or copy to the clipboard."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from PyQt6.QtCore import QObject, QPoint, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QImage, QPainter
from PyQt6.QtWidgets import QApplication, QMenu, QWidget

from gpu.base.errors import InputError
from gpu.declaration.pattern import CountedText
from gpu.files.file_access import open_for_reading, replace_file, write_file
from gui.painting.theme import look
from gui.qt.background import run_in_background
from gui.qt.exported_files import write_image, write_svg
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
        for text, do in (
            (_PICTURE, self.export_picture),
            ("Animation…", self.export_film),
            ("Handout…", self.export_handout),
            ("Slides, one per phase…", self.export_slides),
            ("Player for browsers…", self.export_player),
            ("Recording…", self.export_recording),
            (_COPY, self.copy_picture),
        ):
            action = self.menu.addAction(text)
            assert action is not None
            action.triggered.connect(lambda _=False, do=do: do())

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

    def _choose_path(self, title: str, kinds: str) -> Path | None:
        picture = self._static_picture() or self._require_state()
        if picture is None:
            return None
        suffix = kinds.split("*")[1].split(")")[0]
        choice = choose_new_file(self._tab, title, f"{picture.stem}{suffix}", kinds, "pictures")
        if choice is None:
            return None
        path, filter_name = choice
        suffix = filter_name.split("*")[1].split(")")[0] if "*" in filter_name else suffix
        return path if path.suffix else path.with_name(path.name + suffix)

    # --- pictures

    def export_picture(self) -> None:
        """Ask for a file, and save the tab's picture."""
        path = self._choose_path("Save picture", _PICTURES)
        if path is not None:
            self.write_picture(path)

    def write_picture(self, path: Path) -> bool:
        """Write the current picture, and report success or failure; return whether it was written."""
        picture = self._static_picture() or self._require_state()
        if picture is None:
            return False

        def write() -> None:
            if isinstance(picture, StaticPicture):
                _write_painting(picture.size, picture.paint, path)
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
            clipboard.setImage(_paint_image(shown.size, shown.paint))
        elif isinstance(shown.picture, FlowView):
            clipboard.setImage(_make_flow_picture(shown).image(shown.moment, shown.picture.marks.highlighted))
        else:
            clipboard.setPixmap(shown.picture.grab())
        self.status_message.emit("Copied the picture")

    # --- a handout

    def export_handout(self) -> None:
        """Ask for a file, and save a handout of all phases."""
        path = self._choose_path("Save handout", _HANDOUTS)
        if path is not None:
            self.write_handout(path)

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

    def export_slides(self) -> None:
        """Ask for an archive or a folder, and save an image of each phase as SVG and PNG."""
        path = self._choose_path("Save slides", _SLIDES)
        if path is not None:
            self.write_slides(path)

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
        self.slide_writer.finished.connect(lambda problem: self._report_slides(path.name, problem))
        self.slide_writer.start()

    def _report_slides(self, name: str, problem: str) -> None:
        self.slide_writer = None
        self._report_written(name, problem)

    # --- a player

    def export_player(self) -> None:
        """Ask for a file, and save a page that plays the recording in a browser."""
        path = self._choose_path("Save player", _PLAYERS)
        if path is not None:
            self.write_player(path)

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

    def _report_written(self, name: str, problem: str) -> None:
        self.progressed.emit("")
        if problem:
            self.failed.emit(problem, f"{_FOLDER_ADVICE}.")
        else:
            self.status_message.emit(f"Saved {name}")

    # --- the recording

    def export_recording(self) -> None:
        """Ask for a file, and save the recording."""
        path = self._choose_path("Save recording", _RECORDINGS)
        if path is not None:
            self.write_recording(path)

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

    def export_film(self) -> None:
        """Ask for a file, and save an animation of the whole recording."""
        path = self._choose_path("Save animation", _FILMS)
        if path is not None:
            self.write_film(path)

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
        self.film.finished.connect(lambda problem: self._report_film(path, problem))
        self.film.start()

    def _report_film(self, path: Path, problem: str) -> None:
        self.film = None
        self.progressed.emit("")
        if problem:
            self.failed.emit(problem, "")
        else:
            self.status_message.emit(f"Saved {path.name}")

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

    _write_painting(size, paint, path)


def _write_painting(size: QSize, paint: Callable[[QPainter], None], path: Path) -> None:
    if path.suffix.lower() == ".svg":
        write_svg(path, size, paint)
    else:
        write_image(path, _paint_image(size, paint))


def _paint_image(size: QSize, paint: Callable[[QPainter], None]) -> QImage:
    image = QImage(size * 2, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(2)
    painter = QPainter(image)
    paint(painter)
    painter.end()
    return image
