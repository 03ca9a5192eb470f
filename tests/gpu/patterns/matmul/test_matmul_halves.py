"""Products of halves on every engine, element by element against NumPy in float64, and what does not take them."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.engines.base import Engine, kernel_text
from gpu.engines.checking_engine import CheckingEngine
from gpu.engines.null import NullEngine
from gpu.patterns import find_pattern
from gpu.patterns.matmul import fp16
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.verification import compare_results
from gpu.run.work_count import count_pattern
from gpu.run.workload import Workload
from tests.gpu.fake_libraries import LibraryEngine
from tests.gpu.patterns.matmul.tensor_maps import require_tensor_maps

Array = np.ndarray[Any, Any]

PATTERN = find_pattern("matmul")
# Rows that begin where copies of 16 bytes may, and that do not; one step along k, none whole, and more than stages.
SIDES = [(1, 1, 1), (3, 8, 16), (65, 9, 31), (5, 17, 200), (70, 40, 72)]


def run(engine: Engine, variant: str, inputs: dict[str, Array] | None = None, **params: Any) -> Outcome:
    chosen = PATTERN.variant(variant)
    if chosen.warpgroups and engine.device.engine == "cuda" and engine.device.no_warpgroups:
        pytest.skip(engine.device.no_warpgroups)
    if chosen.warpgroups and engine.device.engine == "cuda":
        require_tensor_maps()
    asked = {"dtype": "float16", **params}
    return run_pattern(engine, Workload(PATTERN, chosen, inputs or {}, asked), lambda progress: None)


def random_matrices(m: int, n: int, k: int) -> dict[str, Array]:
    rng = np.random.default_rng(m + n + k)
    return {name: rng.uniform(-1, 1, shape).astype(np.float16)
            for name, shape in (("values", (m, k)), ("b", (k, n)), ("c", (m, n)))}  # fmt: skip


def assert_product(outcome: Outcome, inputs: dict[str, Array], alpha: float = 1, beta: float = 0) -> None:
    """As float32 that is added up, gamma_(k + 6) |alpha| |a| |b| + gamma_3 |beta| |c|, and rounded to a half."""
    a, b, c = (inputs[name].astype(np.float64) for name in ("values", "b", "c"))
    alpha, beta = float(np.float32(alpha)), float(np.float32(beta))
    right, depth, u = alpha * (a @ b) + beta * c, a.shape[1] + 6, 2.0**-24
    before = depth * u / (1 - depth * u) * abs(alpha) * (np.abs(a) @ np.abs(b)) + 3 * u * abs(beta) * np.abs(c)
    result = outcome.outputs["result"]
    assert result.dtype == np.float16
    assert (np.abs(result - right) <= before + 2.0**-11 * (np.abs(right) + before) + 2.0**-25).all()
    assert outcome.report.verified


@pytest.mark.parametrize(
    ("tile", "alpha", "beta", "variant"),
    [
        # Warpgroups have tiles of their own, whatever `tile` is, and take seconds in lockstep.
        pytest.param(tile, alpha, beta, variant, marks=[pytest.mark.sweep] * (variant == "warpgroups" and tile != "32"))
        for tile, alpha, beta in (("4", 1, 0), ("16", 0.5, 0), ("32", -0.7, 0.3))
        for variant in ["tiled", "warpgroups"]
    ],
)
def test_awkward_sides(engine: Engine, variant: str, tile: str, alpha: float, beta: float) -> None:
    for m, n, k in SIDES:
        inputs = random_matrices(m, n, k)
        outcome = run(engine, variant, inputs, tile=tile, alpha=alpha, beta=beta)
        assert_product(outcome, inputs, alpha, beta)
        assert outcome.report.least_bytes == 2 * (m * k + k * n + m * n * (2 if beta else 1))


@pytest.mark.parametrize("variant", ["tiled", "warpgroups"])
def test_whole_numbers_that_fit_a_half_come_out_exactly(fast_engine: Engine, variant: str) -> None:
    """And with beta 0 nothing is read from C."""
    inputs = dict(PATTERN.prepare_inputs({}, PATTERN.check({"input": "digits", "n": 21, "m": 29, "k": 18}), 3))
    inputs["c"] = np.full_like(inputs["c"], 60_000)
    outcome = run(fast_engine, variant, inputs)
    product = inputs["values"].astype(int) @ inputs["b"].astype(int)
    assert product.max() < 2048
    np.testing.assert_array_equal(outcome.outputs["result"], product)


def test_what_the_library_is_asked_for() -> None:
    inputs = random_matrices(5, 9, 17)
    assert_product(run(LibraryEngine(), "cublas", inputs), inputs)
    with pytest.raises(InputError, match="alpha has to be 1, and beta 0"):
        run(LibraryEngine(), "cublas", inputs, beta=1)


def test_a_half_that_is_not_the_nearest_one_is_not_verified() -> None:
    inputs, params = random_matrices(20, 24, 33), PATTERN.check({"dtype": "float16"})
    right = PATTERN.reference(inputs, params)
    bound = PATTERN.tolerance(inputs, params)
    nearest = right.astype(np.float16)
    for place, moved, verified in (
        ((0, 0), nearest[0, 0], True),
        ((3, 4), np.nextafter(nearest[3, 4], np.float16(2 * nearest[3, 4])), False),
        ((3, 4), np.float16(np.nan), False),
        ((19, 23), np.float16(np.inf), False),
    ):
        result = nearest.copy()
        result[place] = moved
        assert compare_results(result, right, bound)[1] is verified, moved
    assert compare_results(right, right, PATTERN.tolerance({**inputs, "values": np.zeros((20, 33))}, params))[1]


@pytest.mark.parametrize("variant", [each.name for each in PATTERN.variants])
def test_who_does_not_take_halves_says_who_does(variant: str) -> None:
    obstacle = PATTERN.variant(variant).obstacle(random_matrices(3, 4, 5), PATTERN.check({"dtype": "float16"}))
    assert bool(obstacle) is (variant not in ("tiled", "warpgroups", "cublas"))
    assert not obstacle or "choose Tiled, Tiles by warpgroups or cuBLAS for float16" in obstacle


@pytest.mark.parametrize(
    ("inputs", "params", "message"),
    [
        ({"values": np.array([[1, 65_505.0]])}, {}, "Row 0, column 1 of A, 65505.0, does not fit float16"),
        ({}, {"input": "ones", "n": 8, "alpha": 9000}, r"C may reach 7\.2e\+04, .* the largest float16 is 65504"),
        ({}, {"input": "ones", "n": 8, "beta": 1e5}, "C may reach"),
    ],
)
def test_what_no_half_holds_is_refused(inputs: dict[str, Array], params: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(NullEngine(), "tiled", inputs, **params)


def test_several_devices_are_told_to_take_floats() -> None:
    with pytest.raises(InputError, match="a float16 sum would be rounded each time"):
        PATTERN.require_distributed().plan(SimpleNamespace(params=PATTERN.check({"dtype": "float16"})))


@pytest.mark.parametrize(("m", "n", "k"), [(72, 72, 712), (129, 264, 768)])
def test_blocks_of_a_cluster_share_b_whose_rows_do_not_begin_at_lines(
    fast_engine: Engine, m: int, n: int, k: int
) -> None:
    """One block has rows of C that the other does not have, and more steps than stages."""
    sharing = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(fast_engine, name)

        def build(self, file: str, defines: dict[str, Any]) -> Any:
            sharing.append(defines["SHARING"])
            return fast_engine.build(file, defines)

    inputs = random_matrices(m, n, k)
    assert_product(run(Watched(), "warpgroups", inputs, alpha=0.5, beta=-2.0), inputs, 0.5, -2.0)
    assert set(sharing) == {2}


# On the simulator clusters run in lockstep: with a k that is worth it on a GPU this would take a minute.
@pytest.mark.parametrize("n", [40, pytest.param(66, marks=pytest.mark.sweep)])
def test_sixteen_blocks_share_a_long_k(fast_engine: Engine, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(fp16, "_MIN_SPLIT_DEPTH", 64)
    monkeypatch.setattr(fp16, "_MIN_WIDEST_SPLIT_DEPTH", 64)
    monkeypatch.setattr(fp16, "_WIDEST_SPLIT_SHAPE", replace(fp16._WIDEST_SPLIT_SHAPE, stages=2))
    splits = []

    class Larger:
        device = replace(fast_engine.device, multiprocessors=121)

        def __getattr__(self, name: str) -> Any:
            return getattr(fast_engine, name)

        def build(self, file: str, defines: dict[str, Any]) -> Any:
            splits.append(defines["SPLITS"])
            return fast_engine.build(file, defines)

    inputs = random_matrices(9, n, 1160)
    assert_product(run(Larger(), "warpgroups", inputs, alpha=0.5, beta=-2.0), inputs, 0.5, -2.0)
    assert set(splits) == {16}


@pytest.mark.parametrize(
    ("sides", "opt_in", "tile", "grid"),
    [
        ((4096, 4096, 320), 232_448, (128, 256), 128),
        ((4097, 4097, 320), 232_448, (192, 192), 132),
        ((2048, 2048, 320), 232_448, (128, 256), 128),
        ((2000, 3000, 320), 232_448, (128, 192), 128),
        ((2000, 3000, 768), 232_448, (128, 192, 2), 128),
        ((2040, 2040, 768), 232_448, (128, 256, 2), 128),
        ((2000, 3008, 1000), 232_448, (128, 192), 128),
        ((500, 5000, 504), 232_448, (128, 192), 108),
        ((64, 5000, 1000), 232_448, (64, 64), 79),
        ((3072, 3072, 320), 232_448, (192, 192), 128),
        ((1024, 1024, 320), 232_448, (64, 128), 128),
        ((512, 512, 320), 232_448, (64, 64), 64),
        ((300, 520, 320), 232_448, (64, 64), 45),
        ((300, 520, 321), 232_448, (64, 64), 45),
        ((300, 523, 321), 0, (64, 32), 43),
        ((128, 128, 8000), 232_448, (64, 32), 64),
        ((128, 128, 16384), 232_448, (64, 64), 64),
        ((256, 256, 16384), 232_448, (64, 128), 64),
        ((4096, 64, 4096), 232_448, (64, 64), 128),
        ((4096, 4096, 64), 232_448, (256, 128), 128),
        ((16384, 256, 256), 232_448, (256, 128), 128),
    ],
)
def test_blocks_have_tiles_that_keep_a_device_busy(
    sides: tuple[int, int, int], opt_in: int, tile: tuple[int, ...], grid: int
) -> None:
    """And that fit its memory; rows are filled up where they are not whole parts long.

    A third number of the tile is that of the blocks that share B.
    """
    seen: dict[str, Any] = {}

    class Watched(NullEngine):
        def __init__(self) -> None:
            super().__init__()
            self.device = replace(self.device, multiprocessors=132, shared_bytes_opt_in=opt_in, has_clusters=True)

        def build(self, file: str, defines: Any = None) -> Any:
            seen["tile"] = (defines["ROWS"], defines["COLUMNS"], defines["SHARING"])
            return super().build(file, defines)

        def launch(self, kernel: Any, grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
            seen.setdefault("launches", []).append((math.prod(grid), shared_bytes))

    m, n, k = sides
    for _ in PATTERN.variant("warpgroups").run(
        Watched(), random_matrices(m, n, k), PATTERN.check({"n": n, "dtype": "float16"})
    ):
        pass
    assert seen["tile"] == (*tile, 1)[:3]
    assert len(seen["launches"]) == 1 + (k % 8 > 0) + (n % 8 > 0)
    assert seen["launches"][-1][0] == grid
    assert seen["launches"][-1][1] <= max(opt_in, 48 * 1024)


@pytest.mark.parametrize(
    ("removed", "kinds"),
    [
        pytest.param("", set(), marks=pytest.mark.sweep),
        ("    cluster.sync();\n", {"race", "use-after-scope"}),
        pytest.param("    cluster.barrier_arrive();\n", {"use-after-scope"}, marks=pytest.mark.sweep),
        pytest.param("    cluster.barrier_wait();\n", {"use-after-scope"}, marks=pytest.mark.sweep),
        pytest.param('asm volatile("bar.sync 1,', {"race"}, marks=pytest.mark.sweep),
    ],
)
def test_blocks_that_share_k_wait_for_each_other(
    removed: str, kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks of a run have a smaller k, which no blocks share; each block of this cluster has one step."""
    monkeypatch.setattr(fp16, "_MIN_SPLIT_DEPTH", 512)
    text = kernel_text(fp16.FILE, {})
    assert text.count(removed) == 1 or not removed
    edited = text.replace(removed, 'asm volatile("// ' if removed.startswith("asm") else "") if removed else text
    inputs = random_matrices(16, 20, 512)
    with closing(CheckingEngine()) as engine:
        engine.device = replace(engine.device, multiprocessors=16)
        engine.max_seconds = 60.0  # one launch takes 3 s of the processor: near the default limit on a busy machine
        workload = Workload(
            PATTERN, PATTERN.variant("warpgroups"), inputs, {"dtype": "float16"}, sources={fp16.FILE: edited}
        )
        run_pattern(engine, workload, lambda progress: None)
        assert {finding.kind for finding in engine.findings} == kinds


