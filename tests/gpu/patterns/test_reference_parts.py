"""References of large inputs are computed in parts by several threads; here the parts are small."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from gpu.declaration import matrices
from gpu.patterns import compact, find_pattern, stencil, transpose

RNG = np.random.default_rng(20261127)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 1), (1, 9), (13, 11), (4, 32)])
def test_a_transpose_in_tiles(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int) -> None:
    monkeypatch.setattr(transpose, "_REFERENCE_TILE", 3)
    monkeypatch.setattr(matrices, "_CHUNK", 2 * rows)
    values = RNG.standard_normal((rows, columns)).astype(np.float32)
    reference = find_pattern("transpose").reference({"values": values}, {})
    assert reference.tolist() == [[values[row, column] for row in range(rows)] for column in range(columns)]


def test_a_ramp_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transpose, "PART_ELEMENTS", 8)
    monkeypatch.setattr(transpose, "_MAX_EXACT_INTEGER", 32)
    pattern = find_pattern("transpose")
    values = pattern.prepare_inputs({}, pattern.check({"n": 13, "rows": 7}), 0)["values"]
    assert values.tolist() == (np.arange(7 * 13) % 32).reshape(7, 13).tolist()


@pytest.mark.parametrize("elements", [1, 12, 40, 10**6])
def test_a_stencil_in_planes(monkeypatch: pytest.MonkeyPatch, elements: int) -> None:
    monkeypatch.setattr(stencil, "PART_ELEMENTS", elements)
    pattern = find_pattern("stencil")
    params = pattern.check({"planes": 5, "rows": 3, "n": 4, "center": -2.5, "around": 0.75})
    values = RNG.standard_normal((15, 4)).astype(np.float32)
    weights = np.zeros((3, 3, 3))
    weights[1, 1] = weights[1, :, 1] = weights[:, 1, 1] = 0.75
    weights[1, 1, 1] = -2.5
    grid = values.reshape(5, 3, 4).astype(np.float64)
    expected = scipy.ndimage.correlate(grid, weights, mode="constant").reshape(15, 4)
    np.testing.assert_allclose(pattern.reference({"values": values}, params), expected, rtol=0, atol=1e-12)
    magnitudes = scipy.ndimage.correlate(np.abs(grid), np.abs(weights), mode="constant").reshape(15, 4)
    np.testing.assert_allclose(pattern.tolerance({"values": values}, params), 7 * 2.0**-24 * magnitudes, rtol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 5, 23])
def test_a_compaction_in_parts(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(compact, "PART_ELEMENTS", 5)
    pattern = find_pattern("compaction")
    values = RNG.standard_normal(count).astype(np.float32)
    params = pattern.check({"dtype": "float32", "predicate": "greater", "threshold": 0.25})
    assert pattern.reference({"values": values}, params).tolist() == [each for each in values if each > 0.25]
