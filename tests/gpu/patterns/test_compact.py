"""Compaction and split on every engine against Python's own filter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.base.paths import KERNELS
from gpu.engines.base import Engine
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload

Array = np.ndarray[Any, Any]

COMPACTION = find_pattern("compaction")
VARIANTS = [variant.name for variant in COMPACTION.variants]
IN_ORDER = [name for name in VARIANTS if name != "ballot"]
SIZES = (0, 1, 31, 32, 33, 127, 128, 129, 511, 1000, 4097)
PREDICATES = {
    "greater": lambda value, threshold: value > threshold,
    "less": lambda value, threshold: value < threshold,
    "odd": lambda value, threshold: value % 2 == 1,
    "even": lambda value, threshold: value % 2 == 0,
    "nonzero": lambda value, threshold: value != 0,
}
ENGINE = SimulatorEngine("lockstep")


def run(engine: Engine, variant: str, values: Array, sources: dict[str, str] | None = None, **params: Any) -> Outcome:
    chosen = {"input": "file", "dtype": values.dtype.name, **params}
    return run_pattern(
        engine,
        Workload(COMPACTION, COMPACTION.variant(variant), {"values": values}, chosen, sources=sources or {}),
        lambda progress: None,
    )


@pytest.mark.parametrize("n", [49152, 49153, 60001])
def test_tiles_are_larger_where_a_multiprocessor_has_many(n: int) -> None:
    engine = SimulatorEngine("compiled")
    engine.device = replace(engine.device, multiprocessors=1)
    values = np.random.default_rng(n).integers(-9, 9, n).astype(np.int32)
    outcome = run(engine, "look-back", values, predicate="greater", threshold=0, block=32)
    np.testing.assert_array_equal(outcome.outputs["result"], values[values > 0])


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_pack_keeps_what_the_predicate_is_true_of(engine: Engine, variant: str, predicate: str) -> None:
    rng = np.random.default_rng(1)
    for n in SIZES:
        values = rng.integers(-3, 4, n).astype(np.int32)
        outcome = run(engine, variant, values, predicate=predicate, threshold=-0.5, block=32)
        kept = [value for value in values.tolist() if PREDICATES[predicate](value, -0.5)]
        found = outcome.outputs["result"].tolist()
        assert (found if variant in IN_ORDER else sorted(found)) == (kept if variant in IN_ORDER else sorted(kept))
        assert outcome.outputs["count"] == len(kept)
        assert outcome.report.verified


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_split_puts_each_element_back(engine: Engine, variant: str, predicate: str) -> None:
    values = (np.random.default_rng(2).integers(-9, 9, 3001) / 2).astype(np.float32)
    outcome = run(engine, variant, values, predicate=predicate, threshold=1.5, result="split", block=64)
    expected = [value if PREDICATES[predicate](value, 1.5) else 0 for value in values.tolist()]
    assert outcome.outputs["result"].tolist() == expected
    assert outcome.report.verified


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_none_and_one(engine: Engine, variant: str) -> None:
    for values in (np.ones(1025, np.int32), np.zeros(1025, np.int32), np.eye(1, 1025, 1024, dtype=np.int32)[0]):
        for output in ("pack", "split"):
            outcome = run(engine, variant, values, predicate="nonzero", result=output)
            kept = values[values != 0] if output == "pack" else values
            np.testing.assert_array_equal(outcome.outputs["result"], kept)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_block_size(engine: Engine, variant: str) -> None:
    values = np.random.default_rng(3).random(9000, np.float32)
    for block in (8, 128, 1024):
        for output in ("pack", "split"):
            assert run(engine, variant, values, block=block, result=output).report.verified


@pytest.mark.parametrize("variant", VARIANTS)
def test_negative_odd_numbers_are_odd_and_halves_neither(engine: Engine, variant: str) -> None:
    values = np.array([-3, -2, -1, 0, 1, 2, 3], np.int32)
    odd = run(engine, variant, values, predicate="odd").outputs["result"]
    assert sorted(odd.tolist()) == [-3, -1, 1, 3]
    halves = np.array([-3, -1.5, 0.5, 2, 2**24 - 1, 1e30], np.float32)
    odd = run(engine, variant, halves, predicate="odd").outputs["result"]
    assert sorted(odd.tolist()) == [-3, 2**24 - 1]
    even = run(engine, variant, halves, predicate="even").outputs["result"]
    assert sorted(even.tolist()) == [2, np.float32(1e30)]


@pytest.mark.parametrize("variant", IN_ORDER)
def test_a_result_in_another_order_is_not_verified(variant: str) -> None:
    values = np.arange(1, 601, dtype=np.int32)
    assert run(ENGINE, variant, values).report.verified
    file = "compact.cu"
    text = (KERNELS / file).read_text()
    swapped = {"three-kernels": ("= in[i];", "= in[i ^ 1];"), "look-back": ("= packed[j];", "= packed[total - 1 - j];")}
    assert text.count(swapped[variant][0]) == 1
    spoilt = run(ENGINE, variant, values, {file: text.replace(*swapped[variant])}, threshold=100)
    assert spoilt.report.verified is False


def test_an_unordered_result_is_verified_as_a_multiset() -> None:
    values = np.arange(1000, dtype=np.int32)
    text = (KERNELS / "compact.cu").read_text()
    start = "int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;"
    at = text.index("compact_ballot(")
    backwards = text[:at] + text[at:].replace("blockIdx.x", "(gridDim.x - 1 - blockIdx.x)", 1)
    assert start in text[at:]
    outcome = run(ENGINE, "ballot", values, {"compact.cu": backwards}, predicate="odd", block=64)
    assert outcome.outputs["result"].tolist() != list(range(1, 1000, 2))
    assert outcome.report.verified
    twice = text[:at] + text[at:].replace("= value;", "= 7;", 1)
    assert run(ENGINE, "ballot", values, {"compact.cu": twice}, predicate="odd").report.verified is False


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    numbers=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=300),
    variant=st.sampled_from(VARIANTS),
    predicate=st.sampled_from(["greater", "odd"]),
    threshold=st.floats(-1e9, 1e9),
)
def test_pack_then_split_is_a_round_trip(numbers: list[int], variant: str, predicate: str, threshold: float) -> None:
    values = np.array(numbers, np.int32)
    params = {"predicate": predicate, "threshold": threshold, "block": 32}
    packed = run(ENGINE, variant, values, **params).outputs["result"]
    split = run(ENGINE, variant, values, result="split", **params).outputs["result"]
    kept = np.array([PREDICATES[predicate](number, threshold) for number in numbers], bool)
    assert sorted(packed.tolist()) == sorted(split[kept].tolist())
    np.testing.assert_array_equal(split[kept], values[kept])
    assert not split[~kept].any()


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n", [2**20 - 1, 10**7, 2**24 + 1])
def test_large_arrays(n: int, variant: str) -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        values = np.random.default_rng(n).random(n, np.float32)
        for output in ("pack", "split"):
            assert run(engine, variant, values, result=output).report.verified
    finally:
        engine.close()
