"""The histogram's demonstrations say what is so: who reads what, how many atomics there are, what comes of it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from gpu.declaration.pattern import Preset
from gpu.engines.counting_engine import ObservedEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.files.images import DEFAULT_SAMPLE, read_image
from gpu.patterns import find_pattern
from gpu.recording.recording import Recording
from gpu.run.pattern_run import record_pattern, run_pattern
from gpu.run.workload import Workload
from gpu.simulator.counting.contention import Contention
from gpu.stepping.binned_elements import match_binned_elements
from gpu.stepping.moment.array_accesses import find_array_accesses

PATTERN = find_pattern("histogram")
SECTIONS, INTERLEAVED, PHRASE, LONG, RUNS, NO_RUNS = PATTERN.presets


def counts(preset: Preset, variant: str) -> list[int]:
    with closing(SimulatorEngine("lockstep")) as engine:
        outcome = run_pattern(
            engine, Workload(PATTERN, PATTERN.variant(variant), {}, preset.params), lambda progress: None
        )
    assert outcome.report.verified
    return outcome.outputs["counts"][0].tolist()


def record_preset(preset: Preset) -> Recording:
    return record_pattern(Workload(PATTERN, PATTERN.variant(preset.variant), {}, preset.params), lambda progress: None)


def list_reads(preset: Preset) -> list[tuple[list[int], list[int]]]:
    """Return which elements of the text each event reads, and the threads that do."""
    (launch,) = record_preset(preset).launches
    trace = launch.trace
    found = []
    for event in range(len(trace.events)):
        texts = [
            touch for touch in find_array_accesses(trace, event) if trace.arrays[touch.array_number].name == "image"
        ]
        found.extend((touch.elements.tolist(), touch.threads.tolist()) for touch in texts)
    return found


def reads_by_thread(preset: Preset) -> list[str]:
    """Return what each thread reads of the text, in its order."""
    read = [""] * int(preset.params["block"])
    for elements, threads in list_reads(preset):
        for element, thread in zip(elements, threads, strict=True):
            read[thread] += preset.params["text"][element]
    return read


CORRECT = [variant.name for variant in PATTERN.variants if not variant.deliberate_error]


@pytest.mark.parametrize("variant", CORRECT)
def test_every_variant_counts_the_texts(variant: str) -> None:
    assert counts(SECTIONS, variant) == [3, 3, 3, 7, 4, 1, 1, 2]
    assert counts(PHRASE, variant) == [5, 5, 6, 10, 10, 1, 1, 3]


def test_what_is_said_of_aggregation_is_counted() -> None:
    def atomics(preset: Preset, variant: str) -> int:
        contention = Contention()
        with closing(ObservedEngine(contention)) as engine:
            inputs: Any = PATTERN.prepare_inputs({}, PATTERN.check(preset.params), 0)
            for _ in PATTERN.variant(variant).run(engine, inputs, PATTERN.check(preset.params)):
                pass
        return contention.tallies["shared"].operations

    assert (atomics(RUNS, "privatized"), atomics(RUNS, "aggregated")) == (224, 28)
    assert (atomics(NO_RUNS, "privatized"), atomics(NO_RUNS, "aggregated")) == (224, 224)


def test_sections_and_interleaving_are_read_as_the_text_says() -> None:
    assert reads_by_thread(SECTIONS) == ["progra", "mming ", "massiv", "ely pa"]
    assert [len(threads) for _, threads in list_reads(SECTIONS)] == [4] * 6
    text = SECTIONS.params["text"]
    first, _ = list_reads(SECTIONS)[0]
    assert [text[element] for element in first] == ["p", "m", "m", "e"]
    assert reads_by_thread(INTERLEAVED) == ["primiy", "ranav ", "omgsep", "gm sla"]
    assert ["".join(text[each] for each in elements) for elements, _ in list_reads(INTERLEAVED)][:2] == ["prog", "ramm"]


def test_of_256_threads_six_have_no_section_of_1000_characters() -> None:
    sections: dict[int, list[int]] = {}
    for elements, threads in list_reads(LONG):
        for element, thread in zip(elements, threads, strict=True):
            sections.setdefault(thread, []).append(element)
    assert sections == {thread: list(range(4 * thread, 4 * thread + 4)) for thread in range(250)}
    assert sections[8][0] == 32


def test_what_is_stepped_first_is_no_single_gray() -> None:
    image = read_image(DEFAULT_SAMPLE)
    part = PATTERN.step_input({"image": image.pixels, "maxval": np.array(image.maxval)})["image"]
    assert part.shape == (4, 4)
    assert np.unique(part.astype(int) * 8 // (image.maxval + 1)).size >= 4


@pytest.mark.parametrize("variant", ["block-partition", "interleaved", "privatized", "aggregated"])
@pytest.mark.parametrize("preset", [SECTIONS, RUNS], ids=["phrase", "runs"])
def test_each_letter_is_counted_once_and_where_it_belongs(preset: Preset, variant: str) -> None:
    params = PATTERN.check(preset.params)
    shown = PATTERN.describe_text(params)
    assert shown is not None
    recording = record_pattern(Workload(PATTERN, PATTERN.variant(variant), {}, preset.params), lambda progress: None)
    found = match_binned_elements(recording, shown.characters, shown.bins)
    text = preset.params["text"]
    assert sorted(found[:, 1].tolist()) == list(range(len(text)))
    bins = [(ord(each) - ord("a")) // 4 if each.isalpha() else 7 for each in text]
    assert [bins[element] for element in found[:, 1]] == found[:, 2].tolist()


def test_levels_are_no_text() -> None:
    assert PATTERN.describe_text(PATTERN.check({})) is None
