"""The card of the modeled time on the selected GPU: its limiting resource and its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QHBoxLayout

from gpu.messages.events import Failure
from gpu.messages.modeled_time import (
    LIMITS,
    LineCode,
    ModeledTime,
    describe_missing_blocks,
    format_duration,
    name_with_article,
)
from gpu.timing.gpus import find_gpu
from gui.painting.colors import warp_color
from gui.painting.theme import look
from gui.run_view.cards.limit_bars import LimitBars
from gui.run_view.cards.share_bar import Dot
from gui.widgets.basic import Badge, Card, ElidedLabel, label, wrap_tip
from gui.widgets.glossary_tip import add_definition

_MAX_LEGEND_ENTRIES = 4
_UNCERTAINTY_WIDTH = 70
"""Pixels, at the normal text size, reserved for the uncertainty."""
_MIN_LIMIT_SHARE = 0.005
"""Minimum share of the sum of all limits for a limit to be named."""
_MODELED_TIP = (
    "Predicted by the timing model, not measured. Some blocks were executed here, instruction by instruction."
)
_LIMITS_TIP = (
    "Time if this were the only limit. The times overlap, so they do not add up to the modeled time, which is the full "
    "width of each bar: the longest one dominates."
)


def limit_colors() -> list[str]:
    """Return a color per limit; that of the launch overhead, which is not work, is faint."""
    theme = look().theme
    colors = [warp_color(theme, number).name() for number in range(len(LIMITS) - 1)]
    return [*colors, theme.faint]


def find_line_code(result: ModeledTime | Failure | None, file: str) -> Mapping[int, LineCode]:
    """Return the machine code of each line of a file, if it is known."""
    return result.lines.get(file, {}) if isinstance(result, ModeledTime) else {}


class ModeledCard(Card):
    """The modeled time of the current source, size and variant; cleared when one of them changes."""

    became_visible = pyqtSignal()
    """The card became visible."""

    def __init__(self) -> None:
        super().__init__("On a GPU", margins=(12, 3, 12, 5))
        self.body.setSpacing(3)
        self.badge = Badge()
        self.figure = label("", "figure", name="Modeled time")
        self.uncertainty_label = ElidedLabel("caption", "Uncertainty of the modeled time", right=True)
        for each in (self.figure, self.badge):
            self.head.addWidget(each)
        self.reason = ElidedLabel("muted", "Limiting resource")
        self.head.addWidget(self.reason, 1)
        self.bars = LimitBars(tuple(LIMITS), limit_colors, _MAX_LEGEND_ENTRIES)
        self.body.addWidget(self.bars)
        legend = QHBoxLayout()
        legend.setSpacing(6)
        self._alone_label = label("each alone:", "caption")
        self._alone_label.setToolTip(wrap_tip(_LIMITS_TIP))
        legend.addWidget(self._alone_label)
        self._legend = []
        for _ in range(_MAX_LEGEND_ENTRIES):
            dot, text = Dot(0, limit_colors), label("", "caption")
            legend.addWidget(dot, 0, Qt.AlignmentFlag.AlignVCenter)
            legend.addWidget(text)
            legend.addSpacing(10)
            self._legend.append((dot, text))
        legend.addWidget(self.uncertainty_label, 1)
        self.body.addLayout(legend)
        self.model: ModeledTime | None = None
        self._measured_us: float | None = None
        self._limits: dict[str, float] = {}
        self._notes: list[str] = []
        self._gpu = ""

    def show_gpu(self, key: str) -> None:
        """Name the GPU in the title."""
        self._gpu = key
        name = find_gpu(key).name
        self.title.setText(f"On {name_with_article(name)}")
        self.setAccessibleName(self.title.text())

    def show_model(self, result: ModeledTime | Failure | None) -> None:
        """Show a modeled time or the reason for its absence; None means that it is still being computed."""
        self.model = result if isinstance(result, ModeledTime) else None
        if isinstance(result, ModeledTime):
            self._show_time(result)
            return
        self.figure.setText("")
        self.uncertainty_label.show_text("")
        self.figure.setToolTip("")
        self.bars.show_limits({}, 0.0)
        self._show_legend({})
        if result is None:
            self.badge.show_text("modeling…", "neutral", _MODELED_TIP)
            self.reason.show_text("")
        else:
            self.badge.show_text("not modeled", "warn", result.detail or result.message)
            self.reason.show_text(result.message)

    def show_bound(self, text: str) -> None:
        """Show a bound of the time that is being computed, as a clause."""
        if self.model is None:
            text = text[:1].upper() + text[1:]
            self.reason.show_text(text, text.partition(",")[0])

    def _show_time(self, model: ModeledTime) -> None:
        self.figure.setText(format_duration(model.time_us))
        error = model.error
        if error is not None:
            cases = f"of {error.pattern} " if error.pattern else "of other kernels "
            tip = (
                f"{error.cases} cases {cases}were measured on {name_with_article(model.name)} and "
                f"modeled ({error.date}): nine of ten were within {error.percent}% of the measurement."
                + ("" if error.includes_variant else " They do not include this variant, which is newer.")
            )
        else:
            tip = "The timing model has not been compared with measurements on such a GPU."
        notes = [_MODELED_TIP, tip, model.source_sentence]
        if not model.all_executed:
            notes.append("Some launches take too long to execute here: later launches lack their results.")
        if not model.is_complete:
            notes.append("The blocks are too long to be followed to their end: the time may be much too low.")
        self.badge.show_text("modeled", "neutral" if model.validated else "warn", "\n".join(notes))
        self._notes = notes
        self._show_accuracy()
        reason = model.reason[:1].upper() + model.reason[1:]
        self.reason.show_text(reason, reason.partition(":")[0], reason.partition(" is ")[0])
        add_definition(self.reason, "limiting resource")
        self.figure.setToolTip(wrap_tip(self._describe_occupancy(model)))
        add_definition(self.figure, "occupancy")
        self.bars.show_limits(model.limits, model.time_us)
        self.bars.setToolTip(
            "\n".join(
                [_LIMITS_TIP, *(f"{name}: {format_duration(model.limits[name])}. {LIMITS[name]}" for name in LIMITS)]
            )
        )
        self._show_legend(dict(model.limits))

    def show_measured(self, time_us: float | None) -> None:
        """Compare the modeled time with the time of the same run that was measured on the same GPU; None for none."""
        self._measured_us = time_us
        self._show_accuracy()

    def _show_accuracy(self) -> None:
        """Show how far the modeled time is from the measured one, if there is one, and how accurate others are."""
        if self.model is None:
            return
        error, source = self.model.accuracy, "" if self.model.source == "sass" else "without nvcc"
        accuracy = "; ".join(filter(None, (error, source)))
        texts = [accuracy, accuracy.partition(" for ")[0]]
        if self._measured_us:
            percent = round(100 * (self.model.time_us / self._measured_us - 1))
            difference = f"{abs(percent)}% {'above' if percent > 0 else 'below'}" if percent else "equal to"
            measured = f"{difference} the measured {format_duration(self._measured_us)}"
            texts = [f"{measured}; {accuracy}", measured]
        self.uncertainty_label.show_text(*texts)
        self.uncertainty_label.setToolTip(wrap_tip("\n".join([texts[0], *self._notes])))

    def _describe_occupancy(self, model: ModeledTime) -> str:
        """Return a sentence about the occupancy of the longest kernel."""
        longest = model.longest_kernel
        if longest is None:
            return ""
        gpu = find_gpu(model.gpu)
        missing = describe_missing_blocks(math.prod(longest.grid), longest.blocks, longest.warps, gpu)
        spilled = f", {longest.spilled_bytes} bytes spilled" if longest.spilled_bytes else ""
        return (
            f"{longest.kernel}: a multiprocessor holds up to {longest.blocks} blocks of {longest.threads} threads at "
            f"once, {longest.warps} of {gpu.warps} warps, limited by {longest.limited_by}{missing}; "
            f"{longest.registers} registers per thread{spilled}, {longest.shared_bytes} bytes shared memory per block"
        )

    def _show_legend(self, limits: dict[str, float]) -> None:
        self._limits = limits
        names = list(LIMITS)
        room = self.width() - look().px(_UNCERTAINTY_WIDTH) - 24 - self._alone_label.sizeHint().width()
        largest = sorted(
            (name for name in limits if limits[name] > _MIN_LIMIT_SHARE * sum(limits.values())),
            key=lambda name: -limits[name],
        )
        self._alone_label.setVisible(bool(largest))
        for index, (dot, text) in enumerate(self._legend):
            visible = index < len(largest)
            if visible:
                name = largest[index]
                dot.part = names.index(name)
                dot.update()
                text.setText(f"{name} {format_duration(limits[name])}")
                text.setToolTip(wrap_tip(f"{LIMITS[name]}. {_LIMITS_TIP}"))
                room -= dot.width() + text.sizeHint().width() + 28
            # The bars' tooltip lists the limits that have no room here.
            visible = visible and (not index or room >= 0)
            dot.setVisible(visible)
            text.setVisible(visible)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._show_legend(self._limits)

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.became_visible.emit()
