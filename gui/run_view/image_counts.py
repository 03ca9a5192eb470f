"""The Run tab of a histogram: the image, text or numbers that are counted, and the counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QGridLayout, QLabel, QStackedWidget

from gpu.declaration.pattern import Array, Pattern
from gpu.declaration.roles import Role
from gui.model.records import FinishedRun, LevelCounts, OpenImage, PointedElement
from gui.painting.theme import look
from gui.run_view.cards.levels_card import LevelsCard
from gui.run_view.image_pane import ImagePane
from gui.run_view.pixel_values import describe_pixel
from gui.run_view.view import RunView, create_titled_pane
from gui.widgets.basic import Card, column, format_count, label, split
from gui.widgets.forms import ParameterForm, TextField

_FACT_NAMES = ("pixels", "counted", "fullest bin", "empty bins")
_DISTRIBUTIONS = {
    "normal": "normally distributed",
    "uniform": "uniformly distributed",
    "skewed": "mostly small",
    "constant": "all equal",
}
_HEIGHTS = {False: [250, 300], True: [150, 400]}
"""Initial heights of the input and the histogram; the key is True if the input is numbers."""
_WIDTHS = [520, 220]
"""Widths of the input and the facts next to it."""


class ImageCountsView(RunView):
    """The Run tab of a pattern that counts an image's levels, a text's letters, or numbers.

    Parameters
    ----------
    pattern : Pattern
        One with a CountsPresentation.
    form : ParameterForm
        The pattern's parameter form; the editor of a text parameter moves from the form to this view.
    """

    levels: LevelsCard

    def __init__(self, pattern: Pattern, form: ParameterForm) -> None:
        super().__init__()
        self._pattern = pattern
        self._params: dict[str, Any] = pattern.check({})
        self.pane = ImagePane("Image")
        picture_card, self._image_caption = create_titled_pane(self.pane, "Image")
        self.levels = LevelsCard(sides=False, legend="solid: this run   dotted: correct counts")
        self.facts_card = Card("Counts")
        self.facts: dict[str, QLabel] = {}
        self._fact_titles: dict[str, QLabel] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(6)
        for line, name in enumerate(_FACT_NAMES):
            self._fact_titles[name] = label(name, "caption")
            grid.addWidget(self._fact_titles[name], line, 0)
            self.facts[name] = label("–", "code", name=name)
            grid.addWidget(self.facts[name], line, 1, Qt.AlignmentFlag.AlignRight)
        grid.setColumnStretch(1, 1)
        self.facts_card.body.addLayout(grid)
        self.facts_card.body.addStretch(1)
        self._image: OpenImage | None = None
        self.pane.hovered.connect(self._show_pixel)
        self.levels.plot.picked.connect(self._request_writer)
        self._outcome: FinishedRun | None = None

        self.text_card = Card("Text")
        self.text_card.head.addStretch(1)
        self.text_card.head.addWidget(label("type, paste, or open a .txt file", "caption"))
        text = pattern.parameter(Role.TEXT)
        field = form.detach_field(text.name) if text is not None else None
        if isinstance(field, TextField):
            self.editor = field.editor
            self.text_card.body.addWidget(self.editor, 1)
        self.numbers_card = Card("Numbers")
        self.numbers_description = label("", "muted", wrap=True, name="Description of the numbers")
        self.numbers_card.body.addWidget(self.numbers_description)
        self.numbers_card.body.addStretch(1)
        self.stack = QStackedWidget()
        self._cards = {"image": picture_card, "text": self.text_card, "values": self.numbers_card}
        for card in self._cards.values():
            self.stack.addWidget(card)
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self._upper_splitter = split(across, self.stack, self.facts_card, sizes=_WIDTHS, stretch=(3, 1))
        self.splitter = split(down, self._upper_splitter, self.levels, sizes=_HEIGHTS[False], stretch=(2, 3))
        self.setLayout(column(self.splitter))

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        # In a narrow view the facts would be cut off next to the input, so they are placed below the histogram.
        splitter = self.splitter if self.width() < look().px(330) else self._upper_splitter
        if self.facts_card.parent() is not splitter:
            splitter.addWidget(self.facts_card)
            if splitter is self._upper_splitter:
                self._upper_splitter.setSizes(_WIDTHS)

    def show_image(self, image: OpenImage) -> None:
        self._image = image
        self.pane.show_picture(image.picture, image.values)
        self.levels.clear_counts()
        for fact in self.facts.values():
            fact.setText("–")
        self._show_pixel(None)

    def show_params(self, params: dict[str, Any]) -> None:
        self._params = params
        card = self._cards[self._pattern.input_kind(params)]
        if card is not self.stack.currentWidget():
            self.stack.setCurrentWidget(card)
            self.splitter.setSizes(_HEIGHTS[card is self.numbers_card])
        if card is self.numbers_card:
            size, source = (self._pattern.value(params, role) for role in (Role.SIZE, Role.SOURCE))
            self.numbers_description.setText(
                "Numbers from a file: one per line, or a .npy file."
                if self._pattern.reads_file(params)
                else f"{format_count(size)} random numbers, {_DISTRIBUTIONS[str(source)]}."
            )

    def show_outcome(self, outcome: FinishedRun) -> None:
        self._outcome = outcome
        counts, image = outcome.arrays[self._pattern.result], outcome.image
        names = self._list_bin_names(outcome)
        self.levels.clear_counts("before")
        self.levels.show_counts("after", counts, image.maxval if image is not None else 0, names)
        self.levels.show_note("Point at a bin, or use the arrow keys, to read its count.")
        for name, text in _collect_facts(counts, names, image).items():
            self.facts[name].setText(text)
        self._fact_titles["pixels"].setText(
            {"text": "characters", "values": "numbers"}.get(self._pattern.input_kind(outcome.params), "pixels")
        )
        self._fact_titles["empty bins"].setText(f"in no bin ({names[-1]})" if names else "empty bins")

    def _request_writer(self, number: int) -> None:
        """Request the threads that incremented a bin."""
        outcome = self._outcome
        if outcome is not None and number < outcome.arrays[self._pattern.result].shape[1]:
            names = self._list_bin_names(outcome)
            title = f"Bin {names[number] if names else number}"
            colors = len(outcome.arrays[self._pattern.result])
            planes = tuple((plane, number) for plane in range(colors)) if colors > 1 else ()
            element = PointedElement(self._pattern.result, (0, number), title, planes=planes)
            self.element_selected.emit(element, self.levels.plot.find_cursor_position())

    def _list_bin_names(self, outcome: FinishedRun) -> tuple[str, ...]:
        """Return the names of the bins; empty if they are numbered."""
        names = self._pattern.value_names
        return names(outcome.params) if names is not None and outcome.image is None else ()

    def show_counts(self, counts: LevelCounts) -> None:
        if counts.side == "reference":
            self.levels.show_counts("before", counts.counts, counts.maxval)

    def _show_pixel(self, pixel: tuple[int, int] | None) -> None:
        image = self._image
        if image is not None:
            about = f"{image.path.name}   {image.description}"
            self._image_caption.show_text(about if pixel is None else describe_pixel(image.values, pixel))


def _collect_facts(counts: Array, names: tuple[str, ...], image: OpenImage | None) -> dict[str, str]:
    """Return the facts about counts of shape (channels, bins); the last named bin counts everything outside the others.

    Parameters
    ----------
    counts : array
    names : tuple of str
        The names of the bins; empty if they are numbered.
    image : OpenImage or None
        The image whose levels are counted.
    """
    per_bin = counts.sum(axis=0, dtype=np.int64)
    inside = per_bin[:-1] if names else per_bin
    counted, fullest = int(inside.sum()), int(inside.argmax())
    total, subject = format_count(int(per_bin.sum())), names[fullest] if names else format_count(fullest)
    if image is not None:
        total = format_count(image.values.size // image.channels)
        total += f" × {image.channels}" if image.channels > 1 else ""
        subject = f"level {-(-fullest * (image.maxval + 1) // inside.size)}"
    empty = f"{format_count(int((inside == 0).sum()))} of {format_count(inside.size)}"
    return {
        "pixels": total,
        "counted": format_count(counted),
        "fullest bin": f"{subject}, {inside[fullest] / max(1, counted):.1%}",
        "empty bins": format_count(int(per_bin[-1])) if names else empty,
    }
