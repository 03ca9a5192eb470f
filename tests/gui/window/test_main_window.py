from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PyQt6.QtGui import QColor, QDragEnterEvent, QDropEvent
from PyQt6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QPushButton,
    QToolButton,
    QTreeView,
    QWidget,
)

from gpu import __version__
from gpu.base.errors import InputError, SourcePosition
from gpu.cli.main import Desktop
from gpu.cli.main import main as command_line
from gpu.declaration.pattern import Progress
from gpu.engines.base import Device
from gpu.messages.events import EngineHalt, Failure
from gpu.messages.files import LoadImage, SaveArray
from gpu.messages.runs.recordings import StepPattern
from gpu.patterns import find_pattern
from gui.model.settings import SavedSettings
from gui.model.time_modeler import TimeModeler
from gui.painting.theme import FONT_SIZES, look
from gui.window.ladder import _RUNG_ROLE
from gui.window.main_window import MainWindow
from tests.gui.conftest import FakeHost, wait_until_idle


def press_key(qtbot, window, key, modifier=Qt.KeyboardModifier.NoModifier):
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window.focusWidget() or window, key, modifier)


CTRL = Qt.KeyboardModifier.ControlModifier


def test_it_opens_on_a_sample_that_is_convolved_and_counted(qtbot, make_window):
    window = make_window()
    window.load_first_input()
    wait_until_idle(qtbot, window)
    host = FakeHost.instances[-1]
    assert [type(request) for request in host.requests[:1]] == [LoadImage]
    assert host.runs("convolution")
    qtbot.waitUntil(lambda: len(host.runs("histogram")) == 2)
    view = window.page.view
    qtbot.waitUntil(lambda: view.levels.plot.reference is not None)
    assert view.after.item.pyramid is not None
    assert "verified" in window.page.numbers.verdict.text()
    assert window.sidebar.thumbnails
    qtbot.waitUntil(lambda: all(each.has_picture for each in window.sidebar.thumbnails.values()))


def test_the_histogram_of_the_result_is_counted_by_our_kernel(qtbot, window):
    before, after = (run.inputs["image"] for run in window.host.runs("histogram"))
    outcome = window.bench.outcomes["convolution"]
    assert before.path == window.bench.image.inputs["image"].path
    assert after.path == outcome.handles["image"].path
    assert "histogram / privatized" in window.page.view.levels._note


def test_a_parameter_change_runs_by_itself_and_a_burst_runs_the_newest(qtbot, window):
    host = window.host
    start = len(host.runs("convolution"))
    host.answers_later = True
    slider = window.page.form.fields["size"].slider
    for _ in range(6):
        qtbot.keyClick(slider, Qt.Key.Key_Right)
        qtbot.wait(40)
    assert len(host.runs("convolution")) == start + 1
    host.answers_later = False
    host.answer_all()
    wait_until_idle(qtbot, window)
    runs = host.runs("convolution")[start:]
    assert runs[-1].params["size"] == window.page.form.values["size"] == 21
    assert runs[-1].verify
    assert len(runs) < 6


def test_keys_choose_variants_and_patterns(qtbot, window):
    press_key(qtbot, window, Qt.Key.Key_1)
    assert window.bench.settings["convolution"].variant == "naive"
    assert window.header.variant.currentData() == "naive"
    assert window.page.source.code.kernel == "convolve_naive"
    press_key(qtbot, window, Qt.Key.Key_BracketRight)
    assert window.bench.pattern_name == "histogram"
    press_key(qtbot, window, Qt.Key.Key_9)
    wait_until_idle(qtbot, window)
    assert window.host.runs("histogram")[-1].variant == "privatized"
    assert window.bench.outcomes["histogram"].variant == "racy"
    press_key(qtbot, window, Qt.Key.Key_BracketLeft)
    assert window.bench.pattern_name == "convolution"
    press_key(qtbot, window, Qt.Key.Key_9)
    assert window.bench.settings["convolution"].variant == "naive"


def test_keys_turn_to_the_tabs_from_wherever_the_focus_is(qtbot, window):
    window.choose_pattern("histogram")
    wait_until_idle(qtbot, window)
    page = window.page
    keys = {Qt.Key.Key_F2: "Run", Qt.Key.Key_F3: "Step", Qt.Key.Key_F4: "Compare", Qt.Key.Key_F6: "Atomics"}
    for focused in (page.source.code, page.form.fields["bins"].box, page.tabs, window.header.variant):
        for key, title in keys.items():
            if focused.isVisible():
                focused.setFocus()
            press_key(qtbot, window, key)
            assert page.tabs.tabText(page.tabs.currentIndex()) == title
        press_key(qtbot, window, Qt.Key.Key_F2)
    window.choose_pattern("scan")
    press_key(qtbot, window, Qt.Key.Key_F6)
    assert window.page.tabs.currentIndex() == 0, "it has no such tab"
    listed = window.window_actions.list_shortcuts()["View"]
    assert [text for _, text in listed][:4] == ["Run tab", "Step tab", "Compare tab", "Atomics tab"]


def test_keys_reach_variants_past_the_ninth(qtbot, window):
    window.choose_pattern("reduction")
    wait_until_idle(qtbot, window)
    names = [variant.name for variant in window.bench.pattern.variants]
    for key, modifier, number in (
        (Qt.Key.Key_0, 0, 10),
        (Qt.Key.Key_2, 1, 12),
        (Qt.Key.Key_1, 1, 11),
        (Qt.Key.Key_9, 0, 9),
    ):
        qtbot.keyClick(window, key, Qt.KeyboardModifier.ControlModifier if modifier else Qt.KeyboardModifier.NoModifier)
        wait_until_idle(qtbot, window)
        assert window.bench.outcomes["reduction"].variant == names[number - 1]
    listed = [action.text() for action in window.window_actions.variants.actions() if action.isVisible()]
    assert len(listed) == len(names)
    assert listed[11].startswith("12 ")
    assert ("Ctrl+1, Ctrl+2 …", "Variant 11, 12 …") in window.window_actions.list_shortcuts()["Run"]
    window.choose_pattern("histogram")
    assert "Ctrl+1, Ctrl+2 …" not in dict(window.window_actions.list_shortcuts()["Run"])


def test_digits_typed_into_a_field_choose_no_variant(qtbot, window):
    box = window.page.form.fields["size"].box
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "23")
    assert window.bench.settings["convolution"].variant == "naive"
    assert box.value() == 23


def test_digits_choose_variants_of_a_page_that_the_user_returns_to(qtbot, window):
    code = window.page.source.code
    code.setFocus()
    text = code.toPlainText()
    press_key(qtbot, window, Qt.Key.Key_F3)
    for key in (Qt.Key.Key_BracketRight, Qt.Key.Key_BracketLeft, Qt.Key.Key_F2):
        press_key(qtbot, window, key)
    qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_2)
    assert code.toPlainText() == text
    assert window.page.variant is window.bench.pattern.variants[1]


