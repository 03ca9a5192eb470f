"""The card of the modeled time on the selected GPU: its limiting resource and its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QHBoxLayout

from gpu.messages.modeled import LIMITS, LineCode, ModeledTime, article, as_duration, short_name
from gpu.messages.requests import Failure
from gpu.timing.gpus import find_gpu
from gui.painting.colors import warp_color
from gui.painting.theme import look
from gui.run_view.share_bar import Dot, ShareBar
from gui.widgets.basic import Badge, Card, ElidedLabel, label
from gui.widgets.glossary_tip import add_definition

_IN_LEGEND = 4
_SURENESS = 70
"""Pixels, at the normal text size, reserved for the uncertainty."""
_LEAST = 0.005
"""Minimum share of the sum of all limits for a limit to be named."""
_MODELED = "Predicted by the timing model, not measured. Some blocks were executed here, instruction by instruction."
_OF_LIMITS = "Time if this were the only limit. The times overlap: the longest one dominates."


def limit_colors() -> list[str]:
    """Return a color per limit; that of the launch overhead, which is not work, is faint."""
    theme = look().theme
    colors = [warp_color(theme, number).name() for number in range(len(LIMITS) - 1)]
    return [*colors, theme.faint]


def code_of(found: ModeledTime | Failure | None, file: str) -> Mapping[int, LineCode]:
    """Return the machine code of each line of a file, if it is known."""
    return found.lines.get(file, {}) if isinstance(found, ModeledTime) else {}


class ModeledCard(Card):
    """The modeled time of the current source, size and variant; cleared when one of them changes."""

    appeared = pyqtSignal()
    """The card became visible."""

    def __init__(self) -> None:
        super().__init__("On a GPU", margins=(12, 3, 12, 5))
        self.body.setSpacing(3)
        self.badge = Badge()
        self.figure = label("", "figure", name="Modeled time")
        self.sureness = ElidedLabel("caption", "Uncertainty of the modeled time", right=True)
        for each in (self.figure, self.badge):
            self.head.addWidget(each)
        self.reason = ElidedLabel("muted", "Limiting resource")
        self.head.addWidget(self.reason, 1)
        self.bar = ShareBar(tuple(LIMITS), limit_colors)
        self.body.addWidget(self.bar)
        legend = QHBoxLayout()
        legend.setSpacing(6)
        self._legend = []
        for _ in range(_IN_LEGEND):
            dot, text = Dot(0, limit_colors), label("", "caption")
            legend.addWidget(dot, 0, Qt.AlignmentFlag.AlignVCenter)
            legend.addWidget(text)
            legend.addSpacing(10)
            self._legend.append((dot, text))
        legend.addWidget(self.sureness, 1)
        self.body.addLayout(legend)
        self.shown: ModeledTime | None = None
        self._limits: dict[str, float] = {}
        self._gpu = ""

    def show_gpu(self, key: str) -> None:
        """Name the GPU in the title."""
        self._gpu = key
        name = find_gpu(key).name
        self.title.setText(f"On {article(name)} {short_name(name)}")
        self.setAccessibleName(self.title.text())

    def show_model(self, found: ModeledTime | Failure | None) -> None:
        """Show a modeled time or the reason for its absence; None means that it is still being computed."""
        self.shown = found if isinstance(found, ModeledTime) else None
        if isinstance(found, ModeledTime):
            self._show_time(found)
            return
        self.figure.setText("")
        self.sureness.say("")
        self.figure.setToolTip("")
        self.bar.show_amounts(dict.fromkeys(LIMITS, 0.0))
        self._show_legend({})
        if found is None:
            self.badge.say("modeling…", "neutral", _MODELED)
            self.reason.say("")
        else:
            self.badge.say("not modeled", "warn", found.detail or found.message)
            self.reason.say(found.message)

    def _show_time(self, model: ModeledTime) -> None:
        self.figure.setText(as_duration(model.time_us))
        error = model.error
        if error is not None:
            cases = f"of {error.of} " if error.of else "of other kernels "
            tip = (
                f"{error.cases} cases {cases}were measured on {article(model.name)} {short_name(model.name)} and "
                f"modeled ({error.date}): nine of ten were within {error.percent} % of the measurement."
                + ("" if error.among else " None was of this variant, which is newer.")
            )
        else:
            tip = "The timing model has not been compared with measurements on such a GPU."
        notes = [_MODELED, tip, model.compiled]
        if not model.all_ran:
            notes.append("Some launches take too long to execute here: later launches lack their results.")
        self.badge.say("modeled", "neutral" if model.validated else "warn", "\n".join(notes))
        self.sureness.say("; ".join(filter(None, (model.sureness, "" if model.source == "sass" else "without nvcc"))))
        self.sureness.setToolTip("\n".join(notes))
        self.reason.say(model.waits[:1].upper() + model.waits[1:])
        add_definition(self.reason, "limiting resource")
        self.figure.setToolTip(self._occupancy(model))
        add_definition(self.figure, "occupancy")
        self.bar.show_amounts(model.limits)
        self.bar.setToolTip(
            "\n".join([_OF_LIMITS, *(f"{name}: {as_duration(model.limits[name])}. {LIMITS[name]}" for name in LIMITS)])
        )
        self._show_legend(dict(model.limits))

    def _occupancy(self, model: ModeledTime) -> str:
        """Return a sentence about the occupancy of the longest kernel."""
        longest = model.longest
        if longest is None:
            return ""
        spilled = f", {longest.spilled_bytes} bytes spilled" if longest.spilled_bytes else ""
        return (
            f"{longest.kernel}: a multiprocessor holds {longest.blocks} blocks of {longest.threads} threads at once, "
            f"{longest.warps} of {find_gpu(model.gpu).warps} warps, limited by {longest.limited_by}; "
            f"{longest.registers} registers per thread{spilled}, {longest.shared_bytes} bytes shared memory per block"
        )

    def _show_legend(self, limits: dict[str, float]) -> None:
        self._limits = limits
        names = list(LIMITS)
        room = self.width() - look().px(_SURENESS) - 24
        largest = sorted(
            (name for name in limits if limits[name] > _LEAST * sum(limits.values())), key=lambda name: -limits[name]
        )
        for place, (dot, text) in enumerate(self._legend):
            visible = place < len(largest)
            if visible:
                name = largest[place]
                dot.part = names.index(name)
                dot.update()
                text.setText(f"{name} {as_duration(limits[name])}")
                text.setToolTip(f"{LIMITS[name]}. {_OF_LIMITS}")
                room -= dot.width() + text.sizeHint().width() + 28
            # The bar's tooltip lists the limits that have no room here.
            visible = visible and (not place or room >= 0)
            dot.setVisible(visible)
            text.setVisible(visible)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._show_legend(self._limits)

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.appeared.emit()
