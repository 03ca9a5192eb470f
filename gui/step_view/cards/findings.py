"""Label that summarizes the checkers' findings in a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PyQt6.QtCore import QEvent, QSize, Qt
from PyQt6.QtGui import QPainter, QPaintEvent
from PyQt6.QtWidgets import QLabel

from gpu.messages.verdicts import collect_mistakes, describe_mistakes
from gui.painting.theme import look
from gui.qt.events import is_event_type
from gui.widgets.basic import set_role, wrap_tip

if TYPE_CHECKING:
    from gpu.recording.recording import Recording

_MAX_LENGTH = 60
_MAX_LISTED = 12
_SCOPE_NOTE = "For this recording only. Run checks an edited kernel on more inputs, in several schedules."


class FindingsLabel(QLabel):
    """A colored one-line summary of the findings, with a list of them as tooltip."""

    def __init__(self) -> None:
        super().__init__()
        set_role(self, "caption")
        self.setAccessibleName("Findings")
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._tone = "good"

    def show_recording(self, recording: Recording, *, edited: bool = False) -> None:
        """Show a recording's findings, or why the recording ended early.

        For an `edited` kernel, the text notes that no findings at this small size do not prove it correct.
        """
        findings = [finding for _, finding in recording.findings]
        mistakes = collect_mistakes(findings)
        nothing = "no findings at this size" if edited else "no findings"
        # A checker's mistakes have shorter texts than the failure they caused.
        text = describe_mistakes(mistakes) or recording.failure or nothing
        self.setText(text if len(text) < _MAX_LENGTH else f"{text[: _MAX_LENGTH - 2]}…")
        listed = [finding.message for finding in findings[:_MAX_LISTED]]
        bad = bool(findings or recording.failure)
        scope = _SCOPE_NOTE if edited and not bad else ""
        self.setToolTip(wrap_tip("\n".join([*filter(None, (recording.failure, recording.stopped, scope)), *listed])))
        self._tone = "bad" if bad else "muted" if edited else "good"
        self._restyle()

    def visible_text(self) -> str:
        """Return the text as displayed: in two lines where one is too short, elided beyond them."""
        text, room, metrics = self.text(), self.contentsRect(), self.fontMetrics()
        if metrics.horizontalAdvance(text) <= room.width():
            return text
        wrapped = metrics.boundingRect(room, int(Qt.TextFlag.TextWordWrap), text)
        if room.height() >= 2 * metrics.height() >= wrapped.height() and wrapped.width() <= room.width():
            return text
        return metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, style, room = QPainter(self), self.style(), self.contentsRect()
        assert style is not None
        flags = int(self.alignment() | Qt.TextFlag.TextWordWrap)
        style.drawItemText(
            painter, room, flags, self.palette(), self.isEnabled(), self.visible_text(), self.foregroundRole()
        )
        painter.end()

    def sizeHint(self) -> QSize:
        return super().sizeHint().expandedTo(QSize(look().px(96), 0))

    def minimumSizeHint(self) -> QSize:
        return QSize(look().px(96), super().minimumSizeHint().height())

    def clear(self) -> None:
        """Clear the text and the tooltip."""
        super().clear()
        self.setToolTip("")

    def _restyle(self) -> None:
        theme = look().theme
        style = f"color: {getattr(theme, self._tone)}; font-weight: 600;"
        if self.styleSheet() != style:
            self.setStyleSheet(style)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_event_type(event, QEvent.Type.StyleChange) and self.text():
            self._restyle()
