"""The page of a user's kernel file: launch it in the simulator, step it, compare it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QScrollArea, QSizePolicy, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from gpu.errors import InputError
from gpu.messages.kernels import KernelLaunch
from gpu.messages.programs import has_main
from gpu.messages.requests import DescribeKernels, Failure, ModelKernel, Result, RunKernel, TimelineKernel
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.jobs import Jobs
from gui.model.modeling import FollowedModel, Modeling
from gui.own_kernel.compare import OwnCompareTab
from gui.own_kernel.contenders import by_threads
from gui.own_kernel.launch_form import LaunchForm
from gui.own_kernel.results import ResultsCard
from gui.own_kernel.step import stepped_kernel
from gui.painting.theme import look
from gui.run_view.modeled import ModeledCard, code_of
from gui.step_view.tab import StepTab
from gui.step_view.warps.asked import Timed
from gui.widgets.basic import Card, Ground, button, column, row, split

_RUN, _DESCRIBE = "own run", "own kernels"


class OwnKernelPage(Ground):
    """The launch form, source and results of a kernel file, a Step tab, and a Compare tab.

    Parameters
    ----------
    path : Path
        The kernel's file.
    sources : KernelSources
        The kernels' texts.
    jobs : callable
        Returns the queue of the simulator's process.
    modeling : Modeling
        Predicts the launches' times on a GPU.
    options : str
        The compiler options last used for the file.
    """

    failed = pyqtSignal(object)
    """Failure"""
    busy_changed = pyqtSignal(bool)
    words_changed = pyqtSignal(str)
    program_wanted = pyqtSignal()
    """The user wants to run the file as a whole program."""
    options_changed = pyqtSignal(str)

    def __init__(
        self,
        path: Path,
        sources: KernelSources,
        jobs: Callable[[], Jobs],
        modeling: Modeling,
        options: str = "",
    ) -> None:
        super().__init__()
        self.path = path
        self.file = str(path)
        self._jobs = jobs
        self.words = ""
        """How the file can be used, for the status line; "" while that is unknown."""
        self._running: KernelLaunch | None = None
        self._closed = False
        self.document = sources.document(self.file)
        self.sources = sources
        self.form = LaunchForm(path.parent, options)
        self.form.options_changed.connect(self.options_changed)
        self.results = ResultsCard()
        self.modeled = ModeledCard()
        self._modeling = modeling
        self.followed = FollowedModel(modeling, self._to_model, lambda: self.busy, self)
        self.source = SourcePane(sources)
        self.source.left.connect(self.setFocus)
        timed = Timed(modeling, self._to_time, self._block_sizes)
        self.step = StepTab(stepped_kernel(path, "", self.launch), sources, jobs, timed)
        self.compare = OwnCompareTab(jobs, self.launch, lambda: self.form.kernels, modeling)
        self.tabs = QTabBar()
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setUsesScrollButtons(False)
        self.tabs.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.corner = QStackedWidget()
        self.corner.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.stack = QStackedWidget()
        for title, content, corner in (
            ("Run", self._run_tab(), None),
            ("Step", self.step, self.step.corner()),
            ("Compare", self.compare, self.compare.views),
        ):
            self.tabs.addTab(title)
            self.stack.addWidget(content)
            holder = QWidget()
            holder.setLayout(row(0, corner) if corner is not None else row(0))
            self.corner.addWidget(holder)
        self.tabs.currentChanged.connect(self._show_tab)
        self.whole = button("Whole program", "flat", tip="Run the whole file: its main, with all launches")
        self.whole.clicked.connect(self.program_wanted)
        self.whole.setVisible(has_main(self.document.text))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addLayout(row(self.tabs, self.corner, self.whole))
        layout.addWidget(self.stack, 1)
        self.form.kernel_wanted.connect(self.describe)
        self.document.settled.connect(self.describe)
        self.step.failed.connect(self.failed)
        self.compare.failed.connect(self.failed)
        self.compare.busy_changed.connect(lambda _: self.busy_changed.emit(self.busy))
        self.results.line_wanted.connect(self.source.code.go_to_line)
        self.source.show_kernel(self.file, "")
        self.followed.changed.connect(self.modeled.show_model)
        self.followed.changed.connect(lambda found: self.source.show_machine_code(code_of(found, self.path.name)))
        self.modeled.show_gpu(modeling.gpu)
        self.modeled.show_model(None)
        modeling.gpu_changed.connect(self.modeled.show_gpu)
        for changed in (self.modeled.appeared, self.form.changed, self.document.contentsChange):
            changed.connect(self.followed.follow)
        self.describe()

    def _block_sizes(self) -> tuple[list[int], int]:
        """Return the possible threads per block, in whole warps, and the current number; ([], 0) if unknown."""
        try:
            sizes, own = by_threads(self.launch())
        except InputError:
            return [], 0
        return (sorted(sizes), own) if own in sizes else ([], 0)

    def _to_time(self, gpu: str, _: int | None, threads: int) -> TimelineKernel:
        launch = self.launch()
        return TimelineKernel(by_threads(launch)[0].get(threads, launch), gpu)

    def _run_tab(self) -> QWidget:
        bar = Card("Launch", margins=(12, 8, 12, 10))
        bar.title.hide()
        bar.body.setSpacing(0)
        bar.body.addWidget(self.form)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(bar)
        sizes = (look().px(250), look().px(330))
        upper = split(Qt.Orientation.Vertical, scroll, self.results, sizes=sizes, stretch=(0, 1))
        left = QWidget()
        left.setLayout(column(upper, self.modeled))
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

    def launch(self) -> KernelLaunch:
        """Return the launch; raise InputError if the form is invalid."""
        return self.form.launch(self.file, self.document.text)

    def _to_model(self) -> ModelKernel | None:
        """Return the timing model's request for the visible launch, or None."""
        if not self.modeled.isVisible() or self.form.signature is None:
            return None
        try:
            return ModelKernel(self.launch(), self._modeling.gpu)
        except InputError:
            return None

    def describe(self) -> None:
        """Look up the file's kernels and their parameters."""
        name = self.form.name
        instances = (name,) if "<" in name else ()
        try:
            options = self.form.compiler_options()
        except InputError as error:
            self.form.refuse(error.message)
            return
        request = DescribeKernels(self.file, self.document.text, options.defines, instances, options.include_dirs)
        self._jobs().post(_DESCRIBE, request, self._on_kernels, priority=2)

    def _on_kernels(self, event: Result | Failure) -> None:
        if self._closed:
            return  # the page has been replaced
        if isinstance(event, Failure):
            if event.kind != "cancelled":
                self.form.refuse(event.message)
                self._update_words()
            return
        before = self.form.signature
        self.form.show_kernels(event.kernels)
        signature = self.form.signature
        name = signature.name if signature is not None else ""
        if before is None or before.name != name:
            self.source.show_kernel(self.file, name)
            self.step.show_steppable(stepped_kernel(self.path, name, self.launch))
            self.results.forget()
        if self.comparing:
            self.compare.refresh()
        self._update_words()
        self.followed.follow()

    def _update_words(self) -> None:
        """Report whether the kernel can be launched."""
        words = "cannot run" if self.form.error.text() else "runs on the simulator"
        if words != self.words:
            self.words = words
            self.words_changed.emit(words)

    def run(self) -> None:
        """Run the kernel; in the Step tab record it, in the Compare tab count."""
        if self.stepping:
            self.step.record()
            return
        if self.comparing:
            self.compare.count()
            return
        try:
            launch = self.launch()
        except InputError as error:
            self.form.refuse(error.message)
            return
        self.form.refuse("")
        self._set_running(launch)
        self._jobs().post(_RUN, RunKernel(launch), lambda event: self._on_run(launch, event), priority=2)

    def stop(self) -> None:
        """Stop the running launch."""
        self.compare.stop()
        if self.busy:
            self._set_running(None)
            self._jobs().stop()

    def _on_run(self, launch: KernelLaunch, event: Result | Failure) -> None:
        if launch is not self._running:
            return
        self._set_running(None)
        self.followed.follow()
        ran = {self.file: launch.text}
        if isinstance(event, Result):
            assert event.simulated is not None
            assert self.form.signature is not None
            arrays = {name: handle.open() for name, handle in event.arrays.items()}
            check = event.simulated.check
            self.sources.show_run(self.file, ran, check.diagnostics, check.remedy)
            self.results.show_result(self.form.signature, launch.text, event.simulated, arrays)
        elif event.kind == "input":
            self.form.refuse(event.message)
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
