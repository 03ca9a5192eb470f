"""Grader on Lockstep's own tasks: plausible wrong submissions, limits, words and warnings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.lessons.grading import grade_submission, record_failure
from gpu.lessons.lesson_reader import LIBRARY, read_all_lessons, read_kernel_file, read_lesson
from gpu.lessons.task_texts import initial_text, reference_solution
from gpu.lessons.validation import find_warnings
from gpu.messages.judgments import GradingCase, Judgment
from tests.gpu.lessons.edited_solutions import grade, is_rejected, select_quick_sizes
from tests.gpu.lessons.lesson_folder import HEAD, KERNEL, TASK, write_lesson

STORAGE = [
    ("01-threads-and-indices/add", "a[i] + b[i]", "(int)a[i] + (int)b[i]"),
    ("01-threads-and-indices/mirror", "= x[row", "= (char)x[row"),
    ("02-divergence/no-divergence", "= x[i] + 1", "= (short)(x[i] + 1)"),
    ("03-coalescing/interleave", "int own", "short own"),
    ("04-shared-memory/halo", "__shared__ float", "__shared__ int"),
    ("08-reduction/tree", "__shared__ float", "__shared__ int"),
    ("09-scan/kogge-stone", "__shared__ int", "__shared__ short"),
    ("16-matrix-product/tiled", "__shared__ float a", "__shared__ int a"),
    ("01-threads-and-indices/add", "a[i] + b[i]", "__int_as_float(__float_as_int(a[i] + b[i]) & 0xfffff000)"),
    (
        "16-matrix-product/naive",
        "sum += A[row * k + i]",
        "sum += __int_as_float(__float_as_int(A[row * k + i]) & ~0x1fff)",
    ),
    ("17-sort/bitonic", "__shared__ int", "__shared__ short"),
    ("17-sort/odd-even", "keys[first] > keys[first + 1]", "(float)keys[first] > (float)keys[first + 1]"),
    ("18-n-body/pull", "float d", "int d"),
    ("20-stencil/cube", "__shared__ int", "__shared__ signed char"),
    ("21-sparse-product/entries", "entries[k] * x", "(short)entries[k] * x"),
    ("07-warp-primitives/rank", "(members, x[i])", "(members, x[i] & 0xffffff)"),
    ("07-warp-primitives/rank", "(members, x[i])", "(members, x[i] & 0x7fffffff)"),
]
PARAMETERS = [
    ("01-threads-and-indices/add", "blockDim.x", "8"),
    ("01-threads-and-indices/add", "i < n)", "i < min(n, 1024))"),
    ("01-threads-and-indices/grid-stride", "gridDim.x", "2"),
    ("02-divergence/clamp", "value < low) value = low", "value < -10.0f) value = -10.0f"),
    ("02-divergence/clamp", "value > high) value", "value > high * 1.001f) value"),
    ("02-divergence/clamp", "value < low) value", "value < low - 0.01f) value"),
    (
        "02-divergence/clamp",
        "    if (value < low)",
        "    if (value * value > high * high) value = value < 0 ? low : high;\n    if (value < low)",
    ),
    ("16-matrix-product/naive", "i < k", "i < min(k, 64)"),
    ("16-matrix-product/tiled", "first < k", "first < min(k, 64)"),
    ("08-reduction/guard", "blockDim.x", "32"),
    ("13-histogram/runs", "int run", "signed char run"),
    (
        "15-convolution/blur",
        "weights[(dy + 1) * 3 + dx + 1]",
        "(dx == 1 && dy == 1 ? 3 : (2 - dx * dx) * (2 - dy * dy))",
    ),
    ("10-any-length/add-back", "sums[blockIdx.x - 1]", "sums[min(blockIdx.x, 40) - 1]"),
    ("15-convolution/halo", "* weights[dy * 3 + dx]", "* (int)weights[dy * 3 + dx]"),
    ("17-sort/radix", "bit < bits", "bit < 8"),
    ("25-attention/scores", "c < d; ++c", "c < (d > 7 ? d / 4 * 4 : d); ++c"),
    ("23-vector-loads/range", "(n - aligned) / 4", "(first < 12 ? n - aligned : 0) / 4"),
    ("21-sparse-product/row", "k < offsets[row + 1]", "k < min(offsets[row + 1], offsets[row] + 4)"),
]
CAPACITIES = [
    ("01-threads-and-indices/add", "i < n)", "i < min(n, 4096))"),
    ("13-histogram/runs", "i < first + each", "i < first + min(each, 512)"),
    ("18-n-body/pull", "j < n", "j < min(n, 1000)"),
    ("06-transpose/scatter", "b[column * rows + row]", "b[(unsigned short)(column * rows + row)]"),
    ("20-stencil/cube", "inner && inside", "inner && inside && x < 16"),
    ("01-threads-and-indices/add", "int i =", "unsigned short i ="),
    ("01-threads-and-indices/add", "i < n)", "i < n && threadIdx.x < 512)"),
    ("01-threads-and-indices/mirror", "(width - 1 - column)", "(unsigned char)(width - 1 - column)"),
    ("10-any-length/add-back", "sums[blockIdx.x - 1]", "sums[(unsigned char)blockIdx.x - 1]"),
    ("13-histogram/private", "own[threadIdx.x]);", "own[threadIdx.x] & 0xffff);"),
    ("16-matrix-product/naive", "i < k", "i < min(k, 256)"),
    ("21-sparse-product/row", "k < offsets[row + 1]", "k < offsets[row] + (offsets[row + 1] - offsets[row]) % 256"),
    ("23-vector-loads/quads", "i < quads", "i < quads % 65536"),
    ("25-attention/scores", "c < d; ++c", "c < min(d, 64); ++c"),
    ("25-attention/softmax", "-INFINITY", "-1000.0f"),
]
LIMITED = [
    (
        "01-threads-and-indices/grid-stride",
        "y[i] = 2.0f * x[i];",
        "y[i] = 2.0f * x[i]; if (i + stride < n) y[i + stride] = 2.0f * x[i + stride];",
    ),
    ("05-bank-conflicts/no-conflicts", "= tile[threadIdx.x][k]", "= x[to * width + row]"),
    ("06-transpose/coarse", "= tile[x][y]", "= a[row * columns + column]"),
    ("06-transpose/swizzle", "= tile[x][y ^ x]", "= a[row * columns + column]"),
    ("06-transpose/swizzle", "tile[32][32]", "tile[32][33]"),
    (
        "02-divergence/no-divergence",
        """int evens = (n + 1) / 2;
    int i = t < evens ? 2 * t : 2 * (t - evens) + 1;
    if (t < n) {
        if (t < evens)
            y[i] = x[i] * x[i];
        else
            y[i] = x[i] + 1;
    }""",
        "if (t < n) switch (t & 1) { case 0: y[t] = x[t] * x[t]; break; default: y[t] = x[t] + 1; }",
    ),
]
DOMAINS = [
    ("12-compaction/split", "value % 2 != 0", "value % 2 == 1"),
    ("19-softmax/block", "-INFINITY", "-201.0f"),
    ("13-histogram/letters", "text[i] - 'a'", "(text[i] & 127) - 'a'"),
    ("19-softmax/shuffle", "d = 16", "d = n > 24 ? 16 : 8"),
    ("21-sparse-product/entries", "entries[k] * x[columns[k]]", "__mul24(entries[k], x[columns[k]])"),
]


_THREAD = "int t = blockIdx.x * blockDim.x + threadIdx.x;\n"


def grade_text(name: str, text: str) -> Judgment:
    lesson = read_lesson(LIBRARY / name.split("/")[0])
    return grade_submission(lesson, lesson.task(name.split("/")[1]), text)


def grade_edit(name: str, before: str, after: str) -> Judgment:
    lesson = read_lesson(LIBRARY / name.split("/")[0])
    task = lesson.task(name.split("/")[1])
    text = reference_solution(lesson, task)
    assert before in text
    return grade_submission(lesson, task, text.replace(before, after))


@pytest.mark.parametrize(("name", "before", "after"), [*STORAGE, *PARAMETERS, *CAPACITIES, *DOMAINS])
def test_wrong_submissions_are_rejected(name: str, before: str, after: str) -> None:
    assert not grade_edit(name, before, after).accepted


@pytest.mark.parametrize(("name", "before", "after"), LIMITED)
def test_submissions_over_a_limit_are_rejected(name: str, before: str, after: str) -> None:
    assert is_rejected(name, ((before, after),))


@pytest.mark.parametrize(("row", "counter"), [("t", "sectors_per_request"), ("t % 32 == 0 ? t / 32 : n", "requests")])
def test_a_thread_that_adds_a_row_alone_is_rejected(row: str, counter: str) -> None:
    scalar = read_kernel_file(LIBRARY / "21-sparse-product", "scalar.cu")
    lesson = read_lesson(LIBRARY / "21-sparse-product")
    text = scalar.replace(
        "int row = blockIdx.x * 32 + threadIdx.x;", f"int t = blockIdx.x * 64 + threadIdx.x, row = {row};"
    )
    judgment = grade_submission(lesson, select_quick_sizes(lesson.task("warp")), text)
    assert counter in [limit.counter for limit in judgment.limits if not limit.is_met]


def test_one_thread_may_add_the_bins_of_its_block() -> None:
    added = "if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);"
    by_one = "if (threadIdx.x == 0)\n        for (int b = 0; b < 8; ++b) atomicAdd(&bins[b], own[b]);"
    judgment = grade("13-histogram/private", ((added, by_one),), size=1000)
    assert judgment.accepted, judgment.sentences
    directly = grade("13-histogram/private", (("atomicAdd(&own[x[i]], 1)", "atomicAdd(&bins[x[i]], 1)"),), size=1000)
    assert [limit.counter for limit in directly.limits if not limit.is_met] == ["requests"]


def test_prompts_name_the_limits() -> None:
    words = {"divergent_branches": "diverge", "conflicts": "bank conflicts", "sectors_per_request": "sectors per",
             "shared_requests": "shared memory", "shared_bytes": "shared memory"}  # fmt: skip
    for lesson in read_all_lessons():
        for task in lesson.tasks:
            for counter in task.limits:
                assert words.get(counter, counter) in task.prompt, f"{lesson.name}/{task.name}: {counter}"
            if task.modeled_limit:
                assert f"{task.modeled_limit['times']} times" in task.prompt


def test_a_race_with_a_right_result_is_rejected_without_calling_it_right() -> None:
    name = "13-histogram/atomic"
    judgment = grade_edit(name, "atomicAdd(&bins[x[i]], 1)", "bins[x[i]] += 1")
    assert not judgment.check.differing
    assert judgment.sentences[0].startswith("✗ Wrong: race")
    judgment = grade_edit(
        "04-shared-memory/rotate", "        s[t] = moved;\n        __syncthreads();", "        s[t] = moved;"
    )
    assert judgment.wrong is None
    assert judgment.sentences[0].startswith("✗ Not accepted: correct on this input only by luck; race in line")
    assert not judgment.check.differing


def test_a_wrong_integer_is_shown_with_all_digits_and_its_input() -> None:
    judgment = grade_edit("08-reduction/largest", "-2147483647 - 1", "-2147483646")
    assert judgment.wrong is not None
    assert str(judgment.wrong) == "y[0] is -2147483646, but should be -2147483648"
    assert "Input: grid 1; block 128; x = [-2147483648]." in judgment.sentences
    assert judgment.verdict.sentence == f"For this input, {judgment.wrong}."  # no word of rounding


def test_each_limit_is_marked() -> None:
    judgment = grade("05-bank-conflicts/no-conflicts", (("tile[32][33]", "tile[32][32]"),), is_quick=True)
    assert [sentence[0] for sentence in judgment.sentences[-2:]] == ["✗", "✓"]
    assert judgment.sentences[-2].startswith("✗ Conflicts: ")
    assert judgment.verdict.words == "✗ not accepted: right, but over a limit: conflicts"


def test_a_modeled_size_is_no_input_to_step_through() -> None:
    lesson = read_lesson(LIBRARY / "14-occupancy")
    task = lesson.task("four-loads")
    text = initial_text(lesson, task)
    judgment = grade_submission(lesson, task, text)
    assert judgment.verdict.words == "✗ not accepted: right, but over a limit: microseconds on a modeled H200"
    assert judgment.case is None
    assert record_failure(lesson, task, text, judgment) is None
    assert not [sentence for sentence in judgment.sentences if "smallest input" in sentence]


def test_check_warns_of_a_parameter_that_never_varies(tmp_path: Path) -> None:
    (warning,) = find_warnings(read_lesson(write_lesson(tmp_path, TASK)))
    assert "add: 8 instead of blockDim.x is accepted" in str(warning)
    varied = HEAD.replace('"ceil(n / 8)"', '"ceil(n / (8 + trial))"').replace("block = 8", 'block = "8 + trial"')
    scaled = varied.replace('n = "n" }', 'n = "n", scale = 2 }').replace('"a + b"', '"2 * a + b"')
    kernel = KERNEL.replace("int n)", "int n, float scale)").replace("a[i] +", "scale * a[i] +")
    write_lesson(tmp_path, TASK, head=scaled, kernel=kernel)
    (warning,) = find_warnings(read_lesson(tmp_path))
    assert "2 instead of scale is accepted" in str(warning)
    write_lesson(tmp_path, TASK, head=varied)
    assert not [*find_warnings(read_lesson(tmp_path))]


@pytest.mark.parametrize(
    "body",
    [
        "(t % 2 == 0 && ((y[t] = x[t] * x[t]), true)) || (y[t] = x[t] + 1);",
        "t % 2 == 0 ? (y[t] = x[t] * x[t]) : (y[t] = x[t] + 1);",
        "switch (t & 1) { case 0: y[t] = x[t] * x[t]; break; default: y[t] = x[t] + 1; }",
    ],
)
def test_operands_and_sections_with_effects_are_branches(body: str) -> None:
    source = f"__global__ void parity(const int *x, int *y, int n) {{\n{_THREAD}if (t >= n) return;\n{body}\n}}"
    judgment = grade_text("02-divergence/no-divergence", source)
    assert judgment.verdict.words == "✗ not accepted: right, but over a limit: divergent branches"


def test_a_choice_between_values_is_no_branch() -> None:
    body = "if (t < n) { int v = x[t], square = v * v; y[t] = t % 2 == 0 ? square : v + 1; }"
    source = f"__global__ void parity(const int *x, int *y, int n) {{\n{_THREAD}{body}\n}}"
    assert grade_text("02-divergence/no-divergence", source).accepted


def test_an_operation_that_is_undefined_for_one_thread_is_rejected() -> None:
    judgment = grade_edit("12-compaction/pack", "votes & ((1u << t) - 1)", "votes << (32 - t)")
    assert (
        judgment.verdict.words == "✗ not accepted: correct on this input only by luck; "
        "undefined result of an operation in line 8"
    )
    assert "an integer of 32 bits cannot be shifted by 32" in judgment.sentences[-1]
    assert "thread 0" in judgment.sentences[-1]


def test_the_recording_of_a_wait_that_gives_up_shows_its_failure() -> None:
    wait, bounded = "while (flags[part - 1] == 0) {", "for (int k = 0; k < 100000 && flags[part - 1] == 0; ++k) {"
    lesson = read_lesson(LIBRARY / "11-memory-order")
    task = lesson.task("chain")
    text = reference_solution(lesson, task).replace(wait, bounded)
    judgment = grade_submission(lesson, task, text)
    assert "longer than the iterations that the wait in line 17 counts" in judgment.input
    failure = record_failure(lesson, task, text, judgment)
    assert failure is not None
    moments = [(moment, finding.kind) for moment, finding, *_ in failure.recording.findings]
    assert (failure.moment, "uninitialized") in moments or (failure.moment, "race") in moments
    assert failure.moment < failure.recording.event_count


NAIVE_PRODUCT = """__global__ void product(const float *A, const float *B, float *C, int m, int n, int k) {
    int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += A[row * k + i] * B[i * n + column];
    C[row * n + column] = sum;
}"""
LARGEST_BY_ATOMICS = """__global__ void largest(const int *x, int *y, int n) {
    __shared__ int best;
    if (threadIdx.x == 0) best = -2147483647 - 1;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 128) atomicMax(&best, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) *y = best;
}"""


@pytest.mark.parametrize(
    ("name", "text", "counter"),
    [
        ("16-matrix-product/tiled", NAIVE_PRODUCT, "shared requests"),
        ("08-reduction/largest", LARGEST_BY_ATOMICS, "exchanges"),
    ],
)
def test_a_right_result_without_the_technique_is_rejected(name: str, text: str, counter: str) -> None:
    lesson = read_lesson(LIBRARY / name.split("/")[0])
    judgment = grade_submission(lesson, select_quick_sizes(lesson.task(name.split("/")[1])), text)
    assert judgment.verdict.words == f"✗ not accepted: right, but without what the task requires: {counter}"
    (sentence,) = [sentence for sentence in judgment.sentences if "required" in sentence]
    assert sentence.startswith(f"✗ {counter.capitalize()}: 0 at n = 1; at least ")


def test_a_ticket_that_is_taken_must_be_used() -> None:
    used, unused = "part = atomicAdd(next, 1);", "atomicAdd(next, 1);\n        part = blockIdx.x;"
    judgment = grade_edit("10-any-length/ticket", used, unused)
    assert judgment.verdict.words.endswith("without what the task requires: returned atomics")


def test_volatile_data_needs_an_order_even_without_a_fence() -> None:
    text = reference_solution(lesson := read_lesson(LIBRARY / "11-memory-order"), task := lesson.task("last-block"))
    for fenced, unordered in (
        ("        __threadfence();\n", ""),
        ("partial[blockIdx.x] = own;", "*(volatile int *)&partial[blockIdx.x] = own;"),
        ("all += partial[b]", "all += *(volatile int *)&partial[b]"),
    ):
        assert fenced in text
        text = text.replace(fenced, unordered)
    judgment = grade_submission(lesson, task, text)
    assert not judgment.accepted
    assert "race" in judgment.verdict.words


def test_arrays_of_only_odd_and_of_only_even_numbers_occur() -> None:
    stage = read_lesson(LIBRARY / "12-compaction").stage("pack")
    types = dict.fromkeys(stage.arrays, np.dtype("i4"))
    inputs = [stage.generate_inputs(GradingCase(32, kind), types)["x"] for kind in ("lowest", "highest")]
    assert {tuple(values % 2) for values in inputs} == {(0,) * 32, (1,) * 32}


def test_a_large_input_is_not_recorded() -> None:
    judgment = grade_edit("01-threads-and-indices/add", "int i =", "unsigned short i =")
    assert judgment.wrong is not None
    assert judgment.case is None


def test_a_wait_for_a_block_that_may_not_have_started_is_rejected_and_shown() -> None:
    used = "part = atomicAdd(next, 1);"
    waiting = f"while (atomicAdd(next, 0) < blockIdx.x) {{\n        }}\n        {used}"
    lesson = read_lesson(LIBRARY / "10-any-length")
    task = lesson.task("ticket")
    text = reference_solution(lesson, task).replace(used, waiting)
    judgment = grade_submission(lesson, task, text)
    assert judgment.case is not None
    assert judgment.case.is_descending
    assert "a block must not wait for blocks that may not have started" in judgment.input
    failure = record_failure(lesson, task, text, judgment)
    assert failure is not None
    assert [finding.kind for _, finding, *_ in failure.recording.findings] == ["endless"]
