"""Launches side by side: which figure is the best, and what is none."""

from __future__ import annotations

from dataclasses import replace

from gpu.messages.kernels import CountedLaunch
from gpu.messages.run_counts import RunCounts
from gpu.messages.verdicts import Mistake
from gui.user_kernel.counts_table import FINDINGS, LINES, RESULT, TIME, build_cells

FEW = CountedLaunch(
    RunCounts("", 1, "launch", 0, sectors=10, warp_statements=4, lane_statements=128, branches=4, operations=7),
    (),
    30.0,
)
MANY = CountedLaunch(replace(FEW.counts, sectors=40, lane_statements=64, divergent_branches=1, operations=7), (), 3.0)


def table_lines(*counted, same=None):
    return dict(zip(LINES, build_cells(counted, same or [None] * len(counted)), strict=True))


def test_the_best_is_marked_where_launches_differ() -> None:
    shown = table_lines(FEW, MANY)
    assert [(cell.text, cell.best) for cell in shown["bytes moved"]] == [("320", True), ("1\u202f280", False)]
    assert [cell.share for cell in shown["bytes moved"]] == [0.25, 1]
    assert [(cell.text, cell.best) for cell in shown["active lanes, of 32"]] == [("32", True), ("16", False)]
    assert [(cell.text, cell.best) for cell in shown["divergence, % of branches"]] == [("0", True), ("25", False)]
    assert not any(cell.best for cell in shown["operations"])


def test_the_time_to_simulate_comes_last_and_is_no_merit() -> None:
    assert LINES[-1] == TIME == "ms to simulate on this CPU"
    assert LINES[0] == FINDINGS
    assert [(cell.text, cell.best, cell.share) for cell in table_lines(FEW, MANY)[TIME]] == [
        ("30", False, 0),
        ("3", False, 0),
    ]


def test_what_a_kernel_with_a_mistake_does_is_no_merit() -> None:
    racing = replace(FEW, mistakes=(Mistake("race", (3, 5)),))
    shown = table_lines(racing, MANY, replace(MANY, counts=replace(MANY.counts, sectors=50)))
    assert [cell.text for cell in shown[FINDINGS]] == ["race in lines 3 and 5", "none", "none"]
    assert [cell.best for cell in shown["bytes moved"]] == [False, True, False]
    assert not any(cell.best for cell in table_lines(racing, MANY)["bytes moved"])


def test_what_failed_and_what_is_to_come_have_no_figures() -> None:
    shown = table_lines("It does not compile.", FEW, None)
    assert [(cell.text, cell.tip) for cell in shown[FINDINGS]] == [
        ("failed", "It does not compile."), ("none", ""), ("", ""),
    ]  # fmt: skip
    assert [cell.text for cell in shown["operations"]] == ["", "7", ""]


def test_results_are_compared_with_the_first() -> None:
    assert [cell.text for cell in table_lines(FEW, FEW, MANY, same=[None, True, False])[RESULT]] == [
        "",
        "same",
        "different",
    ]
