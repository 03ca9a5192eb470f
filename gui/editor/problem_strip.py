"""The line below the text: what is wrong where the cursor is, or first."""

from __future__ import annotations

import re

from PyQt6.QtCore import QEvent, QObject, Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QFrame, QVBoxLayout

from gui.editor.document import KernelDocument, Problem
from gui.painting.theme import look
from gui.qt.events import is_of
from gui.widgets.basic import button, label, restyle, role, row

_CODE = 110
"""The height that is the code's first."""
_FEWEST, _MOST = 2, 7
"""Lines of a problem that are shown at most, in a low editor and in a high one."""
_LOST = 0.4
"""Of the last line and of the ends of the others, in lines: words are not broken."""


class ProblemStrip(QFrame):
    """Says one problem of a text, and that there are more; hidden while the text is the file's and nothing is wrong."""

    next_wanted = pyqtSignal()
    remedy_wanted = pyqtSignal()

    def __init__(self) -> None:
        super().__init__()
        role(self, "problem")
        self.setAccessibleName("Problems")
        self.message = label("", "caption", wrap=True, name="Problem")
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.more = button("Next", "flat", tip="Go to the next problem (F8)", name="Next problem")
        self.more.clicked.connect(self.next_wanted)
        self.remedy = button("", "flat", tip="It was tried: with it nothing is found. Ctrl+Z undoes it.", name="Mend")
        self.remedy.clicked.connect(self.remedy_wanted)
        self.remedy.hide()
        said = row(self.message, self.more, spacing=8)
        said.setStretch(0, 1)
        said.setAlignment(self.more, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(look().px(12), look().px(3), look().px(6), look().px(3))
        layout.setSpacing(0)
        layout.addLayout(said)
        layout.addWidget(self.remedy, 0, Qt.AlignmentFlag.AlignRight)
        self._whole = ""
        self.hide()

    def show_document(self, document: KernelDocument, shown: Problem | None) -> None:
        """Show a problem out of several, or that there is none; of a text that is not checked yet, that it is not."""
        problems = document.problems
        self.setVisible(document.edited or bool(problems))
        self.more.setVisible(bool(problems))
        others = len(problems) - 1
        self.more.setText(f"Next of {len(problems)}" if others > 0 else "Show")
        remedy = document.remedy
        self.remedy.setVisible(remedy is not None)
        if remedy is not None:
            self.remedy.setText(remedy.words)
        if document.edited and not document.checked:
            # What was found in the text as it was a moment ago may be mended by now.
            self._tone("neutral")
            self._say("Checking…")
        elif shown is None:
            self._tone("good")
            self._say("It compiles.")
        else:
            self._tone("bad" if shown.diagnostic.severity == "error" else "warn")
            self._say(f"Line {shown.line}: {_in_short(shown.diagnostic.message, shown.line)}")

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._say(self._whole)

    def event(self, event: QEvent | None) -> bool:
        around = self.parentWidget()
        if is_of(event, QEvent.Type.ParentChange) and around is not None:
            around.installEventFilter(self)
        return super().event(event)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if watched is self.parentWidget() and is_of(event, QEvent.Type.Resize):
            self._say(self._whole)  # there is another height to share
        return super().eventFilter(watched, event)

    def _say(self, text: str) -> None:
        """Show a text in as many lines as leave the code most of the height; the tool tip has all of it."""
        self._whole = text
        metrics = self.message.fontMetrics()
        room = self.width() - self.more.sizeHint().width() - look().px(40)
        around = self.parentWidget()
        free = 0 if around is None else around.height() - look().px(_CODE)
        lines = min(max(free // metrics.lineSpacing(), _FEWEST), _MOST)
        width = max(round((lines - _LOST) * room), look().px(200))
        self.message.setText(metrics.elidedText(text, Qt.TextElideMode.ElideRight, width))
        self.message.setToolTip(text)

    def _tone(self, tone: str) -> None:
        restyle(self, "tone", tone)
        restyle(self.message, "tone", tone)


def _in_short(message: str, line: int) -> str:
    """Return a message without what is plain beside its line: the file's name, the block where there is one, zeros."""
    message = message.replace("Race reported between", "Race between").replace(" access at ", " at ")
    places = re.findall(r"by thread \((\d+),(\d+),(\d+)\)", message)
    if all(place[1:] == ("0", "0") for place in places):  # of threads in a row one number says it
        message = re.sub(r"by thread \((\d+),0,0\)", r"by thread \1", message)
    message = re.sub(r"[\w.-]+\.cuh?:(\d+)(?::\d+)?", r"line \1", message)
    message = message.replace(f" at line {line} by", " by", 1)
    blocks = set(re.findall(r" in block \([\d,]+\)", message))
    return message.replace(blocks.pop(), "") if len(blocks) == 1 else message
