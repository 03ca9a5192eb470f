"""What is chosen in the Run tab is what the Step tab records, as much of it as can be watched."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.declaration.pattern import Choice, Integer, Matrix, Real
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.text_parameters import BinEdges, Numbers, Text
from gpu.messages.runs.recordings import StepPattern
from gpu.patterns import all_patterns
from tests.gui.conftest import wait_until_idle
from tests.gui.step_view.conftest import open_step_tab, real_recordings, wait_for_recording  # noqa: F401

_OWN_SIZES = {
    "convolution": {"size"},
    "histogram": {"bins", "n", "block", "blocks"},
    "reduction": {"n", "block", "blocks"},
    "scan": {"n", "block"},
    "compaction": {"n", "block"},
    "nbody": {"bodies", "steps", "block"},
    "sort": {"n", "bits", "block"},
    "matmul": {"n", "m", "k", "tile"},
    "softmax": {"n", "rows", "block"},
    "transpose": {"n", "rows", "tile"},
    "spmv": {"n", "block"},
    "stencil": {"n", "rows", "planes", "tile"},
}
"""What is chosen for a Step alone: how much there is, and how it is divided."""


def other_value(parameter, value):
    """Return a value of a parameter that is another one, where it is read from no file."""
    match parameter:
        case Choice():
            return next(each for each in reversed(parameter.options) if each not in (value, FROM_FILE))
        case Integer():
            return value + parameter.step
        case Real():
            return value + 0.25
        case Matrix():
            return np.full((5, 5), 0.04, np.float32)
        case Numbers():
            return "2 7 1 8"
        case BinEdges():
            return (-2.0, 0.0, 2.0)
        case Text():
            return "banana"
    raise AssertionError(parameter)


def are_equal(one, other):
    return np.array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("first_pattern", all_patterns())
def test_whatever_a_run_takes_and_does_the_step_records(qtbot, window, first_pattern):
    name, page = first_pattern, window.page
    step, params = page.step.settings, dict(window.bench.settings[name].params)
    for parameter in page.pattern.parameters:
        if parameter.only_if is not None:
            params |= {parameter.only_if[0]: parameter.only_if[1][0]}
            page.show_values(params)
        before = step.params[parameter.name]
        wanted = other_value(parameter, params[parameter.name])
        params |= {parameter.name: wanted}
        page.show_values(params)
        followed = parameter.name not in _OWN_SIZES[name]
        assert are_equal(step.params[parameter.name], wanted if followed else before), parameter.name
    wait_until_idle(qtbot, window)


@pytest.mark.parametrize("first_pattern", ["histogram"])
def test_the_step_follows_the_text_of_a_run(qtbot, window):
    settings = window.page.step.settings
    assert settings.params["of"] == "levels"
    window.page.form.change_values(of="letters", text="banana", letters=1)
    assert (settings.params["of"], settings.params["text"], settings.params["letters"]) == ("letters", "banana", 1)
    window.page.form.change_values(text="x" * 5000)
    assert len(settings.params["text"]) == 2048
    settings.form.change_values(text="only here")
    window.page.form.change_values(bins=7)
    assert settings.params["text"] == "only here"
    wait_until_idle(qtbot, window)


@pytest.mark.parametrize("first_pattern", ["scan"])
def test_what_was_chosen_for_a_step_stays_while_a_run_changes_in_something_else(qtbot, window):
    settings = window.page.step.settings
    settings.form.change_values(input="ones", kind="exclusive")
    window.page.form.change_values(operator="max", block="512")
    assert {name: settings.params[name] for name in ("input", "kind", "operator", "block", "n")} == {
        "input": "ones", "kind": "exclusive", "operator": "max", "block": "16", "n": 16,
    }  # fmt: skip
    wait_until_idle(qtbot, window)


def test_a_step_tab_that_is_created_later_has_followed_every_change(qtbot, saved_settings, make_window):
    pattern = saved_settings.pattern = "scan"
    saved_settings.store_step(pattern, {"operator": "min", "kind": "exclusive"}, "round-robin")
    window = make_window()
    page, operator = window.page, window.bench.settings[pattern].params["operator"]
    for chosen in ("max", operator):
        page.form.change_values(operator=chosen)
    assert not page.has_step_tab
    params = page.step.settings.params
    assert (params["operator"], params["kind"]) == (operator, "exclusive")
    page.form.change_values(operator="max")
    assert params["operator"] == "max"
    wait_until_idle(qtbot, window)


def test_a_step_tab_that_is_created_later_has_the_saved_sizes_and_the_input_that_was_opened_before(
    window, saved_settings
):
    saved_settings.store_sizes("convolution/step", [400, 800])
    assert not window.page.has_step_tab
    window.page.select_tab("Step")
    assert window.page.has_step_tab
    assert window.page.stepping
    assert window.page.step.current_input.keys() == {"image", "maxval"}
    assert window.page.step.steppable.subject == "convolution"
    picture, source = window.page.step.panes.splitter.sizes()
    assert picture < source, "at first it is the other way round"


@pytest.mark.parametrize("first_pattern", ["scan"])
def test_settings_of_a_step_tab_that_was_never_created_are_kept(qtbot, window, saved_settings):
    pattern = window.bench.patterns["scan"]
    saved_settings.store_step("scan", {"kind": "exclusive"}, "shuffle:7")
    before = saved_settings.step(pattern)
    window.pages.close_down()
    assert not window.page.has_step_tab
    assert saved_settings.step(pattern) == before
    window.page.form.change_values(operator="max")
    window.pages.close_down()
    params, schedule = saved_settings.step(pattern)
    assert (params["operator"], params["kind"], schedule) == ("max", "exclusive", "shuffle:7")
    wait_until_idle(qtbot, window)


@pytest.mark.parametrize("first_pattern", ["compaction"])
def test_a_threshold_goes_with_the_type_that_it_is_measured_in(qtbot, window):
    settings = window.page.step.settings
    assert (settings.params["dtype"], settings.params["threshold"]) == ("int32", 50.0)
    window.page.form.change_values(predicate="less")
    chosen = {name: settings.params[name] for name in ("predicate", "dtype", "threshold")}
    assert chosen == {"predicate": "less", "dtype": "float32", "threshold": 0.5}
    wait_until_idle(qtbot, window)


@pytest.mark.parametrize(
    ("name", "shape", "cut"), [("scan", (100,), (32,)), ("softmax", (40, 40), (4, 16)), ("histogram", (100,), (64,))]
)
def test_a_file_of_numbers_is_stepped_through_too(qtbot, open_step_tab, tmp_path, name, shape, cut):  # noqa: F811
    window = open_step_tab(name, all_patterns()[name].first_rung.name)
    if name == "histogram":
        window.page.form.change_values(of="ranges")
    tab = window.page.step
    numbers = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 5
    np.save(tmp_path / "mine.npy", numbers)
    window.files.open_file(tmp_path / "mine.npy")
    source = window.page.pattern.parameter(Role.SOURCE).name
    qtbot.waitUntil(lambda: tab.settings.params[source] == FROM_FILE)
    wait_for_recording(qtbot, tab)
    assert isinstance(tab.request, StepPattern)
    assert tab.request.inputs["values"].open().shape == cut
    assert tab.models.recording.event_count
    for place in (0, 1):
        window.page.tabs.setCurrentIndex(place)
    assert window.status.message_label.text().endswith(
        f"{np.prod(cut)} of {numbers.size:,} numbers".replace(",", "\u202f")
    )
