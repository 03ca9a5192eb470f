"""Lecture mode: full screen with large text, and only the recording of the Step tab and the current lesson."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QObject, Qt
from PyQt6.QtWidgets import QMainWindow

from gui.lessons.pane import LessonPane
from gui.painting.style import style_sheet
from gui.painting.theme import look
from gui.step_view.lecture.view import LectureView
from gui.step_view.tab import StepTab
from gui.window.appearance import Appearance

_TEXT_SCALE = 1.25
"""Text scale in lecture mode, for a window of `_REFERENCE_HEIGHT` pixels."""
_REFERENCE_HEIGHT = 720


class LectureMode(QObject):
    """Turn lecture mode on and off.

    Parameters
    ----------
    appearance : Appearance
        Enlarges the text during the lecture.
    find_step_tab : callable
        Returns the visible Step tab, or None if another tab is visible.
    lesson_pane : LessonPane
        Shown next to the recording, if it is visible when the lecture begins.
    """

    def __init__(
        self,
        window: QMainWindow,
        appearance: Appearance,
        find_step_tab: Callable[[], StepTab | None],
        lesson_pane: LessonPane,
    ) -> None:
        super().__init__(window)
        self._window, self._appearance, self._find_step_tab = window, appearance, find_step_tab
        self._lesson_pane = lesson_pane
        self.view: LectureView | None = None
        self._is_suspended = False
        self._was_full_screen = False
        appearance.changed.connect(self._restyle_view)

    def toggle(self) -> None:
        """Start or end a lecture in the Step tab; elsewhere toggle full screen."""
        window, tab = self._window, self._find_step_tab()
        if self.view is not None:
            self.view.end()
        elif self._is_suspended:
            self._is_suspended = False
            self._restore_window()
        elif tab is not None and tab.models is not None:
            self._was_full_screen = self._window.isFullScreen()
            self._begin_lecture(tab, fill_screen=True)
        else:
            self._set_full_screen(not window.isFullScreen())

    def _set_full_screen(self, on: bool) -> None:
        """Switch only full screen: a maximized window is maximized again afterwards."""
        full_screen = Qt.WindowState.WindowFullScreen
        state = self._window.windowState()
        self._window.setWindowState(state | full_screen if on else state & ~full_screen)

    def _begin_lecture(self, tab: StepTab, *, fill_screen: bool) -> None:
        over = self._window.centralWidget()
        assert over is not None
        tab.settings.hide()
        self._appearance.scale_text(_choose_text_scale(over.height()))
        side_pane = self._lesson_pane if self._lesson_pane.isVisible() else None
        # The widgets of the tab are styled when they move to the view: styling it later would style them twice.
        self.view = LectureView(tab, over, side_pane, style_sheet(look()))
        self.view.ended.connect(self._on_lecture_ended)
        self.view.resized.connect(self._scale_text)
        if fill_screen:
            self._set_full_screen(True)
        self.view.begin()

    def keep_open(self) -> None:
        """Keep the view while another page or tab is shown below it, until `show_tab` or `suspend` is called."""
        if self.view is not None:
            self.view.keeps_open = True

    def show_tab(self, tab: StepTab, hint: str) -> None:
        """Continue the lecture, if there is one, with the recording of a tab that is visible in the window.

        Parameters
        ----------
        hint : str
            A text shown until the next step.
        """
        if tab.models is None:
            self.suspend()
            return
        if self._is_suspended:
            self._is_suspended = False
            self._begin_lecture(tab, fill_screen=False)  # unless the user has left it, the screen is still full
        if self.view is not None:
            self.view.show_tab(tab, hint)

    def show_message(self, text: str) -> None:
        """Show a message in the lecture, which covers the window's messages; without a lecture do nothing."""
        if self.view is not None:
            self.view.show_message(text)

    def press_key(self, key: str) -> None:
        """Run the action of a key, such as "Right", in the lecture or the visible Step tab."""
        tab = self._find_step_tab()
        if self.view is not None and self.view.blank.isVisible():
            self.view.blank.uncover()
        elif not (self.view is not None and self.view.keys.press(key)) and tab is not None:
            tab.keys.press(key)

    def suspend(self) -> None:
        """Show the page below the lecture on the full screen, until `show_tab` continues the lecture."""
        if self.view is not None:
            self._is_suspended = True
            self.view.end()

    def _scale_text(self, height: int) -> None:
        """Scale the text with the window's height."""
        if self.view is not None:
            self._appearance.scale_text(_choose_text_scale(height))
            self._restyle_view()

    def _restyle_view(self) -> None:
        """Apply the look to the lecture only: the window's pages lie below it."""
        if self.view is not None:
            if (styles := style_sheet(look())) != self.view.styleSheet():
                self.view.setStyleSheet(styles)
            self._lesson_pane.resize_with_text(self.view.width())

    def end_lecture(self, if_inactive: Callable[[], None]) -> None:
        """End the lecture unless something is selected in it; without a lecture call `if_inactive`."""
        if self.view is None and self._is_suspended:
            self.toggle()
        elif self.view is None or self.view.tab.has_selection:
            if_inactive()
        else:
            self.view.end()

    def _on_lecture_ended(self) -> None:
        self.view = None
        self._appearance.scale_text(1.0)
        self._lesson_pane.resize_with_text(self._window.width())
        if not self._is_suspended:
            self._restore_window()

    def _restore_window(self) -> None:
        if not self._was_full_screen:
            self._set_full_screen(False)


def _choose_text_scale(height: int) -> float:
    """Return the text scale of a lecture in a window of `height` pixels."""
    return _TEXT_SCALE * max(1.0, round(height / _REFERENCE_HEIGHT, 1))
