"""What the guide to lessons shows holds: its lesson is sound, and what it says of a class's tools runs as it stands."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from pathlib import Path

import pytest

from gpu.base.paths import DOCS, ROOT
from gpu.cli import main as cli
from gpu.lessons.lesson_reader import LIBRARY, read_lesson
from gpu.lessons.validation import find_faults
from tests.gpu.cli.no_desktop import NO_WINDOW

GUIDE = (DOCS / "lessons.md").read_text("utf-8")
SOLUTION = (LIBRARY / "08-reduction" / "tree.cu").read_text("utf-8")


def find_code_block(words: str) -> str:
    """Return the indented block that follows a paragraph."""
    found = re.search(r"\n\n((?: {4}[^\n]*\n|\n)+)", GUIDE[GUIDE.index(words) :])
    assert found is not None
    return textwrap.dedent(found[1])


def test_the_template_is_a_sound_lesson(tmp_path: Path) -> None:
    folder = tmp_path / "turning"
    folder.mkdir()
    text = find_code_block("Save this as")
    (folder / "lesson.md").write_text(text, "utf-8")
    (folder / "reverse.cu").write_text(find_code_block("Save the correct kernel as"), "utf-8")
    lesson = read_lesson(folder)
    asked, wanted = lesson.steps
    assert asked.question is not None
    assert wanted.task is not None
    assert not list(find_faults(lesson))


def test_the_workflow_s_command_grades_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = re.search(r"main\.py (grade .*)", find_code_block("**GitHub Classroom.**"))
    assert said is not None
    (tmp_path / "tree.cu").write_text(SOLUTION.replace("half = 32", "half = 16"), "utf-8")
    arguments = [each.replace("..", str(tmp_path)) for each in shlex.split(said[1])]
    assert cli.main(arguments, NO_WINDOW) == 1
    assert "tree" in capsys.readouterr().out
    assert 'failures="1"' in (tmp_path / "report.xml").read_text("utf-8")


@pytest.mark.parametrize("right", [False, True])
def test_the_notebook_s_cell_judges(tmp_path: Path, right: bool) -> None:
    (tmp_path / "tree.cu").write_text(SOLUTION if right else SOLUTION.replace("half > 0", "half > 1"), "utf-8")
    names = {"PYTHON": sys.executable, "LOCKSTEP": ROOT, "HERE": tmp_path}
    cell = compile(find_code_block("**nbgrader.**"), "cell", "exec")
    if right:
        exec(cell, names)
    else:
        with pytest.raises(AssertionError, match="Differs from reference"):
            exec(cell, names)
