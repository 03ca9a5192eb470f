"""Matrix products on every engine against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.engines.base import Engine
from gpu.engines.null import NullEngine
from gpu.patterns import find_pattern
from gpu.run import verification
from gpu.run.host_program import run_host_program
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload
from tests.gpu.fake_libraries import LibraryEngine
from tests.gpu.patterns.matmul.tensor_maps import require_tensor_maps
from tests.tiers import spread

Array = np.ndarray[Any, Any]

PATTERN = find_pattern("matmul")
VARIANTS = [variant.name for variant in PATTERN.variants if not variant.library]
THREADS = [variant.name for variant in PATTERN.variants if not variant.library and not variant.is_single_thread]
SIDES = [(1, 1, 1), (1, 33, 31), (33, 31, 70), (40, 36, 20)]
SLOW = [(257, 131, 33), (128, 256, 64), (300, 1, 300)]


def run(engine: Engine, variant: str, inputs: dict[str, Array] | None = None, **params: Any) -> Outcome:
    chosen = PATTERN.variant(variant)
    if chosen.warpgroups and engine.device.engine == "cuda" and engine.device.no_warpgroups:
        pytest.skip(engine.device.no_warpgroups)
    return run_pattern(engine, Workload(PATTERN, chosen, inputs or {}, params), lambda progress: None)


def random_matrices(m: int, n: int, k: int, seed: int = 5) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1, 1, shape).astype(np.float32)
            for name, shape in (("values", (m, k)), ("b", (k, n)), ("c", (m, n)))}  # fmt: skip


def assert_product(outcome: Outcome, inputs: dict[str, Array], alpha: float, beta: float) -> None:
    """Higham's bound, element by element: gamma_(k + 2) |alpha| |a| |b| + gamma_2 |beta| |c|."""
    a, b, c = (inputs[name].astype(np.float64) for name in ("values", "b", "c"))
    alpha, beta = float(np.float32(alpha)), float(np.float32(beta))
    result = outcome.outputs["result"]
    assert result.dtype == np.float32
    assert np.isfinite(result).all()
    u = 2.0**-24
    depth = a.shape[1] + 2
    bound = depth * u / (1 - depth * u) * abs(alpha) * (np.abs(a) @ np.abs(b)) + 3 * u * abs(beta) * np.abs(c)
    assert (np.abs(result - (alpha * (a @ b) + beta * c)) <= bound).all()
    assert outcome.report.verified


@pytest.mark.parametrize(
    ("tile", "alpha", "beta", "variant"),
    [
        # The first tier has each variant with one of the tiles.
        pytest.param(tile, alpha, beta, variant, marks=[pytest.mark.sweep] * ((i + j) % 2))
        for i, (tile, alpha, beta) in enumerate((("4", 1, 0), ("32", -0.7, 0.3)))
        for j, variant in enumerate(VARIANTS)
    ],
)
def test_awkward_sides(engine: Engine, variant: str, tile: str, alpha: float, beta: float) -> None:
    for m, n, k in SIDES:
        inputs = random_matrices(m, n, k)
        outcome = run(engine, variant, inputs, tile=tile, alpha=alpha, beta=beta)
        assert_product(outcome, inputs, alpha, beta)


@pytest.mark.parametrize(
    ("variant", "m", "n", "k"),
    [
        # The first tier has each variant with the first sides, which no tile divides, and one of the others.
        pytest.param(variant, *sides, marks=[pytest.mark.sweep] * (j > 0 and (i + j) % 2))
        for i, variant in enumerate(THREADS)
        for j, sides in enumerate(SLOW)
    ],
)
def test_several_blocks_and_steps(fast_engine: Engine, variant: str, m: int, n: int, k: int) -> None:
    inputs = random_matrices(m, n, k)
    assert_product(run(fast_engine, variant, inputs, beta=2), inputs, 1, 2)


@pytest.mark.parametrize(("tile", "variant"), spread(("8", "16"), VARIANTS))
def test_whole_numbers_come_out_exactly(engine: Engine, variant: str, tile: str) -> None:
    inputs = dict(PATTERN.prepare_inputs({}, PATTERN.check({"input": "digits", "n": 37, "m": 29, "k": 18}), 3))
    outcome = run(engine, variant, inputs, alpha=3, beta=-2, tile=tile)
    a, b, c = (inputs[name].astype(int) for name in ("values", "b", "c"))
    np.testing.assert_array_equal(outcome.outputs["result"], 3 * (a @ b) - 2 * c)
    assert outcome.report.deviation is not None
    assert outcome.report.deviation.max_abs == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_with_beta_0_nothing_is_read_from_c(engine: Engine, variant: str) -> None:
    """As BLAS has it: what stood there may be anything, also what is not a number."""

    class Spoiled:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def allocate(self, shape: Any, dtype: Any) -> Any:
            buffer = engine.allocate(shape, dtype)
            engine.fill(buffer, np.nan if np.dtype(dtype).kind == "f" else 0)
            return buffer

        def launch(self, *arguments: Any, **options: Any) -> None:
            engine.launch(*arguments, **options)

    for n in (20, 33):
        outcome = run(Spoiled(), variant, random_matrices(n, n, n))
        assert np.isfinite(outcome.outputs["result"]).all()
        assert outcome.report.verified


