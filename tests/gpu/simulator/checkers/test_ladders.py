"""The checkers over the project's own kernels: only the cautionary ones race, and nothing else is found."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.paths import KERNELS
from gpu.patterns import find_pattern
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from gpu.simulator.checkers.checker_set import create_checkers
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.watched_launch import WatchedEngine, launch_watched


@pytest.mark.parametrize(
    ("pattern", "variant"),
    [(name, variant.name) for name in ("convolution", "histogram") for variant in find_pattern(name).variants],
)
@pytest.mark.parametrize("shape", [(37, 61), pytest.param((64, 64), marks=pytest.mark.sweep), (9, 19, 3)])
def test_the_ladders(pattern: str, variant: str, shape: tuple[int, ...]) -> None:
    checker, *others = create_checkers({"out"})
    declared = find_pattern(pattern)
    chosen = declared.variant(variant)
    image = np.random.default_rng(7).integers(0, 256, shape, np.uint8)
    inputs = {"image": image, "maxval": np.array(255, np.uint8)}
    params = {"size": 5} if pattern == "convolution" else {}
    run_pattern(
        WatchedEngine(checker, *others),
        Workload(declared, chosen, inputs, params),
        lambda progress: None,
        with_reference=False,
    )
    assert not any(other.findings for other in others)
    if not chosen.deliberate_error:
        assert checker.findings == []
    else:
        assert all(finding.positions[0].line == finding.positions[1].line for finding in checker.findings)
        assert len(checker.findings) == 1


@pytest.mark.parametrize(
    ("pattern", "variant", "params"),
    [
        (name, variant.name, params)
        for name, params in (("scan", {}), ("scan", {"kind": "exclusive"}), ("compaction", {}),
                             ("compaction", {"result": "split"}))
        for variant in find_pattern(name).variants
    ],
)  # fmt: skip
def test_scans_and_compactions(pattern: str, variant: str, params: dict[str, str]) -> None:
    declared = find_pattern(pattern)
    for n, block in ((33, 16), (1000, 64)):
        checker, *others = create_checkers({"out"})
        given = {"n": n, "block": block, **params}
        run_pattern(
            WatchedEngine(checker, *others),
            Workload(declared, declared.variant(variant), {}, given),
            lambda progress: None,
        )
        assert not any(each.findings for each in (checker, *others))


@pytest.mark.parametrize(
    ("variant", "result"),
    [
        # With places the kernels move all that they do without, and have more barriers.
        pytest.param(variant.name, result, marks=[pytest.mark.sweep] * (result == "keys" and number % 2))
        for number, variant in enumerate(find_pattern("sort").variants)
        if not variant.library
        for result in ("keys", "places")
    ],
)
def test_the_sorts(variant: str, result: str) -> None:
    declared = find_pattern("sort")
    for n, block in ((33, 8), (60 if declared.variant(variant).is_single_thread else 200, 64)):
        checker, *others = create_checkers({"keys_out", "places_out"})
        given = {"n": n, "block": block, "result": result, "input": "few"}
        run_pattern(
            WatchedEngine(checker, *others),
            Workload(declared, declared.variant(variant), {}, given),
            lambda progress: None,
        )
        assert not any(each.findings for each in (checker, *others))


@pytest.mark.parametrize(
    ("pattern", "variant", "params"),
    [
        pytest.param(name, variant.name, params, marks=[pytest.mark.sweep] * is_further)
        for name, params, is_further in (("matmul", {"n": 21, "m": 18, "k": 13, "tile": "4"}, False),
                                         ("matmul", {"n": 40, "tile": "8"}, True),
                                         ("softmax", {"n": 70, "rows": 3, "block": "8"}, True),
                                         ("softmax", {"n": 130, "rows": 2, "block": "64"}, False),
                                         ("transpose", {"n": 21, "rows": 18, "tile": "4"}, False),
                                         ("transpose", {"n": 40, "rows": 8, "tile": "16"}, True),
                                         ("stencil", {"n": 9, "rows": 7, "planes": 5, "tile": "4", "input": "random"},
                                          False))
        for variant in find_pattern(name).variants
        if not variant.library and not (variant.is_single_thread and "m" not in params)
    ],
)  # fmt: skip
def test_matrices(pattern: str, variant: str, params: dict[str, int | str]) -> None:
    declared = find_pattern(pattern)
    checker, *others = create_checkers({"c", "out"})
    run_pattern(
        WatchedEngine(checker, *others),
        Workload(declared, declared.variant(variant), {}, params),
        lambda progress: None,
    )
    assert not any(each.findings for each in (checker, *others))


@pytest.mark.parametrize(
    ("variant", "n", "block"),
    [
        # The first tier has each variant with one of the large sizes.
        pytest.param(variant.name, n, block, marks=[pytest.mark.sweep] * (n == 16 or (n > 16 and (i + j) % 2)))
        for i, variant in enumerate(find_pattern("reduction").variants)
        for j, (n, block) in enumerate(((0, 8), (16, 8), (5000, 64), (9000, 256)))
    ],
)
def test_the_reductions(variant: str, n: int, block: int) -> None:
    declared = find_pattern("reduction")
    chosen = declared.variant(variant)
    if chosen.is_single_thread and n > 1000:
        n = 1000  # it has no blocks
    for operator, dtype in (("sum", "int32"), ("min", "float32")):
        checker, *others = create_checkers({"partial"})
        params = {"n": n, "block": block, "operator": operator, "dtype": dtype}
        run_pattern(WatchedEngine(checker, *others), Workload(declared, chosen, {}, params), lambda progress: None)
        assert not any(other.findings for other in others)
        if not chosen.deliberate_error:
            assert checker.findings == []


@pytest.mark.parametrize("block", [8, 32, 64, 256])
def test_the_last_warp_that_trusts_in_lockstep(block: int) -> None:
    declared = find_pattern("reduction")
    checker = RaceChecker()
    run_pattern(
        WatchedEngine(checker),
        Workload(declared, declared.variant("volatile"), {}, {"n": 600, "block": block}),
        lambda progress: None,
    )
    lines = (KERNELS / "reduction.cu").read_text().splitlines()
    raced = {lines[position.line - 1] for finding in checker.findings for position in finding.positions}
    assert checker.findings
    assert all("w[t] = COMBINE(w[t]" in line or "partial[blockIdx.x] = s[0]" in line for line in raced)
    assert all("of s (shared memory)" in finding.message for finding in checker.findings)


def test_the_racy_histogram() -> None:
    path = KERNELS / "histogram.cu"
    module = SimulatedModule(path.read_text(), path, {})
    checker = RaceChecker()
    image = np.full(512, 9, np.uint8)
    launch_watched(
        checker,
        module,
        image,
        np.zeros(16, np.int32),
        np.int32(512),
        np.int32(16),
        kernel="histogram_racy",
        grid=2,
        block=64,
    )
    (found,) = checker.findings
    (*_, line) = [number for number, text in enumerate(path.read_text().splitlines(), 1) if text.endswith("++;")]
    assert {position.line for position in found.positions} == {line}
    assert f"histogram.cu:{line} by thread" in found.message
    assert "on element 0 of bins (global memory): read 0, wrote 1" in found.message
    assert found.count > 100
