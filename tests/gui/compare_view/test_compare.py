"""The Compare tab: variants measured over sizes, a point at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PyQt6.QtCore import QPointF, Qt
from PyQt6.QtGui import QTextLayout

from gpu.bench import device_records
from gpu.messages.events import Failure, Ready
from gpu.messages.files import LoadArray
from gpu.messages.runs.pattern_runs import CountPattern, RunPattern
from gpu.messages.runs.timing import Timing
from gpu.patterns import all_patterns
from gui.compare_view import sweep
from gui.compare_view.comparisons import describe_setting_differences
from gui.painting.theme import look
from gui.plots.throughput_plot import format_power
from tests.gui import conftest
from tests.gui.conftest import wait_until_idle

COMPARE = 2


@pytest.fixture
def first_pattern():
    return "compaction"


@pytest.fixture
def comparing(open_compare):
    """The compaction's Compare tab in a window of its own."""
    return start_counting(open_compare("compaction"))


@pytest.fixture
def comparing_window(window):
    """The whole window at the compaction's Compare tab."""
    window.page.tabs.setCurrentIndex(COMPARE)
    window.compare = window.page.compare
    return start_counting(window)


def start_counting(window):
    """Have `run_requests` list what the engine is asked from now on."""
    window.before = len(window.host.requests)
    return window


def run_requests(window):
    return [r for r in window.host.requests[window.before :] if isinstance(r, RunPattern)]


def measure_all(qtbot, window):
    qtbot.mouseClick(window.compare.measure_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.compare.sweep.running, timeout=10_000)


def select_largest_size(window, exponent):
    box = window.compare.largest
    box.setCurrentIndex(box.findData(exponent))


def test_every_ticked_variant_is_measured_at_every_size(qtbot, comparing):
    tab = comparing.compare
    select_largest_size(comparing, 14)
    tab.rows[1].box.click()
    measure_all(qtbot, comparing)
    names = [variant.name for variant in tab._pattern.variants if variant.name != "ballot"]
    sizes = [2**exponent for exponent in range(10, 15)]
    assert [(point.n, point.variant) for point in tab.points] == [(n, name) for n in sizes for name in names]
    runs = run_requests(comparing)
    assert [run.verify for run in runs[:6]] == [True, False, False, True, False, False]
    assert {run.params["n"] for run in runs} == set(sizes)
    assert all(run.params["predicate"] == "greater" for run in runs)
    # The pretended engine takes 20 ms for each.
    assert tab.points[0].elements_per_s == pytest.approx(1024 / 0.02)
    assert tab.curves.points[0][1024] == pytest.approx(1024 / 0.02 / 1e6)
    assert set(tab.curves.points) == {0, 2}
    assert tab.measure_button.text() == "Measure"
    assert "every point verified" in tab.status_label.toolTip()


def test_the_median_counts(qtbot, comparing):
    host, times = comparing.host, iter([5.0, 100.0, 10.0] * 1000)
    report = host._report

    def uneven(request, wrong=False):
        made = report(request, wrong)
        return replace(made, time_ms=replace(made.time_ms, kernel=next(times)), least_bytes=2_000_000)

    host._report = uneven
    select_largest_size(comparing, 14)
    measure_all(qtbot, comparing)
    tab = comparing.compare
    assert {point.elements_per_s / point.n for point in tab.points} == {100.0}
    qtbot.mouseClick(tab.unit.buttons["GB/s"], Qt.MouseButton.LeftButton)
    assert set(tab.curves.points[0].values()) == {0.2}


