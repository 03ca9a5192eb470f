"""Lockstep's own sequences: what a moment names exists, and its step shows what its note says.

A note's words in backticks are in the current line, or in the sentence about it. Its counts are those of the whole
recording, and it speaks of a reported race exactly where the checker finds one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpu.engines.null import NullEngine
from gpu.messages.runs.recordings import StepPattern
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns import all_patterns
from gpu.run.handlers.execution import execute_request
from gui.model.sequences import BUILTIN_FOLDER, format_sequence, list_builtin_sequences, read_sequence
from gui.step_view.recording.models import load_models
from gui.step_view.time.snapshots import make_snapshots
from gui.window.sequences.moments import check_moment, find_image

SEQUENCES = {path.stem: read_sequence(path)[0] for _, path in list_builtin_sequences()}
MOMENTS = [
    pytest.param(moment, id=f"{stem} {number}")
    for stem, sequence in SEQUENCES.items()
    for number, moment in enumerate(sequence.moments, 1)
]
STEP_MOMENTS = [each for each in MOMENTS if each.values[0].tab == "Step"]
_COUNTS = {
    "operation": "operations",
    "barrier": "barriers",
    "parallel step": "steps",
    "divergent branch": "divergent_branches",
    "bank conflict": "bank_conflicts",
    "sector": "sectors",
}


@pytest.fixture(scope="module")
def folder():
    folder = SharedFolder()
    yield folder
    folder.close()


def record(moment, folder):
    params = check_moment(moment, all_patterns())
    schedule = moment.schedule or "round-robin"
    request = StepPattern(moment.pattern, moment.variant, params, {}, moment.seed, {}, schedule)
    return load_models(execute_request(NullEngine(), request, folder, lambda progress: None).path)


def test_three_sequences_of_an_hour_exist():
    assert list(SEQUENCES) == ["1-reduction", "2-scan", "3-histogram-and-races"]
    for stem, sequence in SEQUENCES.items():
        assert not sequence.errors
        path = BUILTIN_FOLDER / f"{stem}.sequence"
        assert path.read_text("utf-8") == format_sequence(sequence)
        minutes = [int(re.match(r"(\d) min\. ", moment.note)[1]) for moment in sequence.moments]
        assert 55 <= sum(minutes) <= 70
        titles = [moment.title for moment in sequence.moments]
        assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_a_moment_names_exists(moment):
    patterns = all_patterns()
    check_moment(moment, patterns)
    assert moment.tab in ("Step", "Run", "Compare", "Atomics")
    image = find_image(moment, Path("nowhere"))
    assert (image is None) == (not moment.image)


@pytest.mark.parametrize("moment", STEP_MOMENTS)
def test_the_step_shows_what_the_note_says(moment, folder):
    models = record(moment, folder)
    recording = models.recording
    assert 0 < moment.step <= recording.event_count
    now = make_snapshots(models)(moment.step, None)
    for words in re.findall("`(.+?)`", moment.note):
        assert words in now.code or words in now.effect
    totals = models.data.tally.counts_at(recording.event_count)
    pattern = rf"\b(\d+) ({'|'.join(_COUNTS)})(?:e?s)?\b(?! by)"
    for number, noun in re.findall(pattern, moment.note):
        assert int(number) == getattr(totals, _COUNTS[noun]), noun
    assert bool(re.search(r"reports a race|lines and both threads of a race", moment.note)) == bool(
        models.data.findings
    )
    if models.data.findings:
        assert moment.step == models.data.findings[0].moment + 1


def test_the_notes_contain_counts_and_code_to_check():
    notes = "\n".join(moment.note for sequence in SEQUENCES.values() for moment in sequence.moments)
    assert len(re.findall("`.+?`", notes)) >= 25
    assert len(re.findall(r"\b\d+ (?:operations|barriers|parallel steps|bank conflicts|divergent)", notes)) >= 15
