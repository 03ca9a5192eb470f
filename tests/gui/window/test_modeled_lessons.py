"""Why one rung beats another, shown by real clicks on the real model: each in under five."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QRegion
from PyQt6.QtWidgets import QPushButton, QTabBar

from gpu.messages.modeled_time import LIMITS
from gui.compare_view import tab as compare_tab
from gui.compare_view.tab import Range
from gui.window.main_window import MainWindow
from tests.gui.conftest import PatientBot
from tests.gui.window.test_responsive import LONGEST_GAP_S, Pulse, best_of_attempts

COLUMNS = {name: 2 + place for place, name in enumerate(LIMITS)}
TIME = 1


@pytest.fixture(scope="module")
def window(qapp, tmp_path_factory):
    """One window for all: its processes take a second each to come up."""
    from gui.editor.drafts import Drafts
    from gui.model.settings import SavedSettings

    folder = tmp_path_factory.mktemp("lessons")
    smaller = pytest.MonkeyPatch()
    smaller.setitem(compare_tab._MODELED_RANGES, "elements", Range(12, range(14, 27, 2), 22))
    made = MainWindow(SavedSettings(folder / "s.json"), "simulator", survey=list, drafts=Drafts(folder / "drafts"))
    made.resize(1280, 720)
    made.show()
    yield made
    made.close()
    smaller.undo()


class ClickCounter:
    """Clicks where something is to be seen, and counts."""

    def __init__(self, bot, window):
        self.bot, self.window, self.clicks = bot, window, 0

    def _click(self, widget, at):
        assert widget.isVisible()
        assert QRegion(widget.visibleRegion()).contains(at), "nobody could click there"
        self.bot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at)
        self.clicks += 1

    def button(self, text):
        self.press(self.find(text))

    def find(self, text):
        shown = (each for each in self.window.findChildren(QPushButton) if each.isVisible() and each.text() == text)
        return next(shown)

    def press(self, button):
        self._click(button, button.rect().center())

    def tab(self, text):
        bar = next(each for each in self.window.findChildren(QTabBar) if each.isVisible())
        place = [bar.tabText(number) for number in range(bar.count())].index(text)
        self._click(bar, bar.tabRect(place).center())

    def limits(self, pattern):
        """Come to the table of limits, and return its figures by the variants' names."""
        self.button(pattern)
        self.bot.waitUntil(lambda: self.window.is_idle)
        self.tab("Compare")
        self.button("Limits")
        shown = self.window.page.compare.modeled_views
        self.bot.waitUntil(lambda: not shown.busy)
        names = [each.name for each in self.window.page.compare.rows]
        return {names[number]: found for number, found in shown.modeled.items()}

    def line(self, title):
        table = self.window.page.compare.modeled_views.limits
        row = next(row for row in range(table.rowCount()) if table.item(row, 0).text().endswith(title))
        self._click(table.viewport(), table.visualItemRect(table.item(row, 0)).center())
        # A table is drawn some time after its figures have come.
        self.bot.waitUntil(lambda: any(table.item(row, column).font().bold() for column in COLUMNS.values()))
        return [table.item(row, column) for column in range(table.columnCount())]


@pytest.fixture
def hand(qapp, request, window):
    return ClickCounter(PatientBot(request), window)


def bold_limit(cells):
    """Return the limit that counts, as the table shows it."""
    return next(name for name, column in COLUMNS.items() if cells[column].font().bold())


def test_why_grid_stride_beats_interleaved(hand) -> None:
    found = hand.limits("Reduction")
    slower = hand.line("Interleaved pairs")
    assert hand.clicks < 5
    assert found["grid-stride"].time_us < found["interleaved"].time_us
    # It waits to issue: a load and an addition for each element by each thread of its own; the other loops.
    assert bold_limit(slower) != "DRAM"
    assert found["interleaved"].limits["issue"] > 4 * found["grid-stride"].limits["issue"]
    assert "Interleaved pairs: " in hand.window.page.compare.modeled_views.limit_label.text()


def test_why_padding_helps(hand) -> None:
    found = hand.limits("Scan")
    plain, padded = found["brent-kung"], found["brent-kung-padded"]
    cells = hand.line("Brent-Kung")
    assert hand.clicks < 5
    assert bold_limit(cells) == "shared"
    assert "passes over the banks of shared memory" in hand.window.page.compare.modeled_views.limit_label.text()
    assert padded.limits["shared"] < 0.6 * plain.limits["shared"]
    assert padded.bound_by != "shared"


def test_why_the_single_pass_wins(hand) -> None:
    found = hand.limits("Scan")
    once, thrice = found["look-back"], found["three-kernels"]
    hand.line("Single pass, decoupled look-back")
    assert hand.clicks < 5
    assert once.time_us == min(each.time_us for each in found.values())
    assert once.dram_bytes < 0.6 * thrice.dram_bytes
    assert once.limits["launch"] < thrice.limits["launch"]


@pytest.mark.alone
def test_the_window_goes_on_while_it_is_modeled(hand, window) -> None:
    hand.limits("Reduction")
    shown = window.page.compare.modeled_views
    # To find a button takes longer than to press it.
    roofline, limits = hand.find("Roofline"), hand.find("Limits")

    def attempt():
        window.bench.modeling._cache.clear()
        pulse = Pulse()
        hand.press(roofline)
        hand.bot.waitUntil(lambda: not shown.busy)
        hand.press(limits)
        hand.bot.waitUntil(lambda: not shown.busy)
        return pulse.longest_gap()

    assert best_of_attempts(attempt) < LONGEST_GAP_S
    assert shown.modeled
