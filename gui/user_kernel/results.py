"""The results of a kernel's launch: findings, arrays, printed text, and costs per line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from gpu.declaration.pattern import Array
from gpu.messages.kernels import LineFigures, Signature, SimulationResult
from gpu.messages.verdicts import decide_launch_verdict, format_lines
from gui.painting.theme import code_font, look
from gui.widgets.basic import Badge, Card, Segments, format_count, row, set_role
from gui.widgets.wrapping import WrappingLayout

_MAX_SHOWN_ELEMENTS = 512
_COLUMNS = ("Line", "Statements", "Lanes", "Sectors", "Conflicts", "Source")
_TIPS = (
    "",
    "Statements executed by warps",
    "Active lanes of 32, on average",
    "32-byte sectors per request to global memory; 4 is best for 4-byte elements",
    "Bank conflicts in shared memory",
    "",
)
_TABS = ("Findings", "Arrays", "Printed", "Line by line")


class ResultsCard(Card):
    """Findings, arrays, printed text and costs per line, one at a time."""

    line_requested = pyqtSignal(int)
    """The line number (from 1) of a selected entry."""

    def __init__(self) -> None:
        super().__init__("Result", margins=(12, 10, 12, 10))
        self.verdict = Badge()
        self.verdict.hide()
        self.kinds = Segments(_TABS, "Result")
        heading = QWidget()
        heading.setLayout(row(self.title, self.verdict))
        line = WrappingLayout(across=8, down=4, spread=True)  # with large text, the tabs are on a second line
        line.addWidget(heading)
        line.addWidget(self.kinds)
        self.body.removeItem(self.head)
        self.body.addLayout(line)
        self.findings = QListWidget()
        self.findings.setWordWrap(True)
        self.findings.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.findings.setAccessibleName("Findings")
        self.arrays = _create_text_pane("Arrays after the launch")
        self.printed = _create_text_pane("Printed by the kernel")
        self.lines = QTableWidget(0, len(_COLUMNS))
        self.lines.setAccessibleName("Counted line by line")
        self.lines.setHorizontalHeaderLabels(_COLUMNS)
        for index, tip in enumerate(_TIPS):
            item = self.lines.horizontalHeaderItem(index)
            assert item is not None
            item.setToolTip(tip)
            item.setTextAlignment(_align_column(index))
        self.lines.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.lines.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.lines.setShowGrid(False)
        self.lines.setWordWrap(False)
        self.lines.setTabKeyNavigation(False)
        rows, header = self.lines.verticalHeader(), self.lines.horizontalHeader()
        assert rows is not None
        assert header is not None
        rows.hide()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(len(_COLUMNS) - 1, QHeaderView.ResizeMode.Stretch)
        self.stack = QStackedWidget()
        pages = dict(zip(_TABS, (self.findings, self.arrays, self.printed, self.lines), strict=True))
        for widget in pages.values():
            self.stack.addWidget(widget)
        self.kinds.picked.connect(lambda name: self._show_tab(pages[name]))
        self.body.addWidget(self.stack, 1)
        self.findings.addItem("Run the kernel (F5): findings are shown here.")
        self.findings.itemClicked.connect(self._on_finding)
        self.findings.itemActivated.connect(self._on_finding)
        self.lines.itemSelectionChanged.connect(self._on_line)

    def show_result(
        self, signature: Signature, text: str, result: SimulationResult, arrays: Mapping[str, Array]
    ) -> None:
        """Show the result of a launch.

        Parameters
        ----------
        signature : Signature
            The kernel's signature.
        text : str
            The source text that ran.
        arrays : mapping
            The arrays after the launch, by the key of their parameter.
        """
        check = result.check
        verdict = decide_launch_verdict(check)
        self.verdict.show_text(verdict.words, "bad" if verdict.is_bad else "good", verdict.sentence)
        self.findings.clear()
        lines: dict[tuple[bool, str], list[int]] = {}
        for finding in check.diagnostics:
            lines.setdefault((finding.severity == "warning", finding.message), []).append(finding.line)
        for (suspicious, message), places in sorted(lines.items(), key=lambda each: each[0][0]):
            where = format_lines(places)
            item = QListWidgetItem(f"{f'Warning, {where}' if suspicious else where.capitalize()}: {message}")
            item.setData(Qt.ItemDataRole.UserRole, places[0])
            self.findings.addItem(item)
        if check.clean or not lines:
            self.findings.addItem(verdict.sentence)
        names = {str(number): parameter.name for number, parameter in enumerate(signature.parameters)}
        self.arrays.setPlainText("\n\n".join(_describe_array(names[key], array) for key, array in arrays.items()))
        self.printed.setPlainText("".join(text for _, text in result.printed) or "Nothing was printed.")
        self._fill_lines(result.lines, text.split("\n"))

    def clear_verdict(self) -> None:
        """Clear the verdict, which belongs to another launch."""
        self.verdict.show_text("", "neutral")

    def _fill_lines(self, lines: Mapping[int, LineFigures], source: list[str]) -> None:
        self.lines.setRowCount(0)
        self.lines.setRowCount(len(lines))
        for position, (number, line) in enumerate(lines.items()):
            cells = (
                str(number),
                format_count(line.statements) if line.statements else "",
                f"{line.lanes:.1f}" if line.statements else "",
                "" if line.sectors is None else f"{line.sectors:.1f}",
                "" if line.conflicts is None else format_count(line.conflicts),
                source[number - 1].strip() if number <= len(source) else "",
            )
            for index, cell in enumerate(cells):
                item = QTableWidgetItem(cell)
                item.setTextAlignment(_align_column(index))
                if index == len(_COLUMNS) - 1:
                    item.setFont(code_font(look().small_px))
                    item.setToolTip(cell)
                self.lines.setItem(position, index, item)

    def _show_tab(self, widget: QWidget) -> None:
        self.stack.setCurrentWidget(widget)

    def _on_finding(self, item: QListWidgetItem) -> None:
        line = item.data(Qt.ItemDataRole.UserRole)
        if line:
            self.line_requested.emit(line)

    def _on_line(self) -> None:
        item = self.lines.item(self.lines.currentRow(), 0)
        if item is not None:
            self.line_requested.emit(int(item.text()))


def _align_column(index: int) -> Qt.AlignmentFlag:
    """Return the alignment of a column: numbers to the right, the source to the left."""
    side = Qt.AlignmentFlag.AlignLeft if index == len(_COLUMNS) - 1 else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter


def _create_text_pane(name: str) -> QPlainTextEdit:
    pane = QPlainTextEdit()
    set_role(pane, "code")
    pane.setReadOnly(True)
    pane.setAccessibleName(name)
    pane.setTabChangesFocus(True)
    return pane


def _describe_array(name: str, array: Array) -> str:
    """Format an array's name, type, shape and first elements."""
    flat = array.reshape(-1)
    more = f" … ({format_count(flat.size - _MAX_SHOWN_ELEMENTS)} more)" if flat.size > _MAX_SHOWN_ELEMENTS else ""
    # The text widget wraps lines at its own width.
    with np.printoptions(
        precision=5, suppress=True, threshold=_MAX_SHOWN_ELEMENTS + 1, linewidth=20 * _MAX_SHOWN_ELEMENTS
    ):
        values = str(flat[:_MAX_SHOWN_ELEMENTS]).strip("[]")
    shape = " × ".join(map(str, array.shape))
    return f"{name}   {array.dtype}, {shape}\n{values}{more}"
