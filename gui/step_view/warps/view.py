"""The Timeline picture: the warps of one modeled multiprocessor over cycles, with a separate player."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from PyQt6.QtCore import QPoint, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QHideEvent, QKeyEvent, QPainter
from PyQt6.QtWidgets import QComboBox, QSizePolicy, QStackedWidget, QWidget

from gpu.messages.modeled_time import name_with_article
from gpu.messages.timelines import LaunchSummary, RunTimelines
from gpu.timing.timeline import LaunchTimelines, WarpState
from gui.painting.theme import look, resize_font
from gui.qt.timers import create_single_shot_timer
from gui.step_view.time.player import Player
from gui.step_view.time.transport import Transport
from gui.step_view.warps.canvas import WarpCanvas, describe_span, parse_opcode
from gui.step_view.warps.card import RESIDENCY_KEYS, StateShares, WarpsCard
from gui.step_view.warps.rows import WarpRows, WarpSpan
from gui.step_view.warps.states import STATE_NAMES
from gui.step_view.warps.strip import IssueStrip
from gui.widgets.basic import column, format_count, label, row
from gui.widgets.wrapping import WrappingLayout

_TITLE_HEIGHT = 34
"""Height in pixels of an exported picture's title, at the normal text size."""
_PREPARE_DELAY_MS = 20
_PLAY_RANGE_S = 24.0
"""Seconds in which the visible range is played at speed 1."""


