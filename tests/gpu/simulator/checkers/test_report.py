"""What is found as it is shown: without the place that is named beside it, at its lines, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base.errors import Diagnostic, SourcePosition
from gpu.base.findings import Finding
from gpu.simulator.checkers.report import build_diagnostics

PATH = Path("kernels/some.cu")
TEXT = '#include "part.h"\nint a = b + c;\nint d = e;'
PLACE = SourcePosition("some.cu", 2, 9)
WHO = "thread (3,0,0) in block (0,0,0)"


@pytest.mark.parametrize(("count", "message"), [(1, "Read."), (2, "Read. (2 times)"), (31, "Read. (31 times)")])
def test_a_finding_says_how_often_it_was_found(count: int, message: str) -> None:
    finding = Finding("uninitialized", "Read.", (PLACE,), (WHO,), count)
    assert build_diagnostics([finding], TEXT, PATH) == (Diagnostic(2, 9, 10, "error", message),)


def test_a_race_stands_at_both_of_its_lines_and_in_each_of_them_once() -> None:
    def race(*places: tuple[int, int]) -> Finding:
        return Finding("race", "Race.", tuple(SourcePosition("some.cu", *place) for place in places))

    def diagnostic_positions(*findings: Finding) -> list[tuple[int, int]]:
        return [(each.line, each.column) for each in build_diagnostics(findings, TEXT, PATH)]

    assert diagnostic_positions(race((3, 9), (2, 9))) == [(2, 9), (3, 9)]
    # Of two places in a line the first that is named.
    assert diagnostic_positions(race((2, 9), (2, 13))) == [(2, 9)]
    assert diagnostic_positions(race((2, 13), (2, 9))) == [(2, 13)]
    # Findings that read alike are one, and all are in the order of the text.
    assert diagnostic_positions(race((3, 9), (2, 9)), race((2, 13)), race((2, 9))) == [(2, 9), (2, 13), (3, 9)]


def test_what_has_no_place_stands_in_the_first_line() -> None:
    assert build_diagnostics([Finding("other", "Lost.", ())], TEXT, PATH) == (Diagnostic(1, 1, 2, "error", "Lost."),)


def test_threads_have_the_windows_names_with_the_components_of_the_launch() -> None:
    finding = Finding("out-of-bounds", f"Invalid write by {WHO}.", (PLACE,), (WHO,))

    def message(extents: tuple[tuple[int, ...], tuple[int, ...]] | None) -> str:
        (diagnostic,) = build_diagnostics([finding], TEXT, PATH, extents=extents)
        return diagnostic.message

    assert message(None) == "Invalid write by block 0, thread 3."
    assert message(((1, 1, 1), (64, 1, 1))) == "Invalid write by thread 3."
    assert message(((2, 1, 1), (8, 8, 1))) == "Invalid write by block 0, thread (3, 0)."
