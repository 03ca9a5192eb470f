"""Tasks: what a student begins with, what is accepted and what is rejected, and where that is opened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpu.base.errors import InputError
from gpu.lessons.grading import grade_submission, record_failure
from gpu.lessons.lesson import Lesson
from gpu.lessons.lesson_reader import LIBRARY, read_lesson
from gpu.lessons.task_texts import initial_text, line_frame, reference_solution, shuffled_lines
from gpu.messages.judgments import Judgment
from tests.gpu.lessons.lesson_folder import HEAD, KERNEL, TASK, write_lesson


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    return read_lesson(write_lesson(tmp_path_factory.mktemp("adding"), TASK))


def grade_solution(lesson: Lesson, before: str, after: str, seed: int = 0) -> Judgment:
    assert before in KERNEL
    return grade_submission(lesson, lesson.task("add"), KERNEL.replace(before, after), seed=seed)


def test_the_reference_is_accepted_and_a_gap_is_not(lesson: Lesson) -> None:
    task = lesson.task("add")
    assert grade_submission(lesson, task, reference_solution(lesson, task)).accepted
    text = initial_text(lesson, task)
    assert "// Write here: add one pair" in text
    assert "a[i] + b[i]" not in text
    said = grade_submission(lesson, task, text)
    assert not said.accepted
    assert said.wrong is not None
    assert said.wrong.unwritten
    assert (said.wrong.array, said.wrong.index) == ("c", 0)


@pytest.mark.parametrize(
    ("before", "after", "n", "kind", "line"),
    [
        ("if (i < n) ", "", 1, "out-of-bounds", 4),
        ("i < n", "i + 1 < n", 1, "", 0),
        ("blockIdx.x * blockDim.x + ", "", 33, "race", 4),
        ("c[i] =", "for (;;) c[i] =", 1, "endless", 4),
    ],
)
def test_the_smallest_failing_input_is_told(
    lesson: Lesson, before: str, after: str, n: int, kind: str, line: int
) -> None:
    said = grade_solution(lesson, before, after)
    assert not said.accepted
    assert said.case is not None
    assert said.case.n <= max(n, 9)
    assert [mistake.kind for mistake in said.check.mistakes] == ([kind] if kind else [])
    if line:
        assert said.check.mistakes[0].lines == (line,)
    assert said.sentences == grade_solution(lesson, before, after).sentences  # the same every time


def test_an_input_must_keep_its_values(lesson: Lesson) -> None:
    said = grade_solution(lesson, "c[i] = a[i] + b[i]", "c[i] = ((float *)b)[i] += a[i]")
    assert not said.accepted
    assert said.wrong is not None
    assert said.sentences[-1].startswith("For it, the kernel changes b[0] from ")
    assert said.sentences[-1].endswith(", but b is an input.")


def test_it_is_opened_at_the_moment_at_which_it_goes_wrong(lesson: Lesson) -> None:
    text = KERNEL.replace("a[i] + b[i]", "a[i] - b[i]")
    said = grade_submission(lesson, lesson.task("add"), text)
    found = record_failure(lesson, lesson.task("add"), text, said)
    assert found is not None
    assert found.recording.position(found.moment).line == 4
    assert found.recording.launches[0].trace.events[found.moment].kind != "if"
    right = grade_submission(lesson, lesson.task("add"), KERNEL)
    assert record_failure(lesson, lesson.task("add"), KERNEL, right) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("this is not C", "does not compile"),
        ("", "cannot be run"),
        (KERNEL.replace("int n", "long n"), ""),
        (KERNEL.replace("const float *a", "const double *a"), "cannot be run"),
    ],
)
def test_what_is_no_such_kernel(lesson: Lesson, text: str, words: str) -> None:
    said = grade_submission(lesson, lesson.task("add"), text)
    assert said.accepted == (not words)
    assert words in said.verdict.words


def test_variables_of_one_run_are_not_found_by_the_next(lesson: Lesson) -> None:
    counting = "__device__ int runs;\n" + KERNEL.replace("c[i] =", "if (atomicAdd(&runs, 1) < n) c[i] =")
    assert grade_submission(lesson, lesson.task("add"), counting).accepted


def test_a_limit_is_held_against_what_is_counted() -> None:
    lesson = read_lesson(LIBRARY / "09-scan")
    task = lesson.task("double-buffer")
    said = grade_submission(lesson, task, initial_text(lesson, task))
    assert not said.accepted
    assert [(limit.counter, limit.counted, limit.most, limit.is_met) for limit in said.limits] == [
        ("barriers", 13, 7, False),
        ("operations", 384, 400, True),
        ("operations", 384, 256, True),
    ]
    assert "over a limit: barriers" in said.verdict.words


def test_a_loop_without_end_is_ended_by_its_rounds_and_soon() -> None:
    lesson = read_lesson(LIBRARY / "13-histogram")
    task = lesson.task("private")
    text = reference_solution(lesson, task).replace("i += gridDim.x * blockDim.x", "i = gridDim.x * blockDim.x")
    began = time.process_time()
    said = grade_submission(lesson, task, text)
    assert time.process_time() - began < 2
    assert [mistake.kind for mistake in said.check.mistakes] == ["unfinished"]
    assert "still in it after 6000 iterations" in said.sentences[-1]  # on a machine of any speed


def test_what_does_not_compile_is_told_once_with_its_line(lesson: Lesson) -> None:
    said = grade_solution(lesson, "b[i];", "d[i];")
    assert said.sentences == ("✗ It does not compile.", "Line 4: use of undeclared identifier 'd'")
    (only,) = said.check.diagnostics
    assert KERNEL.split("\n")[only.line - 1][only.column - 1 : only.end - 1] == "b"  # where d is now


def test_what_is_rewritten_begins_without_another_tasks_comments() -> None:
    lesson = read_lesson(LIBRARY / "09-scan")
    text = initial_text(lesson, lesson.task("double-buffer"))
    assert "int before" in text
    assert "// lines" not in text
    assert "// end" not in text


@pytest.mark.parametrize(
    ("folder", "name"), [("09-scan", "all-come"), ("24-merge-and-segments", "merge"), ("25-attention", "softmax")]
)
def test_a_repair_begins_without_another_tasks_comments(folder: str, name: str) -> None:
    lesson = read_lesson(LIBRARY / folder)
    task = lesson.task(name)
    text = initial_text(lesson, task)
    assert task.mistakes[0].by in text
    assert not any(mark in text for mark in ("// gap", "// lines", "// end"))


def test_another_order_shows_what_lockstep_hides() -> None:
    lesson = read_lesson(LIBRARY / "08-reduction")
    task = lesson.task("last-warp")
    said = grade_submission(lesson, task, task.mistakes[1].apply_to(reference_solution(lesson, task)))
    assert not said.accepted
    assert "race" in {mistake.kind for mistake in said.check.mistakes}


def test_lines_are_shuffled_and_put_together() -> None:
    lesson = read_lesson(LIBRARY / "04-shared-memory")
    task = lesson.task("reverse")
    lines = shuffled_lines(lesson, task)
    assert sorted(lines) == sorted(each.strip() for each in reference_solution(lesson, task).split("\n")[6:9])
    assert not grade_submission(lesson, task, line_frame(lesson, task).fill(lines)).accepted
    whole = [each.strip() for each in reference_solution(lesson, task).split("\n")[6:9]]
    assert grade_submission(lesson, task, line_frame(lesson, task).fill(tuple(whole))).accepted


def test_a_model_says_how_long_it_takes(tmp_path: Path) -> None:
    block = TASK + 'modeled = { gpu = "h200", n = 4096, times = 1.2 }\n'
    lesson = read_lesson(write_lesson(tmp_path, block))
    slow = KERNEL.replace(
        "c[i] = a[i] + b[i]", "for (int k = 0; k < 99; ++k) c[i] = sinf(a[k % n]) * 0.0f + a[i] + b[i]"
    )
    said = grade_submission(lesson, lesson.task("add"), slow)
    assert not said.accepted
    assert "microseconds on a modeled H200" in said.verdict.words
    assert grade_submission(lesson, lesson.task("add"), KERNEL).accepted


def test_a_lesson_that_expects_another_size_is_at_fault(tmp_path: Path) -> None:
    folder = write_lesson(tmp_path, TASK)
    text = (folder / "lesson.md").read_text("utf-8").replace('"a + b"', '"a[1:] + b[1:]"')
    (folder / "lesson.md").write_text(text, "utf-8")
    lesson = read_lesson(folder)
    with pytest.raises(InputError, match="the lesson expects"):
        grade_submission(lesson, lesson.task("add"), KERNEL)


CSR = """__global__ void add(const int *a, const int *b, int *c, int n, int count) {
    // gap: add a row
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sum = a[n] - count;
    for (int k = a[i]; k < a[i + 1]; ++k) sum += b[k];
    c[i] = sum;
    // end
}
"""
PERMUTED = (
    CSR.replace("k = a[i]; k < a[i + 1]", "k = 0; k < 0").replace("c[i] = sum", "c[a[i]] = b[i]").replace("a[n]", "0")
)


@pytest.mark.parametrize(
    ("arrays", "expected", "solution", "wrong"),
    [
        (
            'a = "in n + 1 of 0..7 offsets", b = "in a[n]", c = "out n", n = "n", count = "a[n]"',
            "join(0, cumsum(b))[a[1:]] - join(0, cumsum(b))[a[:-1]]",
            CSR,
            # All rows as long as the first one; equal parts; no empty row; the first row without its last entry.
            ("a[i] + a[1]", "a[n] * (i + 1) / n", "max(a[i + 1], a[i] + 1)", "a[i + 1] - (i == 0)"),
        ),
        (
            'a = "in n permutation", b = "in n", c = "out n", n = "n", count = 0',
            "flat(sums((rows(arange(n), 1) == a) * b))",
            PERMUTED,
            ("c[i] = b[i]", "c[n - 1 - i] = b[i]"),
        ),
    ],
)
def test_row_offsets_fit_their_arrays_and_a_permutation_has_each_number_once(
    tmp_path: Path, arrays: str, expected: str, solution: str, wrong: tuple[str, ...]
) -> None:
    head = HEAD.replace('a = "in n", b = "in n", c = "out n", n = "n"', arrays).replace('"a + b"', f'"{expected}"')
    lesson = read_lesson(write_lesson(tmp_path, TASK, head=head, kernel=solution))
    judgment = grade_submission(lesson, lesson.task("add"), solution)
    assert judgment.accepted, judgment.sentences
    for change in wrong:
        place = "k < a[i + 1]" if solution is CSR else "c[a[i]] = b[i]"
        text = solution.replace(place, f"k < {change}" if solution is CSR else change)
        assert not grade_submission(lesson, lesson.task("add"), text).accepted, change


@pytest.mark.parametrize(
    ("array", "type", "reason"),
    [
        ("in n of -1..3 offsets", "int", "Offsets have lengths from -1"),
        ("in n of 0..90 offsets", "char", "An array of int8 holds integers up to 127, but its offsets need 540."),
        ("in 200 permutation", "char", "An array of int8 holds integers up to 127, but its permutation needs 199."),
    ],
)
def test_an_order_that_a_type_cannot_hold_is_an_error(tmp_path: Path, array: str, type: str, reason: str) -> None:
    kernel = KERNEL.replace("float *a", f"{type} *a")
    lesson = read_lesson(write_lesson(tmp_path, TASK, head=HEAD.replace('a = "in n"', f'a = "{array}"'), kernel=kernel))
    with pytest.raises(InputError, match=reason):
        grade_submission(lesson, lesson.task("add"), kernel)


@pytest.mark.parametrize(
    ("result", "accepted"),
    [
        ("a[i] > 3 ? huge * huge : a[i] + b[i]", True),
        ("a[i] > 3 ? -huge * huge : a[i] + b[i]", False),
        ("a[i] > 3 ? huge * huge : 0", False),
    ],
)
def test_an_infinite_result_excuses_no_other_element(tmp_path: Path, result: str, accepted: bool) -> None:
    head = HEAD.replace('a = "in n"', 'a = "in n of 0..9"').replace('"a + b"', '"where(a > 3, exp(1000 + a), a + b)"')
    kernel = KERNEL.replace("if (i < n)", "float huge = 1e38f;\n    if (i < n)").replace("a[i] + b[i]", result)
    lesson = read_lesson(write_lesson(tmp_path, TASK, head=head, kernel=kernel))
    assert grade_submission(lesson, lesson.task("add"), kernel).accepted == accepted


@pytest.mark.parametrize("array", ["in n sorted", "in n of 0..5 sorted", "inout n sorted"])
def test_a_sorted_array_ascends_in_every_input(tmp_path: Path, array: str) -> None:
    ordered = KERNEL.replace("a[i] + b[i]", "i == 0 || a[i - 1] <= a[i]")
    head = HEAD.replace('a = "in n"', f'a = "{array}"').replace('"a + b"', '"1 + 0 * a"')
    lesson = read_lesson(write_lesson(tmp_path, TASK, head=head, kernel=ordered))
    judgment = grade_submission(lesson, lesson.task("add"), ordered)
    assert judgment.accepted, judgment.sentences
    descending = ordered.replace("<=", ">")
    assert not grade_submission(lesson, lesson.task("add"), descending).accepted


def test_other_schedules_are_tried_before_the_larger_sizes() -> None:
    memory_order = read_lesson(LIBRARY / "11-memory-order")
    task = memory_order.task("last-block")
    waits = task.mistakes[-1].apply_to(reference_solution(memory_order, task))
    said = grade_submission(memory_order, task, waits.replace("*total = all;", "*total = n < 1000 ? all : 0;"))
    assert said.case is not None
    assert said.case.n == 257
    assert said.case.is_descending
