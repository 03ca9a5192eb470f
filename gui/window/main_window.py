"""The main window: create its parts and connect them."""

from __future__ import annotations

import os
from pathlib import Path

from PyQt6.QtCore import QMimeData, QSize, Qt, QTimer
from PyQt6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QResizeEvent
from PyQt6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from gpu.declaration.pattern import Progress
from gpu.distributed.asked import Asked
from gpu.distributed.library import INSTALL, is_installed
from gpu.messages.distributed import is_loss
from gpu.messages.requests import Failure
from gui.editor.drafts import Drafts
from gui.editor.files import ask_target
from gui.editor.unsaved import UnsavedDialog
from gui.lessons.teaching import Teaching
from gui.model.defaults import worth_keeping
from gui.model.jobs import HostFactory, Jobs, engine_host, spelled
from gui.model.records import FinishedRun, OpenImage, OpenValues
from gui.model.settings import SavedSettings
from gui.model.workbench import Workbench
from gui.own_kernel.opened import OwnKernel
from gui.painting.style import style_sheet
from gui.painting.theme import Theme, look, palette
from gui.qt.background import finish_background
from gui.step_view.tab import StepTab
from gui.widgets.ask_file import remember_in
from gui.widgets.banner import Banner
from gui.widgets.basic import Ground, as_count
from gui.window.actions import Actions
from gui.window.appearance import Appearance
from gui.window.cluster_dialog import ClusterDialog, starting
from gui.window.files import Files
from gui.window.header import CLUSTER, WindowHeader
from gui.window.kept_edits import KeptEdits
from gui.window.lecturing import Lecturing
from gui.window.lesson_scenes import show_scene
from gui.window.messages import Messages
from gui.window.pages import Pages
from gui.window.pattern_page import PatternPage
from gui.window.preferences import Preferences
from gui.window.preparation import Preparation
from gui.window.running import Running
from gui.window.sidebar import Sidebar
from gui.window.status_line import StatusLine, Survey, explain, survey_devices

_LEAST_PAGE = 780
"""Minimum page width in pixels, at the normal text size, next to a lesson and the sidebar."""


