"""Peers on the CPU: each is measured, and one that is not installed says so."""

from __future__ import annotations

import importlib.util

import pytest

from gpu.bench import on_cpu
from gpu.bench.ladder import Case, random_image

ARRAY = {"n": 1000, "dtype": "float32", "operator": "sum"}


@pytest.mark.parametrize(
    ("case", "peer"),
    [
        (Case("work", "convolution", random_image(20, 30), {"filter": "gaussian", "size": 5}), "SciPy"),
        (Case("work", "histogram", random_image(20, 30)), "NumPy bincount"),
        (Case("work", "reduction", params=ARRAY), "NumPy sum"),
        (Case("work", "scan", params=ARRAY), "NumPy cumsum"),
    ],
    ids=lambda value: getattr(value, "pattern", ""),
)
def test_a_pattern_has_its_peers_and_what_is_missing_says_so(case, peer, monkeypatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("cv2", "numba") else found(name))
    rows = list(on_cpu.run(case, seed=3, repetitions=2))
    assert rows[0].who.startswith(peer)
    assert len(rows[0].times_ms) == 2
    assert rows[0].amount > 0
    missing = {row.who.split()[0].split("'")[0]: row.remark for row in rows[1:]}
    expected = {"convolution": {"OpenCV": "cv2"}, "histogram": {"OpenCV": "cv2"}, "reduction": {"Numba": "numba"}}
    assert missing == {who: f"{name} is not installed here" for who, name in expected.get(case.pattern, {}).items()}
