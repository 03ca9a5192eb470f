"""Scans on every engine against sums that Python makes one by one."""

from __future__ import annotations

from itertools import accumulate
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.base.errors import InputError
from gpu.declaration.pattern import Textbook
from gpu.engines.base import Engine
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import Outcome, record_pattern, run_pattern
from gpu.run.workload import Workload
from gpu.simulator.counting.counters import Counters
from gpu.stepping.tally import Tally
from tests.gpu.simulator.watched_launch import WatchedEngine
from tests.tiers import spread

Array = np.ndarray[Any, Any]

SCAN = find_pattern("scan")
VARIANTS = [variant.name for variant in SCAN.variants]
THREADS = [variant.name for variant in SCAN.variants if not variant.is_single_thread]
OPERATORS = ("sum", "product", "min", "max")
SIZES = (0, 1, 2, 31, 32, 33, 63, 127, 128, 129, 511, 1000, 4097)
WHOLE = st.integers(-(2**31), 2**31 - 1)
FEW = st.lists(WHOLE, min_size=1, max_size=200)
ENGINE = SimulatorEngine("lockstep")


def run(engine: Engine, variant: str, values: Array, **params: Any) -> Outcome:
    given = {"input": "file", "dtype": values.dtype.name, **params}
    return run_pattern(engine, Workload(SCAN, SCAN.variant(variant), {"values": values}, given), lambda progress: None)


def expected(values: Array, operator: str, kind: str) -> list[float]:
    """Combine in Python's numbers, which do not round to 24 bits; whole ones wrap around in the end."""
    combine = {"sum": lambda a, b: a + b, "product": lambda a, b: a * b, "min": min, "max": max}[operator]
    whole = values.dtype.kind == "i"
    limits = np.iinfo(values.dtype) if whole else np.finfo(values.dtype)
    identity = {"sum": 0, "product": 1, "min": limits.max, "max": limits.min}[operator]
    upto = list(accumulate(values.tolist(), combine))
    if whole:
        upto = [(number + 2**31) % 2**32 - 2**31 for number in upto]
    return upto if kind == "inclusive" else [identity, *upto][: len(upto)]


@pytest.mark.parametrize(("kind", "operator", "variant"), spread(("inclusive", "exclusive"), OPERATORS, VARIANTS))
def test_awkward_sizes(engine: Engine, variant: str, operator: str, kind: str) -> None:
    rng = np.random.default_rng(1)
    for n in SIZES:
        values = rng.integers(-1000, 1000, n, np.int32)
        if operator == "product":
            values |= 1
        outcome = run(engine, variant, values, operator=operator, kind=kind, block=16)
        assert outcome.outputs["result"].tolist() == expected(values, operator, kind)
        assert outcome.report.verified