def test_curves_grow_while_it_runs(qtbot, comparing_window):
    tab, host = comparing_window.compare, comparing_window.host
    host.answers_later = True
    tab.measure_button.click()
    assert tab.measure_button.text() == "Stop"
    for answers in range(1, 7):
        qtbot.waitUntil(lambda: len(host.pending) == 1)
        host.answer()
        qtbot.waitUntil(lambda answers=answers: len(run_requests(comparing_window)) == answers + 1)
        assert len(tab.points) == answers // 3
    assert "n = 2¹⁰" in tab.status_label.toolTip()
    qtbot.keyClick(comparing_window, Qt.Key.Key_Escape)
    assert not tab.sweep.running
    host.answers_later = False
    host.answer_all()
    qtbot.wait(50)
    assert len(tab.points) == 2
    assert len(run_requests(comparing_window)) == 7
    assert tab.measure_button.text() == "Measure"


@pytest.mark.parametrize("way", ["tab", "pattern", "button", "engine"])
def test_leaving_ends_it(qtbot, comparing_window, way):
    tab, host = comparing_window.compare, comparing_window.host
    host.answers_later = True
    tab.measure_button.click()
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    match way:
        case "tab":
            comparing_window.page.tabs.setCurrentIndex(0)
        case "pattern":
            comparing_window.choose_pattern("histogram")
        case "button":
            tab.measure_button.click()
        case "engine":
            comparing_window.set_engine("simulator")
    assert not tab.sweep.running
    host.answers_later = False
    if way == "engine":
        qtbot.waitUntil(lambda: host.closed)  # while the window goes on
    else:
        host.answer_all()
    wait_until_idle(qtbot, comparing_window)
    assert tab.points == []
    assert len(run_requests(comparing_window)) <= 2


def test_a_minimized_window_goes_on(qtbot, comparing):
    tab, host = comparing.compare, comparing.host
    host.answers_later = True
    tab.measure_button.click()
    comparing.showMinimized()
    qtbot.wait(30)
    assert tab.sweep.running
    comparing.showNormal()
    tab.stop()


def test_a_wrong_result_does_not_count(qtbot, comparing):
    host = comparing.host
    report = host._report
    host._report = lambda request, wrong=False: report(request, wrong=request.variant == "ballot")
    select_largest_size(comparing, 14)
    measure_all(qtbot, comparing)
    tab = comparing.compare
    assert {point.variant for point in tab.points} == {"three-kernels", "look-back"}
    assert tab.rows[1].figure.text() == "wrong"
    assert len([run for run in run_requests(comparing) if run.variant == "ballot"]) == 1


def test_a_variant_that_fails_is_left_out_and_says_why(qtbot, comparing):
    host = comparing.host
    result_of = host.result_of

    def answer(request):
        if isinstance(request, RunPattern) and request.variant == "ballot" and request.params["n"] > 4000:
            return Failure("input", "There is no room.")
        return result_of(request)

    host.result_of = answer
    select_largest_size(comparing, 14)
    measure_all(qtbot, comparing)
    tab = comparing.compare
    assert max(point.n for point in tab.points if point.variant == "ballot") == 2048
    assert max(point.n for point in tab.points if point.variant == "look-back") == 2**14
    assert tab._reasons == {"ballot": "There is no room."}


def test_where_every_variant_fails_the_window_says_why(qtbot, comparing_window):
    host = comparing_window.host
    result_of = host.result_of
    failure = Failure("compile", "compact.cu:9:9: use of undeclared identifier 't'")
    host.result_of = lambda request: failure if isinstance(request, RunPattern) else result_of(request)
    select_largest_size(comparing_window, 14)
    measure_all(qtbot, comparing_window)
    assert comparing_window.compare.points == []
    assert comparing_window.banner.isVisible()
    assert comparing_window.banner.message.text() == f"Nothing could be measured: {failure.message}"
    host.result_of = result_of
    measure_all(qtbot, comparing_window)
    assert comparing_window.banner.isHidden()


