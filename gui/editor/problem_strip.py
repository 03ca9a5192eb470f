"""The strip below the editor that shows the problem at the cursor, or the first problem."""

from __future__ import annotations

import re

from PyQt6.QtCore import QEvent, QObject, QRect, Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout

from gui.editor.document import KernelDocument, Problem
from gui.painting.theme import look
from gui.qt.events import is_event_type
from gui.widgets.basic import button, label, restyle, row, set_role, wrap_tip

_MIN_CODE_HEIGHT = 110
"""Minimum height in pixels that is left to the code."""
_MIN_LINES, _MAX_LINES = 2, 7
"""Minimum and maximum number of lines for a problem, in a low and a high editor."""
_MARGINS = 28
"""Pixels beside the message and the button."""
_MIN_TEXT_WIDTH = 120
"""Minimum width in pixels that a message is wrapped at."""
_WRAPPED = int(Qt.TextFlag.TextWordWrap)


class ProblemStrip(QFrame):
    """A strip with one problem and the number of problems; hidden if the source is unedited and has no problem."""

    next_requested = pyqtSignal()
    remedy_requested = pyqtSignal()

    def __init__(self) -> None:
        super().__init__()
        set_role(self, "problem")
        self.setAccessibleName("Problems")
        self.message = label("", "caption", wrap=True, name="Problem")
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.next_button = button("Next", "flat", tip="Go to the next problem (F8)", name="Next problem")
        self.next_button.clicked.connect(self.next_requested)
        self.remedy = button(
            "", "flat", tip="This edit was tried: it leaves no findings. Ctrl+Z undoes it.", name="Fix"
        )
        self.remedy.clicked.connect(self.remedy_requested)
        self.remedy.hide()
        self.area = QScrollArea()
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidgetResizable(True)
        self.area.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.area.setWidget(self.message)
        for each in (self.message, self.area.viewport()):
            if each is not None:
                each.setAutoFillBackground(False)  # the strip's color shows
        line = row(self.area, self.next_button, spacing=8, stretch=0)
        line.setAlignment(self.next_button, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(look().px(12), look().px(3), look().px(6), look().px(3))
        layout.setSpacing(0)
        layout.addLayout(line)
        layout.addWidget(self.remedy, 0, Qt.AlignmentFlag.AlignRight)
        self._text = ""
        self.hide()

    def show_document(self, document: KernelDocument, problem: Problem | None, message: str = "") -> None:
        """Show a problem, or that there is none, or that the source is still being checked.

        Parameters
        ----------
        message : str
            A message about the problem's line, shown instead of the problem's own.
        """
        problems = document.problems
        self.setVisible(document.edited or bool(problems))
        self.next_button.setVisible(bool(problems))
        other_count = len(problems) - 1
        self.next_button.setText(f"Next of {len(problems)}" if other_count > 0 else "Show")
        remedy = document.remedy
        self.remedy.setVisible(remedy is not None)
        if remedy is not None:
            self.remedy.setText(remedy.words)
        if document.edited and not document.checked:
            # The edit may have fixed the problems found before.
            self._set_tone("neutral")
            self._show_text("Checking…")
        elif problem is None:
            self._set_tone("good")
            self._show_text("No compile errors.")
        else:
            self._set_tone("bad" if problem.diagnostic.severity == "error" else "warn")
            self._show_text(
                f"Line {problem.line}: {_shorten_message(message or problem.diagnostic.message, problem.line)}"
            )

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._show_text(self._text)

    def event(self, event: QEvent | None) -> bool:
        parent = self.parentWidget()
        if is_event_type(event, QEvent.Type.ParentChange) and parent is not None:
            parent.installEventFilter(self)
        return super().event(event)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if watched is self.parentWidget() and is_event_type(event, QEvent.Type.Resize):
            self._show_text(self._text)  # the available height has changed
        return super().eventFilter(watched, event)

    def _show_text(self, text: str) -> None:
        """Show a text in as many lines as leave the code most of the height; a longer text scrolls."""
        self._text = text
        metrics, parent = self.message.fontMetrics(), self.parentWidget()
        free = 0 if parent is None else parent.height() - look().px(_MIN_CODE_HEIGHT)
        lines = min(max(free // metrics.lineSpacing(), _MIN_LINES), _MAX_LINES)
        width = self.width() - self.next_button.sizeHint().width() - look().px(_MARGINS)
        room = QRect(0, 0, max(width, look().px(_MIN_TEXT_WIDTH)), 10_000)

        def measure_height(shown: str) -> int:
            return metrics.boundingRect(room, _WRAPPED, shown).height()

        available, shorter = lines * metrics.lineSpacing(), _list_shorter_texts(text, self.remedy.isVisibleTo(self))
        shown = next((each for each in shorter if measure_height(each) <= available), shorter[-1])
        self.message.setText(shown)
        self.message.setToolTip(wrap_tip(text))
        needed = measure_height(shown)
        self.area.setFixedHeight(min(needed, available))
        self.area.setFocusPolicy(Qt.FocusPolicy.TabFocus if needed > available else Qt.FocusPolicy.NoFocus)
        if (bar := self.area.verticalScrollBar()) is not None:
            bar.setValue(0)

    def _set_tone(self, tone: str) -> None:
        restyle(self, "tone", tone)
        restyle(self.message, "tone", tone)


def _list_shorter_texts(text: str, has_remedy: bool) -> tuple[str, ...]:
    """Return a text, then without a race's values, then also without the memory space.

    The end of a text is advice, which is left out last where an edit is offered that follows it.
    """
    bare = re.sub(r": (?:wrote|read|atomic operand) [^:]*?(?=\. [A-Z])", "", text)
    without_space = re.sub(r" \((?:shared|global) memory\)", "", bare)
    if not has_remedy:
        return text, bare, without_space
    sentence = re.split(r"(?<=\.) (?=[A-Z])", without_space)[0]
    return text, bare, without_space, re.sub(r": add a .*", ".", without_space), sentence


def _shorten_message(message: str, line: int) -> str:
    """Remove parts of a message that are obvious next to its line: file name, a single block."""
    message = message.replace("Race reported between", "Race between").replace(" access at ", " at ")
    message = re.sub(r"[\w.-]+\.cuh?:(\d+)(?::\d+)?", r"line \1", message)
    message = message.replace(f" at line {line} by", " by", 1)
    blocks = set(re.findall(r"\bblock (?:\d+|\([\d, ]+\)), (?=thread)", message))
    return message.replace(blocks.pop(), "") if len(blocks) == 1 else message
