"""The actions Run, Stop and tab selection, which depend on the visible page."""

from __future__ import annotations

from PyQt6.QtWidgets import QApplication

from gui.editor.code_edit import CodeEdit
from gui.lessons.presenter import LessonPresenter
from gui.model.workbench import Workbench
from gui.user_kernel.saved_recording import RecordedPage
from gui.user_kernel.user_file import UserFile
from gui.window.messages import Messages
from gui.window.pages.page_stack import Pages


class RunActions:
    """Run and stop the visible page, and select its tabs."""

    def __init__(
        self, bench: Workbench, pages: Pages, user_file: UserFile, teaching: LessonPresenter, messages: Messages
    ) -> None:
        self._bench, self._pages, self._user_file, self._messages = bench, pages, user_file, messages
        self._teaching = teaching

    @property
    def busy(self) -> bool:
        """Whether work is running that can be stopped."""
        bodies, comparing = self._pages.page.bodies, self._pages.page.comparing
        playing = bodies is not None and bodies.playing
        return self._is_engine_busy or playing or (comparing is not None and comparing.busy)

    @property
    def _is_engine_busy(self) -> bool:
        return self._bench.jobs.busy or self._bench.clearance.under_way

    def run(self) -> None:
        """Run and verify; in the Step tab record, in the Compare and Atomics tabs measure."""
        page = self._pages.page
        if self._teaching.shows_shelf:
            return
        if self._teaching.visible_page is not None:
            self._teaching.run()
        elif self._user_file.visible_page is not None:
            self._user_file.visible_page.run()
        elif page.stepping:
            page.step.record()
        elif page.comparing is not None:
            page.comparing.measure()
        elif page.studying is not None:
            page.studying.measure()
        else:
            self._bench.run(verify=True)
            if page.bodies is not None:
                page.bodies.simulation.play(True)

    def stop(self) -> None:
        """Stop the running work; if there is none, leave the code, clear the selection, or close the banner."""
        user_file, page, status = self._user_file, self._pages.page, self._messages.status
        visible_page = self._teaching.visible_page or user_file.visible_page or page
        if self._teaching.stop():
            status.show_message("Stopped")
        elif visible_page is page and page.writer_search.stop():
            pass
        elif user_file.page is not None and user_file.page.busy:
            user_file.page.stop()
            status.show_message("Stopped")
        elif page.bodies is not None and page.bodies.stop():
            status.show_message("Stopped")
        elif self._is_engine_busy:
            if page.comparing is not None:
                page.comparing.stop()
            self._bench.stop()
        elif page.comparing is not None and page.comparing.busy:
            page.comparing.stop()
            status.show_message("Stopped")
        elif visible_page.stepping and visible_page.step.stop():
            status.show_message("Stopped")
        elif isinstance(code := QApplication.focusWidget(), CodeEdit):
            code.exit_editor()
        elif visible_page.stepping and visible_page.step.has_selection:
            visible_page.step.clear_selection()
        else:
            self._messages.banner.hide()

    def select_tab(self, title: str) -> None:
        """Select the tab with this title on the visible page, if it exists."""
        visible_page = self._teaching.visible_page or self._user_file.visible_page or self._pages.page
        if isinstance(visible_page, RecordedPage):
            return  # it has only a Step tab
        tabs = visible_page.tabs
        titles = [tabs.tabText(number) for number in range(tabs.count())]
        if title in titles and tabs.isTabVisible(titles.index(title)) and tabs.isTabEnabled(titles.index(title)):
            tabs.setCurrentIndex(titles.index(title))

    def go_to_next_problem(self) -> None:
        """Go to the next problem in the kernel's source."""
        visible_page = self._teaching.visible_page or self._user_file.visible_page or self._pages.page
        (visible_page.step if visible_page.stepping else visible_page).source.go_to_next_problem()
