"""A stretch of rows that was painted before is seen again only where it still looks like that."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from gpu.stepping.dataflow.dataflow import Dataflow
from gui.painting.theme import look
from gui.step_view.dataflow.flow_painter import FlowPainter
from gui.step_view.dataflow.layout import DataflowLayout, compute_metrics
from gui.step_view.dataflow.picture_caches import Tiles
from tests.gpu.stepping.recordings import record_launch

# Two warps that take turns, so that a row fills from moment to moment, and lines that pass the row between.
PASSING = """\
__global__ void k(int *a, int *b, int *c) {
    int t = threadIdx.x;
    b[t] = a[t] * 2;
    c[t] = a[t] + 1;
}
"""


@pytest.fixture(scope="module")
def recording():
    arrays = [np.arange(40, dtype=np.int32) for _ in range(3)]
    return record_launch(PASSING, arrays, block=40, schedule="shuffle:2")


@pytest.fixture
def flow(qtbot, recording):
    layout = DataflowLayout(Dataflow(recording))
    return FlowPainter(layout, compute_metrics(look(), 20.0, 80.0), look())


def moments(flow):
    return range(flow.layout.dataflow.recording.event_count + 1)


def test_the_recording_is_one_in_which_rows_fill_bit_by_bit_and_lines_pass_others(flow):
    layout = flow.layout
    assert any(0 < layout.row_progress(row, moment) < 40 for row in range(len(layout.rows)) for moment in moments(flow))
    assert layout.passing_targets


def picture(tiles, row, tile, moment):
    return tiles.get_picture(row, tile, moment).toImage()


def test_a_stretch_is_as_it_would_be_painted_anew_at_every_moment_back_and_forth(flow):
    tiles = Tiles(flow, 1.0)
    every = [(row, tile) for row in range(len(flow.layout.rows)) for tile in (0, 1)]
    anew = [{place: picture(Tiles(flow, 1.0), *place, moment) for place in every} for moment in moments(flow)]
    for moment in [*moments(flow), *reversed(moments(flow))]:
        for place in every:
            assert picture(tiles, *place, moment) == anew[moment][place]
    assert len({moment for moment in moments(flow) if anew[moment] != anew[moment - 1]}) >= 4


def test_what_was_painted_ahead_is_what_is_seen_then(flow):
    tiles = Tiles(flow, 1.0)
    row = len(flow.layout.rows) - 1
    first, last = moments(flow)[0], moments(flow)[-1]
    assert not tiles.prepare([row], range(1), last)
    assert tiles.prepare([row], range(1), last)
    assert not tiles.prepare([row], range(1), first)
    assert picture(tiles, row, 0, first) == picture(Tiles(flow, 1.0), row, 0, first)
    assert picture(tiles, row, 0, last) == picture(Tiles(flow, 1.0), row, 0, last)


def test_an_older_picture_does_only_after_the_deadline_and_is_replaced_by_the_next(flow):
    tiles = Tiles(flow, 1.0)
    row, last = len(flow.layout.rows) - 1, moments(flow)[-1]
    tiles.deadline = -math.inf
    assert tiles.get_picture(row, 0, 0) is None
    assert tiles.used_outdated, "there is none, and somebody has to come back for it"
    tiles.deadline, tiles.used_outdated = math.inf, False
    before = picture(tiles, row, 0, 0)
    assert not tiles.used_outdated
    tiles.deadline = time.perf_counter() - 1
    assert picture(tiles, row, 0, last) == before
    assert tiles.used_outdated, "an older one had to do"
    tiles.deadline, tiles.used_outdated = math.inf, False
    assert picture(tiles, row, 0, last) == picture(Tiles(flow, 1.0), row, 0, last) != before
    assert not tiles.used_outdated
    tiles.deadline = -math.inf
    assert picture(tiles, row, 0, last) != before, "what is known takes no time"
    assert not tiles.used_outdated
    assert picture(tiles, row, 0, 0) == before
    assert not tiles.used_outdated
