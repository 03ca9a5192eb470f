"""Transposition on every engine against NumPy, and what each rung is there for, counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.engines.base import Engine
from gpu.messages.run_counts import RunCounts
from gpu.patterns import find_pattern
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.work_count import count_pattern
from gpu.run.workload import Workload

Array = np.ndarray[Any, Any]

PATTERN = find_pattern("transpose")
VARIANTS = [variant.name for variant in PATTERN.variants if not variant.library]
SHAPES = [(1, 1), (1, 33), (33, 1), (4, 8), (31, 32), (32, 33), (36, 100), (70, 3)]


def run(engine: Engine, variant: str, values: Array, **params: Any) -> Array:
    chosen = PATTERN.variant(variant)
    outcome: Outcome = run_pattern(engine, Workload(PATTERN, chosen, {"values": values}, params), lambda progress: None)
    assert outcome.report.verified
    result: Array = outcome.outputs["result"]
    return result


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("tile", ["4", "8", "16", "32"])
def test_awkward_sizes(engine: Engine, variant: str, tile: str) -> None:
    for rows, columns in SHAPES:
        values = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) + 1
        np.testing.assert_array_equal(run(engine, variant, values, tile=tile), values.T)


@pytest.mark.parametrize("kind", ["random", "digits", "ones", "ramp"])
def test_every_kind_of_input(kind: str) -> None:
    made = PATTERN.prepare_inputs({}, PATTERN.check({"input": kind, "n": 20, "rows": 9}), 1)["values"]
    assert (made.shape, made.dtype) == ((9, 20), np.float32)
    assert PATTERN.prepare_inputs({}, PATTERN.check({"input": kind, "n": 20}), 1)["values"].shape == (20, 20)


def test_a_ramp_counts_places() -> None:
    made = PATTERN.prepare_inputs({}, PATTERN.check({"input": "ramp", "n": 5, "rows": 3}), 1)["values"]
    assert made.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14]]


def test_an_element_that_went_to_its_neighbor_is_seen(engine: Engine) -> None:
    values = PATTERN.prepare_inputs({}, PATTERN.check({"n": 6, "rows": 4}), 1)
    text = (
        (KERNELS / PATTERN.kernel_file)
        .read_text()
        .replace("out[column * rows + row]", "out[column * rows + (row ^ 1)]")
    )
    outcome = run_pattern(
        engine,
        Workload(PATTERN, PATTERN.variant("scatter"), values, {}, sources={PATTERN.kernel_file: text}),
        lambda progress: None,
    )
    assert outcome.report.verified is False


def counts(variant: str) -> RunCounts:
    return count_pattern(Workload(PATTERN, PATTERN.variant(variant), {}, {"n": 64}), lambda progress: None)


def test_what_each_rung_is_there_for() -> None:
    """Of 64 x 64 elements, 128 warps' worth: 4 sectors a request where lanes are neighbors, 32 where they are not."""
    assert {name: counts(name).sectors for name in VARIANTS} == {
        "scatter": 128 * (4 + 32),
        "gather": 128 * (32 + 4),
        **dict.fromkeys(("tiled", "padded", "coarse", "swizzled", "vectors", "copy"), 128 * (4 + 4)),
    }
    conflicts = {name: counts(name).conflicts for name in VARIANTS}
    assert conflicts.pop("tiled") == 128 * 31
    assert set(conflicts.values()) == {0}
    assert counts("coarse").requests == counts("padded").requests
    assert counts("vectors").requests == counts("padded").requests / 4
    assert counts("copy").shared_requests == 0


def test_what_is_watched_has_the_conflicts_of_the_whole() -> None:
    watched = {
        name: count_pattern(
            Workload(PATTERN, PATTERN.variant(name), {}, PATTERN.step_params), lambda progress: None, full_input=True
        )
        for name in ("scatter", "tiled", "padded", "swizzled")
    }
    assert watched["tiled"].conflicts == 2 * 7
    assert watched["padded"].conflicts == watched["swizzled"].conflicts == 0
    assert watched["scatter"].sectors > 2 * watched["tiled"].sectors


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[1.0, np.nan]]), "Row 0, column 1 of the matrix, nan, is not a finite number."),
        (np.zeros((3, 0)), "The matrix has 3 rows and 0 columns; 1 to 16384 are allowed."),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(engine: Engine, values: Array, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(engine, "scatter", values)


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
def test_large_matrices_on_the_gpu() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        for rows, columns in ((4096, 4096), (1, 16384), (16384, 1), (5003, 7001), (1028, 16380)):
            values = np.random.default_rng(6).random((rows, columns), np.float32)
            for variant in VARIANTS:
                np.testing.assert_array_equal(run(engine, variant, values), values.T)
    finally:
        engine.close()
