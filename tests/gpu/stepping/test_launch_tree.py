"""Which grid launched which, against what the kernels say."""

from __future__ import annotations

import numpy as np

from gpu.patterns import find_pattern
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.launch_tree import build_launch_tree
from tests.gpu.stepping.recordings import record as record_program
from tests.gpu.stepping.recordings import record_launch

GRANDCHILDREN = """\
__global__ void leaf(int *a, int at) { a[at] += 1; }
__global__ void twig(int *a, int from) {
    if (threadIdx.x == 2)
        leaf<<<1, 1>>>(a, from);
    a[from + 1] = 5;
}
__global__ void k(int *a) {
    if (threadIdx.x < 2)
        twig<<<2, 3>>>(a, 4 * threadIdx.x);
    a[10] = 2;
}
"""


def test_grids_stand_under_those_that_launched_them() -> None:
    recording = record_launch(GRANDCHILDREN, [np.zeros(16, np.int32)], block=4)
    grids = build_launch_tree(recording)
    told = [(g.kernel, g.blocks, g.threads, g.parent, g.depth, g.parent_thread, dict(g.arguments)) for g in grids]
    first, second = [number for number, grid in enumerate(grids) if grid.kernel == "twig"]
    assert told[0] == ("k", 1, 4, -1, 0, -1, {})
    assert told[first] == ("twig", 2, 3, 0, 1, 0, {"from": "0"})
    assert told[second] == ("twig", 2, 3, 0, 1, 1, {"from": "4"})
    leaves = [grid for grid in grids if grid.kernel == "leaf"]
    assert [(g.parent, g.depth, g.parent_thread, dict(g.arguments)) for g in leaves] == [
        (parent, 2, 2, {"at": at}) for parent, at in ((first, "0"), (first, "0"), (second, "4"), (second, "4"))
    ]
    assert {(g.parent, g.parent_block) for g in leaves} == {(p, block) for p in (first, second) for block in (0, 1)}


def test_a_grid_runs_after_it_was_launched_and_ends_with_those_it_launched() -> None:
    recording = record_launch(GRANDCHILDREN, [np.zeros(16, np.int32)], block=4)
    grids = build_launch_tree(recording)
    events = recording.launches[0].trace.events
    places = [event.position for event in events]
    lines = {"leaf": {1}, "twig": {3, 4, 5}, "k": {8, 9, 10}}
    assert sum(grid.last - grid.first for grid in grids) == recording.event_count
    for grid in grids:
        own = {place.line for place in places[grid.first : grid.last] if place.file.endswith("kernel.cu")}
        assert own == lines[grid.kernel]
        below = [other.subtree_end for other in grids if other.parent >= 0 and grids[other.parent] is grid]
        assert grid.subtree_end == max([grid.last, *below])
        if grid.parent >= 0:
            assert events[grid.launch_moment - 1].threads[-1] >= grid.parent_thread
            assert grids[grid.parent].first < grid.launch_moment <= grids[grid.parent].last <= grid.first
    assert grids[0].subtree_end == recording.event_count


def test_launches_of_the_host_one_after_the_other() -> None:
    def program(engine, module) -> None:
        a = engine.upload(np.zeros(16, np.int32))
        for _ in range(2):
            engine.launch(module.kernel("twig"), (1, 1, 1), (3, 1, 1), a, np.int32(7))

    recording = record_program(GRANDCHILDREN, program)
    grids = build_launch_tree(recording)
    assert [(grid.kernel, grid.parent) for grid in grids] == [("twig", -1), ("leaf", 0), ("twig", -1), ("leaf", 2)]
    assert grids[2].launch_moment == grids[2].first == grids[1].last == recording.launches[1].first


def test_what_the_recording_has_no_room_for_is_yet_to_come() -> None:
    recording = record_launch(GRANDCHILDREN, [np.zeros(16, np.int32)], block=4, max_lane_events=20)
    assert recording.stopped
    assert all(
        grid.launch_moment <= recording.event_count and grid.last <= recording.event_count
        for grid in build_launch_tree(recording)
    )


def test_the_parts_of_a_quicksort_lie_within_the_whole() -> None:
    sort = find_pattern("sort")
    recording = record_pattern(Workload(sort, sort.variant("quicksort"), {}, sort.step_params), lambda progress: None)
    grids = build_launch_tree(recording)
    parts = [tuple(int(dict(grid.arguments)[name]) for name in ("begin", "end", "depth")) for grid in grids]
    assert parts[0] == (0, 16, 0)
    assert len(parts) > 3
    for grid, (begin, end, depth) in zip(grids[1:], parts[1:], strict=True):
        above = parts[grid.parent]
        assert depth == grid.depth == above[2] + 1
        assert (begin, end) != above[:2]
        assert begin == above[0] if grid.parent_thread == 0 else end == above[1]
