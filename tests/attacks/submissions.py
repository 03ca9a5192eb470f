"""What students hand in: kernels that were changed, names that are odd, and the reports of them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np

from gpu.cli.grade import junit, table
from gpu.files.opening import name_of
from gpu.files.sources import read_source
from gpu.lessons.judging import judge
from gpu.lessons.lesson import Lesson
from gpu.lessons.reading import preloaded, read_lesson
from gpu.process.grader import Graded, grade
from tests.gpu.lessons.lesson_folder import KERNEL, TASK, lesson_in
from tests.odd_inputs import LONGEST_SENTENCE, answer, mutated

IN_TESTS = 20
"""How many `make test` takes: each is run on several inputs."""

_IN_A_PROCESS = 0.005
_NAMES = (
    b"a.cu",
    b"\xff.cu",
    b"a\nb.cu",
    b"\x1b[2J.cu",
    b"=1+1.cu",
    b'&<>".cu',
    b"x" * 240 + b".cu",
    b"\xe2\x80\xae.cu",
)
_PIECES = (
    "for (;;) ;", "while (i < n) ;", "return;", "__syncthreads();", "c[-1] = 0;", "c[n] = 0;", "c[i << 20] = 1;",
    "__shared__ int s[99999];", "asm(\"trap;\");", "printf(\"%s\", 3);", "goto x;", "int x[1 << 20]; x[i] = 1;",
    "add<<<1, 1>>>(a, b, c, n);", "delete c;", "*(int *)0 = 1;", "int y = 1 / (n - n);", "#include <vector>\n",
    "}", "{",
    "c[i] = sqrtf(-1.f);", "c = nullptr;", "n = -1;", "i = 1u << 31;", "#error x\n", "static int k; k++;",
)  # fmt: skip


@cache
def _lesson() -> Lesson:
    with TemporaryDirectory() as folder:
        whole = preloaded(read_lesson(lesson_in(Path(folder), TASK)))
    (step,) = whole.steps
    assert step.task is not None
    return replace(whole, steps=(replace(step, task=replace(step.task, sizes=(1, 9), kinds=("random",), orders=1)),))


def attack(random: np.random.Generator, folder: Path) -> None:
    """Judge a submission that was changed, and write of it what teachers and programs read."""
    name = _NAMES[int(random.integers(len(_NAMES)))].decode(errors="surrogateescape")
    path = folder / name
    path.write_bytes(_changed(random))
    if random.random() < _IN_A_PROCESS:
        (folder / "lesson").mkdir()
        (graded,) = grade(lesson_in(folder / "lesson", TASK), "add", [path])
    else:
        text = answer(lambda: read_source(path))
        if text is None:
            return
        lesson = _lesson()
        judgment = judge(lesson, lesson.task("add"), text)
        graded = Graded(name_of(name), judgment.accepted, judgment.verdict.words, judgment.sentences)
    assert graded.words
    for sentence in graded.sentences:
        assert len(sentence) < LONGEST_SENTENCE
        assert "Traceback" not in sentence
    assert len(list(csv.reader(io.StringIO(table([graded]))))) == 2
    report = ElementTree.fromstring(junit("lesson/add", [graded]).encode())
    assert (report[0].find("failure") is None) is graded.accepted
    table([graded]).encode()


def _changed(random: np.random.Generator) -> bytes:
    if random.random() < 0.5:
        return mutated(random, KERNEL.encode())
    text = KERNEL
    for _ in range(int(random.integers(1, 3))):
        place = int(random.integers(len(text)))
        text = text[:place] + _PIECES[int(random.integers(len(_PIECES)))] + text[place:]
    return text.encode()
