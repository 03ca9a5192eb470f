"""The 7-point stencil on every engine against SciPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.work_count import count_pattern
from gpu.run.workload import Workload

Array = np.ndarray[Any, Any]

PATTERN = find_pattern("stencil")
VARIANTS = [variant.name for variant in PATTERN.variants]
SHAPES = [(1, 1, 1), (1, 1, 9), (2, 9, 1), (9, 2, 3), (5, 6, 8), (33, 3, 31), (3, 34, 36)]


def run(engine: Engine, variant: str, grid: Array, **params: Any) -> Outcome:
    chosen = PATTERN.variant(variant)
    params = {"n": grid.shape[2], "rows": grid.shape[1], **params}
    values = {"values": grid.reshape(-1, grid.shape[2])}
    return run_pattern(engine, Workload(PATTERN, chosen, values, params), lambda progress: None)


def expected(grid: Array, center: float, around: float) -> Array:
    weights = around * scipy.ndimage.generate_binary_structure(3, 1).astype(np.float64)
    weights[1, 1, 1] = center
    return scipy.ndimage.correlate(grid.astype(np.float64), weights, mode="constant")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("tile", ["4", "8"])
def test_awkward_sizes(engine: Engine, variant: str, tile: str) -> None:
    rng = np.random.default_rng(2)
    for shape in SHAPES:
        grid = rng.normal(0, 5, shape).astype(np.float32)
        outcome = run(engine, variant, grid, tile=tile, center=0.5, around=0.125)
        assert outcome.report.verified
        np.testing.assert_allclose(outcome.outputs["result"].reshape(shape), expected(grid, 0.5, 0.125), atol=2e-5)


def test_the_reference_is_another_library_s_too() -> None:
    grid = np.random.default_rng(3).normal(0, 1, (5, 6, 7)).astype(np.float32)
    params = PATTERN.check({"n": 7, "rows": 6})
    ours = PATTERN.reference({"values": grid.reshape(30, 7)}, params)
    np.testing.assert_allclose(ours.reshape(grid.shape), expected(grid, -6, 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("lost", ["z - 1", "z + 1", "y - 1", "y + 1", "x - 1", "x + 1"])
def test_a_neighbor_that_is_lost_is_seen(engine: Engine, lost: str) -> None:
    text = (KERNELS / PATTERN.kernel_file).read_text()
    wrong = text.replace(lost, lost[0], 1) if lost in text else ""
    assert wrong
    grid = np.random.default_rng(4).random((4, 5, 6), np.float32)
    outcome = run_pattern(
        engine,
        Workload(
            PATTERN,
            PATTERN.variant("naive"),
            {"values": grid.reshape(20, 6)},
            {"n": 6, "rows": 5},
            sources={PATTERN.kernel_file: wrong},
        ),
        lambda progress: None,
    )
    assert outcome.report.verified is False


def test_rows_that_make_no_whole_plane_are_refused(engine: Engine) -> None:
    for shape, rows, words in (((7, 4), 3, "7 rows are not a whole number of planes of 3 rows"),):
        with pytest.raises(InputError, match=words) as refused:
            run_pattern(
                engine,
                Workload(PATTERN, PATTERN.variants[0], {"values": np.ones(shape)}, {"n": 4, "rows": rows}),
                lambda progress: None,
            )
        assert "the number of rows per plane" in refused.value.advice
    with pytest.raises(InputError, match="The grid has 1073741824 points; up to 268435456 are allowed"):
        PATTERN.prepare_inputs({}, PATTERN.check({"n": 512, "rows": 512, "planes": 4096}), 0)
    with pytest.raises(InputError, match="Row 1, column 0 of the grid, nan, is not a finite number"):
        run(engine, "naive", np.array([[[1.0], [np.nan]]]))


def test_the_middle_plane_is_shown_with_the_number_of_its_first_row() -> None:
    params = PATTERN.check({"n": 4, "rows": 3, "planes": 5, "input": "random"})
    inputs = PATTERN.prepare_inputs({}, params, 1)
    shown = PATTERN.present(inputs, params, {"result": 2 * inputs["values"]})
    np.testing.assert_array_equal(shown["Result"], 2 * inputs["values"][6:9])
    assert shown["Input first"] == shown["Result first"] == 6


def test_each_rung_loads_less_of_global_memory() -> None:
    counted = {
        name: count_pattern(
            Workload(PATTERN, PATTERN.variant(name), {}, {"n": 128, "rows": 8, "planes": 4}),
            lambda progress: None,
            full_input=True,
        )
        for name in VARIANTS
    }
    assert {each.operations for each in counted.values()} == {8 * 4096}
    assert counted["naive"].requests > 4 * counted["vectors"].requests
    assert counted["registers"].shared_requests < counted["coarse"].shared_requests
    assert counted["vectors"].barriers == counted["naive"].barriers == 0


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
def test_large_grids_on_the_gpu() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        for shape in ((256, 256, 256), (1, 1000, 500), (500, 1, 499), (67, 131, 257), (2049, 3, 5)):
            grid = np.random.default_rng(6).normal(0, 1, shape).astype(np.float32)
            for variant in VARIANTS:
                assert run(engine, variant, grid).report.verified
    finally:
        engine.close()
