"""Texts in too little room: a label ends in an ellipsis, a check box wraps first."""

from __future__ import annotations

from gui.widgets.basic import ElidedLabel
from gui.widgets.elided_box import WrappedCheck


def test_a_label_ends_within_its_margins(qtbot):
    label = ElidedLabel("caption", "Title")
    qtbot.addWidget(label)
    label.setContentsMargins(14, 0, 14, 0)
    label.resize(120, 20)
    label.show()
    label.show_text("a text that is far too long for so little room")
    assert label.text().endswith("…")
    assert label.fontMetrics().horizontalAdvance(label.text()) <= 120 - 28


def test_a_check_box_wraps_its_text_to_two_lines_before_it_elides_it(qtbot):
    box = WrappedCheck("11  One launch: one atomic per block")
    qtbot.addWidget(box)
    box.show()

    def height_at(share):
        width = box.width() - box._text_room().width() + round(share * box.fontMetrics().horizontalAdvance(box.text()))
        box.resize(width, box.height())
        box.resize(width, box.minimumSizeHint().height())
        return box.height()

    one_line = height_at(1.1)
    assert box.visible_text() == box.text()
    two_lines = height_at(0.7)
    assert two_lines >= 2 * box.fontMetrics().lineSpacing() > one_line
    assert box.visible_text() == box.text()
    assert height_at(0.35) == two_lines
    assert box.visible_text().endswith("…")
