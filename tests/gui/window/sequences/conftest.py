"""A window whose Step tab plays real recordings, and a file with a sequence."""

from __future__ import annotations

import pytest
from PyQt6.QtWidgets import QApplication

from gui.model.sequences import Moment, MomentSequence, write_sequence
from tests.gui.step_view.conftest import open_step_tab, real_recordings  # noqa: F401

MOMENTS = (
    Moment("Pairs", "scan", "kogge-stone", picture="Flow", step=19, settings={"n": 8, "block": "8"}, note="Say this."),
    Moment("Tree", "scan", "brent-kung", picture="Arrays", step=40, settings={"n": 16, "block": "16"}),
    Moment("Divergence", "reduction", "neighbored", picture="Flow", step=7, settings={"n": 32, "block": "16"}, seed=2),
    Moment("A race", "reduction", "volatile", picture="Flow", step=30, schedule="shuffle:1",
           settings={"input": "ramp", "n": 64, "block": "64"}),
)  # fmt: skip


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "talk.sequence"
    write_sequence(path, MomentSequence("A talk", MOMENTS))
    return path


@pytest.fixture
def window(open_step_tab):  # noqa: F811
    return open_step_tab("scan", "naive")


@pytest.fixture
def wait_for_moment(qtbot, window):
    """Return a function that waits until the player's moment is on screen, and returns its Step tab."""

    def wait():
        qtbot.waitUntil(lambda: not window.sequences.is_opening)
        return window.page.step

    return wait


@pytest.fixture
def press(qtbot, window):
    def press(key, *modifiers):
        qtbot.keyClick(QApplication.focusWidget() or window, key, *modifiers)

    return press
