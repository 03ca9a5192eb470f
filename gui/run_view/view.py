"""What every view of results offers to the page."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import QPoint, pyqtSignal
from PyQt6.QtWidgets import QFrame, QSplitter, QVBoxLayout, QWidget

from gpu.declaration.pattern import Array
from gui.model.records import FinishedRun, LevelCounts, OpenImage
from gui.run_view.image_pane import ImagePane
from gui.run_view.levels_card import LevelsCard
from gui.run_view.note import Note
from gui.widgets.basic import HEAD_HEIGHT, ElidedLabel, as_figure, label, role, row


class RunView(QWidget):
    """The part of a page that shows a pattern's input and output; what does not concern a view it ignores."""

    levels: LevelsCard | None = None
    splitter: QSplitter
    beside: QWidget | None = None
    """What stands beside the view until the kernel's source is asked for."""
    about: QWidget | None = None
    """What stands in the line of the tabs instead of the examples."""
    note: Note | None = None
    pointed = pyqtSignal(object, QPoint)
    """PointedElement, and where on the screen it stands."""

    def show_note(self, text: str) -> None:
        """Say what the first result waits for; "" takes it away."""
        if self.note is None and text:
            self.note = Note(self)
        if self.note is not None:
            self.note.say(text)

    def show_variant(self, name: str) -> None:
        """Show another variant."""

    def show_image(self, image: OpenImage) -> None:
        """Show another input."""

    def show_outcome(self, outcome: FinishedRun) -> None:
        """Show what a run gave."""

    def show_counts(self, counts: LevelCounts) -> None:
        """Show counted levels."""

    def show_params(self, params: dict[str, Any]) -> None:
        """Show the parameters that the next run has."""

    def complete(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return settings that were entered, with what they bring along."""
        return params


def titled_pane(pane: ImagePane, title: str) -> tuple[QFrame, ElidedLabel]:
    """Return a card that holds a pane below a title line, and the label at the line's end."""
    card = QFrame()
    role(card, "card")
    end = ElidedLabel("caption", f"{title}: pixel under the pointer", right=True)
    layout = QVBoxLayout(card)
    layout.setContentsMargins(1, 8, 1, 1)
    layout.setSpacing(6)
    name = label(title, "card-title")
    name.setMinimumHeight(HEAD_HEIGHT)
    head = row(name, end, spacing=16)
    head.setContentsMargins(12, 0, 12, 0)
    layout.addLayout(head)
    head.setStretch(1, 1)
    layout.addWidget(pane, 1)
    return card, end


def pixel_text(values: Array, pixel: tuple[int, int]) -> str:
    """Return a pixel's value, or the three of a color."""
    x, y = pixel
    if y >= values.shape[0] or x >= values.shape[1]:
        return ""
    found = values[y, x]
    parts = [found] if values.ndim == 2 else list(found)
    return " ".join(str(int(part)) if values.dtype.kind in "ui" else as_figure(float(part)) for part in parts)
