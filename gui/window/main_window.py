"""The main window: create its parts and connect them."""

from __future__ import annotations

import os
from pathlib import Path

from PyQt6.QtCore import QMimeData, QSize, Qt, QTimer
from PyQt6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QResizeEvent
from PyQt6.QtWidgets import QMainWindow, QStackedWidget, QWidget

from gpu.declaration.pattern import Progress
from gpu.distributed.cluster.dask_import import INSTALL_ADVICE, is_installed
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.messages.events import Failure
from gpu.messages.runs.distributed_run import is_loss
from gui.editor.drafts import Drafts
from gui.editor.files import choose_save_target
from gui.editor.unsaved_dialog import UnsavedDialog
from gui.lessons.presenter import LessonPresenter
from gui.model.defaults import select_params_to_save
from gui.model.records import FinishedRun, OpenImage, OpenValues
from gui.model.request_queue import HostFactory, RequestQueue, create_engine_host, describe_progress
from gui.model.sequences import list_builtin_sequences
from gui.model.settings import SavedSettings
from gui.model.workbench import Workbench
from gui.painting.style import style_sheet
from gui.painting.theme import Theme, look, palette
from gui.qt.background import finish_background
from gui.step_view.tab import StepTab
from gui.user_kernel.user_file import UserFile, is_recording
from gui.widgets.banner import Banner
from gui.widgets.basic import Ground, column, format_count, row
from gui.widgets.file_dialogs import set_folder_memory
from gui.window.actions import Actions
from gui.window.appearance import Appearance
from gui.window.cluster_dialog import ClusterDialog, describe_cluster_start
from gui.window.files import FileOpeners, Files
from gui.window.header import CLUSTER, WindowHeader
from gui.window.lecture_mode import LectureMode
from gui.window.messages import Messages
from gui.window.pages.draft_recovery import DraftRecovery
from gui.window.pages.lesson_scenes import show_scene
from gui.window.pages.page_stack import Pages
from gui.window.pages.pattern_page import PatternPage
from gui.window.pages.preparation import Preparation
from gui.window.pages.run_actions import RunActions
from gui.window.preferences import Preferences
from gui.window.sequences.moments import MomentDisplay
from gui.window.sequences.player import SequencePlayer
from gui.window.sequences.presenter import PresenterWindow
from gui.window.sidebar import Sidebar
from gui.window.start_dialog import StartDialog
from gui.window.status_line import StatusLine, Survey, describe_engines, survey_devices

_MIN_PAGE_WIDTH = 780
"""Minimum page width in pixels, at the normal text size, next to a lesson and the sidebar."""