def test_digits_typed_into_the_filter_choose_no_variant(qtbot, window):
    window.page.form.change_values(filter="custom")
    editor = window.page.form.fields["coefficients"].editor
    editor.setFocus()
    editor.setCurrentIndex(editor.model().index(0, 0))
    qtbot.keyClick(editor, Qt.Key.Key_2)
    qtbot.keyClick(editor.focusWidget() if editor.findChildren(QWidget) else editor, Qt.Key.Key_Return)
    assert window.bench.settings["convolution"].variant == "naive"
    wait_until_idle(qtbot, window)


def test_run_again_and_stop(qtbot, window):
    host = window.host
    host.answers_later = True
    start = len(host.runs("convolution"))
    press_key(qtbot, window, Qt.Key.Key_F5)
    assert len(host.runs("convolution")) == start + 1
    assert window.header.stop.isEnabled()
    host.deliver(len(host.requests), Progress(0.5))
    qtbot.waitUntil(lambda: window.header.progress.fraction == 0.5)
    before = window.bench.outcomes["convolution"]
    press_key(qtbot, window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.header.stop.isEnabled())
    assert host.cancels == 1
    assert window.header.progress.fraction == 0
    assert not window.banner.isVisible()
    assert window.status.message_label.text() == "Stopped"
    assert window.bench.outcomes["convolution"] is before
    host.answers_later = False
    qtbot.mouseClick(window.header.run, Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["convolution"] is not before


def test_a_run_that_takes_long_makes_way_for_a_change(qtbot, window, monkeypatch):
    monkeypatch.setattr("gui.model.workbench.CANCEL_AFTER_S", 0.1)
    host = window.host
    host.answers_later = True
    press_key(qtbot, window, Qt.Key.Key_F5)
    assert host.cancels == 0
    qtbot.wait(150)
    host.answers_later = False
    window.page.form.change_values(size=3)
    wait_until_idle(qtbot, window)
    assert host.cancels == 1
    assert window.bench.outcomes["convolution"].params["size"] == 3
    assert not window.banner.isVisible()


def test_a_bad_file_says_so_and_the_image_stays(qtbot, window, tmp_path):
    image = window.bench.image
    window.files.open_file(tmp_path / "notes.pdf")
    qtbot.waitUntil(window.banner.isVisible)
    assert window.banner.message.text() == "notes.pdf is not an image that can be read."
    assert window.banner.advice.text() == "Open a PGM."
    assert not window.banner.detail.isVisible()
    qtbot.mouseClick(window.banner.details_button, Qt.MouseButton.LeftButton)
    assert window.banner.detail.isVisible()
    assert window.banner.detail.toPlainText() == "no magic number"
    assert window.bench.image is image
    assert window.saved_settings.image == image.path
    press_key(qtbot, window, Qt.Key.Key_Escape)
    assert not window.banner.isVisible()


def test_an_image_that_cannot_be_read_leaves_the_pattern_and_another_one_changes_it(qtbot, window, gray, tmp_path):
    window.choose_pattern("reduction")
    wait_until_idle(qtbot, window)
    window.files.open_file(tmp_path / "notes.pdf")
    qtbot.waitUntil(window.banner.isVisible)
    assert window.page.pattern.name == "reduction"
    window.files.open_file(gray)
    qtbot.waitUntil(lambda: window.page.pattern.name == "convolution")
    wait_until_idle(qtbot, window)
    assert window.bench.image.path == gray


def test_the_list_of_lessons_has_nothing_to_run(qtbot, window):
    press_key(qtbot, window, Qt.Key.Key_F7)
    assert not window.header.run.isEnabled()
    runs = len(window.host.runs())
    press_key(qtbot, window, Qt.Key.Key_F5)
    assert len(window.host.runs()) == runs
    window.choose_pattern("scan")
    assert window.header.run.isEnabled()


def test_a_first_image_that_is_gone_gives_way_to_the_sample(qtbot, make_window, tmp_path):
    window = make_window()
    window.load_first_input(tmp_path / "gone.png")
    wait_until_idle(qtbot, window)
    assert window.banner.isHidden()
    from gpu.files.images import DEFAULT_SAMPLE

    assert window.bench.image.path == DEFAULT_SAMPLE


def test_a_run_that_fails_leaves_the_window_as_it_was(qtbot, window):
    host = window.host
    before = window.bench.outcomes["convolution"]
    host.answers_later = True
    press_key(qtbot, window, Qt.Key.Key_F5)
    host.answer(Failure("launch", "Read out of bounds.", "Look at line 7.", "thread (3, 0, 0)"))
    qtbot.waitUntil(window.banner.isVisible)
    assert window.banner.message.text() == "Read out of bounds."
    assert window.bench.outcomes["convolution"] is before
    assert window.isEnabled()


def test_details_are_offered_where_the_message_does_not_say_all_and_take_no_more_room(qtbot, window):
    place, banner = SourcePosition("scan.cu", 73, 27), window.banner
    window.messages.show_failure(Failure("launch", f"{place}: element 64 of s, which has 64.", "", "", place))
    assert not banner.details_button.isVisible()
    window.messages.show_failure(Failure("launch", "An element that is not there.", "", "thread (3, 0, 0)", place))
    qtbot.mouseClick(banner.details_button, Qt.MouseButton.LeftButton)
    assert banner.detail.toPlainText() == f"{place}\nthread (3, 0, 0)"
    assert 2 * banner.detail.fontMetrics().height() < banner.detail.height() < 100


def test_what_is_said_of_a_failed_run_goes_when_one_succeeds(qtbot, window):
    host = window.host
    host.answers_later = True
    press_key(qtbot, window, Qt.Key.Key_F5)
    host.answer(Failure("launch", "Read out of bounds.", "", ""))
    qtbot.waitUntil(window.banner.isVisible)
    host.answers_later = False
    press_key(qtbot, window, Qt.Key.Key_F5)
    wait_until_idle(qtbot, window)
    assert window.banner.isHidden()
    window.banner.show_message("Something else.")
    press_key(qtbot, window, Qt.Key.Key_F5)
    wait_until_idle(qtbot, window)
    assert window.banner.isVisible()


def drop_path(window, path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    action, button, modifier = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(300, 300), action, data, button, modifier)
    QApplication.sendEvent(window, enter)
    event = QDropEvent(QPointF(300, 300), action, data, button, modifier)
    QApplication.sendEvent(window, event)
    return enter.isAccepted() and event.isAccepted()


def test_a_dropped_file_is_opened(qtbot, window, color):
    assert drop_path(window, color)
    qtbot.waitUntil(lambda: window.bench.image.path == color)
    wait_until_idle(qtbot, window)
    assert window.bench.image.channels == 3
    assert color.name in window.windowTitle()


def test_dropped_text_is_not_for_us(qtbot, window):
    data = QMimeData()
    data.setText("hello")
    enter = QDragEnterEvent(
        QPoint(3, 3), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    enter.ignore()
    QApplication.sendEvent(window, enter)
    assert not enter.isAccepted()


def test_open_by_dialog(qtbot, window, color, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(color), ""))
    press_key(qtbot, window, Qt.Key.Key_O, CTRL)
    qtbot.waitUntil(lambda: window.bench.image.path == color)
    wait_until_idle(qtbot, window)


def test_recent_files_are_listed_newest_first_and_open(qtbot, window, color, gray):
    window.files.open_file(color)
    qtbot.waitUntil(lambda: window.bench.image.path == color)
    menu = window.window_actions.recent
    menu.aboutToShow.emit()
    assert [action.text() for action in menu.actions()][:2] == [color.name, gray.name]
    menu.actions()[1].trigger()
    qtbot.waitUntil(lambda: window.bench.image.path == gray)
    menu.aboutToShow.emit()
    menu.actions()[-1].trigger()
    menu.aboutToShow.emit()
    assert not menu.actions()[0].isEnabled()
    wait_until_idle(qtbot, window)


@pytest.mark.parametrize(("name", "array"), [("out.png", "image"), ("out.npy", "result"), ("out", "image")])
def test_save_result(qtbot, window, tmp_path, monkeypatch, name, array):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / name), ""))
    press_key(qtbot, window, Qt.Key.Key_S, CTRL)
    qtbot.waitUntil(lambda: "Saved" in window.status.message_label.text())
    request = next(r for r in window.host.requests if isinstance(r, SaveArray))
    assert request.array == window.bench.outcomes["convolution"].handles[array]
    assert Path(request.path).suffix == (Path(name).suffix or ".png")
    assert request.maxval == (window.bench.image.maxval if array == "image" else None)


