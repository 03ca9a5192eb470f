"""The unedited kernels are right in all edge cases, except for those that a variant cannot compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.declaration.pattern import Pattern
from gpu.engines.base import kernel_text
from gpu.patterns import all_patterns, find_pattern
from gpu.run.edge_cases.edge_case_run import run_edge_cases
from gpu.run.edge_cases.kernel_case import KernelCase
from gpu.run.edge_cases.launch_sizes import find_launch_sizes

IMAGE = {
    "image": np.random.default_rng(1).integers(0, 256, (120, 159), np.uint8),
    "maxval": np.array(255, np.uint32),
}
OTHER_PARAMS: dict[str, tuple[dict[str, Any], ...]] = {
    "reduction": ({"operator": "max"}, {"dtype": "float32"}, {"dtype": "float32", "operator": "product"}),
    "scan": ({"operator": "max", "kind": "exclusive"}, {"dtype": "float32"}),
    "compaction": ({"dtype": "int32", "predicate": "odd"}, {"result": "split"}),
    "histogram": ({"of": "letters"}, {"of": "ranges"}, {"of": "numbers"}, {"of": "numbers", "dtype": "float32"}),
    "sort": ({"result": "places"}, {"dtype": "float32", "order": "descending"}, {"dtype": "uint64"}),
    "matmul": ({"dtype": "float16"},),
}
EXCLUDED = {
    ("convolution", "separable"): {"an asymmetric filter"},
    ("histogram", "texture"): {"n = 0"},
    ("spmv", "ell"): {"rows of very different lengths"},
}
"""Edge cases that a variant rejects, although its pattern accepts them."""
OUT_OF_DOMAIN = {
    "negative values",
    "equal values",
    "ascending values",
    "descending values",
    "extremes of the type",
    "large magnitudes",
    "large negative values",
    "infinities and NaN",
    "300 equal values",
    "input = sausage",
}
"""Edge cases that some patterns reject, or in which results leave the range of float32."""
SETTINGS = [
    pytest.param(
        pattern,
        variant.name,
        params,
        id="-".join([pattern.name, variant.name, *map(str, params.values())]),
        marks=[pytest.mark.sweep] * (variant is not pattern.variants[1] or bool(params)),
    )
    for pattern in all_patterns().values()
    for params in ({}, *OTHER_PARAMS.get(pattern.name, ()))
    for variant in pattern.variants
    if not variant.library and not variant.deliberate_error
]


@pytest.mark.parametrize(("pattern", "variant", "params"), SETTINGS)
def test_unedited_kernels_are_right_in_all_edge_cases(pattern: Pattern, variant: str, params: dict[str, Any]) -> None:
    params = pattern.check(params)
    inputs = IMAGE if pattern.input_kind(params) == "image" else {}
    file = pattern.kernel_file_of(variant)
    sources = {file: kernel_text(file, {}) + "\n"}
    case = KernelCase(pattern, pattern.variant(variant), inputs, params, sources)
    largest = 65 if case.variant.is_single_thread else 1025
    runs = list(run_edge_cases(case, lambda progress: None, largest, min(257, largest), 10**9))
    names = [run.name for run in runs]
    assert len(set(names)) == len(names)
    assert all(run.correct for run in runs)
    excluded = {run.name for run in runs if run.case is None}
    assert excluded <= OUT_OF_DOMAIN | EXCLUDED.get((pattern.name, variant), set())
    assert len(runs) - len(excluded) >= (3 if params.get("of") == "letters" else 11)


@pytest.mark.parametrize(
    ("name", "variant", "params", "block", "tiles"),
    [
        ("reduction", "shared", {}, 256, {"n": 512}),
        ("reduction", "peak", {"block": "128"}, 128, {"n": 2048}),
        ("transpose", "padded", {"tile": "16"}, 256, {"n": 16, "rows": 16}),
        ("stencil", "registers", {}, 1024, {"n": 30, "rows": 30, "planes": 32}),
        ("convolution", "tiled", {"tile": "16x16"}, 256, {"height": 16, "width": 16}),
        ("softmax", "naive", {}, 256, {}),
    ],
)
def test_sizes_at_which_launches_change(
    name: str, variant: str, params: dict[str, Any], block: int, tiles: dict[str, int]
) -> None:
    pattern = find_pattern(name)
    inputs = IMAGE if pattern.is_image_pattern else {}
    sizes = find_launch_sizes(pattern, pattern.variant(variant), pattern.check(params), inputs, 1025, 257)
    assert (sizes.block, dict(sizes.tiles)) == (block, tiles)


def test_a_fixed_number_of_threads_is_found() -> None:
    def count_threads(name: str, variant: str) -> int:
        pattern = find_pattern(name)
        inputs = IMAGE if pattern.is_image_pattern else {}
        sizes = find_launch_sizes(pattern, pattern.variant(variant), pattern.check({}), inputs, 1025, 257)
        return sizes.bounded_threads

    assert count_threads("histogram", "aggregated") == 2048
    assert count_threads("scan", "one-thread") == 1
    assert count_threads("sort", "one-thread") == 0, "one thread would compare each pair of hundreds of keys"
    assert count_threads("reduction", "shared") == 0
