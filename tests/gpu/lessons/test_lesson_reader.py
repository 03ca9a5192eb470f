"""What is read of a lesson's folder, and what is said of one that is wrong: file, line and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base.errors import InputError
from gpu.lessons.lesson_reader import LIBRARY, read_all_lessons, read_lesson
from tests.gpu.lessons.lesson_folder import HEAD, SHOW, TASK, write_lesson


def test_a_lesson_is_read(tmp_path: Path) -> None:
    question = '[question]\nask = "lanes"\nblock = 1\nhints = ["Count."]\n'
    lesson = read_lesson(write_lesson(tmp_path, SHOW + question, TASK))
    assert (lesson.title, lesson.order, lesson.minutes, lesson.prerequisites) == ("Adding", 1, 5, ())
    assert lesson.text == "Words."
    assert [step.title for step in lesson.steps] == ["Step 1", "Step 2"]
    assert lesson.steps[0].text == "Words."
    assert lesson.questions[0].hints == ("Count.",)
    assert lesson.task("add").sizes == (1, 7, 8, 9, 33)
    assert lesson.task("add").select_hidden_sizes(3) == ()
    assert lesson.steps[1].scene == lesson.steps[0].scene  # what is shown goes on being shown


@pytest.mark.parametrize(
    ("block", "line", "reason"),
    [
        ('[show]\nkernel = "sub"\nn = 8\n', 23, "The lesson's head has no kernel 'sub'; it has add."),
        ('[show]\npattern = "scam"\n', 23, "There is no pattern 'scam'"),
        ('[show]\npattern = "scan"\nvariant = "fast"\n', 24, "has no variant 'fast'"),
        ('[show]\npattern = "scan"\nparameters = { m = 3 }\n', 24, "has no parameter 'm'"),
        ('[show]\nkernel = "add"\n', 23, "n is missing"),
        ('[show]\nkernel = "add"\nn = 8\ntab = "stop"\n', 25, "There is no tab 'stop'"),
        ('[show]\nkernel = "add"\nn = 8\nat = { time = 2 }\n', 25, "A place needs a line"),
        ('[question]\nask = "lanes"\n', 22, "A question needs a scene"),
        (SHOW + '[question]\nask = "why"\n', 27, "'why' is not a kind of question"),
        (SHOW + '[question]\nask = "cells"\n', 27, "needs 'array'"),
        (SHOW + '[question]\nask = "count"\nof = "cats"\n', 28, "of must be one of"),
        (SHOW + '[question]\nask = "lanes"\nanswer = 3\n', 28, "'answer' is not a key of"),
        (TASK.replace('"gap"', '"guess"'), 24, "'guess' is not a kind of task"),
        (TASK.replace('"gap"', '"repair"'), 22, "A repair task needs mistakes"),
        (SHOW + '[question]\nask = "lanes"\n' + TASK, 28, "A step can have a question or a task"),
        (TASK + "limits = { speed = 3 }\n", 28, "'speed' is not a counter"),
        (TASK + "requires = { speed = 3 }\n", 28, "'speed' is not a counter"),
        (TASK.replace("[1, 7", "[0, 7"), 27, "sizes must be an integer from 1"),
        (TASK + "limits = 3\n", 28, "limits must be a table"),
        (TASK + "limits = { sectors = [] }\n", 28, "sectors has [] instead of an expression or a number"),
        (TASK + "mistakes = 3\n", 28, "mistakes must be a list of tables"),
        (TASK + 'mistakes = [{ says = "", replace = 3, by = "" }]\n', 28, "replace is missing, or not a string"),
        (TASK + 'orders = "all"\n', 28, "orders is missing, or not an integer"),
        (TASK + "orders = 1000\n", 28, "orders must be an integer from 0 to 100, not 1000"),
        (TASK + "modeled = { n = 8, gpu = [] }\n", 28, "gpu is missing, or not a string"),
        (TASK + "modeled = { n = 8, times = nan }\n", 28, "times must be a non-negative number, not nan"),
        (TASK.replace("33]", "1000000000]"), 27, "sizes must be an integer from 1 to 4194304"),
        (TASK + "hidden = [9, 5]\n", 28, "hidden must be the least and the greatest"),
        ("[show]\nkernel = []\n", 23, "The lesson's head has no kernel []"),
        ("[show]\npattern = []\n", 23, "There is no pattern []"),
        ('[show]\nkernel = "add"\nn = 8\nat = { line = [] }\n', 25, "line is missing, or not an integer"),
        ('[show]\nkernel = "add"\nn = 8\nat = { barrier = -1 }\n', 25, "barrier must be an integer from 0"),
        (SHOW + '[question]\nask = "lanes"\nblock = "x"\n', 28, "block is missing, or not an integer"),
        (SHOW + '[question]\nask = "value"\narray = []\n', 28, "array is missing, or not a string"),
        (SHOW.replace("n = 11", f"n = 0x{'f' * 5000}"), 24, "n must be an integer from 1"),
        ("n = " + "[" * 100_000 + "\n", 22, "Invalid TOML: it is nested too deep"),
        (f"n = {'9' * 5000}\n", 22, "Invalid TOML: Exceeds the limit"),
        ("[show\n", 22, "Invalid TOML"),
        ("[shoe]\n", 22, "'shoe' is not a key of a step"),
    ],
)
def test_a_wrong_step_is_told_with_its_line(tmp_path: Path, block: str, line: int, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        read_lesson(write_lesson(tmp_path, block))
    assert caught.value.message.startswith(f"{tmp_path.name}/lesson.md:{line}: "), caught.value.message
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("+++\ntitle", "title", ":1: A lesson must begin with +++"),
        ('title = "Adding"', "title = 3", ":2: title is missing, or not a string"),
        ("order = 1", "order = 1\nlevel = 3", ":4: 'level' is not a key of the lesson's head"),
        ('"add.cu"', '"../add.cu"', ":7: '../add.cu' is not a kernel file in the lesson's folder"),
        ('"add.cu"', '"sub.cu"', ":7: "),
        ('"add.cu"', '"\\u0000.cu"', ":7: "),
        ("expects = { c =", "expects = { d =", ":12: expects has the name 'd', but there is no such array"),
        ("[kernels.add]", "launches = [3]\n[kernels.add]", "'launches' is not a key"),
        ("block = 8\n", "launches = 3\n", ":10: launches must be a list of tables"),
        ("block = 8\n", "shared = []\n", ":10: shared has [] instead of an expression"),
        ('"in n"', "[]", ":11: arguments has [] instead of"),
        ("expects", "tolerance = -1\nexpects", ":12: tolerance must be a non-negative number"),
        ('b = "in n"', 'b = "in n of 0..3 permutation"', ":11: 'in n of 0..3 permutation' has a range"),
        ('b = "in n"', 'b = "in n offsets"', ":11: 'in n offsets' needs the lengths' range"),
        ('kernel = "add"', f'kernel = "{"x" * 600}"', ":8: A kernel's name can have at most 500 characters"),
        ("order = 1", f"order = 0x{'f' * 5000}", ":3: order must be an integer from 0"),
        ("Words.", "# Who?\n\n```toml\n[show]\n```", ":17: A TOML block must be in a step"),
    ],
)
def test_a_wrong_head_is_told_with_its_line(tmp_path: Path, before: str, after: str, reason: str) -> None:
    with pytest.raises(InputError, match=r"lesson\.md:\d+: ") as caught:
        read_lesson(write_lesson(tmp_path, head=HEAD.replace(before, after)))
    assert reason in caught.value.message


def test_a_folder_without_a_lesson_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no lesson\.md"):
        read_lesson(tmp_path)
    with pytest.raises(InputError, match="There is no lesson in"):
        read_all_lessons(tmp_path)


def test_two_blocks_in_a_step_are_one_too_many(tmp_path: Path) -> None:
    folder = write_lesson(tmp_path, SHOW)
    text = (folder / "lesson.md").read_text("utf-8")
    (folder / "lesson.md").write_text(text + "```toml\n[show]\n```\n", "utf-8")
    with pytest.raises(InputError, match="A step can have only one TOML block; this is the second"):
        read_lesson(folder)


def test_a_task_s_name_is_another_s(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r":36: The task name 'add' is used twice"):
        read_lesson(write_lesson(tmp_path, TASK, TASK))


def test_our_lessons_are_as_many_as_they_should_be_and_need_what_is_there() -> None:
    lessons = read_all_lessons(LIBRARY)
    names = [lesson.name for lesson in lessons]
    assert len(lessons) >= 12
    assert sum(len(lesson.questions) + len(lesson.tasks) for lesson in lessons) >= 60
    for number, lesson in enumerate(lessons):
        assert set(lesson.prerequisites) <= set(names[:number]), lesson.name
        assert all(step.text or step.task is not None or step.question is not None for step in lesson.steps)


def test_a_kernel_that_is_a_circle_of_links_is_none(tmp_path: Path) -> None:
    write_lesson(tmp_path)
    (tmp_path / "add.cu").unlink()
    (tmp_path / "add.cu").symlink_to("add.cu")
    with pytest.raises(InputError, match=r":7: Cannot read .*add\.cu"):
        read_lesson(tmp_path)
