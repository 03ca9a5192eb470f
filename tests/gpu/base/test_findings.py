"""Errors that end a launch, as findings."""

from __future__ import annotations

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.findings import Finding, build_error_finding

PLACE = SourcePosition("some.cu", 2, 9)
WHO = "thread (3,0,0) in block (0,0,0)"


def test_a_failed_launch_is_a_finding_that_does_not_repeat_its_place() -> None:
    error = LaunchError("some.cu:2:9: Bad.", position=PLACE, advice="Ask first.", kind="misaligned", thread=WHO)
    assert build_error_finding(error) == Finding("misaligned", "Bad. Ask first.", (PLACE,), (WHO,))
    elsewhere = LaunchError("other.cu:2:9: Lost.", position=PLACE)
    assert build_error_finding(elsewhere) == Finding("", "other.cu:2:9: Lost.", (PLACE,))


def test_a_failed_launch_without_a_place() -> None:
    assert build_error_finding(LaunchError("It is too large.", kind="other")) == Finding(
        "other", "It is too large.", ()
    )
