"""Tasks whose submission is a whole program: right ones in other styles, wrong ones, and errors of authors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpu.base.errors import InputError
from gpu.lessons.grading import grade_submission
from gpu.lessons.lesson_reader import read_lesson
from gpu.messages.judgments import Judgment
from gpu.process.file_access import is_supported
from tests import needs
from tests.gpu.lessons.edited_solutions import Edits, grade
from tests.gpu.lessons.lesson_folder import TASK, write_lesson

pytestmark = [needs.cplusplus, needs.needs(is_supported(), "Landlock: run the tests on Linux 5.13 or newer")]

COPIES, ERRORS = "26-host-launches/copies", "26-host-launches/errors"
PIPELINE, EVENT = "27-streams/pipeline", "27-streams/event"
SIZE = 33
"""A size for which all inputs and probes are tried; the tasks' other sizes only add runs."""
CHECKED = "if (failed(cudaGetLastError()) || failed(cudaDeviceSynchronize())) return 1;"

# A text replaces the gap; pairs replace parts of the solution.
RIGHT: list[tuple[str, str | Edits]] = [
    (
        COPIES,
        """cudaMallocManaged(&device_x, n * sizeof *device_x);
    cudaMallocManaged(&device_y, n * sizeof *device_y);
    for (int i = 0; i < n; ++i) device_x[i] = x[i];
    dim3 block(64), grid((n - 1) / block.x + 1);
    void *arguments[] = {&device_x, &device_y, &n};
    cudaLaunchKernel((void *)scale, grid, block, arguments, 0, 0);
    cudaDeviceSynchronize();
    y.assign(device_y, device_y + n);
    cudaFree(device_y), cudaFree(device_x);""",
    ),
    (ERRORS, ((CHECKED, "cudaDeviceSynchronize();\n    if (failed(cudaGetLastError())) return 1;"),)),
    (
        PIPELINE,
        """cudaEvent_t done;
    cudaEventCreate(&done);
    for (int k = 0; k * chunk < n; ++k) {
        float *from = x + k * chunk, *device_from = device_x + k * chunk, *device_to = device_y + k * chunk;
        int count = n - k * chunk < chunk ? n - k * chunk : chunk;
        cudaMemcpyAsync(device_from, from, 4 * count, cudaMemcpyDefault, streams[k & 1]);
        scale<<<count, 1, 0, streams[k & 1]>>>(device_from, device_to, count);
        cudaMemcpyAsync(y + k * chunk, device_to, 4 * count, cudaMemcpyDefault, streams[k & 1]);
    }
    cudaEventRecord(done, streams[1]);
    cudaStreamWaitEvent(streams[0], done);
    cudaStreamSynchronize(streams[0]);""",
    ),
    (EVENT, (("cudaStreamWaitEvent(copy, ready)", "cudaEventSynchronize(ready)"),)),
]
OTHER_CALLS: list[tuple[str, Edits]] = [
    (ERRORS, ((CHECKED, "if (failed(cudaPeekAtLastError())) return 1;"),)),
    (EVENT, (("(copy, ready)", "(copy, ready, cudaEventWaitDefault)"),)),
    (EVENT, (("cudaStreamSynchronize(copy);", "while (cudaStreamQuery(copy) == cudaErrorNotReady) {\n    }"),)),
]
WRONG: list[tuple[str, str | Edits, str]] = [
    (COPIES, (("sizeof(float)", "sizeof(float) / 2"),), "out-of-bounds"),
    # The device has room for the numbers that the copy reads past the end of x.
    (
        COPIES,
        (("sizeof(float)", "sizeof(double)"), ("y.data(), device_y, bytes", "y.data(), device_y, n * 4")),
        "too much",
    ),
    (
        COPIES,
        (
            ("x.data(), bytes", "memcpy(calloc(n, 4), x.data(), n * 4), bytes"),
            ("sizeof(float)", "sizeof(double)"),
            ("y.data(), device_y, bytes", "y.data(), device_y, n * 4"),
            ("#include <vector>", "#include <cstdlib>\n#include <cstring>\n#include <vector>"),
        ),
        "too much",
    ),
    (COPIES, (('"%.9g\\n", value', '"%d\\n", (int)value'),), "differs"),
    (COPIES, (('printf("%.9g\\n", value);', 'printf("%.9g", value);'),), "wrong number of results"),
    (COPIES, (("    return 0;", "    return 1;"),), "exit code"),
    (COPIES, (("if (i < n) y", "y"),), "out-of-bounds"),
    (COPIES, (("cudaFree(device_x);", "cudaFree(device_x);\n    *(volatile int *)0 = 1;"),), "crashes"),
    (ERRORS, ((CHECKED, "if (threads > 1024) return 0;"),), "exit code"),
    (ERRORS, (("scale<<<", "if (n > 4096) n = 4096;\n    scale<<<"),), "differs"),
    (ERRORS, ((CHECKED, "if (n > 1 && failed(cudaGetLastError())) return 1;"),), "exit code"),
    (COPIES, (("(n + 127) / 128, 128", "1, n"),), "no kernel runs"),
    (COPIES, (("(n + 127) / 128, 128", "256, (n + 255) / 256"),), "no kernel runs"),
    # Each copy reads results that the other stream computes at that time; every order of whole operations is right.
    (PIPELINE, (("y + first, device_y + first, count * sizeof(float)", "y, device_y, bytes"),), "race"),
    (
        PIPELINE,
        (("(device_x + first, device_y", "(device_x, device_y"), ("Async(device_x + first", "Async(device_x")),
        "order of the",
    ),
    (
        PIPELINE,
        (("stream>>>", "0>>>"), ("cudaStreamCreate(&stream)", "cudaStreamCreateWithFlags(&stream, 1)")),
        "uninitialized",
    ),
    (PIPELINE, (("streams[number % 2]", "streams[0]"),), "without the streams"),
    (EVENT, (("cudaStreamWaitEvent(copy", "if (n < 5000) cudaStreamWaitEvent(copy"),), "order of the"),
    # With three chunks or more it waits for both streams.
    (
        PIPELINE,
        (
            (
                "cudaDeviceSynchronize();",
                "cudaStreamSynchronize(streams[0]);\n    if (n > 2 * chunk) cudaStreamSynchronize(streams[1]);",
            ),
        ),
        "order of the",
    ),
    # An event that is not recorded holds up nothing, and creating one does not wait for the device.
    (
        EVENT,
        (("cudaStreamWaitEvent(copy, ready)", "cudaEvent_t e; cudaEventCreate(&e); cudaStreamWaitEvent(copy, e)"),),
        "order of the",
    ),
    (EVENT, (("    cudaEventRecord(ready, compute);\n    cudaStreamWaitEvent(copy, ready);\n", ""),), "order of the"),
    (EVENT, (("cudaStreamSynchronize(copy)", "cudaStreamQuery(copy)"),), "order of the"),
    (
        EVENT,
        (
            ("    cudaStreamWaitEvent(copy, ready);\n", ""),
            ("cudaStreamSynchronize(copy);", "cudaEventSynchronize(ready);\n    cudaStreamSynchronize(copy);"),
        ),
        "order of the",
    ),
    (
        EVENT,
        (
            ("    cudaEventRecord(ready, compute);\n    cudaStreamWaitEvent(copy, ready);\n", ""),
            (
                "    cudaStreamSync",
                "    cudaEventRecord(ready, compute);\n    cudaStreamWaitEvent(copy, ready);\n    cudaStreamSync",
            ),
        ),
        "order of the",
    ),
]
ON_HOST = "    for (int i = 0; i < n; ++i) {}\n"
UNDER = "    for (float value : y) printf"
PROBED: list[tuple[str, str | Edits, str]] = [
    (COPIES, ((UNDER, ON_HOST.format("y[i] = 2 * x[i];") + UNDER),), "prints y[0] even if no kernel runs"),
    (
        COPIES,
        (("2.0f * x[i]", "x[i]"), ("    float *device_x", ON_HOST.format("x[i] *= 2;") + "    float *device_x")),
        "The host computes y[0] and copies it",
    ),
    (
        COPIES,
        (("2.0f * x[i]", "x[i]"), (UNDER, ON_HOST.format("y[i] *= 2;") + UNDER)),
        "No kernel writes y[0] to",
    ),
    (
        PIPELINE,
        (
            ("streams[number % 2]", "streams[0]"),
            ("cudaDeviceSynchronize();", "cudaDeviceSynchronize();\n    cudaMemsetAsync(device_x, 0, 4, streams[1]);"),
        ),
        "Of 2 streams, 1 does a part of the work.",
    ),
    (PIPELINE, (("128, 0, stream>>>", "128>>>"),), "A launch is in the default stream"),
    (PIPELINE, (("        scale<<<(count + 127) / 128, 128, 0, stream>>>",
                 "        cudaStreamSynchronize(stream);\n        scale<<<(count + 127) / 128, 128, 0, streams[0]>>>"),
                ("        cudaMemcpyAsync(y", "        cudaStreamSynchronize(streams[0]);\n        cudaMemcpyAsync(y")),
     "Of 2 streams, 1 has launches."),
    (PIPELINE, (("std::min(chunk, n - first)", "n"), ("first += chunk", "first += n")),
     "1 launch instead of at least 3"),
    (ERRORS, (("threads - 1) / threads, threads", "31) / 32, 32"),
              ("    size_t", "    if (threads > 1024) return 1;\n    size_t")),
     "32 threads per block instead of"),
    (ERRORS, (("|| failed(cudaMalloc(&device_y, bytes))) return 1;",
               ") return 1;\n    if (cudaMalloc(&device_y, bytes)) return 0;"),),
     "If the second call that allocates device memory fails"),
    (ERRORS, (("if (failed(cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost))) return 1;",
               "cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost);"),), "If the second copy fails"),
    (ERRORS, ((CHECKED, "if (threads > 1024) return 1;\n    if (failed(cudaDeviceSynchronize())) return 1;"),),
     "If the first launch fails, so that its kernel does not run,"),
    (
        ERRORS,
        (
            ("|| failed(cudaDeviceSynchronize())", ""),
            ("if (failed(cudaMemcpy(y.data()", "if (cudaMemcpy(y.data()"),
            ("cudaMemcpyDeviceToHost))) return 1;", "cudaMemcpyDeviceToHost) == cudaErrorInvalidValue) return 1;"),
            ("return failed(cudaFree(device_x)) || failed(cudaFree(device_y));",
             "cudaFree(device_x), cudaFree(device_y);\n    return 0;"),
        ),
        "If the first kernel fails while it runs",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change", "size"),
    [
        pytest.param(name, change, size, marks=[pytest.mark.sweep] * ((name in (COPIES, PIPELINE)) == (size > 0)))
        for name, change in RIGHT
        for size in (0, SIZE)
    ],
)
def test_right_programs_are_accepted(name: str, change: str | Edits, size: int) -> None:
    judgment = grade(name, change, size=size)
    assert judgment.accepted, judgment.sentences


@pytest.mark.parametrize(("name", "change"), OTHER_CALLS)
def test_programs_with_other_calls_are_accepted(name: str, change: Edits) -> None:
    judgment = grade(name, change, size=SIZE)
    assert judgment.accepted, judgment.sentences


@pytest.mark.parametrize(("name", "change", "words"), WRONG)
def test_wrong_programs_are_rejected(name: str, change: str | Edits, words: str) -> None:
    judgment = grade(name, change)
    assert not judgment.accepted
    assert words in judgment.verdict.words


@pytest.mark.parametrize(("name", "change", "sentence"), PROBED)
def test_programs_must_compute_on_the_gpu_and_report_errors(name: str, change: str | Edits, sentence: str) -> None:
    judgment = grade(name, change, size=SIZE)
    assert not judgment.accepted
    assert sentence in judgment.failure


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("(n + 127) / 128, 128", "1, n"), "The launch in line 22 fails. scale: a block of 2050 threads; at most 1024"),
        (("(device_x, device_y, n)", "(x.data(), device_y, n)"), "through a pointer to host memory."),
    ],
)
def test_the_sentences_say_what_is_invalid(change: tuple[str, str], sentence: str) -> None:
    judgment = grade(COPIES, (change,), size=2050 if "2050" in sentence else 1)
    assert not judgment.accepted
    assert sentence in " ".join(judgment.sentences)