class WarpsView(QWidget):
    """The timeline of warps with its overview, transport and card."""

    lines_changed = pyqtSignal(object, object, object)
    """The lines that issue, those that wait, and that of the selected warp or None."""
    launch_requested = pyqtSignal(int)
    block_size_requested = pyqtSignal(int)
    """The requested number of threads per block."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Timeline")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.player = Player(self)
        self.canvas, self.strip, self.card = WarpCanvas(), IssueStrip(), WarpsCard()
        self.transport = Transport(self.player, "cycle")
        self.title = label("", "caption", wrap=True, name="Modeled GPU and launch")
        self.block_sizes = QComboBox()
        self.block_sizes.setAccessibleName("Threads per block")
        self.block_sizes.setToolTip("Threads per block in this timeline only, not in Run")
        self.block_sizes.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.block_sizes.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.block_sizes.hide()
        self.launches = QComboBox()
        self.launches.setAccessibleName("Launch")
        self.launches.setToolTip("The run's launch to show; by default the longest one")
        self.launches.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.launches.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.launches.setMinimumContentsLength(16)
        self.launches.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.message = label("", "muted", wrap=True, name="Reason for no timeline")
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.summary = ""
        """States of the warps at the cursor, as text."""
        self.run: RunTimelines | None = None
        self.resident = 1
        self._selected_resident: int | None = None
        self._detailed = True
        self._rows: dict[int, WarpRows] = {}
        self._prepare_timer = create_single_shot_timer(_PREPARE_DELAY_MS, self._prepare_rows, self)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        self.title.setContentsMargins(14, 0, 14, 0)
        self.card.settings.addWidget(self.launches)
        self.card.settings.addWidget(self.block_sizes)
        speed = QWidget()
        speed.setLayout(row(self.transport.speed, self.transport.loop))
        line = WrappingLayout(across=8, down=4, spread=True)
        line.setContentsMargins(14, 0, 14, 0)
        for each in (self.transport.count, self.transport, speed):
            line.addWidget(each)
        picture = QWidget()
        picture.setLayout(column(self.title, self.canvas, self.strip, line, spacing=4, stretch=1))
        self._stack = QStackedWidget()
        self._stack.addWidget(self.message)
        self._stack.addWidget(picture)
        self.setLayout(column(self._stack))

    def _connect(self) -> None:
        self.player.moved.connect(self._show_cycle)
        for each in (self.canvas, self.strip):
            each.cycle_requested.connect(self._jump)
        self.canvas.warp_picked.connect(self._pick)
        self.canvas.moved.connect(self._show_visible_range)
        self.card.bars.chosen.connect(self.show_resident)
        self.block_sizes.activated.connect(
            lambda index: self.block_size_requested.emit(self.block_sizes.itemData(index))
        )
        self.launches.activated.connect(lambda index: self.launch_requested.emit(self.launches.itemData(index)))

    # --- contents

    def show_message(self, text: str) -> None:
        """Show a sentence instead of the timeline."""
        self.run = None
        self._rows.clear()
        self.message.setText(text)
        self._stack.setCurrentIndex(0)
        self.canvas.open(None)
        self.strip.open(None)
        self.player.open(0, ())
        self.card.hide()

    def show_run(self, run: RunTimelines) -> None:
        """Show a launch with the selected number of resident blocks, or else with its actual number."""
        self.run = run
        self._rows.clear()
        self._list_launches(run)
        launch = run.timelines
        self._stack.setCurrentIndex(1)
        resident = self._selected_resident or launch.resident
        self._show_launch(min(resident, len(launch.timelines)), keep_scale=False)

    def show_resident(self, resident: int) -> None:
        """Show the same launch with another number of resident blocks."""
        self._selected_resident = resident
        self._show_launch(resident, keep_scale=True)

    def _show_launch(self, resident: int, *, keep_scale: bool) -> None:
        assert self.run is not None
        launch = self.run.timelines
        self.resident = resident
        rows = self._get_rows(resident)
        self._show_title()
        self.canvas.open(rows, keep_scale=keep_scale)
        self.strip.open(rows)
        self.card.show_timeline(launch, resident)
        self.player.open(rows.end, rows.borders, self.player.moment if keep_scale else 0)
        self._prepare_timer.start()

    def show_details(self, on: bool) -> None:
        """Show the full title, or only its most important parts; the tooltip has the full title."""
        self._detailed = on
        self.card.speed.setVisible(on)
        self._show_title()

    def _show_title(self) -> None:
        if self.run is None:
            return
        parts = _list_title_parts(self.run, self._get_rows(self.resident))
        title = "  ·  ".join(parts)
        self.title.setText(title if self._detailed else f"{parts[0]}  ·  {self.run.timelines.kernel}")
        self.title.setToolTip(title)

    def _get_rows(self, resident: int) -> WarpRows:
        assert self.run is not None
        if resident not in self._rows:
            self._rows[resident] = WarpRows(self.run.timelines, resident)
        return self._rows[resident]

    def _prepare_rows(self) -> None:
        """Compute in advance the rows for one resident block more and one less."""
        if self.run is None:
            return
        for resident in (self.resident + 1, self.resident - 1):
            if resident not in self._rows and 1 <= resident <= len(self.run.timelines.timelines):
                assert self._get_rows(resident).borders is not None
                self._prepare_timer.start()
                return

    def set_block_sizes(self, sizes: Sequence[int], run_size: int, selected_size: int) -> None:
        """Set the block sizes to choose from; `run_size` is the Run tab's, and `selected_size` is 0 for that one."""
        self.block_sizes.clear()
        for threads in sizes:
            self.block_sizes.addItem(f"{threads} threads" + (", as in Run" if threads == run_size else ""), threads)
        self.block_sizes.setCurrentIndex(self.block_sizes.findData(selected_size or run_size))
        self.block_sizes.setVisible(len(sizes) > 1)

    # --- export

    @property
    def figure_size(self) -> QSize:
        """Return the size of an exported picture."""
        return QSize(self.canvas.width(), look().px(_TITLE_HEIGHT) + self.canvas.height() + self._legend_height)

    @property
    def _legend_height(self) -> int:
        return self.strip.height() + self.card.shares.sizeHint().height() + look().px(12)

    @property
    def _resident_text(self) -> str:
        return f"{self.resident} block{'s' if self.resident > 1 else ''} resident"

    def paint_figure(self, painter: QPainter) -> None:
        """Paint the visible timeline with title and legend."""
        assert self.run is not None
        theme, top = look().theme, look().px(_TITLE_HEIGHT)
        size = self.figure_size
        painter.fillRect(QRectF(0, 0, size.width(), size.height()), QColor(theme.surface))
        painter.setPen(QColor(theme.text))
        font = resize_font(self.font(), look().small_px)
        painter.setFont(font)
        box = QRectF(look().px(8), 0, size.width() - look().px(16), top)
        wrapped = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(box, int(wrapped), f"{self.title.toolTip()}  ·  {self._resident_text}")
        self.canvas.render(painter, QPoint(0, top))
        self.strip.render(painter, QPoint(0, top + self.canvas.height()))
        shares = StateShares()
        shares.show_timeline(self.run.timelines.timelines[self.resident - 1])
        shares.resize(size.width() - look().px(28), shares.sizeHint().height())
        shares.render(painter, QPoint(look().px(14), size.height() - shares.height()))

    def _list_launches(self, run: RunTimelines) -> None:
        """List the launches by kernel, or by shape if all have the same kernel."""
        self.launches.clear()
        same_kernel = len({launch.kernel for launch in run.launches}) == 1
        for number, launch in enumerate(run.launches, 1):
            text = f"{number}: {_format_shape(launch) if same_kernel else launch.kernel}"
            self.launches.addItem(text, launch.index)
            self.launches.setItemData(number - 1, _format_launch(launch), Qt.ItemDataRole.ToolTipRole)
        self.launches.setCurrentIndex(
            next(n for n, launch in enumerate(run.launches) if launch.index == run.launch_index)
        )
        self.launches.setVisible(len(run.launches) > 1)

    # --- moving

    def step(self, direction: int) -> None:
        """Go forward (1) or back (-1) by one cycle, or by the cycles of one pixel if they are narrower than that."""
        self.player.step(direction * max(1, ceil(1 / self.canvas.scale)))

    def _jump(self, cycle: int) -> None:
        self.player.pause()
        self.player.go_to(cycle)

    def _pick(self, warp: int) -> None:
        self.canvas.pick(warp)
        self._show_cycle(self.player.moment)

    def clear_selection(self) -> None:
        """Clear the selection of a warp."""
        self.canvas.pick(None)
        self._show_cycle(self.player.moment)

    def _show_visible_range(self) -> None:
        first, last = self.canvas.visible_range
        self.strip.show_visible_range((first, last))
        self.player.set_rate(max((last - first) / _PLAY_RANGE_S, 1.0))

    def _show_cycle(self, cycle: int) -> None:
        rows = self.canvas.rows
        if rows is None:
            return
        self.canvas.show_cycle(cycle)
        self.strip.show_cycle(cycle)
        self.show_states()

    def show_states(self) -> None:
        """Show the warps' states at the cursor, and emit their lines."""
        rows, cycle = self.canvas.rows, self.player.moment
        if rows is None:
            return
        states = rows.spans_at(cycle)
        picked = next((now for now in states if now.warp == self.canvas.picked), None)
        issuing = frozenset(now.line for now in states if now.state == WarpState.ISSUING and now.line)
        waiting = frozenset(now.line for now in states if now.line) - issuing
        self.summary = self._summarize_states(states, picked)
        self.card.state_label.show_text(self.summary)
        words = describe_span(picked) if picked is not None else self.summary
        self.canvas.setAccessibleDescription(f"cycle {cycle}: {words}")
        self.lines_changed.emit(issuing, waiting, picked.line if picked is not None and picked.line else None)

    def _summarize_states(self, states: list[WarpSpan], picked: WarpSpan | None) -> str:
        if picked is not None:
            return f"w{picked.warp} line {picked.line}: {STATE_NAMES[picked.state]}  ·  {picked.text}"
        if self.canvas.picked is not None:
            return f"Warp {self.canvas.picked}: no resident block"
        issuing = [now for now in states if now.state == WarpState.ISSUING]
        if not issuing:
            return f"None of {len(states)} warps issues" if states else "No resident warp"
        return "  ·  ".join(f"w{now.warp} line {now.line}: {parse_opcode(now.text)}" for now in issuing)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is None:
            return
        if event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.canvas.zoom(1.5)
        elif event.key() == Qt.Key.Key_Minus:
            self.canvas.zoom(1 / 1.5)
        elif event.key() == Qt.Key.Key_F:
            self.canvas.fit()
        elif event.key() in RESIDENCY_KEYS:
            self.card.bars.change_by(RESIDENCY_KEYS[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self.player.pause()


def _format_launch(launch: LaunchSummary) -> str:
    return f"{launch.kernel}{_format_shape(launch)}  ·  {launch.time_us:.1f} µs"


def _format_shape(launch: LaunchSummary | LaunchTimelines) -> str:
    return f"<<<{_format_extents(launch.grid)}, {_format_extents(launch.block)}>>>"


def _format_extents(values: tuple[int, ...]) -> str:
    """Return extents as in a launch: without trailing ones."""
    numbers: Any = list(values)
    while len(numbers) > 1 and numbers[-1] == 1:
        numbers.pop()
    return str(numbers[0]) if len(numbers) == 1 else f"({', '.join(map(str, numbers))})"


def _list_title_parts(run: RunTimelines, rows: WarpRows) -> list[str]:
    """Return the parts of the title, most important first."""
    launch: LaunchTimelines = run.timelines
    shape = _format_shape(launch) if len(run.launches) == 1 else ""
    parts = [
        f"Modeled for {name_with_article(launch.gpu)}"
        + ("" if run.validated else " (never compared with measurements)"),
        f"one multiprocessor of {launch.kernel}{shape}, at Run's size",
    ]
    if launch.source == "ir":
        parts.append("without nvcc")
    if launch.omission:
        parts.append(f"left out: {launch.omission}")
    if rows.timeline.recorded_until < rows.timeline.cycles:
        parts.append(
            f"up to cycle {format_count(rows.timeline.recorded_until)} of {format_count(rows.timeline.cycles)}"
        )
    return parts
