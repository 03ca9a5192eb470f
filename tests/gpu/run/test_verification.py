from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from gpu.messages.runs.pattern_runs import Deviation
from gpu.run import verification


def test_the_largest_difference_is_found_and_related_to_the_largest_value():
    reference = np.array([[1.0, -8.0], [2.0, 4.0]])
    result = np.array([[1.0, -8.0], [2.5, 4.0]], np.float32)
    assert verification.compare_results(result, reference, 0.5) == (Deviation(0.5, 0.0625), True)
    assert verification.compare_results(result, reference, 0.4) == (Deviation(0.5, 0.0625), False)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_never_verifies(wrong: float):
    good, bad = np.ones(5), np.ones(5)
    bad[3] = wrong
    for result, reference in ((bad, good), (good, bad), (bad, bad)):
        assert verification.compare_results(result, reference, np.inf) == (Deviation(np.inf, np.inf), False)


@pytest.mark.parametrize("shape", [(5, 1), (4,), (1, 5), ()])
def test_another_shape_never_verifies(shape: tuple[int, ...]):
    assert verification.compare_results(np.ones(shape), np.ones(5), np.inf) == (Deviation(np.inf, np.inf), False)


def test_counts_compare_exactly_whatever_their_types():
    counts = np.array([[0, 3, 2**32 - 1]], np.uint32)
    assert verification.compare_results(counts, counts.astype(np.int64), 0.0) == (Deviation(0.0, 0.0), True)
    fewer = counts - np.array([0, 1, 0], np.uint32)
    assert verification.compare_results(fewer, counts.astype(np.int64), 0.0)[0].max_abs == 1.0
    assert verification.compare_results(counts, counts.astype(np.int64) + 5, 0.0)[0].max_abs == 5.0


def test_a_reference_of_zeros():
    assert verification.compare_results(np.zeros(3), np.zeros(3), 0.0) == (Deviation(0.0, 0.0), True)
    assert verification.compare_results(np.full(3, 0.25), np.zeros(3), 1.0) == (Deviation(0.25, np.inf), True)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_equals_nothing(shape: tuple[int, ...]):
    assert verification.compare_results(np.ones(shape), np.ones(shape), 0.0) == (Deviation(0.0, 0.0), True)


def test_a_single_number():
    assert verification.compare_results(np.array(3.0), np.array(2.0), 2.0) == (Deviation(1.0, 0.5), True)


@pytest.mark.parametrize(
    "place", [0, verification.CHUNK_ELEMENTS - 1, verification.CHUNK_ELEMENTS, 3 * verification.CHUNK_ELEMENTS + 4]
)
def test_every_piece_is_looked_at(place: int):
    reference = np.ones(3 * verification.CHUNK_ELEMENTS + 5)
    reference[-1] = 4  # the largest magnitude of all pieces
    result = reference.copy()
    result[place] += 2
    assert verification.compare_results(result, reference, 1.0) == (Deviation(2.0, 0.5), False)


@pytest.mark.parametrize(
    "shape", [(1, 3 * verification.CHUNK_ELEMENTS), (3 * verification.CHUNK_ELEMENTS, 1), (700, 1300)]
)
def test_scattered_arrays_compare_as_they_look(shape: tuple[int, int]):
    reference = np.random.default_rng(1).random(shape)
    result = np.array(reference, order="F")
    assert verification.compare_results(result, reference, 0.0)[1]
    result[-1, -1] += 1
    assert verification.compare_results(result, reference, 0.0)[0].max_abs == pytest.approx(1.0)


def test_a_large_image_needs_no_further_copy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    reference = np.ones((2048, 2048))
    result = np.ones((2048, 2048), np.float32)
    tracemalloc.start()
    verification.compare_results(result, reference, 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < reference.nbytes / 4


@pytest.mark.parametrize("order", ["C", "F"])
def test_each_element_has_a_tolerance_of_its_own(order: str):
    shape = (700, 1300)
    tolerance = np.asarray(np.arange(700 * 1300.0).reshape(shape), order=order)
    result = np.asarray(tolerance, np.float64)
    assert verification.compare_results(result, np.zeros(shape), tolerance) == (Deviation(result.max(), np.inf), True)
    for place in ((0, 0), (350, 7), (699, 1299)):
        wrong = result.copy()
        wrong[place] = np.nextafter(wrong[place], np.inf)
        assert verification.compare_results(wrong, np.zeros(shape), tolerance)[1] is False


@pytest.mark.parametrize(("ours", "theirs"), [("C", "C"), ("F", "F"), ("C", "F"), ("F", "C")])
def test_no_more_than_a_piece_per_thread_is_copied(ours: str, theirs: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    reference = np.asarray(np.ones((2048, 2048)), order=theirs)
    result = np.asarray(reference, np.float32, order=ours)
    tracemalloc.start()
    assert verification.compare_results(result, reference, 0.0)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 3.5 * 8 * verification.CHUNK_ELEMENTS
