"""The window's actions with their shortcuts, and the menu that lists them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtGui import QAction, QActionGroup, QKeySequence
from PyQt6.QtWidgets import QMenu, QWidget

from gui.lessons.teaching import Teaching
from gui.model.settings import SavedSettings
from gui.own_kernel.opened import OwnKernel
from gui.painting.theme import FONT_SIZES, THEMES
from gui.window.appearance import Appearance
from gui.window.dialogs import show_about, show_shortcuts
from gui.window.files import Files
from gui.window.first_keys import FirstKeys
from gui.window.lecturing import Lecturing
from gui.window.pages import Pages
from gui.window.running import Running

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
        ("Home, End", "To the start, to the end"),
        ("+ − F", "Flow, Timeline: zoom in, out, fit"),
        ("↑ ↓", "Timeline: show more, fewer blocks"),
        ("Enter", "Press the focused control"),
    ],
    "In a lesson": [
        ("Alt+→, Alt+←", "Next step, previous step"),
        ("F5, F9", "Check or test, hint"),
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
    memory : SavedSettings
        Has the list of recent files.
    appearance, files, own, pages, running, lecturing, teaching
        The objects that the actions call.
    """

    menu_wanted = pyqtSignal()
    preferences_wanted = pyqtSignal()

    def __init__(
        self,
        window: QWidget,
        memory: SavedSettings,
        appearance: Appearance,
        files: Files,
        own: OwnKernel,
        pages: Pages,
        running: Running,
        lecturing: Lecturing,
        teaching: Teaching,
    ) -> None:
        super().__init__(window)
        self._window, self._memory, self._files = window, memory, files
        self.menu = QMenu(window)
        self.menu.setAccessibleName("Menu")
        self.by_name: dict[str, QAction] = {}
        self._group = ""
        self._group_of: dict[str, str] = {}
        self._fill_file(own)
        self._fill_run(pages, running, lecturing)
        self._fill_view(appearance, pages, running, lecturing)
        self._fill_lesson(teaching)
        self._fill_help()
        FirstKeys(window, ("Ctrl+E",))

    def _add(
        self, menu: QMenu | None, name: str, text: str, do: Callable[[], object], *keys: str | QKeySequence.StandardKey
    ) -> QAction:
        action = QAction(text, self._window)
        if keys:
            action.setShortcuts([QKeySequence(key) for key in keys])
        action.triggered.connect(lambda *_: do())
        if menu is not None:
            menu.addAction(action)
        # Without a menu bar, a shortcut works only if its action belongs to the window itself.
        self._window.addAction(action)
        self.by_name[name] = action
        self._group_of[name] = self._group
        return action

    def _start_group(self, title: str) -> QMenu:
        """Start a group of the menu; later actions are listed under its title."""
        self._group = title
        return self._submenu(self.menu, title)

    def _submenu(self, menu: QMenu, title: str) -> QMenu:
        submenu = QMenu(title, menu)
        menu.addMenu(submenu)
        return submenu

    def _fill_file(self, own: OwnKernel) -> None:
        files, menu = self._files, self._start_group("File")
        self._add(menu, "open", "Open…", files.ask_open, "Ctrl+O")
        self._add(menu, "open kernel", "Open kernel, program or recording…", own.ask, "Ctrl+Shift+O")
        self.recent = self._submenu(menu, "Open recent")
        self.recent.aboutToShow.connect(self._fill_recent)
        self.samples = self._submenu(menu, "Sample images")
        menu.addSeparator()
        self._add(menu, "save", "Save result…", files.ask_save, "Ctrl+S")
        self._add(menu, "export", "Export picture of the results…", files.ask_export, "Ctrl+E")
        self._add(menu, "screenshot", "Save screenshot…", files.ask_screenshot, "Ctrl+Shift+S")
        menu.addSeparator()
        self._add(menu, "preferences", "Preferences…", self.preferences_wanted.emit, "Ctrl+,")
        menu.addSeparator()
        self._add(menu, "quit", "Quit", self._window.close, "Ctrl+Q")

    def _fill_recent(self) -> None:
        self.recent.clear()
        paths = self._memory.recent
        for path in paths:
            self._add_file(self.recent, path, path.name).setToolTip(str(path))
        if paths:
            self.recent.addSeparator()
            clear = self.recent.addAction("Clear this list")
            assert clear is not None
            clear.triggered.connect(lambda _: self._memory.clear_recent())
        else:
            nothing = self.recent.addAction("Nothing yet")
            assert nothing is not None
            nothing.setEnabled(False)

    def _fill_run(self, pages: Pages, running: Running, lecturing: Lecturing) -> None:
        menu = self._start_group("Run")
        self._add(menu, "run", "Run", running.run, "F5")
        self._add(menu, "stop", "Stop", partial(lecturing.stop, running.stop), "Esc")
        menu.addSeparator()
        self.variants = self._submenu(menu, "Variant")
        for index, key in enumerate(VARIANT_KEYS):
            self._add(self.variants, f"variant {key}", "", partial(pages.choose_variant_at, index), key)
        menu.addSeparator()
        self._add(menu, "problem", "Next problem in the kernel", running.next_problem, "F8")
        menu.addSeparator()
        self._add(menu, "previous", "Previous pattern", partial(pages.step, -1), "[")
        self._add(menu, "next", "Next pattern", partial(pages.step, 1), "]")

    def _fill_view(self, appearance: Appearance, pages: Pages, running: Running, lecturing: Lecturing) -> None:
        menu = self._start_group("View")
        for title, key in TAB_KEYS.items():
            self._add(menu, f"tab {title}", f"{title} tab", partial(running.turn_to, title), key)
        menu.addSeparator()
        self.themes = QActionGroup(self)
        for name in THEMES:
            title = f"{name.capitalize()} theme"
            action = self._add(menu, f"theme {name}", title, partial(appearance.set_theme, name))
            action.setCheckable(True)
            self.themes.addAction(action)
        self._add(menu, "toggle theme", "Switch theme", appearance.toggle_theme, "Ctrl+T")
        menu.addSeparator()
        sizes = self._submenu(menu, "Text size")
        self.sizes = QActionGroup(self)
        for name in FONT_SIZES:
            action = self._add(sizes, f"text {name}", name.capitalize(), partial(appearance.set_text_size, name))
            action.setCheckable(True)
            self.sizes.addAction(action)
        self._add(menu, "larger", "Larger text", partial(appearance.step_text_size, 1), "Ctrl++", "Ctrl+=")
        self._add(menu, "smaller", "Smaller text", partial(appearance.step_text_size, -1), "Ctrl+-")
        menu.addSeparator()
        self._add(menu, "scale", "Histogram: linear or logarithmic", pages.toggle_scale, "Ctrl+L")
        self._add(menu, "full screen", "Full screen; Step: lecture", lecturing.toggle, "F11")

    def _fill_lesson(self, teaching: Teaching) -> None:
        menu = self._start_group("Lessons")
        self._add(menu, "lessons", "Show lessons", teaching.show, "F7")
        self._add(menu, "next step", "Next step of the lesson", teaching.next, "Alt+Right")
        self._add(menu, "previous step", "Previous step of the lesson", teaching.back, "Alt+Left")
        self._add(menu, "hint", "Hint", teaching.hint, "F9")
        self._add(menu, "open lessons", "Open lessons…", teaching.ask)

    def _fill_help(self) -> None:
        menu = self._start_group("Help")
        self._add(menu, "shortcuts", "Keyboard", lambda: show_shortcuts(self._window, self.shortcuts()), "F1")
        self._add(menu, "about", "About Lockstep", lambda: show_about(self._window))
        self._add(None, "menu", "Menu", self.menu_wanted.emit, "F10")

    def add_samples(self, paths: list[Path]) -> None:
        """List sample images in the menu."""
        for path in paths:
            self._add_file(self.samples, path, path.stem)

    def _add_file(self, menu: QMenu, path: Path, text: str) -> QAction:
        action = menu.addAction(text)
        assert action is not None
        action.triggered.connect(lambda: self._files.open(path))
        return action

    def show_variants(self, titles: list[str]) -> None:
        """List a pattern's variants in the menu."""
        for index, key in enumerate(VARIANT_KEYS):
            action = self.by_name[f"variant {key}"]
            exists = index < len(titles)
            action.setVisible(exists)
            action.setEnabled(exists)
            action.setText(f"{index + 1}  {titles[index]}" if exists else "")

    def show_choices(self, theme: str, text_size: str) -> None:
        """Tick the theme and the text size."""
        self.by_name[f"theme {theme}"].setChecked(True)
        self.by_name[f"text {text_size}"].setChecked(True)

    def shortcuts(self) -> dict[str, list[tuple[str, str]]]:
        """Return the keys and their effects, grouped by menu title in menu order, then by view."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, action in self.by_name.items():
            if action.shortcuts() and not name.startswith("variant"):
                key = action.shortcuts()[0].toString(QKeySequence.SequenceFormat.NativeText)
                groups.setdefault(self._group_of[name], []).append((key, action.text().rstrip("…")))
        groups["Run"].append(("1 … 9, 0", "Variant 1 … 9, 10"))
        if sum(self.by_name[f"variant {key}"].isEnabled() for key in VARIANT_KEYS) > 10:
            groups["Run"].append(("Ctrl+1, Ctrl+2 …", "Variant 11, 12 …"))
        return {**groups, **VIEWS_KEYS}
