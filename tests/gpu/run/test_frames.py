"""What is taken of a run while it goes on: the partial results that one value is made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from gpu import engines
from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.run.frames import Frames
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload

REDUCTION = find_pattern("reduction")
KEEP_NONE = ("one-thread", "atomic")
FOLDED = [each for each in REDUCTION.variants if not each.library and each.name not in KEEP_NONE]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with closing(engines.create_engine("simulator")) as made:
        yield made


def run_and_fold(engine: Engine, variant: str, **params: object) -> Outcome:
    given = {"n": 1000, "block": "32", "dtype": "int32", "operator": "sum", **params}
    taken = Frames()
    return run_pattern(
        engine, Workload(REDUCTION, REDUCTION.variant(variant), {}, given), lambda progress: None, frames=taken
    )


@pytest.mark.parametrize("variant", [each.name for each in FOLDED])
def test_the_partial_results_of_each_launch_come_to_the_result(engine: Engine, variant: str) -> None:
    outcome = run_and_fold(engine, variant)
    counts = outcome.presented_arrays["partial counts"].tolist()
    assert counts
    assert counts == sorted(counts, reverse=True)
    for number, count in enumerate(counts):
        left = outcome.presented_arrays[f"partials {number}"]
        assert left.shape == (2, count)
        assert left[0].sum() == outcome.outputs["result"][0]
    assert outcome.report.time_ms.download < 1e3


def test_each_block_of_a_pass_folds_its_own_elements(engine: Engine) -> None:
    outcome = run_and_fold(engine, "neighbored", input="ramp", operator="max")
    assert outcome.presented_arrays["partials 0"][0].tolist() == [*range(31, 999, 32), 999]


@pytest.mark.parametrize("variant", KEEP_NONE)
def test_what_keeps_no_partial_results_has_pieces_of_the_cpu(engine: Engine, variant: str) -> None:
    outcome = run_and_fold(engine, variant)
    assert "partial counts" not in outcome.presented_arrays
    pieces = outcome.presented_arrays["pieces"]
    assert pieces.shape == (16,)
    assert pieces.sum() == outcome.outputs["result"][0]


def test_pieces_wrap_around_as_the_result_does(engine: Engine) -> None:
    outcome = run_and_fold(engine, "shuffle", operator="product")
    product = np.uint32(1)
    for piece in outcome.presented_arrays["pieces"].view(np.uint32):
        product = np.uint32(int(product) * int(piece) % 2**32)
    assert product.view(np.int32) == outcome.outputs["result"][0]


def test_a_run_without_pictures_takes_none(engine: Engine) -> None:
    outcome = run_pattern(
        engine, Workload(REDUCTION, REDUCTION.variant("shuffle"), {}, {"n": 1000}), lambda progress: None
    )
    assert "partial counts" not in outcome.presented_arrays
