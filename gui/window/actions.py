"""The window's actions with their shortcuts, and the menu that lists them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtGui import QAction, QActionGroup, QKeySequence
from PyQt6.QtWidgets import QMenu, QWidget

from gui.lessons.presenter import LessonPresenter
from gui.model.sequences import list_builtin_sequences
from gui.painting.theme import FONT_SIZES, THEMES
from gui.user_kernel.user_file import UserFile
from gui.window.appearance import Appearance
from gui.window.dialogs import show_about, show_shortcuts
from gui.window.files import FileOpeners, Files
from gui.window.lecture_mode import LectureMode
from gui.window.pages.page_stack import Pages
from gui.window.pages.run_actions import RunActions
from gui.window.sequences.player import SequencePlayer
from gui.window.shortcut_priority import ShortcutPriority

VARIANT_KEYS = (*"1234567890", *(f"Ctrl+{digit}" for digit in range(1, 10)))
"""Shortcuts that choose a variant, in the order of the ladder."""
TAB_KEYS = {"Run": "F2", "Step": "F3", "Compare": "F4", "Atomics": "F6"}
"""Shortcuts that show a tab, by the tab's title."""
VIEWS_KEYS = {
    "In Step": [
        ("Space", "Play, pause"),
        ("← →", "Step or cycle back, forward"),
        ("Shift+← →", "Previous, next barrier"),
        ("PgUp, PgDn", "Previous, next phase"),
        ("S", "Symbols or values"),
        ("Click, Shift+click, U", "Flow: a value's sources, its uses"),
        ("Home, End", "To the start, to the end"),
        ("+ − F", "Flow, Timeline: zoom in, out, fit"),
        ("↑ ↓", "Timeline: show more, fewer blocks"),
        ("Enter", "Press the focused control"),
    ],
    "In a lesson": [
        ("F5", "Check the answer, or test"),
        ("Arrows, Space", "Choose cells and threads"),
        ("Alt+↑, Alt+↓", "Move a line"),
    ],
    "In the code": [
        ("Click", "In Step: run to that line"),
        ("Tab", "Indent selection or new line"),
        ("Esc, Ctrl+Tab", "Leave the code"),
        ("Ctrl+S", "Save the file"),
    ],
    "In a lecture": [
        ("B", "Blank the screen, and back"),
        ("C, T, L", "Code, timeline, lanes and counts"),
        ("P", "Highlight under the mouse"),
        ("F11, Esc", "End the lecture"),
    ],
    "In an image or a plot": [
        ("← → ↑ ↓", "Read a pixel, bin or element"),
        ("Enter, click", "Show its thread; step to it"),
        ("+ − 0", "Zoom in, out, fit"),
    ],
    "In the N-body view": [
        ("Space", "Play, pause"),
        (".", "A single step"),
        ("R", "Restart"),
        ("← → ↑ ↓", "Orbit; with Shift: pan"),
        ("+ − Home", "Zoom in, out, fit"),
        ("Enter, click", "Show the body's thread, forces"),
    ],
}
"""Keys of the views. They work while no text field has the focus; camera keys need the focus in the N-body view."""