def test_screenshot_and_export_write_pictures(qtbot, window, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / a[1]), ""))
    press_key(qtbot, window, Qt.Key.Key_S, CTRL | Qt.KeyboardModifier.ShiftModifier)
    press_key(qtbot, window, Qt.Key.Key_E, CTRL)
    assert (tmp_path / "Save screenshot.png").stat().st_size > 1000
    assert (tmp_path / "Export picture.png").stat().st_size > 1000


def test_the_key_of_export_is_heard_wherever_the_focus_is(qtbot, window, monkeypatch):
    asked = []
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", staticmethod(lambda *args, **kwargs: asked.append(args) or ("", ""))
    )
    page = window.page

    class Greedy(QLineEdit):
        """Takes the key for its own, as Qt's do on X11."""

        def event(self, event):
            if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_E:
                event.accept()
                return True
            return super().event(event)

    greedy = Greedy(page)
    greedy.show()
    for number, widget in enumerate((page.form.fields["size"].box, page.source.code, window.header.engine, greedy), 1):
        widget.setFocus()
        press_key(qtbot, window, Qt.Key.Key_E, CTRL)
        assert len(asked) == number, widget.accessibleName()
    assert not page.source.document.edited


def test_an_unwritable_picture_shows_a_message(qtbot, window, tmp_path):
    assert not window.files.write_picture(window.grab(), tmp_path / "no" / "such.png")
    assert "Cannot write " in window.banner.message.text()


def test_saving_before_any_result_says_so(qtbot, make_window):
    window = make_window()
    press_key(qtbot, window, Qt.Key.Key_S, CTRL)
    assert "no result" in window.banner.message.text()


def test_themes_and_text_sizes_switch_at_once_and_are_remembered(qtbot, window, saved_settings):
    dark = window.grab().toImage().pixelColor(3, 300)
    press_key(qtbot, window, Qt.Key.Key_T, CTRL)
    light = window.grab().toImage().pixelColor(3, 300)
    assert dark.lightness() < 60 < 200 < light.lightness()
    assert saved_settings.theme == "light"
    height = window.header.height()
    press_key(qtbot, window, Qt.Key.Key_Plus, CTRL)
    assert saved_settings.text_size == "large"
    qtbot.waitUntil(lambda: window.header.height() > height)
    press_key(qtbot, window, Qt.Key.Key_Minus, CTRL)
    press_key(qtbot, window, Qt.Key.Key_Minus, CTRL)
    assert saved_settings.text_size == "normal"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_theme_reaches_the_dialog_that_asks_for_files(qtbot, window, theme, tmp_path):
    """Its list was white on white in the dark."""
    window.appearance.set_theme(theme)
    for number in range(30):
        (tmp_path / f"image-{number:02}.pgm").write_bytes(b"")
    dialog = QFileDialog(window, "Open image", str(tmp_path))
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.resize(800, 450)
    dialog.show()
    qtbot.waitExposed(dialog)
    view = next(each for each in dialog.findChildren(QTreeView) if each.isVisible())

    def listed():
        picture = view.viewport().grab().toImage()
        shades = {picture.pixelColor(x, y).name() for x in range(20, 200) for y in range(200)}
        assert look().theme.surface in shades
        values = [QColor(shade).lightness() for shade in shades]
        assert max(values) - min(values) > 150, "words are read on their ground"

    qtbot.waitUntil(listed)
    picture = view.viewport().grab().toImage()
    assert picture.pixelColor(picture.width() - 3, picture.height() - 3).name() == look().theme.surface
    dialog.close()


def test_preferences_apply_while_they_are_open(qtbot, window, saved_settings):
    press_key(qtbot, window, Qt.Key.Key_Comma, CTRL)
    from gui.window.preferences import Preferences

    dialog = window.findChild(Preferences)
    assert dialog.isVisible()
    qtbot.mouseClick(dialog.theme.buttons["light"], Qt.MouseButton.LeftButton)
    assert saved_settings.theme == "light"
    qtbot.mouseClick(dialog.text_size.buttons["lecture hall"], Qt.MouseButton.LeftButton)
    assert saved_settings.text_size == "lecture hall"
    qtbot.mouseClick(dialog.engine.buttons["CPU simulator"], Qt.MouseButton.LeftButton)
    assert saved_settings.engine == "simulator"
    assert FakeHost.instances[-1].engine == "simulator"
    dialog.accept()
    wait_until_idle(qtbot, window)


def test_another_engine_goes_on_with_the_image(qtbot, window):
    image = window.bench.image
    window.header.engine.setCurrentIndex(window.header.engine.findData("simulator"))
    window.header.engine.activated.emit(window.header.engine.currentIndex())
    wait_until_idle(qtbot, window)
    new = FakeHost.instances[-1]
    assert window.host.closed
    assert new.engine == "simulator"
    assert np.array_equal(new.runs()[0].inputs["image"].open(), image.values)
    assert window.bench.outcomes["convolution"].report.verified


