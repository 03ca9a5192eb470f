"""The page of a whole program: run it in the simulator, list its launches, and step each of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QLineEdit, QSizePolicy, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from gpu.declaration.pattern import Progress
from gpu.errors import InputError
from gpu.files import scratch
from gpu.messages.compiler_options import compiler_options
from gpu.messages.modeled import article, short_name
from gpu.messages.programs import SCRIPT, ProgramLaunch, ProgramNews, WholeProgram
from gpu.messages.requests import Failure, Result, RunProgram
from gpu.timing.gpus import find_gpu
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.jobs import Jobs
from gui.own_kernel.launch_form import OPTIONS_EXAMPLE, OPTIONS_TIP
from gui.own_kernel.program.launches import LaunchTable, extent
from gui.own_kernel.program.results import ProgramResults
from gui.own_kernel.recorded import RecordedStepTab
from gui.painting.theme import look
from gui.step_view.recording.steppable import Checked
from gui.widgets.basic import Card, ElidedLabel, Ground, as_count, button, column, label, row, split

_RUN = "program"


class ProgramPage(Ground):
    """A program's arguments, launches, output and source, and a Step tab for one launch.

    Parameters
    ----------
    path : Path
        A PyCUDA script, or a CUDA program with `main`.
    sources : KernelSources
        The editable sources.
    jobs : callable
        Returns the queue of the process that runs the program.
    checked : callable
        As in `ReadRecording`.
    gpu : callable
        Returns the key of the GPU that launches are modeled for, and that the program sees as its device.
    options : str
        The compiler options last used for the file.
    """

    failed = pyqtSignal(object)
    """Failure"""
    busy_changed = pyqtSignal(bool)
    words_changed = pyqtSignal()
    stepped = pyqtSignal(object)
    """The new Step tab of a launch."""
    kernels_wanted = pyqtSignal()
    """The user wants to launch the file's kernels without the program."""
    options_changed = pyqtSignal(str)

    def __init__(
        self,
        path: Path,
        sources: KernelSources,
        jobs: Callable[[], Jobs],
        checked: Checked,
        gpu: Callable[[], str],
        options: str = "",
    ) -> None:
        super().__init__()
        self._gpu = gpu
        self.path, self.file = path, str(path)
        self.sources, self._jobs, self._checked = sources, jobs, checked
        self.document = sources.document(self.file)
        self.words = "runs on the simulator"
        self._running: RunProgram | None = None
        self._ran: RunProgram | None = None
        self._folder: scratch.ScratchFolder | None = None
        self._runs = 0
        self._opening: RecordedStepTab | None = None
        self._step: RecordedStepTab | None = None
        self._number = 0
        self.arguments = QLineEdit()
        self.options = QLineEdit(options)
        self.launches = LaunchTable()
        self.step_button = button("Step", "flat", tip="Step through the launch (Enter, or a double click)")
        self.results = ProgramResults()
        self.source = SourcePane(sources)
        self.source.left.connect(self.setFocus)
        self.source.show_kernel(self.file, "")
        self._lay_out()
        self.arguments.returnPressed.connect(self.run)
        self.options.returnPressed.connect(self.run)
        self.options.editingFinished.connect(lambda: self.options_changed.emit(self.options.text()))
        self.launches.step_wanted.connect(self.step_launch)
        self.launches.chosen.connect(self._show_chosen)
        self.step_button.clicked.connect(lambda: self.step_launch(self.launches.current))
        self.results.line_wanted.connect(self.source.code.go_to_line)
        self.results.launch_wanted.connect(self.step_launch)
        self.step_button.setEnabled(False)

    def _lay_out(self) -> None:
        self.arguments.setAccessibleName("Arguments")
        self.arguments.setPlaceholderText("as on a command line")
        bar = Card("Program", margins=(12, 8, 12, 8))
        bar.title.setText("Arguments")
        bar.head.addWidget(self.arguments, 1)
        self.options.setAccessibleName("Compiler options")
        self.options.setPlaceholderText(OPTIONS_EXAMPLE)
        self.options.setToolTip(OPTIONS_TIP)
        self.options_heading = label("Compiler", "caption", name="Heading of the compiler options")
        self.options_heading.setBuddy(self.options)
        bar.head.addWidget(self.options_heading)
        bar.head.addWidget(self.options, 1)
        for each in (self.options_heading, self.options):
            each.setVisible(self.path.suffix.lower() != SCRIPT)
        self.alone = button("One kernel…", "flat", tip="Launch one kernel of this file with your own arguments")
        self.alone.clicked.connect(self.kernels_wanted)
        self.alone.setVisible(self.path.suffix.lower() != SCRIPT)
        bar.head.addWidget(self.alone)
        listed = Card("Launches", margins=(1, 8, 1, 1))
        listed.head.setContentsMargins(12, 0, 8, 0)
        self.count = label("", "caption", name="Number of launches")
        listed.head.addWidget(self.count)
        self.device = ElidedLabel("caption", "GPU that the program sees")
        listed.head.addWidget(self.device, 1)
        listed.head.addWidget(self.step_button)
        self.hint = label(
            "Run the program (F5): its launches are listed here. A double click, or Enter, steps one.",
            "muted",
            wrap=True,
            name="Hint",
        )
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setMargin(look().px(16))
        self.listed = QStackedWidget()
        self.listed.addWidget(self.hint)
        self.listed.addWidget(self.launches)
        listed.body.addWidget(self.listed, 1)
        upper = split(Qt.Orientation.Vertical, listed, self.results, sizes=(look().px(250), look().px(250)))
        left, right = QWidget(), QWidget()
        left.setLayout(column(bar, upper))
        right.setLayout(column(self.source))
        self.splitter = split(Qt.Orientation.Horizontal, left, right, sizes=(look().px(630), look().px(480)))
        self._no_step = label("Run the program (F5), then double-click one of its launches.", "muted", name="Hint")
        self._no_step.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stepped = QStackedWidget()
        self._stepped.addWidget(self._no_step)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.splitter)
        self.stack.addWidget(self._stepped)
        self.tabs = QTabBar()
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setUsesScrollButtons(False)
        self.tabs.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        for title in ("Run", "Step"):
            self.tabs.addTab(title)
        self.tabs.currentChanged.connect(self._show_tab)
        self.which = ElidedLabel("caption", "Stepped launch")
        self.before = button("‹", "flat", tip="Step the previous launch", name="Previous launch")
        self.after = button("›", "flat", tip="Step the next launch", name="Next launch")
        self.before.clicked.connect(lambda: self.step_launch(self._number - 1))
        self.after.clicked.connect(lambda: self.step_launch(self._number + 1))
        self._corner = QWidget()
        corner = row(self.before, self.after, self.which)
        corner.setStretchFactor(self.which, 1)
        self._corner.setLayout(corner)
        self._corner.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        head = row(self.tabs)
        head.addWidget(self._corner, 1)
        head.addStretch(0)
        layout.addLayout(head)
        layout.addWidget(self.stack, 1)

    @property
    def step(self) -> RecordedStepTab:
        """The Step tab of the current launch; valid while `stepping`."""
        assert self._step is not None, "no launch is stepped"
        return self._step

    @property
    def stepping(self) -> bool:
        """Whether a launch's Step tab is visible."""
        return self._step is not None and self.stack.currentWidget() is self._stepped

    @property
    def busy(self) -> bool:
        """Whether the program runs."""
        return self._running is not None

    # --- running

    def run(self) -> None:
        """Run the current source; a running program is stopped."""
        try:
            words = tuple(shlex.split(self.arguments.text()))
        except ValueError:
            self._fail("The arguments have an unmatched quotation mark.", "Close it, or escape it with \\.")
            return
        try:
            options = compiler_options(self.options.text(), self.path.parent)
        except InputError as error:
            self._fail(error.message, error.advice)
            return
        self.stop()
        self.close_down()
        self.tabs.setCurrentIndex(0)
        self._ran = RunProgram(WholeProgram(self.file, self.document.text, words, options), "", gpu=self._gpu())
        self.launches.launches.forget(self._ran.gpu)
        self._show_device(find_gpu(self._ran.gpu).name)
        self.listed.setCurrentWidget(self.hint)
        self.step_button.setEnabled(False)
        self.count.setText("")
        self.results.begin()
        self.document.show_run(self._ran.program.text, ())
        self._post(self._ran)

    def _post(self, request: RunProgram) -> None:
        try:
            folder = self._new_folder()
        except InputError as error:
            self._fail(error.message, error.advice)
            return
        request = replace(request, folder=str(folder))
        self._set_running(request)
        self._jobs().post(
            _RUN, request, lambda event: self._on_end(request, event), lambda news: self._on_news(request, news), 2
        )

    def _new_folder(self) -> Path:
        """Create a folder for a run."""
        if self._folder is None:
            self._folder = scratch.ScratchFolder()
        self._runs += 1
        folder = Path(self._folder.path, str(self._runs))
        folder.mkdir()
        return folder

    def stop(self) -> None:
        """Stop the program."""
        if self._running is not None:
            self._set_running(None)
            self._jobs().stop()
            self._set_state("was stopped")
            self.results.say_end("Stopped.", bad=False)

    def _on_news(self, request: RunProgram, news: Progress) -> None:
        if request is not self._running or not isinstance(news, ProgramNews):
            return
        if request.only is not None:
            for each in news.launches:
                if each.number == request.only:
                    listed = self.launches.listed[each.number - 1]
                    self.launches.launches.replace(replace(listed, recording=each.recording))
            return
        self.results.output.add(news.output)
        if news.under_way or news.launches:
            self.results.end.say(f"Running: {news.under_way}" if news.under_way else "")
        if not news.launches:
            return
        self.launches.launches.add(news.launches)
        self.listed.setCurrentWidget(self.launches)
        self.count.setText(_launches(len(self.launches.listed)))
        if not self.launches.current:
            self.launches.selectRow(0)
        self.step_button.setEnabled(True)
        self.results.add_launches(news.launches)
        if any(each.placed for each in news.launches):
            self.document.show_run(request.program.text, self.results.placed)

    def _on_end(self, request: RunProgram, event: Result | Failure) -> None:
        if request is not self._running:
            return
        self._set_running(None)
        if isinstance(event, Failure):
            if event.kind != "cancelled":
                self.results.say_end(event.message, bad=True)
                self._set_state("did not run")
                self.sources.show_failure(self.file, {self.file: request.program.text}, event)
                self.failed.emit(event)
            return
        assert event.ended is not None
        if request.only is not None:
            self._open(request.only)
            return
        end = event.ended
        nothing = " It launched no kernel." if not end.launches else ""
        if nothing and request.program.is_script:
            nothing = " It launched no kernel; only PyCUDA scripts are run here."
        self.results.say_end(f"{end.sentence}{nothing}", bad=end.code != 0)
        self._set_state(f"ran {end.seconds:.1f} s: {_launches(end.launches)}. {end.sentence}")

    def _set_running(self, request: RunProgram | None) -> None:
        self._running = request
        self.busy_changed.emit(self.busy)

    def _fail(self, message: str, advice: str = "") -> None:
        self.failed.emit(Failure("input", message, advice))

    def _show_device(self, name: str) -> None:
        gpu = f"{article(name)} {short_name(name)}"
        self.device.say(f"sees {gpu}")
        self.device.setToolTip(
            f"The program's queries of its device are answered as for {gpu}: multiprocessors, clock, caches, limits."
            " The next run uses the GPU selected at the top"
        )

    def _set_state(self, words: str) -> None:
        self.words = words
        self.words_changed.emit()

    def _show_chosen(self, number: int) -> None:
        self.results.show_counts(self.launches.listed[number - 1])

    # --- stepping

    def step_launch(self, number: int) -> None:
        """Step through a launch; if it is not recorded yet, the program runs again to record it."""
        launches = self.launches.listed
        if not 1 <= number <= len(launches):
            return
        self.launches.selectRow(number - 1)
        if launches[number - 1].recording:
            self._open(number)
        elif self._ran is not None and not self.busy:
            self._set_state(f"runs again to record launch {number}…")
            self._post(replace(self._ran, only=number))
        elif self.busy:
            self._fail(
                f"Launch {number} is not recorded yet; the program must run again to record it.",
                "Wait until the program has ended, or stop it.",
            )

    def _open(self, number: int) -> None:
        launch = self.launches.listed[number - 1]
        if not launch.recording:
            self._fail(f"Launch {number} was not reached when the program ran again, so it cannot be stepped.")
            return
        self._set_state(f"opens launch {number}…")
        tab = self._opening = RecordedStepTab(Path(launch.recording), self._checked, self._jobs)
        tab.readable.connect(lambda: self._show_step(tab, launch))
        tab.failed.connect(lambda failure: self._refuse(tab, failure))
        tab.record()

    def _show_step(self, tab: RecordedStepTab, launch: ProgramLaunch) -> None:
        if tab is not self._opening:
            if tab is not self._step:
                tab.deleteLater()  # another launch was opened meanwhile
            return
        self._opening = None
        self._forget_step()
        self._step, self._number = tab, launch.number
        self._stepped.addWidget(tab)
        self._stepped.setCurrentWidget(tab)
        self.which.say(f"Launch {launch.number}: {launch.kernel} <<<{extent(launch.grid)}, {extent(launch.block)}>>>")
        self.before.setEnabled(launch.number > 1)
        self.after.setEnabled(launch.number < len(self.launches.listed))
        self.stepped.emit(tab)
        self.tabs.setCurrentIndex(1)
        self._set_state(f"steps launch {launch.number} of {len(self.launches.listed)}")

    def _refuse(self, tab: RecordedStepTab, failure: Failure) -> None:
        if tab is self._opening:
            self._opening = None
            tab.deleteLater()
        self.failed.emit(failure)

    def _forget_step(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.close_down()
            self._stepped.removeWidget(step)
            step.deleteLater()

    def _show_tab(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        self._corner.setVisible(self.stepping)
        if index == 1 and self._step is None and self._opening is None:
            self.step_launch(self.launches.current)

    def close_down(self) -> None:
        """Discard the recordings: another run starts, or the page closes."""
        self._opening = None
        self._forget_step()
        if self._folder is not None:
            self._folder.close()
            self._folder = None


def _launches(count: int) -> str:
    return f"{as_count(count)} launch{'' if count == 1 else 'es'}"
