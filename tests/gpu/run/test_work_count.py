"""What a variant does, counted on a small part of its input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import CompileError, InputError
from gpu.messages.run_counts import QUANTITIES, RunCounts, format_figure, list_figures
from gpu.patterns import all_patterns, find_pattern
from gpu.run.work_count import count_pattern
from gpu.run.workload import Workload


def counts_of(name: str, variant: str = "", whole: bool = False, **params: Any) -> RunCounts:
    pattern = find_pattern(name)
    image = np.random.default_rng(3).integers(0, 256, (90, 100), np.uint8)
    inputs = {"image": image, "maxval": np.array(255)} if pattern.input_kind(pattern.check(params)) == "image" else {}
    chosen = pattern.variant(variant or pattern.default_variant)
    return count_pattern(Workload(pattern, chosen, inputs, params), lambda progress: None, full_input=whole)


@pytest.mark.parametrize("name", all_patterns())
def test_every_pattern_is_counted_on_little(name: str) -> None:
    found = counts_of(name)
    assert found.input
    assert found.elements in (1024, 4096)
    assert found.sectors > 0
    assert found.moved_bytes == 32 * found.sectors
    assert 0 < found.lanes <= 32
    assert found.least_bytes > 0
    assert all(np.isfinite(quantity.value(found)) for quantity in QUANTITIES)
    assert found.data()["elements"] == found.elements


def test_counts_are_in_the_order_of_the_ladder_where_times_of_a_cpu_are_not() -> None:
    plain, padded = (counts_of("scan", name) for name in ("brent-kung", "brent-kung-padded"))
    assert plain.conflicts > 10 * padded.conflicts
    assert plain.sectors == padded.sectors
    apart, together = (counts_of("reduction", name) for name in ("neighbored", "neighbored-less"))
    assert apart.divergent_branches > 5 * together.divergent_branches
    naive, tiled = (counts_of("convolution", name) for name in ("naive", "tiled"))
    assert naive.sectors > 10 * tiled.sectors


def test_a_copy_counts_as_it_must() -> None:
    found = counts_of("reduction", "peak", n=1000)
    assert (found.input, found.elements) == ("n = 1000", 1000)
    assert found.least_bytes == 4004
    assert found.sectors == pytest.approx(125, abs=10)


def test_the_whole_input_where_that_is_asked_for() -> None:
    assert counts_of("reduction", n=5000, whole=True).elements == 5000
    assert counts_of("reduction", n=5000).elements == 1024


def test_given_bodies_are_cut_to_as_many_as_are_counted() -> None:
    pattern = find_pattern("nbody")
    bodies = np.random.default_rng(2).random((1500, 7), np.float32)
    found = count_pattern(Workload(pattern, pattern.variants[1], {"bodies": bodies}, {}), lambda progress: None)
    assert found.input == "1024 bodies"


def test_an_edited_text_is_what_is_counted() -> None:
    pattern = find_pattern("reduction")
    sources = {pattern.kernel_file: "no kernel"}
    with pytest.raises(CompileError):
        count_pattern(Workload(pattern, pattern.variants[0], {}, {}, sources=sources), lambda progress: None)


def test_a_library_has_nothing_to_count() -> None:
    pattern = find_pattern("matmul")
    library = next(variant for variant in pattern.variants if variant.library)
    with pytest.raises(InputError, match="is a library"):
        count_pattern(Workload(pattern, library, {}, {}), lambda progress: None)


def test_what_does_not_happen_is_not_said() -> None:
    none = RunCounts("n = 8", 8, "element", 36, requests=1, sectors=2, warp_statements=2, lane_statements=16)
    said = {each.name: each.text for each in list_figures(none)}
    assert said == {
        "sectors": "0.250 per element",
        "lanes": "8.0 of 32",
        "divergent": "0% of branches",
        "operations": "0 per element",
    }
    assert RunCounts("", 0, "body", 0).per_element(3) == 0
    assert RunCounts("", 0, "body", 0).per_element_unit == "per body"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.00321, "0.0032"), (0.25, "0.250"), (1.5, "1.50"), (31.62, "31.6"), (12345, "12\u202f345")],
)
def test_figures_are_short(value: float, text: str) -> None:
    assert format_figure(value) == text
