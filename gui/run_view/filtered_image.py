"""The Run tab of an image filter: the image before and after, the histograms, and the filter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QWidget

from gpu.declaration.pattern import Pattern
from gpu.declaration.presentation import ImagePresentation
from gpu.declaration.roles import Role
from gpu.messages.runs.pattern_runs import RunPattern
from gui.model.records import FinishedRun, LevelCounts, OpenImage, PointedElement
from gui.run_view.cards.filter_card import FilterCard
from gui.run_view.cards.levels_card import LevelsCard
from gui.run_view.image_pane import ImagePane
from gui.run_view.numbers import format_time
from gui.run_view.pixel_values import describe_pixel
from gui.run_view.view import RunView, create_titled_pane
from gui.widgets.basic import column, split
from gui.widgets.forms import ParameterForm


class FilteredImageView(RunView):
    """The Run tab of a pattern that turns an image into an image.

    Parameters
    ----------
    pattern : Pattern
        One with an ImagePresentation.
    """

    levels: LevelsCard

    def __init__(self, pattern: Pattern, form: ParameterForm) -> None:
        super().__init__()
        assert isinstance(pattern.presentation, ImagePresentation)
        self._result_name, self._filter = pattern.result, pattern.presentation.filter
        self.before, self.after = ImagePane("Image before"), ImagePane("Image after")
        self.after.link_to(self.before)
        self.after.setToolTip(f"{self.after.toolTip()}\nClick, Enter: the pixel's thread.")
        before_card, self._before_text = create_titled_pane(self.before, "Before")
        after_card, self._after_text = create_titled_pane(self.after, "After")
        self.levels = LevelsCard(sides=True)
        coefficients_parameter = pattern.parameter(Role.COEFFICIENTS)
        self.filter: FilterCard | None = None
        if self._filter is not None and coefficients_parameter is not None:
            self.filter = FilterCard(self._filter, coefficients_parameter, form)
        self._image: OpenImage | None = None
        self._outcome: FinishedRun | None = None
        for pane in (self.before, self.after):
            pane.hovered.connect(self._show_pixel)
        self.after.picked.connect(self._request_writer)

        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        pictures = split(across, before_card, after_card, sizes=(1000, 1000))
        below: QWidget = self.levels
        if self.filter is not None:
            below = split(across, self.levels, self.filter, sizes=(640, 250), stretch=(3, 1))
        self.splitter = split(down, pictures, below, sizes=(330, 220), stretch=(3, 2))
        self.setLayout(column(self.splitter))

    def show_image(self, image: OpenImage) -> None:
        self._image, self._outcome = image, None
        self.before.show_picture(image.picture, image.values)
        self.after.show_picture(image.picture)
        self.levels.clear_counts()
        self._show_pixel(None)

    def show_outcome(self, outcome: FinishedRun) -> None:
        self._outcome = outcome
        self.after.show_picture(outcome.arrays["picture"], outcome.arrays[self._result_name])
        self._show_pixel(None)

    def show_counts(self, counts: LevelCounts) -> None:
        if counts.side == "reference":
            return  # the correct counts of a wrong variant
        self.levels.show_counts(counts.side, counts.counts, counts.maxval)
        # A simulation time says nothing about a GPU and would not fit in a narrow card.
        time = "" if counts.report.simulated else f" in {format_time(counts.report.time_ms.kernel)}"
        self.levels.show_note(f"counted by {counts.report.pattern} / {counts.report.variant}{time}")

    def show_params(self, params: dict[str, Any]) -> None:
        if self.filter is not None:
            self.filter.show_params(params)

    def _request_writer(self, pixel: tuple[int, int]) -> None:
        """Request the thread that wrote a pixel of the result."""
        outcome, (x, y) = self._outcome, pixel
        if outcome is not None:
            shape = outcome.arrays[self._result_name].shape
            planes = tuple((y, x, plane) for plane in range(shape[2])) if len(shape) > 2 else ()
            pixel_of = PointedElement(
                self._result_name,
                planes[0] if planes else (y, x),
                f"Pixel x {x}, y {y}",
                planes=planes,
                passes=self._list_passes(outcome),
            )
            self.element_selected.emit(pixel_of, self.after.find_cursor_position())

    def _list_passes(self, outcome: FinishedRun) -> tuple[tuple[str, RunPattern], ...]:
        """Return a name and a run for each filter whose results the host program combined; empty for one filter."""
        request = outcome.request
        if self._filter is None or request is None:
            return ()
        passes = self._filter.passes(request.params)
        if len(passes) == 1:
            return ()
        return tuple((self._filter.describe(params), replace(request, params=dict(params))) for params in passes)

    def _describe_result(self, outcome: FinishedRun) -> str:
        """Return the filter's description and the variant."""
        words = (self._filter.describe(outcome.params),) if self._filter is not None else ()
        return ", ".join([*words, outcome.variant])

    def _show_pixel(self, pixel: tuple[int, int] | None) -> None:
        self.before.frame_pixel(pixel)
        self.after.frame_pixel(pixel)
        image, outcome = self._image, self._outcome
        if image is None:
            return
        if pixel is None:
            self._before_text.show_text(f"{image.path.name}   {image.description}")
            self._after_text.show_text("" if outcome is None else self._describe_result(outcome))
            return
        self._before_text.show_text(describe_pixel(image.values, pixel))
        if outcome is not None:
            self._after_text.show_text(describe_pixel(outcome.arrays[self._result_name], pixel))
