"""What the lanes' card shows of a moment is what the lanes do at that moment."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.stepping.moment.lanes import LaneState, LaneStates
from gui.step_view.cards.lanes import LaneGrid
from gui.step_view.recording.models import load_models
from gui.step_view.time.snapshots import make_snapshots
from tests.gpu.stepping.recordings import record_launch

LEAVING = """\
__global__ void k(int *a) {
    int t = threadIdx.x;
    if (t % 3 == 0)
        return;
    a[t] = 1;
    if (t % 3 == 1)
        return;
    a[t] = 2;
}
"""


@pytest.fixture(scope="module")
def recording():
    return record_launch(LEAVING, [np.zeros(40, np.int32)], block=40)


@pytest.fixture
def grid(qtbot):
    made = LaneGrid()
    qtbot.addWidget(made)
    made.resize(320, 60)
    return made


def painted(grid, lanes):
    grid.show_lanes(lanes, 0, 40, -1)
    return grid.grab().toImage()


def test_what_was_painted_before_is_not_seen_again(qtbot, grid, recording):
    every = LaneStates(recording)
    seen = set()
    for moment in [*range(recording.event_count + 1), *range(recording.event_count, -1, -1)]:
        lanes = every.lanes_at(moment)
        fresh = LaneGrid()
        qtbot.addWidget(fresh)
        fresh.resize(grid.size())
        assert painted(grid, lanes) == painted(fresh, lanes), moment
        seen.add(lanes.state.tobytes())
    assert len(seen) > 4


def test_a_lane_that_has_returned_looks_so_at_the_very_next_moment(grid, recording):
    every = LaneStates(recording)
    returned = next(event.number for event in recording.launches[0].trace.events if event.kind == "return")

    def stroke(moment):
        """Return the middle of thread 0's cell, through which a finished one has a stroke."""
        image = painted(grid, every.lanes_at(moment))
        return image.pixelColor(grid._box(0).center().toPoint()), every.lanes_at(moment).state[0, 0, 0]

    before, after = stroke(returned), stroke(returned + 1)
    assert (before[1], after[1]) == (LaneState.ACTIVE, LaneState.FINISHED)
    assert before[0] != after[0]
    assert after[0] == stroke(recording.event_count)[0]


def test_what_is_told_of_a_moment_is_what_its_last_statement_found(tmp_path, recording):
    with (tmp_path / "recording").open("wb") as file:
        recording.save(file)
    models = load_models(tmp_path / "recording")
    snapshots = make_snapshots(models)
    every = LaneStates(recording)
    for moment in range(1, recording.event_count + 1):
        told = snapshots(moment, None).lanes
        np.testing.assert_array_equal(told.state, every.lanes_at(moment - 1).state)
        mine = recording.launches[0].trace.events[moment - 1].lanes
        assert np.flatnonzero(told.state[0].reshape(-1) == LaneState.ACTIVE).tolist() == mine.tolist()


@pytest.mark.parametrize("thread", [220, 30])
def test_the_warp_of_the_followed_thread_is_visible(grid, thread):
    lanes = LaneStates(record_launch(LEAVING, [np.zeros(256, np.int32)], block=256)).lanes_at(0)
    for followed in (250 - thread, thread):
        grid.show_lanes(lanes, 0, 256, followed)
        assert grid.first_warp <= followed // 32 < grid.first_warp + grid.rows
    grid.show_lanes(lanes, 0, 256, -1)
    assert grid.first_warp == 0
