"""What a timeline comes to: how long the same blocks take with so many at once, and what their warps wait for."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PyQt6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu.timing.timeline import LaunchTimelines, WarpState, WarpTimeline
from gui.painting.colors import mixed
from gui.painting.theme import look
from gui.step_view.warps.states import NAMES, SHORT, state_color
from gui.widgets.basic import Card, ElidedLabel, as_count
from gui.widgets.wrapping import WrappingLayout

WAYS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}
"""Keys, and how many blocks more at once they choose."""


class ResidencyBars(QWidget):
    """How many cycles the same blocks take with 1, 2, 3 ... at once: a bar each; a press, ↑ and ↓ choose one."""

    chosen = pyqtSignal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Resident blocks")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.found: LaunchTimelines | None = None
        self.resident = 1

    def open(self, found: LaunchTimelines | None, resident: int) -> None:
        """Show another launch, and which number of blocks is chosen."""
        self.found, self.resident = found, resident
        if found is not None:
            most = len(found.timelines)
            cycles = as_count(found.timelines[resident - 1].cycles)
            self.setAccessibleDescription(f"{resident} of at most {most} blocks at once: {cycles} cycles")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(160, look().px(64))

    def _bar(self, number: int) -> QRectF:
        """Return the place of a bar, from its foot to the top of the picture; the first is 1."""
        assert self.found is not None
        wide = self.width() / len(self.found.timelines)
        return QRectF((number - 1) * wide, 0, wide, self.height() - look().px(14))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.found is None:
            return
        theme = look().theme
        painter = QPainter(self)
        most = max(each.cycles for each in self.found.timelines) or 1.0
        font = self.font()
        font.setPixelSize(look().small_px)
        painter.setFont(font)
        count = len(self.found.timelines)
        every = next(each for each in (1, 2, 4, 8) if self.width() / count * each >= look().px(20))
        for each in self.found.timelines:
            place = self._bar(each.resident)
            box = place.adjusted(1, 0, -1, 0)
            box.setTop(box.bottom() - max(each.cycles / most * box.height(), 1))
            here = each.resident == self.resident
            painter.fillRect(box, QColor(theme.accent) if here else mixed(theme.accent, theme.surface, 0.3))
            if (
                here
                or each.resident == 1
                or (each.resident % every == 0 and abs(each.resident - self.resident) >= every)
            ):
                painter.setPen(QColor(theme.text if here else theme.muted))
                low = QRectF(place.center().x() - 20, place.bottom(), 40, look().px(14))
                painter.drawText(low, Qt.AlignmentFlag.AlignCenter, str(each.resident))
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), 1))
            painter.drawRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1))
        painter.end()

    def _at(self, place: QPointF) -> int:
        assert self.found is not None
        count = len(self.found.timelines)
        return min(max(int(place.x() / (self.width() / count)) + 1, 1), count)

    def change_by(self, way: int) -> None:
        """Choose so many blocks more at once, or less."""
        self._choose(self.resident + way)

    def _choose(self, resident: int) -> None:
        if self.found is not None and resident != self.resident and 1 <= resident <= len(self.found.timelines):
            self.chosen.emit(resident)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and self.found is not None:
            self._choose(self._at(event.position()))

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and event.buttons() and self.found is not None:
            self._choose(self._at(event.position()))

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        if event.key() in WAYS:
            self.change_by(WAYS[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent | None) -> None:
        super().focusInEvent(event)
        self.update()

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and self.found is not None:
            each = self.found.timelines[self._at(QPointF(event.pos())) - 1]
            QToolTip.showText(event.globalPos(), _speed(self.found, each), self)
            return True
        return super().event(event)


def _speed(found: LaunchTimelines, each: WarpTimeline) -> str:
    """Return how long all blocks take, and how much faster that is than one after the other."""
    blocks = "1 block" if found.blocks == 1 else f"{found.blocks} blocks"
    text = f"{blocks} in {as_count(each.cycles)} cycles, {as_count(each.cycles / max(found.blocks, 1))} a block"
    if each.resident > 1:
        text += f": {found.timelines[0].cycles / each.cycles:.1f}× as fast as one at a time"
    return text


class StateShares(QWidget):
    """What warps do with their cycles: a bar of shares, and below it what its colors mean."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("What the warps do")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.shares: tuple[float, ...] = (0.0,) * len(WarpState)

    def show_timeline(self, timeline: WarpTimeline) -> None:
        """Show the shares of a timeline."""
        total = sum(timeline.cycles_in) or 1.0
        self.shares = tuple(each / total for each in timeline.cycles_in)
        self.setAccessibleDescription(", ".join(f"{NAMES[state]} {self.shares[state]:.0%}" for state in WarpState))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(160, look().px(16) + (len(WarpState) + 1) // 2 * look().px(17))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        theme = look().theme
        painter = QPainter(self)
        x = 0.0
        for state in WarpState:
            wide = self.shares[state] * self.width()
            painter.fillRect(QRectF(x, 0, wide, look().px(10)), state_color(theme, state))
            x += wide
        font = self.font()
        font.setPixelSize(look().small_px)
        painter.setFont(font)
        metrics = painter.fontMetrics()
        lines, high, chip = (len(WarpState) + 1) // 2, look().px(17), look().px(10)
        said = [_percent(share) for share in self.shares]
        for names, first in ((NAMES, 0.46), (SHORT, 0.52)):  # the share of the first column
            columns = (first * self.width(), (1 - first) * self.width())
            rooms = [columns[state // lines] - chip - (16 if state < lines else 6) for state in WarpState]
            widths = [metrics.horizontalAdvance(f"{names[state]}  {said[state]}") for state in WarpState]
            if all(wide <= room for wide, room in zip(widths, rooms, strict=True)):
                break
        for state in WarpState:
            left, top = columns[0] * (state // lines), look().px(16) + state % lines * high
            painter.fillRect(QRectF(left, top + (high - chip) / 2, chip, chip), state_color(theme, state))
            painter.setPen(QColor(theme.text if self.shares[state] else theme.faint))
            box = QRectF(left + chip + 6, top, rooms[state], high)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, said[state])
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, names[state])
        painter.end()


def _percent(share: float) -> str:
    return "0 %" if not share else "<1 %" if share < 0.01 else f"{100 * share:.0f} %"


class WarpsCard(Card):
    """Beside a timeline: the blocks at once, and what their warps do."""

    def __init__(self) -> None:
        super().__init__("Resident blocks", margins=(12, 6, 12, 8))
        self.body.setSpacing(4)
        self.title.hide()
        self.choices = WrappingLayout(across=8, down=4)
        """What else is chosen of what is modeled."""
        self.body.addLayout(self.choices)
        self.resident = ElidedLabel("card-title", "Blocks at once")
        self.bars = ResidencyBars()
        self.speed = ElidedLabel("caption", "How long the blocks take")
        self.issue = ElidedLabel("card-title", "How often schedulers issue")
        self.shares = StateShares()
        self.now = ElidedLabel("code", "What the warp does")
        for each in (self.resident, self.bars, self.speed, self.issue, self.shares, self.now):
            self.body.addWidget(each)

    def show_timeline(self, found: LaunchTimelines, resident: int) -> None:
        """Show what it comes to with so many blocks at once."""
        each = found.timelines[resident - 1]
        most = len(found.timelines)
        own = "1 block" if found.resident == 1 else f"{found.resident} blocks"
        self.resident.say(f"{resident} of {most} blocks  ·  {resident * found.warps_per_block} warps")
        self.resident.setToolTip(
            f"At once on one multiprocessor. This launch has {own} on a multiprocessor at once. "
            f"No more than {most} fit: then its {found.limited_by} are taken."
        )
        self.bars.open(found, resident)
        self.speed.say(_speed(found, each))
        self.issue.say(f"Issue in {100 * each.issuing(found.schedulers):.0f} % of cycles")
        self.issue.setToolTip(
            f"Of all cycles of its {found.schedulers} schedulers; below what its warps do with theirs"
        )
        self.shares.show_timeline(each)
