"""Mistakes that are made in solutions: each is one, and says where it is."""

from __future__ import annotations

from pathlib import Path

from gpu.lessons.lesson_reader import LIBRARY, read_lesson
from gpu.lessons.task_texts import reference_solution
from tests.gpu.lessons.lesson_folder import TASK, write_lesson
from tools.lesson_mutants import generate_mutants


def test_each_mutant_is_one_mistake_in_the_line_that_it_names(tmp_path: Path) -> None:
    lesson = read_lesson(write_lesson(tmp_path, TASK))
    task = lesson.task("add")
    made = list(generate_mutants(lesson, task))
    assert {"off by one", "lost last element", "missing bound", "swapped buffer"} <= {each.kind for each in made}
    assert len({each.text for each in made}) == len(made)
    solution = reference_solution(lesson, task).split("\n")
    for mutant in made:
        changed = mutant.text.split("\n")
        assert changed != solution
        assert [number for number, line in enumerate(solution, 1) if line != changed[number - 1]] == [mutant.line]
        assert solution[mutant.line - 1].strip() == mutant.before


def test_barriers_are_dropped_and_moved() -> None:
    lesson = read_lesson(LIBRARY / "04-shared-memory")
    kinds = [each.kind for each in generate_mutants(lesson, lesson.task("rotate"))]
    assert kinds.count("dropped barrier") == 3
    assert kinds.count("moved barrier") >= 3
