"""The page of a user's kernel file: launch it in the simulator, step it, compare it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QScrollArea, QSizePolicy, QStackedWidget, QWidget

from gpu.base.errors import InputError
from gpu.messages.events import Failure
from gpu.messages.kernels import DescribeKernels, KernelLaunch, KernelResult, RunKernel, Signature
from gpu.messages.modeled_time import ModelKernel
from gpu.messages.programs import has_main
from gpu.messages.timelines import TimelineKernel
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.request_queue import RequestQueue
from gui.model.time_modeler import ModelFollower, TimeModeler
from gui.painting.theme import look
from gui.run_view.cards.modeled_card import ModeledCard, find_line_code
from gui.step_view.tab import StepTab
from gui.step_view.warps.timeline_requests import TimelineSubject
from gui.user_kernel.compare import UserCompareTab
from gui.user_kernel.contenders import map_launches_by_threads
from gui.user_kernel.launch_form import LaunchForm
from gui.user_kernel.results import ResultsCard
from gui.user_kernel.steppable_kernel import create_kernel_steppable
from gui.widgets.basic import Card, Ground, button, column, create_tab_bar, row, split

_RUN, _DESCRIBE = "own run", "own kernels"


class UserKernelPage(Ground):
    """The launch form, source and results of a kernel file, a Step tab, and a Compare tab.

    Parameters
    ----------
    path : Path
        The kernel's file.
    jobs : callable
        Returns the queue of the simulator's process.
    modeling : TimeModeler
        Predicts the launches' times on a GPU.
    options : str
        The compiler options last used for the file.
    """

    failed = pyqtSignal(object)
    """Failure"""
    busy_changed = pyqtSignal(bool)
    status_changed = pyqtSignal(str)
    program_requested = pyqtSignal()
    """The user wants to run the file as a whole program."""
    options_changed = pyqtSignal(str)

    def __init__(
        self,
        path: Path,
        sources: KernelSources,
        jobs: Callable[[], RequestQueue],
        modeling: TimeModeler,
        options: str = "",
    ) -> None:
        super().__init__()
        self.path = path
        self.file = str(path)
        self.sources, self._jobs, self._modeling = sources, jobs, modeling
        self.status_text = ""
        """How the file can be used, for the status line; "" while that is unknown."""
        self._running: KernelLaunch | None = None
        self._closed = False
        self.document = sources.document(self.file)
        self.form = LaunchForm(path.parent, options)
        self.results = ResultsCard()
        self.modeled_card = ModeledCard()
        self.model_follower = ModelFollower(modeling, self._build_model_request, lambda: self.busy, self)
        self.source = SourcePane(sources)
        timed = TimelineSubject(modeling, self._build_timeline_request, self._list_block_sizes)
        self.step = StepTab(create_kernel_steppable(path, "", self.build_launch), sources, jobs, timed)
        self.compare = UserCompareTab(jobs, self.build_launch, lambda: self.form.kernels, modeling)
        self.program_button = button("Whole program", "flat", tip="Run the whole file: its main, with all launches")
        self._lay_out()
        self.program_button.setVisible(has_main(self.document.text))
        self._connect_parts()
        self.source.show_kernel(self.file, "")
        self._follow_model()
        self.request_kernels()

    def _lay_out(self) -> None:
        self.tabs = create_tab_bar()
        self.corner = QStackedWidget()
        self.corner.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.stack = QStackedWidget()
        for title, content, corner in (
            ("Run", self._create_run_tab(), None),
            ("Step", self.step, self.step.corner()),
            ("Compare", self.compare, self.compare.views),
        ):
            self.tabs.addTab(title)
            self.stack.addWidget(content)
            holder = QWidget()
            holder.setLayout(row(0, corner) if corner is not None else row(0))
            self.corner.addWidget(holder)
        self.setLayout(
            column(row(self.tabs, self.corner, self.program_button), self.stack, margins=(8, 8, 8, 8), stretch=1)
        )

    def _connect_parts(self) -> None:
        self.tabs.currentChanged.connect(self._show_tab)
        self.program_button.clicked.connect(self.program_requested)
        self.form.options_changed.connect(self.options_changed)
        self.form.kernel_requested.connect(self.request_kernels)
        self.document.settled.connect(self.request_kernels)
        self.source.exited.connect(self.setFocus)
        self.step.failed.connect(self.failed)
        self.compare.failed.connect(self.failed)
        self.compare.busy_changed.connect(lambda _: self.busy_changed.emit(self.busy))
        self.results.line_requested.connect(self.source.code.go_to_line)

    def _follow_model(self) -> None:
        """Show the modeled time of the launch, and update it after each change."""
        self.model_follower.changed.connect(self.modeled_card.show_model)
        self.model_follower.bound_found.connect(self.modeled_card.show_bound)
        self.model_follower.changed.connect(
            lambda found: self.source.show_machine_code(find_line_code(found, self.path.name))
        )
        self.modeled_card.show_gpu(self._modeling.gpu)
        self.modeled_card.show_model(None)
        self._modeling.gpu_changed.connect(self.modeled_card.show_gpu)
        for changed in (self.modeled_card.became_visible, self.form.changed, self.document.contentsChange):
            changed.connect(self.model_follower.update_model)

    def _list_block_sizes(self) -> tuple[list[int], int]:
        """Return the possible threads per block, in whole warps, and the current number; ([], 0) if unknown."""
        try:
            sizes, own_threads = map_launches_by_threads(self.build_launch())
        except InputError:
            return [], 0
        return (sorted(sizes), own_threads) if own_threads in sizes else ([], 0)

    def _build_timeline_request(self, gpu: str, _: int | None, threads: int) -> TimelineKernel:
        launch = self.build_launch()
        return TimelineKernel(map_launches_by_threads(launch)[0].get(threads, launch), gpu)

    def _create_run_tab(self) -> QWidget:
        bar = Card("Launch", margins=(12, 8, 12, 10))
        bar.title.hide()
        bar.body.setSpacing(0)
        bar.body.addWidget(self.form)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(bar)
        sizes = (look().px(280), look().px(300))
        upper = split(Qt.Orientation.Vertical, scroll, self.results, sizes=sizes, stretch=(0, 1))
        left = QWidget()
        left.setLayout(column(upper, self.modeled_card))
        right = QWidget()
        right.setLayout(column(self.source))
        self.splitter = split(Qt.Orientation.Horizontal, left, right, sizes=(look().px(620), look().px(490)))
        return self.splitter

    @property
    def stepping(self) -> bool:
        """Whether the Step tab is visible."""
        return self.stack.currentWidget() is self.step

    @property
    def comparing(self) -> bool:
        """Whether the Compare tab is visible."""
        return self.stack.currentWidget() is self.compare

    @property
    def busy(self) -> bool:
        """Whether a launch is running or being counted."""
        return self._running is not None or self.compare.busy

    def build_launch(self) -> KernelLaunch:
        """Return the launch; raise InputError if the form is invalid."""
        return self.form.build_launch(self.file, self.document.text)

    def _build_model_request(self) -> ModelKernel | None:
        """Return the timing model's request for the visible launch, or None."""
        if not self.modeled_card.isVisible() or self.form.signature is None:
            return None
        try:
            return ModelKernel(self.build_launch(), self._modeling.gpu)
        except InputError:
            return None

    def request_kernels(self) -> None:
        """Look up the file's kernels and their parameters."""
        name = self.form.name
        instances = (name,) if "<" in name else ()
        try:
            options = self.form.parse_compiler_options()
        except InputError as error:
            self.form.show_error(error.message)
            return
        request = DescribeKernels(self.file, self.document.text, options.defines, instances, options.include_dirs)
        self._jobs().post(_DESCRIBE, request, self._on_kernels, priority=2)

    def _on_kernels(self, event: tuple[Signature, ...] | Failure) -> None:
        if self._closed:
            return  # the page has been replaced
        if isinstance(event, Failure):
            if event.kind != "cancelled":
                self.form.show_error(event.message)
                self._update_status()
            return
        before = self.form.signature
        self.form.show_kernels(event)
        signature = self.form.signature
        name = signature.name if signature is not None else ""
        if before is None or before.name != name:
            self.source.show_kernel(self.file, name)
            self.step.show_steppable(create_kernel_steppable(self.path, name, self.build_launch))
            self.results.clear_verdict()
        if self.comparing:
            self.compare.refresh()
        self._update_status()
        self.model_follower.update_model()

    def _update_status(self) -> None:
        """Report whether the kernel can be launched."""
        words = "cannot run" if self.form.error.text() else "runs on the simulator"
        if words != self.status_text:
            self.status_text = words
            self.status_changed.emit(words)

    def run(self) -> None:
        """Run the kernel; in the Step tab record it, in the Compare tab count."""
        if self.stepping:
            self.step.record()
            return
        if self.comparing:
            self.compare.count_launches()
            return
        try:
            launch = self.build_launch()
        except InputError as error:
            self.form.show_error(error.message)
            return
        self.form.show_error("")
        self._set_running(launch)
        self._jobs().post(_RUN, RunKernel(launch), lambda event: self._on_run(launch, event), priority=2)

    def stop(self) -> None:
        """Stop the running launch."""
        self.compare.stop()
        if self.busy:
            self._set_running(None)
            self._jobs().stop()

    def _on_run(self, launch: KernelLaunch, event: KernelResult | Failure) -> None:
        if launch is not self._running:
            return
        self._set_running(None)
        self.model_follower.update_model()
        ran = {self.file: launch.text}
        if isinstance(event, KernelResult):
            assert self.form.signature is not None
            arrays = {name: handle.open() for name, handle in event.arrays.items()}
            check = event.simulation.check
            self.sources.show_run(self.file, ran, check.diagnostics, check.remedy)
            self.results.show_result(self.form.signature, launch.text, event.simulation, arrays)
        elif event.kind == "input":
            self.form.show_error(event.message)
        elif event.kind != "cancelled":
            self.sources.show_failure(self.file, ran, event)
            self.failed.emit(event)

    def _set_running(self, launch: KernelLaunch | None) -> None:
        self._running = launch
        self.busy_changed.emit(self.busy)

    def _show_tab(self, index: int) -> None:
        self.corner.setCurrentIndex(index)
        self.stack.setCurrentIndex(index)
        if self.stepping:
            self.step.record_soon()

    def close_down(self) -> None:
        """Stop playback: the page or the window closes."""
        self._closed = True
        self.step.close_down()
