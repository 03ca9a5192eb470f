"""What came of a program: what it wrote, what its launches did wrong, and what one of them cost."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import QEvent, Qt, pyqtSignal
from PyQt6.QtWidgets import QListWidget, QListWidgetItem, QStackedWidget

from gpu.errors import Diagnostic
from gpu.messages.kernels import CountedLaunch
from gpu.messages.programs import ProgramLaunch
from gpu.messages.verdicts import Check, Mistake, lines_in_words, verdict_of_launch
from gui.own_kernel.counts_table import LINES, RESULT, CountsTable
from gui.own_kernel.program.output import OutputPane
from gui.qt.events import is_of
from gui.widgets.basic import Badge, Card, ElidedLabel, Segments, as_count

_TABS = ("Output", "Findings", "Counts")
_MOST = 200
"""Findings that are listed."""
_LINE, _LAUNCH = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


class ProgramResults(Card):
    """Output, findings, and the counts of the launch that is chosen, one of them at a time."""

    line_wanted = pyqtSignal(int)
    """A line of the program's file, from 1."""
    launch_wanted = pyqtSignal(int)
    """The number of a launch that is to be stepped."""

    def __init__(self) -> None:
        super().__init__("Result", margins=(12, 8, 12, 10))
        self.verdict = Badge()
        self.verdict.hide()
        self.end = ElidedLabel("caption", "How it ended")
        self.kinds = Segments(_TABS, "Result")
        self.head.addWidget(self.verdict)
        self.head.addWidget(self.end, 1)
        self.head.addWidget(self.kinds)
        self.output = OutputPane()
        self.findings = QListWidget()
        self.findings.setWordWrap(True)
        self.findings.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.findings.setAccessibleName("Findings")
        self.counts = CountsTable()
        self.counts.hideRow(LINES.index(RESULT))  # of another launch's
        self.stack = QStackedWidget()
        pages = dict(zip(_TABS, (self.output, self.findings, self.counts), strict=True))
        for widget in pages.values():
            self.stack.addWidget(widget)
        self.kinds.picked.connect(lambda name: self.stack.setCurrentWidget(pages[name]))
        self.body.addWidget(self.stack, 1)
        self.findings.addItem("Run the program (F5): what its launches do wrong is shown here.")
        self.findings.itemClicked.connect(self._go_to)
        self.findings.itemActivated.connect(self._step)
        self._any = False
        self._counted: ProgramLaunch | None = None
        self._found: dict[tuple[str, tuple[Mistake, ...]], list[ProgramLaunch]] = {}
        """The launches that make the same mistakes in the same lines."""

    @property
    def placed(self) -> tuple[Diagnostic, ...]:
        """What was found, at the lines of the program's file."""
        return tuple(dict.fromkeys(found for several in self._found.values() for found in several[0].placed))

    def begin(self) -> None:
        """Take away what an earlier run left."""
        self._any, self._counted, self._found = False, None, {}
        self.verdict.say("", "neutral")
        self.end.say("")
        self.output.clear()
        self.findings.clear()
        self.counts.begin([])
        self.kinds.choose("Output")

    def add_launches(self, launches: Sequence[ProgramLaunch]) -> None:
        """Take launches that have ended."""
        before = len(self._found)
        self._any = True
        for launch in launches:
            if launch.diagnostics:
                self._found.setdefault((launch.kernel, launch.mistakes), []).append(launch)
        if len(self._found) != before:
            self._list()

    def say_end(self, sentence: str, *, bad: bool) -> None:
        """Say how the run ended, and what is to be said of all its launches."""
        self.end.say(sentence)
        self._list()
        if self._any:
            self._judge()

    def _judge(self) -> None:
        mistakes = tuple(dict.fromkeys(mistake for several in self._found.values() for mistake in several[0].mistakes))
        verdict = verdict_of_launch(Check(mistakes))
        self.verdict.say(verdict.words, "bad" if verdict.bad else "good", verdict.sentence)

    def _list(self) -> None:
        self.findings.clear()
        if not self._any:
            return
        for several in list(self._found.values())[:_MOST]:
            first = several[0]
            lines: dict[str, list[int]] = {}
            for each in first.placed or first.diagnostics:
                lines.setdefault(each.message, []).append(each.line)
            for message, places in lines.items():
                item = QListWidgetItem(f"{_launches(several)}, {lines_in_words(places)}: {message}")
                item.setData(_LINE, places[0] if first.placed else 0)
                item.setData(_LAUNCH, first.number)
                item.setToolTip("A click goes to the line, a double click steps the launch")
                self.findings.addItem(item)
        if not self._found:
            self.findings.addItem(verdict_of_launch(Check()).sentence)

    def show_counts(self, launch: ProgramLaunch) -> None:
        """Show what a launch does, counted."""
        self._counted = launch
        title = f"{launch.number}: {launch.kernel}"
        self.counts.begin([title])
        counted = "A mistake ended it: what it had done by then says nothing."
        self.counts.show_counts(
            [CountedLaunch(launch.counts, launch.mistakes, launch.simulated_ms) if launch.counts else counted], [None]
        )

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange) and self._counted is not None:
            self.counts.fit()
            self.show_counts(self._counted)  # in the colors of another theme

    def _go_to(self, item: QListWidgetItem) -> None:
        if line := item.data(_LINE):
            self.line_wanted.emit(line)

    def _step(self, item: QListWidgetItem) -> None:
        if number := item.data(_LAUNCH):
            self.launch_wanted.emit(number)


def _launches(several: Sequence[ProgramLaunch]) -> str:
    """Return which launches they are, all of one kernel."""
    more = f" and {as_count(len(several) - 1)} more" if len(several) > 1 else ""
    return f"{several[0].kernel}, launch {several[0].number}{more}"