def test_everything_is_remembered(qtbot, window, store, color):
    window.resize(1000, 640)
    window.page.form.change_values(filter="custom", coefficients=np.full((3, 3), 1 / 9, np.float32))
    window.choose_variant("constant")
    window.files.open_file(color)
    wait_until_idle(qtbot, window)
    press_key(qtbot, window, Qt.Key.Key_L, CTRL)
    window.choose_pattern("histogram")
    window.appearance.set_theme("light")
    wait_until_idle(qtbot, window)
    window.close()
    assert window.host.closed

    again = MainWindow(SavedSettings(store), "null", factory=FakeHost, survey=list)
    qtbot.addWidget(again)
    again.show()
    again.load_first_input()
    wait_until_idle(qtbot, again)
    # Offscreen the screen is 800 pixels wide, so only the height can come back as it was.
    assert again.height() == 640
    assert again.bench.pattern_name == "histogram"
    assert again.bench.image.path == color
    assert again.bench.settings["convolution"].variant == "constant"
    assert again.page.view.levels.scale.chosen == "log"
    assert again.page.view.levels.plot.logarithmic
    again.choose_pattern("convolution")
    assert again.page.form.values["filter"] == "custom"
    assert np.allclose(again.page.form.values["coefficients"], 1 / 9)
    assert again.saved_settings.theme == "light"
    again.close()


def test_the_tab_the_parts_sizes_and_the_folders_are_as_they_were_the_last_time(
    qtbot, window, store, make_window, tmp_path, monkeypatch
):
    """With names that are typed, and a window that is closed and opened again."""
    asked, given = [], {}
    for name in ("getOpenFileName", "getSaveFileName"):

        def ask(parent, title, path, filters, name=name):
            asked.append((title, Path(path)))
            return given.get(title, ""), ""

        monkeypatch.setattr(QFileDialog, name, staticmethod(ask))
    images, shots, kernels = (tmp_path / name for name in ("images", "shots", "kernels"))
    for folder in (images, shots, kernels):
        folder.mkdir()
    (images / "a.pgm").write_bytes(b"only its name counts")
    (kernels / "mine.cu").write_text("__global__ void k(int *a) { a[0] = 1; }")
    given |= {"Open image": str(images / "a.pgm"), "Save screenshot": str(shots / "shot.png")}
    press_key(qtbot, window, Qt.Key.Key_O, CTRL)
    wait_until_idle(qtbot, window)
    press_key(qtbot, window, Qt.Key.Key_S, CTRL | Qt.KeyboardModifier.ShiftModifier)
    assert (shots / "shot.png").is_file()
    given["Open kernel, program or recording"] = str(kernels / "mine.cu")
    press_key(qtbot, window, Qt.Key.Key_O, CTRL | Qt.KeyboardModifier.ShiftModifier)
    window.pages.return_to_page()
    window.choose_pattern("scan")
    press_key(qtbot, window, Qt.Key.Key_F4)
    window.choose_pattern("convolution")
    window.page.splitter.setSizes([500, 600])
    sizes = window.page.splitter.sizes()
    window.close()
    asked.clear()
    given.clear()
    again = make_window(SavedSettings(store))
    again.bench.open_image(images / "a.pgm")
    wait_until_idle(qtbot, again)
    assert again.saved_settings.sizes("convolution/page") == sizes
    again.choose_pattern("scan")
    assert again.page.comparing is not None
    again.choose_pattern("convolution")
    assert again.page.tabs.currentIndex() == 0
    press_key(qtbot, again, Qt.Key.Key_O, CTRL)
    press_key(qtbot, again, Qt.Key.Key_S, CTRL | Qt.KeyboardModifier.ShiftModifier)
    press_key(qtbot, again, Qt.Key.Key_O, CTRL | Qt.KeyboardModifier.ShiftModifier)
    folders = {title: path if path.is_dir() else path.parent for title, path in asked}
    assert folders == {"Open image": images, "Save screenshot": shots, "Open kernel, program or recording": kernels}


def test_the_title_bar_says_what_is_open(qtbot, window, color, tmp_path):
    assert window.windowTitle() == "gray.pgm – Convolution – Lockstep"
    window.files.open_file(color)
    wait_until_idle(qtbot, window)
    assert window.windowTitle() == "color.png – Convolution – Lockstep"
    window.choose_pattern("histogram")
    assert window.windowTitle() == "color.png – Histogram – Lockstep"
    window.choose_pattern("scan")
    assert window.windowTitle() == "Scan – Lockstep"
    mine = tmp_path / "mine.cu"
    mine.write_text("__global__ void k(int *a) { a[0] = 1; }")
    window.files.open_file(mine)
    assert window.windowTitle() == "mine.cu – Your kernel – Lockstep"


def test_images_are_offered_only_where_a_pattern_works_on_them(qtbot, window, color):
    window.load_first_input(color)
    wait_until_idle(qtbot, window)
    pictures = list(window.sidebar.thumbnails.values())
    assert pictures[0].isVisible()
    window.choose_pattern("scan")
    assert not any(each.isVisible() for each in pictures)
    assert window.windowTitle() == "Scan – Lockstep"
    assert "elements, random, int32" in window.status.message_label.text()
    window.files.open_file(color)
    wait_until_idle(qtbot, window)
    assert window.bench.pattern.is_image_pattern
    assert pictures[0].isVisible()
    assert color.name in window.windowTitle()
    assert color.name in window.status.message_label.text()


def test_samples_are_one_stop_of_tab_and_arrows_go_from_one_to_the_next(qtbot, make_window):
    window = make_window()
    window.load_first_input()
    wait_until_idle(qtbot, window)
    there = list(window.sidebar.thumbnails.values())
    opened = next(number for number, each in enumerate(there) if each.isChecked())
    stops, widget = [], window.sidebar.buttons["convolution"]
    first = widget
    while (widget := widget.nextInFocusChain()) is not first:
        if widget in there and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            stops.append(widget)
    assert set(stops) == {there[opened]}
    there[0].setFocus()
    for key, number in (
        (Qt.Key.Key_Right, 1), (Qt.Key.Key_Down, 3), (Qt.Key.Key_Left, 2), (Qt.Key.Key_Up, 0), (Qt.Key.Key_Up, 0),
        (Qt.Key.Key_Down, 2), (Qt.Key.Key_Down, 4), (Qt.Key.Key_Down, 6), (Qt.Key.Key_Down, 8), (Qt.Key.Key_Down, 10),
    ):  # fmt: skip
        press_key(qtbot, window, key)
        assert there[number].hasFocus()
    port = window.sidebar._scroll.viewport()
    assert port.rect().contains(there[10].rect().translated(there[10].mapTo(port, QPoint(0, 0)))), "it is seen"
    assert window.saved_settings.image == there[opened].path, "none was opened on the way"
    press_key(qtbot, window, Qt.Key.Key_Space)
    wait_until_idle(qtbot, window)
    assert window.saved_settings.image == there[10].path
    assert there[10].focusPolicy() & Qt.FocusPolicy.TabFocus
    assert not there[opened].focusPolicy() & Qt.FocusPolicy.TabFocus


def test_what_a_step_records_is_remembered(qtbot, window, store):
    window.choose_pattern("scan")
    panel = window.page.step.settings
    panel.form.change_values(n=24, operator="max", block="64")
    panel.schedule_kinds.choose("shuffle")
    panel.seed.setValue(7)
    window.close()

    again = MainWindow(SavedSettings(store), "null", factory=FakeHost, survey=list)
    qtbot.addWidget(again)
    panel = again.page.step.settings
    assert (panel.params["n"], panel.params["operator"], panel.params["block"]) == (24, "max", "64")
    assert panel.schedule == "shuffle:7"
    assert again.page.step.settings.text in again.page.step.settings_button.text()
    assert "24 elements" in again.page.step.settings.text
    again.choose_pattern("reduction")
    assert again.page.step.settings.params["n"] == 16
    assert again.page.step.settings.schedule == "round-robin"
    again.close()


