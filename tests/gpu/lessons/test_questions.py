"""Questions: their answers against what is worked out here, apart from any recording; what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.lessons.lesson_reader import LIBRARY, read_lesson
from gpu.lessons.questions.evaluation import format_numbers, mark_answer
from gpu.lessons.questions.generation import ask_question
from gpu.lessons.scenes import choose_parameters
from gpu.lessons.validation import find_faults
from gpu.messages.lessons import RecordingQuestion
from tests.gpu.lessons.lesson_folder import HEAD, KERNEL, SHOW, TASK, write_lesson

RACY = KERNEL.replace("if (i < n) c[i] = a[i] + b[i];", "if (i < n) c[0] = a[i] + b[i];")


def generate_question(folder: Path, block: str, seed: int = 0, **how: Any) -> RecordingQuestion:
    lesson = read_lesson(write_lesson(folder, block, **how))
    return ask_question(lesson, lesson.steps[0], seed)[1]


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ('ask = "lanes"\nblock = 1', frozenset({0, 1, 2})),
        ('ask = "cells"\narray = "c"', frozenset(range(11))),
        ('ask = "cells"\narray = "a"\nof = "read"', frozenset(range(11))),
        ('ask = "count"\nof = "active"', 11),
        ('ask = "count"\nof = "idle"', 2 * 32 - 11),
        ('ask = "count"\nof = "sectors"', 3 * 2),  # of 11 floats in three arrays
        ('ask = "count"\nof = "operations"\nover = "run"', 11),
        ('ask = "writer"\narray = "c"\nelement = "n - 1"', (1, 2)),
        ('ask = "order"', "no, every schedule gives the same result"),
        ('ask = "mistake"', "nothing: it is correct"),
    ],
)
def test_the_recording_has_the_answer(tmp_path: Path, options: str, answer: object) -> None:
    found = generate_question(tmp_path, f"{SHOW}[question]\n{options}\n")
    assert found.answer == answer
    assert mark_answer(found, answer).is_correct


def test_a_value_is_what_the_lanes_added_and_every_seed_asks_anew(tmp_path: Path) -> None:
    lesson = read_lesson(write_lesson(tmp_path, f'{SHOW}[question]\nask = "value"\narray = "c"\n'))
    prompts = set()
    for seed in range(4):
        played, found = ask_question(lesson, lesson.steps[0], seed)
        trace = played.recording.launches[0].trace
        assert found.prompt.startswith("Line 3 is next: c[i] = a[i] + b[i]; What is c[")
        element = int(found.prompt.split("What is c[")[1].split("]")[0])
        assert found.answer == trace.array("a", 0)[element] + trace.array("b", 0)[element]
        assert found.line == 3
        assert f"c[{element}] =" in found.explanation
        assert mark_answer(found, found.answer + 1).feedback.startswith(f"No: it is {found.answer:g}. Block ")
        prompts.add((found.prompt, found.answer))
    assert len(prompts) > 1


def test_a_wrong_answer_is_told_with_what_happened_and_its_line(tmp_path: Path) -> None:
    found = generate_question(tmp_path, f'{SHOW}[question]\nask = "lanes"\nblock = 1\nhints = ["One."]\n')
    said = mark_answer(found, {0, 1, 7})
    assert not said.is_correct
    assert (said.missing, said.extra, said.line) == (frozenset({2}), frozenset({7}), 3)
    assert "you omitted 2; 7 does not belong" in said.feedback
    assert said.feedback.endswith("Line 3: c[i] = a[i] + b[i];")  # not the test before it, which all execute
    assert found.hints[0] == "One."
    assert "line 3" in found.hints[-1]
    assert not mark_answer(found, "nonsense").is_correct
    assert not mark_answer(found, None).is_correct


def test_one_is_told_in_the_singular(tmp_path: Path) -> None:
    said = []
    for n in (1, 2):
        folder = tmp_path / str(n)
        folder.mkdir()
        block = f'{SHOW.replace("n = 11", f"n = {n}")}[question]\nask = "count"\nof = "active"\n'
        said.append(mark_answer(generate_question(folder, block), 0).feedback.split(". ")[0])
    assert said == ["No: 1 thread executes it", "No: 2 threads execute it"]


def test_a_race_is_the_mistake_and_depends_on_the_order(tmp_path: Path) -> None:
    found = generate_question(tmp_path, f'{SHOW.replace("c[i]", "c[0]")}[question]\nask = "mistake"\n', kernel=RACY)
    assert "race" in found.answer
    assert found.line == 3  # as it is shown: without the comments that are the task's
    assert "right answer is “a race" in mark_answer(found, "nothing: it is correct").feedback
    found = generate_question(tmp_path, f'{SHOW.replace("c[i]", "c[0]")}[question]\nask = "order"\n', kernel=RACY)
    assert found.answer.startswith("yes")


def test_a_misaligned_vector_load_is_the_mistake(tmp_path: Path) -> None:
    pairs = KERNEL.replace(
        "c[i] = a[i] + b[i];", "{ float2 v = *reinterpret_cast<const float2 *>(a + i); c[i] = v.x; }"
    )
    show = '[show]\nkernel = "add"\nn = 11\n'
    found = generate_question(tmp_path, f'{show}[question]\nask = "mistake"\n', kernel=pairs)
    assert found.answer == "a misaligned access"
    assert "multiple of 8 bytes" in found.explanation


def test_a_loop_without_end_is_the_mistake_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    endless = KERNEL.replace("if (i < n)", "while (i < n)")
    found = generate_question(tmp_path, f'{SHOW}[question]\nask = "mistake"\n', kernel=endless)
    assert found.answer == "a loop that does not end"


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (SHOW.replace("c[i] =", "d[i] ="), "'d\\[i\\] =' is not in add.cu"),
        (SHOW.replace('" }', '", time = 2 }'), "is executed once here, not 2 times"),
        (SHOW.replace('line = "c[i] ="', "barrier = 1"), "There are 0 barriers here"),
        (SHOW.replace('line = "c[i] ="', 'phase = "tree"'), "There is no phase 'tree'"),
        (SHOW.replace('line = "c[i] ="', "launch = 2"), "There are 1 launches"),
    ],
)
def test_a_place_that_is_not_there(tmp_path: Path, block: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        generate_question(tmp_path, f'{block}[question]\nask = "count"\nof = "active"\n')


def test_a_question_of_a_pattern_is_of_its_worked_example() -> None:
    lesson = read_lesson(LIBRARY / "08-reduction")
    played, found = ask_question(lesson, lesson.steps[0], 0)
    # 3 1 7 0 4 1 6 3: the second step leaves 11 and 14.
    assert found.answer in (11, 14)
    assert played.parameters["block"] == "8"


@pytest.mark.parametrize(
    ("gpu", "shared", "answer", "limit"),
    [
        # Blocks of 8 threads are single warps.
        ("t4", 0, 16, "the number of blocks"),
        ("t4", 16384, 4, "shared memory"),  # 64 KiB hold four
        ("t4", 40000, 1, "shared memory"),
        ("rtx-3060", 16384, 5, "shared memory"),  # 100 KiB hold five with 1 KiB more each
        ("h200", 0, 32, "the number of blocks"),
    ],
)
def test_resident_warps_follow_from_the_limits_in_the_question(
    tmp_path: Path, gpu: str, shared: int, answer: int, limit: str
) -> None:
    head = HEAD.replace("block = 8\n", f"block = 8\nshared = {shared}\n")
    found = generate_question(tmp_path, f'{SHOW}[question]\nask = "occupancy"\ngpu = "{gpu}"\n', head=head)
    assert found.answer == answer
    assert "A block has 8 threads with" in found.prompt
    assert f"{shared:,} bytes of shared memory" in found.prompt
    assert ("1,024 that CUDA reserves" in found.prompt) == (gpu != "t4")
    assert found.explanation == f"The limit is {limit}: {answer} {'block fits' if answer == 1 else 'blocks fit'}."
    assert mark_answer(found, answer).is_correct


def test_which_is_faster_is_the_models_word() -> None:
    lesson = read_lesson(LIBRARY / "05-bank-conflicts")
    step = next(step for step in lesson.steps if step.question is not None and step.question.kind == "faster")
    found = ask_question(lesson, step, 0)[1]
    assert found.choices == ("straight", "padded", "neither: they differ by less than 5%")
    assert found.answer == "padded"
    assert "Modeled: straight" in found.explanation
    assert len({ask_question(lesson, step, seed)[1].prompt for seed in (0, 1)}) == 2  # of another GPU or size


def test_small_blocks_are_limited_by_their_starts() -> None:
    lesson = read_lesson(LIBRARY / "26-host-launches")
    step = next(step for step in lesson.steps if step.question is not None and step.question.kind == "faster")
    explanation = ask_question(lesson, step, 0)[1].explanation
    assert explanation.endswith("small-blocks is limited by starts of blocks: the blocks have too few threads.")


def test_each_retry_has_another_choice_until_all_were_had() -> None:
    steps = read_lesson(LIBRARY / "09-scan").steps
    scene = next(step.scene for step in steps if step.title == "Inclusive or exclusive?")
    assert scene is not None
    had = [tuple(choose_parameters(scene, seed)[name] for name in ("values", "kind")) for seed in range(4)]
    assert len(set(had)) == 4
    assert had[0] != had[1]
    assert {choose_parameters(scene, seed)["block"] for seed in range(4)} == {"16"}


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3], "3"),
        ([2, 0], "0 and 2"),
        (range(32), "0 to 31"),
        (range(0, 99, 9), "0, 9, 18 … 90 (11 of them)"),
        ([0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 13, 14], "0 to 5, 7, 9 to 11, 13 and 14"),
        ([], "none"),
    ],
)
def test_numbers_in_words(numbers: list[int], words: str) -> None:
    assert format_numbers(numbers) == words


def test_a_sound_lesson_has_no_faults_and_a_wrong_one_has_all_of_them(tmp_path: Path) -> None:
    question = '[question]\nask = "cells"\narray = "c"\n'
    mistake = '[[task.mistakes]]\nsays = "{}"\nreplace = "{}"\nby = "{}"\n'
    sound = TASK + mistake.format("no bound", "if (i < n) ", "")
    assert not list(find_faults(read_lesson(write_lesson(tmp_path, SHOW + question, sound))))
    harmless = TASK + mistake.format("none at all", "i < n", "n > i")
    nowhere = SHOW.replace("c[i] =", "d[i] =") + question
    needs = HEAD.replace("order = 1", 'order = 1\nneeds = ["08-reduction", "05-banks"]')
    told = [str(fault) for fault in find_faults(read_lesson(write_lesson(tmp_path, nowhere, harmless, head=needs)))]
    assert len(told) == 3
    assert "There is no lesson '05-banks'" in told[0]
    assert "is not in add.cu" in told[1]
    assert "This mistake is accepted: none at all" in told[2]
    broken = KERNEL.replace("a[i] + b[i]", "a[i] - b[i]")
    told = [str(fault) for fault in find_faults(read_lesson(write_lesson(tmp_path, TASK, kernel=broken)))]
    assert "The reference solution is rejected" in told[0]


def test_one_of_our_lessons_is_sound() -> None:
    assert not list(find_faults(read_lesson(LIBRARY / "01-threads-and-indices")))


def test_answers_are_compared_as_what_they_are() -> None:
    real = RecordingQuestion("value", "?", "number", 0.333333, "")
    assert mark_answer(real, 0.33333).is_correct
    assert not mark_answer(real, np.nan).is_correct
    assert not mark_answer(real, True).is_correct
    thread = RecordingQuestion("writer", "?", "thread", (1, 2), "")
    assert mark_answer(thread, [1, 2]).is_correct
    assert "thread 2 of block 1" in mark_answer(thread, (2, 1)).feedback
