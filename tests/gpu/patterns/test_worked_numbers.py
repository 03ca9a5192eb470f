"""The texts' worked numbers, from the examples and from values that are typed."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.declaration.pattern import Pattern
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import record_pattern, run_pattern
from gpu.run.workload import Workload
from gpu.stepping.tally import Tally

EIGHT = "3 1 7 0 4 1 6 3"
SCANS = {
    "3 1 7 0 4 1 6 3, inclusive": [3, 4, 11, 11, 15, 16, 22, 25],
    "3 1 7 0 4 1 6 3, exclusive": [0, 3, 4, 11, 11, 15, 16, 22],
    "1 to 6": [1, 3, 6, 10, 15, 21],
    "Factorials": [1, 2, 6, 24, 120, 720, 5040, 40320],
    "Cut a sausage": [3, 8, 10, 17, 45, 49, 52, 52, 60, 61],
}


def run_and_fetch(pattern: Pattern, variant: str, params: dict[str, Any]) -> list[Any]:
    with closing(SimulatorEngine("lockstep")) as engine:
        outcome = run_pattern(engine, Workload(pattern, pattern.variant(variant), {}, params), lambda progress: None)
    assert outcome.report.verified
    return outcome.outputs["result"].tolist()


def example(pattern: str, title: str) -> tuple[Pattern, str, dict[str, Any]]:
    found = find_pattern(pattern)
    preset = next(preset for preset in found.presets if preset.title == title)
    return found, preset.variant or found.default_variant, dict(preset.params)


@pytest.mark.parametrize("title", SCANS)
@pytest.mark.parametrize("variant", [variant.name for variant in find_pattern("scan").variants])
def test_scans(title: str, variant: str) -> None:
    pattern, _, params = example("scan", title)
    assert run_and_fetch(pattern, variant, params) == SCANS[title]


def test_eight_numbers_are_reduced() -> None:
    pattern, variant, params = example("reduction", f"{EIGHT} by neighbors")
    assert run_and_fetch(pattern, variant, params) == [25]
    for operator, due in {"product": 0, "min": 0, "max": 7}.items():
        assert run_and_fetch(pattern, variant, {**params, "operator": operator}) == [due]


def test_a_warp_idles_by_half_then_three_quarters_then_seven_eighths_in_step() -> None:
    pattern, variant, params = example("reduction", "Idle lanes of a whole warp: 1/2, 3/4, 7/8")
    made = record_pattern(Workload(pattern, pattern.variant(variant), {}, params), lambda progress: None)
    tally = Tally(made)
    idle = {
        tally.counts_at(moment).steps: tally.step_counts_at(moment).idle_fraction
        for moment in range(made.event_count + 1)
    }
    assert [idle[step] for step in (1, 2, 3)] == [1 / 2, 3 / 4, 7 / 8]


def test_what_is_positive_is_packed_and_split() -> None:
    pattern, variant, pack = example("compaction", "Pack what is positive")
    _, _, split = example("compaction", "Split what is positive")
    assert pattern.make_input is not None
    values = pattern.make_input(pattern.check(pack), 0)["values"]
    assert (values < 0).any()
    assert (values > 0).any()
    assert run_and_fetch(pattern, variant, pack) == values[values > 0].tolist()
    assert run_and_fetch(pattern, variant, split) == np.where(values > 0, values, 0).tolist()


def test_the_texts_floats_are_scanned_and_packed_as_they_are_typed() -> None:
    typed = {"input": "typed", "values": "-0.4508, -0.021, -0.4774, 0.275", "dtype": "float32"}
    scanned = run_and_fetch(find_pattern("scan"), "brent-kung", typed)
    np.testing.assert_allclose(scanned, [-0.4508, -0.4718, -0.9492, -0.6742], atol=1e-6)
    positive = {**typed, "predicate": "greater", "threshold": 0}
    assert run_and_fetch(find_pattern("compaction"), "three-kernels", positive) == [np.float32(0.275)]


def test_the_largest_block_is_recorded_with_two_elements_a_thread() -> None:
    pattern, variant, params = example("scan", "One block: 1024 threads, 2048 elements")
    recording = record_pattern(Workload(pattern, pattern.variant(variant), {}, params), lambda progress: None)
    (launch,) = recording.launches
    assert (launch.trace.grid, launch.trace.block) == ((1, 1, 1), (1024, 1, 1))
    assert not recording.stopped


def test_numbers_that_are_typed_are_sorted() -> None:
    typed = {"input": "typed", "values": "7 14 4 1", "dtype": "uint32"}
    pattern = find_pattern("sort")
    with closing(SimulatorEngine("lockstep")) as engine:
        outcome = run_pattern(engine, Workload(pattern, pattern.variant("radix"), {}, typed), lambda progress: None)
    assert outcome.outputs[pattern.result].tolist() == [1, 4, 7, 14]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ("3 1 x", "'x'"),
        ("1 nan", "'nan'"),
        ("1e999", "'1e999'"),
        (" ".join(["1"] * 2049), "up to 2048 numbers, not 2049"),
    ],
)
def test_what_is_no_number_is_refused(values: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        find_pattern("scan").check({"input": "typed", "values": values})


def test_a_fraction_is_no_whole_number() -> None:
    with pytest.raises(InputError, match="float32 can hold it"):
        run_and_fetch(find_pattern("scan"), "naive", {"input": "typed", "values": "1 2.5", "dtype": "int32"})
    assert run_and_fetch(find_pattern("scan"), "naive", {"input": "typed", "values": "", "dtype": "int32"}) == []


@pytest.mark.parametrize("operator", ["sum", "product", "min", "max"])
@pytest.mark.parametrize(
    ("variant", "blocks"), [("grid-stride", 1), ("grid-stride", 3), ("shuffle", 64), ("atomic", 3), ("peak", 5)]
)
def test_a_reduction_in_two_stages_takes_a_grid_of_any_size(variant: str, blocks: int, operator: str) -> None:
    pattern = find_pattern("reduction")
    for n in (0, 1, 1000):
        params = {"n": n, "operator": operator, "dtype": "float32", "block": "32", "blocks": blocks}
        assert len(run_and_fetch(pattern, variant, params)) == 1


def test_three_blocks_leave_three_partial_sums() -> None:
    pattern, variant, params = example("reduction", "Two stages: 3 blocks over 1000 elements")
    assert run_and_fetch(pattern, variant, params) == [499_500]
    recording = record_pattern(Workload(pattern, pattern.variant(variant), {}, params), lambda progress: None)
    assert [launch.trace.grid for launch in recording.launches] == [(3, 1, 1), (1, 1, 1)]