class MainWindow(QMainWindow):
    """Lockstep's window.

    Parameters
    ----------
    saved_settings : SavedSettings
        The settings of the last session.
    engine : str or ClusterSettings
        The engine to start with; "" uses the remembered one.
    factory, survey : callable
        Create the engine's host process, and list devices; replaceable in tests.
    drafts : Drafts
        Where unsaved edits are kept if the window must close.
    """

    def __init__(
        self,
        saved_settings: SavedSettings | None = None,
        engine: str | ClusterSettings = "",
        factory: HostFactory = create_engine_host,
        survey: Survey = survey_devices,
        drafts: Drafts | None = None,
    ) -> None:
        super().__init__()
        self.setWindowTitle("Lockstep")
        self.setMinimumSize(960, 600)
        self.resize(QSize(1280, 720))
        self.setAcceptDrops(True)
        self.saved_settings = saved_settings or SavedSettings()
        set_folder_memory(self.saved_settings)
        self._discards_edits = False
        self._pending_warnings = [self.saved_settings.problem_message]
        engine_setting = engine or self.saved_settings.engine
        self.engine = CLUSTER if isinstance(engine_setting, ClusterSettings) else engine_setting
        self._create_queues(engine_setting, factory)
        self.appearance = Appearance(self.saved_settings, self)
        self.stack = QStackedWidget()
        self.banner = Banner()
        self.status = StatusLine(survey)
        self.messages = Messages(self.status, self.banner)
        self._create_pages(drafts or Drafts())
        self._create_lecture_parts()
        self._create_actions()
        self._lay_out()
        self._connect_parts()
        self._connect_work()
        self._apply_look()
        self._show_saved_state(engine_setting)

    # --- creation

    def _create_queues(self, engine: str | ClusterSettings, factory: HostFactory) -> None:
        """Start the engine's process, and create the other queues and the workbench with the saved settings."""
        self.jobs = RequestQueue(factory, self)
        # The engine's process takes a moment to start: it does so while the window is built.
        self.jobs.start(engine)
        self._side_jobs, modeling_jobs, self._programs = (RequestQueue(factory, self) for _ in range(3))
        saved = self.saved_settings
        self.bench = Workbench(self.jobs, self, side=self._side_jobs, modeling_jobs=modeling_jobs, gpu=saved.gpu)
        for name, pattern in self.bench.patterns.items():
            self.bench.restore(name, saved.variant(pattern), saved.params(pattern), saved.list_saved_params(pattern))

    def _create_pages(self, drafts: Drafts) -> None:
        """Create the pages of patterns, of the user's file and of lessons, which share the stack."""
        bench = self.bench
        self.pages = Pages(self.stack, bench, self.saved_settings, self.messages)
        self.user_file = UserFile(
            self.stack, bench.sources, lambda: bench.side_jobs, bench.modeling, self._programs, self.saved_settings
        )
        self.draft_recovery = DraftRecovery(drafts, bench, self.pages, self.user_file)
        self.teaching = LessonPresenter(
            self.stack, lambda: bench.side_jobs, self.saved_settings, lambda scene: show_scene(self.pages, scene)
        )
        self.preparation = Preparation(
            self.pages, self.stack, bench, self.teaching.lessons, lambda: self.lecturing.view is not None
        )

    def _create_lecture_parts(self) -> None:
        self.lecturing = LectureMode(self, self.appearance, self._find_step_tab, self.teaching.pane)
        display = MomentDisplay(self.bench, self.pages, self.lecturing)
        self.sequences = SequencePlayer(self, self.bench, display, self._find_pattern_page, self.messages)
        self.presenter: PresenterWindow | None = None
        """The presenter's window, created on first use."""

    def _create_actions(self) -> None:
        """Create the actions, and the header and the sidebar that offer them."""
        openers = FileOpeners(self.user_file, self.teaching, self.sequences)
        self.files = Files(self, self.bench, self.saved_settings, self.pages, openers, self.messages)
        self.running = RunActions(self.bench, self.pages, self.user_file, self.teaching, self.messages)
        self.window_actions = Actions(
            self, self.files, openers, self.appearance, self.pages, self.running, self.lecturing
        )
        self.header = WindowHeader(self.window_actions.menu)
        self.sidebar = Sidebar(self.bench.patterns)

    def _show_saved_state(self, engine: str | ClusterSettings) -> None:
        """Show the engine, and the GPU, pattern and geometry of the last session."""
        self.header.show_engine(self.engine)
        if isinstance(engine, ClusterSettings):
            self.status.show_start(describe_cluster_start(engine))
        self.header.show_gpu(self.bench.modeling.gpu)
        chosen = self.saved_settings.pattern
        self.pages.show_page(chosen if chosen in self.bench.patterns else self.bench.pattern_name)
        if geometry := self.saved_settings.geometry:
            self.restoreGeometry(geometry)

    # --- layout and connections

    def _lay_out(self) -> None:
        middle = Ground()
        # The style sheet sets the margins: a hidden banner leaves no gap.
        middle.setLayout(column(self.draft_recovery.banner, self.banner, self.stack, spacing=0, stretch=2))
        body_widget = QWidget()  # its layout lends the lesson to a lecture
        body_widget.setLayout(row(self.sidebar, self.teaching.pane, middle, spacing=0, stretch=2))
        central_widget = QWidget()
        central_widget.setLayout(column(self.header, body_widget, self.status, spacing=0, stretch=1))
        self.setCentralWidget(central_widget)

    def _connect_parts(self) -> None:
        self.header.engine_chosen.connect(self.set_engine)
        self.header.variant_chosen.connect(self.pages.choose_variant)
        self.header.gpu_chosen.connect(self._choose_gpu)
        self.header.run_requested.connect(self.running.run)
        self.header.stop_requested.connect(self.running.stop)
        self.sidebar.pattern_chosen.connect(self.pages.choose_pattern)
        self.sidebar.image_chosen.connect(self.files.open_file)
        self.sidebar.open_requested.connect(self.files.choose_and_open)
        self.sidebar.open_kernel_requested.connect(self.user_file.choose_and_open)
        self.sidebar.user_file_requested.connect(self.user_file.show_page)
        self.sidebar.lessons_requested.connect(self.teaching.show_current_lesson)
        self.sidebar.preferences_requested.connect(self._show_preferences)
        self.window_actions.preferences_requested.connect(self._show_preferences)
        self.window_actions.presenter_requested.connect(self._show_presenter)
        self.window_actions.menu_requested.connect(lambda: self.header.menu.showMenu())
        self.appearance.changed.connect(self._apply_look)
        self.status.explanation_requested.connect(
            lambda found: self.banner.show_message(*describe_engines(found), tone="neutral")
        )
        self.messages.work_ended.connect(lambda: self.header.show_progress(0.0))
        self.pages.page_shown.connect(self._show_pattern)
        self.pages.variant_chosen.connect(self.header.show_variant)
        self.pages.input_description_changed.connect(self._show_input_description)
        self.pages.playing_changed.connect(self._show_busy)
        self.user_file.page_shown.connect(self._show_own)
        self.user_file.status_message.connect(self.status.show_message)
        self.user_file.warned.connect(
            lambda message, advice: self.banner.show_message(message, advice, topics=("user file",))
        )
        self.user_file.confirmation_requested.connect(self.messages.ask_to_run)
        self.user_file.failed.connect(lambda failure: self.messages.show_failure(failure, "user file"))
        self.user_file.saved.connect(self.bench.saved)
        self.user_file.busy_changed.connect(self._show_own_busy)
        self._connect_lessons()

    def _connect_lessons(self) -> None:
        teaching = self.teaching
        lessons = teaching.lessons
        teaching.lesson_shown.connect(self._show_lessons)
        teaching.warned.connect(self.banner.show_message)
        teaching.sequence_requested.connect(self.sequences.open)
        teaching.pane.visibility_changed.connect(lambda _: self._update_sidebar())
        lessons.busy_changed.connect(self._show_own_busy)
        lessons.shelf_changed.connect(self._show_lesson_progress)
        self.pages.page_created.connect(self._connect_lesson_link)
        self._show_lesson_progress()

    def _connect_work(self) -> None:
        bench, failed = self.bench, self.messages.show_failure
        self.jobs.ready.connect(lambda device: self.status.show_device(device, len(self.jobs.workers)))
        self.jobs.warning_reported.connect(self._pending_warnings.append)
        self.jobs.ready.connect(self.header.show_device)
        bench.modeling.gpu_changed.connect(self.header.show_gpu)
        self.jobs.engine_failed.connect(self._show_no_engine)
        for jobs in (self.jobs, self._side_jobs, self._programs):
            jobs.halted.connect(lambda process, jobs=jobs: self.messages.show_halt(process, jobs.stop))
        self.jobs.busy_changed.connect(self._show_busy)
        bench.clearance.pending_changed.connect(self._show_busy)
        bench.clearance.refused.connect(
            lambda refusal: self.messages.show_refusal(refusal, lambda: bench.run_despite_refusal(refusal))
        )
        bench.image_changed.connect(self._show_image)
        bench.values_changed.connect(self._show_values)
        bench.text_changed.connect(self._show_text)
        bench.progressed.connect(self._show_progress)
        bench.sources.errors_cleared.connect(lambda: self.banner.hide_topic("text"))
        bench.run_finished.connect(self._show_outcome)
        bench.run_failed.connect(lambda failure: failed(failure, "run"))
        bench.failed.connect(lambda failure: failed(failure, "input file"))
        bench.saved.connect(lambda path: self.status.show_message(f"Saved {Path(path).name}"))

    def show_start(self) -> None:
        """Offer ways to begin, for someone who starts Lockstep for the first time."""
        StartDialog(
            self,
            (
                (
                    "New to GPUs",
                    "Short lessons with figures, questions and tasks, from the first thread on.",
                    "Open lesson 1",
                    self.teaching.open_first_lesson,
                ),
                (
                    "Giving a lecture",
                    "Prepared moments with notes. N shows the next one, F11 fills the screen, F12 shows the notes.",
                    "Open a lecture on reduction",
                    lambda: self.sequences.open(list_builtin_sequences()[0][1]),
                ),
                (
                    "I have a kernel, a program or a PyCUDA script",
                    "It runs unchanged in the simulator, which checks it for races and invalid accesses.",
                    "Open a file…",
                    self.user_file.choose_and_open,
                ),
            ),
        ).show()

    def load_first_input(self, image: Path | None = None) -> None:
        """Open the first input, then list samples and look for a GPU."""
        from gpu.files.images import DEFAULT_SAMPLE, sample_images

        samples = sample_images()
        self.sidebar.add_samples(samples)
        self.window_actions.add_samples(samples)
        last = self.saved_settings.image
        exists = last is not None and os.path.isfile(last)
        path = image or (last if exists else None) or DEFAULT_SAMPLE
        self.bench.open_image(path, DEFAULT_SAMPLE)
        self.draft_recovery.offer_drafts()
        self._load_thumbnails()
        self.status.look_for_gpu()
        self.page.setFocus()

    def _load_thumbnails(self) -> None:
        for path, thumbnail in self.sidebar.thumbnails.items():
            if not thumbnail.has_picture:
                self.bench.file_jobs.read_thumbnail(path, thumbnail.show_picture)

    # --- called by other parts, and by programs that drive the window

    @property
    def page(self) -> PatternPage:
        """The page of the current pattern."""
        return self.pages.page

    @property
    def is_idle(self) -> bool:
        """Whether the newest settings have been run and checked, and no work is left."""
        bench, settings = self.bench, self.bench.settings[self.bench.pattern_name]
        outcome = bench.outcomes.get(bench.pattern_name)
        return not self.jobs.busy and not bench.pending and outcome is not None and outcome.variant == settings.variant

    def _find_step_tab(self) -> StepTab | None:
        """Return the Step tab if it is visible, else None."""
        visible_page = self.teaching.visible_page or self.user_file.visible_page or self.page
        return visible_page.step if visible_page.stepping else None

    def _find_pattern_page(self) -> PatternPage | None:
        """Return the current pattern's page if it is visible, else None."""
        return self.page if self.pages.is_visible(self.bench.pattern_name) else None

    def _show_presenter(self) -> None:
        """Show the presenter's window, or hide it."""
        if self.presenter is None:
            self.presenter = PresenterWindow(self, self.sequences, self.lecturing.press_key)
            self.presenter.addActions(self.window_actions.lecture_actions)
        self.presenter.open()

    def choose_pattern(self, name: str) -> None:
        """Show a pattern's page."""
        self.pages.choose_pattern(name)

    def choose_variant(self, name: str) -> None:
        """Run another variant of the pattern."""
        self.pages.choose_variant(name)

    def run(self) -> None:
        """Run the visible page."""
        self.running.run()

    def set_engine(self, name: str) -> None:
        """Switch to another engine; for a cluster, ask which devices."""
        if name == CLUSTER:
            self._show_cluster_dialog()
        elif name != self.engine:
            self.saved_settings.engine = name
            self._start_engine(name)

    def _show_cluster_dialog(self) -> None:
        self.header.show_engine(self.engine)  # until one is chosen
        if not is_installed():
            self.banner.show_message(
                "Dask, which is needed to run on several devices, is not installed.", INSTALL_ADVICE, tone="neutral"
            )
            return
        dialog = ClusterDialog(self, self.saved_settings.cluster)
        dialog.accepted_request.connect(self.set_cluster)
        dialog.open()

    def set_cluster(self, request: ClusterSettings) -> None:
        """Switch to several devices."""
        self.saved_settings.cluster = request
        self._start_engine(request)
        self.status.show_start(describe_cluster_start(request))

    def _start_engine(self, engine: str | ClusterSettings) -> None:
        self.engine = CLUSTER if isinstance(engine, ClusterSettings) else engine
        self.header.show_engine(self.engine)
        self.banner.hide()
        self.pages.clear_measurements()
        self.jobs.start(engine)
        self.bench.on_engine_changed()
        self.pages.repeat_atomics_study()
        self._load_thumbnails()

    # --- events

    def _choose_gpu(self, key: str) -> None:
        self.saved_settings.gpu = key
        self.bench.modeling.select_gpu(key)

    def _apply_look(self) -> None:
        current = look()
        self.setPalette(palette(current.theme))
        self._theme_dialogs(current.theme)
        self.setStyleSheet(style_sheet(current))
        self.header.resize_with_text()
        self.sidebar.resize_with_text()
        self._update_sidebar()
        self.window_actions.show_choices(self.saved_settings.theme, self.saved_settings.text_size)

    def _theme_dialogs(self, theme: Theme) -> None:
        """Set the dark or light theme for system dialogs too, where the platform supports both."""
        hints = QGuiApplication.styleHints()
        if hints is not None and hasattr(hints, "setColorScheme"):  # since Qt 6.8
            schemes = {"dark": Qt.ColorScheme.Dark, "light": Qt.ColorScheme.Light}
            hints.setColorScheme(schemes.get(theme.name, Qt.ColorScheme.Unknown))

    def _show_preferences(self) -> None:
        dialog = Preferences(self, self.saved_settings.theme, self.saved_settings.text_size, self.engine)
        dialog.theme_chosen.connect(self.appearance.set_theme)
        dialog.text_size_chosen.connect(self.appearance.set_text_size)
        dialog.engine_chosen.connect(self.set_engine)
        dialog.open()

    def _show_pattern(self, name: str) -> None:
        pattern = self.bench.patterns[name]
        self._hide_file_messages()
        self.sidebar.mark_pattern(name)
        self.sidebar.show_images(pattern.is_image_pattern)
        self._show_input_description()
        self.header.show_pattern(pattern, self.bench.settings[name].variant, self.jobs.device)
        self.window_actions.show_variants([variant.title for variant in pattern.variants])

    def _set_title(self, *names: str) -> None:
        """Set the window's title."""
        self.setWindowTitle(" – ".join(dict.fromkeys((*filter(None, names), "Lockstep"))))

    def _show_own(self, title: str, path: Path) -> None:
        self._set_title(path.name, title)
        self.banner.hide()
        self.header.show_user_file(title, str(path))
        self.sidebar.mark_user_file(title, path.name)
        self.sidebar.show_images(False)
        self.window_actions.show_variants([])

    def _hide_file_messages(self) -> None:
        """Hide a message about a file that was opened from another page."""
        for topic in ("user file", "input file"):
            self.banner.hide_topic(topic)

    def _show_lessons(self, title: str) -> None:
        self._set_title(title, "Lessons")
        self._hide_file_messages()
        self.header.show_user_file("Lessons", title or "Questions and tasks about the patterns.")
        self.header.run.setEnabled(bool(title))  # the list of lessons has nothing to run
        self.sidebar.mark_lessons()
        self.sidebar.show_images(False)
        self.window_actions.show_variants([])
        self.status.show_message("")

    def _update_sidebar(self) -> None:
        """Hide the sidebar while a lesson leaves too little room for it."""
        pane = self.teaching.pane
        pane.resize_with_text(self.width())
        room = self.width() - self.sidebar.width() - pane.width()
        self.sidebar.setVisible(pane.isHidden() or room >= look().px(_MIN_PAGE_WIDTH))

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._update_sidebar()

    def _show_lesson_progress(self) -> None:
        self.sidebar.show_progress(*self.teaching.lessons.progress)
        for page in self.pages.pages_by_name.values():
            self._update_lesson_link(page)

    def _connect_lesson_link(self, page: PatternPage) -> None:
        """Link a page to the lesson about its variant's limit."""
        name = page.pattern.name
        page.idea.variant_shown.connect(lambda _: self._update_lesson_link(page))
        page.idea.lesson_requested.connect(lambda variant: self.teaching.open_lesson_about(name, variant))
        self._update_lesson_link(page)

    def _update_lesson_link(self, page: PatternPage) -> None:
        lesson = self.teaching.lessons.find_lesson_about(page.pattern.name, page.idea.variant)
        page.idea.show_lesson(lesson.title if lesson is not None else "")

    def _show_own_busy(self, busy: bool) -> None:
        self.header.show_busy(busy)
        self.header.show_progress(None if busy else 0.0)

    def _show_values(self, values: OpenValues) -> None:
        self.banner.hide()
        self.status.show_message(f"{values.path.name}: {format_count(values.values.size)} numbers")

    def _show_text(self, name: str) -> None:
        self.banner.hide()
        self.status.show_message(name)

    def _show_image(self, image: OpenImage) -> None:
        self.banner.hide()
        self._show_warnings()
        self._show_input_description()
        self.sidebar.mark_image(image.path)
        self.saved_settings.image = image.path
        if image.path not in self.sidebar.thumbnails:
            self.saved_settings.add_recent(image.path)

    def _show_warnings(self) -> None:
        """Report problems with the user's folders once, as soon as the window shows an input."""
        if notes := [note for note in self._pending_warnings if note]:
            self.banner.show_message(notes[0], " ".join(notes[1:]), tone="neutral")
        self._pending_warnings.clear()

    def _show_input_description(self) -> None:
        """Show the input of the current page: of the run, or in the Step tab of the recording."""
        name, details = self.bench.input_description
        self._set_title(name, self.bench.pattern.title)
        if self.page.stepping and not (step := self.page.step).plays_run_block:
            name, details = self.bench.describe_recorded_input(step.settings.params, step.current_input)
        elif self.page.tabs.currentIndex() and not self.page.stepping:
            details = ""
        self.status.show_message(f"{name}: {details}" if details else "")

    def _show_progress(self, _: str, progress: Progress) -> None:
        self.header.show_progress(progress.fraction)
        words = describe_progress(progress)
        if is_loss(progress):
            self.banner.show_message(words.replace("; ", ": ", 1).rstrip("…") + ".", tone="warn", topics=("loss",))
        elif self.jobs.workers and progress.fraction is not None:
            words = f"{progress.message}…"
        if words:
            self.status.show_message(words)

    def _show_outcome(self, outcome: FinishedRun) -> None:
        self.header.show_progress(0.0)
        self.status.clear_progress_message()
        self.banner.hide_topic("run")
        self.banner.hide_topic("loss")
        self.status.show_executor(outcome.report.executor, outcome.report.fallback)

    def _show_busy(self) -> None:
        if self.bench.clearance.under_way:
            self.status.show_message("Checking the edited kernel on the simulator before the GPU runs it…")
            self.header.show_progress(None)
        self.header.show_busy(self.running.busy)

    def _show_no_engine(self, failure: Failure) -> None:
        self.status.show_no_device()
        self.messages.show_failure(failure)

    # --- dropped files, and closing

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:
        if event is not None and (paths := _find_local_files(event.mimeData())):
            event.acceptProposedAction()
            if is_recording(paths[0]):
                self.user_file.start_inspector()

    def dropEvent(self, event: QDropEvent | None) -> None:
        assert event is not None
        path = _find_local_files(event.mimeData())[0]
        event.acceptProposedAction()
        # Opened after the drop: the file manager waits for it to return.
        QTimer.singleShot(0, lambda: self.files.open_file(path))

    def closeEvent(self, event: QCloseEvent | None) -> None:
        unsaved = [] if self._discards_edits else self.draft_recovery.undrafted_documents
        if unsaved and event is not None:
            event.ignore()
            dialog = UnsavedDialog(self, unsaved)
            dialog.save_requested.connect(self._save_and_close)
            dialog.discard_requested.connect(self._discard_and_close)
            dialog.open()
            return
        if not self.draft_recovery.has_drafts:
            self.draft_recovery.discard_restored()
        self.saved_settings.pattern = self.bench.pattern_name
        for name, settings in self.bench.settings.items():
            self.saved_settings.store_settings(
                name, settings.variant, select_params_to_save(self.bench.patterns[name], settings)
            )
        if self.presenter is not None:
            self.presenter.close()
        self.sequences.finish_editing()
        self.preparation.stop()
        self.pages.close_down()
        self.user_file.close_down()
        self.teaching.close_down()
        self.saved_settings.geometry = self.saveGeometry()
        self.saved_settings.write()
        self.bench.close()
        super().closeEvent(event)
        self.hide()
        finish_background()

    def close_without_question(self) -> str:
        """Close without a question, as at logout: save edits as drafts, or return the reason why that failed."""
        reason = self.draft_recovery.save_drafts()
        self._discards_edits = True
        self.close()
        return reason

    def _save_and_close(self) -> None:
        for document in self.bench.sources.unsaved:
            target = choose_save_target(self, document)
            if target is None:
                return
            if reason := document.save(target):
                self.banner.show_message(reason, "Save it in another folder.")
                return
        self.close()

    def _discard_and_close(self) -> None:
        self._discards_edits = True
        self.draft_recovery.discard_restored()
        self.close()


def _find_local_files(dropped: QMimeData | None) -> list[Path]:
    return [Path(url.toLocalFile()) for url in dropped.urls() if url.isLocalFile()] if dropped is not None else []
