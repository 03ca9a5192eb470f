"""The page of a whole program: run it in the simulator, list its launches, and step each of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QHBoxLayout, QLineEdit, QStackedWidget, QWidget

from gpu.base.errors import InputError
from gpu.declaration.pattern import Progress
from gpu.files import scratch
from gpu.messages.compiler_options import parse_compiler_options
from gpu.messages.events import Failure
from gpu.messages.modeled_time import name_with_article
from gpu.messages.programs import SCRIPT_SUFFIX, ProgramEnd, ProgramLaunch, ProgramProgress, RunProgram, WholeProgram
from gpu.timing.gpus import find_gpu
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.request_queue import RequestQueue
from gui.painting.theme import look
from gui.step_view.recording.steppable import CheckedReader
from gui.user_kernel.launch_form import OPTIONS_EXAMPLE, OPTIONS_TIP
from gui.user_kernel.program.launches import LaunchTable, format_extents
from gui.user_kernel.program.results import ProgramResults
from gui.user_kernel.saved_recording import RecordedStepTab
from gui.widgets.basic import Card, ElidedLabel, Ground, button, column, create_tab_bar, format_count, label, row, split

_RUN = "program"
_HOST_CODE_WARNING = (
    "Only its kernels run in the simulator. Its other code runs with your rights, like any program that you start: it "
    "can read, change and delete your files. Run it only if you trust its author."
)
_HINT = "Run the program (F5): its launches are listed here. A double click, or Enter, steps one."


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
    read_checked : callable
        As in `ReadRecording`.
    get_gpu : callable
        Returns the key of the GPU that launches are modeled for, and that the program sees as its device.
    options : str
        The compiler options last used for the file.
    """

    failed = pyqtSignal(object)
    """Failure"""
    busy_changed = pyqtSignal(bool)
    status_changed = pyqtSignal()
    step_tab_created = pyqtSignal(object)
    """The new Step tab of a launch."""
    kernels_requested = pyqtSignal()
    """The user wants to launch the file's kernels without the program."""
    options_changed = pyqtSignal(str)
    confirmation_requested = pyqtSignal(str, str)
    """A question whether to run the file, and what it can do; `trust_and_run` runs it."""
    trusted = pyqtSignal()
    """The user runs the file for the first time."""

    def __init__(
        self,
        path: Path,
        sources: KernelSources,
        jobs: Callable[[], RequestQueue],
        read_checked: CheckedReader,
        get_gpu: Callable[[], str],
        options: str = "",
    ) -> None:
        super().__init__()
        self._get_gpu = get_gpu
        self.path, self.file = path, str(path)
        self.sources, self._jobs, self._read_checked = sources, jobs, read_checked
        self.document = sources.document(self.file)
        self.status_text = "runs on the simulator"
        self.is_trusted = False
        """Whether the user has confirmed that the file's host code may run."""
        self._running_request: RunProgram | None = None
        self._last_request: RunProgram | None = None
        self._folder: scratch.ScratchFolder | None = None
        self._run_count = 0
        self._pending_step: RecordedStepTab | None = None
        self._step: RecordedStepTab | None = None
        self._launch_number = 0
        self.arguments = QLineEdit()
        self.options = QLineEdit(options)
        self.launches = LaunchTable()
        self.step_button = button("Step", "flat", tip="Step through the launch (Enter, or a double click)")
        self.results = ProgramResults()
        self.source = SourcePane(sources)
        self.source.exited.connect(self.setFocus)
        self.source.show_kernel(self.file, "")
        self._lay_out()
        self.arguments.returnPressed.connect(self.run)
        self.options.returnPressed.connect(self.run)
        self.options.editingFinished.connect(lambda: self.options_changed.emit(self.options.text()))
        self.launches.step_requested.connect(self.step_launch)
        self.launches.launch_selected.connect(self._show_launch_counts)
        self.step_button.clicked.connect(lambda: self.step_launch(self.launches.current))
        self.results.line_requested.connect(self.source.code.go_to_line)
        self.results.launch_requested.connect(self.step_launch)
        self.step_button.setEnabled(False)

    def _lay_out(self) -> None:
        listed = self._create_launches_card()
        upper = split(Qt.Orientation.Vertical, listed, self.results, sizes=(look().px(250), look().px(250)))
        left, right = QWidget(), QWidget()
        left.setLayout(column(self._create_arguments_card(), upper))
        right.setLayout(column(self.source))
        self.splitter = split(Qt.Orientation.Horizontal, left, right, sizes=(look().px(660), look().px(450)))
        self._no_step = label("Run the program (F5), then double-click one of its launches.", "muted", name="Hint")
        self._no_step.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._step_stack = QStackedWidget()
        self._step_stack.addWidget(self._no_step)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.splitter)
        self.stack.addWidget(self._step_stack)
        self.setLayout(column(self._create_tab_row(), self.stack, margins=(8, 8, 8, 8), stretch=1))

    def _create_arguments_card(self) -> Card:
        self.arguments.setAccessibleName("Arguments")
        self.arguments.setPlaceholderText("as in a shell")
        card = Card("Program", margins=(12, 8, 12, 8))
        card.title.setText("Arguments")
        card.head.addWidget(self.arguments, 1)
        self.options.setAccessibleName("Compiler options")
        self.options.setPlaceholderText(OPTIONS_EXAMPLE)
        self.options.setToolTip(OPTIONS_TIP)
        self.options_heading = label("Compiler", "caption", name="Heading of the compiler options")
        self.options_heading.setBuddy(self.options)
        card.head.addWidget(self.options_heading)
        card.head.addWidget(self.options, 1)
        for each in (self.options_heading, self.options):
            each.setVisible(not self._is_script)
        return card

    def _create_launches_card(self) -> Card:
        card = Card("Launches", margins=(1, 8, 1, 1))
        card.head.setContentsMargins(12, 0, 8, 0)
        self.count = label("", "caption", name="Number of launches")
        card.head.addWidget(self.count)
        self.device = ElidedLabel("caption", "Device of the program")
        card.head.addWidget(self.device, 1)
        card.head.addWidget(self.step_button)
        self.hint = label(_HINT, "muted", wrap=True, name="Hint")
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setMargin(look().px(16))
        self.launches_stack = QStackedWidget()
        self.launches_stack.addWidget(self.hint)
        self.launches_stack.addWidget(self.launches)
        card.body.addWidget(self.launches_stack, 1)
        return card

    def _create_tab_row(self) -> QHBoxLayout:
        """Return the tabs, the controls of the stepped launch, and the button for a single kernel."""
        self.tabs = create_tab_bar()
        for title in ("Run", "Step"):
            self.tabs.addTab(title)
        self.tabs.currentChanged.connect(self._show_tab)
        self.launch_label = ElidedLabel("caption", "Stepped launch")
        self.previous_button = button("‹", "flat", tip="Step the previous launch", name="Previous launch")
        self.next_button = button("›", "flat", tip="Step the next launch", name="Next launch")
        self.previous_button.clicked.connect(lambda: self.step_launch(self._launch_number - 1))
        self.next_button.clicked.connect(lambda: self.step_launch(self._launch_number + 1))
        self._corner = QWidget()
        corner = row(self.previous_button, self.next_button, self.launch_label)
        corner.setStretchFactor(self.launch_label, 1)
        self._corner.setLayout(corner)
        self._corner.hide()
        self.single_kernel_button = button(
            "One kernel", "flat", tip="Launch one kernel of this file with your own arguments"
        )
        self.single_kernel_button.clicked.connect(self.kernels_requested)
        self.single_kernel_button.setHidden(self._is_script)
        line = row(self.tabs)
        line.addWidget(self._corner, 1)
        line.addStretch(0)
        line.addWidget(self.single_kernel_button)
        return line

    @property
    def _is_script(self) -> bool:
        return self.path.suffix.lower() == SCRIPT_SUFFIX

    @property
    def step(self) -> RecordedStepTab:
        """The Step tab of the current launch; valid while `stepping`."""
        assert self._step is not None, "no launch is stepped"
        return self._step

    @property
    def stepping(self) -> bool:
        """Whether a launch's Step tab is visible."""
        return self._step is not None and self.stack.currentWidget() is self._step_stack

    @property
    def busy(self) -> bool:
        """Whether the program runs."""
        return self._running_request is not None

    # --- running

    def run(self) -> None:
        """Run the current source, if the user trusts the file; a running program is stopped."""
        try:
            words = tuple(shlex.split(self.arguments.text()))
        except ValueError:
            self._fail("The arguments have an unmatched quotation mark.", "Close it, or escape it with \\.")
            return
        try:
            options = parse_compiler_options(self.options.text(), self.path.parent)
        except InputError as error:
            self._fail(error.message, error.advice)
            return
        if not self.is_trusted:
            kind = "script" if self._is_script else "program"
            self.confirmation_requested.emit(f"Run the {kind} {self.path.name}?", _HOST_CODE_WARNING)
            return
        self.stop()
        self.close_down()
        self.tabs.setCurrentIndex(0)
        self._last_request = RunProgram(
            WholeProgram(self.file, self.document.text, words, options), "", gpu=self._get_gpu()
        )
        self.launches.table_model.clear_launches(self._last_request.gpu)
        self._show_device(find_gpu(self._last_request.gpu).name)
        self.hint.setText(_HINT)
        self.launches_stack.setCurrentWidget(self.hint)
        self.step_button.setEnabled(False)
        self.count.setText("")
        self.results.clear_results()
        self.document.show_run(self._last_request.program.text, ())
        self._post(self._last_request)

    def trust_and_run(self) -> None:
        """Run the current source: the user has confirmed that it may run."""
        self.is_trusted = True
        self.trusted.emit()
        self.run()

    def _post(self, request: RunProgram) -> None:
        try:
            folder = self._create_run_folder()
        except InputError as error:
            self._fail(error.message, error.advice)
            return
        request = replace(request, folder=str(folder))
        self._set_running(request)
        self._jobs().post(
            _RUN,
            request,
            lambda event: self._on_program_ended(request, event),
            lambda news: self._on_progress(request, news),
            2,
        )

    def _create_run_folder(self) -> Path:
        if self._folder is None:
            self._folder = scratch.ScratchFolder()
        self._run_count += 1
        folder = Path(self._folder.path, str(self._run_count))
        folder.mkdir()
        return folder

    def stop(self) -> None:
        """Stop the program."""
        if self._running_request is not None:
            self._set_running(None)
            self._jobs().stop()
            self._set_status("was stopped")
            self.results.show_end("Stopped.")

    def _on_progress(self, request: RunProgram, news: Progress) -> None:
        if request is not self._running_request or not isinstance(news, ProgramProgress):
            return
        if request.recorded_launch is not None:
            for launch in news.launches:
                if launch.number == request.recorded_launch:
                    listed = self.launches.sorted_launches[launch.number - 1]
                    self.launches.table_model.replace_launch(replace(listed, recording=launch.recording))
            return
        self.results.output.append_output(news.output)
        if news.current_launch or news.launches:
            self.results.end_label.show_text(f"Running: {news.current_launch}" if news.current_launch else "")
        if not news.launches:
            return
        self.launches.table_model.append_launches(news.launches)
        self.launches_stack.setCurrentWidget(self.launches)
        self.count.setText(_format_launch_count(len(self.launches.sorted_launches)))
        if not self.launches.current:
            self.launches.selectRow(0)
        self.step_button.setEnabled(True)
        self.results.add_launches(news.launches)
        if any(launch.file_diagnostics for launch in news.launches):
            self.document.show_run(request.program.text, self.results.located_findings)

    def _on_program_ended(self, request: RunProgram, event: ProgramEnd | Failure) -> None:
        if request is not self._running_request:
            return
        self._set_running(None)
        if isinstance(event, Failure):
            if event.kind != "cancelled":
                self.results.show_end(event.message)
                self._set_status("did not run")
                self.sources.show_failure(self.file, {self.file: request.program.text}, event)
                self.failed.emit(event)
            return
        if request.recorded_launch is not None:
            self._open_recording(request.recorded_launch)
            return
        nothing = " It launched no kernel." if not event.launches else ""
        if nothing and request.program.is_script:
            nothing = " It launched no kernel; only PyCUDA and CuPy scripts are run here."
        self.hint.setText("The program launched no kernel." if nothing else _HINT)
        self.results.show_end(f"{event.sentence}{nothing}")
        self._set_status(f"ran {event.seconds:.1f} s: {_format_launch_count(event.launches)}. {event.sentence}")

    def _set_running(self, request: RunProgram | None) -> None:
        self._running_request = request
        self.busy_changed.emit(self.busy)

    def _fail(self, message: str, advice: str = "") -> None:
        self.failed.emit(Failure("input", message, advice))

    def _show_device(self, name: str) -> None:
        gpu = name_with_article(name)
        self.device.show_text(f"device: {name}")
        self.device.setToolTip(
            f"The program's queries of its device are answered as for {gpu}: multiprocessors, clock, caches, limits.\n"
            "The next run uses the GPU selected at the top"
        )

    def _set_status(self, text: str) -> None:
        self.status_text = text
        self.status_changed.emit()

    def _show_launch_counts(self, number: int) -> None:
        self.results.show_counts(self.launches.sorted_launches[number - 1])

    # --- stepping

    def step_launch(self, number: int) -> None:
        """Step through a launch; if it is not recorded yet, the program runs again to record it."""
        launches = self.launches.sorted_launches
        if not 1 <= number <= len(launches):
            return
        self.launches.selectRow(number - 1)
        if launches[number - 1].recording:
            self._open_recording(number)
        elif self._last_request is not None and not self.busy:
            self._set_status(f"runs again to record launch {number}…")
            self._post(replace(self._last_request, recorded_launch=number))
        elif self.busy:
            self._fail(
                f"Launch {number} is not recorded yet; the program must run again to record it.",
                "Wait until the program has ended, or stop it.",
            )

    def _open_recording(self, number: int) -> None:
        launch = self.launches.sorted_launches[number - 1]
        if not launch.recording:
            self._fail(f"Launch {number} was not reached when the program ran again, so it cannot be stepped.")
            return
        self._set_status(f"opens launch {number}…")
        tab = self._pending_step = RecordedStepTab(Path(launch.recording), self._read_checked, self._jobs)
        tab.readable.connect(lambda: self._show_step(tab, launch))
        tab.failed.connect(lambda failure: self._on_step_failure(tab, failure))
        tab.record()

    def _show_step(self, tab: RecordedStepTab, launch: ProgramLaunch) -> None:
        if tab is not self._pending_step:
            if tab is not self._step:
                tab.deleteLater()  # another launch was opened meanwhile
            return
        self._pending_step = None
        self._close_step()
        self._step, self._launch_number = tab, launch.number
        self._step_stack.addWidget(tab)
        self._step_stack.setCurrentWidget(tab)
        extents = f"<<<{format_extents(launch.grid)}, {format_extents(launch.block)}>>>"
        self.launch_label.show_text(f"Launch {launch.number}: {launch.kernel} {extents}")
        self.previous_button.setEnabled(launch.number > 1)
        self.next_button.setEnabled(launch.number < len(self.launches.sorted_launches))
        self.step_tab_created.emit(tab)
        self.tabs.setCurrentIndex(1)
        self._set_status(f"steps launch {launch.number} of {len(self.launches.sorted_launches)}")

    def _on_step_failure(self, tab: RecordedStepTab, failure: Failure) -> None:
        if tab is self._pending_step:
            self._pending_step = None
            tab.deleteLater()
        self.failed.emit(failure)

    def _close_step(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.close_down()
            self._step_stack.removeWidget(step)
            step.deleteLater()

    def _show_tab(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        self._corner.setVisible(self.stepping)
        if index == 1 and self._step is None and self._pending_step is None:
            self.step_launch(self.launches.current)

    def close_down(self) -> None:
        """Discard the recordings: another run starts, or the page closes."""
        self._pending_step = None
        self._close_step()
        if self._folder is not None:
            self._folder.close()
            self._folder = None


def _format_launch_count(count: int) -> str:
    return f"{format_count(count)} launch{'' if count == 1 else 'es'}"