@pytest.mark.parametrize("size", ["normal", "lecture hall"])
def test_curves_and_ladder_share_the_window_at_any_size_of_text(qtbot, comparing_window, size):
    tab = comparing_window.compare
    comparing_window.appearance.set_text_size(size)
    for width in (1024, 1280, 1920):
        comparing_window.resize(width, 720)
        qtbot.waitUntil(lambda width=width: comparing_window.width() == width)
        shown = (tab.variants_card, tab.measure_button, *tab.unit.buttons.values())
        # Lines that break anew ask for another height, which comes with a later event.
        qtbot.waitUntil(lambda shown=shown: not any(each.visibleRegion().isEmpty() for each in shown))
        qtbot.wait(20)
        for each in shown:
            right = each.mapTo(tab, each.rect().bottomRight()).x()
            assert right < tab.width(), "nothing is cut at the window's edge"
        for each in (tab.largest, tab.measure_button):
            assert each.width() >= each.sizeHint().width()
        assert tab.curves.width() > tab.variants_card.width()
        assert tab.variants_card.width() == min(look().px(380), round(0.32 * tab.width()))


def test_a_slow_variant_is_not_measured_at_larger_sizes(qtbot, comparing, monkeypatch):
    monkeypatch.setattr(sweep, "DEFAULT_BUDGET_S", 0.0)
    measure_all(qtbot, comparing)
    tab = comparing.compare
    assert {point.n for point in tab.points} == {1024}
    assert len(run_requests(comparing)) == 2 * 3, "not again once it is known to be slow"
    assert all("more than 0 s" in why for why in tab._reasons.values())


def test_nothing_ticked_measures_nothing(qtbot, comparing):
    tab = comparing.compare
    for each in tab.rows:
        each.box.setChecked(False)
    measure_all(qtbot, comparing)
    assert run_requests(comparing) == []
    assert tab.measure_button.text() == "Measure"


def test_cautionary_variants_are_not_ticked(open_compare):
    ticked = {each.name: each.box.isChecked() for each in open_compare("reduction").compare.rows}
    assert not ticked.pop("volatile")
    assert all(ticked.values())


def test_the_sign_of_a_cautionary_variant_stands_beside_its_title(open_compare):
    box = next(each.box for each in open_compare("reduction").compare.rows if each.name == "volatile")
    for width in range(60, 300, 2):
        layout = QTextLayout(box.text(), box.font())
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            start = line.textStart()
        layout.endLayout()
        assert box.text()[start:].strip() != "⚠", width


