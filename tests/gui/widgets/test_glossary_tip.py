"""Definitions of the glossary in the tooltips of real widgets."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtWidgets import QLabel, QTableWidgetItem, QWidget

from gpu.base.glossary import UnknownTermError, find_term
from gpu.messages.modeled_time import LIMITS
from gpu.messages.run_counts import list_figures
from gpu.messages.verdicts import decide_verdict
from gpu.stepping.moment.traffic import Address
from gui.compare_view import limits
from gui.compare_view.limits import LimitsTable
from gui.compare_view.modeled_views import LIMITS_VIEW, OCCUPANCY, ROOFLINE
from gui.compare_view.occupancy import OccupancyView
from gui.run_view.cards.writer_card import WriterCard
from gui.run_view.numbers import NumbersCard
from gui.run_view.run_counts import CountGrid, RunCountsView
from gui.step_view.cards import counters
from gui.step_view.cards.counters import CountersCard
from gui.step_view.cards.traffic import AddressBars, BankRow
from gui.widgets.glossary_tip import add_definition, find_definition
from tests.gui.conftest import wait_until_idle
from tests.gui.run_view.test_numbers import COUNTS


def paragraphs(widget) -> list[str]:
    """Return the paragraphs of a tooltip, without line breaks."""
    return [" ".join(each.split()) for each in widget.toolTip().split("\n\n")]


def defines(widget, name: str) -> bool:
    term = find_term(name)
    return paragraphs(widget)[-1] == f"{name[:1].upper()}{name[1:]}: {term.definition}".replace("`", "")


@pytest.fixture
def model_delay_ms():
    return 1


@pytest.fixture
def label(qtbot):
    made = QLabel()
    qtbot.addWidget(made)
    return made


def test_definition_is_the_second_paragraph(label):
    label.setToolTip("32-byte sectors.")
    add_definition(label, "sector")
    assert paragraphs(label)[0] == "32-byte sectors."
    assert defines(label, "sector")
    assert len(paragraphs(label)) == 2


def test_definition_is_the_only_paragraph_without_a_tooltip(label):
    add_definition(label, "warp")
    assert label.toolTip() == find_definition("warp")


def test_definition_is_added_once(label):
    add_definition(label, "warp")
    add_definition(label, "warp")
    assert label.toolTip() == find_definition("warp")


def test_definition_has_short_lines_without_backticks():
    lines = find_definition("memory fence").split("\n")
    assert max(map(len, lines)) <= 100
    assert len(lines) > 1
    assert "`" not in "".join(lines)


def test_unknown_term_raises_and_leaves_the_tooltip(label):
    label.setToolTip("Text")
    with pytest.raises(UnknownTermError, match="no term"):
        add_definition(label, "sectr")
    assert label.toolTip() == "Text"


def test_items_of_tables_have_definitions():
    item = QTableWidgetItem("latency")
    add_definition(item, "latency")
    assert defines(item, "latency")


def test_counters_card(qtbot):
    card = CountersCard()
    qtbot.addWidget(card)
    captions = {**card.work.names, **card.use.names}
    assert {"sectors", "conflicts", "divergent", "efficiency"} <= set(counters._TERMS) <= set(captions)
    for name, term in counters._TERMS.items():
        assert defines(captions[name], term)
        assert len(paragraphs(captions[name])) == 2


def test_counted_figures(qtbot):
    cells, run = CountGrid(), RunCountsView()
    qtbot.addWidget(cells)
    qtbot.addWidget(run)
    for _ in range(2):
        cells.show_figures(list_figures(COUNTS))
    for name, term in (("sectors", "sector"), ("wavefronts", "wavefront"), ("conflicts", "bank conflict"),
                       ("lanes", "active lanes"), ("divergent", "divergence"), ("barriers", "barrier"),
                       ("operations", "operation on data"), ("atomics", "atomic operation")):  # fmt: skip
        assert defines(cells.figures[name], term)
        assert defines(cells._names[name], term)
        assert len(paragraphs(cells.figures[name])) == 2
    assert defines(run.figure, "sector")
    assert defines(run.unit, "minimum traffic")


def test_numbers_card(qtbot):
    card = NumbersCard()
    qtbot.addWidget(card)
    assert defines(card.error, "reference result")
    card.show_verdict(decide_verdict(True))
    assert defines(card.verdict, "verified")
    card.show_verdict(decide_verdict(False))
    assert "Verified:" not in card.verdict.toolTip()


def test_writer_card(qtbot):
    over = QWidget()
    qtbot.addWidget(over)
    assert defines(WriterCard(over).transactions_label, "coalesced access")


def test_traffic_of_a_statement(qtbot):
    banks, bars = BankRow(), AddressBars()
    qtbot.addWidget(banks)
    qtbot.addWidget(bars)
    banks.show_wavefronts(np.full(32, 2))
    assert paragraphs(banks)[0].startswith("bank 0: 2")
    assert defines(banks, "bank conflict")
    bars.show_addresses([Address("bins", 3, -1, np.zeros(4, int), np.arange(4))], 1)
    assert paragraphs(bars)[0] == "bins[3]: 4 lanes, one after the other"
    assert defines(bars, "contention")


def test_limits_and_occupancy(qtbot):
    table, occupancy = LimitsTable(), OccupancyView()
    qtbot.addWidget(table)
    qtbot.addWidget(occupancy)
    heads = {item.text(): item for item in map(table.horizontalHeaderItem, range(table.columnCount()))}
    assert len(limits._TERMS) == 4
    for name, term in limits._TERMS.items():
        assert paragraphs(heads[name])[0] == LIMITS[name]
        assert defines(heads[name], term)
    assert defines(occupancy.occupancy_label, "occupancy")


def test_window(qtbot, window):
    window.choose_pattern("scan")
    wait_until_idle(qtbot, window)
    qtbot.waitUntil(lambda: window.page.modeled_card.model is not None)
    assert defines(window.page.modeled_card.reason, "limiting resource")
    assert defines(window.page.modeled_card.figure, "occupancy")
    window.page.select_tab("Compare")
    modeled = window.page.compare.modeled_views
    assert defines(modeled.limit_label, "limiting resource")
    for view, term in ((ROOFLINE, "roofline"), (OCCUPANCY, "occupancy"), (LIMITS_VIEW, "limiting resource")):
        modeled.show_view(view)
        assert modeled.title.toolTip() == find_definition(term)
