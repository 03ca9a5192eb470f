"""What textbooks claim of each pattern, against what recordings count and against numbers worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gpu.base.paths import ROOT
from gpu.declaration.pattern import Textbook
from gpu.patterns import all_patterns, find_pattern
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.tally import Tally
from tests import needs

EXAMPLES = ROOT.parent / "shared" / "listings" / "examples.json"


def _textbook_counts(pattern: str, variant: str, n: int, /, **params: Any) -> Textbook:
    found = find_pattern(pattern)
    book = found.textbook_of(found.variant(variant), found.check({**found.step_params, **params}), n)
    assert book is not None
    return book


def _recorded_counts(pattern: str, variant: str, inputs: Mapping[str, Any], /, **params: Any) -> Textbook:
    found = find_pattern(pattern)
    values = found.check({**found.step_params, **params})
    recording = record_pattern(Workload(found, found.variant(variant), inputs, values), lambda progress: None)
    counts = Tally(recording).counts_at(recording.event_count)
    return Textbook(counts.operations, counts.steps, counts.peak)


@pytest.mark.parametrize(
    ("pattern", "variant", "n", "params"),
    [
        *[("reduction", each, 64, {"block": "64"}) for each in ("neighbored", "neighbored-less")],
        *[("sort", each, n, {"block": "32"}) for each in ("odd-even", "bitonic") for n in (2, 13, 16, 64)],
        *[("matmul", each, 8, {}) for each in ("naive", "coalesced", "tiled")],
        ("matmul", "naive", 4, {"m": 3, "k": 5, "beta": 2.0}),
        *[("nbody", each, 16, {}) for each in ("naive", "tiled")],
        ("nbody", "naive", 9, {}),
        *[("reduction", "two-blocks", n, {"block": block}) for n, block in ((16, "8"), (64, "32"))],
        *[("reduction", "one-thread", n, {}) for n in (1, 2, 13, 32)],
        *[("scan", "one-thread", n, {"kind": kind}) for kind in ("inclusive", "exclusive") for n in (1, 2, 13, 32)],
        *[("sort", "one-thread", n, {}) for n in (1, 2, 13, 32)],
        *[("matmul", "one-thread", n, {"m": 3, "k": 5, "beta": beta}) for n in (1, 4) for beta in (0.0, 2.0)],
    ],
)
def test_the_textbook_s_algorithm_is_counted_as_the_textbook_says(
    pattern: str, variant: str, n: int, params: dict[str, Any]
) -> None:
    size = find_pattern(pattern).size
    assert size is not None
    params = {size.name: n, **params}
    assert _recorded_counts(pattern, variant, {}, **params) == _textbook_counts(pattern, variant, n, **params)


@pytest.mark.parametrize("n", [1, 24])
def test_one_thread_counts_one_letter_after_the_other(n: int) -> None:
    text = {"of": "letters", "text": "programming massively parallel processors"[:n]}
    assert _recorded_counts("histogram", "one-thread", {}, **text) == _textbook_counts(
        "histogram", "one-thread", n, **text
    )


def test_one_thread_has_no_parallelism() -> None:
    for pattern in all_patterns().values():
        params = pattern.check({**pattern.step_params})
        for variant in pattern.variants:
            if variant.is_single_thread:
                book = pattern.textbook_of(variant, params, 1000)
                assert book is not None
                assert (book.average_parallelism, book.peak) == (1, 1)


@pytest.mark.parametrize("variant", ["naive", "constant", "tiled"])
def test_a_convolution_is_counted_as_the_textbook_says(variant: str) -> None:
    image = np.arange(96, dtype=np.uint8).reshape(8, 12)
    found = find_pattern("convolution")
    inputs = found.step_input({"image": image, "maxval": np.array(255, np.uint32)})
    assert _recorded_counts("convolution", variant, inputs) == _textbook_counts(
        "convolution", variant, inputs["image"].size
    )
    passes = _textbook_counts("convolution", "separable", 96)
    assert (passes.operations, passes.steps) == (2 * 6 * 96, 6)


def test_a_histogram_in_the_best_case_spreads_evenly() -> None:
    """One atomic an element; how many queue for a bin is what a textbook calls its steps."""
    assert _textbook_counts("histogram", "interleaved", 24, of="letters", letters=4) == Textbook(24, 4, 7)
    assert _textbook_counts("histogram", "interleaved", 1000, of="levels", bins=256) == Textbook(1000, 4, 256)
    text = "aeimquy" * 3
    counted = _recorded_counts("histogram", "interleaved", {}, of="letters", text=text)
    assert counted.operations == _textbook_counts("histogram", "interleaved", len(text), of="letters").operations


@pytest.mark.parametrize(
    ("pattern", "variant", "n", "expected"),
    [
        ("reduction", "neighbored", 1_000_000, Textbook(999_999, 20, 500_000)),
        ("reduction", "neighbored", 1, Textbook(0, 0, 0)),
        ("compaction", "three-kernels", 16, Textbook(26, 7, 8)),
        ("sort", "bitonic", 2**20, Textbook(2**20 // 4 * 20 * 21, 210, 2**19)),
        ("sort", "odd-even", 1, Textbook(0, 0, 0)),
        ("matmul", "tiled", 1000, Textbook(2 * 10**9 + 10**6, 1001, 2 * 10**6)),
        ("softmax", "shuffle", 4, Textbook(4 * (3 + 4 + 4 + 3 + 4), 7, 16)),
    ],
)
def test_for_any_number_of_elements_without_a_run(pattern: str, variant: str, n: int, expected: Textbook) -> None:
    assert _textbook_counts(pattern, variant, n) == expected


def test_every_pattern_has_a_textbook() -> None:
    for pattern in all_patterns().values():
        params = pattern.check(pattern.step_params)
        claims = [pattern.textbook_of(variant, params, 16) for variant in pattern.variants]
        assert any(claims), pattern.name
        assert all(claim.peak * claim.steps >= claim.operations for claim in claims if claim), pattern.name


@needs.listings
def test_the_texts_worked_numbers() -> None:
    found = {(each["claim"], str(each["inputs"])): each for each in json.loads(EXAMPLES.read_text(encoding="utf-8"))}

    def claimed_numbers(beginning: str, **inputs: Any) -> Any:
        (only,) = [
            each["numbers"]["right"]
            for (claim, _), each in found.items()
            if claim.startswith(beginning) and inputs.items() <= each["inputs"].items()
        ]
        return only

    million = _textbook_counts("reduction", "neighbored", 10**6)
    assert million.average_parallelism is not None
    assert million.steps == claimed_numbers("a reduction tree takes log(N) steps")
    assert round(million.average_parallelism) == claimed_numbers("average parallelism (N - 1) / log(N)")
    assert million.peak == claimed_numbers("peak resource requirement")
    block = {"block": "512"}
    inefficient = claimed_numbers("steps do n-1, n-2, n-4", n=16)
    claim = _textbook_counts("scan", "kogge-stone", 16, **block)
    assert (claim.operations, claim.steps) == (inefficient["adds"], inefficient["steps"])
    for n in (16, 1024):
        efficient, claim = (
            claimed_numbers("log(n) steps with n-1 adds", n=n),
            _textbook_counts("scan", "brent-kung", n, **block),
        )
        assert (claim.operations, claim.steps) == (sum(efficient["adds"]), sum(efficient["steps"]))
    assert _textbook_counts("histogram", "interleaved", 700, of="letters").average_parallelism == 17.5 / 2.5
