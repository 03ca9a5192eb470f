"""Rows of a timeline: what warps do at a cycle and in columns, against spans that are written by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from gpu.timing.timeline import SPAN, LaunchTimelines, TimedOperation, WarpState, WarpTimeline
from gui.painting.theme import THEMES
from gui.step_view.warps.rows import WarpRows
from gui.step_view.warps.states import ABSENT, state_color

ISSUING, MEMORY, BARRIER = WarpState.ISSUING, WarpState.MEMORY, WarpState.BARRIER


def make_timelines(*spans: tuple, warps: int = 4, until: float = 40.0) -> LaunchTimelines:
    """Return the timelines of a block, on two schedulers, of spans: warp, block, state, from, to, operation."""
    rows = np.zeros(len(spans), SPAN)
    for row, (warp, block, state, begin, end, operation) in zip(rows, sorted(spans), strict=True):
        row["warp"], row["block"], row["state"], row["begin"], row["end"] = warp, block, state, begin, end
        row["operation"] = operation
    rows = rows[np.lexsort((rows["begin"], rows["warp"]))]
    timeline = WarpTimeline(1, until, (0.0,) * len(WarpState), len(spans), 0, len(spans), until)
    operations = (TimedOperation(7, "ld.global.f32 %f1, [%rd1]"), TimedOperation(0, "bar.sync 0"))
    return LaunchTimelines(
        "NVIDIA H200", "k", (1,), (32 * warps,), 1.0, "ir", 2, warps, 1, 1, 1, "warps", "", operations, (timeline,),
        rows,
    )  # fmt: skip


SOME = make_timelines(
    (0, 0, ISSUING, 0, 1, 0),
    (0, 0, MEMORY, 1, 21, 0),
    (0, 0, ISSUING, 21, 23, 0),
    (2, 0, ISSUING, 1, 2, 0),
    (2, 0, BARRIER, 2, 32, 1),
    (3, 0, ISSUING, 0, 1, 0),
    (0, 1, ISSUING, 30, 31, 0),
)


def test_warps_of_a_scheduler_stand_together() -> None:
    assert WarpRows(SOME, 1).warps.tolist() == [0, 2, 1, 3]
    of_two_blocks = WarpRows(replace(SOME, warps_per_block=2, timelines=SOME.timelines * 2), 2)
    assert of_two_blocks.warps.tolist() == [0, 3, 1, 2]  # the second block begins at the other scheduler
    assert of_two_blocks.schedulers.tolist() == [0, 0, 1, 1]


def test_what_a_warp_does_in_a_cycle() -> None:
    rows = WarpRows(SOME, 1)
    now = rows.span_at(0, 20)
    assert now is not None
    assert (now.state, now.begin, now.end, now.line, now.block) == (MEMORY, 1, 21, 7, 0)
    assert rows.span_at(0, 21).state == ISSUING  # type: ignore[union-attr]
    assert rows.span_at(0, 23) is None  # its block has ended, and the next one is not there yet
    assert rows.span_at(0, 30).block == 1  # type: ignore[union-attr]
    assert rows.span_at(1, 5) is None  # it never was there
    assert rows.span_at(2, 31).text == "bar.sync 0"  # type: ignore[union-attr]
    assert [each.warp for each in rows.spans_at(0)] == [0, 3]


def test_a_column_shows_what_takes_most_of_it() -> None:
    rows = WarpRows(SOME, 1)
    states = rows.columns(0, 4, 10)
    assert states[0].tolist() == [MEMORY] * 5 + [ISSUING] + [ABSENT] * 4
    assert states[1].tolist() == [BARRIER] * 8 + [ABSENT] * 2
    assert states[2].tolist() == [ABSENT] * 10
    one = rows.columns(20, 1, 4)
    assert one[0].tolist() == [MEMORY, ISSUING, ISSUING, ABSENT]


def test_columns_of_any_width_agree_with_cycles_counted_one_by_one() -> None:
    rows = WarpRows(SOME, 1)
    single = rows.columns(0, 1, 40)
    for row, warp in enumerate(rows.warps.tolist()):
        for cycle in range(40):
            now = rows.span_at(warp, cycle)
            assert single[row, cycle] == (ABSENT if now is None else now.state)
    for width in (2, 3, 5, 8):
        found = rows.columns(0, width, 40 // width)
        for column in range(found.shape[1]):
            part = single[:, column * width : (column + 1) * width]
            for row in range(4):
                counts = np.bincount(part[row], minlength=ABSENT + 1)
                assert counts[found[row, column]] == counts.max()


def test_schedulers_issue_for_their_own_warps() -> None:
    shares = WarpRows(SOME, 1).compute_issue_shares(2, 2)
    assert shares.tolist() == [[1.0, 0.0], [0.5, 0.0]]


@pytest.mark.parametrize("cycles", [0.5, 0.3, 0.05])
def test_columns_narrower_than_any_span_show_what_is_there_in_their_middle(cycles) -> None:
    rows = WarpRows(SOME, 1)
    count = round(34 / cycles)
    states = rows.columns(0.01, cycles, count)
    for row, warp in enumerate(rows.warps.tolist()):
        own = [each for each in SOME.spans if each["warp"] == warp]
        for column in range(count):
            middle = 0.01 + (column + 0.5) * cycles
            due = next((each["state"] for each in own if each["begin"] <= middle < each["end"]), ABSENT)
            assert states[row, column] == due, (warp, middle)


def test_what_ends_within_some_cycles_is_told_by_its_row() -> None:
    rows, ends = WarpRows(SOME, 1).ends_within(21, 31)
    assert sorted(zip(rows.tolist(), ends.tolist(), strict=True)) == [(0, 21), (0, 23), (0, 31)]


def test_borders_are_where_blocks_begin_and_barriers_open() -> None:
    assert WarpRows(SOME, 1).borders == [0, 30, 32]


def test_nothing_is_no_mistake() -> None:
    rows = WarpRows(make_timelines(), 1)
    assert rows.columns(0, 1, 3).tolist() == [[ABSENT] * 3] * 4
    assert rows.compute_issue_shares(1, 2).sum() == 0
    assert rows.spans_at(0) == rows.borders == []


# How eyes without one of the cones see linear light: Machado, Oliveira and Fernandes (2009), severity 1.
_SEEN = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def to_lab(color, eyes: str) -> np.ndarray:
    """Return a color in CIELAB as some eyes see it."""
    light = np.array(color.getRgbF()[:3])
    light = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    light = np.clip(np.array(_SEEN[eyes]) @ light, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ light
    xyz = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])])


@pytest.mark.parametrize("eyes", _SEEN)
@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_states_are_told_apart_by_all_eyes(theme, eyes) -> None:
    colors = {state: to_lab(state_color(theme, state), eyes) for state in range(ABSENT + 1)}
    for one, other in combinations(colors, 2):
        assert np.linalg.norm(colors[one] - colors[other]) > 20, (one, other)
