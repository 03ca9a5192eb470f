"""Table of a program's launches, one row each, filled while the program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PyQt6.QtCore import QAbstractTableModel, QModelIndex, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent, QResizeEvent
from PyQt6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.messages.modeled_time import indefinite_article, short_name
from gpu.messages.programs import ProgramLaunch
from gpu.messages.run_counts import format_figure
from gpu.messages.verdicts import describe_mistakes
from gpu.timing import validation
from gpu.timing.gpus import find_gpu
from gui.painting.theme import code_font, look
from gui.step_view.dataflow.labels import label_font
from gui.widgets.basic import wrap_tip


@dataclass(frozen=True)
class LaunchColumn:
    """A column: its title, its tooltip, and its text for a launch."""

    title: str
    tip: str
    text: Callable[[ProgramLaunch], str]
    is_number: bool = True


def format_extents(extents: Sequence[int]) -> str:
    """Format a grid's or block's extents without trailing ones."""
    needed = max((index for index, extent in enumerate(extents, 1) if extent != 1), default=1)
    return " × ".join(map(str, extents[:needed]))


def _describe_findings(launch: ProgramLaunch) -> str:
    return describe_mistakes(launch.mistakes) or "none"


COLUMNS = (
    LaunchColumn("#", "In the order of launches", lambda launch: str(launch.number)),
    LaunchColumn("Kernel", "", lambda launch: launch.kernel, is_number=False),
    LaunchColumn("Grid", "Blocks in x, y and z", lambda launch: format_extents(launch.grid)),
    LaunchColumn("Block", "Threads in x, y and z", lambda launch: format_extents(launch.block)),
    LaunchColumn(
        "CPU ms",
        f"Milliseconds {SIMULATION_TIME_LABEL}, with counters and checkers. It does not predict a GPU's time",
        lambda launch: format_figure(launch.simulated_ms),
    ),
    LaunchColumn(
        "µs",
        "Modeled time on the GPU in microseconds",
        lambda launch: format_figure(launch.modeled_us) if launch.modeled_us is not None else "",
    ),
    LaunchColumn(
        "Sectors",
        "32-byte sectors per request to global memory; 4 is best for 4-byte elements",
        lambda launch: (
            f"{launch.counts.sectors / launch.counts.requests:.1f}" if launch.counts and launch.counts.requests else ""
        ),
    ),
    LaunchColumn(
        "Lanes",
        "Active lanes of 32, on average",
        lambda launch: f"{launch.counts.lanes:.1f}" if launch.counts and launch.counts.warp_statements else "",
    ),
    LaunchColumn("Findings", "Errors that the checkers detected", _describe_findings, is_number=False),
)
_FINDINGS_COLUMN = len(COLUMNS) - 1
_OPTIONAL_COLUMNS = tuple(index for index, column in enumerate(COLUMNS) if column.title in ("Sectors", "Lanes"))
"""Columns of figures that the Counts tab has too: a narrow table needs their width for the findings."""
_WIDTHS = (22, 76, 40, 44, 58, 62, 58, 46)
"""Widths in pixels, at the normal text size, of all columns but the last."""
_MIN_FINDINGS_WIDTH = 190
"""Minimum width of the findings in pixels, at the normal text size, beside the optional columns."""
_MODELED_COLUMN = next(index for index, column in enumerate(COLUMNS) if column.title == "µs")


class LaunchTableModel(QAbstractTableModel):
    """The launches of a run."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[ProgramLaunch] = []
        self._gpu = ""

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.launches)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        launch, column = self.launches[index.row()], COLUMNS[index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.text(launch)
            case Qt.ItemDataRole.TextAlignmentRole:
                side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
                return int(side | Qt.AlignmentFlag.AlignVCenter)
            case Qt.ItemDataRole.FontRole:
                return label_font(look()) if index.column() == _FINDINGS_COLUMN else code_font(look().small_px)
            case Qt.ItemDataRole.ForegroundRole if index.column() == _FINDINGS_COLUMN:
                return QColor(look().theme.bad if launch.mistakes else look().theme.good)
            case Qt.ItemDataRole.ToolTipRole if index.column() == _FINDINGS_COLUMN:
                return wrap_tip(column.text(launch))
            case Qt.ItemDataRole.ToolTipRole:
                words = f"{launch.kernel}, launched at {launch.call_site}"
                return words if launch.recording else f"{words}. It is recorded when you step it"
        return None

    def headerData(self, section: int, way: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if way is Qt.Orientation.Vertical:
            return None
        column = COLUMNS[section]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                is_modeled = section == _MODELED_COLUMN and self._gpu
                return f"{column.title} {short_name(find_gpu(self._gpu).name)}" if is_modeled else column.title
            case Qt.ItemDataRole.ToolTipRole:
                return wrap_tip(self._modeled_tip()) if section == _MODELED_COLUMN and self._gpu else column.tip
            case Qt.ItemDataRole.TextAlignmentRole:
                side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
                return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def _modeled_tip(self) -> str:
        gpu = find_gpu(self._gpu)
        record = validation.find_validation(gpu.key, "ir") if gpu.validated else None
        error = record.find_error_bound() if record is not None else None
        accuracy = error.text if error is not None else "never compared with measurements"
        gpu_name = f"{indefinite_article(gpu.name)} {gpu.name}"
        return f"Modeled time on {gpu_name} in microseconds, from estimated registers: {accuracy}"

    def append_launches(self, launches: Sequence[ProgramLaunch]) -> None:
        """Append launches."""
        first = len(self.launches)
        self.beginInsertRows(QModelIndex(), first, first + len(launches) - 1)
        self.launches += launches
        self.endInsertRows()

    def clear_launches(self, gpu: str) -> None:
        """Remove all launches; later ones are modeled for the GPU with this key."""
        self.beginResetModel()
        self._gpu = gpu
        self.launches.clear()
        self.endResetModel()

    def replace_launch(self, launch: ProgramLaunch) -> None:
        """Replace the launch with the same number."""
        self.launches[launch.number - 1] = launch
        self.dataChanged.emit(self.index(launch.number - 1, 0), self.index(launch.number - 1, len(COLUMNS) - 1))


class LaunchTable(QTableView):
    """Table of launches; a double click or Enter requests stepping."""

    step_requested = pyqtSignal(int)
    """A launch's number."""
    launch_selected = pyqtSignal(int)
    """The number of the current launch."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Launches")
        self.table_model = LaunchTableModel()
        self.table_model.setParent(self)
        self.setModel(self.table_model)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        rows, header = self.verticalHeader(), self.horizontalHeader()
        assert rows is not None
        assert header is not None
        rows.hide()
        header.setHighlightSections(False)
        header.setMinimumSectionSize(look().px(24))
        # Not by content, which would measure all rows again for each new one.
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setSectionResizeMode(_FINDINGS_COLUMN, QHeaderView.ResizeMode.Stretch)
        for place, width in enumerate(_WIDTHS):
            self.setColumnWidth(place, look().px(width))
        rows.setDefaultSectionSize(look().px(26))
        self.doubleClicked.connect(lambda index: self.step_requested.emit(index.row() + 1))
        selection = self.selectionModel()
        assert selection is not None
        selection.currentRowChanged.connect(
            lambda now, _: self.launch_selected.emit(now.row() + 1) if now.isValid() else None
        )

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        is_narrow = self.width() < look().px(sum(_WIDTHS) + _MIN_FINDINGS_WIDTH)
        for column in _OPTIONAL_COLUMNS:
            self.setColumnHidden(column, is_narrow)
        super().resizeEvent(event)

    @property
    def sorted_launches(self) -> list[ProgramLaunch]:
        """The launches, ordered by number."""
        return self.table_model.launches

    @property
    def current(self) -> int:
        """The number of the current launch; 0 for none."""
        return self.currentIndex().row() + 1

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.current:
            self.step_requested.emit(self.current)
            return
        super().keyPressEvent(event)
