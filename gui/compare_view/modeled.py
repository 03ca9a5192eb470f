"""Variants, or launches of a kernel, modeled side by side: their limits, a roofline, occupancy, and what if."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PyQt6.QtCore import QEvent, pyqtSignal
from PyQt6.QtWidgets import QStackedWidget

from gpu.messages.modeled import ModeledTime, article, as_duration, short_name
from gpu.messages.requests import Failure
from gpu.timing.gpus import Supposed, find_gpu
from gui.compare_view.limits import LimitsTable
from gui.compare_view.occupancy import OccupancyView
from gui.compare_view.what_if import WhatIf
from gui.model.modeling import Modeling, ModelRequest
from gui.plots.roofline_plot import RooflineDot, RooflinePlot, Roofs
from gui.qt.events import is_of
from gui.qt.later import after
from gui.widgets.basic import Card, ElidedLabel, label

LIMITS_VIEW, ROOFLINE, OCCUPANCY = "Limits", "Roofline", "Occupancy"
VIEWS = (LIMITS_VIEW, ROOFLINE, OCCUPANCY)
_MOVED_MS = 150
"""How long a slider rests before what it supposes is modeled."""


@dataclass(frozen=True)
class Modelable:
    """Something to model.

    Parameters
    ----------
    number : int
        Its place in the ladder: its color and name.
    title : str
    request : callable
        (Supposed, threads of a block or 0 for what is set) -> what to ask for.
    """

    number: int
    title: str
    request: Callable[[Supposed, int], ModelRequest]


class ModeledViews(Card):
    """Models what it is offered, one after the other, and shows it as it comes.

    Parameters
    ----------
    modeling : Modeling
    """

    figured = pyqtSignal()
    """Figures have come or gone."""
    busy_changed = pyqtSignal(bool)
    stale = pyqtSignal()
    """It is to be offered anew what there is to model: another GPU is chosen, or something is supposed."""

    def __init__(self, modeling: Modeling) -> None:
        super().__init__("", margins=(12, 8, 12, 6))
        self._modeling = modeling
        self._channel = f"compare modeled {id(self)}"
        self._offered: dict[int, Modelable] = {}
        self._todo: list[tuple[int, int]] = []
        self._turn = 0
        self._of = ""
        self.found: dict[tuple[int, int], ModeledTime | Failure] = {}
        """By number and threads of a block, 0 for those that are set."""
        self.selected = -1
        """The number of what is looked at."""
        self._chosen = False
        self.view = LIMITS_VIEW
        self.about = ElidedLabel("caption", "What is modeled", right=True)
        self.head.addWidget(self.about, 1)
        self.limits = LimitsTable()
        self.roofline = RooflinePlot()
        self.occupancy = OccupancyView()
        self.stack = QStackedWidget()
        for widget in (self.limits, self.roofline, self.occupancy):
            self.stack.addWidget(widget)
        self.why = label("", wrap=True, name="What it waits for")
        self.what_if = WhatIf()
        self.body.addWidget(self.stack, 1)
        self.body.addWidget(self.why)
        self.body.addWidget(self.what_if)
        self._moved = after(_MOVED_MS, self.stale.emit, self)
        # Once however much has come: to draw a roofline for each of some variants would hold the window up.
        self._drawing = after(0, self._draw, self)
        self.what_if.changed.connect(self._moved.start)
        self.limits.chosen.connect(self._take_line)
        self.roofline.picked.connect(self.select)
        modeling.gpu_changed.connect(lambda _: self.stale.emit())
        self.show_view(LIMITS_VIEW)

    def show_view(self, name: str) -> None:
        """Show one of the views."""
        self.view = name
        self.stack.setCurrentIndex(VIEWS.index(name))
        self.title.setText({LIMITS_VIEW: "What holds it back"}.get(name, name))
        self._show()

    # --- modeling

    @property
    def busy(self) -> bool:
        """Whether a model is to come."""
        return bool(self._todo)

    @property
    def modeled(self) -> dict[int, ModeledTime]:
        """Return the times that are known, by number, with what is supposed."""
        return {number: found for number, found in self._now().items() if isinstance(found, ModeledTime)}

    @property
    def of(self) -> str:
        """Return what the times are of."""
        return self._of

    @property
    def refusals(self) -> dict[int, str]:
        """Return why others have none."""
        return {number: found.message for number, found in self._now().items() if isinstance(found, Failure)}

    def _now(self) -> dict[int, ModeledTime | Failure]:
        return {number: found for (number, threads), found in self.found.items() if threads == 0}

    def start(
        self, offered: Sequence[Modelable], of: str, blocks: Sequence[int], threads: int, first: int = -1
    ) -> None:
        """Model what is offered, anew where it is not known.

        Parameters
        ----------
        offered : sequence of Modelable
        of : str
            What they are of, such as "n = 2²⁰".
        blocks : sequence of int
            The sizes of blocks that can be chosen; nothing where they cannot.
        threads : int
            The size that is set.
        first : int
            The number of what is looked at as long as nobody has chosen.
        """
        self.stop()
        self.what_if.offer(blocks, threads)
        self._offered = {each.number: each for each in offered}
        self._of = of
        self.found = {}
        self._todo = [(number, 0) for number in self._offered]
        if not self._chosen or self.selected not in self._offered:
            self.selected, self._chosen = first if first in self._offered else next(iter(self._offered), -1), False
        self.limits.offer([f"{each.number + 1}  {each.title}" for each in offered])
        self._want_blocks()
        self._take_known()
        self._turn += 1
        self._show()
        self.figured.emit()
        if self._todo:
            self.busy_changed.emit(True)
            self._ask()

    def stop(self) -> None:
        """Model no further."""
        if self.busy:
            self._todo = []
            self._turn += 1
            self._modeling.drop(self._channel)
            self._end()

    def forget(self) -> None:
        """Show nothing: what is shown is of something else by now."""
        self.stop()
        self.found = {}
        self.limits.show_times({})
        self._show()
        self.figured.emit()

    def select(self, number: int) -> None:
        """Look at one of those that are shown."""
        if number not in self._offered or number == self.selected:
            return
        self.selected, self._chosen = number, True
        busy = self.busy
        self._want_blocks()
        self._show()
        if self._todo and not busy:
            self._turn += 1
            self.busy_changed.emit(True)
            self._ask()

    def _take_line(self, line: int) -> None:
        numbers = list(self._offered)
        if 0 <= line < len(numbers):
            self.select(numbers[line])

    def _want_blocks(self) -> None:
        """Ask for other sizes of blocks of what is looked at, where they are shown."""
        if self.view == OCCUPANCY and self.selected in self._offered:
            wanted = [(self.selected, threads) for threads in self.what_if.blocks]
            self._todo += [each for each in wanted if each not in self.found and each not in self._todo]

    def _take_known(self) -> None:
        """Take what is known already, all at once: each of them shown by itself would hold the window up."""
        for number, threads in self._todo:
            if (known := self._modeling.known(self._request(number, threads))) is not None:
                self._keep(number, threads, known)
        self._todo = [each for each in self._todo if each not in self.found]

    def _request(self, number: int, threads: int) -> ModelRequest:
        return self._offered[number].request(self.what_if.supposed, threads or self.what_if.threads)

    def _ask(self) -> None:
        number, threads = self._todo[0]
        turn = self._turn
        request = self._request(number, threads)
        self._say(f"modeling {self._offered[number].title} …")

        def take(found: ModeledTime | Failure) -> None:
            if turn == self._turn:
                self._take(number, threads, found)

        self._modeling.ask(self._channel, request, take)

    def _take(self, number: int, threads: int, found: ModeledTime | Failure) -> None:
        if isinstance(found, Failure) and found.kind == "cancelled":
            self.stop()
            return
        del self._todo[0]
        self._keep(number, threads, found)
        self._show()
        self.figured.emit()
        if self._todo:
            self._ask()
        else:
            self._end()

    def _keep(self, number: int, threads: int, found: ModeledTime | Failure) -> None:
        self.found[number, threads] = found
        if isinstance(found, ModeledTime) and not self._chosen and self.selected in self.refusals:
            self.selected = number  # what cannot be modeled is not much to look at
            self._want_blocks()

    def _end(self) -> None:
        self._show()
        self.busy_changed.emit(False)

    # --- showing

    def _draw(self) -> None:
        numbers = list(self._offered)
        if self.view == LIMITS_VIEW:
            self.limits.show_times({numbers.index(number): found for number, found in self._now().items()})
        elif self.view == ROOFLINE:
            self._show_roofline()
        else:
            self._show_occupancy()

    def _show(self) -> None:
        self._drawing.start()
        known = self._now().get(self.selected)
        title = self._offered[self.selected].title if self.selected in self._offered else ""
        if isinstance(known, ModeledTime):
            self.why.setText(f"{title}: {as_duration(known.time_us)} – {known.waits}.{self._no_dot(known)}")
        elif known is not None:
            self.why.setText(f"{title}: {known.message}")
        else:
            self.why.setText("")
        if not self.busy:
            self._say("")

    def _no_dot(self, known: ModeledTime) -> str:
        """Return why what is looked at is no dot of a roofline; "" where it is one."""
        none = self.view == ROOFLINE and not known.operations
        return " It does no operations on data, and so has no dot." if none else ""

    def _say(self, doing: str) -> None:
        """Say what is being done, or what is shown."""
        gpu = find_gpu(self._modeling.gpu)
        whose = f"modeled for {article(gpu.name)} {short_name(gpu.name)}"
        if self.what_if.any:
            whose += f", supposed {self.what_if.words}"
        known = next(iter(self.modeled.values()), None)
        sure = known.sureness if known is not None else ""
        self.about.say("; ".join(filter(None, (doing or whose, self._of, "" if doing else sure))))

    def _show_roofline(self) -> None:
        gpu = self.what_if.supposed.of(find_gpu(self._modeling.gpu))
        # A multiply-add is two operations.
        peak = 2 * gpu.float_lanes * gpu.multiprocessors * gpu.clock_ghz
        dots = [
            RooflineDot(
                number,
                found.operations / max(found.dram_bytes, 1.0),
                found.operations / max(found.l2_bytes, 1.0),
                found.operations / found.time_us / 1e3,
            )
            for number, found in self.modeled.items()
            if found.operations > 0
        ]
        self.roofline.show_dots(dots, Roofs(gpu.memory_gb_s, gpu.last_cache_gb_s, peak), self.selected)

    def _show_occupancy(self) -> None:
        known = self.modeled.get(self.selected)
        if known is None or known.longest is None:
            return
        gpu = self.what_if.supposed.of(find_gpu(self._modeling.gpu))
        self.occupancy.show_kernel(gpu, known.longest)
        times = {
            threads: found.time_us
            for (number, threads), found in self.found.items()
            if number == self.selected and threads and isinstance(found, ModeledTime)
        }
        self.occupancy.show_times(self.selected, self._offered[self.selected].title, times, self.what_if.blocks)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self.limits.restyle()
