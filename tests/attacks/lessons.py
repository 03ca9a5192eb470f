"""Lessons: their TOML, Markdown and kernels, changed in a few bytes or values."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from gpu.lessons.lesson import Lesson
from gpu.lessons.lesson_reader import LESSON_FILE, LIBRARY, find_lesson_folders, read_lesson
from gpu.lessons.validation import find_faults
from tests.gpu.lessons.lesson_folder import HEAD, KERNEL, SHOW, TASK
from tests.odd_inputs import LONGEST_SENTENCE, ODD_VALUES, format_toml, mutate_bytes, mutate_values, read_or_none

_BLOCK = re.compile(r"(^\+\+\+\n|^```toml\n)(.*?)(^\+\+\+$|^```$)", re.MULTILINE | re.DOTALL)
_QUESTION = '\n[question]\nask = "lanes"\nhints = ["One.", "Two."]\n'
_LIMITED = """limits = { sectors = "4 * n" }
[[task.mistakes]]
says = "It adds twice."
replace = "+ b[i]"
by = "+ 2 * b[i]"
"""
_NUMBERS = (
    "9",
    "0",
    "-1",
    "1e308",
    "-1e308",
    "2**70",
    "1e999",
    "n",
    "n * 10**9",
    "1 / 0",
    "[1, 2]",
    "x",
    "n % 0",
    "1/2",
)
_TRIED = 0.1
"""Of the lessons that can be read, how many are tried: a step of one takes as long as reading a hundred."""


@cache
def _lesson_text() -> str:
    blocks = (SHOW + _QUESTION, TASK + _LIMITED)
    return HEAD + "".join(
        f"## Step {number}\n\nWords.\n\n```toml\n{block}```\n\n" for number, block in enumerate(blocks)
    )


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read a lesson that was changed, and try a step of it."""
    lesson = folder / "lesson"
    own = random.random() < 0.7
    library = find_lesson_folders(LIBRARY)
    if own:
        lesson.mkdir()
        (lesson / "add.cu").write_text(KERNEL)
    else:
        shutil.copytree(library[int(random.integers(len(library)))], lesson)
    text = _lesson_text() if own else (lesson / LESSON_FILE).read_text("utf-8")
    if own and random.random() < 0.3:
        text = _exchange_number(random, text)
    data = (
        _exchange_value(random, text).encode(errors="replace")
        if random.random() < 0.7
        else mutate_bytes(random, text.encode())
    )
    (lesson / LESSON_FILE).write_bytes(data)
    if random.random() < 0.1:
        _damage_kernel(random, next(lesson.glob("*.cu")))
    found = read_or_none(lambda: read_lesson(lesson))
    if found is not None and random.random() < _TRIED:
        _try_step(random, found)


def _exchange_number(random: np.random.Generator, text: str) -> str:
    """Return a lesson's text with another range, size, argument or extent."""
    first, second = (_NUMBERS[int(random.integers(len(_NUMBERS)))] for _ in range(2))
    changes = (
        ('a = "in n"', f'a = "in n of {first}..{second}"'), ('c = "out n"', f'c = "out {first}"'),
        ('n = "n"', f'n = "{first}"'), ('"ceil(n / 8)"', f'"{first}"'), ("block = 8", f'block = "{first}"'),
        ('"a + b"', f'"a + {first}"'),
    )  # fmt: skip
    return text.replace(*changes[int(random.integers(len(changes)))], 1)


def _exchange_value(random: np.random.Generator, text: str) -> str:
    """Return a lesson's text with a value of one of its blocks exchanged."""
    blocks = list(_BLOCK.finditer(text))
    found = blocks[int(random.integers(len(blocks)))]
    block = format_toml(mutate_values(random, tomllib.loads(found[2]), ODD_VALUES))
    return text[: found.start(2)] + block + text[found.end(2) :]


def _damage_kernel(random: np.random.Generator, kernel: Path) -> None:
    match int(random.integers(4)):
        case 0:
            kernel.write_bytes(mutate_bytes(random, kernel.read_bytes()))
        case 1:
            kernel.unlink()
            kernel.symlink_to(str(random.choice(["/dev/zero", "/etc/passwd", kernel.name])))
        case 2:
            kernel.unlink()
            os.mkfifo(kernel)
        case _:
            kernel.unlink()


def _try_step(random: np.random.Generator, lesson: Lesson) -> None:
    if not lesson.steps:
        return
    step = lesson.steps[int(random.integers(len(lesson.steps)))]
    if step.scene is not None and step.scene.sizes:
        step = replace(
            step, scene=replace(step.scene, sizes=tuple(size for size in step.scene.sizes if size < 2000) or (3,))
        )
    if step.task is not None:
        step = replace(
            step, task=replace(step.task, sizes=tuple(size for size in step.task.sizes if size < 300)[:3] or (3,))
        )
    for fault in find_faults(replace(lesson, steps=(step,))):
        said = str(fault)
        assert "Traceback" not in said
        assert "\n" not in said, said
        assert len(said) < LONGEST_SENTENCE, said