@pytest.mark.parametrize("clusters", [True, False])
@pytest.mark.parametrize(
    ("m", "n", "k", "shared"),
    [
        (70, 61, 150, True),
        (70, 61, 60, False),
        (33, 65, 3001, True),
        (200, 1100, 130, False),
        (500, 521, 700, True),  # and rows of B are filled up
    ],
)
def test_what_is_too_little_for_all_is_made_by_blocks_that_share_k(
    fast_engine: Engine, m: int, n: int, k: int, shared: bool, clusters: bool
) -> None:
    """Where k is long enough: those of a cluster, where there are clusters, or parts that are added up."""
    shares, splits = [], []

    class Wide:
        device = replace(fast_engine.device, multiprocessors=66, has_clusters=clusters)

        def __getattr__(self, name: str) -> Any:
            return getattr(fast_engine, name)

        def build(self, file: str, defines: dict[str, Any]) -> Any:
            splits.append(defines["SPLITS"])
            return fast_engine.build(file, defines)

        def launch(self, kernel: Any, grid: tuple[int, int, int], *rest: Any) -> None:
            shares.append(grid[2])
            fast_engine.launch(kernel, grid, *rest)

    inputs = random_matrices(m, n, k)
    assert_product(run(Wide(), "peak", inputs, alpha=-0.7, beta=0.3), inputs, -0.7, 0.3)
    assert (max(shares) > 1) == shared
    assert clusters or max(splits) == 1


# On the simulator its clusters run in lockstep, a second per 130 columns of A.
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (33, 30, 579),
        pytest.param(33, 30, 2051, marks=pytest.mark.sweep),
        pytest.param(33, 30, 5003, marks=pytest.mark.sweep),
        pytest.param(64, 32, 4096, marks=pytest.mark.sweep),
        pytest.param(1, 17, 2049, marks=pytest.mark.sweep),
    ],
)
def test_blocks_of_a_cluster_share_the_long_rows_of_few_halves(
    fast_engine: Engine, m: int, n: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu.patterns.matmul.fp16._MIN_SPLIT_DEPTH", min(k, 2048))
    splits = []

    class RunCounter:
        def __getattr__(self, name: str) -> Any:
            return getattr(fast_engine, name)

        def build(self, file: str, defines: dict[str, Any]) -> Any:
            splits.append(defines["SPLITS"])
            return fast_engine.build(file, defines)

    if fast_engine.device.engine == "cuda" and fast_engine.device.no_warpgroups:
        pytest.skip(fast_engine.device.no_warpgroups)
    if fast_engine.device.engine == "cuda":
        require_tensor_maps()
    pattern = find_pattern("matmul")
    params = pattern.check({"m": m, "n": n, "k": k, "dtype": "float16", "alpha": 0.5, "beta": -2.0})
    inputs = pattern.prepare_inputs({}, params, 5)
    outputs = run_host_program(RunCounter(), pattern.variant("warpgroups"), inputs, params, lambda progress: None)
    ours, right = verification.prepare_comparison(pattern, pattern.variant("warpgroups"), inputs, params, outputs)
    assert verification.compare_results(ours, right, pattern.tolerance(inputs, params))[1]
    assert splits == [8]


def test_sums_of_two_halves_err_no_more_than_sums_of_floats(fast_engine: Engine) -> None:
    """Of floats that are added up one after the other, as the rungs without tensor cores do; rows of any magnitude."""
    inputs = random_matrices(70, 40, 300)
    inputs["values"] *= np.float32(2.0) ** np.arange(-60, 80, 2, np.float32)[:, None]
    exact = inputs["values"].astype(np.float64) @ inputs["b"].astype(np.float64)
    largest = np.abs(exact).max(axis=1, keepdims=True)
    errors = [
        np.square((run(fast_engine, variant, inputs).outputs["result"] - exact) / largest).mean()
        for variant in ("warpgroups", "registers-2d")
    ]
    assert errors[0] <= errors[1]


def test_a_device_without_warpgroups_is_told(fast_engine: Engine) -> None:
    class Older:
        device = replace(fast_engine.device, no_warpgroups="This GPU has 8.6.")

        def __getattr__(self, name: str) -> Any:
            return getattr(fast_engine, name)

    with pytest.raises(InputError, match=r"'Tensor cores: tiles by warpgroups' cannot run here\. This GPU has 8\.6\."):
        run(Older(), "warpgroups", random_matrices(4, 4, 4))


@pytest.mark.parametrize(
    ("m", "n", "opt_in", "shape", "grid"),
    [
        (2048, 2048, 232_448, (128, 128, 3), (132, 1, 1)),
        (1024, 1100, 232_448, (128, 64, 4), (132, 1, 1)),
        (300, 70, 232_448, (128, 64, 4), (6, 1, 1)),
        (300, 70, 0, (64, 16, 2), (25, 1, 1)),
    ],
)
def test_warpgroups_have_tiles_that_fit_the_device(
    m: int, n: int, opt_in: int, shape: tuple[int, int, int], grid: tuple[int, int, int]
) -> None:
    """Large where these are as many as multiprocessors at least, and two of the smallest in 48 KB."""
    seen = []

    class Watched(NullEngine):
        def __init__(self) -> None:
            super().__init__()
            self.device = replace(self.device, multiprocessors=132, shared_bytes_opt_in=opt_in)

        def build(self, file: str, defines: Any = None) -> Any:
            seen.append(tuple((defines or {}).values()))
            return super().build(file, defines)

        def launch(self, kernel: Any, grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
            seen.append((grid, shared_bytes))

    params = PATTERN.check({"n": n, "m": m, "k": 8})
    for _ in PATTERN.variant("warpgroups").run(Watched(), random_matrices(m, n, 8), params):
        pass
    assert shape in seen
    assert seen[-1] == (grid, shape[2] * (sum(shape[:2]) * 64 * 2 * 2 + 16))
    assert seen[-1][1] <= max(opt_in, 48 * 1024)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (-0.7, 0.3)])