class Actions(QObject):
    """The window's actions and its menu.

    Parameters
    ----------
    window : QWidget
        The window that the actions belong to.
    files : Files
        Opens and saves files, and has the list of recent files.
    appearance, pages, running, lecturing
        The other objects that the actions call.
    """

    menu_requested = pyqtSignal()
    preferences_requested = pyqtSignal()
    presenter_requested = pyqtSignal()

    def __init__(
        self,
        window: QWidget,
        files: Files,
        openers: FileOpeners,
        appearance: Appearance,
        pages: Pages,
        running: RunActions,
        lecturing: LectureMode,
    ) -> None:
        super().__init__(window)
        self._window, self._files = window, files
        self.menu = QMenu(window)
        self.menu.setAccessibleName("Menu")
        self.actions_by_name: dict[str, QAction] = {}
        self._current_group = ""
        self._groups_by_action: dict[str, str] = {}
        self._add_file_actions(openers.user_file)
        self._add_run_actions(pages, running, lecturing)
        self._add_view_actions(appearance, pages, running, lecturing)
        self._add_lesson_actions(openers.teaching)
        self._add_lecture_actions(openers.sequences)
        self._add_help_actions()
        ShortcutPriority(window, ("Ctrl+E",))

    def _add_action(
        self,
        menu: QMenu | None,
        name: str,
        text: str,
        callback: Callable[[], object],
        *keys: str | QKeySequence.StandardKey,
    ) -> QAction:
        action = QAction(text, self._window)
        if keys:
            action.setShortcuts([QKeySequence(key) for key in keys])
        action.triggered.connect(lambda *_: callback())
        if menu is not None:
            menu.addAction(action)
        # Without a menu bar, a shortcut works only if its action belongs to the window itself.
        self._window.addAction(action)
        self.actions_by_name[name] = action
        self._groups_by_action[name] = self._current_group
        return action

    def _start_group(self, title: str) -> QMenu:
        """Start a group of the menu; later actions are listed under its title."""
        self._current_group = title
        return self._add_submenu(self.menu, title)

    def _add_submenu(self, menu: QMenu, title: str) -> QMenu:
        submenu = QMenu(title, menu)
        menu.addMenu(submenu)
        return submenu

    def _add_file_actions(self, user_file: UserFile) -> None:
        files, menu = self._files, self._start_group("File")
        self._add_action(menu, "open", "Open…", files.choose_and_open, "Ctrl+O")
        self._add_action(
            menu, "open kernel", "Open kernel, program or recording…", user_file.choose_and_open, "Ctrl+Shift+O"
        )
        self.recent = self._add_submenu(menu, "Open recent")
        self.recent.aboutToShow.connect(self._update_recent_menu)
        self.samples = self._add_submenu(menu, "Sample images")
        menu.addSeparator()
        self._add_action(menu, "save", "Save result…", files.save_as, "Ctrl+S")
        self._add_action(menu, "export", "Export picture of the results…", files.export_as, "Ctrl+E")
        self._add_action(menu, "screenshot", "Save screenshot…", files.save_screenshot_as, "Ctrl+Shift+S")
        menu.addSeparator()
        self._add_action(menu, "preferences", "Preferences…", self.preferences_requested.emit, "Ctrl+,")
        menu.addSeparator()
        self._add_action(menu, "quit", "Quit", self._window.close, "Ctrl+Q")

    def _update_recent_menu(self) -> None:
        self.recent.clear()
        paths = self._files.saved_settings.recent
        for path in paths:
            self._add_file(self.recent, path, path.name).setToolTip(str(path))
        if paths:
            self.recent.addSeparator()
            clear = self.recent.addAction("Clear this list")
            assert clear is not None
            clear.triggered.connect(lambda _: self._files.saved_settings.clear_recent())
        else:
            nothing = self.recent.addAction("No recent files")
            assert nothing is not None
            nothing.setEnabled(False)

    def _add_run_actions(self, pages: Pages, running: RunActions, lecturing: LectureMode) -> None:
        menu = self._start_group("Run")
        self._add_action(menu, "run", "Run", running.run, "F5")
        self._add_action(menu, "stop", "Stop", partial(lecturing.end_lecture, running.stop), "Esc")
        menu.addSeparator()
        self.variants = self._add_submenu(menu, "Variant")
        for index, key in enumerate(VARIANT_KEYS):
            self._add_action(self.variants, f"variant {key}", "", partial(pages.choose_variant_at, index), key)
        menu.addSeparator()
        self._add_action(menu, "problem", "Next problem in the kernel", running.go_to_next_problem, "F8")
        menu.addSeparator()
        self._add_action(menu, "previous", "Previous pattern", partial(pages.step_pattern, -1), "[")
        self._add_action(menu, "next", "Next pattern", partial(pages.step_pattern, 1), "]")

    def _add_view_actions(
        self, appearance: Appearance, pages: Pages, running: RunActions, lecturing: LectureMode
    ) -> None:
        menu = self._start_group("View")
        for title, key in TAB_KEYS.items():
            self._add_action(menu, f"tab {title}", f"{title} tab", partial(running.select_tab, title), key)
        menu.addSeparator()
        self.themes = QActionGroup(self)
        for name in THEMES:
            title = f"{name.capitalize()} theme"
            action = self._add_action(menu, f"theme {name}", title, partial(appearance.set_theme, name))
            action.setCheckable(True)
            self.themes.addAction(action)
        self._add_action(menu, "toggle theme", "Switch theme", appearance.toggle_theme, "Ctrl+T")
        menu.addSeparator()
        sizes = self._add_submenu(menu, "Text size")
        self.sizes = QActionGroup(self)
        for name in FONT_SIZES:
            action = self._add_action(sizes, f"text {name}", name.capitalize(), partial(appearance.set_text_size, name))
            action.setCheckable(True)
            self.sizes.addAction(action)
        self._add_action(menu, "larger", "Larger text", partial(appearance.step_text_size, 1), "Ctrl++", "Ctrl+=")
        self._add_action(menu, "smaller", "Smaller text", partial(appearance.step_text_size, -1), "Ctrl+-")
        menu.addSeparator()
        self._add_action(menu, "scale", "Histogram: linear or logarithmic", pages.toggle_scale, "Ctrl+L")
        self._add_action(menu, "full screen", "Full screen, or lecture in Step", lecturing.toggle, "F11")

    def _add_lesson_actions(self, teaching: LessonPresenter) -> None:
        menu = self._start_group("Lessons")
        self._add_action(menu, "lessons", "Show lessons", teaching.show_current_lesson, "F7")
        self._add_action(menu, "next step", "Next step of the lesson", teaching.open_next_step, "Alt+Right")
        self._add_action(menu, "previous step", "Previous step of the lesson", teaching.open_previous_step, "Alt+Left")
        self._add_action(menu, "hint", "Hint", teaching.show_next_hint, "F9")
        self._add_action(menu, "open lessons", "Open lessons…", teaching.choose_folder)

    def _add_lecture_actions(self, sequences: SequencePlayer) -> None:
        menu = self._start_group("Lecture")
        self._add_action(menu, "open sequence", "Open sequence…", sequences.choose_and_open)
        for title, path in list_builtin_sequences():
            self._add_action(menu, f"sequence {path.stem}", title, partial(sequences.open, path))
        menu.addSeparator()
        self._add_action(menu, "next moment", "Next moment", sequences.go_to_next, "N")
        self._add_action(menu, "previous moment", "Previous moment", sequences.go_to_previous, "Shift+N")
        self._add_action(menu, "presenter", "Presenter's window", self.presenter_requested.emit, "F12")
        menu.addSeparator()
        self._add_action(menu, "add moment", "Add the window's state as a moment", sequences.add_moment, "Ctrl+M")
        self._add_action(menu, "copy sequence", "Save a copy of the sequence…", sequences.save_copy)

    @property
    def lecture_actions(self) -> list[QAction]:
        """The actions that also work in the presenter's window."""
        names = ("next moment", "previous moment", "presenter", "add moment", "full screen", "shortcuts")
        return [self.actions_by_name[name] for name in names]

    def _add_help_actions(self) -> None:
        menu = self._start_group("Help")
        self._add_action(
            menu, "shortcuts", "Keyboard", lambda: show_shortcuts(self._window, self.list_shortcuts()), "F1"
        )
        self._add_action(menu, "about", "About Lockstep", lambda: show_about(self._window))
        self._add_action(None, "menu", "Menu", self.menu_requested.emit, "F10")

    def add_samples(self, paths: list[Path]) -> None:
        """List sample images in the menu."""
        for path in paths:
            self._add_file(self.samples, path, path.stem)

    def _add_file(self, menu: QMenu, path: Path, text: str) -> QAction:
        action = menu.addAction(text)
        assert action is not None
        action.triggered.connect(lambda: self._files.open_file(path))
        return action

    def show_variants(self, titles: list[str]) -> None:
        """List a pattern's variants in the menu."""
        for index, key in enumerate(VARIANT_KEYS):
            action = self.actions_by_name[f"variant {key}"]
            exists = index < len(titles)
            action.setVisible(exists)
            action.setEnabled(exists)
            action.setText(f"{index + 1}  {titles[index]}" if exists else "")

    def show_choices(self, theme: str, text_size: str) -> None:
        """Tick the theme and the text size."""
        self.actions_by_name[f"theme {theme}"].setChecked(True)
        self.actions_by_name[f"text {text_size}"].setChecked(True)

    def list_shortcuts(self) -> dict[str, list[tuple[str, str]]]:
        """Return the keys and their effects, grouped by menu title in menu order, then by view."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, action in self.actions_by_name.items():
            if action.shortcuts() and not name.startswith("variant"):
                key = action.shortcuts()[0].toString(QKeySequence.SequenceFormat.NativeText)
                key = key.replace("Right", "→").replace("Left", "←")
                groups.setdefault(self._groups_by_action[name], []).append((key, action.text().rstrip("…")))
        groups["Run"].append(("1 … 9, 0", "Variant 1 … 9, 10"))
        if sum(self.actions_by_name[f"variant {key}"].isEnabled() for key in VARIANT_KEYS) > 10:
            groups["Run"].append(("Ctrl+1, Ctrl+2 …", "Variant 11, 12 …"))
        return {**groups, **VIEWS_KEYS}
