"""The card of the thread that wrote an element: its block and thread, source line, and memory transactions."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, QPoint, pyqtSignal
from PyQt6.QtWidgets import QApplication, QLabel, QSizePolicy, QWidget

from gpu.base.thread_names import format_index
from gpu.messages.runs.writer import MAX_STATEMENTS, Index3, Writer, WrittenElement
from gui.painting.theme import look
from gui.plots.histogram_plot import CHANNELS
from gui.qt.events import is_event_type
from gui.widgets.basic import Card, ElidedButton, Segments, button, format_count, label, row, set_role
from gui.widgets.glossary_tip import add_definition

_WIDTH = 360
_STEP_TIP = "Step to the moment of this write: its block is recorded at full size"
_SMALLER_RUN_TIP = "Step to a corresponding write in a smaller run: this block has too many statements"
PLANES = CHANNELS[3]
_MARGIN = 18
"""Pixels between the element and the card."""


class WriterCard(Card):
    """A card over a view, next to the selected element; hidden until an element is selected.

    Parameters
    ----------
    covered_widget : QWidget
        The view.
    """

    step_requested = pyqtSignal()
    closed = pyqtSignal()
    plane_requested = pyqtSignal(int)
    """The number of the color plane that has the requested element."""
    filter_requested = pyqtSignal()
    """Another of the filters was chosen whose results the host program combined."""

    def __init__(self, covered_widget: QWidget) -> None:
        super().__init__("")
        self.setParent(covered_widget)
        self.setAccessibleName("Thread of an element")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._covered_widget = covered_widget
        self._position = QPoint()
        self._previous_focus: QWidget | None = None
        self.close_button = button("×", "flat", tip="Close (Esc)", name="Close")
        self.close_button.setProperty("small", True)
        self.close_button.clicked.connect(self.close_card)
        self.plane = Segments(PLANES, "Color")
        self.plane.picked.connect(lambda name: self.plane_requested.emit(PLANES.index(name)))
        self.plane.hide()
        self.filters: Segments | None = None
        self.combination_label = label("", "caption", wrap=True, name="Combined results")
        self._filters_layout = row(0)
        self.head.addStretch(1)
        self.head.addWidget(self.plane)
        self.head.addWidget(self.close_button)
        self.thread_label = label("", "card-title", wrap=True, name="Block and thread")
        self.launch_label = label("", "caption", wrap=True, name="Kernel and launch")
        self.line = ElidedButton("Source line of the write", "Show this line of the kernel")
        set_role(self.line, "link")
        self.transactions_label = label("", wrap=True, name="Transactions")
        add_definition(self.transactions_label, "coalesced access")
        self.other_writes_label = label("", "caption", wrap=True, name="Other writers")
        self.limit_label = label("", "caption", wrap=True, name="Limit of stepping")
        self.step = button("Step from here", "primary", tip="Step to the moment of this write")
        self.step.clicked.connect(self.step_requested)
        self.body.setSpacing(6)
        self.body.addWidget(self.combination_label)
        self.body.addLayout(self._filters_layout)
        for each in (
            self.thread_label,
            self.launch_label,
            self.line,
            self.transactions_label,
            self.other_writes_label,
            self.limit_label,
        ):
            self.body.addWidget(each)
        self.body.addLayout(row(self.step, 0))
        covered_widget.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Stay inside the view when it becomes smaller."""
        if is_event_type(event, QEvent.Type.Resize) and self.isVisible():
            self._place_card()
        return super().eventFilter(watched, event)

    @property
    def texts(self) -> tuple[str, ...]:
        """The visible texts, from top to bottom."""
        labels: tuple[QLabel, ...] = (
            self.title,
            self.combination_label,
            self.thread_label,
            self.launch_label,
            self.transactions_label,
            self.other_writes_label,
            self.limit_label,
        )
        return tuple(each.text() for each in labels if each.isVisibleTo(self))

    def show_search(
        self, title: str, position: QPoint, *, has_planes: bool = False, filters: tuple[str, ...] = ()
    ) -> None:
        """Show that the element at a position is looked up.

        Parameters
        ----------
        position : QPoint
            The element's position on the screen.
        has_planes : bool
            Offer a choice of color planes.
        filters : tuple of str
            Offer a choice of the filters whose results the host program combined.
        """
        self._position = position
        self.plane.setVisible(has_planes)
        self._offer_filters(filters)
        self.title.setText(title)
        self._show_texts("Finding its thread…")

    def _offer_filters(self, names: tuple[str, ...]) -> None:
        if self.filters is not None and tuple(self.filters.buttons) != names:
            self._filters_layout.removeWidget(self.filters)
            self.filters.deleteLater()
            self.filters = None
        if names and self.filters is None:
            self.filters = Segments(names, "Filter")
            self.filters.picked.connect(lambda _: self.filter_requested.emit())
            self._filters_layout.insertWidget(0, self.filters)
        self.combination_label.setText("The host program combined two results. Each has a thread:")
        self.combination_label.setVisible(bool(names))

    def show_unknown(self, text: str) -> None:
        """Show why the thread is unknown."""
        self._show_texts(text)

    def show_writer(self, result: WrittenElement) -> None:
        """Show the thread that wrote the element."""
        writer = result.writer
        if writer is None:
            self._show_texts(result.unknown_reason)
            return
        several = result.writes > 1
        launch = f", launch {writer.launch + 1} of {result.launches}" if result.launches > 1 else ""
        self.line.show_text(f"{writer.file.rsplit('/', 1)[-1]}:{writer.line}   {writer.text}".replace("&", "&&"))
        block, thread = format_index(writer.block, writer.grid), format_index(writer.thread, writer.block_shape)
        grid, block_shape = _format_extents(writer.grid), _format_extents(writer.block_shape)
        self._show_texts(
            f"Block {block}, thread {thread}",
            f"{writer.kernel}{launch}: {grid} blocks of {block_shape} threads.\n"
            f"Writes {result.array}[{format_count(result.index)}].",
            _describe_request(writer),
            _describe_other_writes(result) if several else "",
            "" if result.is_steppable else _explain_limit(result),
        )
        self.step.setText("Step from here" if result.is_steppable else "Step in a smaller run")
        self.step.setToolTip(_STEP_TIP if result.is_steppable else _SMALLER_RUN_TIP)
        if (focus := QApplication.focusWidget()) is not None and self._covered_widget.isAncestorOf(focus):
            self._previous_focus = focus
            self.step.setFocus()

    def close_card(self) -> None:
        """Close the card and return the focus to the widget that had it."""
        previous, self._previous_focus = self._previous_focus, None
        self.hide()
        if previous is not None and previous.isVisible():
            previous.setFocus()
        self.closed.emit()

    def _show_texts(
        self, thread: str, launch: str = "", transactions: str = "", other_writes: str = "", limit: str = ""
    ) -> None:
        parts = (
            self.thread_label,
            self.launch_label,
            self.transactions_label,
            self.other_writes_label,
            self.limit_label,
        )
        for part, text in zip(parts, (thread, launch, transactions, other_writes, limit), strict=True):
            part.setText(text)
            part.setVisible(bool(text))
        for each in (self.line, self.step):
            each.setVisible(bool(launch))
        self.show()
        self.raise_()
        self._place_card()

    def _place_card(self) -> None:
        """Place the card next to the element, where all of it fits into the view."""
        over = self._covered_widget
        width = min(look().px(_WIDTH), over.width() - 2 * _MARGIN)
        self.setFixedWidth(width)
        layout = self.layout()
        assert layout is not None
        layout.activate()
        self.setFixedHeight(
            layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else layout.sizeHint().height()
        )
        anchor = over.mapFromGlobal(self._position)
        left = anchor.x() + _MARGIN if anchor.x() + _MARGIN + width <= over.width() else anchor.x() - _MARGIN - width
        top = anchor.y() - self.height() // 2
        self.move(
            max(0, min(left, over.width() - width)),
            max(0, min(top, over.height() - self.height())),
        )