@pytest.mark.parametrize(
    ("stored", "schedule"),
    [
        ({}, "shuffle:x"),
        ({"n": -4, "operator": "gone", "x": 1}, f"shuffle:{'9' * 5000}"),
        ({"n": 1000000, "input": "file"}, "shuffle:"),
    ],
)
def test_a_step_starts_as_declared_where_what_was_stored_makes_no_sense(store, make_window, stored, schedule):
    store.write_text(json.dumps({"patterns/scan/step_params": stored, "patterns/scan/schedule": schedule}))
    window = make_window(saved_settings=SavedSettings(store))
    window.choose_pattern("scan")
    step = window.page.step
    pattern = window.page.pattern
    assert step.settings.params == {**pattern.check({}), **pattern.step_params}
    assert step.settings.schedule == "round-robin"


def test_the_racy_variant_is_explained_and_its_losses_counted(qtbot, window):
    window.choose_pattern("histogram")
    wait_until_idle(qtbot, window)
    assert window.page.caution.isHidden()
    window.choose_variant("racy")
    wait_until_idle(qtbot, window)
    caution = window.page.caution
    assert caution.isVisible()
    assert caution.reason_label.text() == window.bench.pattern.variant("racy").deliberate_error
    assert caution.outcome_label.text().replace("\u202f", "").startswith("7 of 1200 updates lost")
    assert window.page.numbers.verdict.text() == "wrong, by design"
    assert not window.banner.isVisible()
    plot = window.page.view.levels.plot
    qtbot.waitUntil(lambda: plot.reference is not None)
    assert int(plot.reference.sum()) - int(plot.counts.sum()) == 7
    window.choose_variant("interleaved")
    wait_until_idle(qtbot, window)
    assert caution.isHidden()
    assert plot.reference is None


def test_editing_a_filter_copies_it_to_the_custom_one(qtbot, window):
    card = window.page.view.filter
    before = card.field.editor.values.copy()
    qtbot.mouseClick(card.edit, Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, window)
    run = window.host.runs("convolution")[-1]
    assert run.params["filter"] == "custom"
    assert np.array_equal(run.params["coefficients"], before)
    assert card.edit.isHidden()
    card.side.setValue(3)
    wait_until_idle(qtbot, window)
    assert np.array_equal(window.host.runs("convolution")[-1].params["coefficients"], before[3:6, 3:6])
    qtbot.mouseClick(card.normalize, Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, window)
    assert window.host.runs("convolution")[-1].params["coefficients"].sum() == pytest.approx(1)


def test_an_even_filter_size_is_refused(qtbot, window):
    window.page.form.change_values(filter="custom")
    card = window.page.view.filter
    card.side.setValue(4)
    assert "odd number" in window.page.form.error.text()
    wait_until_idle(qtbot, window)
    assert len(window.host.runs("convolution")[-1].params["coefficients"]) == 3


def test_an_engine_that_does_not_work_is_told_and_another_takes_over(qtbot, make_window, monkeypatch):
    failure = Failure("engine", "No driver.", "Choose the simulator.")
    monkeypatch.setattr(FakeHost, "result_of", lambda self, request: failure)
    window = make_window()
    FakeHost.instances[-1].deliver(0, failure)
    window.load_first_input()
    qtbot.waitUntil(lambda: window.status.device.text().startswith("No engine"))
    assert window.banner.message.text() == "No driver."
    qtbot.waitUntil(lambda: not window.jobs.busy)
    monkeypatch.undo()
    window.set_engine("simulator")
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["convolution"].report.verified
    assert window.status.device.text().startswith("Null engine")
    qtbot.waitUntil(lambda: all(each.has_picture for each in window.sidebar.thumbnails.values()))
    assert not window.banner.isVisible()


def test_the_status_line_says_what_ran_and_why_and_what_is_compiled(qtbot, window):
    window.resize(1400, 900)
    window.jobs.ready.emit(Device("simulator", "CPU", "compiled", 1024, 49152, 1))
    assert window.status.device.text().endswith("compiled executor")
    outcome = window.bench.outcomes["convolution"]
    report = replace(
        outcome.report, executor="lockstep", fallback="k has printf, which the compiled executor does not support"
    )
    window.bench.run_finished.emit(replace(outcome, report=report))
    assert window.status.device.accessibleDescription().endswith(
        "lockstep executor: k has printf, which the compiled executor does not support"
    )
    window.bench.progressed.emit("convolution", Progress(None, "compiling convolve_tiled"))
    assert window.status.message_label.text() == "Compiling convolve_tiled…"
    assert window.page.view.note is None, "there is a result to look at"
    window.bench.run_finished.emit(outcome)
    assert window.status.message_label.text() == ""  # what was going on has come to its end


def test_the_first_result_is_waited_for_with_a_word_about_what_it_waits_for(qtbot, window):
    host = FakeHost.instances[0]
    host.answers_later = True
    window.choose_pattern("reduction")
    qtbot.waitUntil(lambda: bool(host.pending))
    (number,) = host.pending
    view = window.page.view
    for progress, shown in ((Progress(None, "compiling k"), "Compiling k…"), (Progress(0.5, "half"), "")):
        host.deliver(number, progress)
        qtbot.waitUntil(lambda shown=shown: view.note is not None and view.note.text() == shown)
        assert view.note.isVisible() == bool(shown)
    host.deliver(number, Progress(None, "compiling another"))
    qtbot.waitUntil(view.note.isVisible)
    assert view.rect().contains(view.note.geometry())
    window.resize(window.width() + 100, window.height())
    offset = view.note.geometry().center() - view.rect().center()
    assert max(abs(offset.x()), abs(offset.y())) <= 1
    host.answers_later = False
    host.answer_all()
    wait_until_idle(qtbot, window)
    assert not view.note.isVisible()


def test_why_there_is_no_gpu_is_told_on_demand(qtbot, window):
    gpu = SimpleNamespace(engine="cuda", name="", usable=False, reason="No driver.", remedy="Install one.")
    window.status._show_survey([gpu])
    assert window.status.gpu.text() == "GPU: none found (why?)"
    qtbot.mouseClick(window.status.gpu, Qt.MouseButton.LeftButton)
    assert "No driver." in window.banner.message.text()
    assert window.banner.advice.text() == "Install one."
    assert window.banner.detail.toPlainText() == "cuda: No driver.\n    Install one."


def test_a_usable_gpu_is_named(qtbot, window):
    gpu = SimpleNamespace(engine="cuda", name="NVIDIA H200", usable=True, reason="", remedy="")
    window.status._show_survey([gpu])
    assert window.status.gpu.text() == "GPU: NVIDIA H200"


