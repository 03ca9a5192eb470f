"""What is made of compute-sanitizer's words; the tool itself needs a GPU, and is played here by a script."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gpu.cli.main import main
from gpu.patterns import find_pattern
from tests import needs
from tests.gpu.cli.no_desktop import NO_WINDOW
from tools import sanitize

CLEAN = "========= ERROR SUMMARY: 0 errors"
RACE = "========= Error: Race reported\n========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"
BLIND = (
    "========= Warning: CUDA Dynamic Parallelism is not supported by the selected tool\n"
    "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)"
)


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a compute-sanitizer on PATH that says and returns what the variables SAID and ENDED hold."""
    script = tmp_path / "compute-sanitizer"
    # A shell's script: a hundred runs of Python's take six seconds.
    script.write_text('#!/bin/sh\necho "$*" >> "$ASKED"\necho "$SAID"\nexit "$ENDED"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))


@needs.posix
@pytest.mark.usefixtures("play")
@pytest.mark.parametrize(
    ("said", "ended", "code", "told"),
    [
        (CLEAN, 0, 0, "20 runs, 20 clean, 0 with reports that are not excused"),
        (RACE, 9, 1, "20 runs, 0 clean, 20 with reports that are not excused"),
        (BLIND, 9, 0, "softmax naive, racecheck: excused, only memcheck supports kernels that launch kernels"),
        ("It could not start.", 1, 1, "softmax naive, memcheck: It could not start."),
        (CLEAN, 1, 1, "20 runs, 0 clean, 20 with reports that are not excused"),
    ],
)
def test_each_word_without_an_excuse_is_a_failure(
    said: str, ended: int, code: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SAID", said)
    monkeypatch.setenv("ENDED", str(ended))
    assert sanitize.main(["softmax", "--jobs", "2"]) == code
    assert told in capsys.readouterr().out


def test_a_variant_that_is_wrong_by_design_may_be_found_out() -> None:
    (volatile,) = (each for each in find_pattern("reduction").variants if each.deliberate_error)
    seen = sanitize.SanitizerRun(
        "reduction", volatile.name, "racecheck", False, "RACECHECK SUMMARY: 10 hazards displayed"
    )
    assert sanitize.find_excuse(volatile, seen) == "wrong by design"


@pytest.mark.parametrize("name", ["convolution", "nbody", "matmul", "scan"])
def test_the_size_fills_no_block_evenly(name: str) -> None:
    pattern = find_pattern(name)
    options = sanitize.awkward_size_options(pattern, pattern.variants[-1])
    given = dict(zip((each[2:] for each in options[::2]), map(int, options[1::2]), strict=True))
    params = pattern.check(given)
    assert all(params[key] == value for key, value in given.items())
    sizes = [value for key, value in given.items() if key != "steps"]
    assert all(size % 32 for size in sizes)


def test_without_the_tool_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert sanitize.main([]) == 2
    assert "compute-sanitizer is not on PATH" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sort", "matmul"])
def test_a_thread_alone_is_given_no_more_than_it_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = find_pattern(name)
    command = ["run", name, "--engine", "simulator", "--variant", "one-thread", "--json"]
    command += sanitize.awkward_size_options(pattern, pattern.variant("one-thread"))
    assert main(command, NO_WINDOW) == 0, capsys.readouterr().err
