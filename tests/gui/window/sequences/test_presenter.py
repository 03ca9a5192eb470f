"""The presenter's window: what it shows, its keys and buttons, and the screen it opens on."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import QRect, Qt

from gui.model.sequences import list_builtin_sequences, read_sequence
from gui.painting.theme import code_font
from gui.window.sequences.presenter import FORWARDED_KEYS, choose_screen, format_elapsed
from tests.gui.window.sequences.conftest import MOMENTS

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def presenter(window, path, wait_for_moment, press):
    window.sequences.open(path)
    wait_for_moment()
    press(Qt.Key.Key_F12)
    assert window.presenter.isVisible()
    return window.presenter


def click(qtbot, widget):
    qtbot.mouseClick(widget, LEFT)


def test_it_shows_the_current_and_the_next_moment(qtbot, window, presenter, wait_for_moment):
    assert presenter.title.accessibleDescription() == "A talk"
    assert presenter.position.text() == "Now  ·  1 of 4"
    assert presenter.current_title.text() == "Pairs"
    assert presenter.details.accessibleDescription() == "scan  ·  kogge-stone  ·  Flow  ·  step 19"
    assert presenter.note.toPlainText() == "Say this."
    assert presenter.next_title.text() == "Tree"
    assert [presenter.list.item(row).text() for row in range(4)] == [
        "1  Pairs",
        "2  Tree",
        "3  Divergence",
        "4  A race",
    ]
    assert not presenter.previous_button.isEnabled()
    for index in (1, 2, 3):
        click(qtbot, presenter.next_button)
        wait_for_moment()
        assert window.sequences.index == index
        assert presenter.current_title.text() == MOMENTS[index].title
    assert presenter.next_title.text() == "The end"
    assert not presenter.next_button.isEnabled()
    click(qtbot, presenter.previous_button)
    assert presenter.list.currentRow() == 2


def test_code_in_a_note_has_the_font_of_sources_while_it_is_read(qtbot, window, presenter):
    note = "Now: `data[0] = 3 + 1`, 😀 and `x`."
    click(qtbot, presenter.edit_button)
    presenter.note.setPlainText(note)
    click(qtbot, presenter.edit_button)
    assert presenter.note.toPlainText() == "Now: data[0] = 3 + 1, 😀 and x."
    families = []
    for word in ("Now", "data[0]", "and", "x."):
        cursor = presenter.note.document().find(word)
        cursor.setPosition(cursor.selectionStart() + 1)
        families.append(cursor.charFormat().fontFamilies() == code_font().families())
    assert families == [False, True, False, True]
    click(qtbot, presenter.edit_button)
    assert presenter.note.toPlainText() == note
    click(qtbot, presenter.edit_button)
    assert "`" not in presenter.note.toPlainText()
    assert window.sequences.moment.note == note


def test_a_click_on_the_list_shows_a_moment(qtbot, window, presenter, wait_for_moment):
    box = presenter.list.visualItemRect(presenter.list.item(2))
    qtbot.mouseClick(presenter.list.viewport(), LEFT, pos=box.center())
    wait_for_moment()
    assert (window.sequences.index, window.page.pattern.name) == (2, "reduction")


def test_its_keys_act_on_the_window_and_the_lecture(qtbot, window, presenter, wait_for_moment):
    step = window.page.step
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_Right)
    assert step.player.moment == MOMENTS[0].step + 1
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_Home)
    assert step.player.moment == 0
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_F11)
    view = window.lecturing.view
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_C)
    assert view.code.isHidden()
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_B)
    assert view.blank.isVisible()
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_Right)
    assert not view.blank.isVisible()
    assert step.player.moment == 0
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_N)
    wait_for_moment()
    assert step.player.moment == MOMENTS[1].step
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_N, Qt.KeyboardModifier.ShiftModifier)
    wait_for_moment()
    assert step.player.moment == MOMENTS[0].step
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_F11)
    assert window.lecturing.view is None
    qtbot.keyClick(presenter.next_button, Qt.Key.Key_F12)
    assert not presenter.isVisible()


def test_it_forwards_every_key_of_the_step_tab_and_the_lecture(qtbot, window, presenter):
    window.lecturing.toggle()
    assert set(FORWARDED_KEYS) == {*window.page.step.keys.names, *window.lecturing.view.keys.names}


def test_editing_changes_the_file(qtbot, window, presenter, path, wait_for_moment):
    assert presenter.note.isReadOnly()
    assert not presenter.delete_button.isVisible()
    click(qtbot, presenter.edit_button)
    presenter.note.setFocus()
    presenter.note.selectAll()
    qtbot.keyClicks(presenter.note, "New note")
    presenter.title_field.selectAll()
    qtbot.keyClicks(presenter.title_field, "New title")
    assert window.sequences.index == 0
    click(qtbot, presenter.down_button)
    moments = read_sequence(path)[0].moments
    assert [(each.title, each.note) for each in moments[:2]] == [("Tree", ""), ("New title", "New note")]
    assert presenter.list.item(1).text() == "2  New title"
    click(qtbot, presenter.up_button)
    click(qtbot, presenter.delete_button)
    assert [each.title for each in read_sequence(path)[0].moments] == ["Tree", "Divergence", "A race"]
    assert presenter.title_field.text() == "Tree"
    click(qtbot, presenter.add_button)
    assert len(read_sequence(path)[0].moments) == 4
    click(qtbot, presenter.edit_button)
    assert presenter.note.isReadOnly()


def test_lockstep_own_sequences_are_changed_in_a_copy(qtbot, window, presenter, tmp_path, wait_for_moment, monkeypatch):
    (_, builtin), *_ = list_builtin_sequences()
    before = builtin.read_bytes()
    window.sequences.open(builtin)
    wait_for_moment()
    click(qtbot, presenter.edit_button)
    assert presenter.message.accessibleDescription() == "This sequence belongs to Lockstep. Save a copy to change it."
    assert presenter.note.isReadOnly()
    assert not presenter.delete_button.isEnabled()
    copy = tmp_path / "copy.sequence"
    monkeypatch.setattr("gui.window.sequences.player.choose_new_file", lambda *words: copy)
    click(qtbot, presenter.copy_button)
    assert not presenter.note.isReadOnly()
    click(qtbot, presenter.delete_button)
    assert len(read_sequence(copy)[0].moments) == len(read_sequence(builtin)[0].moments) - 1
    assert builtin.read_bytes() == before


def test_it_says_what_is_wrong_with_a_moment(qtbot, window, presenter, path, wait_for_moment):
    path.write_text(path.read_text().replace("brent-kung", "brent"))
    window.sequences.open(path)
    wait_for_moment()
    click(qtbot, presenter.next_button)
    message = "Moment 2, Tree: Scan has no variant brent. Press N for the next moment."
    assert presenter.message.accessibleDescription() == message
    click(qtbot, presenter.next_button)
    assert presenter.message.accessibleDescription() == ""


def test_without_a_sequence(window, press):
    press(Qt.Key.Key_F12)
    presenter = window.presenter
    assert presenter.title.accessibleDescription() == "No sequence is open"
    assert not presenter.next_button.isEnabled()
    assert presenter.list.count() == 0


def test_it_closes_with_the_window(window, presenter):
    window.close()
    assert not presenter.isVisible()


def test_the_time_starts_again(qtbot, presenter, monkeypatch):
    monkeypatch.setattr(presenter, "_elapsed", _Elapsed(3_723_000))
    qtbot.waitUntil(lambda: presenter.elapsed.text() == "1:02:03")
    click(qtbot, presenter.findChild(type(presenter.edit_button), "restart"))
    assert presenter.elapsed.text() == "0:00"
    assert presenter.clock.text()


class _Elapsed:
    def __init__(self, milliseconds):
        self.milliseconds = milliseconds

    def elapsed(self):
        return self.milliseconds

    def restart(self):
        self.milliseconds = 0


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(0, "0:00"), (59_999, "0:59"), (600_000, "10:00"), (3_600_000, "1:00:00")]
)
def test_elapsed_time(milliseconds, text):
    assert format_elapsed(milliseconds) == text


def test_it_opens_on_a_screen_that_the_lecture_does_not_occupy():
    laptop, projector = QRect(0, 0, 1280, 720), QRect(1280, 0, 1920, 1080)
    assert choose_screen([laptop], 0) == 0
    assert choose_screen([laptop, projector], 0) == 1
    assert choose_screen([laptop, projector], 1) == 0
    assert choose_screen([laptop, projector, projector], 2) == 0
