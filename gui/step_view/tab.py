"""The Step tab of a page: records a run on a small input and plays it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QApplication, QWidget

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.base.thread_names import format_index
from gpu.base.warp import WARP
from gpu.declaration.pattern import Inputs
from gpu.declaration.presentation import InputKind
from gpu.messages.events import Failure
from gpu.messages.runs.recordings import StepPattern
from gpu.messages.runs.writer import StepWriter
from gpu.messages.timelines import RunTimelines
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.request_queue import RequestQueue
from gui.qt.background import run_in_background
from gui.qt.timers import create_single_shot_timer
from gui.step_view.dataflow.view import FlowView
from gui.step_view.export.files import Caption
from gui.step_view.export.menu import Exports, ExportState, StaticPicture
from gui.step_view.panes import (
    ARRAYS_LEGEND,
    FLOW_LEGEND,
    LAUNCHES_LEGEND,
    TILES_LEGEND,
    VARIABLES_LEGEND,
    WARPS_LEGEND,
    Panes,
)
from gui.step_view.pictures.schedules import SchedulesView
from gui.step_view.recording.finding_pictures import build_finding_pictures
from gui.step_view.recording.models import RecordingModels
from gui.step_view.recording.settings_panel import SettingsPanel
from gui.step_view.recording.steppable import RunRequest, Steppable, StepRequest, StepSettings
from gui.step_view.recording.stepper import Stepper
from gui.step_view.side_by_side.variants import VariantsView
from gui.step_view.time.player import STEPS_PER_SECOND, Player
from gui.step_view.time.prefetcher import Prefetcher
from gui.step_view.time.snapshots import Snapshot, Snapshots, make_snapshots
from gui.step_view.warps.canvas import WarpCanvas
from gui.step_view.warps.timeline_requests import TimelineJobs, TimelineSubject
from gui.widgets.basic import ElidedButton, column, row
from gui.widgets.view_keys import ViewKeys, accepts_text

if TYPE_CHECKING:
    from gpu.stepping.symbols import Symbols

_RECORD_DELAY_MS = 150
_COMPARISONS = ("Two schedules", "Side by side")
"""Pictures that record the whole run again."""


class StepTab(QWidget):
    """The controller of a recording: it records, plays, and updates the panes.

    Parameters
    ----------
    steppable : Steppable
        The program to record first.
    sources : KernelSources
        The kernels' texts with edits.
    jobs : callable
        Returns the job queue of the simulator's process.
    timeline_subject : TimelineSubject or None
        Subject of the modeled timeline; None if there is no source to model.
    """

    failed = pyqtSignal(object)
    _symbols_ready = pyqtSignal(object, object)
    """The Models, and the Symbols of their cells."""

    def __init__(
        self,
        steppable: Steppable,
        sources: KernelSources,
        jobs: Callable[[], RequestQueue],
        timeline_subject: TimelineSubject | None = None,
    ) -> None:
        super().__init__()
        self.setAccessibleName("Step")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.player = Player(self)
        self.source = SourcePane(sources)
        self.schedules_view = SchedulesView(jobs, f"orders {steppable.subject}")
        self.variants_view = VariantsView(jobs, f"beside {steppable.subject}")
        self.panes = Panes(self.player, self.source, self.schedules_view, self.variants_view)
        self.settings = SettingsPanel(steppable, self)
        self.settings_button = ElidedButton("Recording settings", "Size, input and schedule of the recording")
        self.setLayout(column(self.panes))
        self.steppable = self._requested_steppable = steppable
        self.models: RecordingModels | None = None
        self.snapshots: Snapshots | None = None
        self.request: StepRequest | None = None
        self.sources = sources
        self.inputs_by_kind: dict[InputKind, Inputs] = {}
        """The parts of opened inputs that are small enough to step through, by kind."""
        self.followed: tuple[int, int] | None = None
        self._file = steppable.file
        self._recorded_steppable: Steppable | None = None
        self._selected_picture: str | None = None
        self._stale = True
        self._write_request: StepWriter | None = None
        self.first_moment: int | None = None
        """The moment at which the next recording opens, instead of the current one or its first finding."""
        self.plays_run_block = False
        """A block of the Run tab's run is played, or about to be, not a run with this tab's settings."""
        self._record_timer = create_single_shot_timer(_RECORD_DELAY_MS, self.record, self)
        self.prefetcher = Prefetcher(self)
        self._last_moment = 0
        self.stepper = Stepper(jobs, f"step {steppable.subject}", self)
        self.exports = Exports(self, self._export_state, self._timeline_picture)
        self.timelines = (
            TimelineJobs(jobs, f"timeline {steppable.subject}", timeline_subject, self)
            if timeline_subject is not None
            else None
        )
        self.keys = self._create_keys()
        self._connect()

    def _create_keys(self) -> ViewKeys:
        return ViewKeys(
            self,
            {
                "Space": lambda: self._active_player.toggle(),
                "Right": lambda: self._step(1),
                "Left": lambda: self._step(-1),
                "Shift+Right": lambda: self._active_player.go_to_border(1),
                "Shift+Left": lambda: self._active_player.go_to_border(-1),
                "PgDown": lambda: self._active_player.go_to_phase(1),
                "PgUp": lambda: self._active_player.go_to_phase(-1),
                "S": self.panes.symbols.click,
                "U": self._turn_selection,
                "Home": lambda: self._active_player.go_to_end(last=False),
                "End": lambda: self._active_player.go_to_end(last=True),
            },
            non_repeating=("Space", "S", "U"),
        )

    def _connect(self) -> None:
        self.player.moved.connect(self._show_moment)
        self.panes.timeline.moment_requested.connect(self._jump_to_moment)
        self.panes.flow.cell_clicked.connect(lambda row, cell: self._click_cell(row, cell, forward=False))
        self.panes.flow.uses_requested.connect(lambda row, cell: self._click_cell(row, cell, forward=True))
        self.panes.flow.thread_clicked.connect(self._toggle_followed_thread)
        self.panes.flow.cleared.connect(self.clear_selection)
        self.panes.lanes.grid.thread_clicked.connect(self._toggle_followed_thread)
        self.panes.arrays.thread_clicked.connect(self._toggle_followed_thread)
        self.panes.tiles.thread_clicked.connect(self._toggle_followed_thread)
        self.panes.counters.n_changed.connect(self._show_textbook)
        self.schedules_view.moment_requested.connect(self._jump_to_moment)
        self.schedules_view.parameters = self.steppable.parameters
        self.schedules_view.params_requested.connect(lambda params: self.settings.form.change_values(**params))
        self.panes.launches.moment_requested.connect(self._jump_to_moment)
        for view in self.schedules_view.views:
            view.thread_clicked.connect(self._toggle_followed_thread)
        self.panes.kinds.group.buttonToggled.connect(self._choose_picture)
        self.source.line_clicked.connect(self._go_to_line)
        self.source.exited.connect(self._focus_picture)
        self.panes.zoom_buttons["−"].clicked.connect(lambda: self._zoom_target.zoom(1 / 1.25))
        self.panes.zoom_buttons["+"].clicked.connect(lambda: self._zoom_target.zoom(1.25))
        self.panes.zoom_buttons["fit"].clicked.connect(lambda: self._zoom_target.fit())
        self.panes.warps.lines_changed.connect(self._highlight_lines)
        self.panes.kinds.buttons["Timeline"].setVisible(self.timelines is not None)
        if self.timelines is not None:
            self.timelines.timelines_ready.connect(self._show_timelines)
            self.panes.warps.block_size_requested.connect(self.timelines.select_block_size)
            self.timelines.failed.connect(self._show_no_timeline)
            self.timelines.busy_changed.connect(self._show_modeling)
            self.panes.warps.launch_requested.connect(self.timelines.request_timelines)
            self.timelines.modeling.gpu_changed.connect(self._request_timeline)
        self.panes.symbols.toggled.connect(lambda _: self._show_symbols())
        self._symbols_ready.connect(self._receive_symbols)
        self.settings_button.clicked.connect(self.settings.toggle)
        self.panes.export.clicked.connect(lambda: self.exports.open(self.panes.export))
        self.exports.progressed.connect(lambda text: self.panes.state.show_text(text, "neutral"))
        self.settings.changed.connect(self.record_soon)
        self.settings.close_button.clicked.connect(self._focus_picture)
        self.stepper.loaded.connect(self._receive_recording)
        self.stepper.failed.connect(self._show_failure)
        self.stepper.busy_changed.connect(self._show_busy)
        self.sources.settled.connect(self._handle_source_edit)
        self._describe_settings()

    def corner(self) -> QWidget:
        """Return the widget for the page's tab bar: the settings and export buttons."""
        widget = QWidget()
        widget.setLayout(row(self.settings_button, self.panes.export))
        return widget

    # --- recording

    def show_steppable(self, steppable: Steppable) -> None:
        """Set the program to record, with the same parameters."""
        self.steppable = self.settings.steppable = steppable
        self._file = steppable.file
        self.source.show_source(steppable.file, steppable.kernel, steppable.library)
        self.record_soon()

    def show_input(self, kind: InputKind, inputs: Inputs) -> None:
        """Set an opened input, cut to a small part, and record if the program takes this kind."""
        self.inputs_by_kind[kind] = self.steppable.cut_input(inputs)
        if self._input_kind == kind:
            self.record_soon()

    def record_soon(self) -> None:
        """Record after a short delay, or when the tab becomes visible."""
        self._write_request, self.plays_run_block = None, False
        self._request_timeline()
        self._describe_settings()
        self._stale = True
        if self.isVisible():
            self._record_timer.start()

    def _handle_source_edit(self, file: str) -> None:
        if file == self.steppable.file:
            self.record_soon()

    def record(self) -> None:
        """Record with the current settings."""
        self._record_timer.stop()
        self.plays_run_block = False
        if library := self.steppable.library:
            self._stale = False
            self._show_message(f"{library} is a library: it has no source to step through. Choose another variant.")
            return
        if self._input_kind == "image" and "image" not in self.inputs_by_kind:
            self._show_message("Open an image. A small part of it is recorded.")
            return
        self._stale = False
        try:
            request = self._make_request()
        except InputError as error:
            self._show_message(error.message)
            return
        self._requested_steppable = self.steppable
        # The picture of the moment before would be prepared for keys that no longer reach it.
        self.prefetcher.stop()
        moment = self.player.moment if self.first_moment is None else self.first_moment
        self.stepper.record(request, self.steppable.text(request), moment)

    @property
    def _input_kind(self) -> InputKind | None:
        return self.steppable.input_kind(self.settings.params)

    @property
    def current_input(self) -> Inputs:
        """Return the opened input to record; empty if the input is generated."""
        return self.inputs_by_kind.get(self._input_kind, {}) if self._input_kind is not None else {}

    def warm_up(self) -> None:
        """Record once in advance, so that the simulator's process is warm when the tab is first shown."""
        steppable = not self.steppable.library and (self._input_kind is None or self.current_input)
        if not self._stale or self.isVisible() or not steppable:
            return
        if isinstance(request := self._make_request(), RunRequest):
            self.stepper.warm_up(request)

    def _make_request(self) -> StepRequest:
        """Return the request for the current settings."""
        folder = self.stepper.jobs.folder
        inputs = {name: folder.adopt(folder.put(values)) for name, values in self.current_input.items()}
        settings, sources = self.settings, self.sources.find_edits(self.steppable.file)
        chosen = StepSettings(dict(settings.params), inputs, settings.input_seed, settings.schedule, sources)
        return self.steppable.make_request(chosen)

    def record_writer(self, request: StepWriter) -> None:
        """Record the block that wrote an element of a run, go to that write, and follow the writing thread.

        If that block is too large, record with this tab's settings, and go to the write of a similar element.
        """
        self._write_request = request
        self.plays_run_block = request.written_element.is_steppable
        if self.plays_run_block:
            self._record_timer.stop()
            self._stale = False
            self._requested_steppable = self.steppable
            self.stepper.record(request)
        else:
            self.record()

    @property
    def is_up_to_date(self) -> bool:
        """Return whether the recording of the current settings is shown."""
        return not (self._record_timer.isActive() or self.stepper.busy or self._stale)

    def stop(self) -> bool:
        """Stop the current recording or modeling; return whether there was one."""
        if self.timelines is not None and self.timelines.stop():
            return True
        return self.stepper.stop() or self.schedules_view.stepper.stop() or self.variants_view.stepper.stop()

    def _describe_settings(self) -> None:
        of_run = isinstance(self.request, StepWriter) and self.plays_run_block
        self.settings_button.show_text(_describe_block(self.request) if of_run else self.settings.text, suffix="  ▾")

    def _show_busy(self, busy: bool) -> None:
        self.panes.state.show_text("recording…" if busy else "", "neutral")
        if busy and self.models is None:
            self.panes.message.setText("Recording…")

    def _receive_recording(self, request: StepRequest, models: RecordingModels) -> None:
        if self.steppable != self._requested_steppable:
            return  # the program changed while this was recorded
        before = self.models if self._recorded_steppable == self.steppable else None
        moment = self.player.moment if before is not None else 0
        if self.player.moment > models.recording.event_count:
            # No picture may show a step of the old recording in the new one.
            self.models = None
            self.player.open(0, ())
        self._recorded_steppable = self.steppable
        self.request, self.models, self.followed = request, models, None
        self._describe_settings()
        self.snapshots = make_snapshots(models)
        recording = models.recording
        if not recording.event_count:
            cause = "No thread executes a statement" if recording.launches else "Nothing was launched"
            empty = f"{cause}, so there is nothing to step through."
            self._show_message(recording.failure or recording.stopped or empty)
            return
        self.panes.arrays.open(models)
        self.panes.launches.open(models.data.grids)
        self.panes.kinds.buttons["Launches"].setVisible(models.has_child_launches)
        self.panes.kinds.buttons["Tiles"].setVisible(models.has_tile_products)
        self.panes.kinds.buttons["Side by side"].setVisible(bool(self.steppable.other_variants))
        is_missing = {"Launches": not models.has_child_launches, "Tiles": not models.has_tile_products}
        if self._selected_picture is None or is_missing.get(self._selected_picture, False):
            shows_arrays = models.two_dimensional or models.has_outside_elements
            self.panes.kinds.choose("Launches" if models.has_child_launches else "Arrays" if shows_arrays else "Flow")
            self._selected_picture = None
        self._select_picture()
        self.panes.flow.open(models.layout)
        pictures = build_finding_pictures(models)
        self.panes.flow.show_findings(models.finding_cells, pictures)
        self.panes.arrays.show_findings(pictures)
        if self.panes.symbols.isChecked():
            self._show_symbols()
        findings = [(moment, finding.message) for moment, finding in recording.findings]
        names = [launch.trace.kernel for launch in recording.launches]
        self.panes.timeline.open(models.data.segments, findings, names, models.data.phases.intervals)
        self.panes.reserve_phases(models.data.phases.names)
        edited = isinstance(request, StepPattern) and bool(request.sources)
        self.panes.verdict.show_recording(recording, edited=edited)
        self._mark_findings()
        self.panes.lanes.show_pictures(banks="shared" in models.spaces, addresses=models.data.max_address_count)
        self._show_totals(request, models)
        borders = [segment.first for segment in models.data.segments]
        write_to_show, self._write_request = self._write_request, None
        if write_to_show is None and models.data.findings and _is_finding_new(models, before, moment):
            found = models.data.findings[0]
            self.followed, moment = found.thread, found.moment + 1
            self.panes.flow.follow_thread(self.followed)
        if self.first_moment is not None:
            moment, self.first_moment = self.first_moment, None
        self.player.open(recording.event_count, borders, moment, models.data.phases.starts)
        if write_to_show is not None:
            self._go_to_write(write_to_show, models)

    def _go_to_write(self, request: StepWriter, models: RecordingModels) -> None:
        """Go to the write of an element, or of a similar one in a smaller run, and follow its thread; or to the end."""
        recording, written = models.recording, request.written_element
        if self.panes.kinds.chosen in _COMPARISONS:
            self.panes.kinds.choose("Flow")
        index = written.index
        if not isinstance(self.request, StepWriter):
            index = recording.map_element(written.array, written.index, written.shape)
            self.panes.state.show_text("a smaller run", "neutral", "The block itself is too large to step through")
        moment = recording.find_write_moment(written.array, index)
        if moment is None:
            self.player.go_to(recording.event_count)
            return
        launch, event = recording.locate_moment(moment - 1)
        writer = launch.trace.find_writer(written.array, index, event + 1)
        assert writer is not None
        self.followed = writer.block, writer.thread
        self.panes.flow.follow_thread(self.followed)
        self.player.go_to(moment)
        self._show_moment(moment)  # if the moment has not changed, but the followed thread has
        cell = models.layout.dataflow.cell_at(moment, written.array, index, block=writer.block)
        if cell is not None:
            self.panes.flow.select(cell)

    def _show_totals(self, request: StepRequest, models: RecordingModels) -> None:
        """Show the total counts, with the textbook's and the efficiency."""
        self.panes.counters.show_total(
            models.data.tally.counts_at(models.recording.event_count), self.steppable.expected_counts(request, None)
        )
        self._show_textbook()

    def _show_textbook(self) -> None:
        """Show the textbook's counts for the entered number of elements."""
        if self.request is not None:
            self.panes.counters.show_textbook(
                self.steppable.expected_counts(self.request, self.panes.counters.entered_n)
            )

    def _choose_picture(self, _: Any, on: bool) -> None:
        if on:
            self._selected_picture = self.panes.kinds.chosen
            if self.models is not None or self.shows_warps:
                self._show_picture()
            else:
                self.panes.show_cycles(False)
                self.panes.pictures.setCurrentWidget(self.panes.message)

    def choose_picture(self, name: str) -> None:
        """Show a picture by its name; "" shows the recording's default from the next recording on."""
        if not name:
            self._selected_picture = None
        elif self.panes.kinds.chosen != name:
            self.panes.kinds.choose(name)

    @property
    def shows_flow(self) -> bool:
        """Return whether the dataflow is selected."""
        return self.panes.kinds.chosen == "Flow"

    def _select_picture(self) -> None:
        """Switch to the selected picture, without updating its moment."""
        view, legend = {
            "Flow": (self.panes.flow, FLOW_LEGEND),
            "Arrays": (self.panes.arrays, ARRAYS_LEGEND),
            "Variables": (self.panes.variables_view, VARIABLES_LEGEND),
            "Tiles": (self.panes.tiles, TILES_LEGEND),
            "Timeline": (self.panes.warps, WARPS_LEGEND),
            "Launches": (self.panes.launches, LAUNCHES_LEGEND),
            "Two schedules": (self.schedules_view, FLOW_LEGEND),
            "Side by side": (self.variants_view, FLOW_LEGEND),
        }[self.panes.kinds.chosen]
        self.panes.pictures.setCurrentWidget(view)
        self.panes.legend.show_text(legend)
        models = self.models if view is self.schedules_view else None
        if models is not None and models is not self.schedules_view.models[0] and isinstance(self.request, RunRequest):
            self.schedules_view.start_comparison(self.request, models)
        # The side-by-side view has lines, lanes and counts of both variants, so the cards of one are hidden.
        self.panes.right.setVisible(view is not self.variants_view)
        models = self.models if view is self.variants_view else None
        if models is not None and models is not self.variants_view.models[0] and isinstance(self.request, RunRequest):
            self.variants_view.start_comparison(
                self.steppable.title, self.request, models, self.steppable.other_variants
            )
        self.panes.symbols.setVisible(self.shows_flow)
        for zoom_button in self.panes.zoom_buttons.values():
            zoom_button.setVisible(self.shows_flow or self.shows_warps)
        self.panes.show_cycles(self.shows_warps)
        if self.shows_warps:
            if not self.panes.kinds.isAncestorOf(self.focusWidget()):
                self.panes.warps.setFocus()
            self._show_machine_code()
            self._request_timeline()

    # --- the timeline of warps, which has separate time

    @property
    def shows_warps(self) -> bool:
        """Return whether the timeline of warps is selected."""
        return self.panes.kinds.chosen == "Timeline"

    @property
    def _zoom_target(self) -> FlowView | WarpCanvas:
        return self.panes.warps.canvas if self.shows_warps else self.panes.flow

    @property
    def _active_player(self) -> Player:
        """Return the player that the keys control."""
        return self.panes.warps.player if self.shows_warps else self.player

    def _step(self, direction: int) -> None:
        if self.shows_warps:
            self.panes.warps.step(direction)
        else:
            self.player.step(direction)

    def _request_timeline(self) -> None:
        """Request the timeline for the current settings, if it is visible."""
        if self.timelines is not None and self.shows_warps and self.isVisible():
            self.source.mark_line(None)
            self._show_file(self.steppable.file, self.steppable.kernel, None)
            self.timelines.request_timelines()
            self.panes.warps.set_block_sizes(*self.timelines.block_sizes, self.timelines.threads)

    def _show_timelines(self, run: RunTimelines) -> None:
        self.panes.warps.show_run(run)
        self.panes.show_cycles(self.shows_warps)
        self._show_machine_code()

    def _show_machine_code(self) -> None:
        """Show the machine instructions of each line while the timeline is visible."""
        run = self.panes.warps.run if self.shows_warps else None
        self.source.show_machine_code({} if run is None else run.lines.get(Path(self.steppable.file).name, {}))

    def _timeline_picture(self) -> StaticPicture | None:
        """Return the timeline as a picture to export, if it is shown; else None."""
        warps = self.panes.warps
        if not self.shows_warps or warps.run is None:
            return None
        return StaticPicture(f"{self.steppable.name}-timeline", warps.figure_size, warps.paint_figure)

    def _show_no_timeline(self, failure: Failure) -> None:
        cancelled = failure.kind == "cancelled"
        self.panes.warps.show_message("Stopped." if cancelled else f"{failure.message}\n{failure.advice}".strip())
        self._highlight_lines(frozenset(), frozenset(), None)
        self._show_machine_code()

    def _show_modeling(self, busy: bool) -> None:
        self.panes.state.show_text("modeling…" if busy else "", "neutral")
        if busy and self.panes.warps.run is None:
            self.panes.warps.show_message("Modeling…")

    def _highlight_lines(self, issuing: frozenset[int], waiting: frozenset[int], picked: int | None) -> None:
        """Highlight the current lines of warps, if the timeline is visible."""
        if self.shows_warps:
            self.source.highlight_lines(issuing, waiting, picked)

    def _show_symbols(self) -> None:
        """Show symbols in the cells, once they are computed, or values."""
        models = self.models
        if models is None or not self.panes.symbols.isChecked():
            if models is not None:
                self.panes.flow.show_layout(models.layout)
            return

        def compute_symbols() -> None:
            from gpu.stepping.symbols import Symbols

            symbols = Symbols(models.layout.dataflow).compute_all()
            with suppress(RuntimeError):  # the page may have been deleted in the meantime
                self._symbols_ready.emit(models, symbols)

        run_in_background(compute_symbols)

    def _receive_symbols(self, models: RecordingModels, symbols: Symbols) -> None:
        if models is self.models and self.panes.symbols.isChecked():
            self.panes.flow.show_layout(models.layout.with_symbols(symbols))

    def _show_picture(self) -> None:
        """Show the selected picture at the current moment."""
        if not self.shows_warps:
            self.source.highlight_lines(frozenset(), frozenset())
            self._show_machine_code()
            self._show_moment(self.player.moment)
        if self.shows_flow:
            self.panes.flow.show_moment(self.player.moment)
        self._select_picture()
        view = self.panes.pictures.currentWidget()
        if view is self.schedules_view:
            self.schedules_view.show_moment(self.player.moment)
        elif view is self.variants_view:
            self.variants_view.show_moment(self.player.moment)
        elif view is self.panes.variables_view:
            self._show_warp(self.player.moment, self.snapshot(self.player.moment))
        elif view is self.panes.tiles:
            self._show_tiles(self.player.moment, self.snapshot(self.player.moment))

    def _export_state(self) -> ExportState | None:
        """Return the tab's state for exports; None while nothing is recorded."""
        models, snapshots, player = self.models, self.snapshots, self.player
        if models is None or snapshots is None:
            return None
        caption = Caption(self.steppable.title, self.settings.text, models.data.phases.phase_at(player.moment))
        return ExportState(
            self.steppable.name, caption, self.stepper.path, models, snapshots,
            self.panes.pictures.currentWidget() or self, player.moment, player.end, STEPS_PER_SECOND * player.speed,
            self.followed, self.steppable.text(self.request) if self.request is not None else None,
        )  # fmt: skip

    def _show_failure(self, failure: Failure) -> None:
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
        self.panes.statement.show_text("")
        self.panes.phase.show_text("")
        self.panes.variables.show_text("")
        self.panes.counters.clear()
        self.panes.verdict.clear()
        self.source.mark_line(None)
        self.source.set_markers({})

    # --- moving

    def _jump_to_moment(self, moment: int) -> None:
        self.player.pause()
        self.player.go_to(moment)

    def _go_to_line(self, line: int) -> None:
        if self.models is not None:
            moment = self.models.next_execution(Path(self._file).name, line, self.player.moment)
            if moment is not None:
                self._jump_to_moment(moment)

    def _focus_picture(self) -> None:
        """Move the keyboard focus from a text to the picture, where the keys step."""
        (self.panes.pictures.currentWidget() or self).setFocus()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if (
            event is not None
            and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            and accepts_text(QApplication.focusWidget())
        ):
            self._focus_picture()
        else:
            super().keyPressEvent(event)

    def _show_moment(self, moment: int) -> None:
        models = self.models
        if models is None or not models.recording.event_count or self.shows_warps:
            return
        if self.shows_flow:
            self.panes.flow.show_moment(moment)
        self.panes.launches.show_moment(moment)
        self.panes.timeline.show_moment(moment)
        for each in (self.schedules_view, self.variants_view):
            if self.panes.pictures.currentWidget() is each:
                each.show_moment(moment)
        event = max(moment - 1, 0)
        file = models.files[event] if moment else self.steppable.file
        # Statements of the simulator's own headers have no source to show.
        has_text = bool(models.recording.text(file))
        line = int(models.lines[event]) if moment and has_text else None
        if has_text or not moment:
            self._show_file(file, models.recording.locate_moment(event)[0].trace.kernel, line)
        self.source.mark_line(line)
        self._show_snapshot(moment)
        self.panes.counters.show_counts(models.data.tally.counts_at(moment), models.data.tally.step_counts_at(moment))
        self.prefetcher.start(self._prefetch(moment, -1 if moment < self._last_moment else 1))
        self._last_moment = moment

    def _show_file(self, file: str, kernel: str, line: int | None) -> None:
        """Show the file of the last statement, such as a header, at the current kernel."""
        name = self._document_name(file)
        if (name, kernel) != (self._file, self.source.code.kernel):
            self._file = name
            self.source.show_kernel(name, kernel, line)
            self._mark_findings()

    def _document_name(self, file: str) -> str:
        """Return the document name of a recording's file."""
        name, subject_file = Path(file).name, self.steppable.file
        return subject_file if name == Path(subject_file).name else name if (KERNELS / name).is_file() else file

    def _mark_findings(self) -> None:
        """Mark the lines with findings in the visible file."""
        marks: dict[int, str] = {}
        messages: dict[int, str] = {}
        if self.models is not None:
            name = Path(self._file).name
            for moment, finding in self.models.recording.findings:
                if Path(self.models.files[moment]).name == name:
                    marks.setdefault(int(self.models.lines[moment]), finding.message)
                for position in finding.positions:
                    if Path(position.file).name == name:
                        messages.setdefault(position.line, finding.message)
        self.source.set_markers(marks, messages)

    def _prefetch(self, moment: int, direction: int) -> Iterator[object]:
        """Prepare the moments that keys can reach next: one step in the last direction, and the nearest barriers.

        Only the dataflow is also painted in advance; other pictures would not be faster.
        """
        models, player = self.models, self.player
        if models is None or not self.isVisible():
            return
        for next_moment in (moment + direction, player.next_border(direction), player.next_border(-direction)):
            if 0 <= next_moment <= player.end:
                yield self.snapshot(next_moment)
                while self.shows_flow and not self.panes.flow.prepare(next_moment):
                    yield None
        files = [self._document_name(file) for file in dict.fromkeys(models.files) if models.recording.text(file)]
        while not self.source.color_files(tuple(files)):
            yield None

    def snapshot(self, moment: int) -> Snapshot:
        """Return the state at a moment for the followed thread, or else for an active one."""
        assert self.snapshots is not None
        return self.snapshots(moment, self.followed)

    def _show_snapshot(self, moment: int) -> None:
        now = self.snapshot(moment)
        self.panes.lanes.show_lanes(now.lanes, now.block, now.blocks, now.threads, now.thread if self.followed else -1)
        self.panes.lanes.show_traffic(now.traffic)
        self.panes.arrays.show_moment(moment, now.block, self.followed)
        if self.panes.pictures.currentWidget() is self.panes.variables_view:
            self._show_warp(moment, now)
        elif self.panes.pictures.currentWidget() is self.panes.tiles:
            self._show_tiles(moment, now)
        self.panes.statement.show_text(now.effect, *_list_shorter_effects(now.effect))
        self.panes.phase.show_text(now.phase)
        self.panes.variables.show_text(now.variables)

    def _show_warp(self, moment: int, now: Snapshot) -> None:
        """Show the variables of the current warp."""
        from gpu.stepping.moment.lanes import LaneState
        from gpu.stepping.moment.warp_variables import find_warp_variables

        assert self.models is not None
        warp = now.thread // WARP
        active = now.lanes.state[now.block, warp] == LaneState.ACTIVE
        variables = find_warp_variables(self.models.recording, moment, now.block, warp)
        self.panes.variables_view.show_warp(variables, active.tolist(), now.block * now.lanes.state.shape[1] + warp)

    def _show_tiles(self, moment: int, now: Snapshot) -> None:
        """Show which lanes hold the elements of the tiles that the statement multiplies, loads or stores."""
        from gpu.stepping.moment.tiles import tiles_at

        assert self.models is not None
        warps = now.lanes.state.shape[1]
        product = tiles_at(self.models.recording, moment)
        self.panes.tiles.show_tiles(product, now.block, now.thread, now.block * warps + now.thread // WARP)

    # --- selecting

    def _click_cell(self, row: int, cell: int, *, forward: bool) -> None:
        """Select a cell and its sources or uses; or clear the selection if that is already selected."""
        marks = self.panes.flow.marks
        is_selected = marks.selected == (row, cell) and marks.forward == forward
        self.panes.flow.select(None if is_selected else (row, cell), forward=forward)

    def _turn_selection(self) -> None:
        """Switch between the sources and the uses of the selected cell."""
        marks = self.panes.flow.marks
        if marks.selected is not None:
            self.panes.flow.select(marks.selected, forward=not marks.forward)

    def _toggle_followed_thread(self, block: int, thread: int) -> None:
        self.followed = None if self.followed == (block, thread) else (block, thread)
        self.panes.flow.follow_thread(self.followed)
        self._show_moment(self.player.moment)

    def clear_selection(self) -> None:
        """Close the settings or, if they are closed, clear the selection and the followed thread."""
        if self.settings.isVisible():
            self.settings.hide()
            self._focus_picture()
            return
        self.panes.warps.clear_selection()
        self.panes.flow.select(None)
        self.followed = None
        self.panes.flow.follow_thread(None)
        self._show_moment(self.player.moment)

    @property
    def has_selection(self) -> bool:
        """Return whether an element is selected, a thread is followed, or the settings are open."""
        chosen = (self.panes.flow.marks.selected, self.followed, self.panes.warps.canvas.picked)
        return any(each is not None for each in chosen) or self.settings.isVisible()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if self.settings.isVisible():
            self.settings.move_to_corner()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        (self.panes.warps if self.shows_warps else self.panes.flow).setFocus()
        self._request_timeline()
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


def _describe_block(request: StepRequest | None) -> str:
    """Return a line about the block of a run that was recorded."""
    assert isinstance(request, StepWriter)
    writer = request.writer
    blocks = writer.grid[0] * writer.grid[1] * writer.grid[2]
    return f"From Run: {writer.kernel}, block {format_index(writer.block, writer.grid)} of {blocks}"


def _list_shorter_effects(effect: str) -> tuple[str, str]:
    """Return an effect with a condition's values only, without its expression; then also without the block."""
    name, colon, text = effect.partition(":  ")
    values = f"{colon}{text.rpartition('  →  ')[2]}"
    return f"{name}{values}", f"{name[max(name.find('thread'), 0) :]}{values}"


def _is_finding_new(models: RecordingModels, before: RecordingModels | None, moment: int) -> bool:
    """Return whether the recording before did not have the same findings, or its first one was visible at a moment."""
    if before is None or not before.data.findings:
        return True
    found, found_before = (
        {(each.finding.kind, each.finding.positions) for each in every.data.findings} for every in (models, before)
    )
    return found != found_before or moment == before.data.findings[0].moment + 1