def test_status_line_says_engine_device_and_executor(qtbot, window):
    assert window.status.device.text() == "Null engine  ·  no device  ·  null executor"


def test_a_gpu_is_named_once(window):
    window.status.show_device(Device("cuda", "NVIDIA H200", "gpu", 1024, 49152, 132))
    assert window.status.device.toolTip() == "NVIDIA H200"
    window.status.show_device(Device("simulator", "Some CPU", "compiled", 1024, 49152, 1))
    assert window.status.device.toolTip() == "CPU simulator  ·  Some CPU  ·  compiled executor"


def test_tooltips_are_wrapped_into_lines_that_fit(qtbot, window):
    """Qt shows plain text on one line, however long: tooltips of examples were 1700 pixels wide."""
    tips = []
    for pattern in ("convolution", "reduction", "histogram", "sort"):
        window.choose_pattern(pattern)
        wait_until_idle(qtbot, window)
        for number in range(window.page.tabs.count()):
            window.page.tabs.setCurrentIndex(number)
            for widget in filter(QWidget.isVisible, window.findChildren(QWidget)):
                tips.append(widget.toolTip())
                if isinstance(widget, QComboBox):
                    role = Qt.ItemDataRole.ToolTipRole
                    tips += [widget.itemData(item, role) or "" for item in range(widget.count())]
    assert not [line for tip in tips for line in tip.split("\n") if len(line) > 105]


