"""All interleavings of two threads that each add one to a counter, and their results."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QShowEvent
from PyQt6.QtWidgets import QGridLayout, QScrollArea, QWidget

from gpu.messages.runs.atomics import AtomicsStudy, Interleaving, ThreadStep
from gui.qt.events import StyleListener
from gui.widgets.basic import Badge, Card, Segments, label

KINDS = ("read, add, write", "atomic")
_TONES = ("neutral", "warn")
_MIN_ROW_COUNT = 20
"""Number of interleavings of three steps per thread, which fill the card."""
_STEP_LABELS = {"read": "read {}", "add": "add {}", "write": "write {}", "atomic": "adds {}"}
_STEP_SENTENCES = {"read": "reads {}", "add": "computes {}", "write": "writes {}", "atomic": "adds {}"}


class LostUpdates(StyleListener, Card):
    """A row per interleaving as run in the simulator: thread A's steps gray, B's colored, the result at the end."""

    def __init__(self) -> None:
        super().__init__("Two threads add one each", margins=(12, 8, 8, 8))
        self.kind = Segments(KINDS, "Kind of addition")
        self.kind.picked.connect(self._show_interleavings)
        self.head.addStretch(1)
        self.head.addWidget(self.kind)
        self.summary = label("", "muted", wrap=True, name="Number of correct orders")
        self.body.addWidget(self.summary)
        self.list_area = QScrollArea()
        self.list_area.setWidgetResizable(True)
        self.list_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list_area.setAccessibleName("Orders of the steps")
        self.body.addWidget(self.list_area, 1)
        self._study: AtomicsStudy | None = None

    def show_study(self, study: AtomicsStudy) -> None:
        """Show a study's interleavings."""
        self._study = study
        self._show_interleavings()

    @property
    def orders(self) -> tuple[Interleaving, ...]:
        """The interleavings shown."""
        if self._study is None:
            return ()
        return self._study.racy if self.kind.chosen == KINDS[0] else self._study.atomic

    def _show_interleavings(self) -> None:
        orders = self.orders
        if not orders:
            return
        right = sum(order.is_correct for order in orders)
        method = "separate read, add and write" if self.kind.chosen == KINDS[0] else "one atomicAdd"
        self.summary.setText(
            f"The counter starts at 0; the correct result is 2. With {method}, {right} of {len(orders)} orders are "
            "correct. Each order was run in the simulator."
        )
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 4, 0)
        grid.setHorizontalSpacing(2)
        grid.setVerticalSpacing(3)
        for line, order in enumerate(orders):
            for index, moment in enumerate(order.moments):
                grid.addWidget(_create_step_badge(moment), line, index)
            verdict = Badge(f"{order.result}  right" if order.is_correct else f"{order.result}  lost")
            verdict.setProperty("tight", True)
            verdict.show_text(verdict.text(), "good" if order.is_correct else "bad", tip=_describe_interleaving(order))
            grid.addWidget(verdict, line, len(order.moments))
        # Many rows share the height; a few stay at the top.
        for line in range(len(orders)):
            grid.setRowStretch(line, 1)
        grid.setRowStretch(len(orders), max(0, _MIN_ROW_COUNT - len(orders)))
        grid.setColumnStretch(len(orders[0].moments), 1)
        self.list_area.setWidget(holder)
        self.update_minimum_width()

    def update_minimum_width(self) -> None:
        """Set the minimum width to that of the rows."""
        holder, bar = self.list_area.widget(), self.list_area.verticalScrollBar()
        if holder is not None and bar is not None and self.isVisible():
            for badge in holder.findChildren(Badge):
                badge.ensurePolished()
            self.list_area.setMinimumWidth(holder.sizeHint().width() + bar.sizeHint().width())

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.update_minimum_width()

    def _restyle(self) -> None:
        self.update_minimum_width()


def _create_step_badge(moment: ThreadStep) -> Badge:
    badge = Badge(tone=_TONES[moment.thread])
    badge.setProperty("tight", True)
    badge.show_text(f"{'AB'[moment.thread]} {_STEP_LABELS[moment.step].format(moment.value)}", _TONES[moment.thread])
    return badge


def _describe_interleaving(order: Interleaving) -> str:
    steps = ", ".join(
        f"{'AB'[moment.thread]} {_STEP_SENTENCES[moment.step].format(moment.value)}" for moment in order.moments
    )
    return f"{steps}: the counter is {order.result}."
