"""Lessons that nobody meant well: each is a sentence, at once, and not an exception, an hour or all memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.lessons.lesson_reader import read_lesson
from gpu.lessons.validation import find_faults
from tests.gpu.lessons.lesson_folder import HEAD, KERNEL, SHOW, TASK, write_lesson

VARIABLE = "__device__ int big[COUNT];\n" + KERNEL.replace("c[i] =", "big[0] = 0;\n    c[i] =")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('a = "in n"', 'a = "in n of 9..0"', "no integers from 9 to 0"),
        ('a = "in n"', 'a = "in n of -1e308..1e308"', "no integers from -1e+308"),
        ('a = "in n"', 'a = "in n of 0..2**70"', "no integers from 0 to 1.18059e+21"),
        ('a = "in n"', 'a = "in n of 0..1e999"', "must be a finite number"),
        ('a = "in n"', 'a = "in n of 1/2..1/2"', "no integers from 0.5 to 0.5"),
        ('a = "in n"', 'a = "in n of [1]..3"', "must be a finite number"),
        ('a = "in n"', f'a = "in {"9" * 400}"', "must be a finite number"),
        ('n = "n"', 'n = "3000000000"', "does not fit in the parameter's type"),
        ('n = "n"', 'n = "[n]"', "must be a finite number"),
        ('"ceil(n / 8)"', "1000000000", "more than 4,194,304 threads"),
    ],
)
def test_a_number_out_of_range_is_a_fault(tmp_path: Path, before: str, after: str, reason: str) -> None:
    assert before in HEAD
    lesson = read_lesson(write_lesson(tmp_path, SHOW, TASK, head=HEAD.replace(before, after, 1)))
    faults = [str(fault) for fault in find_faults(lesson)]
    assert len(faults) == 2
    assert all(reason in fault for fault in faults), faults


@pytest.mark.parametrize("count", [250_000_000, 2_500_000_000_000])
def test_variables_of_a_gigabyte_are_a_fault(tmp_path: Path, count: int) -> None:
    lesson = read_lesson(write_lesson(tmp_path, SHOW, TASK, kernel=VARIABLE.replace("COUNT", str(count))))
    faults = [str(fault) for fault in find_faults(lesson)]
    assert len(faults) == 2
    assert all("add.cu's variables have " in fault for fault in faults), faults
