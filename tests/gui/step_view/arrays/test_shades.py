from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtGui import QColor

from gui.painting.colors import warp_color
from gui.painting.theme import THEMES
from gui.step_view.arrays.panels import Panel
from gui.step_view.arrays.shades import Mark, Shades, are_light, blend_marks

DARK, LIGHT = QColor("#0b0f14"), QColor("#f2f5f9")


def luminance(color):
    parts = [each / 255 for each in color.getRgb()[:3]]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one, other):
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def grays():
    values = np.linspace(0, 1, 40).reshape(5, 8)
    shades = Shades((5, 8))
    assert shades.update_panel(Panel(0, "s", 0, values, np.ones((5, 8), bool)), (0.0, 1.0)).all()
    return shades.colors.reshape(-1)


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("strong", [False, True])
def test_letters_are_read_over_every_mark(theme, writes, strong):
    plain = grays()
    for warp in range(8):
        mark = Mark(np.arange(plain.size), warp_color(theme, warp), strong, writes)
        filled = blend_marks(plain, [mark])
        for color, light in zip(filled.tolist(), are_light(filled).tolist(), strict=True):
            assert contrast(QColor.fromRgb(color), DARK if light else LIGHT) > 4.15


def test_the_last_mark_of_a_cell_is_seen():
    plain = grays()
    red, blue = QColor("#ff0000"), QColor("#0000ff")
    marks = [Mark(np.array([1, 2]), red, True, False), Mark(np.array([2, 3]), blue, True, False)]
    framed = blend_marks(plain, marks, frames=True)
    assert [QColor.fromRgb(each).name() for each in framed[1:4].tolist()] == ["#ff0000", "#0000ff", "#0000ff"]
    assert (framed[[0, *range(4, plain.size)]] == plain[[0, *range(4, plain.size)]]).all()
    assert (blend_marks(plain, []) == plain).all()


def test_only_what_has_changed_is_told():
    values, known = np.array([[1.0, np.nan, -0.0, 4.0]]), np.ones((1, 4), bool)
    shades = Shades((1, 4))
    shades.update_panel(Panel(0, "s", 0, values, known), (0.0, 4.0))
    assert not shades.update_panel(Panel(0, "s", 0, values.copy(), known), (0.0, 4.0)).any()
    after = np.array([[1.0, np.nan, 0.0, 2.0]])
    assert shades.update_panel(Panel(0, "s", 0, after, known), (0.0, 4.0)).tolist() == [[False, False, True, True]]
    assert shades.update_panel(Panel(0, "s", 0, after, known), (0.0, 8.0)).tolist() == [[True, False, False, True]]


def test_a_value_that_becomes_known_is_told_though_the_color_stays(monkeypatch):
    monkeypatch.setattr("gui.step_view.arrays.shades.mix_colors", lambda *_: QColor("#1c232d"))
    shades, values = Shades((1, 2)), np.zeros((1, 2))
    shades.update_panel(Panel(0, "s", 0, values, np.array([[True, False]])), (0.0, 1.0))
    assert shades.update_panel(Panel(0, "s", 0, values, np.ones((1, 2), bool)), (0.0, 1.0)).tolist() == [[False, True]]
