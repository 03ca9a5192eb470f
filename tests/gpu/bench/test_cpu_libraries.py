"""Peers on the CPU: each is measured, and one that is not installed says so."""

from __future__ import annotations

import importlib.util

import pytest

from gpu.bench import cpu_libraries
from gpu.declaration.benchmark import Case, random_image
from gpu.patterns import find_pattern

ARRAY = {"n": 1000, "dtype": "float32", "operator": "sum"}


@pytest.mark.parametrize(
    ("name", "case", "peer"),
    [
        ("convolution", Case("work", {"filter": "gaussian", "size": 5}, random_image(20, 30)), "SciPy"),
        ("histogram", Case("work", make_inputs=random_image(20, 30)), "NumPy bincount"),
        ("reduction", Case("work", ARRAY), "NumPy sum"),
        ("scan", Case("work", ARRAY), "NumPy cumsum"),
    ],
)
def test_a_pattern_has_its_peers_and_what_is_missing_says_so(name, case, peer, monkeypatch) -> None:
    found, missing = importlib.util.find_spec, ("cv2", "numba")
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None if package in missing else found(package))
    rows = list(cpu_libraries.run(find_pattern(name), case, seed=3, repetitions=2))
    assert rows[0].name.startswith(peer)
    assert len(rows[0].times_ms) == 2
    assert rows[0].amount > 0
    told = {row.name.split()[0].split("'")[0]: row.remark for row in rows[1:]}
    expected = {"convolution": {"OpenCV": "cv2"}, "histogram": {"OpenCV": "cv2"}, "reduction": {"Numba": "numba"}}
    assert told == {who: f"{package} is not installed here" for who, package in expected.get(name, {}).items()}
