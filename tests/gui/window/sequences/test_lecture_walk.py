"""A lecture by real keys: through a shipped sequence in lecture mode, at two sizes and in both themes.

No key is dead, and each is answered within 100 ms of CPU time of the window's thread. Hosts of half the speed get
twice that.
"""

from __future__ import annotations

import time

import pytest
from PyQt6.QtCore import QEventLoop, Qt
from PyQt6.QtWidgets import QApplication

from gui.model.sequences import list_builtin_sequences
from gui.step_view.dataflow.view import FlowView
from tests.gui.conftest import FakeHost, wait_until_idle

SHIFT = Qt.KeyboardModifier.ShiftModifier
CPU_LIMIT_S = 0.2
NO_MODIFIER = Qt.KeyboardModifier.NoModifier


class Lecturer:
    """Presses keys, and measures the CPU time of the window's thread until each key's effect is on screen.

    The hosts, which stand in for the engine's processes, answer apart from this: their time is not the window's.
    """

    def __init__(self, qtbot, window):
        self.qtbot, self.window = qtbot, window
        self.times = {}

    def press(self, key, modifier=NO_MODIFIER):
        before, self._engine_s = time.thread_time(), 0.0
        self.qtbot.keyClick(QApplication.focusWidget() or self.window, key, modifier)
        QApplication.processEvents()
        while self.window.sequences.is_opening:
            self._answer()
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        self.times.setdefault((key.name, modifier), []).append(time.thread_time() - before - self._engine_s)

    def _answer(self):
        before = time.thread_time()
        for host in FakeHost.instances:
            answered_later, deliver = host.answers_later, host.deliver
            answers = []
            host.deliver = lambda *answer, answers=answers: answers.append(answer)
            host.answer_all()
            host.deliver = deliver
            self._engine_s += time.thread_time() - before
            for answer in answers:
                deliver(*answer)
            host.answers_later = answered_later
            before = time.thread_time()

    def wait(self):
        """Wait until the moment is on screen and the rows that are painted in idle time are painted."""
        self._engine_s = 0.0
        views = self.window.findChildren(FlowView)

        def is_done():
            self._answer()
            assert not self.window.sequences.is_opening
            assert all(each.complete for each in views if each.isVisible())
            assert not self.window.jobs.busy
            assert not self.window.bench.pending

        self.qtbot.waitUntil(is_done)
        if QApplication.activeWindow() is None:  # the offscreen platform has no window manager that keeps one active
            self.window.activateWindow()
            self.qtbot.waitUntil(self.window.isActiveWindow)


@pytest.fixture
def lecturer(qtbot, window):
    for name in ("histogram", "reduction", "scan"):  # created in idle time in a real session
        window.choose_pattern(name)
        window.page.select_tab("Step")
        window.page.create_measuring_tabs()
        wait_until_idle(qtbot, window)
    for host in FakeHost.instances:
        host.answers_later = True
    return Lecturer(qtbot, window)


def state(window):
    """Return what a key can change on screen."""
    view, step = window.lecturing.view, window.page.step
    return (
        window.sequences.index, window.page.pattern.name, step.player.moment, step.player.playing,
        *((view.code.isHidden(), view.cards.isHidden(), view.blank.isVisible(), view.light.enabled,
           view.tab.panes.timeline.isHidden(), step.panes.symbols.isChecked()) if view is not None else ()),
    )  # fmt: skip


SMALL, LARGE = (1024, 700), (1920, 1080)
FIRST = ((1, SMALL, "dark"), (1, LARGE, "light"))
"""Cases of the first tier; each takes about ten seconds."""
CASES = [
    pytest.param(number, size, theme, marks=() if (number, size, theme) in FIRST else pytest.mark.sweep)
    for number in range(3)
    for size in (SMALL, LARGE)
    for theme in ("dark", "light")
]


@pytest.mark.alone
@pytest.mark.parametrize(("number", "size", "theme"), CASES)
def test_a_lecture_by_keys(qtbot, window, lecturer, size, theme, number):
    window.appearance.set_theme(theme)
    _, path = list_builtin_sequences()[number]
    window.sequences.open(path)
    lecturer.wait()
    lecturer.press(Qt.Key.Key_F11)
    window.showNormal()
    window.resize(*size)
    qtbot.waitUntil(lambda: window.lecturing.view.width() == size[0])
    lecturer.wait()
    lecturer.times.clear()
    moments = window.sequences.sequence.moments
    for index, moment in enumerate(moments):
        assert window.sequences.index == index
        step = window.page.step
        assert (window.page.pattern.name, window.page.variant.name) == (moment.pattern, moment.variant)
        assert not window.banner.isVisibleTo(window)
        if moment.tab == "Step":
            assert window.lecturing.view.tab is step
            assert step.player.moment == moment.step
            lecturer.press(Qt.Key.Key_Left)
            assert step.player.moment == moment.step - 1
            lecturer.press(Qt.Key.Key_Right)
            assert step.player.moment == moment.step
        if index + 1 < len(moments):
            lecturer.press(Qt.Key.Key_N)
            lecturer.wait()
    lecturer.press(Qt.Key.Key_N, SHIFT)
    lecturer.wait()
    assert window.sequences.index == len(moments) - 2
    lecturer.press(Qt.Key.Key_N)
    lecturer.wait()
    press_all_keys(lecturer)
    del lecturer.times[Qt.Key.Key_N.name, NO_MODIFIER][len(moments) - 1 :]  # the walk back and forth at the end
    slow = {name: max(times) for name, times in lecturer.times.items() if max(times) > CPU_LIMIT_S}
    assert not slow


def press_all_keys(lecturer):
    """Press each key of a lecture, and check that it changes something."""
    window = lecturer.window
    keys = (Qt.Key.Key_Home, Qt.Key.Key_Right, Qt.Key.Key_PageDown, Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_Left,
            Qt.Key.Key_C, Qt.Key.Key_C, Qt.Key.Key_L, Qt.Key.Key_L, Qt.Key.Key_T, Qt.Key.Key_T, Qt.Key.Key_P,
            Qt.Key.Key_P, Qt.Key.Key_B, Qt.Key.Key_B, Qt.Key.Key_S, Qt.Key.Key_S)  # fmt: skip
    for key in keys:
        before = state(window)
        lecturer.press(key)
        lecturer.wait()
        assert state(window) != before, f"{key.name} is dead"
    lecturer.press(Qt.Key.Key_Home)
    lecturer.press(Qt.Key.Key_Space)
    assert window.page.step.player.playing
    lecturer.press(Qt.Key.Key_Space)
    assert not window.page.step.player.playing
    lecturer.press(Qt.Key.Key_Right, SHIFT)
    assert window.page.step.player.moment > 0
    lecturer.press(Qt.Key.Key_Left, SHIFT)
    assert window.page.step.player.moment == 0
