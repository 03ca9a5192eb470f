"""Pictures of a statement's memory accesses: the banks used, and the lanes queued for each address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gpu.base.warp import WARP
from gpu.declaration.pattern import Array
from gui.painting.colors import mix_colors, warp_color
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import code_font, look, resize_font
from gui.widgets.glossary_tip import add_definition

if TYPE_CHECKING:
    from gpu.stepping.moment.traffic import Address

_MAX_BARS = 3
_MAX_LANE_WIDTH = 9.0


class BankRow(QWidget):
    """The 32 banks of shared memory, each with its number of wavefronts if more than one."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Banks of shared memory")
        self.wavefronts: Array = np.zeros(WARP, int)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_wavefronts(self, wavefronts: Array | None) -> None:
        """Show the number of distinct words accessed in each bank; None if shared memory is not accessed."""
        counts = np.zeros(WARP, int) if wavefronts is None else np.asarray(wavefronts)
        if np.array_equal(counts, self.wavefronts):
            return
        self.wavefronts = counts
        self.setToolTip(
            ", ".join(f"bank {bank}: {count}" for bank, count in enumerate(self.wavefronts.tolist()) if count > 1)
            or "no bank conflicts"
        )
        add_definition(self, "bank conflict")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(260, look().px(14))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, look().px(14))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = create_smooth_painter(self)
        theme, width = look().theme, self.width() / WARP
        font = resize_font(self.font(), max(9, look().small_px - 2))
        font.setBold(True)
        painter.setFont(font)
        for bank, count in enumerate(self.wavefronts.tolist()):
            box = QRectF(bank * width + 0.75, 0, width - 1.5, self.height() - 1)
            painter.setPen(Qt.PenStyle.NoPen)
            if count > 1:
                painter.setBrush(QColor(theme.bad))
            elif count == 1:
                painter.setBrush(mix_colors(theme.good, theme.surface, 0.55))
            else:
                painter.setBrush(mix_colors(theme.raised, theme.surface, 0.5))
            painter.drawRoundedRect(box, 2, 2)
            if count > 1:
                painter.setPen(QColor(theme.on_accent))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, str(count))
        painter.end()


class AddressBars(QWidget):
    """A bar per address of an atomic operation, with a stroke for each queued lane in its warp's color."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Queues for one address")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.addresses: tuple[Address, ...] = ()
        self._warps = 1
        self._bar_count = _MAX_BARS

    def reserve(self, addresses: int) -> None:
        """Reserve space for a number of addresses, within a limit."""
        self._bar_count = min(max(addresses, 1), _MAX_BARS)
        self.updateGeometry()

    def show_addresses(self, addresses: Sequence[Address], warps: int) -> None:
        """Show addresses, sorted by descending contention; `warps` is the number of warps per block."""
        if not addresses and not self.addresses:
            return
        self.addresses, self._warps = tuple(addresses), warps
        self.setToolTip(
            "\n".join(
                f"{_format_address(address)}: {_format_lane_count(address)}, one after the other"
                for address in self.addresses[:12]
            )
        )
        add_definition(self, "contention")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(260, self._bar_count * look().px(14))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if not self.addresses:
            return
        painter = QPainter(self)
        theme, height = look().theme, self.height() / self._bar_count
        font = code_font(max(9, look().small_px - 1))
        painter.setFont(font)
        metric = QFontMetricsF(font)
        visible = self.addresses[: self._bar_count if len(self.addresses) <= self._bar_count else self._bar_count - 1]
        names = [_format_address(each) for each in visible]
        left = min(max(map(metric.horizontalAdvance, names)), 0.4 * self.width()) + look().px(8)
        right = metric.horizontalAdvance("0" * len(str(visible[0].threads.size))) + look().px(8)
        lane_width = min((self.width() - left - right) / visible[0].threads.size, _MAX_LANE_WIDTH)
        center = Qt.AlignmentFlag.AlignVCenter
        for row, (each, name) in enumerate(zip(visible, names, strict=True)):
            top = row * height
            painter.setPen(QColor(theme.muted))
            short_name = metric.elidedText(name, Qt.TextElideMode.ElideLeft, left - look().px(6))
            painter.drawText(QRectF(0, top, left, height), center, short_name)
            # Lanes are sorted by warp, so that each warp is one run of its color.
            lane_warps = np.sort(each.blocks * self._warps + each.threads // WARP)
            for index, warp in enumerate(lane_warps.tolist()):
                gap = 1.0 if lane_width >= 4 else 0.0
                painter.fillRect(
                    QRectF(left + index * lane_width, top + 2, lane_width - gap, height - 4), warp_color(theme, warp)
                )
            painter.setPen(QColor(theme.text))
            end = left + each.threads.size * lane_width
            painter.drawText(QRectF(end + look().px(5), top, right, height), center, str(each.threads.size))
        if len(visible) < len(self.addresses):
            hidden = self.addresses[len(visible) :]
            lanes = sum(each.threads.size for each in hidden)
            painter.setPen(QColor(theme.faint))
            box = QRectF(0, len(visible) * height, self.width(), height)
            painter.drawText(box, center, f"{len(hidden)} more addresses, {lanes} lanes")
        painter.end()


def _format_address(address: Address) -> str:
    return f"{address.array}[{address.element}]"


def _format_lane_count(address: Address) -> str:
    count = address.threads.size
    return f"{count} lane{'s' if count > 1 else ''}"
