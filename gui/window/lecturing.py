"""Lecture mode: full screen with large text, and only the recording of the Step tab."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QObject
from PyQt6.QtWidgets import QMainWindow

from gui.step_view.lecture.view import LectureView
from gui.step_view.tab import StepTab
from gui.window.appearance import Appearance

_LARGER = 1.25
"""Text scale in lecture mode, for a window of `_HEIGHT` pixels."""
_HEIGHT = 720


class Lecturing(QObject):
    """Turn lecture mode on and off.

    Parameters
    ----------
    window : QMainWindow
    appearance : Appearance
        Enlarges the text during the lecture.
    stepping : callable
        Returns the visible Step tab, or None if another tab is visible.
    """

    def __init__(self, window: QMainWindow, appearance: Appearance, stepping: Callable[[], StepTab | None]) -> None:
        super().__init__(window)
        self._window, self._appearance, self._stepping = window, appearance, stepping
        self.view: LectureView | None = None
        self._was_full = False

    def toggle(self) -> None:
        """Start or end a lecture in the Step tab; elsewhere toggle full screen."""
        window, tab = self._window, self._stepping()
        if self.view is not None:
            self.view.end()
        elif tab is not None and tab.models is not None:
            self._begin(tab)
        elif window.isFullScreen():
            window.showNormal()
        else:
            window.showFullScreen()

    def _begin(self, tab: StepTab) -> None:
        over = self._window.centralWidget()
        assert over is not None
        self._was_full = self._window.isFullScreen()
        tab.settings.hide()
        self.view = LectureView(tab, over)
        self.view.left.connect(self._forget)
        self.view.resized.connect(self._enlarge)
        if not self._was_full:
            self._window.showFullScreen()
        self.view.begin()

    def _enlarge(self, height: int) -> None:
        """Scale the text with the window's height."""
        if self.view is not None:
            self._appearance.enlarge(_LARGER * max(1.0, round(height / _HEIGHT, 1)))

    def stop(self, otherwise: Callable[[], None]) -> None:
        """End the lecture unless something is selected in it; without a lecture call `otherwise`."""
        if self.view is None or self.view.tab.anything_chosen:
            otherwise()
        else:
            self.view.end()

    def _forget(self) -> None:
        self.view = None
        self._appearance.enlarge(1.0)
        if not self._was_full:
            self._window.showNormal()
