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

from gpu.lessons.checking import faults
from gpu.lessons.lesson import Lesson
from gpu.lessons.reading import FILE, LIBRARY, lesson_folders, read_lesson
from tests.gpu.lessons.lesson_folder import HEAD, KERNEL, SHOW, TASK
from tests.odd_inputs import LONGEST_SENTENCE, ODD_VALUES, answer, as_toml, changed, mutated

_BLOCK = re.compile(r"(^\+\+\+\n|^```toml\n)(.*?)(^\+\+\+$|^```$)", re.MULTILINE | re.DOTALL)
_QUESTION = '\n[question]\nask = "lanes"\nhints = ["One.", "Two."]\n'
_LIMITED = """limits = { sectors = "4 * n" }
[[task.mistakes]]
says = "It adds twice."
replace = "+ b[i]"
by = "+ 2 * b[i]"
"""
_TRIED = 0.1
"""Of the lessons that can be read, how many are tried: a step of one takes as long as reading a hundred."""


@cache
def _own() -> str:
    blocks = (SHOW + _QUESTION, TASK + _LIMITED)
    return HEAD + "".join(
        f"## Step {number}\n\nWords.\n\n```toml\n{block}```\n\n" for number, block in enumerate(blocks)
    )


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read a lesson that was changed, and try a step of it."""
    lesson = folder / "lesson"
    own = random.random() < 0.7
    library = lesson_folders(LIBRARY)
    if own:
        lesson.mkdir()
        (lesson / "add.cu").write_text(KERNEL)
    else:
        shutil.copytree(library[int(random.integers(len(library)))], lesson)
    text = _own() if own else (lesson / FILE).read_text("utf-8")
    data = (
        _exchanged(random, text).encode(errors="replace") if random.random() < 0.7 else mutated(random, text.encode())
    )
    (lesson / FILE).write_bytes(data)
    if random.random() < 0.1:
        _damage(random, next(lesson.glob("*.cu")))
    found = answer(lambda: read_lesson(lesson))
    if found is not None and random.random() < _TRIED:
        _try(random, found)


def _exchanged(random: np.random.Generator, text: str) -> str:
    """Return a lesson's text with a value of one of its blocks exchanged."""
    blocks = list(_BLOCK.finditer(text))
    found = blocks[int(random.integers(len(blocks)))]
    block = as_toml(changed(random, tomllib.loads(found[2]), ODD_VALUES))
    return text[: found.start(2)] + block + text[found.end(2) :]


def _damage(random: np.random.Generator, kernel: Path) -> None:
    match int(random.integers(4)):
        case 0:
            kernel.write_bytes(mutated(random, kernel.read_bytes()))
        case 1:
            kernel.unlink()
            kernel.symlink_to(str(random.choice(["/dev/zero", "/etc/passwd", kernel.name])))
        case 2:
            kernel.unlink()
            os.mkfifo(kernel)
        case _:
            kernel.unlink()


def _try(random: np.random.Generator, lesson: Lesson) -> None:
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
    for fault in faults(replace(lesson, steps=(step,))):
        said = str(fault)
        assert "Traceback" not in said
        assert "\n" not in said, said
        assert len(said) < LONGEST_SENTENCE, said