def test_tab_reaches_every_control_and_all_of_them_have_names(qtbot, window):
    wait_until_idle(qtbot, window)
    reached, widget = set(), window.header.menu
    widget.setFocus()
    while widget not in reached:
        reached.add(widget)
        widget = widget.nextInFocusChain()
    page = window.page
    for wanted in (
        window.header.menu, window.header.engine, window.header.variant, window.header.run,
        *window.sidebar.buttons.values(), page.form.fields["filter"].box, page.form.fields["size"].slider,
        page.view.before, page.view.after, page.view.levels.plot, page.view.filter.edit, page.source.code,
    ):  # fmt: skip
        assert wanted in reached
        assert wanted.focusPolicy() & Qt.FocusPolicy.TabFocus
        assert wanted.accessibleName()


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_lists_open_below_their_boxes_and_are_of_one_piece(qtbot, window, theme):
    """They lay on what was chosen, and had white ends."""
    window.appearance.set_theme(theme)
    window.choose_pattern("scan")
    wait_until_idle(qtbot, window)
    page, surface = window.page, look().theme.surface
    header = window.header
    for box in (header.variant, header.engine, header.gpu, page.examples.box, page.form.fields["operator"].box):
        box.showPopup()
        popup = box.view().window()
        qtbot.waitUntil(popup.isVisible)
        assert popup.mapToGlobal(QPoint(0, 0)).y() >= box.mapToGlobal(QPoint(0, box.height())).y() - 1
        picture = popup.grab().toImage()
        for y in range(1, picture.height() - 1):
            assert picture.pixelColor(3, y).name() == surface
        assert box.view().sizeHintForColumn(0) <= box.view().viewport().width(), "titles are whole"
        box.hidePopup()


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_the_menu_of_exports_opens_below_its_button(qtbot, window):
    window.choose_pattern("scan")
    wait_until_idle(qtbot, window)
    window.page.tabs.setCurrentIndex(1)
    panes, menu = window.page.step.panes, window.page.step.exports.menu
    qtbot.mouseClick(panes.export, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(menu.isVisible)
    assert menu.geometry().top() >= panes.export.mapToGlobal(QPoint(0, panes.export.height())).y() - 1
    assert menu.geometry().right() <= panes.picture.mapToGlobal(QPoint(panes.picture.width(), 0)).x()
    menu.hide()


def test_the_menu_opens_from_the_keyboard(qtbot, window, monkeypatch):
    shown = []
    monkeypatch.setattr(QToolButton, "showMenu", lambda self: shown.append(self))
    press_key(qtbot, window, Qt.Key.Key_F10)
    assert shown == [window.header.menu]


def test_help_lists_every_shortcut(qtbot, window):
    from gui.widgets.notice import Notice

    press_key(qtbot, window, Qt.Key.Key_F1)
    box = window.findChild(Notice)
    for key in ("Ctrl+O", "Ctrl+S", "Ctrl+E", "F5", "Esc", "Ctrl+,", "[", "]", "Shift+← →"):
        assert any(key in column.text() for column in box.columns)
    for column in box.columns:
        assert column.width() >= column.sizeHint().width()
        assert column.height() >= column.sizeHint().height()
    assert box.height() < window.height()
    box.close()
    for size, across, down in (("normal", 1024, 700), ("lecture hall", 1024, 700), ("lecture hall", 1280, 720)):
        window.appearance.set_text_size(size)
        window.resize(across, down)
        press_key(qtbot, window, Qt.Key.Key_F1)
        box = window.findChildren(Notice)[-1]
        assert box.height() < down
        assert box.width() < across
        assert not box.area.horizontalScrollBar().maximum(), "lines are whole"
        box.close()
    window.appearance.set_text_size("normal")
    window.window_actions.actions_by_name["about"].trigger()
    about = window.findChildren(Notice)[-1]
    assert __version__ in about.columns[0].text()
    about.close()


def test_tabs_that_measure_are_created_when_one_is_opened(window):
    assert not window.page.has_all_tabs
    window.page.select_tab("Compare")
    assert window.page.has_all_tabs
    assert window.page.comparing is window.page.compare


@pytest.mark.parametrize("idle_delays_ms", [(1, 100)])
def test_a_window_at_rest_makes_the_other_pages_and_rehearses_stepping_and_shows_none_of_it(qtbot, window):
    assert not window.bench.side_started
    qtbot.waitUntil(lambda: window.bench.side_started, timeout=10_000)
    assert window.pages.pages_by_name.keys() == window.bench.patterns.keys()
    assert all(window.stack.indexOf(page) >= 0 for page in window.pages.pages_by_name.values())
    assert all(page.has_step_tab and page.has_all_tabs for page in window.pages.pages_by_name.values())
    others = window.pages.pages_by_name.keys() - {"histogram"}  # which has its atomics there
    assert {window.pages.pages_by_name[name].tabs.tabText(2) for name in others} == {"Compare"}
    assert window.pages.pages_by_name["histogram"].atomics is not None
    rehearsed = [
        request for host in FakeHost.instances for request in host.requests if isinstance(request, StepPattern)
    ]
    assert [(request.pattern, request.variant) for request in rehearsed] == [("convolution", "naive")]
    assert window.page.step.models is None
    assert not window.page.step.is_up_to_date


@pytest.fixture
def few_patterns(monkeypatch):
    """Patterns whose pages are soon made: one that has an atomics tab, and another one."""
    few = {name: find_pattern(name) for name in ("convolution", "histogram", "scan")}
    monkeypatch.setattr("gui.model.workbench.all_patterns", lambda: few)


@pytest.mark.usefixtures("few_patterns")
@pytest.mark.parametrize("idle_delays_ms", [(1, 100)])
def test_a_lesson_that_was_made_at_rest_studies_the_image_that_is_open(qtbot, window):
    qtbot.waitUntil(
        lambda: (
            all(page.has_all_tabs for page in window.pages.pages_by_name.values())
            and len(window.pages.pages_by_name) == len(window.bench.patterns)
        )
    )
    window.choose_pattern("histogram")
    window.page.tabs.setCurrentIndex(2)
    assert window.page.studying is not None
    qtbot.waitUntil(lambda: window.page.studying.study is not None)


@pytest.mark.usefixtures("few_patterns")
@pytest.mark.parametrize("idle_delays_ms", [(1, 100)])
def test_during_a_lecture_or_while_times_are_modeled_no_page_is_made(qtbot, window, monkeypatch):
    for owner, name in ((window.lecturing, "view"), (TimeModeler, "busy")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, window)
            made = len(window.pages.pages_by_name)
            qtbot.wait(150)
            assert len(window.pages.pages_by_name) == made < len(window.bench.patterns), name
    qtbot.waitUntil(lambda: len(window.pages.pages_by_name) == len(window.bench.patterns))


@pytest.mark.usefixtures("few_patterns")
@pytest.mark.parametrize("idle_delays_ms", [(1, 100)])
def test_while_something_runs_no_page_is_made_and_nothing_is_rehearsed(qtbot, window):
    FakeHost.instances[0].answers_later = True
    window.run()
    qtbot.waitUntil(lambda: window.jobs.busy)
    made = len(window.pages.pages_by_name)
    qtbot.wait(300)
    assert len(window.pages.pages_by_name) == made < len(window.bench.patterns)
    assert not window.bench.side_started
    FakeHost.instances[0].answers_later = False
    FakeHost.instances[0].answer_all()
    qtbot.waitUntil(lambda: window.bench.side_started)


def test_a_filter_that_does_not_separate_is_told_beside_it_and_when_it_is_run(qtbot, window):
    card = window.page.view.filter
    window.page.form.change_values(filter="gaussian", size=5)
    assert card.description_label.text().endswith(", separable")
    window.page.form.change_values(filter="laplacian")
    assert card.description_label.text().endswith(", not separable")
    window.page.form.change_values(filter="gradient")
    assert card.description_label.text().endswith("separable  ·  sobel-x shown; also sobel-y"), "one of two is shown"
    window.page.form.change_values(filter="laplacian")
    assert "singular values are 4.45 and 0.449" in card.description_label.toolTip()
    wait_until_idle(qtbot, window)


def test_a_verdict_is_of_the_variant_that_is_shown(qtbot, window):
    verdict = window.page.numbers.verdict
    window.host.answers_later = True
    window.choose_variant("naive")
    qtbot.waitUntil(lambda: bool(window.host.pending))
    window.choose_variant("constant")
    window.host.answer()
    qtbot.waitUntil(lambda: window.bench.outcomes["convolution"].variant == "naive")
    assert verdict.text() == "", "the one that is shown has not run yet"
    window.host.answers_later = False
    window.host.answer_all()
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["convolution"].variant == "constant"
    assert verdict.text() == "✓ verified"


@pytest.mark.parametrize("size", ["normal", "large", "lecture hall"])
def test_no_word_of_the_sidebar_is_cut_in_a_low_window(qtbot, window, size):
    window.appearance.set_text_size(size)
    window.sidebar.mark_user_file("Your kernel", "mine.cu")
    window.resize(1280, 720)
    qtbot.waitUntil(lambda: window.height() == 720)
    qtbot.wait(20)
    words = [each for each in window.sidebar.findChildren(QPushButton) if each.isVisible()]
    assert len(words) == len(window.bench.patterns) + 5
    assert all(each.height() >= each.sizeHint().height() for each in words)


def test_in_a_low_window_with_large_text_nothing_is_cut(qtbot, window):
    """What has no room is scrolled to; lists end in an ellipsis, and say all in their tool tips."""
    window.choose_pattern("sort")
    wait_until_idle(qtbot, window)
    window.appearance.set_text_size("lecture hall")
    window.resize(1024, 640)
    qtbot.waitUntil(lambda: window.width() == 1024)
    qtbot.wait(100)
    page, header = window.page, window.header
    form = page.form
    assert not form.isVisible(), "so large text leaves the results below the edge"
    assert page.view.before.visibleRegion().boundingRect().height() == page.view.before.height()
    qtbot.mouseClick(page.settings.summary_button, Qt.MouseButton.LeftButton)
    bar = form.parentWidget()

    def is_fully_visible(field):
        high = field.height() >= field.minimumSizeHint().height()
        return high and bar.rect().contains(field.rect().translated(field.mapTo(bar, QPoint(0, 0))))

    fields = [each for each in form.fields.values() if not each.isHidden()]
    qtbot.waitUntil(lambda: all(map(is_fully_visible, fields)))
    for plot in (page.view.before, page.view.after):
        assert plot.height() >= plot.minimumHeight()
    left, right = (page.splitter.widget(0), page.splitter.widget(1))
    for column in (left, right):
        assert column.verticalScrollBar().maximum() > 0
        assert column.content.width() == column.viewport().width(), "nothing is beside what is seen"
    for box in (header.engine, header.variant):
        assert box.toolTip().startswith(box.currentText())
    assert header.variant.visible_text().endswith("…")
    window.appearance.set_text_size("normal")
    window.resize(1280, 720)
    qtbot.waitUntil(lambda: window.width() == 1280)
    qtbot.wait(100)
    assert all(not column.verticalScrollBar().maximum() for column in (left, right))
    assert header.variant.visible_text() == header.variant.currentText()


def test_what_a_pattern_does_stands_whole_beside_its_name_in_a_narrow_window(qtbot, window):
    window.resize(1024, 700)
    window.header.show_engine("simulator")  # the longest name
    qtbot.waitUntil(lambda: window.width() == 1024)
    # The largest text leaves the least room; of the other sizes some patterns are enough.
    patterns = [*window.bench.patterns.items()]
    sizes = {"normal": patterns[::4], "large": patterns[1::4], "lecture hall": patterns}
    for size, (name, pattern) in ((size, each) for size, chosen in sizes.items() for each in chosen):
        if look().text_px != FONT_SIZES[size]:
            window.appearance.set_text_size(size)
        window.header.show_pattern(pattern, window.bench.settings[name].variant, window.jobs.device)
        qtbot.wait(20)
        assert window.header.summary.text() == pattern.summary
        gpu, variant = window.header.gpu, window.header.variant
        assert gpu.visible_text() in (gpu.currentText(), gpu.currentText().split(",")[0])
        assert variant.width() >= look().px(140)
        engine = window.header.engine
        assert engine.isHidden() or not engine.visible_text().endswith("…")


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_the_ladder_is_listed_with_ideas_limits_and_what_lifts_them_below_its_box(qtbot, window):
    window.choose_pattern("reduction")
    wait_until_idle(qtbot, window)
    box, pattern = window.header.variant, window.bench.pattern
    for across, down in ((1024, 700), (1280, 720)):
        window.resize(across, down)
        box.showPopup()
        popup = box.view().window()
        qtbot.waitUntil(popup.isVisible)
        frame = popup.geometry().translated(-window.mapToGlobal(QPoint(0, 0)))
        assert window.rect().contains(frame)
        assert frame.top() >= box.mapTo(window, QPoint(0, box.height())).y() - 1
        rungs = [box.view().model().index(row, 0).data(_RUNG_ROLE) for row in range(box.count())]
        assert [rung.idea for rung in rungs] == [variant.idea for variant in pattern.variants]
        assert rungs[1].limit == f"Limit: {pattern.variants[1].limit} Next: variant 3."
        assert "Next:" not in rungs[-2].limit, "the hardware's is the last limit"
        widest = box.view().viewport().width()
        assert all(box.view().visualRect(box.view().model().index(row, 0)).width() <= widest for row in range(3))
        box.hidePopup()
    box.showPopup()
    view = box.view()
    view.scrollTo(view.model().index(4, 0))
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(view.model().index(4, 0)).center())
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["reduction"].variant == pattern.variants[4].name


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_a_ladder_whose_list_is_open_is_filled_anew(qtbot, window):
    box = window.header.variant
    box.showPopup()
    qtbot.waitUntil(box.view().isVisible)
    pattern = window.bench.patterns["sort"]
    box.show_ladder(pattern, None)
    assert not box.view().isVisible()
    assert [box.itemData(row) for row in range(box.count())] == [each.name for each in pattern.variants]


