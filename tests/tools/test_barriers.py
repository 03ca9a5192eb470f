"""A barrier that is taken out is never "verified": all of them by `make barriers`, here some of each kind."""

from __future__ import annotations

import pytest

from gpu.declaration.pattern import Params
from gpu.patterns import all_patterns, find_pattern
from tools.barriers import HARMLESS, check_all_removals, check_without_item, find_sync_items, format_report, remove_item

FILES = [file for pattern in all_patterns().values() for file in pattern.kernel_files]
SAMPLE = [
    ("sort", "quicksort", "part_keys", "__syncthreads();", 3, {"n": 100}),
    ("sort", "merge", "sort_merge", "__syncthreads();", 1, {"n": 300}),
    # This one ran once on 16 keys.
    pytest.param(
        "sort", "onesweep", "sort_onesweep", "__syncwarp();", 2, {"n": 300, "block": "64"}, marks=pytest.mark.sweep
    ),
    pytest.param("nbody", "split", "nbody_split", "__syncthreads();", 1, {"bodies": 48}, marks=pytest.mark.sweep),
    ("nbody", "pairs", "nbody_pairs", "__syncwarp();", 2, {"bodies": 48}),
    ("matmul", "peak", "matmul_peak", "__syncthreads();", 2, {"n": 16}),
    ("scan", "look-back", "look_back", "volatile", 1, {"n": 3000}),
    ("sort", "peak", "sort_in_cluster", "cluster.sync();", 2, {"n": 5000}),
    pytest.param("sort", "peak", "sort_in_block", "__syncthreads();", 5, {"n": 5000}, marks=pytest.mark.sweep),
    # A cluster sorts up to 16,384 keys.
    pytest.param("sort", "peak", "sort_peak_pass", "__syncthreads();", 1, {"n": 17_000}, marks=pytest.mark.sweep),
    ("softmax", "shared", "softmax_shared", "__syncthreads();", 5, {"rows": 2, "n": 64}),
    ("reduction", "last-block", "finish", "__threadfence();", 1, {"n": 1000}),
]


def test_all_that_orders_threads_is_found_with_the_function_that_it_is_in() -> None:
    found = [each for file in FILES for each in find_sync_items(file)]
    assert len(found) > 120
    names = {name for pattern in all_patterns().values() for variant in pattern.variants for name in variant.kernels}
    helpers = {name for pattern in all_patterns().values() for each in pattern.helpers.values() for name in each}
    assert {each.function for each in found if each.in_kernel} <= names | helpers
    assert not {each.function for each in found if not each.in_kernel} & (names | helpers)
    for each in found:
        text = remove_item(each)
        assert text.count("\n", 0, each.offset) + 1 == each.line
        assert text[each.offset : each.offset + len(each.text)].strip(" ;") == ""


def test_what_is_harmless_is_still_there() -> None:
    there = {(each.file, each.function, each.text, each.occurrence) for file in FILES for each in find_sync_items(file)}
    assert set(HARMLESS) <= there


@pytest.mark.parametrize(("name", "variant", "function", "text", "place", "params"), SAMPLE)
def test_without_it_nothing_is_verified(
    name: str, variant: str, function: str, text: str, place: int, params: Params
) -> None:
    pattern = find_pattern(name)
    (taken,) = (
        each
        for each in find_sync_items(pattern.kernel_file_of(variant))
        if (each.function, each.text, each.occurrence) == (function, text, place)
    )
    found = check_without_item(pattern, pattern.variant(variant), taken, params)
    assert found.kind == "flawed", found.verdict_text
    assert not found.missed
    row = format_report([found]).splitlines()[-1].split("|")[1:-1]
    assert [row[0].strip(), int(row[2]), int(row[-1])] == ["**all**", 1, 0]


def test_a_barrier_that_the_preprocessor_leaves_out_is_not_verified() -> None:
    """The variant's kernel has no clusters, but may call a function that has them with other parameters."""
    pattern = find_pattern("matmul")
    (barrier, _) = (each for each in find_sync_items("matmul.cu") if each.text == "cluster.sync();")
    removal = check_without_item(pattern, pattern.variant("naive"), barrier, {"n": 4})
    assert removal.verdict_text == f"right, but #if leaves out the edit at line {barrier.line}"
    assert not removal.missed


def test_two_at_the_same_time_say_what_one_after_the_other_does() -> None:
    found = list(check_all_removals(["transpose"], jobs=2))
    assert len({each.item for each in found}) == 5
    assert {each.kind for each in found} >= {"flawed"}
    assert found == list(check_all_removals(["transpose"]))
