"""The picture Timeline: the warps of one modeled multiprocessor, a time of their own, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from PyQt6.QtCore import QPoint, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QHideEvent, QKeyEvent, QPainter
from PyQt6.QtWidgets import QComboBox, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from gpu.messages.modeled import article, short_name
from gpu.messages.timelines import ListedLaunch, RunTimelines
from gpu.timing.timeline import LaunchTimelines, WarpState
from gui.painting.theme import look
from gui.qt.later import after
from gui.step_view.time.player import Player
from gui.step_view.time.transport import Transport
from gui.step_view.warps.canvas import WarpCanvas, opcode_of, words_of
from gui.step_view.warps.card import WAYS, StateShares, WarpsCard
from gui.step_view.warps.rows import WarpNow, WarpRows
from gui.step_view.warps.states import NAMES
from gui.step_view.warps.strip import IssueStrip
from gui.widgets.basic import as_count, label, row
from gui.widgets.wrapping import WrappingLayout

_TITLE = 34
"""Pixels of the title above a picture, at the normal size of text."""
_RESTS_MS = 20
_ACROSS_S = 24.0
"""Seconds in which what is seen is played at the speed of 1."""


class WarpsView(QWidget):
    """Warps over cycles, and what moves through them."""

    lines_changed = pyqtSignal(object, object, object)
    """The lines that issue, those that wait, and that of the warp that is picked or None."""
    launch_wanted = pyqtSignal(int)
    block_wanted = pyqtSignal(int)
    """Threads of a block."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Timeline")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.player = Player(self)
        self.canvas, self.strip, self.card = WarpCanvas(), IssueStrip(), WarpsCard()
        self.transport = Transport(self.player, "cycle")
        self.title = label("", "caption", wrap=True, name="What is modeled")
        self.block = QComboBox()
        self.block.setAccessibleName("Threads of a block")
        self.block.setToolTip("Blocks of so many threads, here alone: Run stays as it is")
        self.block.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.block.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.block.hide()
        self.launches = QComboBox()
        self.launches.setAccessibleName("Launch")
        self.launches.setToolTip("Which of the run's launches; at first the one that takes longest")
        self.launches.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.launches.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.launches.setMinimumContentsLength(16)
        self.launches.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.message = label("", "muted", wrap=True, name="Why there is no timeline")
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.words = ""
        """What warps do at the cursor."""
        self.run: RunTimelines | None = None
        self.resident = 1
        self._wanted_resident: int | None = None
        self._details = True
        self._rows: dict[int, WarpRows] = {}
        self._soon = after(_RESTS_MS, self._prepare, self)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        picture = QWidget()
        column = QVBoxLayout(picture)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self.title.setContentsMargins(14, 0, 14, 0)
        column.addWidget(self.title)
        self.card.choices.addWidget(self.launches)
        self.card.choices.addWidget(self.block)
        column.addWidget(self.canvas, 1)
        column.addWidget(self.strip)
        speed = QWidget()
        speed.setLayout(row(self.transport.speed, self.transport.loop))
        line = WrappingLayout(across=8, down=4, spread=True)
        line.setContentsMargins(14, 0, 14, 0)
        for each in (self.transport.count, self.transport, speed):
            line.addWidget(each)
        column.addLayout(line)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.message)
        self._stack.addWidget(picture)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._stack)

    def _connect(self) -> None:
        self.player.moved.connect(self._show_cycle)
        for each in (self.canvas, self.strip):
            each.cycle_wanted.connect(self._jump)
        self.canvas.warp_picked.connect(self._pick)
        self.canvas.moved.connect(self._show_seen)
        self.card.bars.chosen.connect(self.show_resident)
        self.block.activated.connect(lambda index: self.block_wanted.emit(self.block.itemData(index)))
        self.launches.activated.connect(lambda index: self.launch_wanted.emit(self.launches.itemData(index)))

    # --- what is shown

    def say(self, text: str) -> None:
        """Show a sentence in the picture's place."""
        self.run = None
        self._rows.clear()
        self.message.setText(text)
        self._stack.setCurrentIndex(0)
        self.canvas.open(None)
        self.strip.open(None)
        self.player.open(0, ())
        self.card.hide()

    def show_run(self, run: RunTimelines) -> None:
        """Show a launch, with as many blocks at once as before where they were chosen, else as it has."""
        self.run = run
        self._rows.clear()
        self._list(run)
        found = run.timelines
        self._stack.setCurrentIndex(1)
        wanted = self._wanted_resident or found.resident
        self._show(min(wanted, len(found.timelines)), keep=False)

    def show_resident(self, resident: int) -> None:
        """Show the same blocks with so many at once."""
        self._wanted_resident = resident
        self._show(resident, keep=True)

    def _show(self, resident: int, *, keep: bool) -> None:
        assert self.run is not None
        found = self.run.timelines
        self.resident = resident
        rows = self._rows_of(resident)
        self._say_title()
        self.canvas.open(rows, keep=keep)
        self.strip.open(rows)
        self.card.show_timeline(found, resident)
        self.player.open(rows.end, rows.borders, self.player.moment if keep else 0)
        self._soon.start()

    def show_details(self, on: bool) -> None:
        """Say all of what is modeled, or what comes first; the rest is in its tool tip."""
        self._details = on
        self.card.speed.setVisible(on)
        self._say_title()

    def _say_title(self) -> None:
        if self.run is None:
            return
        said = _title(self.run, self._rows_of(self.resident))
        whole = "  ·  ".join(said)
        self.title.setText(whole if self._details else f"{said[0]}  ·  {self.run.timelines.kernel}")
        self.title.setToolTip(whole)

    def _rows_of(self, resident: int) -> WarpRows:
        assert self.run is not None
        if resident not in self._rows:
            self._rows[resident] = WarpRows(self.run.timelines, resident)
        return self._rows[resident]

    def _prepare(self) -> None:
        """Put together, while nobody waits, what one block more and one less at once will want."""
        if self.run is None:
            return
        for resident in (self.resident + 1, self.resident - 1):
            if resident not in self._rows and 1 <= resident <= len(self.run.timelines.timelines):
                assert self._rows_of(resident).borders is not None
                self._soon.start()
                return

    def offer_blocks(self, sizes: Sequence[int], own: int, chosen: int) -> None:
        """Offer blocks of other sizes than Run has; `chosen` is 0 for that of Run."""
        self.block.clear()
        for threads in sizes:
            self.block.addItem(f"{threads} threads" + (", as in Run" if threads == own else ""), threads)
        self.block.setCurrentIndex(self.block.findData(chosen or own))
        self.block.setVisible(len(sizes) > 1)

    # --- a picture of it

    @property
    def figure_size(self) -> QSize:
        """How large a picture of the timeline is."""
        return QSize(self.canvas.width(), look().px(_TITLE) + self.canvas.height() + self._legend_height)

    @property
    def _legend_height(self) -> int:
        return self.strip.height() + self.card.shares.sizeHint().height() + look().px(12)

    @property
    def _at_once(self) -> str:
        return f"{self.resident} block{'s' if self.resident > 1 else ''} at once"

    def paint_figure(self, painter: QPainter) -> None:
        """Paint the timeline as it is seen, with what it is of, and what its colors mean."""
        assert self.run is not None
        theme, top = look().theme, look().px(_TITLE)
        size = self.figure_size
        painter.fillRect(QRectF(0, 0, size.width(), size.height()), QColor(theme.surface))
        painter.setPen(QColor(theme.text))
        font = self.font()
        font.setPixelSize(look().small_px)
        painter.setFont(font)
        box = QRectF(look().px(8), 0, size.width() - look().px(16), top)
        wrapped = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(box, int(wrapped), f"{self.title.toolTip()}  ·  {self._at_once}")
        self.canvas.render(painter, QPoint(0, top))
        self.strip.render(painter, QPoint(0, top + self.canvas.height()))
        shares = StateShares()
        shares.show_timeline(self.run.timelines.timelines[self.resident - 1])
        shares.resize(size.width() - look().px(28), shares.sizeHint().height())
        shares.render(painter, QPoint(look().px(14), size.height() - shares.height()))

    def _list(self, run: RunTimelines) -> None:
        """List the launches, each kind of them that follow each other as it is."""
        self.launches.clear()
        alike = len({each.kernel for each in run.launches}) == 1
        for number, each in enumerate(run.launches, 1):
            shown = f"{number}: {_shape(each) if alike else each.kernel}"
            self.launches.addItem(shown, each.place)
            self.launches.setItemData(number - 1, _name(each), Qt.ItemDataRole.ToolTipRole)
        self.launches.setCurrentIndex(next(n for n, each in enumerate(run.launches) if each.place == run.of))
        self.launches.setVisible(len(run.launches) > 1)

    # --- moving

    def step(self, way: int) -> None:
        """Go a cycle on, or back; where a cycle is less than a pixel, as many as one has."""
        self.player.step(way * max(1, ceil(1 / self.canvas.scale)))

    def _jump(self, cycle: int) -> None:
        self.player.pause()
        self.player.go(cycle)

    def _pick(self, warp: int) -> None:
        self.canvas.pick(warp)
        self._show_cycle(self.player.moment)

    def unpick(self) -> None:
        """Let no warp stand out."""
        self.canvas.pick(None)
        self._show_cycle(self.player.moment)

    def _show_seen(self) -> None:
        first, last = self.canvas.seen
        self.strip.show_seen((first, last))
        self.player.set_rate(max((last - first) / _ACROSS_S, 1.0))

    def _show_cycle(self, cycle: int) -> None:
        rows = self.canvas.rows
        if rows is None:
            return
        self.canvas.show_cycle(cycle)
        self.strip.show_cycle(cycle)
        self.tell()

    def tell(self) -> None:
        """Say what warps do at the cursor, and which lines they are at."""
        rows, cycle = self.canvas.rows, self.player.moment
        if rows is None:
            return
        everyone = rows.everyone(cycle)
        picked = next((now for now in everyone if now.warp == self.canvas.picked), None)
        issuing = frozenset(now.line for now in everyone if now.state == WarpState.ISSUING and now.line)
        waiting = frozenset(now.line for now in everyone if now.line) - issuing
        self.words = self._said(everyone, picked)
        self.card.now.say(self.words)
        words = words_of(picked) if picked is not None else self.words
        self.canvas.setAccessibleDescription(f"cycle {cycle}: {words}")
        self.lines_changed.emit(issuing, waiting, picked.line if picked is not None and picked.line else None)

    def _said(self, everyone: list[WarpNow], picked: WarpNow | None) -> str:
        if picked is not None:
            return f"w{picked.warp} line {picked.line}: {NAMES[picked.state]}  ·  {picked.text}"
        if self.canvas.picked is not None:
            return f"Warp {self.canvas.picked}: no block is there"
        issuing = [now for now in everyone if now.state == WarpState.ISSUING]
        if not issuing:
            return f"None of {len(everyone)} warps issues" if everyone else "No warp is there"
        return "  ·  ".join(f"w{now.warp} line {now.line}: {opcode_of(now.text)}" for now in issuing)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is None:
            return
        if event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.canvas.zoom(1.5)
        elif event.key() == Qt.Key.Key_Minus:
            self.canvas.zoom(1 / 1.5)
        elif event.key() == Qt.Key.Key_F:
            self.canvas.fit()
        elif event.key() in WAYS:
            self.card.bars.change_by(WAYS[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self.player.pause()


def _name(launch: ListedLaunch) -> str:
    return f"{launch.kernel}{_shape(launch)}  ·  {launch.time_us:.1f} µs"


def _shape(launch: ListedLaunch | LaunchTimelines) -> str:
    return f"<<<{_extents(launch.grid)}, {_extents(launch.block)}>>>"


def _extents(given: tuple[int, ...]) -> str:
    """Return extents as a launch has them: one number where the others are 1."""
    shown: Any = list(given)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return str(shown[0]) if len(shown) == 1 else f"({', '.join(map(str, shown))})"


def _title(run: RunTimelines, rows: WarpRows) -> list[str]:
    """Return what is seen and what was left out of it, what matters most first."""
    found: LaunchTimelines = run.timelines
    said = [
        f"Modeled for {article(found.gpu)} {short_name(found.gpu)}"
        + ("" if run.validated else " (never compared with a real one)"),
        f"one multiprocessor of {found.kernel}{_shape(found) if len(run.launches) == 1 else ''}, at Run's size",
    ]
    if found.source == "ir":
        said.append("without nvcc")
    if found.left_out:
        said.append(f"left out: {found.left_out}")
    if rows.timeline.until < rows.timeline.cycles:
        said.append(f"up to cycle {as_count(rows.timeline.until)} of {as_count(rows.timeline.cycles)}")
    return said
