from __future__ import annotations

import pytest
from PyQt6.QtWidgets import QFileDialog

from gui.widgets.file_dialogs import ALL_FILES, choose_new_file


@pytest.mark.parametrize(
    ("entered", "selected", "name"),
    [
        ("a", "CUDA C++ (*.cu *.cuh)", "a.cu"),
        ("a", "Folder (*)", "a"),
        ("a", ALL_FILES, "a.zip"),
        ("a", "", "a.zip"),
        ("a.txt", "CUDA C++ (*.cu *.cuh)", "a.txt"),
    ],
)
def test_a_name_without_a_suffix_gets_one(tmp_path, monkeypatch, entered, selected, name):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *words: (str(tmp_path / entered), selected))
    assert choose_new_file(None, "Save", "suggested.zip", f"{selected};;{ALL_FILES}", "test") == tmp_path / name
