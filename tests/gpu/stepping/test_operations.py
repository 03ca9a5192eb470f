"""Whoever counts comes to the same numbers: the simulator's counters and what is tallied of a recording."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.declaration.pattern import Pattern, Variant
from gpu.patterns import all_patterns
from gpu.run.pattern_run import record_pattern, run_pattern
from gpu.run.workload import Workload
from gpu.simulator.counting.counters import Counters
from gpu.stepping.tally import Tally
from tests.gpu.simulator.watched_launch import WatchedEngine

IMAGE = {"image": np.random.default_rng(1).integers(0, 256, (40, 50)).astype(np.uint8), "maxval": np.array(255)}
VARIANTS = [
    # The first tier has half of each pattern's variants.
    pytest.param(pattern, variant, id=f"{pattern.name}-{variant.name}", marks=[pytest.mark.sweep] * (number % 2))
    for pattern in all_patterns().values()
    for number, variant in enumerate(pattern.variants)
    if not variant.library
]
OF_GLOBAL, OF_SHARED = ("ld", "st", "red", "atom"), ("ld", "st", "atom")


@pytest.mark.parametrize(("pattern", "variant"), VARIANTS)
def test_every_count_is_the_same(pattern: Pattern, variant: Variant) -> None:
    params = pattern.check(pattern.step_params)
    inputs = IMAGE if pattern.is_image_pattern else {}
    recording = record_pattern(Workload(pattern, variant, inputs, params), lambda progress: None)
    tallied = Tally(recording).counts_at(recording.event_count)

    counters = Counters()
    small = pattern.prepare_inputs(pattern.step_input(inputs) if inputs else inputs, params, 0)
    run_pattern(WatchedEngine(counters), Workload(pattern, variant, small, params), lambda progress: None)
    total = counters.total()
    assert tallied.operations == total["operations"]
    assert tallied.operations == sum(line.get("operations", 0) for line in counters.per_line().values())
    assert (tallied.steps > 0) == (tallied.operations > 0)
    assert tallied.barriers == total["block_barriers"]
    assert tallied.lanes_per_warp == total["lanes_per_warp_statement"]
    assert (tallied.branches, tallied.divergent_branches) == (total["branches"], total["divergent_branches"])
    assert tallied.sectors == sum(total[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum"] for op in OF_GLOBAL)
    conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
    assert tallied.bank_conflicts == sum(total[f"{conflicts}{op}.sum"] for op in OF_SHARED)
