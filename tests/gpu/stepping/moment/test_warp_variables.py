"""What the lanes of a warp hold, against what the algorithm says."""

from __future__ import annotations

import numpy as np

from gpu.patterns import find_pattern
from gpu.recording.recording import Recording
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.moment.warp_variables import WarpVariable, find_warp_variables
from tests.gpu.stepping.recordings import record_launch


def moments_after_line(recording: Recording, number: int) -> list[int]:
    """Return the moments just after a line of the kernel's file has run."""
    events = recording.launches[0].trace.events
    file = events[0].position.file
    return [k + 1 for k, event in enumerate(events) if (event.position.file, event.position.line) == (file, number)]


def variables_by_name(recording: Recording, moment: int, block: int = 0, warp: int = 0) -> dict[str, WarpVariable]:
    return {each.name: each for each in find_warp_variables(recording, moment, block, warp)}


def test_the_votes_and_ranks_of_a_radix_sort_bit_by_bit() -> None:
    sort = find_pattern("sort")
    example = sort.presets[0]
    recording = record_pattern(Workload(sort, sort.variant(example.variant), {}, example.params), lambda progress: None)
    events = recording.launches[0].trace.events
    text = recording.text(events[0].position.file).split("\n")
    ranks = moments_after_line(recording, 1 + next(k for k, line in enumerate(text) if "int rank = one ?" in line))
    keys = [7, 14, 4, 1]
    assert len(ranks) == 4
    for bit, moment in enumerate(ranks):
        held = variables_by_name(recording, moment)
        ones = [key >> bit & 1 for key in keys]
        assert held["key"].values[:4].tolist() == keys
        assert held["one"].values[:4].tolist() == ones
        assert held["ones"].is_mask
        assert int(held["ones"].values[0]) == sum(one << lane for lane, one in enumerate(ones))
        assert int(held["zeros"].values[0]) == sum((1 - one) << lane for lane, one in enumerate(ones))
        order = sorted(range(4), key=ones.__getitem__)
        assert held["rank"].values[:4].tolist() == [order.index(lane) for lane in range(4)]
        assert held["rank"].changed.all()
        assert not held["key"].changed.any()
        assert not held["key"].is_mask
        keys = [keys[lane] for lane in order]
    assert keys == [1, 4, 7, 14]


def test_only_lanes_that_ran_have_changed_and_others_keep_what_they_held() -> None:
    source = """\
__global__ void k(int *a) {
    int t = threadIdx.x;
    int x = 5;
    if (t % 2)
        x = t + blockIdx.x;
    int *own = a + t;
    *own = x;
}
"""
    recording = record_launch(source, [np.zeros(80, np.int32)], grid=2, block=40)
    assert find_warp_variables(recording, 0, 0, 0) == ()
    events = recording.launches[0].trace.events
    (moment,) = [m for m in moments_after_line(recording, 5)
                 if (events[m - 1].blocks == 1).any() and (events[m - 1].threads >= 32).any()][:1]  # fmt: skip
    held = variables_by_name(recording, moment, 1, 1)
    assert set(held) == {"t", "x"}
    assert held["x"].changed.tolist() == [lane < 8 and lane % 2 == 1 for lane in range(32)]
    assert held["x"].values[:8].tolist() == [5, 34, 5, 36, 5, 38, 5, 40]
    assert held["x"].defined.tolist() == [lane < 8 for lane in range(32)]
