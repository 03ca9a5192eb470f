"""What repetitions come to, and when a figure is that of launches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu.engines.base import PhaseTimes
from gpu.messages.runs.timing import LAUNCH_BOUND_RATIO, Timing, summarize_timing

ONE = Timing(
    0.030, 0.029, 0.034, 9, launches=1, empty_launch=0.002, comparable_from=2**26, size=2**20, size_parameter="n"
)


def test_the_median_counts_and_its_spread_is_told() -> None:
    warm = [PhaseTimes(1, kernel, 1, 3) for kernel in (5.0, 100.0, 4.0, 6.0, 5.5)]
    timing = summarize_timing(
        warm, PhaseTimes(0, 20, 0, 3, gaps=0.7), empty_launch=0.002, size_parameter="n", size=8, comparable_from=16
    )
    assert timing == Timing(5.5, 4.0, 100.0, 5, 3, 0.7, 0.002, 16, 8, "n")
    assert timing.data() == {
        "median": 5.5, "min": 4.0, "max": 100.0, "repetitions": 5, "launches": 3, "gaps": 0.7, "launch": 0.002,
        "bound_by_launches": False, "comparable_from": 16,
    }  # fmt: skip
    assert summarize_timing(warm).gaps == 0.0


@pytest.mark.parametrize(("launches", "milliseconds"), [(1, 0.02), (3, 0.06), (200, 4.0)])
def test_a_run_is_bound_below_ten_empty_launches_each(launches: int, milliseconds: float) -> None:
    assert LAUNCH_BOUND_RATIO == 10
    timing = replace(ONE, launches=launches)
    assert replace(timing, median=0.999 * milliseconds).bound_by_launches
    assert not replace(timing, median=milliseconds * 1.001).bound_by_launches


def test_what_is_not_known_binds_nothing() -> None:
    assert not replace(ONE, empty_launch=0.0, median=1e-6).bound_by_launches
    assert not replace(ONE, median=0.0).bound_by_launches


def test_a_run_that_is_bound_by_launches_says_so_and_offers_another_size() -> None:
    bound = replace(ONE, median=0.0125)
    assert bound.sentence == "Launch overhead: an empty launch would take 2 µs of these 12.5 µs."
    assert bound.recommended_size == 2**26
    several = replace(bound, launches=3)
    assert several.sentence.startswith("Launch overhead: 3 empty launches would take 6 µs")


def test_a_run_that_leaves_the_gpu_empty_says_so() -> None:
    # As of 512 x 512 matrices: 161 microseconds, and most multiprocessors had nothing to do.
    small = replace(ONE, median=0.161)
    assert small.sentence.startswith("Too small to fill this GPU")
    assert small.recommended_size == 2**26


def test_a_run_that_is_large_enough_says_nothing() -> None:
    large = replace(ONE, median=0.1, size=2**26)
    assert (large.sentence, large.recommended_size) == ("", 0)
    unknown = replace(ONE, median=0.1, size=0, comparable_from=0)
    assert (unknown.sentence, unknown.recommended_size) == ("", 0)
    assert unknown.data()["comparable_from"] is None