def test_a_first_visit_begins_at_the_first_rung_and_goes_up_from_there(qtbot, window):
    window.choose_pattern("reduction")
    wait_until_idle(qtbot, window)
    pattern, card = window.bench.pattern, window.page.idea
    assert window.bench.outcomes["reduction"].variant == "neighbored"
    assert card.next_button.text() == "Next: 3  Neighbored pairs, less divergence"
    qtbot.mouseClick(card.next_button, Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["reduction"].variant == "neighbored-less"
    assert window.header.variant.currentData() == "neighbored-less"
    qtbot.mouseClick(card.below, Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["reduction"].variant == "neighbored"
    for _ in pattern.variants[2:]:
        qtbot.mouseClick(card.above, Qt.MouseButton.LeftButton)
        wait_until_idle(qtbot, window)
    assert window.bench.outcomes["reduction"].variant == pattern.variants[-1].name
    assert not card.above.isEnabled()
    assert card.next_button.text() == "Next: 8  Last warp unrolled", "a cautionary one points to what is right"


def test_an_engine_that_is_stopped_from_outside_is_told_until_it_goes_on_or_another_takes_over(qtbot, window):
    window.host.answers_later = True
    window.run()
    for process, end in ((4711, lambda: window.host.deliver(0, EngineHalt(None))), (4712, window.banner.action.click)):
        window.host.deliver(0, EngineHalt(process))
        qtbot.waitUntil(window.banner.isVisible)
        assert window.banner.message.text() == "The engine process was suspended from outside."
        assert f"kill -CONT {process}" in window.banner.advice.text()
        end()
        qtbot.waitUntil(window.banner.isHidden)
    assert window.host.cancels == 1
    window.host.answers_later = False


def test_an_engine_that_checks_and_is_stopped_from_outside_is_told_as_well(qtbot, window):
    side = window.bench.side_jobs
    FakeHost.instances[-1].deliver(0, EngineHalt(4711))
    qtbot.waitUntil(window.banner.isVisible)
    assert side.started
    window.banner.show_message("Something else.")
    FakeHost.instances[-1].deliver(0, EngineHalt(None))
    qtbot.wait(20)
    assert window.banner.isVisible()


def test_where_no_second_engine_can_start_that_is_said_and_tried_again(qtbot, window, monkeypatch):
    def refuse(*anything):
        raise InputError("There is no folder for temporary files: no space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr("tests.gui.conftest.SharedFolder", refuse)
        assert not window.bench.side_jobs.started
        assert window.banner.message.text().startswith("There is no folder for temporary files")
    assert window.bench.side_jobs.started


def test_without_a_folder_for_temporary_files_no_window_opens(qapp, monkeypatch, saved_settings, capsys):
    def open_window(file):
        MainWindow(saved_settings, "null", survey=list)

    monkeypatch.setattr("gpu.messages.shared_arrays._memory_backed_folder", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    monkeypatch.setattr(os, "access", lambda *anything: False)
    assert command_line([], Desktop(open_window, run_tour=None, measure_actions=None)) == 2
    said = capsys.readouterr().err
    assert said.startswith("lockstep: There is no folder for temporary files: ")
    assert said.count("\n") == 1


def test_a_sobel_is_taken_at_its_own_size_and_a_size_that_is_chosen_stays(qtbot, window):
    form = window.page.form
    form.change_values(filter="sobel-x")
    assert form.values["size"] == 3
    assert window.bench.settings["convolution"].params["size"] == 3
    form.change_values(filter="gaussian")
    assert form.values["size"] == 9
    form.change_values(size=21)
    form.change_values(filter="box")
    assert form.values["size"] == 21
    form.change_values(size=4)
    assert "no row is centered" in form.error.text()
    form.change_values(size=5)
    wait_until_idle(qtbot, window)


def test_an_example_is_watched_as_it_is(qtbot, window):
    window.choose_pattern("histogram")
    sections, interleaved = window.page.pattern.presets[:2]
    window.page.show_example(sections)
    wait_until_idle(qtbot, window)
    assert (window.page.variant.name, window.page.examples.box.currentText()) == ("block-partition", sections.title)
    assert {name: window.page.step.settings.params[name] for name in ("block", "blocks")} == {"block": "4", "blocks": 1}
    window.choose_variant("interleaved")
    assert window.page.examples.box.currentText() == interleaved.title
    wait_until_idle(qtbot, window)
    window.choose_pattern("scan")
    typed = next(preset for preset in window.page.pattern.presets if preset.title == "3 1 7 0 4 1 6 3, inclusive")
    window.page.show_example(typed)
    wait_until_idle(qtbot, window)
    assert window.page.step.settings.params["values"] == "3 1 7 0 4 1 6 3"
    window.page.form.fields["values"].box.setText("3 1 7, ")
    window.page.form.fields["values"].box.textEdited.emit("3 1 7, ")
    assert window.page.form.fields["values"].box.text() == "3 1 7, "
    assert window.bench.settings["scan"].params["values"] == "3 1 7"
    wait_until_idle(qtbot, window)


@pytest.mark.parametrize("first_pattern", ["nbody"])
def test_a_kernel_that_is_opened_on_the_page_of_bodies_is_a_kernel(window, monkeypatch, tmp_path):
    path = tmp_path / "own.cu"
    path.write_text("__global__ void own(float *a) { a[0] = 1; }\n")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_, **__: (str(path), ""))
    window.files.choose_and_open()
    assert window.user_file.visible_page is not None
    assert not window.messages.banner.isVisible()
