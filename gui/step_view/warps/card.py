"""Card of a timeline: duration by number of resident blocks, and the warps' states."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PyQt6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu.timing.timeline import LaunchTimelines, WarpState, WarpTimeline
from gui.painting.colors import mix_colors
from gui.painting.theme import look, resize_font
from gui.step_view.warps.states import SHORT_STATE_NAMES, STATE_NAMES, state_color
from gui.widgets.basic import Card, ElidedLabel, format_count
from gui.widgets.glossary_tip import add_definition
from gui.widgets.wrapping import WrappingLayout

RESIDENCY_KEYS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}
"""Keys that change the number of resident blocks, and by how much."""


class ResidencyBars(QWidget):
    """Cycles for the same blocks with 1, 2, 3, ... of them resident, one bar each; click, ↑ and ↓ select one."""

    chosen = pyqtSignal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Resident blocks")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.launch: LaunchTimelines | None = None
        self.resident = 1

    def open(self, launch: LaunchTimelines | None, resident: int) -> None:
        """Set the launch, and the selected number of resident blocks."""
        self.launch, self.resident = launch, resident
        if launch is not None:
            max_resident = len(launch.timelines)
            cycles = format_count(launch.timelines[resident - 1].cycles)
            self.setAccessibleDescription(f"{resident} of at most {max_resident} resident blocks: {cycles} cycles")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(160, look().px(64))

    def _bar(self, number: int) -> QRectF:
        """Return the box of a bar, over the full height of the picture; the first is number 1."""
        assert self.launch is not None
        width = self.width() / len(self.launch.timelines)
        return QRectF((number - 1) * width, 0, width, self.height() - look().px(14))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.launch is None:
            return
        theme = look().theme
        painter = QPainter(self)
        max_cycles = max(timeline.cycles for timeline in self.launch.timelines) or 1.0
        font = resize_font(self.font(), look().small_px)
        painter.setFont(font)
        count = len(self.launch.timelines)
        every = next(each for each in (1, 2, 4, 8) if self.width() / count * each >= look().px(20))
        for timeline in self.launch.timelines:
            bar = self._bar(timeline.resident)
            box = bar.adjusted(1, 0, -1, 0)
            box.setTop(box.bottom() - max(timeline.cycles / max_cycles * box.height(), 1))
            is_selected = timeline.resident == self.resident
            painter.fillRect(box, QColor(theme.accent) if is_selected else mix_colors(theme.accent, theme.surface, 0.3))
            if (
                is_selected
                or timeline.resident == 1
                or (timeline.resident % every == 0 and abs(timeline.resident - self.resident) >= every)
            ):
                painter.setPen(QColor(theme.text if is_selected else theme.muted))
                low = QRectF(bar.center().x() - 20, bar.bottom(), 40, look().px(14))
                painter.drawText(low, Qt.AlignmentFlag.AlignCenter, str(timeline.resident))
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), 1))
            painter.drawRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1))
        painter.end()

    def _resident_at(self, point: QPointF) -> int:
        assert self.launch is not None
        count = len(self.launch.timelines)
        return min(max(int(point.x() / (self.width() / count)) + 1, 1), count)

    def change_by(self, change: int) -> None:
        """Change the number of resident blocks."""
        self._choose(self.resident + change)

    def _choose(self, resident: int) -> None:
        if self.launch is not None and resident != self.resident and 1 <= resident <= len(self.launch.timelines):
            self.chosen.emit(resident)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and self.launch is not None:
            self._choose(self._resident_at(event.position()))

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and event.buttons() and self.launch is not None:
            self._choose(self._resident_at(event.position()))

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        if event.key() in RESIDENCY_KEYS:
            self.change_by(RESIDENCY_KEYS[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent | None) -> None:
        super().focusInEvent(event)
        self.update()

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and self.launch is not None:
            each = self.launch.timelines[self._resident_at(QPointF(event.pos())) - 1]
            QToolTip.showText(event.globalPos(), _describe_speed(self.launch, each), self)
            return True
        return super().event(event)


def _describe_speed(launch: LaunchTimelines, timeline: WarpTimeline) -> str:
    """Return the duration of all blocks, and the speedup over one resident block."""
    blocks = "1 block" if launch.blocks == 1 else f"{launch.blocks} blocks"
    per_block = format_count(timeline.cycles / max(launch.blocks, 1))
    text = f"{blocks} in {format_count(timeline.cycles)} cycles, {per_block} per block"
    if timeline.resident > 1:
        text += f": {launch.timelines[0].cycles / timeline.cycles:.1f}× speedup over one at a time"
    return text


class StateShares(QWidget):
    """A bar with the shares of the warps' states in their cycles, and a legend."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("States of the warps")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.shares: tuple[float, ...] = (0.0,) * len(WarpState)

    def show_timeline(self, timeline: WarpTimeline) -> None:
        """Show the shares of a timeline."""
        total = sum(timeline.state_cycles) or 1.0
        self.shares = tuple(state_cycle / total for state_cycle in timeline.state_cycles)
        self.setAccessibleDescription(
            ", ".join(f"{STATE_NAMES[state]} {self.shares[state]:.0%}" for state in WarpState)
        )
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(160, look().px(16) + (len(WarpState) + 1) // 2 * look().px(17))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        theme = look().theme
        painter = QPainter(self)
        x = 0.0
        for state in WarpState:
            width = self.shares[state] * self.width()
            painter.fillRect(QRectF(x, 0, width, look().px(10)), state_color(theme, state))
            x += width
        font = resize_font(self.font(), look().small_px)
        painter.setFont(font)
        metrics = painter.fontMetrics()
        lines, line_height, chip = (len(WarpState) + 1) // 2, look().px(17), look().px(10)
        percentages = [_format_percent(share) for share in self.shares]
        for names, first in ((STATE_NAMES, 0.46), (SHORT_STATE_NAMES, 0.52)):  # the share of the first column
            columns = (first * self.width(), (1 - first) * self.width())
            rooms = [columns[state // lines] - chip - (16 if state < lines else 6) for state in WarpState]
            widths = [metrics.horizontalAdvance(f"{names[state]}  {percentages[state]}") for state in WarpState]
            if all(width <= room for width, room in zip(widths, rooms, strict=True)):
                break
        for state in WarpState:
            left, top = columns[0] * (state // lines), look().px(16) + state % lines * line_height
            painter.fillRect(QRectF(left, top + (line_height - chip) / 2, chip, chip), state_color(theme, state))
            painter.setPen(QColor(theme.text if self.shares[state] else theme.faint))
            box = QRectF(left + chip + 6, top, rooms[state], line_height)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, percentages[state])
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, names[state])
        painter.end()


def _format_percent(share: float) -> str:
    return "0%" if not share else "<1%" if share < 0.01 else f"{100 * share:.0f}%"


class WarpsCard(Card):
    """The card of a timeline: resident blocks, issue rate, and the warps' states."""

    def __init__(self) -> None:
        super().__init__("Resident blocks", margins=(12, 6, 12, 8))
        self.body.setSpacing(4)
        self.title.hide()
        self.settings = WrappingLayout(across=8, down=4)
        """Layout for further settings of the model."""
        self.body.addLayout(self.settings)
        self.resident = ElidedLabel("card-title", "Resident blocks")
        self.bars = ResidencyBars()
        self.speed = ElidedLabel("caption", "Duration of the blocks")
        self.issue = ElidedLabel("card-title", "Issue rate")
        self.shares = StateShares()
        self.state_label = ElidedLabel("code", "State of the warp")
        for each in (self.resident, self.bars, self.speed, self.issue, self.shares, self.state_label):
            self.body.addWidget(each)

    def show_timeline(self, launch: LaunchTimelines, resident: int) -> None:
        """Show a launch with a number of resident blocks."""
        timeline = launch.timelines[resident - 1]
        max_blocks = len(launch.timelines)
        own_blocks = "1 block" if launch.resident == 1 else f"{launch.resident} blocks"
        warps = resident * launch.warps_per_block
        self.resident.show_text(f"{resident} of {max_blocks} blocks  ·  {warps} warp{'' if warps == 1 else 's'}")
        self.resident.setToolTip(
            f"Resident on one multiprocessor. This launch has {own_blocks} resident per multiprocessor. "
            f"At most {max_blocks} fit, limited by {launch.limiting_resource}."
        )
        add_definition(self.resident, "resident warps")
        self.bars.open(launch, resident)
        self.speed.show_text(_describe_speed(launch, timeline))
        self.issue.show_text(f"Issue in {100 * timeline.compute_issue_utilization(launch.schedulers):.0f}% of cycles")
        self.issue.setToolTip(
            f"Of all cycles of its {launch.schedulers} warp schedulers; below, the states of its warps"
        )
        add_definition(self.issue, "instruction issue")
        self.shares.show_timeline(timeline)
