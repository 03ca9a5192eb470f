"""Figures in the lessons' texts equal those that the project has measured."""

from __future__ import annotations

from gpu.base.paths import ASSETS
from gpu.timing.gpus import find_gpu


def test_the_rate_of_atomics_on_one_address_is_the_h200s():
    text = " ".join((ASSETS / "lessons" / "10-histogram" / "lesson.md").read_text("utf-8").split())
    billions = 1 / find_gpu("h200").atomic_same_ns
    assert f"an H200 completes {billions:.1f} billion per second on one address" in text