@pytest.mark.parametrize(
    ("columns", "pitch"), [(8, None), (9, 16), (511, 512), (520, None), (513, 576), (1001, 1024), (1000, None)]
)
def test_rows_that_are_padded_fill_whole_lines_if_they_are_long(columns: int, pitch: int | None) -> None:
    padded: list[tuple[int, ...]] = []

    class Watched(NullEngine):
        def launch(self, kernel: Any, grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
            if kernel.name == "matmul_whole_rows":
                padded.append(arguments[1].shape)
                rows, given, parts = arguments[2:]
                assert (rows, given) == arguments[0].shape
                assert 8 * parts == arguments[1].shape[1]
                assert grid[0] * block[0] >= rows * parts

    params = PATTERN.check({"n": 64, "dtype": "float16"})
    for _ in PATTERN.variant("warpgroups").run(Watched(), random_matrices(3, 64, columns), params):
        pass
    assert padded == ([] if pitch is None else [(3, pitch)])


def test_counts_of_tensor_copies() -> None:
    """A tensor copy writes its boxes line by line, and a line of 128 bytes is a wavefront."""
    params = {"n": 33, "m": 20, "k": 77, "dtype": "float16"}
    counts = count_pattern(Workload(PATTERN, PATTERN.variant("warpgroups"), {}, params), lambda progress: None)
    boxes = 2 * (1 + 1)  # steps along k, each with boxes of A and B, of 64 lines at least
    assert counts.shared_requests >= boxes * 64
    assert counts.wavefronts >= counts.shared_requests


@pytest.mark.gpu
@pytest.mark.hardware
def test_large_halves_on_the_gpu() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        odd_sides = {"n": 1023, "m": 2049, "k": 777}, {"n": 520, "m": 300, "k": 65}, {"n": 3005, "m": 1999, "k": 1000}
        for sides in (*({"n": side} for side in (1024, 2048, 3072, 4096)), *odd_sides):
            for variant in ("tiled", "warpgroups"):
                assert run(engine, variant, **sides, beta=0.5).report.verified
    finally:
        engine.close()
