"""How long it would take on the GPU that is chosen, what holds it back there, and how sure that is."""

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

_IN_LEGEND = 4
_SURENESS = 70
"""Pixels, at the normal size of text, that are kept for how sure it is."""
_LEAST = 0.005
"""Of all limits together for one to be named."""
_MODELED = "Modeled: no GPU ran it. Some of its blocks were run here, instruction by instruction."
_OF_LIMITS = "What it would take if that were the only limit. These times overlap: the longest counts."


def limit_colors() -> list[str]:
    """Return the color of each limit: that of launches, which is nobody's work, is faint."""
    theme = look().theme
    colors = [warp_color(theme, number).name() for number in range(len(LIMITS) - 1)]
    return [*colors, theme.faint]


def code_of(found: ModeledTime | Failure | None, file: str) -> Mapping[int, LineCode]:
    """Return what each line of a file became, where that is known."""
    return found.lines.get(file, {}) if isinstance(found, ModeledTime) else {}


class ModeledCard(Card):
    """A modeled time: never beside another text, size or variant than it is of."""

    appeared = pyqtSignal()
    """It is seen, or seen again."""

    def __init__(self) -> None:
        super().__init__("On a GPU", margins=(12, 3, 12, 5))
        self.body.setSpacing(3)
        self.badge = Badge()
        self.figure = label("", "figure", name="Modeled time")
        self.sureness = ElidedLabel("caption", "How sure the modeled time is", right=True)
        for each in (self.figure, self.badge):
            self.head.addWidget(each)
        self.reason = ElidedLabel("muted", "What it waits for")
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
        """Say which GPU it is about."""
        self._gpu = key
        name = find_gpu(key).name
        self.title.setText(f"On {article(name)} {short_name(name)}")
        self.setAccessibleName(self.title.text())

    def show_model(self, found: ModeledTime | Failure | None) -> None:
        """Show a time, or why there is none; None is one that is to come."""
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

    def _show_time(self, found: ModeledTime) -> None:
        self.figure.setText(as_duration(found.time_us))
        known = found.error
        if known is not None:
            whose = f"of {known.of} " if known.of else "of kernels from elsewhere "
            tip = (
                f"{known.cases} cases {whose}were measured on {article(found.name)} {short_name(found.name)} and "
                f"modeled ({known.date}): nine of ten were within {known.percent} % of what was measured."
                + ("" if known.among else " None was of this variant, which is newer.")
            )
        else:
            tip = "Nothing that was measured on such a GPU has been compared with the model."
        notes = [_MODELED, tip, found.compiled]
        if not found.all_ran:
            notes.append("Some launches take too long to be run here: later ones did not find what they left.")
        self.badge.say("modeled", "neutral" if found.validated else "warn", "\n".join(notes))
        self.sureness.say("; ".join(filter(None, (found.sureness, "" if found.source == "sass" else "without nvcc"))))
        self.sureness.setToolTip("\n".join(notes))
        self.reason.say(found.waits[:1].upper() + found.waits[1:])
        self.figure.setToolTip(self._held(found))
        self.bar.show_amounts(found.limits)
        self.bar.setToolTip(
            "\n".join([_OF_LIMITS, *(f"{name}: {as_duration(found.limits[name])}. {LIMITS[name]}" for name in LIMITS)])
        )
        self._show_legend(dict(found.limits))

    def _held(self, found: ModeledTime) -> str:
        """Return what a multiprocessor holds of the longest kernel, in a sentence."""
        longest = found.longest
        if longest is None:
            return ""
        spilled = f", {longest.spilled_bytes} bytes of them spilled" if longest.spilled_bytes else ""
        return (
            f"{longest.kernel}: a multiprocessor holds {longest.blocks} blocks of {longest.threads} threads at once, "
            f"{longest.warps} of {find_gpu(found.gpu).warps} warps, limited by {longest.limited_by}; "
            f"{longest.registers} registers a thread{spilled}, {longest.shared_bytes} bytes of shared memory a block"
        )

    def _show_legend(self, limits: dict[str, float]) -> None:
        self._limits = limits
        names = list(LIMITS)
        room = self.width() - look().px(_SURENESS) - 24
        largest = sorted(
            (name for name in limits if limits[name] > _LEAST * sum(limits.values())), key=lambda name: -limits[name]
        )
        for place, (dot, text) in enumerate(self._legend):
            there = place < len(largest)
            if there:
                name = largest[place]
                dot.part = names.index(name)
                dot.update()
                text.setText(f"{name} {as_duration(limits[name])}")
                text.setToolTip(f"{LIMITS[name]}. {_OF_LIMITS}")
                room -= dot.width() + text.sizeHint().width() + 28
            # What comes after the largest is in the bar's tool tip too.
            there = there and (not place or room >= 0)
            dot.setVisible(there)
            text.setVisible(there)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._show_legend(self._limits)

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.appeared.emit()
