"""Base class of the views of inputs and results."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import QPoint, pyqtSignal
from PyQt6.QtWidgets import QFrame, QSplitter, QVBoxLayout, QWidget

from gui.model.records import FinishedRun, LevelCounts, OpenImage
from gui.run_view.cards.levels_card import LevelsCard
from gui.run_view.image_pane import ImagePane
from gui.run_view.note import Note
from gui.widgets.basic import HEAD_HEIGHT, ElidedLabel, label, row, set_role


class RunView(QWidget):
    """The part of a page that shows a pattern's input and output; a view implements the methods that concern it."""

    levels: LevelsCard | None = None
    splitter: QSplitter
    side_panel: QWidget | None = None
    """The widget to the right of the view until the kernel's source is requested."""
    description: QWidget | None = None
    """The widget that replaces the examples in the tab bar's line."""
    note: Note | None = None
    element_selected = pyqtSignal(object, QPoint)
    """PointedElement, and its position on the screen."""

    def show_note(self, text: str) -> None:
        """Show the work that the first result waits for; "" hides the note."""
        if self.note is None and text:
            self.note = Note(self)
        if self.note is not None:
            self.note.show_text(text)

    def show_variant(self, name: str) -> None:
        """Show a variant."""

    def show_image(self, image: OpenImage) -> None:
        """Show an input image."""

    def show_outcome(self, outcome: FinishedRun) -> None:
        """Show the results of a run."""

    def show_counts(self, counts: LevelCounts) -> None:
        """Show the counts of an image's levels."""

    def show_params(self, params: dict[str, Any]) -> None:
        """Show the parameters of the next run."""

    def add_dependent_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the entered settings together with settings that depend on them."""
        return params


def create_titled_pane(pane: ImagePane, title: str) -> tuple[QFrame, ElidedLabel]:
    """Return a card with a title line above a pane, and the label at the end of that line."""
    card = QFrame()
    set_role(card, "card")
    end = ElidedLabel("caption", f"{title}: pixel under the pointer", right=True)
    layout = QVBoxLayout(card)
    layout.setContentsMargins(1, 8, 1, 1)
    layout.setSpacing(6)
    name = label(title, "card-title")
    name.setMinimumHeight(HEAD_HEIGHT)
    layout.addLayout(row(name, end, spacing=16, margins=(12, 0, 12, 0), stretch=1))
    layout.addWidget(pane, 1)
    return card, end
