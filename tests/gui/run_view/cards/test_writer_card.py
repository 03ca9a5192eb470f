"""The card on an element, by itself."""

from __future__ import annotations

from PyQt6.QtCore import QPoint
from PyQt6.QtWidgets import QWidget

from gui.run_view.cards.writer_card import WriterCard


def test_a_card_stays_within_what_becomes_smaller(qtbot):
    over = QWidget()
    qtbot.addWidget(over)
    over.resize(1200, 900)
    over.show()
    card = WriterCard(over)
    card.show_search("Pixel x 3, y 4", over.mapToGlobal(QPoint(1000, 800)))
    assert over.rect().contains(card.geometry())
    over.resize(600, 500)
    qtbot.waitUntil(lambda: over.rect().contains(card.geometry()), timeout=3000)
    assert card.isVisible()
