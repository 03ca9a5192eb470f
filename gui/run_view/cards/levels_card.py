"""The card of a histogram: scale, channels, and the count under the pointer."""

from __future__ import annotations

from PyQt6.QtGui import QResizeEvent

from gpu.declaration.pattern import Array
from gui.painting.theme import look
from gui.plots.histogram_plot import CHANNELS, HistogramPlot
from gui.widgets.basic import Card, ElidedLabel, Segments, format_count, label, row


class LevelsCard(Card):
    """A histogram with its controls.

    Parameters
    ----------
    sides : bool
        Whether there are two histograms, before and after, with buttons to select one or both.
    legend : str
        Caption while two histograms are shown.
    """

    def __init__(self, *, sides: bool, legend: str = "solid: after   dotted: before") -> None:
        super().__init__("Histogram", margins=(12, 10, 8, 6))
        self.plot = HistogramPlot("Histogram")
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
        foot = row(self.note, self.legend, stretch=0)
        self.body.addLayout(foot)
        self._note = ""
        self._legend = legend
        self.body.setSpacing(4)
        self._counts: dict[str, Array] = {}
        self._maxval = 255
        self._names: tuple[str, ...] = ()
        self.scale.picked.connect(self._set_plot_scale)
        self.side.picked.connect(self._show_selected)
        self.plot.hovered.connect(self._show_bin)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        # In a narrow card these controls would squeeze the rest; a shortcut still changes the scale.
        self.side.setVisible(self._sides and self.width() > look().px(380))
        self.scale.setVisible(self.width() > look().px(215))
        self.legend.setVisible(self.width() > look().px(330))

    def show_counts(self, side: str, counts: Array, maxval: int, names: tuple[str, ...] = ()) -> None:
        """Show the counts of one side.

        Parameters
        ----------
        side : str
            "before", "after" or "reference"; a card without sides has only "after".
        counts : array
            Counts by channel and bin.
        maxval : int
            The highest level; 0 if there are no levels, so that bins are numbered.
        names : tuple of str
            Names of the bins, if they are not ranges of levels.
        """
        self._counts[side] = counts
        self._maxval = maxval
        self._names = names
        self.plot.name_bins(names)
        self._show_selected()

    def clear_counts(self, *sides: str) -> None:
        """Discard the counts of these sides, or of all sides: they belong to another run."""
        for side in sides or tuple(self._counts):
            self._counts.pop(side, None)
        if not self._counts:
            self.plot.clear_counts()
            self.show_note("")

    def show_note(self, text: str) -> None:
        """Set the caption about the counts; the reading under the pointer replaces it temporarily."""
        self._note = text
        self.note.show_text(text)

    def set_scale(self, name: str) -> None:
        """Select the "linear" or "log" scale."""
        self.scale.choose(name)

    def _set_plot_scale(self, scale: str) -> None:
        self.plot.set_logarithmic(scale == "log")

    def _selected_counts(self) -> tuple[Array | None, Array | None]:
        before, after = self._counts.get("before"), self._counts.get("after")
        if before is not None and after is not None and before.shape != after.shape:
            return after, None
        if self.side.chosen == "before":
            return (before if before is not None else after), None
        if self.side.chosen == "after" or before is None or after is None:
            return (after if after is not None else before), None
        return after, before

    def _show_selected(self) -> None:
        counts, reference = self._selected_counts()
        if counts is not None:
            self.plot.show_counts(counts, reference)
            self.legend.setText(self._legend if reference is not None else "")

    def _show_bin(self, index: int | None) -> None:
        counts, reference = self._selected_counts()
        if index is None or counts is None or index >= counts.shape[1]:
            self.note.show_text(self._note)
            return
        bins, levels = counts.shape[1], self._maxval + 1
        # Level v falls into bin v * bins // levels, so a bin begins at the first level that reaches it.
        low, high = -(-index * levels // bins), -(-(index + 1) * levels // bins) - 1
        if self._names:
            self.note.show_text(f"{self._names[index]}   {format_count(int(counts[0, index]))}")
            return
        if not self._maxval:
            text = f"bin {index}"
        else:
            text = f"level {low}" if low == high else f"levels {low}–{high}" if low < high else f"bin {index}, no level"
        for channel, name in enumerate(CHANNELS.get(len(counts), ())):
            current = format_count(int(counts[channel, index]))
            before = f"{format_count(int(reference[channel, index]))} → " if reference is not None else ""
            text += f"   {name if len(counts) == 1 else name[0].upper()} {before}{current}"
        self.note.show_text(text)
