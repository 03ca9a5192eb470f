"""Going through a sequence by keys, in the window and in a lecture, and changing it."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QFileDialog

from gpu.files.images import SAMPLES
from gui.model.sequences import Moment, MomentSequence, read_sequence, write_sequence
from tests.gui.conftest import FakeHost, wait_until_idle
from tests.gui.step_view.conftest import wait_for_recording
from tests.gui.window.sequences.conftest import MOMENTS

SHIFT = Qt.KeyboardModifier.ShiftModifier
CONTROL = Qt.KeyboardModifier.ControlModifier


def assert_shows(window, moment):
    """Check the window against the file's description of a moment."""
    page, step = window.page, window.page.step
    assert (page.pattern.name, page.variant.name) == (moment.pattern, moment.variant)
    assert page.stepping
    assert step.steppable.name == f"{moment.pattern}-{moment.variant}"
    assert {name: step.request.params[name] for name in moment.settings} == moment.settings
    assert (step.request.variant, step.request.seed) == (moment.variant, moment.seed)
    assert step.request.schedule == (moment.schedule or "round-robin")
    assert step.panes.kinds.chosen == moment.picture
    assert step.player.moment == moment.step


@pytest.mark.parametrize("lecture", [False, True])
def test_one_key_leads_to_the_next_moment_and_one_back(window, path, wait_for_moment, press, lecture):
    if lecture:
        press(Qt.Key.Key_F11)
        view = window.lecturing.view
    window.files.open_file(path)
    wait_for_moment()
    assert_shows(window, MOMENTS[0])
    for moment in MOMENTS[1:]:
        press(Qt.Key.Key_N)
        wait_for_moment()
        assert_shows(window, moment)
        if lecture:
            assert window.lecturing.view is view
            assert view.tab is window.page.step
            assert view.isAncestorOf(window.page.step.panes.pictures)
            assert view.sentence.hint == f"{MOMENTS.index(moment) + 1} of 4  {moment.title}"
    for moment in MOMENTS[-2::-1]:
        press(Qt.Key.Key_N, SHIFT)
        wait_for_moment()
        assert_shows(window, moment)
    if lecture:
        press(Qt.Key.Key_F11)
        assert window.lecturing.view is None
        assert window.page.step.panes.picture.isAncestorOf(window.page.step.panes.pictures)


def test_a_recording_opens_at_its_moment(window, path, wait_for_moment):
    """Not at its first finding or at its start: showing these before would double the time of the key."""
    window.sequences.open(path)
    wait_for_moment()
    moments = []
    step = window.pages.place_page("reduction").step
    step.player.moved.connect(moments.append)
    window.sequences.go_to(3)
    wait_for_moment()
    assert step.models.data.findings
    assert step.followed == step.models.data.findings[0].thread
    assert moments == [MOMENTS[3].step]


def test_widgets_of_all_tabs_of_a_lecture_are_back_afterwards(window, path, wait_for_moment, press):
    press(Qt.Key.Key_F11)
    press(Qt.Key.Key_T)
    window.sequences.open(path)
    wait_for_moment()
    window.sequences.go_to(2)
    step = wait_for_moment()
    assert step.panes.timeline.isVisible()
    press(Qt.Key.Key_Escape)
    assert window.lecturing.view is None
    for name in ("scan", "reduction"):
        panes = window.pages.pages_by_name[name].step.panes
        assert panes.time.isAncestorOf(panes.timeline)
        assert panes.right.isAncestorOf(panes.lanes)
        assert panes.picture.isAncestorOf(panes.pictures)


def test_a_step_that_the_user_changed_is_restored_without_a_new_recording(window, path, wait_for_moment, press):
    window.sequences.open(path)
    step = wait_for_moment()
    recording = step.models
    press(Qt.Key.Key_End)
    assert step.player.moment != MOMENTS[0].step
    window.sequences.go_to(0)
    assert wait_for_moment().player.moment == MOMENTS[0].step
    assert step.models is recording


def test_settings_that_a_moment_does_not_name_have_their_defaults(window, tmp_path, wait_for_moment):
    window.page.step.settings.form.change_values(n=33, kind="exclusive")
    path = tmp_path / "plain.sequence"
    write_sequence(path, MomentSequence("Plain", (Moment("Plain", "scan", "naive", step=3),)))
    window.sequences.open(path)
    step = wait_for_moment()
    assert (step.request.params["n"], step.request.params["kind"]) == (16, "inclusive")


def test_the_keys_say_where_the_sequence_ends(window, path, wait_for_moment, press):
    press(Qt.Key.Key_N)
    assert window.status.message_label.text() == "No sequence is open. Open one from Menu, Lecture."
    window.sequences.open(path)
    wait_for_moment()
    press(Qt.Key.Key_N, SHIFT)
    assert window.status.message_label.text() == "This is the first moment of A talk."
    window.sequences.go_to(3)
    wait_for_moment()
    press(Qt.Key.Key_N)
    assert window.status.message_label.text() == "This is the last moment of A talk."


