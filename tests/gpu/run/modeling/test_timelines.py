"""Timelines that are asked for: of a pattern's launches, and of any kernel's."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gpu.base.errors import InputError, KernelError
from gpu.engines.null import NullEngine
from gpu.messages.kernels import KernelLaunch
from gpu.messages.modeled_time import LineCode, ModelKernel
from gpu.messages.shared_arrays import SharedFolder
from gpu.messages.timelines import RunTimelines, TimelineKernel, TimelinePattern
from gpu.run.handlers.execution import execute_request
from gpu.timing import compiler
from gpu.timing.kernels import ModeledFile
from gpu.timing.sass.machine_lines import MachineLine
from gpu.timing.timeline import SPAN, WarpState

TEXT = """template <int N> __global__ void scaled(float *values) {
    values[blockIdx.x * blockDim.x + threadIdx.x] *= N;
}
"""


@pytest.fixture(autouse=True)
def without_nvcc(monkeypatch) -> None:
    monkeypatch.setattr(compiler, "find_nvcc", lambda: "")


@pytest.fixture
def folder():
    made = SharedFolder()
    yield made
    made.close()


def run_request(request, folder) -> RunTimelines:
    result = execute_request(NullEngine(), request, folder, lambda progress: None)
    assert result.timelines.timelines.spans.size == 0  # they are in a file that both processes map
    return result.timelines.join_spans(result.arrays)


def test_the_longest_launch_is_timed_unless_another_one_is_asked_for(folder) -> None:
    longest = run_request(TimelinePattern("reduction", "neighbored", "h200", {"n": 2**16}), folder)
    assert longest.validated
    times = [each.time_us for each in longest.launches]
    (of,) = (each for each in longest.launches if each.index == longest.launch_index)
    assert of.time_us == max(times) == longest.timelines.time_us
    assert (of.kernel, of.grid, of.block) == (
        longest.timelines.kernel,
        longest.timelines.grid,
        longest.timelines.block,
    )
    other = longest.launches[-1]
    assert other.index != longest.launch_index
    second = run_request(TimelinePattern("reduction", "neighbored", "l4", {"n": 2**16}, launch=other.index), folder)
    assert (second.launch_index, second.timelines.grid) == (other.index, other.grid)
    assert second.timelines.gpu == "NVIDIA L4"
    assert not second.validated


def test_lines_of_the_kernel_that_is_timed_have_their_machine_instructions(folder, monkeypatch) -> None:
    code = compiler.MachineKernel(32, 0, ())
    monkeypatch.setattr(ModeledFile, "machine_kernel", lambda self, name: code)
    told = [MachineLine(7, 3, 0, {"LDG": 2, "IADD3": 1}), MachineLine(9, 1, 1, {"STL": 1})]
    monkeypatch.setattr("gpu.run.modeling.line_codes.group_machine_lines", lambda instructions: told)
    found = run_request(TimelinePattern("matmul", "tiled", "h200", {"n": 64}), folder)
    assert found.lines == {"matmul.cu": {7: LineCode(3, 0, {"LDG": 2, "IADD3": 1}), 9: LineCode(1, 1, {"STL": 1})}}
    launch = KernelLaunch("/nowhere/own.cu", TEXT, "scaled<3>", (8,), (64,), ("arange:512",))
    assert set(run_request(TimelineKernel(launch, "h200"), folder).lines) == {"own.cu"}


def test_without_an_assembler_no_line_has_any(folder) -> None:
    assert run_request(TimelinePattern("matmul", "tiled", "h200", {"n": 64}), folder).lines == {}


def test_spans_cross_as_they_were(folder) -> None:
    found = run_request(TimelinePattern("matmul", "tiled", "h200", {"n": 64}), folder).timelines
    assert found.spans.dtype == SPAN
    for each in found.timelines:
        spans = found.find_spans(each.resident)
        assert spans["end"].max() == pytest.approx(each.recorded_until, rel=1e-6)
        assert np.count_nonzero(spans["state"] == WarpState.ISSUING) == each.issued


def test_a_kernel_of_a_file_of_its_own(folder) -> None:
    launch = KernelLaunch("/nowhere/own.cu", TEXT, "scaled<3>", (8,), (64,), ("arange:512",))
    found = run_request(TimelineKernel(launch, "h200"), folder)
    assert [(each.kernel, each.grid) for each in found.launches] == [("scaled<3>", (8, 1, 1))]
    assert {each.line for each in found.timelines.operations if re.search(r"(ld|st)\.global", each.text)} == {2}
    assert found.timelines.resident == 1  # a GPU has more multiprocessors than the launch has blocks
    assert len(found.timelines.timelines) == 32  # and each of them has room for so many of these


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (TimelinePattern("reduction", "neighbored", "h200", {"n": 2**10}, launch=99), "no such kernel"),
        (
            TimelinePattern("reduction", "neighbored", "pascal", {"n": 2**10}),
            "There is no GPU description for 'pascal'",
        ),
        (TimelinePattern("matmul", "cublas", "h200", {"n": 64}), "library"),
        (TimelinePattern("convolution", "naive", "h200"), "needs an image"),
    ],
)
def test_what_cannot_be_timed_is_said(request_, error, folder) -> None:
    with pytest.raises(InputError, match=error):
        run_request(request_, folder)


def test_kernels_that_the_model_does_not_follow_are_refused(folder) -> None:
    text = "texture<float, 1> field;\n__global__ void k(float *a) { a[0] = tex1Dfetch(field, 0); }\n"
    launch = KernelLaunch("/nowhere/own.cu", text, "k", (1,), (32,), ("zeros:32",), textures={"field": "zeros:32"})
    for request in (TimelineKernel(launch, "h200"), ModelKernel(launch, "h200")):
        with pytest.raises(KernelError, match="reads texture references"):
            run_request(request, folder)
