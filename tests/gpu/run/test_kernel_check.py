"""Checks of edited kernels: their small inputs, and the inputs that tell mistakes apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.findings import Finding
from gpu.declaration.pattern import Progress
from gpu.engines.base import kernel_text
from gpu.messages.verdicts import Verdict, decide_verdict
from gpu.patterns import find_pattern
from gpu.run import kernel_check
from gpu.run.kernel_check import check_variant
from gpu.run.workload import Workload
from tests.gpu.run.kernel_edits import RIGHT_EDITS, WRONG_EDITS, Edit, sample_inputs


def ignore_progress(_: Progress) -> None:
    """Ignore the progress."""


STENCIL = find_pattern("stencil")


@pytest.mark.parametrize(
    ("variant", "params"),
    [
        # The first tier has each variant with one grid.
        pytest.param(variant.name, params, marks=[pytest.mark.sweep] * (i % 3 != j))
        for i, variant in enumerate(STENCIL.variants)
        for j, params in enumerate(({"n": 64}, {"n": 30, "rows": 25, "planes": 3}, {"n": 40, "rows": 5}))
    ],
)
def test_a_large_grid_is_cropped_to_whole_planes(variant: str, params: dict[str, int]) -> None:
    inputs = STENCIL.prepare_inputs({}, STENCIL.check(params), 0)
    sources = {"stencil.cu": kernel_text("stencil.cu", {}) + "\n"}
    check = check_variant(
        Workload(STENCIL, STENCIL.variant(variant), inputs, params, sources=sources), ignore_progress
    )[1]
    assert decide_verdict(True, edited=True, check=check).kind == "verified"


def test_a_grid_from_a_file_is_cropped_to_whole_planes() -> None:
    params = STENCIL.check({"input": "file", "rows": 30})
    grid = np.arange(25 * 30 * 40, dtype=np.float32).reshape(25, 30, 40)
    assert STENCIL.crop_input is not None
    small = STENCIL.crop_input({"values": grid.reshape(-1, 40)}, params, {**params, "rows": 7, "n": 5, "planes": 3})
    np.testing.assert_array_equal(small["values"], grid[:3, :7, :5].reshape(-1, 5))
    sources = {"stencil.cu": kernel_text("stencil.cu", {}) + "\n"}
    inputs = {"values": grid.reshape(-1, 40)}
    check = check_variant(
        Workload(STENCIL, STENCIL.variant("naive"), inputs, params, sources=sources), ignore_progress
    )[1]
    assert check.clean


def judge(edit: Edit) -> Verdict:
    """Return the verdict on an edit whose result is right for the default input."""
    pattern = find_pattern(edit.pattern)
    variant = pattern.variant(edit.variant)
    file = pattern.kernel_file_of(variant.name)
    inputs, sources = sample_inputs(pattern, edit), {file: edit.apply(file)}
    check = check_variant(Workload(pattern, variant, inputs, edit.params, sources=sources), ignore_progress)[1]
    return decide_verdict(None if check.ended else True, edited=True, check=check)


SLOW_EDITS = {
    "histogram-aggregated-byte-run",
    "matmul-registers-2d-no-tail",
    "sort-odd-even-round-missing",
    "sort-quicksort-lost-equal",
    "convolution-separable-rows-for-columns",
    "nbody-tiled-last-body-again",
    "nbody-naive-no-mass",
    "scan-naive-operands",
    "matmul-tiled-backwards",
    "stencil-vectors-order",
    "spmv-vector-exchange",
    "nbody-naive-skip-itself",
    "nbody-tiled-operands",
    "sort-odd-even-and",
    "sort-bitonic-fewer-tests",
    "sort-one-thread-downwards",
    "histogram-aggregated-equal-first",
    "nbody-naive-no-softening",
    "sort-bitonic-unstable",
    "convolution-naive-columns-first",
    "compaction-three-kernels-comparison",
}
"""Edits whose check takes more than half a second."""

MISSED_EDITS = {"histogram-one-thread-byte-counters"}
"""Wrong edits without an edge case that shows them: this counter overflows at 1024 equal elements."""


def parametrize_edits(edits: tuple[Edit, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "edit",
        [pytest.param(each, id=str(each), marks=[pytest.mark.sweep] * (str(each) in SLOW_EDITS)) for each in edits],
    )


@parametrize_edits(tuple(each for each in WRONG_EDITS if str(each) not in MISSED_EDITS))
def test_a_wrong_edit_is_not_verified(edit: Edit) -> None:
    assert judge(edit).is_bad


@parametrize_edits(RIGHT_EDITS)
def test_a_right_edit_is_verified(edit: Edit) -> None:
    verdict = judge(edit)
    assert verdict.kind == "verified", verdict.words


def test_the_names_of_slow_edits_exist() -> None:
    assert {str(each) for each in (*WRONG_EDITS, *RIGHT_EDITS)} >= SLOW_EDITS | MISSED_EDITS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("spmv-scalar-magnitude", "right for this input, wrong for negative values"),
        ("reduction-one-thread-every-second-tail", "right for this input, wrong for n = 3"),
        ("scan-kogge-stone-last-distance", "right for this input, wrong for n = 2"),
        ("compaction-three-kernels-or-equal", "right for this input, wrong for values at boundaries"),
        ("convolution-naive-transposed-filter", "right for this input, wrong for an asymmetric separable filter"),
        ("matmul-tiled-stride-of-squares", "right for this input, wrong for n = 1, m = 3, k = 7"),
        ("scan-three-kernels-store-one-too-far", "wrong for n = 2: out-of-bounds access in line 246"),
    ],
)
def test_a_verdict_names_the_first_wrong_edge_case(name: str, words: str) -> None:
    (edit,) = (each for each in WRONG_EDITS if str(each) == name)
    assert judge(edit).words == words


def test_a_verdict_names_the_number_of_edge_cases_and_the_excluded_ones() -> None:
    pattern = find_pattern("histogram")
    sources = {"histogram.cu": kernel_text("histogram.cu", {}) + "\n"}
    params = {"of": "numbers", "dtype": "uint16", "n": 5000}
    check = check_variant(Workload(pattern, pattern.variant("texture"), {}, params, sources=sources), ignore_progress)[
        1
    ]
    verdict = decide_verdict(True, edited=True, check=check)
    assert verdict.kind == "verified"
    assert f"The results for {check.edge_cases} edge cases are right." in verdict.sentence
    assert "Excluded, as the original kernel fails or rejects them: n = 0, negative values." in verdict.sentence


def test_a_result_that_is_wrong_at_a_size_is_not_called_wrong_in_a_schedule() -> None:
    pattern = find_pattern("reduction")
    text = kernel_text("reduction.cu", {})
    edited = text.replace("i < n; i +=", "i < n - (n == 1025); i +=")
    sources, params = {"reduction.cu": edited}, {"n": 2**20}
    check = check_variant(Workload(pattern, pattern.variant("shuffle"), {}, params, sources=sources), ignore_progress)[
        1
    ]
    assert not check.differing
    verdict = decide_verdict(True, edited=True, check=check)
    assert verdict.words == "right for this input, wrong for n = 1025, block = 256"


def test_edge_cases_do_not_judge_a_variant_that_is_wrong_by_design() -> None:
    pattern = find_pattern("histogram")
    image = {"image": np.arange(1200, dtype=np.uint8).reshape(30, 40), "maxval": np.array(255, np.uint8)}
    sources = {"histogram.cu": kernel_text("histogram.cu", {}) + "\n"}
    check = check_variant(Workload(pattern, pattern.variant("racy"), image, {}, sources=sources), ignore_progress)[1]
    assert check.edge_cases == 0
    assert not check.wrong_input


def test_an_edit_that_only_an_edge_case_executes_runs_there_with_all_checkers() -> None:
    pattern = find_pattern("scan")
    text = kernel_text("scan.cu", {})
    right = text.replace(
        "    int i = start + threadIdx.x;\n", "    int i = start + threadIdx.x;\n    if (n == 2)\n        i += 0;\n", 1
    )
    check = check_variant(
        Workload(pattern, pattern.variant("naive"), {}, {}, sources={"scan.cu": right}), ignore_progress
    )[1]
    assert decide_verdict(True, edited=True, check=check).kind == "verified"
    racy = text.replace(
        "    int i = start + threadIdx.x;\n",
        "    int i = start + threadIdx.x;\n    if (n == 2)\n        totals[0] = in[i < n ? i : 0];\n",
        1,
    )
    check = check_variant(
        Workload(pattern, pattern.variant("naive"), {}, {}, sources={"scan.cu": racy}), ignore_progress
    )[1]
    assert {each.kind for each in check.mistakes} == {"race"}
    assert check.wrong_input == "n = 2"


def test_an_edited_condition_whose_branch_no_thread_takes_counts_as_executed() -> None:
    pattern = find_pattern("spmv")
    text = kernel_text("spmv.cu", {})
    edited = text.replace("if (row < n && threadIdx.x % WARP == 0) y", "if (threadIdx.x % WARP == 0 && row < n) y")
    edited = edited.replace("if (column < 0) break;", "if (column <= -1) break;")
    for name in ("vector", "ell"):
        check = check_variant(
            Workload(pattern, pattern.variant(name), {}, {}, sources={"spmv.cu": edited}), ignore_progress
        )[1]
        assert decide_verdict(True, edited=True, check=check).kind == "verified", name


def test_each_schedule_with_a_wrong_result_runs_with_checkers(monkeypatch: pytest.MonkeyPatch) -> None:
    """In lockstep each warp draws its own number, so only other schedules write the sum twice."""
    find, checked = kernel_check._find_schedule_findings, []

    def find_and_note(schedule: str, *rest: Any) -> list[Finding]:
        checked.append(schedule)
        return find(schedule, *rest)

    monkeypatch.setattr(kernel_check, "_find_schedule_findings", find_and_note)
    write = "    if (t == 0) partial[blockIdx.x] = s[0];\n}"
    edit = """    __shared__ int ticket;
    if (t == 0) ticket = 0;
    __syncthreads();
    int mine = atomicAdd(&ticket, 1);
    if (t % 32 == 0 && mine / 32 != t / 32) partial[blockIdx.x] = IDENTITY;
"""
    before, found, after = kernel_text("reduction.cu", {}).partition("__global__ void reduce_shared(")
    sources = {"reduction.cu": before + found + after.replace(write, edit + write, 1)}
    pattern = find_pattern("reduction")
    check = check_variant(Workload(pattern, pattern.variant("shared"), {}, {}, sources=sources), ignore_progress)[1]
    assert len(check.differing) > 1
    assert checked == list(check.differing)
    assert check.mistakes[0].kind == "race"
    assert f"It occurs with --schedule {check.differing[0]}." in check.diagnostics[0].message
