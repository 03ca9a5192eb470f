"""A new pattern has a page with all of its tabs, made from its declaration alone."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.declaration.roles import Role
from gpu.messages.runs.recordings import StepPattern
from gpu.patterns import find_pattern
from gui.run_view.array import ArrayView
from tests.gui.conftest import FakeHost, wait_until_idle
from tests.gui.step_view.conftest import wait_for_recording
from tests.new_pattern import KERNEL, declare_pattern


@pytest.fixture(autouse=True)
def _declare_pattern(tmp_path):
    with declare_pattern(tmp_path):
        yield


def test_it_has_a_form_a_run_and_curves(qtbot, window):
    window.choose_pattern("doubling")
    wait_until_idle(qtbot, window)
    page = window.page
    assert page.source.code.toPlainText() == KERNEL
    assert list(page.form.fields) == ["made", "amount", "threads"]
    assert isinstance(page.view, ArrayView)
    page.form.change_values(amount=100)
    wait_until_idle(qtbot, window)
    outcome = window.bench.outcomes["doubling"]
    assert outcome.params["amount"] == 100
    np.testing.assert_array_equal(outcome.arrays["doubles"], 2.0 * np.arange(100))
    assert page.view._input_caption.toolTip() == "100, rising"
    assert window.bench.input_description == ("Doubling", "100 elements, rising")
    assert page.compare.largest.count() > 0


def test_a_file_of_numbers_is_opened_for_it(qtbot, window, tmp_path):
    window.choose_pattern("doubling")
    wait_until_idle(qtbot, window)
    (tmp_path / "few.csv").write_text("3\n4\n5\n")
    window.files.open_file(tmp_path / "few.csv")
    qtbot.waitUntil(lambda: window.bench.values is not None)
    wait_until_idle(qtbot, window)
    assert window.bench.pattern_name == "doubling"
    assert window.bench.settings["doubling"].params["made"] == "file"
    np.testing.assert_array_equal(window.bench.outcomes["doubling"].arrays["doubles"], [6, 8, 10])


def test_it_is_stepped(qtbot, open_tab):
    step = open_tab("doubling", "plain")
    assert step.models is not None
    assert step.settings.text.startswith("16 elements")
    asked = [each for host in FakeHost.instances for each in host.requests if isinstance(each, StepPattern)]
    assert {each.pattern for each in asked} == {"doubling"}
    assert step.panes.counters.text("textbook", "operations") == "16"
    assert step.steppable.title == "Doubling: Plain"
    step.settings.form.change_values(**find_pattern("doubling").params_for_role(Role.SIZE, 128))
    wait_for_recording(qtbot, step)
    assert step.request.params["amount"] == 128