@pytest.mark.parametrize("operator", ["sum", "min", "max"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_floats(engine: Engine, variant: str, operator: str) -> None:
    values = np.random.default_rng(2).normal(size=3001).astype(np.float32)
    for kind in ("inclusive", "exclusive"):
        outcome = run(engine, variant, values, operator=operator, kind=kind, block=32)
        bound = 3001 * 2.0**-24 * np.abs(values).sum() if operator == "sum" else 0.0
        np.testing.assert_allclose(outcome.outputs["result"], expected(values, operator, kind), rtol=0, atol=bound)
        assert outcome.report.verified


@pytest.mark.parametrize("kind", ["inclusive", "exclusive"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_products_of_floats(engine: Engine, variant: str, kind: str) -> None:
    rng = np.random.default_rng(4)
    factors = np.exp2(rng.uniform(-0.5, 0.5, 1501)) * rng.choice([-1, 1], 1501)
    factors[[700, 1100]] = 0
    values = factors.astype(np.float32)
    outcome = run(engine, variant, values, operator="product", kind=kind, block=32)
    upto = np.cumprod(values.astype(np.longdouble))
    right = upto if kind == "inclusive" else np.concatenate([[1], upto[:-1]])
    assert np.abs(outcome.outputs["result"] - right).max() > 0
    assert (np.abs(outcome.outputs["result"] - right) <= 1501 * 2.0**-24 * np.abs(right)).all()
    assert outcome.report.verified


@pytest.mark.parametrize(
    "factors",
    [
        [1e20, 1e19],
        [1e-20, 2.0, 1e-20],
        [1e30, 1e-30, 1e-30],
        [1.5] * 300,
        [0.0, 1e25, 1e25],
        [1e25, 1e25, 0.0],
        [1e-30, 1e-30, 1e30, 1e30],
    ],
)
def test_factors_that_leave_the_range_of_floats_are_refused(factors: list[float]) -> None:
    values = np.array(factors, np.float32)
    with pytest.raises(InputError, match=r"is outside the range of float32\."):
        run(ENGINE, "shuffle", values, operator="product")
    assert run(ENGINE, "shuffle", values).report.verified


@pytest.mark.parametrize(
    "factors", [[], [0.0], [0.0, 0.0], [1e20, 1e-20] * 40, [1e20, 1e10, 0.0, 1e20, 1e10], [1.5, -2.0] * 40]
)
def test_factors_that_stay_in_the_range_of_floats_are_multiplied(factors: list[float]) -> None:
    for variant in VARIANTS:
        outcome = run(ENGINE, variant, np.array(factors, np.float32), operator="product", block=8)
        assert outcome.report.verified
        assert np.isfinite(outcome.outputs["result"]).all()


@pytest.mark.parametrize("kind", ["random", "signed", "ramp", "ones", "alternating"])
@pytest.mark.parametrize("n", [16, 1000, 2**18])
def test_factors_that_are_made_can_be_multiplied(kind: str, n: int) -> None:
    for dtype in ("float32", "int32"):
        params = SCAN.check({"input": kind, "n": n, "dtype": dtype, "operator": "product"})
        inputs = SCAN.prepare_inputs({}, params, 5)
        SCAN.accept(inputs, params)
        right = SCAN.reference(inputs, params)
        assert np.isfinite(right).all()
        assert (right != 0).any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_block_size(engine: Engine, variant: str) -> None:
    values = np.arange(2050, dtype=np.int32)
    for block in (8, 64, 1024):
        assert run(engine, variant, values, block=block).report.verified


@pytest.mark.parametrize("variant", VARIANTS)
def test_whole_numbers_wrap_around(engine: Engine, variant: str) -> None:
    values = np.full(1000, 2**30, np.int32)
    result = run(engine, variant, values, block=64).outputs["result"]
    assert result.tolist() == [((i + 1) * 2**30 + 2**31) % 2**32 - 2**31 for i in range(1000)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_sausage_is_cut_for_ten_people(engine: Engine, variant: str) -> None:
    """Ten people want pieces of 100 inches: a scan says where the cuts are, and the last of them what is left."""
    outcome = run_pattern(
        engine,
        Workload(SCAN, SCAN.variant(variant), {}, {"input": "sausage", "n": 10, "block": 8}),
        lambda progress: None,
    )
    cuts = outcome.outputs["result"]
    assert cuts.tolist() == [3, 8, 10, 17, 45, 49, 52, 52, 60, 61]
    assert 100 - cuts[-1] == 39


@pytest.mark.parametrize("variant", VARIANTS)
def test_slots_of_any_size_are_laid_out_side_by_side(engine: Engine, variant: str) -> None:
    sizes = np.random.default_rng(3).integers(0, 9, 700, np.int32)
    starts = run(engine, variant, sizes, kind="exclusive", block=64).outputs["result"]
    owners = np.full(sizes.sum(), -1)
    for owner, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        assert (owners[start : start + size] == -1).all()
        owners[start : start + size] = owner
    assert (owners >= 0).all()


@pytest.mark.parametrize("variant", ["brent-kung", "three-kernels", "look-back"])
def test_a_wrong_operator_is_not_verified(variant: str) -> None:
    engine = SimulatorEngine("lockstep")
    values = np.ones(5000, np.int32)
    outcome = run(engine, variant, values)
    assert outcome.report.verified
    spoil = "#undef COMBINE\n#define COMBINE(a, b) ((a) | (b))"
    sources = {"scan.cu": _source().replace('#include "operators.cuh"', f'#include "operators.cuh"\n{spoil}')}
    spoilt = run_pattern(
        engine,
        Workload(SCAN, SCAN.variant(variant), {"values": values}, {"input": "file"}, sources=sources),
        lambda progress: None,
    )
    assert spoilt.report.verified is False


def _source() -> str:
    from gpu.base.paths import KERNELS

    return (KERNELS / "scan.cu").read_text()


PROPERTIES = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@PROPERTIES
@given(numbers=FEW, variant=st.sampled_from(VARIANTS), operator=st.sampled_from(OPERATORS))
def test_the_last_of_an_inclusive_scan_is_the_reduction(numbers: list[int], variant: str, operator: str) -> None:
    values = np.array(numbers, np.int32)
    result = run(ENGINE, variant, values, operator=operator, block=8).outputs["result"]
    ufuncs = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
    whole = ufuncs[operator].reduce(values, dtype=np.int32)
    assert result[-1] == whole


@PROPERTIES
@given(numbers=FEW, variant=st.sampled_from(VARIANTS))
def test_an_exclusive_scan_is_an_inclusive_one_shifted(numbers: list[int], variant: str) -> None:
    values = np.array(numbers, np.int32)
    inclusive, exclusive = (
        run(ENGINE, variant, values, kind=kind, block=8).outputs["result"] for kind in ("inclusive", "exclusive")
    )
    assert exclusive.tolist() == [0, *inclusive[:-1]]
    np.testing.assert_array_equal(exclusive + values, inclusive)


@pytest.mark.parametrize("n", [2, 4, 16, 64, 1024])
def test_the_textbook_for_one_section(n: int) -> None:
    claims = {
        "one-thread": (n - 1, n - 1),
        "naive": (n * (n - 1) // 2, n - 1),
        "kogge-stone": (n * log2(n) - (n - 1), log2(n)),
        "double-buffer": (n * log2(n) - (n - 1), log2(n)),
        "brent-kung": (2 * n - 2 - log2(n), 2 * log2(n) - 1),
        "brent-kung-padded": (2 * n - 2 - log2(n), 2 * log2(n) - 1),
    }
    for variant in SCAN.variants:
        if variant.textbook is None:
            assert variant.name not in claims
            continue
        claim = variant.textbook({"block": "1024"}, n)
        assert (claim.operations, claim.steps) == claims[variant.name]


def test_the_textbook_for_several_sections() -> None:
    """Two sections of eight and one of four, the scan of three totals, and twelve additions back."""
    claim = SCAN.variant("naive").textbook
    assert claim is not None
    textbook = claim({"block": "8"}, 20)
    assert textbook.operations == 28 + 28 + 6 + 3 + 12
    assert textbook.steps == 7 + 2 + 1


@pytest.mark.parametrize(("n", "block"), [(16, 16), (13, 16), (40, 8), (1, 8)])
@pytest.mark.parametrize("variant", [variant.name for variant in SCAN.variants if variant.textbook])
def test_what_is_counted_is_what_the_textbook_says(variant: str, n: int, block: int) -> None:
    chosen = SCAN.variant(variant)
    params = SCAN.check({"n": n, "block": block})
    recording = record_pattern(Workload(SCAN, chosen, {}, params), lambda progress: None)
    counted = Tally(recording).counts_at(recording.event_count)
    assert chosen.textbook is not None
    assert chosen.textbook(params, n) == Textbook(counted.operations, counted.steps, counted.peak)
    counters = Counters()
    run_pattern(WatchedEngine(counters), Workload(SCAN, chosen, {}, params), lambda progress: None)
    assert counters.total().get("operations", 0) == counted.operations


def test_gaps_do_away_with_most_bank_conflicts() -> None:
    conflicts = []
    for variant in ("brent-kung", "brent-kung-padded"):
        recording = record_pattern(
            Workload(SCAN, SCAN.variant(variant), {}, {"n": 512, "block": 256}), lambda progress: None
        )
        conflicts.append(Tally(recording).counts_at(recording.event_count).bank_conflicts)
    assert conflicts[1] < conflicts[0] / 10


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.parametrize("variant", THREADS)
@pytest.mark.parametrize("n", [2**20 - 1, 10**7, 2**24 + 1])
def test_large_arrays(n: int, variant: str) -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        for dtype in ("int32", "float32"):
            for kind in ("inclusive", "exclusive"):
                values = np.random.default_rng(n).integers(0, 100, n).astype(dtype)
                assert run(engine, variant, values, kind=kind).report.verified
    finally:
        engine.close()
