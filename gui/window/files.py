"""Open files of all kinds, ask for file names, and write pictures of the window."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from PyQt6.QtGui import QPixmap
from PyQt6.QtWidgets import QWidget

from gpu.base.errors import InputError
from gpu.declaration.presentation import InputKind
from gpu.declaration.roles import Role
from gpu.files.arrays import EXTENSIONS as NUMBERS
from gui.lessons.presenter import LessonPresenter
from gui.model.sequences import SUFFIX as SEQUENCE
from gui.model.settings import SavedSettings
from gui.model.workbench import Workbench
from gui.qt.exported_files import write_image
from gui.run_view.bodies.files import BODY_FILES, TIPSY
from gui.run_view.bodies.view import BodiesView
from gui.user_kernel.page import UserKernelPage
from gui.user_kernel.program.page import ProgramPage
from gui.user_kernel.user_file import SUFFIXES as KERNELS
from gui.user_kernel.user_file import UserFile
from gui.widgets.file_dialogs import choose_existing_file, choose_new_file
from gui.window.messages import Messages
from gui.window.pages.page_stack import Pages
from gui.window.sequences.player import SequencePlayer

_PROGRAMS = "Kernels, programs and scripts (*.cu *.py)"
_READABLE_FILTER = (
    f"Images (*.pgm *.ppm *.pbm *.pnm *.png *.jpg *.jpeg *.tif *.tiff *.bmp *.gif *.webp);;{_PROGRAMS};;All files (*)"
)
_IMAGE_RESULT_FILTER = (
    "PNG image (*.png);;Gray image (*.pgm);;Color image (*.ppm);;NumPy array, float32 (*.npy);;Table (*.csv)"
)
_NUMBERS_FILTER = f"Numbers (*.npy *.csv *.txt);;{_PROGRAMS};;All files (*)"
_TEXTS_FILTER = f"Text (*.txt);;{_PROGRAMS};;All files (*)"
_COUNT_RESULT_FILTER = "Table (*.csv);;NumPy array (*.npy)"


@dataclass(frozen=True)
class FileOpeners:
    """The parts of the window that open files of one kind each: kernels and recordings, lessons, sequences."""

    user_file: UserFile
    teaching: LessonPresenter
    sequences: SequencePlayer


class Files:
    """Open and save files.

    Parameters
    ----------
    window : QWidget
        Parent of the file dialogs; screenshots show it.
    saved_settings : SavedSettings
        Has the recent files.
    """

    def __init__(
        self,
        window: QWidget,
        bench: Workbench,
        saved_settings: SavedSettings,
        pages: Pages,
        openers: FileOpeners,
        messages: Messages,
    ) -> None:
        self.saved_settings = saved_settings
        self._window, self._bench, self._pages, self._messages = window, bench, pages, messages
        self._user_file, self._teaching, self._sequences = openers.user_file, openers.teaching, openers.sequences

    def _find_image_folder(self) -> Path:
        folder = self.saved_settings.recent[0].parent if self.saved_settings.recent else Path.home()
        return folder if os.path.isdir(folder) else Path.home()

    def open_file(self, path: Path) -> None:
        """Open an image, a kernel, lessons, a sequence or numbers; if the file cannot be read, nothing changes."""
        bench, pages = self._bench, self._pages
        if self._teaching.contains_lessons(path):
            self._teaching.open_folder(path)
            return
        if path.suffix.lower() == SEQUENCE:
            self._sequences.open(path)
            return
        if path.suffix.lower() in KERNELS:
            self._user_file.open(path)
            return
        self._messages.status.show_message(f"Opening {path.name}…")
        pages.return_to_page()
        suffix, kind = path.suffix.lower(), bench.pattern.presentation.kind
        if suffix in TIPSY or (suffix in BODY_FILES and kind == "bodies"):
            self._select_pattern_for("bodies")
            if isinstance(pages.page.view, BodiesView):
                pages.page.tabs.setCurrentIndex(0)
                pages.page.view.files.open(path)
            return
        if bench.is_text_file(path):
            bench.open_text(path)
            return
        if suffix in NUMBERS and kind != "values" and not bench.is_number_file(path):
            self._select_pattern_for("values")
        if bench.is_number_file(path):
            bench.open_values(path)
            return
        bench.open_image(path, before_use=lambda: self._select_pattern_for("image"))

    def _select_pattern_for(self, kind: InputKind) -> None:
        """Show a pattern that accepts this kind of input, unless the current one does."""
        bench = self._bench
        if bench.pattern.presentation.kind != kind:
            matching = (name for name, pattern in bench.patterns.items() if pattern.presentation.kind == kind)
            self._pages.choose_pattern(next(matching))

    def choose_and_open(self) -> None:
        """Ask for an input file that the pattern accepts, or for a folder of lessons, and open it."""
        if self._teaching.shows_lessons:
            self._teaching.choose_folder()
            return
        view = self._pages.page.view
        if isinstance(view, BodiesView):
            path = view.files.choose_file()
        else:
            title, kinds = {
                "image": ("Open image", _READABLE_FILTER),
                "text": ("Open text", _TEXTS_FILTER),
                "values": ("Open numbers", _NUMBERS_FILTER),
            }[self._bench.input_kind]
            path = choose_existing_file(self._window, title, kinds, "inputs", self._find_image_folder())
        if path is not None:
            self.open_file(path)

    def save_as(self) -> None:
        """Ask for a file name and save the result; if a user's kernel is shown, save its source."""
        text_page = self._teaching.visible_page or self._user_file.visible_page
        if text_page is not None:
            text_page.source.save_as()
            return
        if self._pages.page.bodies is not None:
            self._pages.page.bodies.files.save_as()
            return
        bench = self._bench
        outcome = bench.outcomes.get(bench.pattern_name)
        if outcome is None:
            self._messages.banner.show_message(
                "There is no result to save yet.", "Run the pattern first (F5).", tone="neutral"
            )
            return
        image = "image" in outcome.handles
        suffix = ".png" if image else ".csv"
        source = outcome.image.path if outcome.image is not None else outcome.file
        pattern = bench.patterns[outcome.pattern]
        generated = (pattern.value(outcome.params, role) for role in (Role.SUBJECT, Role.SOURCE))
        stem = source.stem if source is not None else next(filter(None, generated), pattern.name)
        suggested = f"{stem}-{outcome.pattern}-{outcome.variant}{suffix}"
        kinds = _IMAGE_RESULT_FILTER if image else _COUNT_RESULT_FILTER
        target = choose_new_file(self._window, "Save result", suggested, kinds, "results", self._find_image_folder())
        if target is not None:
            bench.save(target)

    def export_as(self) -> None:
        """Ask for a file name and save a picture of the results without the controls."""
        open_page = self._teaching.visible_page or self._user_file.visible_page
        visible_page, bodies = open_page or self._pages.page, self._pages.page.bodies
        if open_page is None and bodies is not None:
            bodies.files.save_picture_as()
        elif visible_page.stepping:
            visible_page.step.exports.export_picture()
        elif isinstance(open_page, UserKernelPage | ProgramPage):
            self._save_picture_as("Export picture", open_page.results.grab(), open_page.path.stem)
        else:
            self._save_picture_as("Export picture", self._pages.page.view.grab(), self._bench.pattern_name)

    def save_screenshot_as(self) -> None:
        """Ask for a file name and save a picture of the window."""
        self._save_picture_as("Save screenshot", self._window.grab(), "lockstep")

    def _save_picture_as(self, title: str, pixmap: QPixmap, stem: str) -> None:
        target = choose_new_file(
            self._window, title, f"{stem}.png", "PNG image (*.png)", "pictures", self._find_image_folder()
        )
        if target is not None:
            self.write_picture(pixmap, target)

    def write_picture(self, pixmap: QPixmap, path: Path) -> bool:
        """Write a picture, and report success or the reason for failure."""
        try:
            write_image(path, pixmap)
        except InputError as error:
            advice = "Choose a writable folder, and a name that ends in .png."
            self._messages.banner.show_message(error.message, advice)
            return False
        self._messages.status.show_message(f"Saved {path.name}")
        return True
