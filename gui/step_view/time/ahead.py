"""Works out what the next move of a tab will show, as long as nothing else is to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PyQt6.QtCore import QObject, QTimer

if TYPE_CHECKING:
    from gui.step_view.tab import StepTab


class Ahead(QObject):
    """What keys can ask for next: one step on in the way of the last one, and the barriers to both sides.

    Parameters
    ----------
    tab : StepTab
    """

    def __init__(self, tab: StepTab) -> None:
        super().__init__(tab)
        self._tab = tab
        self._files: tuple[str, ...] = ()
        self._moment, self._direction = 0, 1
        self._idle = QTimer(self, singleShot=True, interval=0)
        self._idle.timeout.connect(self._prepare)

    def open(self, *files: str) -> None:
        """Take another recording: the files that its statements are in."""
        self._files = files

    def show_moment(self, moment: int) -> None:
        """Begin anew, from another moment."""
        self._direction = -1 if moment < self._moment else 1
        self._moment = moment
        self._idle.start()

    @property
    def busy(self) -> bool:
        """Whether there is more to be done."""
        return self._idle.isActive()

    def _prepare(self) -> None:
        tab = self._tab
        if tab.models is None or not tab.models.recording.moments or not tab.isVisible():
            return
        if not (self._prepare_moments() and tab.source.prepare(self._files)):
            self._idle.start()

    def _prepare_moments(self) -> bool:
        """Do a part; return whether all is done."""
        tab, player = self._tab, self._tab.player
        for moment in (player.moment + self._direction, *map(player.border, (self._direction, -self._direction))):
            if not 0 <= moment <= player.end:
                continue
            if not tab.knows(moment):
                tab.instant(moment)
                return False
            if tab.pictures.currentWidget() is tab.flow and not tab.flow.prepare(moment):
                return False
        return True
