"""What the checkers say of a recording, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PyQt6.QtCore import QEvent, QSize, Qt
from PyQt6.QtGui import QPainter, QPaintEvent
from PyQt6.QtWidgets import QLabel

from gpu.messages.verdicts import mistakes_in_words, mistakes_of
from gui.painting.theme import look
from gui.qt.events import is_of
from gui.widgets.basic import role

if TYPE_CHECKING:
    from gpu.stepping.recording import Recording

_LONGEST = 60
_LISTED = 12
_ONLY_HERE = "In what is recorded here. Run has an edited kernel checked on more, in several orders."


class FindingsLabel(QLabel):
    """Says what was found, in the color that goes with it; its tip lists what."""

    def __init__(self) -> None:
        super().__init__()
        role(self, "caption")
        self.setAccessibleName("Findings")
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._tone = "good"

    def show_recording(self, recording: Recording, *, edited: bool = False) -> None:
        """Say what was found in a recording, or why there is no more of it.

        Of an `edited` text of a pattern that nothing is found in so few elements does not say that it is sound.
        """
        found = [finding for _, finding in recording.findings]
        mistakes = mistakes_of(found)
        nothing = "no findings at this size" if edited else "no findings"
        # What a checker found is said in fewer words than what it ended with.
        text = f"it {mistakes_in_words(mistakes)}" if mistakes else recording.failure or nothing
        self.setText(text if len(text) < _LONGEST else f"{text[: _LONGEST - 2]}…")
        listed = [finding.message for finding in found[:_LISTED]]
        bad = bool(found or recording.failure)
        whole = _ONLY_HERE if edited and not bad else ""
        self.setToolTip("\n".join([*filter(None, (recording.failure, recording.stopped, whole)), *listed]))
        self._tone = "bad" if bad else "muted" if edited else "good"
        self._restyle()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, style, room = QPainter(self), self.style(), self.contentsRect()
        assert style is not None
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room.width())
        style.drawItemText(
            painter, room, int(self.alignment()), self.palette(), self.isEnabled(), text, self.foregroundRole()
        )
        painter.end()

    def sizeHint(self) -> QSize:
        return super().sizeHint().expandedTo(QSize(look().px(96), 0))

    def minimumSizeHint(self) -> QSize:
        return QSize(look().px(96), super().minimumSizeHint().height())

    def clear(self) -> None:
        """Say nothing: nothing is recorded."""
        super().clear()
        self.setToolTip("")

    def _restyle(self) -> None:
        theme = look().theme
        wanted = f"color: {getattr(theme, self._tone)}; font-weight: 600;"
        if self.styleSheet() != wanted:
            self.setStyleSheet(wanted)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange) and self.text():
            self._restyle()