def _format_extents(extents: Index3) -> str:
    parts = extents[: max(axis + 1 for axis, extent in enumerate((2, *extents[1:])) if extent > 1)]
    return " × ".join(map(format_count, parts))


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
        f"Its block executes {format_count(written.statements)} statements (counted per lane), more than the "
        f"{format_count(MAX_STATEMENTS)} that can be stepped through. You can step to a corresponding write in a "
        "smaller run. With smaller blocks, or fewer elements per block, this block can be stepped through."
    )


def _describe_other_writes(written: WrittenElement) -> str:
    writer, first = written.writer, written.first
    assert writer is not None
    assert first is not None
    kind = "atomics" if writer.atomic else "writes"
    prefix = "" if written.is_complete else "at least "
    threads = f"{format_count(written.threads)} thread{'s' if written.threads > 1 else ''}"
    blocks = f"{format_count(written.blocks)} block{'s' if written.blocks > 1 else ''}"
    text = f"In this launch: {prefix}{format_count(written.writes)} {kind} by {threads} of {blocks}; shown is the last"
    if (first.block, first.thread) != (writer.block, writer.thread):
        block, thread = format_index(first.block, first.grid), format_index(first.thread, first.block_shape)
        text += f", the first was block {block}, thread {thread}"
    return f"{text}."
