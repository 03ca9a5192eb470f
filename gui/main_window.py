"""The window: puts the pieces together and passes on what happens between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PyQt6.QtCore import QSize, Qt, QTimer
from PyQt6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from gpu.array_files import ENDINGS as NUMBERS
from gpu.jobs import Failure
from gpu.pattern import Progress
from gui.actions import Actions
from gui.banner import Banner
from gui.bodies_view.files import BODY_FILES, TIPSY
from gui.bodies_view.view import BodiesView
from gui.editor.clearance import Refusal
from gui.editor.files import ask_target
from gui.editor.unsaved import UnsavedDialog
from gui.files import Files
from gui.header import Header
from gui.jobs import HostFactory, Jobs, engine_host
from gui.notice import Notice
from gui.own_kernel.opened import ENDINGS, OwnKernel
from gui.pattern_page import PatternPage
from gui.settings import Memory
from gui.sidebar import Sidebar
from gui.status_line import StatusLine, Survey, explain, survey_devices
from gui.style import style_sheet
from gui.theme import FONT_SIZES, THEMES, Look, look, palette, set_look
from gui.widgets import as_count, role
from gui.workbench import LevelCounts, OpenImage, OpenValues, Outcome, Workbench

REST_MS = 1000
"""How long nothing has been left to do when what may come next is prepared."""


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
        set_look(Look(THEMES[self.memory.theme], FONT_SIZES[self.memory.text_size]))

        self.setWindowTitle("Lockstep")
        self.setMinimumSize(960, 600)
        self.resize(QSize(1280, 720))
        self.setAcceptDrops(True)
        self.pages: dict[str, PatternPage] = {}
        self._discard = False
        self.files = Files(self)
        self.own = OwnKernel(self)
        self.actions_ = Actions(self)
        self.header = Header(self.actions_.menu)
        self.sidebar = Sidebar(self.bench.patterns)
        self.banner = Banner()
        self.status = StatusLine(survey)
        self.stack = QStackedWidget()
        self._idle = QTimer(self, interval=150)
        self._idle.timeout.connect(self._prepare_pages)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self._rehearse)
        self._lay_out()
        self._connect()
        self._apply_look()
        self.header.show_engine(self.engine)
        chosen = self.memory.pattern
        self._show_page(chosen if chosen in self.bench.patterns else self.bench.chosen)
        if geometry := self.memory.bytes("geometry"):
            self.restoreGeometry(geometry)

    # --- putting together

    def _lay_out(self) -> None:
        middle = QWidget()
        role(middle, "canvas")
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
        self.sidebar.image_chosen.connect(self.open)
        self.sidebar.open_wanted.connect(self.files.ask_open)
        self.sidebar.open_kernel_wanted.connect(self.own.ask)
        self.sidebar.own_wanted.connect(self.own.show)
        self.sidebar.preferences_wanted.connect(self.show_preferences)
        self.status.why_wanted.connect(self.show_devices)
        self.jobs.ready.connect(self.status.show_device)
        self.jobs.broken.connect(self._show_no_engine)
        self.jobs.busy_changed.connect(self._show_busy)
        self.bench.clearance.changed.connect(self._show_busy)
        self.bench.clearance.refused.connect(self._show_refusal)
        self.bench.image_changed.connect(self._show_image)
        self.bench.values_changed.connect(self._show_values)
        self.bench.text_changed.connect(self._show_text)
        self.bench.progressed.connect(self._show_progress)
        self.bench.run_finished.connect(self._show_outcome)
        self.bench.run_failed.connect(self.show_failure)
        self.bench.counted.connect(self._show_counts)
        self.bench.problem.connect(self.show_failure)
        self.bench.saved.connect(lambda path: self.status.say(f"Saved {Path(path).name}"))

    def begin(self, image: Path | None = None) -> None:
        """Open the first image, then look around: for samples and for a GPU."""
        from gpu.images import DEFAULT_SAMPLE, sample_images

        samples = sample_images()
        self.sidebar.add_samples(samples)
        for path in samples:
            action = self.actions_.samples.addAction(path.stem)
            assert action is not None
            action.triggered.connect(lambda _, path=path: self.open(path))
        remembered = self.memory.image
        wanted = image or (remembered if remembered is not None and remembered.is_file() else DEFAULT_SAMPLE)
        self.bench.open(wanted, DEFAULT_SAMPLE)
        self._ask_for_thumbnails()
        self.status.look_for_gpu()
        self.page.setFocus()

    def _ask_for_thumbnails(self) -> None:
        for path, thumbnail in self.sidebar.thumbnails.items():
            if not thumbnail.has_picture:
                self.bench.thumbnail(path, thumbnail.show_picture)

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
        page = self.pages.get(name) or self._make_page(name)
        if self.stack.indexOf(page) < 0:
            self.stack.addWidget(page)
        self.bench.chosen = name
        self.stack.setCurrentWidget(page)
        self.sidebar.mark_pattern(name)
        pattern = self.bench.patterns[name]
        self.sidebar.show_images(pattern.of_images)
        self._name_input()
        self.header.show_pattern(pattern, settings.variant)
        self.actions_.show_variants([variant.title for variant in pattern.variants])

    def _make_page(self, name: str) -> PatternPage:
        page = self.pages[name] = PatternPage(
            self.bench.patterns[name],
            self.bench.settings[name],
            self.bench.sources,
            lambda: self.bench.side_jobs,
            self.jobs,
        )
        page.params_changed.connect(self.bench.choose_params)
        if page.compare is not None:
            page.compare.failed.connect(lambda message, advice: self.banner.say(message, advice, tone="neutral"))
        if isinstance(page.view, BodiesView):
            self._connect_bodies(page.view)
        if page.atomics is not None:
            page.atomics.failed.connect(lambda message, advice: self.banner.say(message, advice, tone="neutral"))
        page.variant_wanted.connect(self.choose_variant)
        page.step.settings.restore(*self.memory.step(page.pattern))
        page.step.record_soon()
        page.step.exports.said.connect(self.status.say)
        page.step.exports.failed.connect(self.banner.say)
        for source in (page.source, page.step.source):
            source.failed.connect(self.banner.say)
            source.saved.connect(self.bench.saved)
        if page.view.levels is not None:
            page.view.levels.set_scale(self.memory.scale)
            page.view.levels.scale.group.buttonToggled.connect(self._remember_scale)
        for key, splitter in self._splitters(page).items():
            if state := self.memory.bytes(f"{name}/{key}"):
                splitter.restoreState(state)
        if self.bench.image is not None:
            page.show_image(self.bench.image)
        return page

    def _connect_bodies(self, view: BodiesView) -> None:
        view.said.connect(self.status.say)
        view.failed.connect(self.show_failure)
        view.simulation.playing_changed.connect(self.bench.set_live)
        view.simulation.playing_changed.connect(self._show_busy)

    def _prepare_pages(self) -> None:
        """Make the pages that have not been seen yet, a step at a time, so that going there takes no time."""
        unseen = next((name for name in self.bench.patterns if name not in self.pages), None)
        unplaced = next((page for page in self.pages.values() if self.stack.indexOf(page) < 0), None)
        if unplaced is not None:
            self.stack.addWidget(unplaced)
        elif unseen is not None:
            self._make_page(unseen)
        else:
            self._idle.stop()
            self._rest.start()

    def _rehearse(self) -> None:
        """Start the simulator that steps while nobody waits for it; the process of a run comes first."""
        if self.bench.side_started:
            return
        if self.jobs.busy or self.bench.pending:
            self._rest.start()
        else:
            self.page.step.rehearse()

    @staticmethod
    def _splitters(page: PatternPage) -> dict[str, Any]:
        return {"page": page.splitter, "view": page.view.splitter}

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

    def open(self, path: Path) -> None:
        """Open an image, a kernel, or numbers where a pattern of arrays is shown; if it cannot be read all stays."""
        if path.suffix.lower() in ENDINGS:
            self.own.open(path)
            return
        self.status.say(f"Opening {path.name}…")
        if self.own.shown is not None:
            self._show_page(self.bench.chosen)
        suffix, view = path.suffix.lower(), self.bench.pattern.view
        if suffix in TIPSY or (suffix in BODY_FILES and view == "bodies"):
            self._choose_for("bodies")
            if isinstance(self.page.view, BodiesView):
                self.page.tabs.setCurrentIndex(0)
                self.page.view.files.open(path)
            return
        if self.bench.holds_text(path):
            self.bench.open_text(path)
            return
        if (
            suffix in NUMBERS
            and (self.bench.pattern.of_images or view == "bodies")
            and not self.bench.holds_numbers(path)
        ):
            self._choose_for("array")
        if self.bench.holds_numbers(path):
            self.bench.open_values(path)
            return
        if not self.bench.pattern.of_images:
            self.choose_pattern(next(name for name, each in self.bench.patterns.items() if each.of_images))
        self.bench.open(path)

    def _choose_for(self, view: str) -> None:
        """Show a pattern of that kind, unless one is shown."""
        if self.bench.pattern.view != view:
            self.choose_pattern(next(name for name, each in self.bench.patterns.items() if each.view == view))

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
        self._name_input()
        for page in self.pages.values():
            page.show_image(image)
        if self.page.pattern.input_kind is not None:
            self.page.show_values(self.bench.settings[self.bench.chosen].params)
        self.sidebar.mark_image(image.path)
        self.memory.image = image.path
        if image.path not in self.sidebar.thumbnails:
            self.memory.add_recent(image.path)

    def _name_input(self) -> None:
        """Say what the pattern that is shown works on."""
        name, what = self.bench.input_words
        self.setWindowTitle(f"{name} – Lockstep" if name else "Lockstep")
        self.status.say(f"{name}: {what}" if what else "")

    def _show_progress(self, progress: Progress) -> None:
        self.header.show_progress(progress.fraction)
        if progress.fraction is None and progress.message:
            self.status.say(f"{progress.message[0].upper()}{progress.message[1:]}…")

    def _show_outcome(self, outcome: Outcome) -> None:
        self.header.show_progress(0.0)
        self.status.show_executor(outcome.report.executor, outcome.report.fallback)
        self.pages[outcome.pattern].show_outcome(outcome)
        if len(self.pages) < len(self.bench.patterns):
            self._idle.start()

    def _show_counts(self, counts: LevelCounts) -> None:
        wanted = "image-counts" if counts.side == "right" else "filtered-image"
        for page in self.pages.values():
            if page.pattern.view == wanted:
                page.show_counts(counts)

    def show_failure(self, failure: Failure) -> None:
        """Say what went wrong; all else stays as it was."""
        self.header.show_progress(0.0)
        if failure.kind == "cancelled":
            self.status.say("Stopped")
            return
        self.status.say("")
        where = f"{failure.position}\n" if failure.position else ""
        self.banner.say(failure.message, failure.advice, where + failure.detail)

    def _show_busy(self) -> None:
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

    # --- looks

    def _apply_look(self) -> None:
        now = look()
        self.setPalette(palette(now.theme))
        self.setStyleSheet(style_sheet(now))
        self.header.resize_with_text()
        self.sidebar.resize_with_text()
        self.actions_.show_choices(self.memory.theme, self.memory.text_size)

    def set_theme(self, name: str) -> None:
        """Show the window in another theme."""
        self.memory.theme = name
        set_look(Look(THEMES[name], look().text_px))
        self._apply_look()

    def toggle_theme(self) -> None:
        """Go from dark to light, or back."""
        self.set_theme("light" if self.memory.theme == "dark" else "dark")

    def set_text_size(self, name: str) -> None:
        """Show all text larger or smaller."""
        self.memory.text_size = name
        set_look(Look(look().theme, FONT_SIZES[name]))
        self._apply_look()

    def step_text_size(self, by: int) -> None:
        """Take the next larger or smaller text."""
        names = list(FONT_SIZES)
        self.set_text_size(names[min(max(names.index(self.memory.text_size) + by, 0), len(names) - 1)])

    def toggle_scale(self) -> None:
        """Go from linear to logarithmic counts, or back."""
        levels = self.page.view.levels
        if levels is not None:
            levels.set_scale("linear" if levels.scale.chosen == "log" else "log")

    def _remember_scale(self, chosen: Any, on: bool) -> None:
        if on:
            self.memory.scale = chosen.text()
            for page in self.pages.values():
                if page.view.levels is not None:
                    page.view.levels.set_scale(chosen.text())

    def toggle_full_screen(self) -> None:
        """Fill the screen, or leave it."""
        self.showNormal() if self.isFullScreen() else self.showFullScreen()

    # --- dialogs

    def open_menu(self) -> None:
        """Open the menu from the keyboard."""
        self.header.menu.showMenu()

    def show_preferences(self) -> None:
        """Show the preferences; the window goes on meanwhile."""
        from gui.preferences import Preferences

        dialog = Preferences(self, self.memory.theme, self.memory.text_size, self.engine)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.theme_chosen.connect(self.set_theme)
        dialog.text_size_chosen.connect(self.set_text_size)
        dialog.engine_chosen.connect(self.set_engine)
        dialog.open()

    def show_devices(self, found: list[Any]) -> None:
        """Say what engines there are, and what the others lack."""
        self.banner.say(*explain(found), tone="neutral")

    def show_shortcuts(self) -> None:
        """List the keys."""
        rows = "".join(
            f"<tr><td style='padding: 3px 24px 3px 0'><b>{key}</b></td><td style='padding: 3px 0'>{text}</td></tr>"
            for key, text in self.actions_.shortcuts()
        )
        Notice(self, "Keyboard", f"<table>{rows}</table>").open()

    def show_about(self) -> None:
        """Say what this is."""
        text = (
            "Shows how parallel algorithms run on a GPU.<br><br>The kernels are ordinary CUDA C++: they run on an "
            "NVIDIA GPU through PyCUDA, or on a SIMT simulator that reads the same files."
        )
        Notice(self, "About Lockstep", text).open()

    # --- files dropped, and the end

    def dragEnterEvent(self, event: Any) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        path = next(Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile())
        event.acceptProposedAction()
        # Opened once the drop is over: the file manager waits for it.
        QTimer.singleShot(0, lambda: self.open(path))

    def closeEvent(self, event: Any) -> None:
        unsaved = [] if self._discard else self.bench.sources.unsaved
        if unsaved:
            event.ignore()
            dialog = UnsavedDialog(self, unsaved)
            dialog.save_wanted.connect(self._save_and_close)
            dialog.discard_wanted.connect(self._discard_and_close)
            dialog.open()
            return
        self._idle.stop()
        self._rest.stop()
        self.memory.pattern = self.bench.chosen
        for name, settings in self.bench.settings.items():
            self.memory.store_settings(name, settings.variant, settings.params)
        for name, page in self.pages.items():
            self.memory.store_step(name, page.step.settings.params, page.step.settings.schedule)
            for key, splitter in self._splitters(page).items():
                self.memory.store_bytes(f"{name}/{key}", splitter.saveState())
        self.memory.store_bytes("geometry", self.saveGeometry())
        self.memory.sync()
        for page in self.pages.values():
            page.step.close_down()
            if isinstance(page.view, BodiesView):
                page.view.close_down()
        self.bench.close()
        super().closeEvent(event)

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
