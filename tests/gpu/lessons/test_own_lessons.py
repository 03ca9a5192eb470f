"""Lockstep's own lessons: what all of them have in common."""

from __future__ import annotations

import pytest

from gpu.lessons.lesson_reader import LIBRARY, find_lesson_folders, read_lesson

FOLDERS = find_lesson_folders(LIBRARY)


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_a_lesson_ends_with_a_summary(folder):
    last = read_lesson(folder).steps[-1]
    assert last.title == "Summary"
    assert last.question is None
    assert last.task is None
    assert 3 <= len(last.text.split("\n- ")) <= 6
