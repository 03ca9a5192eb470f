"""The results of a program: its output, the findings of its launches, and the counts of one launch."""

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
"""Maximum number of findings listed."""
_LINE, _LAUNCH = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


class ProgramResults(Card):
    """Output, findings, and the counts of the current launch, one at a time."""

    line_wanted = pyqtSignal(int)
    """A line of the program's file, from 1."""
    launch_wanted = pyqtSignal(int)
    """The number of a launch to step."""

    def __init__(self) -> None:
        super().__init__("Result", margins=(12, 8, 12, 10))
        self.verdict = Badge()
        self.verdict.hide()
        self.end = ElidedLabel("caption", "End of the program")
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
        self.counts.hideRow(LINES.index(RESULT))  # there is no other launch to compare with
        self.stack = QStackedWidget()
        pages = dict(zip(_TABS, (self.output, self.findings, self.counts), strict=True))
        for widget in pages.values():
            self.stack.addWidget(widget)
        self.kinds.picked.connect(lambda name: self.stack.setCurrentWidget(pages[name]))
        self.body.addWidget(self.stack, 1)
        self.findings.addItem("Run the program (F5): findings of its launches are shown here.")
        self.findings.itemClicked.connect(self._go_to)
        self.findings.itemActivated.connect(self._step)
        self._has_launches = False
        self._counted: ProgramLaunch | None = None
        self._groups: dict[tuple[str, tuple[Mistake, ...]], list[ProgramLaunch]] = {}
        """Launches of the same kernel with the same mistakes in the same lines."""

    @property
    def placed(self) -> tuple[Diagnostic, ...]:
        """The findings at lines of the program's file."""
        return tuple(dict.fromkeys(found for several in self._groups.values() for found in several[0].placed))

    def begin(self) -> None:
        """Clear the results of an earlier run."""
        self._has_launches, self._counted, self._groups = False, None, {}
        self.verdict.say("", "neutral")
        self.end.say("")
        self.output.clear()
        self.findings.clear()
        self.counts.begin([])
        self.kinds.choose("Output")

    def add_launches(self, launches: Sequence[ProgramLaunch]) -> None:
        """Add launches that have finished."""
        before = len(self._groups)
        self._has_launches = True
        for launch in launches:
            if launch.diagnostics:
                self._groups.setdefault((launch.kernel, launch.mistakes), []).append(launch)
        if len(self._groups) != before:
            self._list()

    def say_end(self, sentence: str, *, bad: bool) -> None:
        """Show how the run ended, and the verdict on all its launches."""
        self.end.say(sentence)
        self._list()
        if self._has_launches:
            self._show_verdict()

    def _show_verdict(self) -> None:
        mistakes = tuple(dict.fromkeys(mistake for several in self._groups.values() for mistake in several[0].mistakes))
        verdict = verdict_of_launch(Check(mistakes))
        self.verdict.say(verdict.words, "bad" if verdict.bad else "good", verdict.sentence)

    def _list(self) -> None:
        self.findings.clear()
        if not self._has_launches:
            return
        for several in list(self._groups.values())[:_MOST]:
            first = several[0]
            lines: dict[str, list[int]] = {}
            for each in first.placed or first.diagnostics:
                lines.setdefault(each.message, []).append(each.line)
            for message, places in lines.items():
                item = QListWidgetItem(f"{_launches(several)}, {lines_in_words(places)}: {message}")
                item.setData(_LINE, places[0] if first.placed else 0)
                item.setData(_LAUNCH, first.number)
                item.setToolTip("Click to go to the line, double-click to step the launch")
                self.findings.addItem(item)
        if not self._groups:
            self.findings.addItem(verdict_of_launch(Check()).sentence)

    def show_counts(self, launch: ProgramLaunch) -> None:
        """Show the counts of a launch."""
        self._counted = launch
        title = f"{launch.number}: {launch.kernel}"
        self.counts.begin([title])
        missing = "The launch ended with an error, so its counts are not meaningful."
        self.counts.show_counts(
            [CountedLaunch(launch.counts, launch.mistakes, launch.simulated_ms) if launch.counts else missing], [None]
        )

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange) and self._counted is not None:
            self.counts.fit()
            self.show_counts(self._counted)  # in the colors of the new theme

    def _go_to(self, item: QListWidgetItem) -> None:
        if line := item.data(_LINE):
            self.line_wanted.emit(line)

    def _step(self, item: QListWidgetItem) -> None:
        if number := item.data(_LAUNCH):
            self.launch_wanted.emit(number)


def _launches(several: Sequence[ProgramLaunch]) -> str:
    """Name launches of one kernel that share their findings."""
    more = f" and {as_count(len(several) - 1)} more" if len(several) > 1 else ""
    return f"{several[0].kernel}, launch {several[0].number}{more}"
