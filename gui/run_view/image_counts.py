"""An image and the histogram of its levels."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QGridLayout, QLabel, QSplitter, QVBoxLayout

from gui.run_view.image_pane import ImagePane
from gui.run_view.levels_card import LevelsCard
from gui.run_view.view import RunView, pixel_text, titled_pane
from gui.widgets import Card, as_count, label
from gui.workbench import LevelCounts, OpenImage, Outcome

_FACTS = ("pixels", "counted", "fullest bin", "empty bins")


class ImageCountsView(RunView):
    """The Run tab of a pattern that counts an image's levels."""

    def __init__(self) -> None:
        super().__init__()
        self.pane = ImagePane("Image")
        picture_card, self._text = titled_pane(self.pane, "Image")
        self.levels = LevelsCard("Histogram", sides=False, legend="solid: this run   dotted: the right counts")
        self.facts_card = Card("Counts")
        self.facts: dict[str, QLabel] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(6)
        for line, name in enumerate(_FACTS):
            grid.addWidget(label(name, "caption"), line, 0)
            self.facts[name] = label("–", "code", name=name)
            grid.addWidget(self.facts[name], line, 1, Qt.AlignmentFlag.AlignRight)
        grid.setColumnStretch(1, 1)
        self.facts_card.body.addLayout(grid)
        self.facts_card.body.addStretch(1)
        self._image: OpenImage | None = None
        self.pane.hovered.connect(self._read)

        above = QSplitter(Qt.Orientation.Horizontal)
        above.addWidget(picture_card)
        above.addWidget(self.facts_card)
        above.setStretchFactor(0, 3)
        above.setStretchFactor(1, 1)
        above.setSizes([520, 220])
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.addWidget(above)
        self.splitter.addWidget(self.levels)
        self.splitter.setSizes([250, 300])
        self.splitter.setStretchFactor(0, 2)
        self.splitter.setStretchFactor(1, 3)
        for splitter in (above, self.splitter):
            splitter.setChildrenCollapsible(False)
            splitter.setHandleWidth(8)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.splitter)

    def show_image(self, image: OpenImage) -> None:
        self._image = image
        self.pane.show_picture(image.picture)
        self.levels.forget()
        self._read(None)

    def show_outcome(self, outcome: Outcome) -> None:
        counts, image = outcome.arrays["counts"], outcome.image
        self.levels.forget("before")
        self.levels.show_counts("after", counts, image.maxval)
        due, done = image.values.size, int(counts.sum(dtype=np.int64))
        per_bin = counts.sum(axis=0, dtype=np.int64)
        bins = counts.shape[1]
        fullest = int(per_bin.argmax())
        level = -(-fullest * (image.maxval + 1) // bins)
        share = per_bin[fullest] / max(1, done)
        shown = {
            "pixels": as_count(due // image.channels) + (f" × {image.channels}" if image.channels > 1 else ""),
            "counted": as_count(done),
            "fullest bin": f"level {level}, {share:.1%}",
            "empty bins": f"{as_count(int((per_bin == 0).sum()))} of {as_count(bins)}",
        }
        self.levels.say_note("Point at a bin, or walk with the arrow keys, to read its count.")
        for name, text in shown.items():
            self.facts[name].setText(text)

    def show_counts(self, counts: LevelCounts) -> None:
        if counts.side == "right":
            self.levels.show_counts("before", counts.counts, counts.maxval)

    def _read(self, pixel: tuple[int, int] | None) -> None:
        image = self._image
        if image is not None:
            about = f"{image.path.name}   {image.description}"
            self._text.say(
                about if pixel is None else f"x {pixel[0]}  y {pixel[1]}   {pixel_text(image.values, pixel)}"
            )
