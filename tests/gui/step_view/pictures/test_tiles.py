from __future__ import annotations

import numpy as np
from PyQt6.QtCore import QPoint, QPointF, Qt

from gpu.stepping.moment.tiles import Tile, TileProduct
from gui.step_view.pictures.tiles import TilesView


def test_the_tiles_of_a_product_are_shown_where_it_stands(qtbot, open_tab):
    tab = open_tab("matmul", "tensor")
    assert tab.panes.kinds.buttons["Tiles"].isVisibleTo(tab)
    tab.panes.kinds.choose("Tiles")
    view = tab.panes.tiles
    assert tab.panes.pictures.currentWidget() is view
    text = tab.models.recording.text(tab.models.files[0]).split("\n")
    wanted = [1 + at for at, line in enumerate(tab.models.lines) if "mma_sync(" in text[line - 1]]
    tab.player.go_to(wanted[0])
    assert view.accessibleDescription().startswith("wmma 16 x 16 x 8, tf32; lane 0 holds A: 0 is (0, 0), 1 is (8, 0)")
    tile, row, column = view.element_at(QPointF(view.width() - 20, view.height() - 12))
    assert (tile.use, row, column) == ("C", 15, 15)
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(view.width() - 20, view.height() - 12))
    assert tab.followed == (0, 31)
    assert "lane 31 holds A: 0 is (7, 3)" in view.accessibleDescription()
    painted = view.grab().toImage()
    tab.player.go_to(1)
    assert view.accessibleDescription().startswith("No tiles here")
    assert view.grab().toImage() != painted


def test_an_element_lies_where_a_product_is_written(qtbot):
    view = TilesView()
    qtbot.addWidget(view)
    view.resize(600, 400)
    tiles = tuple(
        Tile(use, lanes, lanes * 0)
        for use, lanes in (("A", np.zeros((4, 2), int)), ("B", np.zeros((2, 6), int)), ("C", np.zeros((4, 6), int)))
    )
    view.show_tiles(TileProduct("any", True, tiles), 0, 0, 0)
    places = {
        (tile.use, row, column): QPointF(x, y)
        for x in range(0, 600, 9)
        for y in range(0, 400, 9)
        for found in (view.element_at(QPointF(x, y)),)
        if found is not None
        for tile, row, column in (found,)
    }
    assert len(places) == 4 * 2 + 2 * 6 + 4 * 6
    # A row of A goes on in C, and a column of B does below.
    assert abs(places["A", 3, 0].y() - places["C", 3, 5].y()) < 9
    assert abs(places["B", 1, 4].x() - places["C", 0, 4].x()) < 9
    assert places["A", 0, 1].x() < places["C", 0, 0].x()
    assert places["B", 1, 0].y() < places["C", 0, 0].y()
