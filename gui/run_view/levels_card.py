"""The card that shows a histogram: scale, channels, and the count under the pointer."""

from __future__ import annotations

from PyQt6.QtGui import QResizeEvent

from gpu.declaration.pattern import Array
from gui.painting.theme import look
from gui.plots.histogram_plot import CHANNELS, HistogramPlot
from gui.widgets.basic import Card, ElidedLabel, Segments, as_count, label, row


class LevelsCard(Card):
    """A histogram with its controls.

    Parameters
    ----------
    title : str
    sides : bool
        Whether there are two histograms, before and after, to choose from or to compare.
    legend : str
        What to say while two are shown.
    """

    def __init__(self, title: str, *, sides: bool, legend: str = "solid: after   dotted: before") -> None:
        super().__init__(title, margins=(12, 10, 8, 6))
        self.plot = HistogramPlot(title)
        self.scale = Segments(("linear", "log"), "Scale")
        self.side = Segments(("before", "after", "both"), "Histogram of")
        self.side.choose("both")
        self._sides = sides
        self.side.setVisible(sides)
        self.head.addStretch(1)
        self.head.addWidget(self.side)
        self.head.addWidget(self.scale)
        self.body.addWidget(self.plot, 1)
        self.note = ElidedLabel("caption", "Count under the pointer")
        self.legend = label("", "caption", name="Legend")
        foot = row(self.note, self.legend)
        foot.setStretch(0, 1)
        self.body.addLayout(foot)
        self._note = ""
        self._legend = legend
        self.body.setSpacing(4)
        self._counts: dict[str, Array] = {}
        self._maxval = 255
        self._names: tuple[str, ...] = ()
        self.scale.picked.connect(self._rescale)
        self.side.picked.connect(self._show)
        self.plot.hovered.connect(self._read)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        # What a narrow card has no room for would squeeze all the rest; the keyboard still reaches the scale.
        self.side.setVisible(self._sides and self.width() > look().px(380))
        self.scale.setVisible(self.width() > look().px(215))
        self.legend.setVisible(self.width() > look().px(330))

    def show_counts(self, side: str, counts: Array, maxval: int, names: tuple[str, ...] = ()) -> None:
        """Show the counts of one side; a card without sides has "after" only.

        `names` are those of the bins, where they do not go by the levels up to `maxval`. With a `maxval` of 0 there are
        no levels, and bins go by their numbers.
        """
        self._counts[side] = counts
        self._maxval = maxval
        self._names = names
        self.plot.name_bins(names)
        self._show()

    def forget(self, *sides: str) -> None:
        """Forget the counts of these sides, or all: they belong to another run."""
        for side in sides or tuple(self._counts):
            self._counts.pop(side, None)
        if not self._counts:
            self.plot.forget()
            self.say_note("")

    def say_note(self, text: str) -> None:
        """Say how it was counted; what is under the pointer goes before that."""
        self._note = text
        self.note.say(text)

    def set_scale(self, name: str) -> None:
        """Choose "linear" or "log"."""
        self.scale.choose(name)

    def _rescale(self, scale: str) -> None:
        self.plot.set_logarithmic(scale == "log")

    def _chosen(self) -> tuple[Array | None, Array | None]:
        before, after = self._counts.get("before"), self._counts.get("after")
        if before is not None and after is not None and before.shape != after.shape:
            return after, None
        if self.side.chosen == "before":
            return (before if before is not None else after), None
        if self.side.chosen == "after" or before is None or after is None:
            return (after if after is not None else before), None
        return after, before

    def _show(self) -> None:
        counts, reference = self._chosen()
        if counts is not None:
            self.plot.show_counts(counts, reference)
            self.legend.setText(self._legend if reference is not None else "")

    def _read(self, index: int | None) -> None:
        counts, reference = self._chosen()
        if index is None or counts is None or index >= counts.shape[1]:
            self.note.say(self._note)
            return
        bins, levels = counts.shape[1], self._maxval + 1
        # Level v falls into bin v * bins // levels, so a bin begins at the first level that reaches it.
        low, high = -(-index * levels // bins), -(-(index + 1) * levels // bins) - 1
        if self._names:
            self.note.say(f"{self._names[index]}   {as_count(int(counts[0, index]))}")
            return
        if not self._maxval:
            text = f"bin {index}"
        else:
            text = f"level {low}" if low == high else f"levels {low}–{high}" if low < high else f"bin {index}, no level"
        for channel, name in enumerate(CHANNELS.get(len(counts), ())):
            now = as_count(int(counts[channel, index]))
            was = f"{as_count(int(reference[channel, index]))} → " if reference is not None else ""
            text += f"   {name if len(counts) == 1 else name[0].upper()} {was}{now}"
        self.note.say(text)