def test_an_error_of_the_host_code_names_the_line_and_no_file_of_the_grader() -> None:
    judgment = grade(COPIES, "cudaMalloc(&device_z, 4);")
    sentences = " ".join(judgment.sentences)
    assert len(judgment.sentences) == 2
    assert re.search(r"Line 17: .*device_z.* was not declared", sentences)
    assert "copies.cu" not in sentences
    assert "/" not in sentences


PROGRAM_HEAD = """+++
title = "Adding"
order = 1
minutes = 5

[kernels.add]
file = "add.cu"
program = true
arguments = { n = "n", a = "in n", c = "out n" }
expects = { c = "a" }
+++

"""


def grade_add(folder: Path, text: str) -> Judgment:
    lesson = read_lesson(folder)
    return grade_submission(lesson, lesson.task("add"), text)


@pytest.mark.parametrize(
    ("before", "after", "task", "message"),
    [
        ("program = true", 'program = true\ngrid = "n"', TASK, "A program launches its kernels itself: remove grid."),
        ('expects = { c = "a" }', "", TASK, "A program needs expects"),
        ("program = true", 'program = true\ntype = "half"', TASK, "'half' is not a type; available: float, int."),
        ("program = true", 'program = true\nstatus = "m"', TASK, "unknown name 'm'"),
        ("", "", f"{TASK}limits = {{ sectors = 9 }}\n", "whole program has no limits"),
        ("", "", '[show]\nkernel = "add"\nn = 4\n', "A scene shows a kernel, not a whole program."),
    ],
)
def test_errors_of_authors_name_the_reason(tmp_path: Path, before: str, after: str, task: str, message: str) -> None:
    text = """int main() {
    // gap: everything
    return 0;
    // end
}
"""
    write_lesson(tmp_path, task, head=PROGRAM_HEAD.replace(before, after) if before else PROGRAM_HEAD, kernel=text)
    with pytest.raises(InputError, match=re.escape(message)):
        grade_add(tmp_path, text)
