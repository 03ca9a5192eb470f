"""The atomics lesson against counts and orders that are made here without a simulator."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.cli import main as cli
from gpu.declaration.pattern import Preset
from gpu.messages.runs.atomics import (
    AtomicCounts,
    ContentionCounts,
    Latencies,
    LatencyChain,
    compute_latency_chain,
    compute_textbook_time,
    describe_latency_chain,
)
from gpu.patterns import find_pattern
from gpu.run import atomics as atomics_lesson
from gpu.run.atomics import count_atomics, enumerate_interleavings, study_atomics
from tests.gpu.cli.no_desktop import NO_WINDOW

PATTERN = find_pattern("histogram")


def counts_of(values: np.ndarray[Any, Any], **params: Any) -> dict[str, AtomicCounts]:
    inputs = {"image": values, "maxval": np.array(255)}
    return {each.variant: each for each in count_atomics(PATTERN, inputs, params, lambda progress: None)}


def max_equal_lanes(values: np.ndarray[Any, Any], together: int) -> int:
    return max(np.bincount(values[start : start + together]).max() for start in range(0, values.size, together))


def test_queues_at_addresses_are_those_of_the_pixels_side_by_side() -> None:
    image = np.random.default_rng(1).binomial(20, 0.5, (77, 300)).astype(np.uint8)
    found = counts_of(image)
    flat = image.ravel()
    per = np.bincount(flat)
    due = ContentionCounts(
        flat.size, np.count_nonzero(per), per.max(), max_equal_lanes(flat, 32), max_equal_lanes(flat, 256)
    )
    assert found["interleaved"].global_counts == due
    assert found["interleaved"].shared_counts == ContentionCounts()
    private = found["privatized"]
    assert (private.shared_counts.warp_queue, private.shared_counts.block_queue) == (due.warp_queue, due.block_queue)
    assert private.shared_counts.operations == flat.size
    # A block merges each of its bins once, and no two threads of it merge the same.
    blocks = -(-flat.size // 256)
    in_blocks = [flat[start : start + 256] for start in range(0, flat.size, 256)]
    assert len(in_blocks) == blocks
    assert private.shared_counts.addresses == sum(np.unique(each).size for each in in_blocks)
    assert private.global_counts.operations == private.shared_counts.addresses
    assert (private.global_counts.warp_queue, private.global_counts.block_queue) == (1, 1)


def test_a_sky_is_what_privatizing_and_copies_are_for() -> None:
    found = counts_of(np.full((256, 256), 200, np.uint8))
    assert found["interleaved"].global_counts == ContentionCounts(65536, 1, 65536, 32, 256)
    assert found["privatized"].shared_counts == ContentionCounts(65536, 128, 512, 32, 256)
    assert found["privatized"].global_counts == ContentionCounts(128, 1, 128, 1, 1)
    # Each thread has two pixels, which are a run.
    assert found["aggregated"].shared_counts == ContentionCounts(32768, 128, 256, 32, 256)
    assert found["peak"].shared_counts.warp_queue == 1


def test_what_is_too_large_is_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomics_lesson, "MAX_ELEMENTS", 1000)
    inputs = {"image": np.zeros((50, 30, 3), np.uint8), "maxval": np.array(255)}
    found = study_atomics(PATTERN, inputs, {}, lambda progress: None)
    assert found.elements == 4500
    assert {counts.elements for counts in found.counts} == {990}
    assert found.counts[0].global_counts.operations == 990


def test_an_input_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="needs an image"):
        study_atomics(PATTERN, {}, {}, lambda progress: None)


def _execute_interleaving(order: tuple[int, ...]) -> int:
    """Carry out two threads' three steps in an order."""
    counter, values, steps = 0, [0, 0], [0, 0]
    for thread in order:
        if steps[thread] == 0:
            values[thread] = counter
        elif steps[thread] == 1:
            values[thread] += 1
        else:
            counter = values[thread]
        steps[thread] += 1
    return counter


