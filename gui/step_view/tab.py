"""The Step tab of a page: records a run on a small input and plays it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QVBoxLayout, QWidget

from gpu.declaration.pattern import Inputs
from gpu.declaration.presentation import Kind
from gpu.engines.base import KERNELS
from gpu.errors import InputError
from gpu.messages.requests import Failure, StepPattern, StepWriter
from gpu.messages.timelines import RunTimelines
from gpu.warp import WARP
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.jobs import Jobs
from gui.qt.background import in_background
from gui.qt.later import after
from gui.step_view.beside.variants import VariantsView
from gui.step_view.dataflow.view import FlowView
from gui.step_view.export.files import Caption
from gui.step_view.export.menu import Exports, OwnPicture, ShownPicture
from gui.step_view.panes import (
    ARRAYS_LEGEND,
    FLOW_LEGEND,
    LAUNCHES_LEGEND,
    TILES_LEGEND,
    VARIABLES_LEGEND,
    WARPS_LEGEND,
    Panes,
)
from gui.step_view.pictures.orders import OrdersView
from gui.step_view.recording.models import Models
from gui.step_view.recording.settings_panel import SettingsPanel
from gui.step_view.recording.steppable import Chosen, RunRequest, Steppable, StepRequest
from gui.step_view.recording.stepper import Stepper
from gui.step_view.time.player import STEPS_A_SECOND, Player
from gui.step_view.time.prefetch import Prefetcher
from gui.step_view.time.snapshots import Snapshot, Snapshots, snapshots_of
from gui.step_view.warps.asked import Timed, TimelineJobs
from gui.step_view.warps.canvas import WarpCanvas
from gui.widgets.basic import ElidedButton, row
from gui.widgets.view_keys import ViewKeys

if TYPE_CHECKING:
    from gpu.stepping.symbols import Symbols

_SOON_MS = 150
_COMPARISONS = ("Two schedules", "Side by side")
"""Pictures that record the whole run again."""


class StepTab(QWidget):
    """The controller of a recording: it records, plays, and updates the panes.

    Parameters
    ----------
    stepped : Steppable
        The program to record first.
    sources : KernelSources
        The kernels' texts with edits.
    jobs : callable
        Returns the job queue of the simulator's process.
    timed : Timed or None
        Subject of the modeled timeline; None if there is no source to model.
    """

    failed = pyqtSignal(object)
    _symbols_ready = pyqtSignal(object, object)
    """The Models, and the Symbols of their cells."""

    def __init__(
        self, stepped: Steppable, sources: KernelSources, jobs: Callable[[], Jobs], timed: Timed | None = None
    ) -> None:
        super().__init__()
        self.setAccessibleName("Step")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.player = Player(self)
        self.source = SourcePane(sources)
        self.orders = OrdersView(jobs, f"orders {stepped.subject}")
        self.beside = VariantsView(jobs, f"beside {stepped.subject}")
        self.panes = Panes(self.player, self.source, self.orders, self.beside)
        self.settings = SettingsPanel(stepped, self)
        self.chosen = ElidedButton("Recording settings", "Size, input and schedule of the recording")
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.addWidget(self.panes)
        self.stepped = self._requested = stepped
        self.models: Models | None = None
        self.snapshots: Snapshots | None = None
        self.request: StepRequest | None = None
        self.sources = sources
        self.given: dict[Kind, Inputs] = {}
        """The parts of opened inputs that are small enough to step through, by kind."""
        self.followed: tuple[int, int] | None = None
        self._file = stepped.file
        self._recorded: Steppable | None = None
        self._kind_chosen: str | None = None
        self._stale = True
        self._write_to_show: StepWriter | None = None
        self.of_run = False
        """A block of the Run tab's run is played, or about to be, not a run with this tab's settings."""
        self._soon = after(_SOON_MS, self.record, self)
        self.prefetcher = Prefetcher(self)
        self._moment_before = 0
        self.stepper = Stepper(jobs, f"step {stepped.subject}", self)
        self.exports = Exports(self, self._export_state, self._timeline_picture)
        self.timelines = TimelineJobs(jobs, f"timeline {stepped.subject}", timed, self) if timed is not None else None
        self._keys = ViewKeys(
            self,
            {
                "Space": lambda: self._moving.toggle(),
                "Right": lambda: self._step(1),
                "Left": lambda: self._step(-1),
                "Shift+Right": lambda: self._moving.to_border(1),
                "Shift+Left": lambda: self._moving.to_border(-1),
                "PgDown": lambda: self._moving.to_phase(1),
                "PgUp": lambda: self._moving.to_phase(-1),
                "S": self.panes.symbols.click,
                "Home": lambda: self._moving.to_end(last=False),
                "End": lambda: self._moving.to_end(last=True),
            },
            once=("Space", "S"),
        )
        self._connect()

    def _connect(self) -> None:
        self.player.moved.connect(self._show_moment)
        self.panes.timeline.wanted.connect(self._jump)
        self.panes.flow.cell_clicked.connect(self._click_cell)
        self.panes.flow.thread_clicked.connect(self._follow)
        self.panes.flow.cleared.connect(self.clear_selection)
        self.panes.lanes.grid.thread_clicked.connect(self._follow)
        self.panes.memory.thread_clicked.connect(self._follow)
        self.panes.tiles.thread_clicked.connect(self._follow)
        self.panes.counters.n_changed.connect(self._show_textbook)
        self.orders.moment_wanted.connect(self._jump)
        self.orders.parameters = self.stepped.parameters
        self.orders.params_wanted.connect(lambda params: self.settings.form.change(**params))
        self.panes.launches.moment_wanted.connect(self._jump)
        for view in self.orders.views:
            view.thread_clicked.connect(self._follow)
        self.panes.kinds.group.buttonToggled.connect(self._choose_picture)
        self.source.line_clicked.connect(self._to_line)
        self.source.left.connect(self._leave_code)
        self.panes.zooms["−"].clicked.connect(lambda: self._zoomed.zoom(1 / 1.25))
        self.panes.zooms["+"].clicked.connect(lambda: self._zoomed.zoom(1.25))
        self.panes.zooms["fit"].clicked.connect(lambda: self._zoomed.fit())
        self.panes.warps.lines_changed.connect(self._light_lines)
        self.panes.kinds.buttons["Timeline"].setVisible(self.timelines is not None)
        if self.timelines is not None:
            self.timelines.found.connect(self._show_timelines)
            self.panes.warps.block_wanted.connect(self.timelines.choose_block)
            self.timelines.failed.connect(self._show_no_timeline)
            self.timelines.busy_changed.connect(self._show_modeling)
            self.panes.warps.launch_wanted.connect(self.timelines.ask)
            self.timelines.modeling.gpu_changed.connect(lambda _: self._ask_for_timeline())
        self.panes.symbols.toggled.connect(lambda _: self._show_symbols())
        self._symbols_ready.connect(self._take_symbols)
        self.chosen.clicked.connect(self.settings.toggle)
        self.panes.export.clicked.connect(lambda: self.exports.open(self.panes.export))
        self.exports.progressed.connect(lambda text: self.panes.state.say(text, "neutral"))
        self.settings.changed.connect(self.record_soon)
        self.stepper.loaded.connect(self._take)
        self.stepper.failed.connect(self._fail)
        self.stepper.busy_changed.connect(self._show_busy)
        self.sources.settled.connect(self._take_edit)
        self._describe_settings()

    def corner(self) -> QWidget:
        """Return the widget for the page's tab bar: the settings and export buttons."""
        widget = QWidget()
        widget.setLayout(row(self.chosen, self.panes.export))
        return widget

    # --- recording

    def show_steppable(self, stepped: Steppable) -> None:
        """Set the program to record, with the same parameters."""
        self.stepped = self.settings.stepped = stepped
        self._file = stepped.file
        self.source.show_source(stepped.file, stepped.kernel, stepped.library)
        self.record_soon()

    def show_input(self, kind: Kind, inputs: Inputs) -> None:
        """Set an opened input, cut to a small part, and record if the program takes this kind."""
        self.given[kind] = self.stepped.cut(inputs)
        if self._takes == kind:
            self.record_soon()

    def record_soon(self) -> None:
        """Record after a short delay, or when the tab becomes visible."""
        self._write_to_show, self.of_run = None, False
        self._ask_for_timeline()
        self._describe_settings()
        self._stale = True
        if self.isVisible():
            self._soon.start()

    def _take_edit(self, file: str) -> None:
        if file == self.stepped.file:
            self.record_soon()

    def record(self) -> None:
        """Record with the current settings."""
        self._soon.stop()
        self.of_run = False
        if library := self.stepped.library:
            self._stale = False
            self._show_message(f"{library} is a library: it has no source to step through. Choose another variant.")
            return
        if self._takes == "image" and "image" not in self.given:
            self._show_message("Open an image. A small part of it is recorded.")
            return
        self._stale = False
        try:
            request = self._make_request()
        except InputError as error:
            self._show_message(error.message)
            return
        self._requested = self.stepped
        self.stepper.record(request, self.stepped.text(request))

    @property
    def _takes(self) -> Kind | None:
        return self.stepped.takes(self.settings.params)

    @property
    def taken(self) -> Inputs:
        """Return the opened input to record; empty if the input is generated."""
        return self.given.get(self._takes, {}) if self._takes is not None else {}

    def rehearse(self) -> None:
        """Record once in advance, so that the simulator's process is warm when the tab is first shown."""
        steppable = not self.stepped.library and (self._takes is None or self.taken)
        if not self._stale or self.isVisible() or not steppable:
            return
        if isinstance(request := self._make_request(), RunRequest):
            self.stepper.rehearse(request)

    def _make_request(self) -> StepRequest:
        """Return the request for the current settings."""
        folder = self.stepper.jobs.folder
        inputs = {name: folder.adopt(folder.put(values)) for name, values in self.taken.items()}
        settings, sources = self.settings, self.sources.edits(self.stepped.file)
        chosen = Chosen(dict(settings.params), inputs, settings.input_seed, settings.schedule, sources)
        return self.stepped.request(chosen)

    def record_writer(self, request: StepWriter) -> None:
        """Record the block that wrote an element of a run, go to that write, and follow the writing thread.

        If that block is too large, record with this tab's settings, and go to the write of a similar element.
        """
        self._write_to_show = request
        self.of_run = request.written.steps_alone
        if self.of_run:
            self._soon.stop()
            self._stale = False
            self._requested = self.stepped
            self.stepper.record(request)
        else:
            self.record()

    @property
    def at_rest(self) -> bool:
        """Return whether the recording of the current settings is shown."""
        return not (self._soon.isActive() or self.stepper.busy or self._stale)

    def stop(self) -> bool:
        """Stop the current recording or modeling; return whether there was one."""
        if self.timelines is not None and self.timelines.stop():
            return True
        return self.stepper.stop() or self.orders.stepper.stop() or self.beside.stepper.stop()

    def _describe_settings(self) -> None:
        of_run = isinstance(self.request, StepWriter) and self.of_run
        self.chosen.say(_block_of(self.request) if of_run else self.settings.text, end="  ▾")

    def _show_busy(self, busy: bool) -> None:
        self.panes.state.say("recording…" if busy else "", "neutral")
        if busy and self.models is None:
            self.panes.message.setText("Recording…")

    def _take(self, request: StepRequest, models: Models) -> None:
        if self.stepped != self._requested:
            return  # the program changed while this was recorded
        moment = self.player.moment if self._recorded == self.stepped and self.models is not None else 0
        self._recorded = self.stepped
        self.request, self.models, self.followed = request, models, None
        self._describe_settings()
        self.snapshots = snapshots_of(models)
        recording = models.recording
        if not recording.moments:
            cause = "No thread executes a statement" if recording.launches else "Nothing was launched"
            empty = f"{cause}, so there is nothing to step through."
            self._show_message(recording.failure or recording.stopped or empty)
            return
        self.panes.memory.open(models)
        self.panes.launches.open(models.grids)
        self.panes.kinds.buttons["Launches"].setVisible(models.launching)
        self.panes.kinds.buttons["Tiles"].setVisible(models.multiplying_tiles)
        self.panes.kinds.buttons["Side by side"].setVisible(bool(self.stepped.others))
        is_missing = {"Launches": not models.launching, "Tiles": not models.multiplying_tiles}
        if self._kind_chosen is None or is_missing.get(self._kind_chosen, False):
            self.panes.kinds.choose("Launches" if models.launching else "Arrays" if models.two_dimensional else "Flow")
            self._kind_chosen = None
        self._turn_to_picture()
        self.panes.flow.open(models.layout, models.warps, several_blocks=models.several_blocks)
        self.panes.flow.show_races(models.racing_cells)
        self._show_symbols()
        findings = [(moment, finding.message) for moment, finding in recording.findings]
        names = [launch.trace.kernel for launch in recording.launches]
        self.panes.timeline.open(models.segments, findings, names, models.phases.stretches)
        self.panes.reserve_phases(models.phases.names)
        edited = isinstance(request, StepPattern) and bool(request.sources)
        self.panes.verdict.show_recording(recording, edited=edited)
        self._mark_findings()
        self.panes.lanes.show_pictures(banks="shared" in models.spaces, addresses=models.addresses)
        self._show_totals(request, models)
        borders = [segment.first for segment in models.segments]
        self.player.open(recording.moments, borders, moment, models.phases.starts)
        if models.segments and not moment:
            self.player.go(0)
        write_to_show, self._write_to_show = self._write_to_show, None
        if write_to_show is not None:
            self._go_to_write(write_to_show, models)

    def _go_to_write(self, request: StepWriter, models: Models) -> None:
        """Go to the write of an element, or of a similar one in a smaller run, and follow its thread; or to the end."""
        recording, written = models.recording, request.written
        if self.panes.kinds.chosen in _COMPARISONS:
            self.panes.kinds.choose("Flow")
        index = written.index
        if not isinstance(self.request, StepWriter):
            index = recording.like_element(written.array, written.index, written.shape)
            self.panes.state.say("a smaller run", "neutral", "The block itself is too large to step through")
        moment = recording.moment_of_write(written.array, index)
        if moment is None:
            self.player.go(recording.moments)
            return
        launch, event = recording.at(moment - 1)
        writer = launch.trace.writer(written.array, index, event + 1)
        assert writer is not None
        self.followed = writer.block, writer.thread
        self.panes.flow.follow_thread(self.followed)
        self.player.go(moment)
        self._show_moment(moment)  # if the moment has not changed, but the followed thread has
        cell = models.layout.dataflow.cell_at(moment, written.array, index, block=writer.block)
        if cell is not None:
            self.panes.flow.select(cell)

    def _show_totals(self, request: StepRequest, models: Models) -> None:
        """Show the total counts, with the textbook's and the efficiency."""
        self.panes.counters.show_total(models.tally.at(models.recording.moments), self.stepped.figures(request, None))
        self._show_textbook()

    def _show_textbook(self) -> None:
        """Show the textbook's counts for the entered number of elements."""
        if self.request is not None:
            self.panes.counters.show_textbook(self.stepped.figures(self.request, self.panes.counters.n_typed))

    def _choose_picture(self, _: Any, on: bool) -> None:
        if on:
            self._kind_chosen = self.panes.kinds.chosen
            if self.models is not None or self.shows_warps:
                self._show_picture()
            else:
                self.panes.show_cycles(False)
                self.panes.pictures.setCurrentWidget(self.panes.message)

    @property
    def shows_flow(self) -> bool:
        """Return whether the dataflow is selected."""
        return self.panes.kinds.chosen == "Flow"

    def _turn_to_picture(self) -> None:
        """Switch to the selected picture, without updating its moment."""
        view, legend = {
            "Flow": (self.panes.flow, FLOW_LEGEND),
            "Arrays": (self.panes.memory, ARRAYS_LEGEND),
            "Variables": (self.panes.warp, VARIABLES_LEGEND),
            "Tiles": (self.panes.tiles, TILES_LEGEND),
            "Timeline": (self.panes.warps, WARPS_LEGEND),
            "Launches": (self.panes.launches, LAUNCHES_LEGEND),
            "Two schedules": (self.orders, FLOW_LEGEND),
            "Side by side": (self.beside, FLOW_LEGEND),
        }[self.panes.kinds.chosen]
        self.panes.pictures.setCurrentWidget(view)
        self.panes.legend.say(legend)
        models = self.models if view is self.orders else None
        if models is not None and models is not self.orders.models[0] and isinstance(self.request, RunRequest):
            self.orders.show_first(self.request, models)
        # The side-by-side view has lines, lanes and counts of both variants, so the cards of one are hidden.
        self.panes.right.setVisible(view is not self.beside)
        models = self.models if view is self.beside else None
        if models is not None and models is not self.beside.models[0] and isinstance(self.request, RunRequest):
            self.beside.show_first(self.stepped.title, self.request, models, self.stepped.others)
        self.panes.symbols.setVisible(self.shows_flow)
        for each in self.panes.zooms.values():
            each.setVisible(self.shows_flow or self.shows_warps)
        self.panes.show_cycles(self.shows_warps)
        if self.shows_warps:
            if not self.panes.kinds.isAncestorOf(self.focusWidget()):
                self.panes.warps.setFocus()
            self._show_machine_code()
            self._ask_for_timeline()

    # --- the timeline of warps, which has separate time

    @property
    def shows_warps(self) -> bool:
        """Return whether the timeline of warps is selected."""
        return self.panes.kinds.chosen == "Timeline"

    @property
    def _zoomed(self) -> FlowView | WarpCanvas:
        return self.panes.warps.canvas if self.shows_warps else self.panes.flow

    @property
    def _moving(self) -> Player:
        """Return the player that the keys control."""
        return self.panes.warps.player if self.shows_warps else self.player

    def _step(self, way: int) -> None:
        if self.shows_warps:
            self.panes.warps.step(way)
        else:
            self.player.step(way)

    def _ask_for_timeline(self) -> None:
        """Request the timeline for the current settings, if it is visible."""
        if self.timelines is not None and self.shows_warps and self.isVisible():
            self.source.mark_line(None)
            self._show_file(self.stepped.file, self.stepped.kernel, None)
            self.timelines.ask()
            self.panes.warps.offer_blocks(*self.timelines.blocks, self.timelines.threads)

    def _show_timelines(self, run: RunTimelines) -> None:
        self.panes.warps.show_run(run)
        self.panes.show_cycles(self.shows_warps)
        self._show_machine_code()

    def _show_machine_code(self) -> None:
        """Show the machine instructions of each line while the timeline is visible."""
        run = self.panes.warps.run if self.shows_warps else None
        self.source.show_machine_code({} if run is None else run.lines.get(Path(self.stepped.file).name, {}))

    def _timeline_picture(self) -> OwnPicture | None:
        """Return the timeline as a picture to export, if it is shown; else None."""
        warps = self.panes.warps
        if not self.shows_warps or warps.run is None:
            return None
        return OwnPicture(f"{self.stepped.name}-timeline", warps.figure_size, warps.paint_figure)

    def _show_no_timeline(self, failure: Failure) -> None:
        cancelled = failure.kind == "cancelled"
        self.panes.warps.say("Stopped." if cancelled else f"{failure.message}\n{failure.advice}".strip())
        self._light_lines(frozenset(), frozenset(), None)
        self._show_machine_code()

    def _show_modeling(self, busy: bool) -> None:
        self.panes.state.say("modeling…" if busy else "", "neutral")
        if busy and self.panes.warps.run is None:
            self.panes.warps.say("Modeling…")

    def _light_lines(self, issuing: frozenset[int], waiting: frozenset[int], picked: int | None) -> None:
        """Highlight the current lines of warps, if the timeline is visible."""
        if self.shows_warps:
            self.source.light_lines(issuing, waiting, picked)

    def _show_symbols(self) -> None:
        """Show symbols in the cells, once they are computed, or values."""
        models = self.models
        if models is None or not self.panes.symbols.isChecked():
            if models is not None:
                self.panes.flow.show_layout(models.layout)
            return

        def find() -> None:
            from gpu.stepping.symbols import Symbols

            symbols = Symbols(models.layout.dataflow).complete()
            with suppress(RuntimeError):  # the page may have been deleted in the meantime
                self._symbols_ready.emit(models, symbols)

        in_background(find)

    def _take_symbols(self, models: Models, symbols: Symbols) -> None:
        if models is self.models and self.panes.symbols.isChecked():
            self.panes.flow.show_layout(models.layout.with_symbols(symbols))

    def _show_picture(self) -> None:
        """Show the selected picture at the current moment."""
        if not self.shows_warps:
            self.source.light_lines(frozenset(), frozenset())
            self._show_machine_code()
            self._show_moment(self.player.moment)
        if self.shows_flow:
            self.panes.flow.show_moment(self.player.moment)
        self._turn_to_picture()
        view = self.panes.pictures.currentWidget()
        if view is self.orders:
            self.orders.show_moment(self.player.moment)
        elif view is self.beside:
            self.beside.show_moment(self.player.moment)
        elif view is self.panes.warp:
            self._show_warp(self.player.moment, self.snapshot(self.player.moment))
        elif view is self.panes.tiles:
            self._show_tiles(self.player.moment, self.snapshot(self.player.moment))

    def _export_state(self) -> ShownPicture | None:
        """Return the tab's state for exports; None while nothing is recorded."""
        models, snapshots, player = self.models, self.snapshots, self.player
        if models is None or snapshots is None:
            return None
        caption = Caption(self.stepped.title, self.settings.text, models.phases.at(player.moment))
        return ShownPicture(
            self.stepped.name, caption, self.stepper.path, models, snapshots,
            self.panes.pictures.currentWidget() or self, player.moment, player.end, STEPS_A_SECOND * player.speed,
            self.followed, self.stepped.text(self.request) if self.request is not None else None,
        )  # fmt: skip

    def _fail(self, failure: Failure) -> None:
        if failure.kind == "cancelled":
            self._stale = True
            if self.models is None:
                self._show_message("Stopped. F5 records again.")
            return
        self._show_message(f"{failure.message}\n{failure.advice}".strip())
        self.failed.emit(failure)

    def _show_message(self, text: str) -> None:
        self.models = None
        self.panes.message.setText(text)
        if not self.shows_warps:
            self.panes.pictures.setCurrentWidget(self.panes.message)
        self.panes.timeline.open((), (), ())
        self.player.open(0, ())
        self.panes.lanes.show_lanes(None, 0, 1, 0, -1)
        self.panes.lanes.show_traffic(None)
        self.panes.statement.say("")
        self.panes.phase.say("")
        self.panes.variables.say("")
        self.panes.counters.clear()
        self.panes.verdict.clear()
        self.source.mark_line(None)
        self.source.set_markers({})

    # --- moving

    def _jump(self, moment: int) -> None:
        self.player.pause()
        self.player.go(moment)

    def _to_line(self, line: int) -> None:
        if self.models is not None:
            moment = self.models.next_execution(Path(self._file).name, line, self.player.moment)
            if moment is not None:
                self._jump(moment)

    def _leave_code(self) -> None:
        """Move the keyboard focus from the source to the picture."""
        (self.panes.pictures.currentWidget() or self).setFocus()

    def _show_moment(self, moment: int) -> None:
        models = self.models
        if models is None or not models.recording.moments or self.shows_warps:
            return
        if self.shows_flow:
            self.panes.flow.show_moment(moment)
        self.panes.launches.show_moment(moment)
        self.panes.timeline.show_moment(moment)
        for each in (self.orders, self.beside):
            if self.panes.pictures.currentWidget() is each:
                each.show_moment(moment)
        event = max(moment - 1, 0)
        file = models.files[event] if moment else self.stepped.file
        # Statements of the simulator's own headers have no source to show.
        has_text = bool(models.recording.text(file))
        line = int(models.lines[event]) if moment and has_text else None
        if has_text or not moment:
            self._show_file(file, models.recording.at(event)[0].trace.kernel, line)
        self.source.mark_line(line)
        self._show_snapshot(moment)
        self.panes.counters.show_counts(models.tally.at(moment), models.tally.step_at(moment))
        self.prefetcher.start(self._prefetch(moment, -1 if moment < self._moment_before else 1))
        self._moment_before = moment

    def _show_file(self, file: str, kernel: str, line: int | None) -> None:
        """Show the file of the last statement, such as a header, at the current kernel."""
        name = self._document_name(file)
        if (name, kernel) != (self._file, self.source.code.kernel):
            self._file = name
            self.source.show_kernel(name, kernel, line)
            self._mark_findings()

    def _document_name(self, file: str) -> str:
        """Return the document name of a recording's file."""
        name, subject_file = Path(file).name, self.stepped.file
        return subject_file if name == Path(subject_file).name else name if (KERNELS / name).is_file() else file

    def _mark_findings(self) -> None:
        """Mark the lines with findings in the visible file."""
        marks: dict[int, str] = {}
        if self.models is not None:
            for moment, finding in self.models.recording.findings:
                if Path(self.models.files[moment]).name == Path(self._file).name:
                    marks.setdefault(int(self.models.lines[moment]), finding.message)
        self.source.set_markers(marks)

    def _prefetch(self, moment: int, direction: int) -> Iterator[object]:
        """Prepare the moments that keys can reach next: one step in the last direction, and the nearest barriers.

        Only the dataflow is also painted in advance; other pictures would not be faster.
        """
        models, player = self.models, self.player
        if models is None or not self.isVisible():
            return
        for next_moment in (moment + direction, player.border(direction), player.border(-direction)):
            if 0 <= next_moment <= player.end:
                yield self.snapshot(next_moment)
                while self.shows_flow and not self.panes.flow.prepare(next_moment):
                    yield None
        files = [self._document_name(file) for file in dict.fromkeys(models.files) if models.recording.text(file)]
        while not self.source.prepare(tuple(files)):
            yield None

    def snapshot(self, moment: int) -> Snapshot:
        """Return the state at a moment for the followed thread, or else for an active one."""
        assert self.snapshots is not None
        return self.snapshots(moment, self.followed)

    def _show_snapshot(self, moment: int) -> None:
        now = self.snapshot(moment)
        self.panes.lanes.show_lanes(now.lanes, now.block, now.blocks, now.threads, now.thread if self.followed else -1)
        self.panes.lanes.show_traffic(now.traffic)
        self.panes.memory.show_moment(moment, now.block, self.followed)
        if self.panes.pictures.currentWidget() is self.panes.warp:
            self._show_warp(moment, now)
        elif self.panes.pictures.currentWidget() is self.panes.tiles:
            self._show_tiles(moment, now)
        self.panes.statement.say(now.words)
        self.panes.phase.say(now.phase)
        self.panes.variables.say(now.variables)

    def _show_warp(self, moment: int, now: Snapshot) -> None:
        """Show the variables of the current warp."""
        from gpu.stepping.moment.lanes import LaneState
        from gpu.stepping.moment.warp_variables import warp_variables

        assert self.models is not None
        warp = now.thread // WARP
        active = now.lanes.state[now.block, warp] == LaneState.ACTIVE
        variables = warp_variables(self.models.recording, moment, now.block, warp)
        self.panes.warp.show_warp(variables, active.tolist(), now.block * now.lanes.state.shape[1] + warp)

    def _show_tiles(self, moment: int, now: Snapshot) -> None:
        """Show which lanes hold the elements of the tiles that the statement multiplies, loads or stores."""
        from gpu.stepping.moment.tiles import tiles_at

        assert self.models is not None
        warps = now.lanes.state.shape[1]
        product = tiles_at(self.models.recording, moment)
        self.panes.tiles.show_tiles(product, now.block, now.thread, now.block * warps + now.thread // WARP)

    # --- selecting

    def _click_cell(self, row: int, cell: int) -> None:
        self.panes.flow.select(None if self.panes.flow.marks.selected == (row, cell) else (row, cell))

    def _follow(self, block: int, thread: int) -> None:
        self.followed = None if self.followed == (block, thread) else (block, thread)
        self.panes.flow.follow_thread(self.followed)
        self._show_moment(self.player.moment)

    def clear_selection(self) -> None:
        """Close the settings or, if they are closed, clear the selection and the followed thread."""
        if self.settings.isVisible():
            self.settings.hide()
            return
        self.panes.warps.unpick()
        self.panes.flow.select(None)
        self.followed = None
        self.panes.flow.follow_thread(None)
        self._show_moment(self.player.moment)

    @property
    def anything_chosen(self) -> bool:
        """Return whether an element is selected, a thread is followed, or the settings are open."""
        chosen = (self.panes.flow.marks.selected, self.followed, self.panes.warps.canvas.picked)
        return any(each is not None for each in chosen) or self.settings.isVisible()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if self.settings.isVisible():
            self.settings.place()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        (self.panes.warps if self.shows_warps else self.panes.flow).setFocus()
        self._ask_for_timeline()
        if self._stale:
            self.record()

    def close_down(self) -> None:
        """Stop playback and exports before the window closes."""
        self.player.pause()
        self.panes.warps.player.pause()
        self.exports.cancel()

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self.player.pause()


def _block_of(request: StepRequest | None) -> str:
    """Return a line about the block of a run that was recorded."""
    assert isinstance(request, StepWriter)
    writer = request.writer
    blocks = writer.grid[0] * writer.grid[1] * writer.grid[2]
    return f"From Run: {writer.kernel}, block {writer.block_number} of {blocks}"
