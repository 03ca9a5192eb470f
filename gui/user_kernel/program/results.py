"""The results of a program: its output, the findings of its launches, and the counts of one launch."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QListWidget, QListWidgetItem, QStackedWidget

from gpu.base.errors import Diagnostic
from gpu.messages.kernels import CountedLaunch
from gpu.messages.programs import ProgramLaunch
from gpu.messages.verdicts import Check, Mistake, decide_launch_verdict, format_lines
from gui.qt.events import StyleListener
from gui.user_kernel.counts_table import LINES, RESULT, CountsTable
from gui.user_kernel.program.output import OutputPane
from gui.widgets.basic import Badge, Card, ElidedLabel, Segments, format_count

_TABS = ("Output", "Findings", "Counts")
_MAX_LISTED_GROUPS = 200
"""Maximum number of findings listed."""
_LINE, _LAUNCH = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


class ProgramResults(StyleListener, Card):
    """Output, findings, and the counts of the current launch, one at a time."""

    line_requested = pyqtSignal(int)
    """A line of the program's file, from 1."""
    launch_requested = pyqtSignal(int)
    """The number of a launch to step."""

    def __init__(self) -> None:
        super().__init__("Result", margins=(12, 8, 12, 10))
        self.verdict = Badge()
        self.verdict.hide()
        self.end_label = ElidedLabel("caption", "End of the program")
        self.kinds = Segments(_TABS, "Result")
        self.head.addWidget(self.verdict)
        self.head.addWidget(self.end_label, 1)
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
        self.findings.itemClicked.connect(self._request_line)
        self.findings.itemActivated.connect(self._request_launch)
        self._has_launches = False
        self._selected_launch: ProgramLaunch | None = None
        self._groups: dict[tuple[str, tuple[Mistake, ...]], list[ProgramLaunch]] = {}
        """Launches of one kernel with equal mistakes in equal lines."""

    @property
    def located_findings(self) -> tuple[Diagnostic, ...]:
        """The findings at lines of the program's file."""
        return tuple(dict.fromkeys(found for group in self._groups.values() for found in group[0].file_diagnostics))

    def clear_results(self) -> None:
        """Clear the results of an earlier run."""
        self._has_launches, self._selected_launch, self._groups = False, None, {}
        self.verdict.show_text("", "neutral")
        self.end_label.show_text("")
        self.output.clear()
        self.findings.clear()
        self.counts.show_titles([])
        self.kinds.choose("Output")

    def add_launches(self, launches: Sequence[ProgramLaunch]) -> None:
        """Add launches that have finished."""
        before = len(self._groups)
        self._has_launches = True
        for launch in launches:
            if launch.diagnostics:
                self._groups.setdefault((launch.kernel, launch.mistakes), []).append(launch)
        if len(self._groups) != before:
            self._list_findings()

    def show_end(self, sentence: str) -> None:
        """Show how the run ended, and the verdict on all its launches."""
        self.end_label.show_text(sentence)
        self._list_findings()
        if self._has_launches:
            self._show_verdict()

    def _show_verdict(self) -> None:
        mistakes = tuple(dict.fromkeys(mistake for several in self._groups.values() for mistake in several[0].mistakes))
        verdict = decide_launch_verdict(Check(mistakes))
        self.verdict.show_text(verdict.words, "bad" if verdict.is_bad else "good", verdict.sentence)

    def _list_findings(self) -> None:
        self.findings.clear()
        if not self._has_launches:
            return
        for several in list(self._groups.values())[:_MAX_LISTED_GROUPS]:
            first = several[0]
            lines: dict[str, list[int]] = {}
            for each in first.file_diagnostics or first.diagnostics:
                lines.setdefault(each.message, []).append(each.line)
            for message, places in lines.items():
                item = QListWidgetItem(f"{_name_launches(several)}, {format_lines(places)}: {message}")
                item.setData(_LINE, places[0] if first.file_diagnostics else 0)
                item.setData(_LAUNCH, first.number)
                item.setToolTip("Click to go to the line, double-click to step the launch")
                self.findings.addItem(item)
        if not self._groups:
            self.findings.addItem(decide_launch_verdict(Check()).sentence)

    def show_counts(self, launch: ProgramLaunch) -> None:
        """Show the counts of a launch."""
        self._selected_launch = launch
        title = f"{launch.number}: {launch.kernel}"
        self.counts.show_titles([title])
        missing = "The launch ended with an error, so its counts are not meaningful."
        self.counts.show_counts(
            [CountedLaunch(launch.counts, launch.mistakes, launch.simulated_ms) if launch.counts else missing], [None]
        )

    def _restyle(self) -> None:
        if self._selected_launch is not None:
            self.counts.resize_with_text()
            self.show_counts(self._selected_launch)  # in the colors of the new theme

    def _request_line(self, item: QListWidgetItem) -> None:
        if line := item.data(_LINE):
            self.line_requested.emit(line)

    def _request_launch(self, item: QListWidgetItem) -> None:
        if number := item.data(_LAUNCH):
            self.launch_requested.emit(number)


def _name_launches(launches: Sequence[ProgramLaunch]) -> str:
    """Name launches of one kernel that share their findings."""
    more = f" and {format_count(len(launches) - 1)} more" if len(launches) > 1 else ""
    return f"{launches[0].kernel}, launch {launches[0].number}{more}"
