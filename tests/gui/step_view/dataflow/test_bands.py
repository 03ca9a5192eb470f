from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from gui.step_view.dataflow.bands import build_bands
from gui.step_view.dataflow.layout import LaidOutEdges


def test_each_source_of_an_operation_is_a_band_of_its_own():
    row = SimpleNamespace(column=np.arange(8))
    cells = np.repeat(np.arange(4), 2)
    edges = LaidOutEdges(cells, np.zeros(8, int), np.stack((np.arange(4), np.arange(4) + 4), axis=1).ravel())
    first, second = build_bands(1, row, edges, np.zeros(8, int))
    assert first[:6] == (0, 0, 0, 3, 0, 3)
    assert second[:6] == (0, 0, 4, 7, 0, 3)
    assert second.start.tolist() == [4, 5, 6, 7]
    assert second.end.tolist() == [0, 1, 2, 3]


def test_every_line_is_in_one_band_of_its_warp_and_row():
    rng = np.random.default_rng(3)
    for _ in range(20):
        count = int(rng.integers(1, 200))
        row = SimpleNamespace(column=np.sort(rng.permutation(300)[:60]))
        edges = LaidOutEdges(rng.integers(0, 60, count), rng.integers(0, 6, count), rng.integers(0, 300, count))
        warps = edges.cell // 32
        found = build_bands(5, row, edges, warps)
        told = sorted(
            (b.warp, b.row, s, e) for b in found for s, e in zip(b.start.tolist(), b.end.tolist(), strict=True)
        )
        lines = zip(
            warps.tolist(), edges.row.tolist(), edges.column.tolist(), row.column[edges.cell].tolist(), strict=True
        )
        assert told == sorted(line for line in lines if line[1] != 5)
        for band in found:
            assert (band.left, band.right) == (band.start.min(), band.start.max())
            assert (band.to_left, band.to_right) == (band.end.min(), band.end.max())


def test_without_lines_there_are_no_bands():
    none = np.zeros(0, int)
    assert build_bands(1, SimpleNamespace(column=np.arange(3)), LaidOutEdges(none, none, none), none) == []
