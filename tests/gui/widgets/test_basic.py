"""Labels that end in an ellipsis."""

from __future__ import annotations

from gui.widgets.basic import ElidedLabel


def test_a_label_ends_within_its_margins(qtbot):
    label = ElidedLabel("caption", "Title")
    qtbot.addWidget(label)
    label.setContentsMargins(14, 0, 14, 0)
    label.resize(120, 20)
    label.show()
    label.show_text("a text that is far too long for so little room")
    assert label.text().endswith("…")
    assert label.fontMetrics().horizontalAdvance(label.text()) <= 120 - 28
