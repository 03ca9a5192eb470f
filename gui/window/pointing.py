"""Find the thread that wrote an element: the simulator answers, and the Step tab can continue from there."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QObject, QPoint, pyqtSignal

from gpu.messages.requests import Failure, FindWriter, Result, RunPattern, StepWriter
from gpu.messages.writer import WrittenElement
from gui.model.jobs import Jobs
from gui.model.records import PointedElement
from gui.run_view.view import RunView
from gui.run_view.writer_card import PLANES, WriterCard

_CHANNEL = "writer"


class Pointing(QObject):
    """Find the writer of an element of the newest run, and show it in a card.

    Parameters
    ----------
    view : RunView
    jobs : callable
        Returns the queue of the simulator's process.
    engine : Jobs
        The queue of the engine that ran.
    """

    step_wanted = pyqtSignal(object)
    """StepWriter"""
    line_wanted = pyqtSignal(str, int)
    """A kernel file and a line number."""

    def __init__(self, view: RunView, jobs: Callable[[], Jobs], engine: Jobs) -> None:
        super().__init__(view)
        self._view, self._jobs, self._engine = view, jobs, engine
        self._run: RunPattern | None = None
        self._query: FindWriter | None = None
        self._pointed: tuple[PointedElement, QPoint] | None = None
        self._written: WrittenElement | None = None
        self.card = WriterCard(view)
        view.pointed.connect(self._find)
        self.card.step_wanted.connect(self._step)
        self.card.line.clicked.connect(self._show_line)
        self.card.closed.connect(self._forget)
        self.card.plane_wanted.connect(lambda _: self._find(*self._pointed) if self._pointed is not None else None)

    def take_run(self, run: RunPattern | None) -> None:
        """Search this run from now on (None for no run), and hide the current answer."""
        self._run = run
        self.card.hide()
        self._forget()

    @property
    def under_way(self) -> bool:
        """Whether an answer is pending."""
        return self._query is not None and self._written is None and self.card.isVisible()

    def stop(self) -> bool:
        """Cancel the search, or close the card; return whether either was open."""
        shown = self.card.isVisible()
        if self.under_way and self._jobs().waits(_CHANNEL):
            self._jobs().stop()
        if shown:
            self.card.dismiss()
        return shown

    def _forget(self) -> None:
        if self._query is not None:
            self._query = self._written = None
            self._jobs().drop(_CHANNEL)

    def _find(self, pointed: PointedElement, where: QPoint) -> None:
        run = self._run if pointed.run is None else pointed.run
        if run is None:
            return
        element, colored = pointed.element, len(pointed.planes) == len(PLANES)
        if colored:  # the color plane chosen last
            element = pointed.planes[PLANES.index(self.card.plane.chosen)]
        query = FindWriter(run, pointed.output, element, self._engine.device)
        self._query, self._written, self._pointed = query, None, (pointed, where)
        self.card.ask(pointed.title, where, colored=colored)
        self._jobs().post(_CHANNEL, query, lambda event: self._on_answer(query, event), priority=2)

    def _on_answer(self, query: FindWriter, event: Result | Failure) -> None:
        if query is not self._query:
            return
        if isinstance(event, Failure):
            self.card.show_unknown(f"{event.message} {event.advice}".strip())
            return
        assert event.written is not None
        self._written = event.written
        self.card.show_written(event.written)

    def _show_line(self) -> None:
        if self._written is not None and self._written.writer is not None:
            self.line_wanted.emit(self._written.writer.file, self._written.writer.line)

    def _step(self) -> None:
        if self._query is not None and self._written is not None and self._written.writer is not None:
            self.step_wanted.emit(StepWriter(self._query, self._written))