BROKEN = [
    (Moment("M", "scam", "naive"), "There is no pattern scam."),
    (Moment("M", "scan", "naif"), "Scan has no variant naif."),
    (Moment("M", "scan", "naive", tab="Stop"), "There is no tab Stop: Run, Step, Compare exist."),
    (Moment("M", "scan", "naive", settings={"m": 3}), "Scan has no setting m."),
    (Moment("M", "scan", "naive", settings={"n": 10**6}), "n "),
    (Moment("M", "scan", "naive", settings={"n": [1]}), "n is a whole number from 0 to 2048, not [1]."),
    (Moment("M", "scan", "naive", settings={"input": "file"}),
     "The setting input needs an opened file, which a sequence cannot name."),
    (Moment("M", "scan", "naive", schedule="random"), "'random' is not a schedule"),
    (Moment("M", "convolution", "naive", image="../../secret.png"), "The image ../../secret.png is not next to"),
    (Moment("M", "convolution", "naive", image="\\\\host\\share\\a.png"), "The image \\\\host\\share\\a.png is not"),
    (Moment("M", "convolution", "naive", image="gone.png"),
     "There is no image gone.png next to the sequence, and no sample of that name."),
    (Moment("M", "convolution", "naive", settings={"coefficients": "/etc/passwd"}),
     "The setting coefficients cannot be '/etc/passwd'."),
]  # fmt: skip


@pytest.mark.parametrize("lecture", [False, True])
def test_a_moment_that_no_longer_exists_is_reported_and_the_next_is_shown(
    window, tmp_path, wait_for_moment, press, lecture
):
    """Each broken moment is between two good ones: the first, a broken one, the second, a broken one, the first ..."""
    moments = [MOMENTS[0]]
    for number, (moment, _) in enumerate(BROKEN):
        moments += [moment, MOMENTS[(number + 1) % 2]]
    path = tmp_path / "old.sequence"
    write_sequence(path, MomentSequence("Old", tuple(moments)))
    window.sequences.open(path)
    wait_for_moment()
    if lecture:
        press(Qt.Key.Key_F11)
    for number, (_, message) in enumerate(BROKEN):
        press(Qt.Key.Key_N)
        assert not window.sequences.is_opening
        report = f"Moment {2 * number + 2}, M: {message}"
        assert window.banner.message.text().startswith(report)
        assert_shows(window, MOMENTS[number % 2])
        if lecture:
            assert window.lecturing.view.sentence.text.startswith(report)
        press(Qt.Key.Key_N)
        wait_for_moment()
        assert_shows(window, MOMENTS[(number + 1) % 2])
        assert not window.banner.isVisible()


def test_a_step_past_the_end_or_a_missing_picture_is_reported_and_the_last_step_shown(
    window, tmp_path, wait_for_moment
):
    path = tmp_path / "late.sequence"
    moments = Moment("Late", "scan", "naive", step=9999), Moment("Tiles", "scan", "naive", picture="Tiles", step=2)
    write_sequence(path, MomentSequence("Late", moments))
    window.sequences.open(path)
    step = wait_for_moment()
    end = step.player.end
    assert step.player.moment == end
    assert window.banner.message.text() == f"Late: There is no step 9999: the recording ends with step {end}."
    window.sequences.go_to_next()
    wait_for_moment()
    assert step.player.moment == 2
    assert window.banner.message.text() == "Tiles: This recording has no picture Tiles."


def test_a_file_with_errors_shows_its_other_moments_and_is_never_rewritten(window, path, wait_for_moment, press):
    text = path.read_text().replace("step = 40", "step = -40").replace("step = 7", "step = 'seven'")
    path.write_text(text)
    window.sequences.open(path)
    wait_for_moment()
    assert window.banner.message.text().startswith("talk.sequence, moment 2: `step` is -40")
    assert [each.title for each in window.sequences.sequence.moments] == ["Pairs", "A race"]
    press(Qt.Key.Key_M, CONTROL)
    assert window.banner.message.text().startswith("The sequence has errors, so it cannot be changed here.")
    window.sequences.delete_moment()
    window.sequences.move_moment(1)
    window.sequences.set_note("lost")
    window.sequences.finish_editing()
    assert path.read_text() == text


def test_a_file_that_cannot_be_read_leaves_the_open_sequence(window, path, tmp_path, wait_for_moment):
    window.sequences.open(path)
    wait_for_moment()
    bad = tmp_path / "bad.sequence"
    bad.write_text("title = ")
    window.files.open_file(bad)
    assert window.banner.message.text().startswith("bad.sequence, line 1: Invalid value.")
    assert (window.sequences.path, window.sequences.index) == (path, 0)
    window.files.open_file(tmp_path / "missing.sequence")
    assert window.banner.message.text().startswith("There is no file")


