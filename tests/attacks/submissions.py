"""What students hand in: kernels that were changed, names that are odd, and the reports of them."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np

from gpu.cli.grade import format_csv, format_junit
from gpu.files.file_access import format_path
from gpu.files.sources import read_source
from gpu.lessons.grading import grade_submission
from gpu.lessons.lesson import Lesson
from gpu.lessons.lesson_reader import preload_kernels, read_lesson
from gpu.process.grader import GradedSubmission, grade_submissions
from tests.gpu.lessons.lesson_folder import KERNEL, TASK, write_lesson
from tests.odd_inputs import LONGEST_SENTENCE, mutate_bytes, read_or_none

IN_TESTS = 10
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
    b" =1+1.cu",
    b"a;-1.cu",
    "＝1＋1.cu".encode(),
)
_INCLUDES = (
    '#include "{}"\n', "%:include <{}>\n", "\f#include\v<{}>\n", "#inc\\\nlude <{}>\n", "#include_next <{}>\n",
    "#define F <{}>\n#include F\n", "#if __has_include(<{}>)\n#error hidden\n#endif\n", '#embed "{}"\n',
    'const char *q = "/*";\n#include "{}"\n// */\n',
)  # fmt: skip
_FORMULA = re.compile(r"(?:^|[;\t\r\n])\s*[=+\-@＝＋－＠]")
_PIECES = (
    "for (;;) ;", "while (i < n) ;", "return;", "__syncthreads();", "c[-1] = 0;", "c[n] = 0;", "c[i << 20] = 1;",
    "__shared__ int s[99999];", "asm(\"trap;\");", "printf(\"%s\", 3);", "goto x;", "int x[1 << 20]; x[i] = 1;",
    "add<<<1, 1>>>(a, b, c, n);", "delete c;", "*(int *)0 = 1;", "int y = 1 / (n - n);", "#include <vector>\n",
    "}", "{",
    "c[i] = sqrtf(-1.f);", "c = nullptr;", "n = -1;", "i = 1u << 31;", "#error x\n", "static int k; k++;",
)  # fmt: skip


@cache
def _read_lesson() -> Lesson:
    with TemporaryDirectory() as folder:
        whole = preload_kernels(read_lesson(write_lesson(Path(folder), TASK)))
    (step,) = whole.steps
    assert step.task is not None
    return replace(
        whole, steps=(replace(step, task=replace(step.task, sizes=(1, 9), kinds=("random",), schedule_count=1)),)
    )


def attack(random: np.random.Generator, folder: Path) -> None:
    """Judge a submission that was changed, and write of it what teachers and programs read."""
    name = _NAMES[int(random.integers(len(_NAMES)))].decode(errors="surrogateescape")
    path = folder / name
    path.write_bytes(_mutate_submission(random))
    if random.random() < _IN_A_PROCESS:
        (folder / "lesson").mkdir()
        secret = folder / "secret.h"
        secret.write_text("#error hidden\n")
        if random.random() < 0.3:
            path.unlink()
            path.symlink_to(secret)
        else:
            include = _INCLUDES[int(random.integers(len(_INCLUDES)))].format(secret)
            path.write_bytes(include.encode() + path.read_bytes())
        (graded,) = grade_submissions(write_lesson(folder / "lesson", TASK), "add", [path])
        assert graded.graded, graded.sentences
        assert not any("error" in sentence and "hidden" in sentence for sentence in graded.sentences)
    else:
        text = read_or_none(lambda: read_source(path))
        if text is None:
            return
        lesson = _read_lesson()
        judgment = grade_submission(lesson, lesson.task("add"), text)
        graded = GradedSubmission(format_path(name), judgment.accepted, judgment.verdict.words, judgment.sentences)
    assert graded.words
    for sentence in graded.sentences:
        assert len(sentence) < LONGEST_SENTENCE
        assert "Traceback" not in sentence
    _, row = csv.reader(io.StringIO(format_csv([graded])))
    assert not any(_FORMULA.search(cell) for cell in row)
    report = ElementTree.fromstring(format_junit("lesson/add", [graded]).encode())
    assert (report[0].find("failure") is None) is graded.accepted
    format_csv([graded]).encode()


def _mutate_submission(random: np.random.Generator) -> bytes:
    if random.random() < 0.5:
        return mutate_bytes(random, KERNEL.encode())
    text = KERNEL
    for _ in range(int(random.integers(1, 3))):
        place = int(random.integers(len(text)))
        text = text[:place] + _PIECES[int(random.integers(len(_PIECES)))] + text[place:]
    return text.encode()
