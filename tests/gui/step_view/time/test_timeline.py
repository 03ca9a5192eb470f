from __future__ import annotations

import pytest
from PyQt6.QtGui import QFontMetricsF

from gui.painting.theme import code_font
from gui.step_view.time.timeline import shortened


@pytest.mark.parametrize(
    ("label", "characters", "shown"),
    [
        ("distance = 64", 13, "distance = 64"),
        ("distance = 64", 6, "64"),
        ("128", 3, "128"),
        ("key of digits", 9, "key of d…"),
        ("key of digits", 3, ""),
        ("load", 2, ""),
        ("0 …", 2, "0…"),
        ("", 1, ""),
    ],
)
def test_a_stretch_is_named_by_what_can_be_read_of_it(qapp, label, characters, shown):
    metric = QFontMetricsF(code_font(11))
    assert shortened(label, metric, characters * metric.horizontalAdvance("0") + 1) == shown
