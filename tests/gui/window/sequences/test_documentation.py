"""The sequence in the documentation can be opened, and F1 lists the keys of a lecture."""

from __future__ import annotations

import re

from gpu.base.paths import ROOT
from gpu.patterns import all_patterns
from gui.model.sequences import parse_sequence
from gui.window.sequences.moments import check_moment


def test_the_sequence_on_the_page_about_teaching_is_valid():
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "teach.md").read_text("utf-8"), re.DOTALL)
    sequence = parse_sequence(text, "teach.md")
    assert not sequence.errors
    (moment,) = sequence.moments
    check_moment(moment, all_patterns())
    assert moment.note == "Let the class predict the next row."


def test_the_list_of_keys_has_those_of_a_lecture(window):
    assert window.window_actions.list_shortcuts()["Lecture"] == [
        ("N", "Next moment"),
        ("Shift+N", "Previous moment"),
        ("F12", "Presenter's window"),
        ("Ctrl+M", "Add the window's state as a moment"),
    ]
