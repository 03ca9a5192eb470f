from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QFontMetricsF

from gui.plots.axes import tick_font
from gui.run_view.cards.levels_card import LevelsCard

GRAY = np.arange(256, dtype=np.uint32)[np.newaxis]
COLOR = np.stack([GRAY[0], GRAY[0][::-1], GRAY[0] * 0 + 5])


@pytest.fixture
def card(qtbot):
    made = LevelsCard(sides=True)
    qtbot.addWidget(made)
    made.resize(700, 300)
    with qtbot.waitExposed(made):
        made.show()
    return made


def heights(card):
    return [curve.getData()[1] for curve in card.plot._curves]


def test_one_curve_a_channel(card):
    card.show_counts("after", GRAY, 255)
    assert len(heights(card)) == 1
    assert np.array_equal(heights(card)[0], GRAY[0])
    card.show_counts("after", COLOR, 255)
    assert len(heights(card)) == 3


def test_before_after_and_both(qtbot, card):
    card.show_counts("before", COLOR, 255)
    card.show_counts("after", COLOR * 2, 255)
    assert len(heights(card)) == 6
    assert "dotted" in card.legend.text()
    qtbot.mouseClick(card.side.buttons["after"], Qt.MouseButton.LeftButton)
    assert np.array_equal(heights(card)[0], COLOR[0] * 2)
    assert len(heights(card)) == 3
    qtbot.mouseClick(card.side.buttons["before"], Qt.MouseButton.LeftButton)
    assert np.array_equal(heights(card)[0], COLOR[0])
    assert card.legend.text() == ""


def test_logarithmic_scale_keeps_empty_bins_at_zero(qtbot, card):
    card.show_counts("after", GRAY * 1000, 255)
    qtbot.mouseClick(card.scale.buttons["log"], Qt.MouseButton.LeftButton)
    assert heights(card)[0][0] == 0
    assert heights(card)[0][100] == pytest.approx(np.log10(100_001))
    assert np.isfinite(heights(card)[0]).all()


@pytest.mark.parametrize("counts", [GRAY * 0, np.zeros((1, 1), np.uint32), np.full((3, 8192), 2**32 - 1, np.uint32)])
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_extreme_counts_are_drawn(card, counts, scale):
    card.set_scale(scale)
    card.show_counts("after", counts, 255)
    assert not card.grab().isNull()


def test_arrow_keys_and_pointer_read_the_count(qtbot, card):
    card.show_counts("after", GRAY * 1000, 255)
    qtbot.keyClick(card.plot, Qt.Key.Key_Right)
    assert card.note.toolTip().replace("\u202f", "") == "level 129   count 129000"
    qtbot.keyClick(card.plot, Qt.Key.Key_Left)
    assert "level 128" in card.note.toolTip()
    view = card.plot.plot
    place = view.mapFromScene(view.getViewBox().mapViewToScene(view.getViewBox().viewRect().center()))
    qtbot.mouseMove(view.viewport(), place)
    qtbot.mouseMove(view.viewport(), place + QPoint(1, 0))
    qtbot.waitUntil(lambda: card.note.toolTip().startswith("level 12"))


@pytest.mark.parametrize(
    ("bins", "maxval", "index", "text"),
    [
        (256, 255, 200, "level 200"),
        (16, 255, 1, "levels 16–31"),
        (3, 255, 0, "levels 0–85"),
        (512, 255, 1, "bin 1, no level"),
        (256, 65535, 255, "levels 65280–65535"),
    ],
)
def test_a_bin_says_its_levels(card, bins, maxval, index, text):
    card.show_counts("after", np.ones((1, bins), np.uint32), maxval)
    card._show_bin(index)
    assert card.note.toolTip().startswith(text)


def test_the_levels_of_a_bin_are_those_that_fall_into_it(card):
    for bins in (1, 3, 10, 100, 256, 300):
        card.show_counts("after", np.ones((1, bins), np.uint32), 255)
        into = np.arange(256) * bins // 256
        for index in range(bins):
            card._show_bin(index)
            levels = np.flatnonzero(into == index)
            said = card.note.toolTip().split("   ")[0]
            if len(levels) == 0:
                assert said == f"bin {index}, no level"
            elif len(levels) == 1:
                assert said == f"level {levels[0]}"
            else:
                assert said == f"levels {levels[0]}–{levels[-1]}"


def test_counts_of_another_channel_count_are_not_compared(card):
    card.show_counts("before", COLOR, 255)
    card.show_counts("after", GRAY, 255)
    assert len(heights(card)) == 1


@pytest.mark.parametrize("width", [150, 240, 420, 900])
def test_names_of_bins_do_not_touch(qtbot, card, width):
    names = tuple(f"{first}-{first + 9}" for first in range(100, 360, 10))
    card.show_counts("after", GRAY[:, : len(names)], 0, names)
    card.resize(width, 240)
    plot = card.plot

    def placed():
        ((shown,),) = [plot.bottom._tickLevels]
        gap = (shown[1][0] - shown[0][0]) * plot.box.width() / len(names) if len(shown) > 1 else 1e9
        widest = QFontMetricsF(tick_font()).horizontalAdvance(names[0])
        assert gap > widest + 6
        # Nor are there fewer than there is room for.
        assert len(shown) == len(names) or gap < 2 * (widest + 40)

    qtbot.waitUntil(placed)
    card.show_counts("after", GRAY, 255)
    assert plot.bottom._tickLevels is None


@pytest.mark.parametrize("width", [300, 380, 460, 700])
def test_a_long_name_costs_no_name_of_bins_that_have_room(qtbot, card, width):
    names = ("a-d", "e-h", "i-l", "m-p", "q-t", "u-x", "y-z", "other")
    card.show_counts("after", GRAY[:, : len(names)], 0, names)
    card.resize(width, 300)
    plot = card.plot
    metric = QFontMetricsF(tick_font())

    def shown():
        return [name for _, name in plot.bottom._tickLevels[0]]

    def fits():
        # The last two names are the widest neighbors.
        needed = (metric.horizontalAdvance("y-z") + metric.horizontalAdvance("other") + metric.height()) / 2
        return needed <= plot.box.width() / len(names)

    qtbot.waitUntil(lambda: (shown() == list(names)) == fits())