def test_what_the_library_is_asked_for(alpha: float, beta: float) -> None:
    for m, n, k in SIDES:
        inputs = random_matrices(m, n, k)
        assert_product(run(LibraryEngine(), "cublas", inputs, alpha=alpha, beta=beta), inputs, alpha, beta)


def test_the_tolerance_is_tight_enough_to_miss_no_product() -> None:
    """A product that is left out is seen; whole numbers have to be right to the last digit."""
    params = PATTERN.check({"input": "random", "n": 64})
    inputs = PATTERN.prepare_inputs({}, params, 0)
    assert 0 < PATTERN.tolerance(inputs, params) < 1e-3
    params = PATTERN.check({"input": "digits", "n": 64})
    assert PATTERN.tolerance(PATTERN.prepare_inputs({}, params, 0), params) == 0
    halved = PATTERN.check({"input": "digits", "n": 64, "alpha": 0.5})
    assert PATTERN.tolerance(PATTERN.prepare_inputs({}, halved, 0), halved) > 0


def test_sides_that_are_not_said_are_those_of_a_square() -> None:
    made = PATTERN.prepare_inputs({}, PATTERN.check({"n": 5}), 0)
    assert [made[name].shape for name in ("values", "b", "c")] == [(5, 5)] * 3
    made = PATTERN.prepare_inputs({}, PATTERN.check({"n": 5, "m": 3, "k": 2}), 0)
    assert [made[name].shape for name in ("values", "b", "c")] == [(3, 2), (2, 5), (3, 5)]


def test_a_matrix_that_is_given_is_a_and_the_rest_is_made_to_fit(engine: Engine) -> None:
    a = np.arange(12).reshape(3, 4)
    outcome = run(engine, "tiled", {"values": a}, n=7, input="file")
    assert outcome.outputs["result"].shape == (3, 7)
    assert outcome.report.verified
    assert outcome.presented_arrays["A shape"].tolist() == [3, 4]
    assert outcome.presented_arrays["B shape"].tolist() == [4, 7]
    assert outcome.presented_arrays["C picture"].shape == (3, 7, 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[1.0, np.nan]]), "Row 0, column 1 of A, nan, is not a finite number."),
        (np.array([[1.0], [np.inf]]), "Row 1, column 0 of A, inf, is not a finite number."),
        (np.array([[1e39]]), r"Row 0, column 0 of A, 1e\+39, does not fit float32."),
        (np.zeros((0, 3)), "A has 0 rows and 3 columns; 1 to 16384 are allowed."),
    ],
)
def test_what_is_no_matrix_of_float32_is_refused(engine: Engine, values: Array, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(engine, "tiled", {"values": values}, n=2)


def test_factors_that_do_not_fit_are_refused(engine: Engine) -> None:
    inputs = random_matrices(3, 4, 5) | {"b": np.zeros((6, 4), np.float32)}
    with pytest.raises(InputError, match=r"A is 3 x 5 and B is 6 x 4: A's columns have to match B's rows\."):
        run(engine, "tiled", inputs)


def test_a_file_that_is_not_there_is_asked_for(engine: Engine) -> None:
    with pytest.raises(InputError, match="No file of numbers is open"):
        run(engine, "tiled", input="file")


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
def test_large_matrices_on_the_gpu() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        for sides in ({"n": 2048}, {"n": 1023, "m": 2049, "k": 777}, {"n": 4096, "m": 1, "k": 513}):
            for variant in THREADS:
                if not PATTERN.variant(variant).unsupported_reason(engine.device):
                    assert run(engine, variant, **sides, beta=0.5).report.verified
    finally:
        engine.close()
