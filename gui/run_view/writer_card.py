"""The card of the thread that wrote an element: its block and thread, source line, and memory transactions."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, QPoint, pyqtSignal
from PyQt6.QtWidgets import QApplication, QLabel, QSizePolicy, QWidget

from gpu.messages.writer import MOST_STATEMENTS, Index3, Writer, WrittenElement
from gui.painting.theme import look
from gui.plots.histogram_plot import CHANNELS
from gui.qt.events import is_of
from gui.widgets.basic import Card, ElidedButton, Segments, as_count, button, label, row
from gui.widgets.glossary_tip import add_definition

_WIDTH = 360
_ALONE = "Step to the moment of this write: its block is recorded at full size"
_SMALLER = "Step to a corresponding write in a smaller run: this block has too many statements"
PLANES = CHANNELS[3]
_APART = 18
"""Pixels between the element and the card."""


class WriterCard(Card):
    """A card over a view, next to the selected element; hidden until an element is selected.

    Parameters
    ----------
    over : QWidget
        The view.
    """

    step_wanted = pyqtSignal()
    closed = pyqtSignal()
    plane_wanted = pyqtSignal(int)
    """The number of a color plane whose element is requested."""

    def __init__(self, over: QWidget) -> None:
        super().__init__("")
        self.setParent(over)
        self.setAccessibleName("Thread of an element")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._over = over
        self._position = QPoint()
        self._previous_focus: QWidget | None = None
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
        self.line = ElidedButton("Source line of the write", "Show this line of the kernel")
        self.moved = label("", wrap=True, name="Transactions")
        add_definition(self.moved, "coalesced access")
        self.others = label("", "caption", wrap=True, name="Other writers")
        self.smaller = label("", "caption", wrap=True, name="Limit of stepping")
        self.step = button("Step from here", "primary", tip="Step to the moment of this write")
        self.step.clicked.connect(self.step_wanted)
        self.body.setSpacing(6)
        for each in (self.who, self.where, self.line, self.moved, self.others, self.smaller):
            self.body.addWidget(each)
        self.body.addLayout(row(self.step, 0))
        over.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Stay inside the view when it becomes smaller."""
        if is_of(event, QEvent.Type.Resize) and self.isVisible():
            self._settle()
        return super().eventFilter(watched, event)

    @property
    def texts(self) -> tuple[str, ...]:
        """The visible texts, from top to bottom."""
        labels: tuple[QLabel, ...] = (self.title, self.who, self.where, self.moved, self.others, self.smaller)
        return tuple(each.text() for each in labels if each.isVisibleTo(self))

    def ask(self, title: str, where: QPoint, *, colored: bool = False) -> None:
        """Show that the element at a position is looked up; `colored` offers a choice of color planes."""
        self._position = where
        self.plane.setVisible(colored)
        self.title.setText(title)
        self._show_texts("Finding its thread…")

    def show_unknown(self, text: str) -> None:
        """Show why the thread is unknown."""
        self._show_texts(text)

    def show_written(self, written: WrittenElement) -> None:
        """Show the thread that wrote the element."""
        writer = written.writer
        if writer is None:
            self._show_texts(written.unknown)
            return
        several = written.writes > 1
        launch = f", launch {writer.launch + 1} of {written.launches}" if written.launches > 1 else ""
        self.line.say(f"{writer.file.rsplit('/', 1)[-1]}:{writer.line}   {writer.text}".replace("&", "&&"))
        self._show_texts(
            f"Block {_place(writer.block, writer.grid)}, thread {_place(writer.thread, writer.block_shape)}",
            f"{writer.kernel}{launch}: {_extents(writer.grid)} blocks of {_extents(writer.block_shape)} threads.\n"
            f"Writes {written.array}[{as_count(written.index)}].",
            _describe_request(writer),
            _describe_other_writes(written) if several else "",
            "" if written.steps_alone else _explain_limit(written),
        )
        self.step.setText("Step from here" if written.steps_alone else "Step in a smaller run")
        self.step.setToolTip(_ALONE if written.steps_alone else _SMALLER)
        if (focus := QApplication.focusWidget()) is not None and self._over.isAncestorOf(focus):
            self._previous_focus = focus
            self.step.setFocus()

    def dismiss(self) -> None:
        """Close the card and return the focus to the widget that had it."""
        previous, self._previous_focus = self._previous_focus, None
        self.hide()
        if previous is not None and previous.isVisible():
            previous.setFocus()
        self.closed.emit()

    def _show_texts(self, who: str, where: str = "", moved: str = "", others: str = "", smaller: str = "") -> None:
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
        """Place the card next to the element, where all of it fits into the view."""
        over = self._over
        width = min(look().px(_WIDTH), over.width() - 2 * _APART)
        self.setFixedWidth(width)
        layout = self.layout()
        assert layout is not None
        layout.activate()
        self.setFixedHeight(
            layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else layout.sizeHint().height()
        )
        anchor = over.mapFromGlobal(self._position)
        left = anchor.x() + _APART if anchor.x() + _APART + width <= over.width() else anchor.x() - _APART - width
        top = anchor.y() - self.height() // 2
        self.move(
            max(0, min(left, over.width() - width)),
            max(0, min(top, over.height() - self.height())),
        )


def _place(index: Index3, extents: Index3) -> str:
    """Format an index with as many components as the extents need: 3, or (3, 4)."""
    parts = index[: max(axis + 1 for axis, extent in enumerate((2, *extents[1:])) if extent > 1)]
    return str(parts[0]) if len(parts) == 1 else f"({', '.join(map(str, parts))})"


def _extents(extents: Index3) -> str:
    parts = extents[: max(axis + 1 for axis, extent in enumerate((2, *extents[1:])) if extent > 1)]
    return " × ".join(map(as_count, parts))


def _describe_request(writer: Writer) -> str:
    kind = "atomic" if writer.atomic else "store"
    lanes = f"{writer.lanes} lanes" if writer.lanes > 1 else "1 lane"
    sectors = f"{writer.sectors} sectors" if writer.sectors > 1 else "1 sector"
    text = f"Its warp issues 1 {kind} request for {lanes}, which moves {sectors} of 32 bytes"
    if writer.ideal_sectors < writer.sectors:
        text += f"; the minimum is {writer.ideal_sectors}"
    if writer.queue > 1:
        text += f"; {writer.queue} lanes contend for one address"
    return f"{text}."


def _explain_limit(written: WrittenElement) -> str:
    """Return why the block cannot be stepped through at full size, and how to make it possible."""
    return (
        f"Its block executes {as_count(written.statements)} statements (counted per lane), more than the "
        f"{as_count(MOST_STATEMENTS)} that can be stepped through. You can step to a corresponding write in a smaller "
        "run. With smaller blocks, or fewer elements per block, this block can be stepped through."
    )


def _describe_other_writes(written: WrittenElement) -> str:
    writer, first = written.writer, written.first
    assert writer is not None
    assert first is not None
    kind = "atomics" if writer.atomic else "writes"
    least = "" if written.whole else "at least "
    threads = f"{as_count(written.threads)} thread{'s' if written.threads > 1 else ''}"
    blocks = f"{as_count(written.blocks)} block{'s' if written.blocks > 1 else ''}"
    text = f"In this launch: {least}{as_count(written.writes)} {kind} by {threads} of {blocks}; shown is the last"
    if (first.block, first.thread) != (writer.block, writer.thread):
        text += (
            f", the first was block {_place(first.block, first.grid)}, thread {_place(first.thread, first.block_shape)}"
        )
    return f"{text}."