@pytest.fixture
def new_path(tmp_path, monkeypatch):
    """Answer the dialog for a new file."""
    path = tmp_path / "new.sequence"
    monkeypatch.setattr("gui.window.sequences.player.choose_new_file", lambda *words: path)
    return path


def test_the_windows_state_becomes_a_moment_of_a_new_file(qtbot, window, new_path, wait_for_moment, press):
    step = window.page.step
    window.choose_variant("kogge-stone")
    step.settings.form.change_values(n=8, block="8", kind="exclusive")
    step.settings.schedule_kinds.choose("shuffle")
    step.settings.new_input_button.click()
    wait_for_recording(qtbot, step)
    step.choose_picture("Arrays")
    step.player.go_to(16)
    press(Qt.Key.Key_M, CONTROL)
    (moment,) = read_sequence(new_path)[0].moments
    assert moment == Moment(
        "Kogge-Stone: doubling distance", "scan", "kogge-stone", picture="Arrays", step=16, seed=1,
        settings={"n": 8, "block": "8", "kind": "exclusive"}, schedule="shuffle:0",
    )  # fmt: skip
    assert read_sequence(new_path)[0].title == "new"
    window.choose_pattern("reduction")
    window.sequences.go_to(0)
    wait_for_moment()
    assert_shows(window, moment)


def test_a_moment_is_added_after_the_current_one(window, path, wait_for_moment, press):
    window.sequences.open(path)
    wait_for_moment()
    window.page.step.player.go_to(11)
    press(Qt.Key.Key_M, CONTROL)
    assert window.sequences.index == 1
    assert [each.step for each in read_sequence(path)[0].moments] == [19, 11, 40, 7, 30]
    assert window.status.message_label.text() == "Added moment 2 of 5: Kogge-Stone: doubling distance"


def test_canceling_the_dialog_adds_nothing(window, press, monkeypatch):
    monkeypatch.setattr("gui.window.sequences.player.choose_new_file", lambda *words: None)
    press(Qt.Key.Key_M, CONTROL)
    assert (window.sequences.path, window.sequences.sequence.moments) == (None, ())


def test_other_pages_are_no_moments(window, press, new_path):
    window.teaching.show_shelf()
    press(Qt.Key.Key_M, CONTROL)
    assert window.banner.message.text() == "Only the page of a pattern can become a moment."
    assert not new_path.exists()


def test_opened_numbers_are_no_moment(qtbot, window, tmp_path, press, new_path):
    numbers = tmp_path / "numbers.npy"
    np.save(numbers, np.arange(9, dtype=np.int32))
    window.page.select_tab("Run")
    window.files.open_file(numbers)
    qtbot.waitUntil(lambda: window.bench.values is not None)
    press(Qt.Key.Key_M, CONTROL)
    assert window.banner.message.text().startswith("The input is an opened file")
    assert read_sequence(new_path)[0].moments == ()


def test_moments_are_moved_deleted_and_described(window, path, wait_for_moment):
    player = window.sequences
    player.open(path)
    wait_for_moment()

    def titles():
        assert read_sequence(path)[0] == player.sequence
        return [each.title for each in player.sequence.moments]

    player.move_moment(-1)
    assert titles() == ["Pairs", "Tree", "Divergence", "A race"]
    player.move_moment(1)
    assert (titles(), player.index) == (["Tree", "Pairs", "Divergence", "A race"], 1)
    player.delete_moment()
    assert (titles(), player.index) == (["Tree", "Divergence", "A race"], 1)
    player.set_note("First\nsecond\x07")
    player.set_title("  Half\nidle ")
    player.set_title(" ")
    player.finish_editing()
    assert titles() == ["Tree", "Half idle", "A race"]
    assert player.sequence.moments[1].note == "First\nsecond"
    for _ in range(3):
        player.delete_moment()
    assert (titles(), player.index, player.moment) == ([], -1, None)


def test_a_note_is_saved_when_the_window_closes(window, path, wait_for_moment):
    window.sequences.open(path)
    wait_for_moment()
    window.sequences.set_note("Last words")
    window.close()
    assert read_sequence(path)[0].moments[0].note == "Last words"


def test_changes_of_another_program_are_not_overwritten(window, path, wait_for_moment):
    window.sequences.open(path)
    wait_for_moment()
    edited = path.read_text().replace("A talk", "My talk")
    path.write_text(edited)
    window.sequences.set_note("lost")
    window.sequences.finish_editing()
    assert window.banner.message.text().startswith(
        "The sequence is not saved. talk.sequence was changed by another program."
    )
    assert path.read_text() == edited
    path.unlink()
    window.sequences.delete_moment()
    assert window.banner.message.text().startswith("The sequence is not saved. There is no file")