class MainWindow(QMainWindow):
    """Lockstep's window.

    Parameters
    ----------
    memory : SavedSettings
        The settings of the last session.
    engine : str or Asked
        The engine to start with; "" uses the remembered one.
    factory, survey : callable
        Create the engine's host process, and list devices; replaceable in tests.
    drafts : Drafts
        Where unsaved edits are kept if the window must close.
    """

    def __init__(
        self,
        memory: SavedSettings | None = None,
        engine: str | Asked = "",
        factory: HostFactory = engine_host,
        survey: Survey = survey_devices,
        drafts: Drafts | None = None,
    ) -> None:
        super().__init__()
        self.memory = memory or SavedSettings()
        remember_in(self.memory)
        wanted = engine or self.memory.engine
        self.engine = CLUSTER if isinstance(wanted, Asked) else wanted
        self.jobs = Jobs(factory, self)
        # The engine's process takes a moment to start: it does so while the window is built.
        self.jobs.start(wanted)
        self._side = Jobs(factory, self)
        self.bench = Workbench(self.jobs, self, side=self._side, third=Jobs(factory, self), gpu=self.memory.gpu)
        for name, pattern in self.bench.patterns.items():
            saved = self.memory
            self.bench.restore(name, saved.variant(pattern), saved.params(pattern), saved.chosen(pattern))
        self.appearance = Appearance(self.memory, self)

        self.setWindowTitle("Lockstep")
        self.setMinimumSize(960, 600)
        self.resize(QSize(1280, 720))
        self.setAcceptDrops(True)
        self._discard = False
        self._notes = [self.memory.complaint]
        self.stack = QStackedWidget()
        self.banner = Banner()
        self.status = StatusLine(survey)
        self.messages = Messages(self.status, self.banner)
        self.pages = Pages(self.stack, self.bench, self.memory, self.messages)
        self._programs = Jobs(factory, self)
        self.own = OwnKernel(
            self.stack,
            self.bench.sources,
            lambda: self.bench.side_jobs,
            self.bench.modeling,
            self._programs,
            self.memory,
        )
        self.kept = KeptEdits(drafts or Drafts(), self.bench, self.pages, self.own)
        self.teaching = Teaching(
            self.stack, lambda: self.bench.side_jobs, self.memory, lambda scene: show_scene(self.pages, scene)
        )
        self.preparation = Preparation(self.pages, self.stack, self.bench, self.teaching.lessons)
        self.files = Files(self, self.bench, self.memory, self.pages, self.own, self.teaching, self.messages)
        self.running = Running(self.bench, self.pages, self.own, self.teaching, self.messages)
        self.lecturing = Lecturing(self, self.appearance, self._stepping)
        self.actions_ = Actions(
            self,
            self.memory,
            self.appearance,
            self.files,
            self.own,
            self.pages,
            self.running,
            self.lecturing,
            self.teaching,
        )
        self.header = WindowHeader(self.actions_.menu)
        self.sidebar = Sidebar(self.bench.patterns)
        self._lay_out()
        self._connect_parts()
        self._connect_work()
        self._apply_look()
        self.header.show_engine(self.engine)
        if isinstance(wanted, Asked):
            self.status.show_start(starting(wanted))
        self.header.show_gpu(self.bench.modeling.gpu)
        chosen = self.memory.pattern
        self.pages.show(chosen if chosen in self.bench.patterns else self.bench.chosen)
        if geometry := self.memory.geometry:
            self.restoreGeometry(geometry)

    # --- layout and connections

    def _lay_out(self) -> None:
        middle = Ground()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        # The style sheet sets the margins: a hidden banner leaves no gap.
        column.addWidget(self.kept.banner)
        column.addWidget(self.banner)
        column.addWidget(self.stack, 1)
        body = QHBoxLayout()
        body.setSpacing(0)
        body.addWidget(self.sidebar)
        body.addWidget(self.teaching.pane)
        body.addWidget(middle, 1)
        whole = QWidget()
        layout = QVBoxLayout(whole)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addLayout(body, 1)
        layout.addWidget(self.status)
        self.setCentralWidget(whole)

    def _connect_parts(self) -> None:
        self.header.engine_chosen.connect(self.set_engine)
        self.header.variant_chosen.connect(self.pages.choose_variant)
        self.header.gpu_chosen.connect(self._choose_gpu)
        self.header.run_wanted.connect(self.running.run)
        self.header.stop_wanted.connect(self.running.stop)
        self.sidebar.pattern_chosen.connect(self.pages.choose)
        self.sidebar.image_chosen.connect(self.files.open)
        self.sidebar.open_wanted.connect(self.files.ask_open)
        self.sidebar.open_kernel_wanted.connect(self.own.ask)
        self.sidebar.own_wanted.connect(self.own.show)
        self.sidebar.lessons_wanted.connect(self.teaching.show)
        self.sidebar.preferences_wanted.connect(self._show_preferences)
        self.actions_.preferences_wanted.connect(self._show_preferences)
        self.actions_.menu_wanted.connect(lambda: self.header.menu.showMenu())
        self.appearance.changed.connect(self._apply_look)
        self.status.why_wanted.connect(lambda found: self.banner.say(*explain(found), tone="neutral"))
        self.messages.given_up.connect(lambda: self.header.show_progress(0.0))
        self.pages.shown.connect(self._show_pattern)
        self.pages.variant_chosen.connect(self.header.show_variant)
        self.pages.words_changed.connect(self._name_input)
        self.pages.playing_changed.connect(self._show_busy)
        self.own.appeared.connect(self._show_own)
        self.own.said.connect(self.status.say)
        self.own.warned.connect(self.banner.say)
        self.own.failed.connect(self.messages.show_failure)
        self.own.saved.connect(self.bench.saved)
        self.own.busy_changed.connect(self._show_own_busy)
        self._connect_lessons()

    def _connect_lessons(self) -> None:
        teaching = self.teaching
        lessons = teaching.lessons
        teaching.appeared.connect(self._show_lessons)
        teaching.warned.connect(self.banner.say)
        teaching.pane.appeared.connect(lambda _: self._update_sidebar())
        lessons.busy_changed.connect(self._show_own_busy)
        lessons.shelf_changed.connect(self._show_progress_of_lessons)
        self.pages.page_made.connect(self._offer_lessons)
        self._show_progress_of_lessons()

    def _connect_work(self) -> None:
        bench, failed = self.bench, self.messages.show_failure
        self.jobs.ready.connect(lambda device: self.status.show_device(device, len(self.jobs.workers)))
        self.jobs.noted.connect(self._notes.append)
        self.jobs.ready.connect(self.header.show_device)
        bench.modeling.gpu_changed.connect(self.header.show_gpu)
        self.jobs.broken.connect(self._show_no_engine)
        for jobs in (self.jobs, self._side, self._programs):
            jobs.halted.connect(lambda process, jobs=jobs: self.messages.show_halt(process, jobs.stop))
        self.jobs.busy_changed.connect(self._show_busy)
        bench.clearance.changed.connect(self._show_busy)
        bench.clearance.refused.connect(
            lambda refusal: self.messages.show_refusal(refusal, lambda: bench.run_all_the_same(refusal))
        )
        bench.image_changed.connect(self._show_image)
        bench.values_changed.connect(self._show_values)
        bench.text_changed.connect(self._show_text)
        bench.progressed.connect(self._show_progress)
        bench.sources.sound.connect(lambda: self.banner.over("text"))
        bench.run_finished.connect(self._show_outcome)
        bench.run_failed.connect(lambda failure: failed(failure, "run"))
        bench.problem.connect(failed)
        bench.saved.connect(lambda path: self.status.say(f"Saved {Path(path).name}"))

    def begin(self, image: Path | None = None) -> None:
        """Open the first input, then list samples and look for a GPU."""
        from gpu.files.images import DEFAULT_SAMPLE, sample_images

        samples = sample_images()
        self.sidebar.add_samples(samples)
        self.actions_.add_samples(samples)
        last = self.memory.image
        exists = last is not None and os.path.isfile(last)
        path = image or (last if exists else None) or DEFAULT_SAMPLE
        self.bench.open(path, DEFAULT_SAMPLE)
        self.kept.offer()
        self._ask_for_thumbnails()
        self.status.look_for_gpu()
        self.page.setFocus()

    def _ask_for_thumbnails(self) -> None:
        for path, thumbnail in self.sidebar.thumbnails.items():
            if not thumbnail.has_picture:
                self.bench.reading.thumbnail(path, thumbnail.show_picture)

    # --- called by other parts, and by programs that drive the window

    @property
    def page(self) -> PatternPage:
        """The page of the current pattern."""
        return self.pages.page

    @property
    def at_rest(self) -> bool:
        """Whether the newest settings have been run and checked, and no work is left."""
        bench, settings = self.bench, self.bench.settings[self.bench.chosen]
        outcome = bench.outcomes.get(bench.chosen)
        return not self.jobs.busy and not bench.pending and outcome is not None and outcome.variant == settings.variant

    def _stepping(self) -> StepTab | None:
        """Return the Step tab if it is visible, else None."""
        shown = self.teaching.shown or self.own.shown or self.page
        return shown.step if shown.stepping else None

    def choose_pattern(self, name: str) -> None:
        """Show a pattern's page."""
        self.pages.choose(name)

    def choose_variant(self, name: str) -> None:
        """Run another variant of the pattern."""
        self.pages.choose_variant(name)

    def run(self) -> None:
        """Run the visible page."""
        self.running.run()

    def set_engine(self, name: str) -> None:
        """Switch to another engine; for a cluster, ask which devices."""
        if name == CLUSTER:
            self._ask_for_cluster()
        elif name != self.engine:
            self.memory.engine = name
            self._start(name)

    def _ask_for_cluster(self) -> None:
        self.header.show_engine(self.engine)  # until one is chosen
        if not is_installed():
            self.banner.say(
                "Dask, which is needed to run on several devices, is not installed.", INSTALL, tone="neutral"
            )
            return
        dialog = ClusterDialog(self, self.memory.cluster)
        dialog.chosen.connect(self.set_cluster)
        dialog.open()

    def set_cluster(self, asked: Asked) -> None:
        """Switch to several devices."""
        self.memory.cluster = asked
        self._start(asked)
        self.status.show_start(starting(asked))

    def _start(self, wanted: str | Asked) -> None:
        self.engine = CLUSTER if isinstance(wanted, Asked) else wanted
        self.header.show_engine(self.engine)
        self.banner.hide()
        self.pages.forget_measurements()
        self.jobs.start(wanted)
        self.bench.engine_changed()
        self.pages.study_again()
        self._ask_for_thumbnails()

    # --- events

    def _choose_gpu(self, key: str) -> None:
        self.memory.gpu = key
        self.bench.modeling.choose(key)

    def _apply_look(self) -> None:
        current = look()
        self.setPalette(palette(current.theme))
        self._theme_dialogs(current.theme)
        self.setStyleSheet(style_sheet(current))
        self.header.resize_with_text()
        self.sidebar.resize_with_text()
        self._update_sidebar()
        self.actions_.show_choices(self.memory.theme, self.memory.text_size)

    def _theme_dialogs(self, theme: Theme) -> None:
        """Set the dark or light theme for system dialogs too, where the platform supports both."""
        hints = QGuiApplication.styleHints()
        if hints is not None and hasattr(hints, "setColorScheme"):  # since Qt 6.8
            schemes = {"dark": Qt.ColorScheme.Dark, "light": Qt.ColorScheme.Light}
            hints.setColorScheme(schemes.get(theme.name, Qt.ColorScheme.Unknown))

    def _show_preferences(self) -> None:
        dialog = Preferences(self, self.memory.theme, self.memory.text_size, self.engine)
        dialog.theme_chosen.connect(self.appearance.set_theme)
        dialog.text_size_chosen.connect(self.appearance.set_text_size)
        dialog.engine_chosen.connect(self.set_engine)
        dialog.open()

    def _show_pattern(self, name: str) -> None:
        pattern = self.bench.patterns[name]
        self.sidebar.mark_pattern(name)
        self.sidebar.show_images(pattern.of_images)
        self._name_input()
        self.header.show_pattern(pattern, self.bench.settings[name].variant, self.jobs.device)
        self.actions_.show_variants([variant.title for variant in pattern.variants])

    def _set_title(self, *names: str) -> None:
        """Set the window's title."""
        self.setWindowTitle(" – ".join(dict.fromkeys((*filter(None, names), "Lockstep"))))

    def _show_own(self, title: str, path: Path) -> None:
        self._set_title(path.name, title)
        self.banner.hide()
        self.header.show_own(title, str(path))
        self.sidebar.mark_own(title, path.name)
        self.sidebar.show_images(False)
        self.actions_.show_variants([])

    def _show_lessons(self, title: str) -> None:
        self._set_title(title, "Lessons")
        self.header.show_own("Lessons", title)
        self.sidebar.mark_lessons()
        self.sidebar.show_images(False)
        self.actions_.show_variants([])
        self.status.say("")

    def _update_sidebar(self) -> None:
        """Hide the sidebar while a lesson leaves too little room for it."""
        pane = self.teaching.pane
        pane.resize_with_text(self.width())
        room = self.width() - self.sidebar.width() - pane.width()
        self.sidebar.setVisible(pane.isHidden() or room >= look().px(_LEAST_PAGE))

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._update_sidebar()

    def _show_progress_of_lessons(self) -> None:
        self.sidebar.show_progress(*self.teaching.lessons.progress)
        for page in self.pages.made.values():
            self._name_lesson(page)

    def _offer_lessons(self, page: PatternPage) -> None:
        """Link a page to the lesson about its variant's limit."""
        name = page.pattern.name
        page.idea.shown.connect(lambda _: self._name_lesson(page))
        page.idea.lesson_wanted.connect(lambda variant: self.teaching.open_lifting(name, variant))
        self._name_lesson(page)

    def _name_lesson(self, page: PatternPage) -> None:
        lesson = self.teaching.lessons.lifting(page.pattern.name, page.idea.variant)
        page.idea.show_lesson(lesson.title if lesson is not None else "")

    def _show_own_busy(self, busy: bool) -> None:
        self.header.show_busy(busy)
        self.header.show_progress(None if busy else 0.0)

    def _show_values(self, opened: OpenValues) -> None:
        self.banner.hide()
        self.status.say(f"{opened.path.name}: {as_count(opened.values.size)} numbers")

    def _show_text(self, name: str) -> None:
        self.banner.hide()
        self.status.say(name)

    def _show_image(self, image: OpenImage) -> None:
        self.banner.hide()
        self._show_notes()
        self._name_input()
        self.sidebar.mark_image(image.path)
        self.memory.image = image.path
        if image.path not in self.sidebar.thumbnails:
            self.memory.add_recent(image.path)

    def _show_notes(self) -> None:
        """Report problems with the user's folders once, as soon as the window shows an input."""
        if notes := [note for note in self._notes if note]:
            self.banner.say(notes[0], " ".join(notes[1:]), tone="neutral")
        self._notes.clear()

    def _name_input(self) -> None:
        """Show the input of the current page: of the run, or in the Step tab of the recording."""
        name, details = self.bench.input_words
        self._set_title(name, self.bench.pattern.title)
        step = self.page.step
        if self.page.stepping and not step.of_run:
            name, details = self.bench.recorded_words(step.settings.params, step.taken)
        elif self.page.tabs.currentIndex() and not self.page.stepping:
            details = ""
        self.status.say(f"{name}: {details}" if details else "")

    def _show_progress(self, _: str, progress: Progress) -> None:
        self.header.show_progress(progress.fraction)
        words = spelled(progress)
        if is_loss(progress):
            self.banner.say(words.replace("; ", ": ", 1).rstrip("…") + ".", tone="warn", about=("loss",))
        elif self.jobs.workers and progress.fraction is not None:
            words = f"{progress.message}…"
        if words:
            self.status.say(words)

    def _show_outcome(self, outcome: FinishedRun) -> None:
        self.header.show_progress(0.0)
        self.status.settle()
        self.banner.over("run")
        self.banner.over("loss")
        self.status.show_executor(outcome.report.executor, outcome.report.fallback)

    def _show_busy(self) -> None:
        if self.bench.clearance.under_way:
            self.status.say("Checking the edited kernel on the simulator before the GPU runs it…")
            self.header.show_progress(None)
        self.header.show_busy(self.running.busy)

    def _show_no_engine(self, failure: Failure) -> None:
        self.status.show_no_device()
        self.messages.show_failure(failure)

    # --- dropped files, and closing

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:
        if event is not None and _local_files(event.mimeData()):
            event.acceptProposedAction()
            self.own.prepare()

    def dropEvent(self, event: QDropEvent | None) -> None:
        assert event is not None
        path = _local_files(event.mimeData())[0]
        event.acceptProposedAction()
        # Opened after the drop: the file manager waits for it to return.
        QTimer.singleShot(0, lambda: self.files.open(path))

    def closeEvent(self, event: QCloseEvent | None) -> None:
        unsaved = [] if self._discard else self.kept.lost_in_the_end
        if unsaved and event is not None:
            event.ignore()
            dialog = UnsavedDialog(self, unsaved)
            dialog.save_wanted.connect(self._save_and_close)
            dialog.discard_wanted.connect(self._discard_and_close)
            dialog.open()
            return
        if not self.kept.holds:
            self.kept.forget()
        self.memory.pattern = self.bench.chosen
        for name, settings in self.bench.settings.items():
            self.memory.store_settings(name, settings.variant, worth_keeping(self.bench.patterns[name], settings))
        self.preparation.stop()
        self.pages.close_down()
        self.own.close_down()
        self.teaching.close_down()
        self.memory.geometry = self.saveGeometry()
        self.memory.write()
        self.bench.close()
        super().closeEvent(event)
        self.hide()
        finish_background()

    def leave(self) -> str:
        """Close without a question, as at logout: save edits as drafts, or return the reason why that failed."""
        reason = self.kept.keep()
        self._discard = True
        self.close()
        return reason

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
        self.kept.forget()
        self.close()


def _local_files(dropped: QMimeData | None) -> list[Path]:
    return [Path(url.toLocalFile()) for url in dropped.urls() if url.isLocalFile()] if dropped is not None else []
