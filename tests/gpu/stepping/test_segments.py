"""The stretches of a recording: from barrier to barrier, and round by round where a loop fills shared memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gpu.declaration.pattern import Array
from gpu.patterns import find_pattern
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.derived_data import DerivedData, derive_data


def _record_convolution(tile: str) -> DerivedData:
    found = find_pattern("convolution")
    preset = next(each for each in found.presets if "6 × 6" in each.title)
    image = np.arange(144, dtype=np.uint8).reshape(12, 12)
    inputs = found.step_input({"image": image, "maxval": np.array(255, np.uint32)})
    params = found.check({**preset.params, "tile": tile})
    return derive_data(
        record_pattern(Workload(found, found.variant(preset.variant), inputs, params), lambda progress: None)
    )


def _written_elements(derived: DerivedData, first: int, last: int) -> Array:
    """Return which elements of the first block's tile are written in a stretch."""
    trace = derived.recording.launches[0].trace
    (tile,) = [array for array in trace.arrays if array.space == "shared"][:1]
    found = set()
    for event in trace.events[first:last]:
        for access in event.accesses:
            mine = (access.arrays == tile.number) & (access.action != "read")
            found |= set(access.elements[mine].tolist())
    return np.array(sorted(found))


def test_a_6_x_6_block_fills_an_8_x_8_tile_in_four_rounds() -> None:
    derived = _record_convolution("6x6")
    load = [each for each in derived.segments if each.label.startswith("load")]
    assert [each.label for each in load] == [f"load {number} of 4" for number in range(1, 5)]
    assert all(each.last == other.first for each, other in pairwise(load))
    rounds = [_written_elements(derived, each.first, each.last) for each in load]
    assert [each.size for each in rounds] == [36, 12, 12, 4]
    assert sorted(np.concatenate(rounds).tolist()) == list(range(64))


def test_pixels_that_several_threads_fetch_are_not_passed_on() -> None:
    """At the border two threads read one pixel of the image, and neither has it from the other's place in the tile."""
    assert {row.storage.space for row in _record_convolution("8x8").dataflow.rows} == {"global", "constant", "register"}