def test_an_unwritable_copy_is_reported(window, path, tmp_path, wait_for_moment, monkeypatch):
    window.sequences.open(path)
    wait_for_moment()
    gone = tmp_path / "gone" / "copy.sequence"
    monkeypatch.setattr("gui.window.sequences.player.choose_new_file", lambda *words: gone)
    assert not window.sequences.save_copy()
    assert window.banner.message.text().startswith(f"Cannot write {gone}: there is no folder")
    assert window.sequences.path == path


def test_a_copy_gets_the_suffix_and_is_the_open_file(window, path, tmp_path, wait_for_moment, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *words: (str(tmp_path / "copy"), ""))
    window.sequences.open(path)
    wait_for_moment()
    assert window.sequences.save_copy()
    window.sequences.delete_moment()
    assert len(read_sequence(path)[0].moments) == 4
    assert len(read_sequence(tmp_path / "copy.sequence")[0].moments) == 3


def test_an_image_is_found_among_the_samples_and_next_to_the_file(qtbot, window, tmp_path, gray, wait_for_moment):
    folder = tmp_path / "course"
    folder.mkdir()
    shutil.copy(gray, folder / "own.pgm")
    variant = next(iter(window.bench.patterns["convolution"].variants)).name
    moments = tuple(Moment(name, "convolution", variant, image=name) for name in ("own.pgm", "camera", "camera.pgm"))
    write_sequence(folder / "images.sequence", MomentSequence("Images", moments))
    for index, image in enumerate((folder / "own.pgm", SAMPLES / "camera.pgm", SAMPLES / "camera.pgm")):
        window.sequences.open(folder / "images.sequence") if not index else window.sequences.go_to(index)
        wait_for_moment()
        assert window.bench.image.path == image
        assert window.page.step.is_up_to_date


@pytest.mark.parametrize(
    ("place", "name"), [("course/own.pgm", "own.pgm"), ("own.pgm", ""), (str(SAMPLES / "camera.pgm"), "camera.pgm")]
)
def test_a_moment_names_an_image_that_its_file_can_reach(qtbot, window, tmp_path, gray, monkeypatch, place, name):
    image = tmp_path / place
    image.parent.mkdir(exist_ok=True)
    if not image.exists():
        shutil.copy(gray, image)
    (tmp_path / "course").mkdir(exist_ok=True)
    path = tmp_path / "course" / "a.sequence"
    monkeypatch.setattr("gui.window.sequences.player.choose_new_file", lambda *words: path)
    window.files.open_file(image)
    qtbot.waitUntil(lambda: window.bench.image.path == image)
    window.sequences.add_moment()
    assert read_sequence(path)[0].moments[0].image == name
    warned = "The moment does not name own.pgm: copy the image next to the sequence first."
    assert (window.banner.message.text() == warned) == (not name)


def test_a_moment_of_another_tab_suspends_the_lecture_and_the_next_continues_it(
    qtbot, window, tmp_path, wait_for_moment, press
):
    moments = MOMENTS[0], Moment("Run it", "reduction", "shared", tab="Run", settings={"n": 1000}), MOMENTS[1]
    path = tmp_path / "run.sequence"
    write_sequence(path, MomentSequence("Run", moments))
    window.sequences.open(path)
    wait_for_moment()
    press(Qt.Key.Key_F11)
    full_screen = Qt.WindowState.WindowFullScreen
    press(Qt.Key.Key_N)
    assert window.lecturing.view is None
    assert window.windowState() & full_screen
    assert window.page.tabs.tabText(window.page.tabs.currentIndex()) == "Run"
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["reduction"].params["n"] == 1000
    press(Qt.Key.Key_N)
    wait_for_moment()
    assert window.lecturing.view.tab is window.page.step
    assert window.page.step.updatesEnabled()
    press(Qt.Key.Key_N, SHIFT)
    assert window.lecturing.view is None
    press(Qt.Key.Key_Escape)
    assert not window.windowState() & full_screen
    press(Qt.Key.Key_N)
    step = wait_for_moment()
    assert window.lecturing.view is None
    window.sequences.go_to_previous()
    for host in FakeHost.instances:
        host.answers_later = True
    window.sequences.go_to_previous()
    assert not step.updatesEnabled(), "the previous recording is not painted first"
    qtbot.waitUntil(step.updatesEnabled)
    assert window.sequences.is_opening
    for host in FakeHost.instances:
        host.answers_later = False
        host.answer_all()
    assert wait_for_moment().player.moment == 19


def test_text_fields_keep_the_letter_n(window, path, wait_for_moment, press):
    window.sequences.open(path)
    wait_for_moment()
    window.page.step.source.code.setFocus()
    press(Qt.Key.Key_N)
    assert window.sequences.index == 0
