"""Find the thread that wrote an element: the simulator answers, and the Step tab can continue from there."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QObject, QPoint, pyqtSignal

from gpu.messages.events import Failure
from gpu.messages.runs.pattern_runs import RunPattern
from gpu.messages.runs.writer import FindWriter, StepWriter, WrittenElement
from gui.model.records import PointedElement
from gui.model.request_queue import RequestQueue
from gui.run_view.cards.writer_card import PLANES, WriterCard
from gui.run_view.view import RunView

_CHANNEL = "writer"


class WriterSearch(QObject):
    """Find the writer of an element of the newest run, and show it in a card.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    engine : RequestQueue
        The queue of the engine that ran.
    """

    step_requested = pyqtSignal(object)
    """StepWriter"""
    line_requested = pyqtSignal(str, int)
    """A kernel file and a line number."""

    def __init__(self, view: RunView, jobs: Callable[[], RequestQueue], engine: RequestQueue) -> None:
        super().__init__(view)
        self._view, self._jobs, self._engine = view, jobs, engine
        self._run: RunPattern | None = None
        self._query: FindWriter | None = None
        self._selection: tuple[PointedElement, QPoint] | None = None
        self._answer: WrittenElement | None = None
        self.card = WriterCard(view)
        view.element_selected.connect(self._find_writer)
        self.card.step_requested.connect(self._request_step)
        self.card.line.clicked.connect(self._request_line)
        self.card.closed.connect(self._clear_query)
        self.card.plane_requested.connect(lambda _: self._repeat_search())
        self.card.filter_requested.connect(self._repeat_search)

    def set_run(self, run: RunPattern | None) -> None:
        """Search this run from now on (None for no run), and hide the current answer."""
        self._run = run
        self.card.hide()
        self._clear_query()

    @property
    def under_way(self) -> bool:
        """Whether an answer is pending."""
        return self._query is not None and self._answer is None and self.card.isVisible()

    def stop(self) -> bool:
        """Cancel the search, or close the card; return whether either was open."""
        was_visible = self.card.isVisible()
        if self.under_way and self._jobs().has_request(_CHANNEL):
            self._jobs().stop()
        if was_visible:
            self.card.close_card()
        return was_visible

    def _clear_query(self) -> None:
        if self._query is not None:
            self._query = self._answer = None
            self._jobs().drop(_CHANNEL)

    def _repeat_search(self) -> None:
        """Search the same element in another color plane or in another filter's result."""
        if self._selection is not None:
            self._find_writer(*self._selection)

    def _find_writer(self, selected: PointedElement, position: QPoint) -> None:
        run = self._run if selected.run is None else selected.run
        if run is None:
            return
        filters = tuple(name for name, _ in selected.passes)
        element, colored = selected.element, len(selected.planes) == len(PLANES)
        if colored:  # the color plane chosen last
            element = selected.planes[PLANES.index(self.card.plane.chosen)]
        self.card.show_search(selected.title, position, has_planes=colored, filters=filters)
        if self.card.filters is not None:  # the filter chosen last
            run = dict(selected.passes)[self.card.filters.chosen]
        query = FindWriter(run, selected.output, element, self._engine.device)
        self._query, self._answer, self._selection = query, None, (selected, position)
        self._jobs().post(_CHANNEL, query, lambda event: self._on_answer(query, event), priority=2)

    def _on_answer(self, query: FindWriter, event: WrittenElement | Failure) -> None:
        if query is not self._query:
            return
        if isinstance(event, Failure):
            self.card.show_unknown(f"{event.message} {event.advice}".strip())
            return
        self._answer = event
        self.card.show_writer(event)

    def _request_line(self) -> None:
        if self._answer is not None and self._answer.writer is not None:
            self.line_requested.emit(self._answer.writer.file, self._answer.writer.line)

    def _request_step(self) -> None:
        if self._query is not None and self._answer is not None and self._answer.writer is not None:
            self.step_requested.emit(StepWriter(self._query, self._answer))
