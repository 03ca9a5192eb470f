"""The Compare tab of a kernel file: its kernels, or one of them in blocks of several sizes, by what is counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from PyQt6.QtCore import QEvent, pyqtSignal
from PyQt6.QtGui import QHideEvent, QShowEvent
from PyQt6.QtWidgets import QHBoxLayout, QScrollArea, QStackedWidget, QVBoxLayout, QWidget

from gpu.declaration.pattern import Array
from gpu.errors import InputError
from gpu.messages.kernels import CountedLaunch, KernelLaunch, Signature, alike
from gpu.messages.requests import CountKernel, Failure, ModelKernel, Result
from gpu.messages.verdicts import mistakes_in_words
from gpu.timing.gpus import Supposed
from gui.compare_view.modeled import VIEWS, Modelable, ModeledViews
from gui.model.jobs import Jobs
from gui.model.modeling import Modeling
from gui.own_kernel.contenders import Contender, block_sizes, kernels_beside
from gui.own_kernel.counts_table import CountsTable
from gui.painting.theme import look
from gui.qt.events import is_of
from gui.widgets.basic import Card, ElidedLabel, Segments, button, label, row
from gui.widgets.elided_box import ElidedCheck

COUNTS = "Counts"
KERNELS, BLOCKS = "Kernels", "Block sizes"
_CHANNEL = "own compare"
_CHOICES = 270
"""Pixels that the choice of launches takes."""
_AT_REST = "What each launch does, in all, is counted."
_COUNTED = "in all of a launch, counted by the simulator: exact, and the same on every machine"


class OwnCompareTab(QWidget):
    """Counts the launches that are ticked, one after the other, and shows them side by side as they come.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    launch : callable
        Returns the launch that is chosen; InputError where there is none.
    kernels : callable
        Returns the kernels of the file.
    modeling : Modeling
        Says how long launches would take on a GPU.
    """

    failed = pyqtSignal(object)
    """Failure"""
    busy_changed = pyqtSignal(bool)

    def __init__(
        self,
        jobs: Callable[[], Jobs],
        launch: Callable[[], KernelLaunch],
        kernels: Callable[[], Sequence[Signature]],
        modeling: Modeling,
    ) -> None:
        super().__init__()
        self._jobs, self._launch, self._kernels = jobs, launch, kernels
        self.contenders: list[Contender] = []
        self.counted: dict[str, CountedLaunch | str] = {}
        """By the contender's title: what was counted, or why nothing was."""
        self.same: dict[str, bool] = {}
        """By the contender's title: whether its result is that of the first that was counted."""
        self._first: dict[str, Array] | None = None
        self._todo: list[Contender] = []
        self._turn = 0
        self._columns: list[str] = []
        self._ticked: dict[str, bool] = {}
        self._modeling = modeling
        self.views = Segments((COUNTS, *VIEWS), "Compare by")
        self.views.picked.connect(lambda _: self._take_view())
        self.modeled = ModeledViews(modeling)
        self.modeled.stale.connect(self.model)
        self.modeled.busy_changed.connect(lambda _: self._name_button())
        self.way = Segments((KERNELS, BLOCKS), "Compare")
        self.way.picked.connect(lambda _: self.refresh())
        self.boxes: list[ElidedCheck] = []
        self.count_button = button("Count", "primary", tip="Run every ticked launch on the simulator, and count (F5)")
        self.count_button.clicked.connect(self.toggle)
        self.table = CountsTable()
        self.about = ElidedLabel("caption", "What is counted")
        self.said = label("", "caption", wrap=True, name="What was found")
        self.said.hide()
        self.hint = label("", "caption", wrap=True, name="What is compared")
        self._lay_out()

    def _lay_out(self) -> None:
        shown = Card("Side by side", margins=(12, 8, 12, 10))
        shown.head.addWidget(self.about, 1)
        shown.body.addWidget(self.table, 1)
        shown.body.addWidget(self.said)
        chosen = Card("Compare", margins=(12, 8, 12, 12))
        chosen.head.addStretch(1)
        chosen.head.addWidget(self.way)
        listed = QWidget()
        self._list = QVBoxLayout(listed)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(4)
        self._list.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(listed)
        chosen.body.addWidget(self.hint)
        chosen.body.addWidget(scroll, 1)
        chosen.body.addLayout(row(0, self.count_button))
        chosen.setFixedWidth(look().px(_CHOICES))
        self._chosen = chosen
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        self.shown = QStackedWidget()
        self.shown.addWidget(shown)
        self.shown.addWidget(self.modeled)
        layout.addWidget(self.shown, 1)
        layout.addWidget(chosen)

    @property
    def busy(self) -> bool:
        """Whether a launch is to come."""
        return bool(self._todo)

    @property
    def ticked(self) -> list[Contender]:
        """Return the launches that are chosen."""
        return [each for each, box in zip(self.contenders, self.boxes, strict=True) if box.isChecked()]

    def refresh(self) -> None:
        """Offer what there is to compare, now that the text or the launch may be another."""
        try:
            launch = self._launch()
        except InputError as error:
            self.stop()
            self._offer([], error.message)
            return
        in_blocks = self.way.chosen == BLOCKS
        made = block_sizes(launch) if in_blocks else kernels_beside(launch, self._kernels())
        if made == self.contenders:
            return
        self.stop()
        others = sum(not each.refusal for each in made) - 1
        if in_blocks:
            hint = f"{launch.kernel} with as many threads, in blocks of several sizes; the grid follows."
        elif others:
            hint = "On the same grid, in the same blocks, with the same arguments."
        else:
            hint = f"No other kernel of the file takes what {launch.kernel} takes."
        self._offer(made, hint)

    def _offer(self, contenders: list[Contender], hint: str) -> None:
        self._ticked |= {each.title: box.isChecked() for each, box in zip(self.contenders, self.boxes, strict=True)}
        for box in self.boxes:
            self._list.removeWidget(box)
            box.deleteLater()
        self.contenders, self.boxes = contenders, []
        for place, each in enumerate(contenders):
            box = ElidedCheck(each.title)
            box.setEnabled(not each.refusal)
            box.setChecked(not each.refusal and self._ticked.get(each.title, True))
            box.setToolTip(each.refusal or _described(each.launch))
            box.toggled.connect(lambda _: self._take_choice())
            self._list.insertWidget(place, box)
            self.boxes.append(box)
        self.hint.setText(hint)
        self._begin()
        if self.views.chosen != COUNTS:
            self.model()

    def _take_choice(self) -> None:
        self.count_button.setEnabled(self.busy or bool(self.ticked))
        if not self.busy and not self.counted:
            self._begin()

    def _begin(self) -> None:
        self.counted, self.same, self._first = {}, {}, None
        self._columns = [each.title for each in self.ticked]
        self.table.begin(self._columns)
        self._show()
        self.count_button.setEnabled(bool(self._columns))
        self.about.say(_AT_REST)

    # --- modeling

    def _take_view(self) -> None:
        """Show what is counted, or one of the views of what is modeled, which is modeled at once."""
        counts = self.views.chosen == COUNTS
        self.shown.setCurrentIndex(0 if counts else 1)
        if counts:
            self.modeled.stop()
        else:
            self.modeled.show_view(self.views.chosen)
            self.model()
        self._name_button()

    def model(self) -> None:
        """Model what is ticked, where that is looked at."""
        if self.views.chosen == COUNTS or not self.isVisible():
            self.modeled.forget()
            return
        in_blocks = self.way.chosen == BLOCKS
        others = {} if in_blocks or not self.contenders else {
            math.prod(each.launch.block): each.launch for each in block_sizes(self.contenders[0].launch)
        }  # fmt: skip

        def requested(launch: KernelLaunch) -> Callable[[Supposed, int], ModelKernel]:
            def request(supposed: Supposed, threads: int) -> ModelKernel:
                shape = others.get(threads, launch)
                wanted = replace(launch, grid=shape.grid, block=shape.block)
                return ModelKernel(wanted, self._modeling.gpu, supposed, operations=True)

            return request

        offered = [Modelable(place, each.title, requested(each.launch)) for place, each in enumerate(self.ticked)]
        own = math.prod(self.contenders[0].launch.block) if self.contenders else 0
        powers = [threads for threads in others if threads & (threads - 1) == 0]
        self.modeled.start(offered, "", powers, own)

    def _name_button(self) -> None:
        """Say on the button what it does."""
        busy = self.busy or self.modeled.busy
        self.count_button.setText("Stop" if busy else "Count" if self.views.chosen == COUNTS else "Model")

    # --- counting

    def toggle(self) -> None:
        """Count, or stop."""
        self.stop() if self.busy or self.modeled.busy else self.count()

    def count(self) -> None:
        """Count anew what is ticked, or model it."""
        if self.views.chosen != COUNTS:
            self.model()
            return
        self.refresh()
        self.stop()
        self._begin()
        self._todo = self.ticked
        if self._todo:
            self._name_button()
            self.busy_changed.emit(True)
            self._ask()

    def stop(self) -> None:
        """Count no further."""
        self.modeled.stop()
        if self.busy:
            self._todo = []
            self._turn += 1
            self._jobs().drop(_CHANNEL)
            if self._jobs().waits(_CHANNEL):
                self._jobs().stop()
            self._end()

    def _ask(self) -> None:
        asked, turn = self._todo[0], self._turn
        self.about.say(f"counting {asked.title} …")

        def done(event: Result | Failure) -> None:
            if turn == self._turn:
                self._take(asked, event)

        self._jobs().post(_CHANNEL, CountKernel(asked.launch), done, priority=1)

    def _take(self, asked: Contender, event: Result | Failure) -> None:
        if isinstance(event, Result):
            assert event.counted is not None
            self.counted[asked.title] = event.counted
            self._take_arrays(asked.title, {name: handle.open() for name, handle in event.arrays.items()})
        elif event.kind in ("input", "compile", "launch"):
            self.counted[asked.title] = f"{event.message} {event.advice}".strip()
        else:
            self._todo = []
            if event.kind != "cancelled":
                self.failed.emit(event)
            self._end()
            return
        del self._todo[0]
        self._show()
        if self._todo:
            self._ask()
        else:
            self._end()

    def _take_arrays(self, title: str, arrays: dict[str, Array]) -> None:
        if self._first is None:
            self._first = {name: np.array(array) for name, array in arrays.items()}
        else:
            first = self._first
            self.same[title] = all(name in first and alike(array, first[name]) for name, array in arrays.items())

    def _end(self) -> None:
        self._name_button()
        self.about.say(_COUNTED if self.counted else _AT_REST)
        self._take_choice()
        self.busy_changed.emit(False)

    def _show(self) -> None:
        self.table.show_counts(
            [self.counted.get(title) for title in self._columns], [self.same.get(title) for title in self._columns]
        )
        sentences = [sentence for title in self._columns if (sentence := _sentence(title, self.counted.get(title)))]
        self.said.setText("\n".join(sentences))
        self.said.setVisible(bool(sentences))

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self._chosen.setFixedWidth(look().px(_CHOICES))
            self.table.fit()
            self._show()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.refresh()
        if self.views.chosen != COUNTS and not self.modeled.busy:
            self.model()

    def hideEvent(self, event: QHideEvent | None) -> None:
        assert event is not None
        super().hideEvent(event)
        if not event.spontaneous():  # a minimized window goes on
            self.stop()


def _sentence(title: str, counted: CountedLaunch | str | None) -> str:
    """Return what is wrong with a launch; "" where nothing is."""
    if isinstance(counted, str):
        return f"{title}: {counted}"
    if counted is not None and counted.mistakes:
        return f"{title}: it {mistakes_in_words(counted.mistakes)}. Its figures are those of a kernel with a mistake."
    return ""


def _described(launch: KernelLaunch) -> str:
    grid, block = (" × ".join(map(str, each)) for each in (launch.grid, launch.block))
    return f"{launch.kernel}: grid {grid}, block {block}"
