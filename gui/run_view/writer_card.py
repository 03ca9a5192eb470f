"""The card beside an element of a result: which thread wrote it, by which line, and what that access moved."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, QPoint, pyqtSignal
from PyQt6.QtWidgets import QApplication, QLabel, QSizePolicy, QWidget

from gpu.messages.writer import MOST_STATEMENTS, Index3, Writer, WrittenElement
from gui.painting.theme import look
from gui.plots.histogram_plot import CHANNELS
from gui.qt.events import is_of
from gui.widgets.basic import Card, ElidedButton, Segments, as_count, button, label, row

_WIDTH = 360
_ALONE = "Step to the moment at which it is written: its block is recorded, at true size"
_SMALLER = "Step to where the like is written in a smaller run: its block does too much to be stepped through"
PLANES = CHANNELS[3]
_APART = 18
"""Pixels between an element and the card."""


class WriterCard(Card):
    """Stands over a view, beside what was pointed at; hidden until something is asked.

    Parameters
    ----------
    over : QWidget
        The view.
    """

    step_wanted = pyqtSignal()
    closed = pyqtSignal()
    plane_wanted = pyqtSignal(int)
    """The number of a color, whose element is asked for."""

    def __init__(self, over: QWidget) -> None:
        super().__init__("")
        self.setParent(over)
        self.setAccessibleName("Thread of an element")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._over = over
        self._where = QPoint()
        self._before: QWidget | None = None
        self.close_button = button("×", "flat", tip="Close (Esc)", name="Close")
        self.close_button.setProperty("small", True)
        self.close_button.clicked.connect(self.dismiss)
        self.plane = Segments(PLANES, "Color")
        self.plane.picked.connect(lambda name: self.plane_wanted.emit(PLANES.index(name)))
        self.plane.hide()
        self.head.addStretch(1)
        self.head.addWidget(self.plane)
        self.head.addWidget(self.close_button)
        self.who = label("", "card-title", wrap=True, name="Block and thread")
        self.where = label("", "caption", wrap=True, name="Kernel and launch")
        self.line = ElidedButton("The line that wrote it", "Show this line of the kernel")
        self.moved = label("", wrap=True, name="Transactions")
        self.others = label("", "caption", wrap=True, name="Other writers")
        self.smaller = label("", "caption", wrap=True, name="What is stepped through")
        self.step = button("Step from here", "primary", tip="Step to the moment at which it is written")
        self.step.clicked.connect(self.step_wanted)
        self.body.setSpacing(6)
        for each in (self.who, self.where, self.line, self.moved, self.others, self.smaller):
            self.body.addWidget(each)
        self.body.addLayout(row(self.step, 0))
        over.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Stay within what it lies over where that becomes smaller."""
        if is_of(event, QEvent.Type.Resize) and self.isVisible():
            self._settle()
        return super().eventFilter(watched, event)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that it says, from above."""
        labels: tuple[QLabel, ...] = (self.title, self.who, self.where, self.moved, self.others, self.smaller)
        return tuple(each.text() for each in labels if each.isVisibleTo(self))

    def ask(self, title: str, where: QPoint, *, colored: bool = False) -> None:
        """Say that an element is looked up, which stands there; of a color image that of a color."""
        self._where = where
        self.plane.setVisible(colored)
        self.title.setText(title)
        self._say("Looking for its thread…")

    def show_unknown(self, text: str) -> None:
        """Say why no thread is known."""
        self._say(text)

    def show_written(self, written: WrittenElement) -> None:
        """Show who wrote the element."""
        writer = written.writer
        if writer is None:
            self._say(written.unknown)
            return
        several = written.writes > 1
        launch = f", launch {writer.launch + 1} of {written.launches}" if written.launches > 1 else ""
        self.line.say(f"{writer.file.rsplit('/', 1)[-1]}:{writer.line}   {writer.text}".replace("&", "&&"))
        self._say(
            f"Block {_place(writer.block, writer.grid)}, thread {_place(writer.thread, writer.block_shape)}",
            f"{writer.kernel}{launch}: {_extents(writer.grid)} blocks of {_extents(writer.block_shape)} threads.\n"
            f"It writes {written.array}[{as_count(written.index)}].",
            _moved(writer),
            _others(written) if several else "",
            "" if written.steps_alone else _too_much(written),
        )
        self.step.setText("Step from here" if written.steps_alone else "Step in a smaller run")
        self.step.setToolTip(_ALONE if written.steps_alone else _SMALLER)
        if (focus := QApplication.focusWidget()) is not None and self._over.isAncestorOf(focus):
            self._before = focus
            self.step.setFocus()

    def dismiss(self) -> None:
        """Go away, and leave the keys to what was pointed at."""
        before, self._before = self._before, None
        self.hide()
        if before is not None and before.isVisible():
            before.setFocus()
        self.closed.emit()

    def _say(self, who: str, where: str = "", moved: str = "", others: str = "", smaller: str = "") -> None:
        parts = (self.who, self.where, self.moved, self.others, self.smaller)
        for part, text in zip(parts, (who, where, moved, others, smaller), strict=True):
            part.setText(text)
            part.setVisible(bool(text))
        for each in (self.line, self.step):
            each.setVisible(bool(where))
        self.show()
        self.raise_()
        self._settle()

    def _settle(self) -> None:
        """Stand beside the element, where there is room for all of the card."""
        over = self._over
        width = min(look().px(_WIDTH), over.width() - 2 * _APART)
        self.setFixedWidth(width)
        layout = self.layout()
        assert layout is not None
        layout.activate()
        self.setFixedHeight(
            layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else layout.sizeHint().height()
        )
        at = over.mapFromGlobal(self._where)
        left = at.x() + _APART if at.x() + _APART + width <= over.width() else at.x() - _APART - width
        top = at.y() - self.height() // 2
        self.move(
            max(0, min(left, over.width() - width)),
            max(0, min(top, over.height() - self.height())),
        )


def _place(index: Index3, extents: Index3) -> str:
    """Return an index with as many parts as the extents need: 3, or (3, 4)."""
    parts = index[: max(axis + 1 for axis, extent in enumerate((2, *extents[1:])) if extent > 1)]
    return str(parts[0]) if len(parts) == 1 else f"({', '.join(map(str, parts))})"


def _extents(extents: Index3) -> str:
    parts = extents[: max(axis + 1 for axis, extent in enumerate((2, *extents[1:])) if extent > 1)]
    return " × ".join(map(as_count, parts))


def _moved(writer: Writer) -> str:
    what = "atomic" if writer.atomic else "store"
    lanes = f"{writer.lanes} lanes" if writer.lanes > 1 else "1 lane"
    sectors = f"{writer.sectors} sectors" if writer.sectors > 1 else "1 sector"
    text = f"With its warp it is 1 {what} request of {lanes}, which moves {sectors} of 32 bytes"
    if writer.ideal_sectors < writer.sectors:
        text += f"; {writer.ideal_sectors} would do"
    if writer.queue > 1:
        text += f"; {writer.queue} lanes queue for one address"
    return f"{text}."


def _too_much(written: WrittenElement) -> str:
    """Return why the block is not stepped through itself, and what helps."""
    return (
        f"Its block executes {as_count(written.statements)} statements, a lane's each: more than the "
        f"{as_count(MOST_STATEMENTS)} that can be looked at one by one. A smaller run is stepped to where the like is "
        "written; smaller blocks, or fewer elements for each, let the block itself be stepped."
    )


def _others(written: WrittenElement) -> str:
    writer, first = written.writer, written.first
    assert writer is not None
    assert first is not None
    what = "atomics" if writer.atomic else "writes"
    least = "" if written.whole else "at least "
    threads = f"{as_count(written.threads)} thread{'s' if written.threads > 1 else ''}"
    blocks = f"{as_count(written.blocks)} block{'s' if written.blocks > 1 else ''}"
    text = f"In this launch it gets {least}{as_count(written.writes)} {what} by {threads} of {blocks}; this is the last"
    if (first.block, first.thread) != (writer.block, writer.thread):
        text += (
            f", block {_place(first.block, first.grid)}, thread {_place(first.thread, first.block_shape)} did the first"
        )
    return f"{text}."
