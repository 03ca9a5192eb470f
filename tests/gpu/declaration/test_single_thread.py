"""The rungs on one thread: launched with one, and refused what would take for ever."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.declaration.single_thread import MAX_OPERATIONS
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import all_patterns, find_pattern
from gpu.run.kernel_check import check_variant
from gpu.run.pattern_run import record_pattern, run_pattern
from gpu.run.work_count import count_pattern
from gpu.run.workload import Workload

ALONE = [pattern.name for pattern in all_patterns().values() if any(each.is_single_thread for each in pattern.variants)]

# By pattern: what is just few enough, and what is one too many.
LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "reduction": ({"n": 2**20 + 1}, {"n": 2**20 + 2}),
    "scan": ({"n": 2**20 + 1}, {"n": 2**20 + 2}),
    "histogram": ({"of": "ranges", "n": 2**20}, {"of": "ranges", "n": 2**20 + 1}),
    "sort": ({"n": 1448}, {"n": 1449}),
    "matmul": ({"n": 64, "m": 64, "k": 127}, {"n": 64, "m": 64, "k": 128}),
}


def test_the_patterns_that_programs_without_threads_are_written_for() -> None:
    assert set(ALONE) == set(LIMITS)
    for name in ALONE:
        assert find_pattern(name).variants[0].is_single_thread


@pytest.mark.parametrize("name", ALONE)
def test_one_thread_is_launched(name: str) -> None:
    pattern = find_pattern(name)
    of_letters = {"of": "letters"} if pattern.is_image_pattern else {}
    recording = record_pattern(
        Workload(pattern, pattern.variant("one-thread"), {}, {**pattern.step_params, **of_letters}),
        lambda progress: None,
    )
    assert [(launch.trace.grid, launch.trace.block) for launch in recording.launches] == [((1, 1, 1), (1, 1, 1))]


@pytest.mark.parametrize("name", ALONE)
def test_what_would_take_for_ever_is_refused(name: str) -> None:
    pattern = find_pattern(name)
    variant = pattern.variant("one-thread")
    few, many = ({**pattern.check(each)} for each in LIMITS[name])
    assert not variant.obstacle(pattern.prepare_inputs({}, few, 0), few)
    with closing(SimulatorEngine()) as engine, pytest.raises(InputError, match="One thread would execute") as refused:
        run_pattern(engine, Workload(pattern, variant, {}, many), lambda progress: None)
    assert f"the limit is {MAX_OPERATIONS:,}.".replace(",", "\u202f") in refused.value.message
    assert refused.value.advice == "Use fewer elements, or another variant."


@pytest.mark.parametrize("name", ALONE)
def test_both_executors_agree_with_the_reference(name: str) -> None:
    pattern = find_pattern(name)
    given = {"reduction": {"n": 1001}, "scan": {"n": 1001}, "sort": {"n": 67}, "matmul": {"n": 9, "m": 5, "k": 7}}
    params = given.get(name, {"of": "ranges", "n": 1001})
    for executor in ("lockstep", "compiled"):
        with closing(SimulatorEngine(executor)) as engine:
            outcome = run_pattern(
                engine, Workload(pattern, pattern.variant("one-thread"), {}, params), lambda progress: None
            )
        assert outcome.report.executor == executor
        assert outcome.report.verified


@pytest.mark.parametrize("name", ALONE)
def test_what_is_edited_is_checked_and_counted_on_little(name: str) -> None:
    """Defaults are too much for some: what is looked at is a part that takes no time."""
    pattern = find_pattern(name)
    variant = pattern.variant("one-thread")
    image = {"image": np.ones((300, 400), np.uint8), "maxval": np.array(255)} if pattern.is_image_pattern else {}
    sources = {pattern.kernel_file: (KERNELS / pattern.kernel_file).read_text() + "\n// edited"}
    found, check = check_variant(Workload(pattern, variant, image, {}, sources=sources), lambda progress: None)
    assert not found
    assert not check.differing
    counts = count_pattern(Workload(pattern, variant, image, {}), lambda progress: None)
    assert counts.elements in (128, 256, 1024)
    assert counts.lanes == 1
    assert counts.divergent_branches == counts.barriers == counts.atomics == 0
