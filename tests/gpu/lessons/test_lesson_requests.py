"""What the engine's process does for a window that teaches: it reads lessons, shows steps, asks, judges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpu.base.errors import InputError
from gpu.engines.null import NullEngine
from gpu.lessons import handlers  # noqa: F401 - registers them
from gpu.lessons.lesson_reader import LIBRARY, find_lesson_folders, read_lesson
from gpu.lessons.lesson_requests import read_shelf
from gpu.lessons.questions.evaluation import mark_answer
from gpu.lessons.task_texts import line_frame, reference_solution
from gpu.messages.lessons import JudgeTask, ReadLessons, ShowStep, StepFailure
from gpu.messages.requests import R, Request
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns import all_patterns
from gpu.recording.recording import Recording
from gpu.run.handlers.execution import execute_request
from tests.gpu.lessons.lesson_folder import KERNEL, SHOW, TASK, write_lesson

ASK = SHOW + '[question]\nask = "cells"\narray = "c"\nhints = ["Count."]\n'
ORDER = TASK.replace('"gap"', '"order"').replace('name = "add"', 'name = "lines"')
ORDERED = KERNEL.replace("// gap:", "// lines:")


@pytest.fixture
def folder() -> Iterator[SharedFolder]:
    made = SharedFolder()
    yield made
    made.close()


def execute(request: Request[R], folder: SharedFolder) -> R:
    return execute_request(NullEngine(), request, folder, lambda progress: None)


def test_our_lessons_are_read_in_their_order(folder: SharedFolder) -> None:
    shelf = execute(ReadLessons(), folder)
    assert not shelf.errors
    assert [lesson.name[:2] for lesson in shelf.lessons] == [
        f"{number:02}" for number in range(1, 1 + len(find_lesson_folders(LIBRARY)))
    ]
    steps = [step for lesson in shelf.lessons for step in lesson.steps]
    assert sum(bool(step.question_kind) for step in steps) >= 115
    tasks = [step.task for step in steps if step.task is not None]
    assert len(tasks) >= 55
    assert all(task.start and task.prompt for task in tasks)
    (limited,) = (task for task in tasks if task.name == "interleave")
    assert limited.limits == (
        "sectors: at most n / 8 + 80",
        "modeled time on T4, n = 1,048,576: at most 1.5 times the reference solution's",
    )
    assert all(bool(task.pieces) == (task.kind == "order") == (task.frame is not None) for task in tasks)


def test_every_rung_that_another_lifts_has_a_lesson(folder: SharedFolder) -> None:
    shelf = read_shelf(LIBRARY)
    taught = {rung for lesson in shelf.lessons for rung in lesson.unlocked_variants}
    for name in {name for name, _ in taught}:
        pattern = all_patterns()[name]
        lifted = {each.name for each in pattern.variants if pattern.find_successor(each) is not None}
        assert lifted <= {variant for of, variant in taught if of == name}, name


def test_a_lesson_that_is_wrong_keeps_no_other_away(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        write_lesson(tmp_path / name, TASK)
    file = tmp_path / "bad" / "lesson.md"
    file.write_text(file.read_text("utf-8").replace("order = 1", "order = one"), "utf-8")
    shelf = read_shelf(tmp_path)
    assert [lesson.name for lesson in shelf.lessons] == ["good"]
    assert len(shelf.errors) == 1
    assert shelf.errors[0].startswith("bad/lesson.md:3: ")
    with pytest.raises(InputError, match="no lesson in nothing"):
        read_shelf(tmp_path / "nothing")


def test_a_task_that_cannot_begin_is_told_with_its_line(tmp_path: Path) -> None:
    write_lesson(tmp_path, ORDER)  # its solution has no lines to order
    (fault,) = read_shelf(tmp_path).errors
    assert fault.startswith(f"{tmp_path.name}/lesson.md:2")
    assert "no lines to order" in fault or "nothing between" in fault


def test_a_rung_that_is_not_there_is_told_with_its_line(tmp_path: Path) -> None:
    write_lesson(tmp_path, TASK)
    file = tmp_path / "lesson.md"
    file.write_text(file.read_text("utf-8").replace("minutes = 5", 'minutes = 5\nlifts = ["scan/best"]'), "utf-8")
    with pytest.raises(InputError, match=r"lesson\.md:5: There is no variant 'scan/best'"):
        read_lesson(tmp_path)


def test_a_step_is_recorded_and_asked(tmp_path: Path, folder: SharedFolder) -> None:
    write_lesson(tmp_path, ASK)
    result = execute(ShowStep(str(tmp_path), 0), folder)
    scene = result.scene
    assert (scene.tab, scene.pattern, scene.parameters, scene.file, scene.kernel) == (
        "step", "", {"n": 11}, "add.cu", "add",
    )  # fmt: skip
    recording = Recording.load(result.path)
    assert 0 < scene.moment < recording.event_count
    assert scene.question is not None
    assert mark_answer(scene.question, range(11)).is_correct


def test_another_seed_asks_anew(folder: SharedFolder) -> None:
    lesson = read_lesson(LIBRARY / "08-reduction")
    step = next(number for number, each in enumerate(lesson.steps) if each.title == "Idle lanes, counted")
    asked = {execute(ShowStep(str(lesson.folder), step, seed), folder).scene.question.answer for seed in range(6)}  # type: ignore[union-attr]
    assert len(asked) > 1


def test_a_step_of_another_tab_is_not_recorded(tmp_path: Path, folder: SharedFolder) -> None:
    write_lesson(tmp_path, '[show]\npattern = "reduction"\nparameters = { n = [64, 128] }\ntab = "compare"\n')
    result = execute(ShowStep(str(tmp_path), 0, seed=1), folder)
    assert not result.path
    assert (result.scene.tab, result.scene.pattern) == ("compare", "reduction")
    assert result.scene.parameters["n"] in (64, 128)


def test_what_a_step_cannot_show_is_told_with_its_line(tmp_path: Path, folder: SharedFolder) -> None:
    write_lesson(tmp_path, ASK.replace("c[i] =", "d[i] ="))
    with pytest.raises(InputError, match=rf"{tmp_path.name}/lesson\.md:\d+: 'd\[i\] =' is not in add\.cu"):
        execute(ShowStep(str(tmp_path), 0), folder)
    with pytest.raises(InputError, match="no step 8"):
        execute(ShowStep(str(tmp_path), 7), folder)
    write_lesson(tmp_path, TASK)
    with pytest.raises(InputError, match="has no scene"):
        execute(ShowStep(str(tmp_path), 0), folder)


def test_a_text_is_judged_and_its_failing_input_recorded(tmp_path: Path, folder: SharedFolder) -> None:
    write_lesson(tmp_path, TASK)
    right = execute(JudgeTask(str(tmp_path), "add", KERNEL), folder)
    assert right.accepted
    wrong = JudgeTask(str(tmp_path), "add", KERNEL.replace("if (i < n) ", ""))
    judgment = execute(wrong, folder)
    assert not judgment.accepted
    result = execute(StepFailure(wrong, judgment), folder)
    recording = Recording.load(result.path)
    assert recording.findings[0][0] + 1 == result.scene.moment
    assert str(judgment.case) in result.scene.title
    with pytest.raises(InputError, match="does not fail on any input"):
        execute(StepFailure(wrong, replace(judgment, case=None)), folder)


def test_lines_are_put_into_their_frame(tmp_path: Path) -> None:
    write_lesson(tmp_path, ORDER, kernel=ORDERED)
    (outline,) = read_shelf(tmp_path).lessons
    task = outline.steps[0].task
    assert task is not None
    assert task.frame is not None
    lesson = read_lesson(tmp_path)
    assert task.frame.fill(task.pieces) == task.start
    whole = line_frame(lesson, lesson.task("lines")).fill(task.pieces[::-1])
    assert whole == task.frame.fill(task.pieces[::-1])
    lines = [line.strip() for line in reference_solution(lesson, lesson.task("lines")).split("\n") if "//" not in line]
    assert [line.strip() for line in task.frame.fill(task.pieces[::-1]).split("\n")] == lines