def test_every_order_of_a_race_is_run_and_is_what_it_should_be() -> None:
    due = {order: _execute_interleaving(order) for order in set(itertools.permutations((0, 0, 0, 1, 1, 1)))}
    found = enumerate_interleavings("update_racy")
    assert {tuple(moment.thread for moment in each.moments): each.result for each in found} == due
    assert len(found) == len(due) == 20
    for each in found:
        for thread in (0, 1):
            own = [moment for moment in each.moments if moment.thread == thread]
            assert [moment.step for moment in own] == ["read", "add", "write"]
            assert own[1].value == own[2].value == own[0].value + 1
    assert sum(each.is_correct for each in found) == 2


def test_an_atomic_is_right_in_every_order() -> None:
    found = enumerate_interleavings("update_atomic")
    assert [[moment.thread for moment in each.moments] for each in found] == [[0, 1], [1, 0]]
    assert all(each.is_correct for each in found)


def test_the_model_is_latency_over_the_clock() -> None:
    """Kirk and Hwu's example: 200 cycles each way at 1 GHz let one address have 2.5 million atomics a second."""
    latencies = Latencies(1.0, 200, 4)
    assert latencies.per_second(200) == 2.5e6
    counts = AtomicCounts(
        "x", 10_000, ContentionCounts(hottest=2500, operations=5000), ContentionCounts(hottest=125_000)
    )
    found = compute_textbook_time(counts, latencies)
    assert found.time_ms == pytest.approx(1.0 + 1.0)
    assert found.per_second == pytest.approx(5e6)
    assert compute_textbook_time(counts, Latencies(2.0, 200, 4)).time_ms == pytest.approx(1.0)
    assert compute_textbook_time(counts, Latencies(1.0, 200, 8)).bound_by == "shared"
    assert compute_textbook_time(AtomicCounts("x", 0, ContentionCounts(), ContentionCounts()), latencies).bound_by == ""


def test_the_command_prints_all_three(capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(
            ["atomics", "--engine", "simulator", "--executor", "lockstep", *arguments],
            NO_WINDOW,
        )
        return code, *capsys.readouterr()

    code, out, _ = run("--text", "aaaa bb", "--global-cycles", "100")
    assert code == 0
    assert "Atomics of 7 elements: counted" in out
    assert "5 million atomics/s" in out
    assert "correct in 2 of 20 orders" in out
    assert "A atomic 1   B atomic 1 -> 2" in out
    assert "correct in 2 of 2 orders" in out
    code, out, _ = run("--text", "aaaa bb", "--json")
    data = json.loads(out)
    assert data["counts"][0]["global_counts"]["hottest"] == 6
    assert len(data["kernel_ms"]) == len(data["textbook"]) == 5
    code, out, err = run("--clock", "0")
    assert (code, out) == (2, "")
    assert "--clock must be a number above 0, not '0'" in err


def test_all_characters_are_counted_and_the_chain_is_the_chapter_s() -> None:
    """Kirk and Hwu: 2.5 M, evenly 17.5 M, and far less where ten letters of the 38 are in one bin; no blanks."""
    given = {"of": "letters", "text": "programming massively parallel processors", "letters": 4}
    found = study_atomics(PATTERN, {}, given, lambda progress: None)
    assert found.elements == 41
    for counts in found.counts[:2]:
        of = counts.global_counts
        assert (of.operations, of.addresses, of.hottest) == (41, 8, 10)
    assert compute_latency_chain(found.textbook_counts, Latencies()) == LatencyChain(
        2.5e6, 25e6, 17.5e6, 9.5e6, 105e6, 128e9, 32e9
    )


def test_a_text_without_letters_has_no_chain() -> None:
    found = study_atomics(PATTERN, {}, {"of": "letters", "text": "1, 2; 3!"}, lambda progress: None)
    assert (found.elements, found.counts[0].global_counts.hottest) == (8, 8)
    assert describe_latency_chain(found.textbook_counts, Latencies()) == ()


@pytest.mark.parametrize("preset", PATTERN.presets, ids=lambda preset: preset.title)
def test_the_study_counts_the_run_of_the_other_tabs(preset: Preset) -> None:
    params = PATTERN.check(preset.params)
    bins = PATTERN.reference(PATTERN.prepare_inputs({}, params, 0), params)
    for counts in study_atomics(PATTERN, {}, params, lambda progress: None).counts[:2]:
        contention = counts.global_counts
        assert (contention.operations, contention.addresses) == (bins.sum(), np.count_nonzero(bins))
        assert contention.hottest == bins.max()
