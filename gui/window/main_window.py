"""The window: puts the pieces together and passes on what happens between them."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QSize, QTimer
from PyQt6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PyQt6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from gpu.declaration.pattern import Progress
from gpu.messages.requests import Failure
from gui.editor.clearance import Refusal
from gui.editor.files import ask_target
from gui.editor.unsaved import UnsavedDialog
from gui.own_kernel.opened import OwnKernel
from gui.qt.background import finish_background
from gui.widgets.banner import Banner
from gui.widgets.basic import Ground, as_count
from gui.window.actions import Actions
from gui.window.appearance import Appearance
from gui.window.dialogs import Dialogs
from gui.window.files import Files
from gui.window.header import Header
from gui.window.pages import Pages
from gui.window.pattern_page import PatternPage
from gui.window.sidebar import Sidebar
from gui.window.status_line import StatusLine, Survey, survey_devices
from gui.work.jobs import HostFactory, Jobs, engine_host, spelled
from gui.work.records import LevelCounts, OpenImage, OpenValues, Outcome
from gui.work.settings import Memory
from gui.work.workbench import Workbench


class MainWindow(QMainWindow):
    """Lockstep's window.

    Parameters
    ----------
    memory : Memory
        What is remembered from the last time.
    engine : str
        The engine to start with; "" means the one that is remembered.
    factory, survey : callable
        Make the engine's host and look for devices; tests have their own.
    """

    def __init__(
        self,
        memory: Memory | None = None,
        engine: str = "",
        factory: HostFactory = engine_host,
        survey: Survey = survey_devices,
    ) -> None:
        super().__init__()
        self.memory = memory or Memory()
        self.engine = engine or self.memory.engine
        self.jobs = Jobs(factory, self)
        # The engine's process takes a moment to come up: it does so while the window is built.
        self.jobs.start(self.engine)
        self.bench = Workbench(self.jobs, self, side=Jobs(factory, self))
        for name, pattern in self.bench.patterns.items():
            self.bench.restore(name, self.memory.variant(pattern), self.memory.params(pattern))
        self.appearance = Appearance(self)

        self.setWindowTitle("Lockstep")
        self.setMinimumSize(960, 600)
        self.resize(QSize(1280, 720))
        self.setAcceptDrops(True)
        self._discard = False
        self.files = Files(self)
        self.dialogs = Dialogs(self)
        self.own = OwnKernel(self)
        self.actions_ = Actions(self)
        self.header = Header(self.actions_.menu)
        self.sidebar = Sidebar(self.bench.patterns)
        self.banner = Banner()
        self.status = StatusLine(survey)
        self.stack = QStackedWidget()
        self.pages = Pages(self)
        self._lay_out()
        self._connect()
        self.appearance.apply()
        self.header.show_engine(self.engine)
        chosen = self.memory.pattern
        self._show_page(chosen if chosen in self.bench.patterns else self.bench.chosen)
        if geometry := self.memory.bytes("geometry"):
            self.restoreGeometry(geometry)

    # --- putting together

    def _lay_out(self) -> None:
        middle = Ground()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        # The margins are the style sheet's: a hidden banner leaves no gap.
        column.addWidget(self.banner)
        column.addWidget(self.stack, 1)
        body = QHBoxLayout()
        body.setSpacing(0)
        body.addWidget(self.sidebar)
        body.addWidget(middle, 1)
        whole = QWidget()
        layout = QVBoxLayout(whole)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addLayout(body, 1)
        layout.addWidget(self.status)
        self.setCentralWidget(whole)

    def _connect(self) -> None:
        self.header.engine_chosen.connect(self.set_engine)
        self.header.variant_chosen.connect(self.choose_variant)
        self.header.run_wanted.connect(self.run)
        self.header.stop_wanted.connect(self.stop)
        self.sidebar.pattern_chosen.connect(self.choose_pattern)
        self.sidebar.image_chosen.connect(self.files.open)
        self.sidebar.open_wanted.connect(self.files.ask_open)
        self.sidebar.open_kernel_wanted.connect(self.own.ask)
        self.sidebar.own_wanted.connect(self.own.show)
        self.sidebar.preferences_wanted.connect(self.dialogs.show_preferences)
        self.status.why_wanted.connect(self.dialogs.show_devices)
        self.jobs.ready.connect(self.status.show_device)
        self.jobs.ready.connect(lambda device: self.header.show_libraries(self.bench.pattern, device.no_library))
        self.jobs.broken.connect(self._show_no_engine)
        self.jobs.busy_changed.connect(self.show_busy)
        self.bench.clearance.changed.connect(self.show_busy)
        self.bench.clearance.refused.connect(self._show_refusal)
        self.bench.image_changed.connect(self._show_image)
        self.bench.values_changed.connect(self._show_values)
        self.bench.text_changed.connect(self._show_text)
        self.bench.progressed.connect(self._show_progress)
        self.bench.sources.sound.connect(lambda: self.banner.over("text"))
        self.bench.run_finished.connect(self._show_outcome)
        self.bench.run_failed.connect(lambda failure: self.show_failure(failure, "run"))
        self.bench.counted.connect(self._show_counts)
        self.bench.problem.connect(self.show_failure)
        self.bench.saved.connect(lambda path: self.status.say(f"Saved {Path(path).name}"))

    def begin(self, image: Path | None = None) -> None:
        """Open the first image, then look around: for samples and for a GPU."""
        from gpu.files.images import DEFAULT_SAMPLE, sample_images

        samples = sample_images()
        self.sidebar.add_samples(samples)
        for path in samples:
            action = self.actions_.samples.addAction(path.stem)
            assert action is not None
            action.triggered.connect(lambda _, path=path: self.files.open(path))
        remembered = self.memory.image
        wanted = image or (remembered if remembered is not None and remembered.is_file() else DEFAULT_SAMPLE)
        self.bench.open(wanted, DEFAULT_SAMPLE)
        self._ask_for_thumbnails()
        self.status.look_for_gpu()
        self.page.setFocus()

    def _ask_for_thumbnails(self) -> None:
        for path, thumbnail in self.sidebar.thumbnails.items():
            if not thumbnail.has_picture:
                self.bench.reading.thumbnail(path, thumbnail.show_picture)

    # --- what happens

    @property
    def page(self) -> PatternPage:
        """Return the page that is shown."""
        return self.pages[self.bench.chosen]

    @property
    def at_rest(self) -> bool:
        """Whether the newest settings have been run and checked, and nothing is left to do."""
        bench, settings = self.bench, self.bench.settings[self.bench.chosen]
        outcome = bench.outcomes.get(bench.chosen)
        return not self.jobs.busy and not bench.pending and outcome is not None and outcome.variant == settings.variant

    def _show_page(self, name: str) -> None:
        settings = self.bench.settings[name]
        page = self.pages.placed(name)
        self.bench.chosen = name
        self.stack.setCurrentWidget(page)
        self.sidebar.mark_pattern(name)
        pattern = self.bench.patterns[name]
        self.sidebar.show_images(pattern.of_images)
        self.name_input()
        self.header.show_pattern(pattern, settings.variant, self.jobs.device)
        self.actions_.show_variants([variant.title for variant in pattern.variants])

    def choose_pattern(self, name: str) -> None:
        """Show another pattern's page."""
        if name == self.bench.chosen and name in self.pages:
            self._show_page(name)
            return
        self._show_page(name)
        self.bench.choose_pattern(name)

    def step_pattern(self, by: int) -> None:
        """Go to the next or the previous pattern."""
        names = list(self.bench.patterns)
        self.choose_pattern(names[(names.index(self.bench.chosen) + by) % len(names)])

    def choose_variant(self, name: str) -> None:
        """Run another variant of the pattern."""
        self.header.show_variant(name)
        self.page.show_variant(name)
        self.bench.choose_variant(name)

    def choose_variant_at(self, index: int) -> None:
        """Run the variant of that place in the ladder, where there is one."""
        variants = self.bench.pattern.variants
        if index < len(variants) and self.own.shown is None:
            self.choose_variant(variants[index].name)

    def leave_own_kernel(self) -> None:
        """Show the pattern's page again, where a kernel file of the user's is shown."""
        if self.own.shown is not None:
            self._show_page(self.bench.chosen)

    def _show_values(self, opened: OpenValues) -> None:
        self.banner.hide()
        self.status.say(f"{opened.path.name}: {as_count(opened.values.size)} numbers")
        self.page.show_values(self.bench.settings[self.bench.chosen].params)

    def _show_text(self, name: str) -> None:
        self.banner.hide()
        self.status.say(name)
        self.page.show_values(self.bench.settings[self.bench.chosen].params)

    def _show_image(self, image: OpenImage) -> None:
        self.banner.hide()
        for page in self.pages.values():
            page.show_image(image)
        self.name_input()
        if self.page.pattern.subject is not None:
            self.page.show_values(self.bench.settings[self.bench.chosen].params)
        self.sidebar.mark_image(image.path)
        self.memory.image = image.path
        if image.path not in self.sidebar.thumbnails:
            self.memory.add_recent(image.path)

    def name_input(self) -> None:
        """Say what the pattern that is shown works on, in the Run tab, or in the Step tab what is recorded."""
        name, what = self.bench.input_words
        self.setWindowTitle(f"{name} – Lockstep" if name else "Lockstep")
        step = self.page.step
        if self.page.stepping:
            name, what = self.bench.recorded_words(step.settings.params, step.image.get("image"))
        elif self.page.tabs.currentIndex():
            what = ""
        self.status.say(f"{name}: {what}" if what else "")

    def _show_progress(self, pattern: str, progress: Progress) -> None:
        self.header.show_progress(progress.fraction)
        words = spelled(progress)
        if words:
            self.status.say(words)
        self.pages[pattern].show_progress(words)

    def _show_outcome(self, outcome: Outcome) -> None:
        self.header.show_progress(0.0)
        self.status.settle()
        self.banner.over("run")
        self.status.show_executor(outcome.report.executor, outcome.report.fallback)
        self.pages[outcome.pattern].show_outcome(outcome)
        self.pages.prepare_others()

    def _show_counts(self, counts: LevelCounts) -> None:
        for page in self.pages.values():
            page.show_counts(counts)

    def show_failure(self, failure: Failure, *about: str) -> None:
        """Say what went wrong; all else stays as it was. `about` is a banner's."""
        self.header.show_progress(0.0)
        for page in self.pages.values():
            page.show_progress("")
        if failure.kind == "cancelled":
            self.status.say("Stopped")
            return
        self.status.say("")
        where = f"{failure.position}\n" if failure.position else ""
        text = ("text",) if failure.kind in ("compile", "launch") else ()
        self.banner.say(failure.message, failure.advice, where + failure.detail, about=(*about, *text))

    def show_busy(self) -> None:
        """Show whether anything runs that can be stopped."""
        checking = self.bench.clearance.under_way
        if checking:
            self.status.say("Checking the edited kernel on the simulator before it runs on the GPU…")
            self.header.show_progress(None)
        playing = self.page.bodies is not None and self.page.bodies.playing
        self.header.show_busy(self.jobs.busy or checking or playing)

    def _show_refusal(self, refusal: Refusal) -> None:
        self.status.say("")
        self.banner.say(
            refusal.message,
            "Mend it, or run it: at worst the GPU's process is started anew.",
            refusal.detail,
            tone="warn",
            action=("Run on the GPU all the same", lambda: self.bench.run_all_the_same(refusal)),
            about=("run", "text"),
        )

    def _show_no_engine(self, failure: Failure) -> None:
        self.status.show_no_device()
        self.show_failure(failure)

    def next_problem(self) -> None:
        """Go to what is wrong next in the kernel's text."""
        page = self.own.shown or self.page
        (page.step if page.stepping else page).source.next_problem()

    def run(self) -> None:
        """Run again, and check the result; in the Step tab, record again; in the Compare tab, measure."""
        if self.own.shown is not None:
            self.own.shown.run()
        elif self.page.stepping:
            self.page.step.record()
        elif self.page.comparing is not None:
            self.page.comparing.measure()
        elif self.page.studying is not None:
            self.page.studying.measure()
        else:
            self.bench.run(verify=True)
            if self.page.bodies is not None:
                self.page.bodies.simulation.play(True)

    def stop(self) -> None:
        """Stop what runs; with nothing to stop, close the message."""
        if self.own.page is not None and self.own.page.busy:
            self.own.page.stop()
            self.status.say("Stopped")
        elif self.page.bodies is not None and self.page.bodies.stop():
            self.status.say("Stopped")
        elif self.header.stop.isEnabled():
            if self.page.comparing is not None:
                self.page.comparing.stop()
            self.bench.stop()
        elif (page := self.own.shown or self.page).stepping and page.step.stop():
            self.status.say("Stopped")
        elif page.stepping and page.step.anything_chosen:
            page.step.clear_selection()
        else:
            self.banner.hide()

    def set_engine(self, name: str) -> None:
        """Go on with another engine."""
        if name == self.engine:
            return
        self.engine = self.memory.engine = name
        self.header.show_engine(name)
        self.banner.hide()
        for page in self.pages.values():
            if page.compare is not None:
                page.compare.forget()
        self.jobs.start(name)
        self.bench.engine_changed()
        for page in self.pages.values():
            if page.atomics is not None and self.bench.image is not None:
                page.atomics.show_image(self.bench.image)
        self._ask_for_thumbnails()

    def toggle_scale(self) -> None:
        """Go from linear to logarithmic counts, or back."""
        levels = self.page.view.levels
        if levels is not None:
            levels.set_scale("linear" if levels.scale.chosen == "log" else "log")

    # --- dialogs

    def open_menu(self) -> None:
        """Open the menu from the keyboard."""
        self.header.menu.showMenu()

    # --- files dropped, and the end

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:
        assert event is not None
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:
        assert event is not None
        path = next(Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile())
        event.acceptProposedAction()
        # Opened once the drop is over: the file manager waits for it.
        QTimer.singleShot(0, lambda: self.files.open(path))

    def closeEvent(self, event: QCloseEvent | None) -> None:
        assert event is not None
        unsaved = [] if self._discard else self.bench.sources.unsaved
        if unsaved:
            event.ignore()
            dialog = UnsavedDialog(self, unsaved)
            dialog.save_wanted.connect(self._save_and_close)
            dialog.discard_wanted.connect(self._discard_and_close)
            dialog.open()
            return
        self.memory.pattern = self.bench.chosen
        for name, settings in self.bench.settings.items():
            self.memory.store_settings(name, settings.variant, settings.params)
        self.pages.close_down()
        self.own.close_down()
        self.memory.store_bytes("geometry", self.saveGeometry())
        self.memory.sync()
        self.bench.close()
        super().closeEvent(event)
        self.hide()
        finish_background()

    def _save_and_close(self) -> None:
        for document in self.bench.sources.unsaved:
            target = ask_target(self, document)
            if target is None:
                return
            if reason := document.save(target):
                self.banner.say(reason, "Save it in another folder.")
                return
        self.close()

    def _discard_and_close(self) -> None:
        self._discard = True
        self.close()