def test_random_values_stand_in_for_a_file(qtbot, comparing_window, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("3\n4\n")
    comparing_window.files.open_file(path)
    qtbot.waitUntil(lambda: any(isinstance(r, LoadArray) for r in comparing_window.host.requests))
    wait_until_idle(qtbot, comparing_window)
    comparing_window.before = len(comparing_window.host.requests)
    select_largest_size(comparing_window, 14)
    measure_all(qtbot, comparing_window)
    assert {run.params["input"] for run in run_requests(comparing_window)} == {"random"}
    assert all(run.inputs == {} for run in run_requests(comparing_window))


def test_an_edited_kernel_is_not_measured_on_a_gpu(qtbot, comparing_window):
    tab = comparing_window.compare
    document = comparing_window.bench.sources.document("compact.cu")
    document.replace(document.text + "// edited\n")
    comparing_window.jobs.device = replace(comparing_window.jobs.device, engine="cuda")
    tab.measure_button.click()
    assert "only in the simulator" in comparing_window.banner.message.text()
    assert run_requests(comparing_window) == []
    comparing_window.jobs.device = replace(comparing_window.jobs.device, engine="simulator")
    select_largest_size(comparing_window, 14)
    measure_all(qtbot, comparing_window)
    assert all("// edited" in run.sources["compact.cu"] for run in run_requests(comparing_window))


def test_the_pointer_reads_the_figures_at_a_size(qtbot, comparing):
    select_largest_size(comparing, 14)
    measure_all(qtbot, comparing)
    tab = comparing.compare
    assert tab.rows[0].figure.text() == "0.819"
    assert tab.size_label.text() == "Melements/s at the largest n"
    box = tab.curves.plot.getViewBox()
    middle = np.mean(box.viewRange()[1])
    at = tab.curves.plot.mapFromScene(box.mapViewToScene(QPointF(11, middle)))
    qtbot.mouseMove(tab.curves.plot.viewport(), at)
    qtbot.waitUntil(lambda: tab.size_label.text() == f"Melements/s at n = {format_power(2048)}")
    assert tab.rows[0].figure.text() == "0.102"


@pytest.mark.parametrize("pattern", all_patterns())
def test_every_pattern_can_be_compared(open_compare, pattern):
    assert open_compare(pattern).compare.largest.count() > 0


def test_images_are_compared_by_their_sides(qtbot, open_compare, gray):
    window = open_compare("convolution")
    window.bench.open_image(gray)
    wait_until_idle(qtbot, window)
    tab = window.compare
    assert list(tab.unit.buttons) == ["Mpixels/s", "GB/s"]
    tab.largest.setCurrentIndex(tab.largest.findData(8))
    for each in tab.rows[1:]:
        each.box.setChecked(False)
    measure_all(qtbot, window)
    assert [point.n for point in tab.points] == [64, 128, 256]
    last = window.host.runs("convolution")[-1]
    assert (last.side, set(last.inputs)) == (256, {"image", "maxval"})
    # The pretended engine always says 12.5.
    assert set(tab.curves.points[0].values()) == {12.5}


@pytest.fixture(autouse=True)
def use_test_records(monkeypatch):
    """What was recorded is a small file of the tests' own."""
    monkeypatch.setattr(device_records, "FOLDER", Path(__file__).with_name("recorded"))


@pytest.fixture
def simulated(qtbot, comparing, monkeypatch):
    """The same tab on an engine that says it simulates."""
    monkeypatch.setattr(conftest, "DEVICE", replace(conftest.DEVICE, engine="simulator"))
    return show_simulator(qtbot, comparing)


def show_simulator(qtbot, window):
    window.host.deliver(0, Ready(replace(conftest.DEVICE, engine="simulator")))
    qtbot.waitUntil(lambda: window.compare.card.title.text() == "Recorded")
    return window


def test_without_a_gpu_what_was_recorded_stands_first(qtbot, simulated):
    tab = simulated.compare
    assert tab.card.title.text() == "Recorded"
    assert tab.quantity.currentText() == "NVIDIA H200, 2026-11-22"
    assert tab.status_label.toolTip().startswith("recorded on an NVIDIA H200, 2026-11-22")
    assert tab.unit.isVisible()
    # 2^16 elements in 0.008 ms, and in 0.004.
    assert tab.curves.points[0] == {2**14: 4096.0, 2**16: pytest.approx(8192.0), 2**20: 16384.0}
    assert tab.curves.points[2] == {2**16: 16384.0, 2**20: 65536.0}
    assert 1 not in tab.curves.points, "its result was not verified"
    assert tab.size_label.text() == "Melements/s, recorded, at the largest n"
    assert tab.rows[2].figure.property("tone") == "best"
    tab.unit.choose("GB/s")
    assert tab.curves.points[0][2**20] == pytest.approx(6 * 2**20 / 0.064 / 1e6)
    assert tab.points == [], "nothing of it was measured here"
    assert not run_requests(simulated)


def test_tooltips_of_quantities_name_gpus_as_the_figures_do(simulated):
    box, role = simulated.compare.quantity, Qt.ItemDataRole.ToolTipRole
    tips = [box.itemData(number, role) for number in range(box.count())]
    assert [tip for tip in tips if tip.startswith("Times recorded on an NVIDIA ")]
    assert "Times that the timing model predicts for an H200" in tips


def test_what_is_modeled_stands_dotted_beside_what_was_recorded_in_the_same_unit(qtbot, simulated):
    tab = simulated.compare
    simulated.bench.settings["compaction"].params["dtype"] = "int32"
    assert "modeled for an H200, dotted" in tab.modeled_curves.button.toolTip()
    assert not tab.legend.isVisible()
    qtbot.mouseClick(tab.modeled_curves.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not tab.busy)
    assert tab.card.title.text() == "Recorded and modeled"
    assert tab.legend.text().startswith("●  recorded on an NVIDIA H200, 2026-11-22    ○  dotted: modeled for an H200; ")
    drawn = tab.curves.modeled
    assert set(drawn) == {0, 2}, "of what was recorded"
    assert set(drawn[0]) == {2**14, 2**16, 2**20}
    modeler = tab._modeling._jobs._host
    request = next(each for each in modeler.requests if each.params["n"] == 2**20)
    assert request.params["dtype"] == "float32", "as it was set when it was recorded"
    assert drawn[0][2**20] == pytest.approx(2**20 / conftest.make_modeled_time(request).time_us)
    (dotted,) = [each for number, each in tab.curves._modeled_curves.items() if number == 0]
    assert dotted.opts["pen"].style() == Qt.PenStyle.DotLine
    tab.unit.choose("GB/s")
    least = conftest.make_modeled_time(request).least_bytes
    assert tab.curves.modeled[0][2**20] == pytest.approx(least / conftest.make_modeled_time(request).time_us / 1e3)
    assert tab.rows[0].figure.text(), "what was recorded"
    qtbot.mouseClick(tab.modeled_curves.button, Qt.MouseButton.LeftButton)
    assert (tab.curves.modeled, tab.curves._modeled_curves, tab.card.title.text()) == ({}, {}, "Recorded")
    assert not tab.legend.isVisible()


def test_nothing_modeled_stands_beside_counts(qtbot, simulated):
    tab = simulated.compare
    qtbot.mouseClick(tab.modeled_curves.button, Qt.MouseButton.LeftButton)
    tab.quantity.setCurrentText("bytes moved")
    assert not tab.modeled_curves.button.isVisible()
    assert not tab.busy
    assert tab.curves.modeled == {}
    tab.quantity.setCurrentIndex(0)
    qtbot.waitUntil(lambda: set(tab.curves.modeled) == {0, 2} and not tab.busy)


def test_what_is_modeled_beside_goes_with_the_gpu_and_is_stopped(qtbot, simulated):
    tab = simulated.compare
    qtbot.mouseClick(tab.modeled_curves.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not tab.busy)
    before = tab.curves.modeled
    modeler = tab._modeling._jobs._host
    modeler.answers_later = True
    tab._modeling.select_gpu("t4")
    assert "modeled for a T4, dotted" in tab.modeled_curves.button.toolTip()
    assert tab.curves.modeled == {} != before
    assert tab.measure_button.text() == "Stop"
    qtbot.mouseClick(tab.measure_button, Qt.MouseButton.LeftButton)
    assert not tab.busy
    modeler.answer_all()
    assert tab.curves.modeled == {}


def test_what_sizes_count_is_said_of_images_and_of_numbers(window):
    window.choose_pattern("histogram")
    page = window.page
    compare = page.stack.indexOf(page.compare)
    page.tabs.setCurrentIndex(compare)
    assert page.compare.curves.accessibleName() == "Throughput over the number of pixels per side"
    page.tabs.setCurrentIndex(0)
    page.form.change_values(of="ranges", n=100)
    page.tabs.setCurrentIndex(compare)
    assert page.compare.curves.accessibleName() == "Throughput over the number of elements"


def test_what_was_set_otherwise_is_said_as_a_form_says_it():
    pattern = conftest.find_pattern("histogram")
    then = SimpleNamespace(verified_runs=lambda name: [SimpleNamespace(params={"blocks": 0})])
    said = describe_setting_differences(then, pattern, pattern.check({"of": "levels", "blocks": 1}))
    assert said == "Blocks as many as fit, not 1"


def test_the_button_counts_where_something_else_is_shown(qtbot, simulated):
    tab = simulated.compare
    assert tab.measure_button.text() == "Count"
    select_largest_size(simulated, 7)
    measure_all(qtbot, simulated)
    assert tab.card.title.text() == "Counted"
    assert tab.quantity.currentText() == "bytes moved"
    assert {point.n for point in tab.points} == {32, 64, 128}
    tab.quantity.setCurrentIndex(0)
    assert set(tab.curves.points[0]) == {2**14, 2**16, 2**20}, "recorded is drawn alone"
    assert tab.curves._sizes == [2**14, 2**16, 2**20]
    tab.quantity.setCurrentIndex(tab.quantity.findText("bytes moved"))
    assert set(tab.curves.points[0]) == {32, 64, 128}, "what was counted is still known"


def test_on_a_gpu_recorded_is_a_choice_of_its_own(qtbot, comparing):
    tab = comparing.compare
    select_largest_size(comparing, 14)
    measure_all(qtbot, comparing)
    assert tab.card.title.text() == "Measured here"
    here = dict(tab.curves.points)
    tab.quantity.setCurrentText("NVIDIA H200, 2026-11-22")
    assert tab.card.title.text() == "Recorded"
    assert tab.curves.points[0] == {2**14: 4096.0, 2**16: pytest.approx(8192.0), 2**20: 16384.0}
    tab.quantity.setCurrentText("measured here")
    assert tab.curves.points == here
    tab.quantity.setCurrentText("NVIDIA H200, 2026-11-22")
    select_largest_size(comparing, 14)
    measure_all(qtbot, comparing)
    assert tab.card.title.text() == "Measured here", "the button measures, and shows that"


def test_settings_that_were_others_are_said(qtbot, comparing_window):
    simulated = show_simulator(qtbot, comparing_window)
    tab = simulated.compare
    assert "not" not in tab.status_label.toolTip()
    simulated.page.tabs.setCurrentIndex(0)
    simulated.page.form.change_values(dtype="int32")
    simulated.page.tabs.setCurrentIndex(COMPARE)
    assert "Type float32, not int32" in tab.status_label.toolTip()


def test_a_pattern_without_records_is_counted_at_first(open_compare, monkeypatch):
    monkeypatch.setattr(conftest, "DEVICE", replace(conftest.DEVICE, engine="simulator"))
    tab = open_compare("sort").compare
    assert tab.card.title.text() == "Counted"
    assert not tab._record_error


def test_a_damaged_record_is_told_and_nothing_else_is_lost(open_compare, monkeypatch, tmp_path):
    (tmp_path / "gpu.json").write_text("{")
    monkeypatch.setattr(device_records, "FOLDER", tmp_path)
    tab = open_compare("sort").compare
    assert "gpu.json does not contain recorded measurements" in tab.status_label.toolTip()
    assert tab.card.title.text() == "Measured here"


def test_without_a_gpu_it_is_counted(qtbot, simulated):
    tab = simulated.compare
    tab.quantity.setCurrentText("bytes moved")
    assert tab.measure_button.text() == "Count"
    assert not tab.unit.isVisible()
    assert tab.card.title.text() == "Counted"
    select_largest_size(simulated, 7)
    measure_all(qtbot, simulated)
    assert not run_requests(simulated)
    posted = [each for each in simulated.host.requests if isinstance(each, CountPattern)]
    assert {(each.full_input, each.params["n"]) for each in posted} == {(True, 32), (True, 64), (True, 128)}
    # What is pretended to be counted moves a sector more for each rung.
    assert [tab.curves.points[number][128] for number in range(3)] == [8, 12, 16]
    assert tab.rows[0].figure.property("tone") == "best", "fewer bytes are better"
    assert tab.size_label.text() == "bytes per element at the largest n"
    assert "counted by the simulator" in tab.status_label.toolTip()
    tab.quantity.setCurrentText("bank conflicts")
    assert tab.curves.points[0][128] == 0
    tab.scale.choose("log")
    assert not simulated.grab().isNull()


def test_time_to_simulate_is_a_choice_and_says_so(qtbot, simulated):
    tab = simulated.compare
    tab.quantity.setCurrentText("bytes moved")
    select_largest_size(simulated, 7)
    measure_all(qtbot, simulated)
    tab.quantity.setCurrentText("time to simulate on this CPU")
    assert tab.points == []
    assert tab.card.title.text() == "Time to simulate"
    assert "does not predict a GPU" in tab.status_label.toolTip()
    select_largest_size(simulated, 14)
    measure_all(qtbot, simulated)
    assert tab.curves.points[0][1024] == 20.0
    assert tab.size_label.text() == "ms to simulate on this CPU at the largest n"


def test_throughput_comes_back_with_a_gpu(qtbot, simulated):
    simulated.host.deliver(0, Ready(replace(conftest.DEVICE, engine="cuda")))
    tab = simulated.compare
    qtbot.waitUntil(lambda: tab.card.title.text() == "Measured here")
    assert tab.unit.isVisible()
    assert tab.measure_button.text() == "Measure"


def test_figures_are_read_in_either_theme(qtbot, comparing):
    select_largest_size(comparing, 14)
    measure_all(qtbot, comparing)
    tab = comparing.compare
    comparing.appearance.set_theme("light")
    colors = [each.figure.palette().windowText().color().name() for each in tab.rows]
    assert set(colors) <= {look().theme.text, look().theme.good}
    assert look().theme.name == "light"


def test_a_sort_is_measured_in_keys(open_compare):
    assert open_compare("sort").compare.unit.chosen == "Mkeys/s"


ON_GPU = replace(conftest.DEVICE, engine="cuda", name="NVIDIA H200", executor="gpu", multiprocessors=132)


@pytest.fixture
def on_gpu(qtbot, comparing, monkeypatch):
    """The same tab on an engine that says it is a GPU, and times each run nine times."""
    monkeypatch.setattr(conftest, "DEVICE", ON_GPU)
    report = comparing.host._report

    def timed(request, wrong=False):
        made = report(request, wrong)
        timing = Timing(20.0, 19.0, 22.0, 9, launches=1) if request.verify else None
        return replace(made, timing=timing)

    comparing.host._report = timed
    show_gpu(qtbot, comparing)
    return comparing


def show_gpu(qtbot, window):
    window.host.deliver(0, Ready(ON_GPU))
    qtbot.waitUntil(lambda: window.compare.largest.currentData() == 24)


def test_on_a_gpu_one_run_of_each_is_the_median_of_several(qtbot, on_gpu):
    tab = on_gpu.compare
    select_largest_size(on_gpu, 14)
    measure_all(qtbot, on_gpu)
    assert len(tab.points) == 5 * 3
    of_sweep = [run for run in run_requests(on_gpu) if run.seed]
    assert len(of_sweep) == 5 * 3
    assert all(run.verify for run in of_sweep)


def test_on_a_gpu_a_variant_that_takes_long_is_not_measured_at_larger_sizes(qtbot, on_gpu, monkeypatch):
    monkeypatch.setitem(sweep.BUDGET_S, "cuda", 0.1)  # nine times 20 ms are more
    measure_all(qtbot, on_gpu)
    assert {point.n for point in on_gpu.compare.points} == {1024}


def test_on_a_gpu_sizes_go_as_far_as_variants_can_be_compared(qtbot, comparing_window, monkeypatch):
    monkeypatch.setattr(conftest, "DEVICE", ON_GPU)
    on_gpu, tab = comparing_window, comparing_window.compare
    on_gpu.page.form.change_values(n=1024)  # the reference of a GPU's default size takes seconds
    wait_until_idle(qtbot, on_gpu)
    show_gpu(qtbot, on_gpu)
    select_largest_size(on_gpu, 14)
    on_gpu.host.deliver(0, Ready(ON_GPU))
    qtbot.wait(20)
    assert tab.largest.currentData() == 14, "what was chosen stays when the engine starts anew"
    for name, largest in (("matmul", 11), ("histogram", 13), ("nbody", 20)):
        on_gpu.choose_pattern(name)
        wait_until_idle(qtbot, on_gpu)
        assert on_gpu.page.compare.largest.currentData() == largest, name
