"""The sparse product on every engine against a dense one in float64."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.engines.base import Engine
from gpu.engines.null import NullEngine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import run_pattern
from gpu.run.work_count import count_pattern
from gpu.run.workload import Workload

Array = np.ndarray[Any, Any]

PATTERN = find_pattern("spmv")
VARIANTS = [variant.name for variant in PATTERN.variants]
MATRICES = ["random", "power-law", "poisson"]


def make_inputs(**params: Any) -> dict[str, Array]:
    return dict(PATTERN.prepare_inputs({}, PATTERN.check(params), 1))


def to_dense(inputs: dict[str, Array]) -> Array:
    n = inputs["values"].size
    matrix = np.zeros((n, n))
    for row in range(n):
        for k in range(inputs["offsets"][row], inputs["offsets"][row + 1]):
            matrix[row, inputs["columns"][k]] += inputs["entries"][k]
    return matrix


def run(engine: Engine, variant: str, inputs: dict[str, Array], **params: Any) -> Any:
    return run_pattern(engine, Workload(PATTERN, PATTERN.variant(variant), inputs, params), lambda progress: None)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("matrix", MATRICES)
def test_awkward_sizes(engine: Engine, variant: str, matrix: str) -> None:
    for n, block, entries in ((0, "8", 1), (1, "32", 16), (31, "8", 3), (33, "64", 1), (130, "32", 40)):
        inputs = make_inputs(n=n, matrix=matrix, entries=entries, input="signed")
        outcome = run(engine, variant, inputs, block=block)
        assert outcome.report.verified
        np.testing.assert_allclose(outcome.outputs["result"], to_dense(inputs) @ inputs["values"], atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_without_entries_and_one_row_with_all(engine: Engine, variant: str) -> None:
    n = 40
    rng = np.random.default_rng(3)
    for lengths in ([0] * n, [0] * 7 + [600] + [0] * 32, [0] * 39 + [300], [300] + [0] * 38 + [300]):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        inputs = {
            "values": rng.random(n, np.float32),
            "offsets": offsets,
            "columns": rng.integers(0, n, offsets[-1]).astype(np.int32),
            "entries": rng.normal(0, 1, offsets[-1]).astype(np.float32),
        }
        outcome = run(engine, variant, inputs, block="32")
        assert outcome.report.verified
        assert (outcome.outputs["result"][np.array(lengths) == 0] == 0).all()


@pytest.mark.parametrize("matrix", MATRICES)
def test_made_matrices(matrix: str) -> None:
    inputs = make_inputs(n=400, matrix=matrix, entries=10)
    lengths = np.diff(inputs["offsets"])
    assert inputs["offsets"][-1] == inputs["columns"].size == inputs["entries"].size
    assert (inputs["columns"] >= 0).all()
    assert (inputs["columns"] < 400).all()
    for row in range(400):
        columns = inputs["columns"][inputs["offsets"][row] : inputs["offsets"][row + 1]]
        assert (np.diff(columns) > 0).all(), "no column comes twice"
    if matrix == "random":
        assert set(lengths.tolist()) == {10}
    elif matrix == "power-law":
        assert lengths.max() > 10 * np.median(lengths)
        assert lengths.mean() == pytest.approx(10, rel=0.05)


def test_poissons_equation_is_minus_the_laplacian_of_a_square() -> None:
    matrix = to_dense(make_inputs(n=25, matrix="poisson"))
    grid = np.random.default_rng(5).random((5, 5))
    padded = np.pad(grid, 1)
    right = 4 * grid - padded[2:, 1:-1] - padded[:-2, 1:-1] - padded[1:-1, 2:] - padded[1:-1, :-2]
    np.testing.assert_allclose((matrix @ grid.ravel()).reshape(5, 5), right, atol=1e-12)


def test_a_file_is_the_vector_and_what_is_cut_gets_a_matrix_of_its_own() -> None:
    params = PATTERN.check({"input": "file"})
    inputs = PATTERN.prepare_inputs({"values": np.arange(9.0)}, params, 1)
    assert inputs["offsets"].size == 10
    assert PATTERN.prepare_inputs(inputs, params, 1) is inputs
    for cut in ({"values": inputs["values"][:4]}, {"columns": inputs["columns"][:5], "entries": inputs["entries"][:5]}):
        again = PATTERN.prepare_inputs({**inputs, **cut}, params, 1)
        assert again["offsets"].size == again["values"].size + 1
        assert again["offsets"][-1] == again["columns"].size == again["entries"].size


def test_what_ell_would_have_to_fill_up_is_refused(engine: Engine) -> None:
    inputs = make_inputs(n=3000, matrix="power-law")
    with pytest.raises(InputError, match=r"ELL pads all rows to the longest one, which has \d+ entries"):
        run(engine, "ell", inputs, matrix="power-law")
    with pytest.raises(InputError, match="Element 1 of the input, nan, is not a finite number"):
        run(engine, "scalar", {"values": np.array([1, np.nan])}, input="file")
    with pytest.raises(InputError, match="The matrix has 4294967296 entries; up to 268435456 are allowed"):
        make_inputs(n=2**24, entries=256)


def test_ell_is_filled_part_by_part(fast_engine: Engine) -> None:
    """It is as large as the matrix; the numbers of its places, eight bytes each, would be twice as much again."""
    inputs = make_inputs(n=2**16, matrix="poisson", input="signed")
    assert run(fast_engine, "ell", inputs, matrix="poisson").report.verified
    filled = 5 * 2**16 * (4 + 4)
    tracemalloc.start()
    for _ in PATTERN.variant("ell").run(NullEngine(), inputs, PATTERN.check({"matrix": "poisson"})):
        pass
    # Both arrays, those that are uploaded, which are as large, and what is made to fill them.
    assert tracemalloc.get_traced_memory()[1] < 2.9 * filled
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("k < offsets[row + 1]; ++k", "k < offsets[row + 1] - 1; ++k"),
        ("for (int k = offsets[row]; k", "for (int k = offsets[row] + 1; k"),
        ("sum += entries[k] * x[columns[k]]", "sum += entries[k] * x[row]"),
    ],
)
def test_an_entry_that_is_lost_or_meets_another_element_is_seen(engine: Engine, right: str, wrong: str) -> None:
    text = (KERNELS / PATTERN.kernel_file).read_text()
    assert right in text
    outcome = run_pattern(
        engine,
        Workload(
            PATTERN,
            PATTERN.variant("scalar"),
            make_inputs(n=40),
            {},
            sources={PATTERN.kernel_file: text.replace(right, wrong, 1)},
        ),
        lambda progress: None,
    )
    assert outcome.report.verified is False


def test_what_each_rung_is_there_for() -> None:
    counted = {
        name: count_pattern(Workload(PATTERN, PATTERN.variant(name), {}, {}), lambda progress: None)
        for name in VARIANTS
    }
    assert counted["coo"].atomics == 16 * 1024 / 32
    assert all(each.atomics == 0 for name, each in counted.items() if name != "coo")
    assert counted["scalar"].sectors > 1.8 * counted["ell"].sectors
    assert counted["vector"].requests > 1.5 * counted["fitted"].requests
    few = {
        name: count_pattern(
            Workload(PATTERN, PATTERN.variant(name), {}, {"matrix": "power-law"}), lambda progress: None
        )
        for name in ("scalar", "balanced")
    }
    assert few["scalar"].lanes < 8
    assert few["balanced"].lanes > 12


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
def test_large_matrices_on_the_gpu() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        for params in (
            {"n": 2**20},
            {"n": 100_003, "matrix": "power-law"},
            {"n": 1_000_003, "matrix": "poisson"},
            {"n": 3001, "entries": 256},
        ):
            inputs = make_inputs(**params)
            for variant in VARIANTS:
                if not PATTERN.variant(variant).obstacle(inputs, PATTERN.check(params)):
                    assert run(engine, variant, inputs, **params).report.verified
    finally:
        engine.close()
