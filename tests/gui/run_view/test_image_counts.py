"""The Run tab of the histogram where a text or numbers are counted."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gui.conftest import wait_until_idle


@pytest.fixture
def first_pattern():
    return "histogram"


def _open_histogram(qtbot, window, of):
    window.page.form.change_values(of=of)
    wait_until_idle(qtbot, window)
    return window.page.view


def test_a_text_that_is_typed_is_counted(qtbot, window):
    view = _open_histogram(qtbot, window, "letters")
    assert view.editor.isVisible()
    assert not view.pane.isVisible()
    view.editor.setPlainText("Abba, zebra!")
    wait_until_idle(qtbot, window)
    outcome = window.bench.outcomes["histogram"]
    assert outcome.image is None
    assert outcome.arrays["counts"].tolist() == [[6, 1, 0, 0, 1, 0, 1, 3]]
    assert view.facts["pixels"].text() == "12"
    assert view.facts["counted"].text() == "9"
    assert view.facts["fullest bin"].text() == "a–d, 66.7%"
    view.levels.plot.move_cursor(7)
    assert view.levels.note.text().startswith("other")


def test_a_file_of_text_is_opened_where_letters_are_counted(qtbot, window, tmp_path):
    view = _open_histogram(qtbot, window, "letters")
    file = tmp_path / "words.txt"
    file.write_text("quick brown fox")
    window.files.open_file(file)
    wait_until_idle(qtbot, window)
    assert view.editor.toPlainText() == "quick brown fox"
    assert window.bench.outcomes["histogram"].arrays["counts"].sum() == 15


def test_numbers_of_a_file_are_counted_by_the_edges(qtbot, window, tmp_path):
    view = _open_histogram(qtbot, window, "ranges")
    file = tmp_path / "numbers.csv"
    file.write_text("0.5\n1.5\n7\n")
    window.files.open_file(file)
    wait_until_idle(qtbot, window)
    assert window.page.form.values["numbers"] == "file"
    window.page.form.change_values(edges=(0, 1, 2))
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["histogram"].arrays["counts"].tolist() == [[1, 1, 1]]
    assert view.facts["empty bins"].text() == "1"
    before = window.bench.outcomes["histogram"]
    field = window.page.form.fields["edges"]
    field.box.setText("2 1")
    field.changed.emit()
    assert "Edges must increase" in window.page.form.error.text()
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["histogram"] is before


def test_numbers_by_equal_ranges_go_by_the_bins_numbers(qtbot, window):
    view = _open_histogram(qtbot, window, "numbers")
    for bins in (256, 65536):
        window.choose_variant("peak")
        window.page.form.change_values(bins=bins, dtype="uint16", numbers="constant", n=1000)
        wait_until_idle(qtbot, window)
        counts = window.bench.outcomes["histogram"].arrays["counts"][0]
        full = int(counts.argmax())
        assert counts.shape == (bins,)
        assert counts[full] == 1000
        assert view.facts["fullest bin"].text().startswith(f"{full:,}".replace(",", "\u202f"))
        assert view.facts["empty bins"].text().startswith(f"{bins - 1:,}".replace(",", "\u202f"))
        assert view.levels.plot.box.viewRange()[0] == [0, bins]
        view.levels.plot.move_cursor(full)
        assert view.levels.note.text() == f"bin {full}   count 1\u202f000"


def test_an_image_that_is_opened_is_what_is_counted(qtbot, window, color):
    view = _open_histogram(qtbot, window, "letters")
    window.files.open_file(color)
    wait_until_idle(qtbot, window)
    assert window.page.form.values["of"] == "levels"
    assert view.pane.isVisible()
    assert np.array_equal(view.levels.plot.counts.sum(axis=1), [1200] * 3)


def test_numbers_leave_their_room_to_the_histogram(qtbot, window):
    window.resize(1280, 720)
    view = window.page.view
    wait_until_idle(qtbot, window)
    of_image = view.splitter.sizes()
    window.page.form.change_values(of="ranges")
    wait_until_idle(qtbot, window)
    assert view.splitter.sizes()[0] < 0.8 * of_image[0]
    window.page.form.change_values(of="letters")
    wait_until_idle(qtbot, window)
    assert view.splitter.sizes() == of_image
