"""Lessons in the window: they open, what they show is driven, progress is kept, and what is wrong is said."""

from __future__ import annotations

import json

import pytest
from PyQt6.QtCore import QMimeData, QPointF, Qt, QUrl
from PyQt6.QtGui import QDropEvent
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QFileDialog

from gpu.lessons.lesson_reader import LIBRARY, find_lesson_folders
from gpu.lessons.lesson_requests import read_shelf
from gpu.messages.events import Failure
from gpu.messages.lessons import JudgeTask, ReadLessons, ShowStep
from gui.model.sequences import list_builtin_sequences
from gui.model.settings import SavedSettings
from tests.gpu.lessons.lesson_folder import KERNEL, SHOW, TASK, write_lesson
from tests.gui.conftest import FakeHost, close_window
from tests.gui.lessons.student import ALT, CTRL, Student
from tests.gui.window.walker import Key

ASK = SHOW + '[question]\nask = "cells"\narray = "c"\nhints = ["Count.", "Eight threads."]\n'
VALUE = SHOW + '[question]\nask = "value"\narray = "c"\n'
COMPARE = '[show]\npattern = "reduction"\nvariant = "shared"\nparameters = { n = 4096 }\ntab = "compare"\n'


@pytest.fixture
def student(window):
    made = Student(window)
    made.side = lambda: next(host for host in FakeHost.instances if host.engine == "simulator")
    return made


@pytest.fixture
def lesson(student, tmp_path):
    """A lesson of one's own with a question, a task, another question and a pattern's Compare tab."""
    folder = tmp_path / "adding"
    folder.mkdir()
    write_lesson(folder, ASK, TASK + 'hints = ["Mind the end."]\n', VALUE, COMPARE)
    student.window.files.open_file(folder)
    student.wait_until(lambda: student.lessons.lesson is not None)
    student.wait_for_step()
    return student.lessons.lesson


def go_to_step(student, number):
    student.teaching.open_lesson(student.lessons.lesson, number)
    student.wait_for_step()


def drop_path(window, path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    window.dropEvent(QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    ))  # fmt: skip


def test_the_sidebar_leads_to_all_lessons_and_says_how_far_one_is(qtbot, student):
    student.open_shelf()
    window, shelf = student.window, student.teaching.shelf
    assert len(shelf.tiles) == len(find_lesson_folders(LIBRARY))
    assert window.sidebar.lessons.isChecked()
    assert window.sidebar.lessons.text() == "Lessons"
    assert window.windowTitle() == "Lessons – Lockstep"
    student.begin_lesson("08-reduction")
    student.give_answer(student.current_question.answer)
    student.press_check()
    steps = sum(len(lesson.steps) for lesson in read_shelf(LIBRARY).lessons)
    assert window.sidebar.lessons.text() == f"Lessons  1/{steps}"
    assert window.windowTitle().startswith("Reduction: one value from many")
    window.choose_pattern("scan")
    assert not student.pane.isVisible()
    student.click(window.sidebar.lessons)
    assert student.pane.isVisible()
    assert student.lessons.step_number == 0


def test_a_step_has_room_in_a_small_window(student, lesson):
    student.window.resize(1024, 700)
    step = student.lesson_page.step
    student.wait_until(lambda: student.window.width() == 1024 and step.width() >= step.minimumSizeHint().width())


def test_f7_opens_lessons_and_alt_goes_on_and_back(student, lesson):
    student.press(Key.Key_Right, modifier=ALT)
    assert student.lessons.step_number == 1
    student.press(Key.Key_Left, modifier=ALT)
    student.wait_for_step()
    assert student.lessons.step_number == 0
    student.press(Key.Key_Left, modifier=ALT)
    assert student.lessons.step_number == 0
    student.press(Key.Key_F7)
    assert student.teaching.shows_shelf
    assert not student.pane.isVisible()
    student.press(Key.Key_F7)
    assert student.pane.isVisible()


def test_keys_that_cells_do_not_use_work_while_they_have_the_focus(student, lesson):
    player, pad = student.lesson_page.step.player, student.question.answer_box.pad
    before = player.moment
    pad.setFocus()
    student.press(Key.Key_Right)
    assert player.moment == before, "the arrows choose cells"
    student.press(Key.Key_Right, modifier=Qt.KeyboardModifier.ShiftModifier)
    assert player.moment != before
    pad.setFocus()
    student.press(Key.Key_Right, modifier=ALT)
    assert student.lessons.step_number == 1
    student.press(Key.Key_Left, modifier=ALT)
    student.wait_for_step()
    student.give_answer(student.current_question.answer)
    student.press_check()
    before, pad = player.moment, student.question.answer_box.pad
    pad.setFocus()
    student.press(Key.Key_Left)
    assert player.moment == before - 1, "the answer is given: the arrows step"


def test_the_last_step_lists_skipped_questions_and_tasks(student, lesson):
    recap = student.pane.recap
    assert not recap.isVisible()
    student.give_answer(student.current_question.answer)
    student.press_check()
    go_to_step(student, len(lesson.steps) - 1)
    assert recap.isVisible()
    assert recap.summary.text() == "1 of 3 questions and tasks are done. Skipped:"
    assert [each.accessibleName() for each in recap.step_buttons] == [
        "Step 2, task: Step 2",
        "Step 3, question: Step 3",
    ]
    student.click(recap.step_buttons[1])
    student.wait_for_step()
    assert student.lessons.step_number == 2
    assert not recap.isVisible()
    student.give_answer(student.current_question.answer)
    student.press_check()
    student.teaching.open_lesson(lesson, 1)
    student.wait_for_step()
    student.lessons.finish_step()
    go_to_step(student, len(lesson.steps) - 1)
    assert recap.summary.text() == "3 of 3 questions and tasks are done."
    assert not recap.step_buttons
    student.lessons.for_class = True
    go_to_step(student, len(lesson.steps) - 1)
    assert not recap.isVisible()


def test_a_step_is_gone_to_by_its_dot(student, lesson):
    line = student.pane.steps_line
    student.click(line, line.compute_dot_rect(2).center().toPoint())
    student.wait_for_step()
    assert student.lessons.step_number == 2


def test_elements_are_answered_in_arrays_and_in_flow(student, lesson):
    step, box = student.lesson_page.step, student.question.answer_box
    assert step.panes.kinds.chosen == "Arrays"
    memory = step.panes.arrays
    student.wait_until(lambda: memory.panels)
    cell, places = memory._arrange_grids()
    for element in (0, 3):
        at = next(place for panel, place in zip(memory.panels, places, strict=True) if panel.title.startswith("c"))
        student.click(
            memory, QPointF(at[0] + (element + 0.5) * cell, at[1] + memory._title_height() + cell / 2).toPoint()
        )
    assert box.answer == {0, 3}
    assert {each.elements for each in memory._highlighted} == {frozenset({0, 3})}
    step.choose_picture("Flow")
    flow = step.panes.flow
    row = next(number for number, each in enumerate(flow.viewport.layout.rows) if each.storage.name == "a")
    flow.cell_clicked.emit(row, 1)  # of another array than the one that is asked about
    assert box.answer == {0, 3}


def test_cells_that_have_no_value_yet_are_clicked_in_flow_and_are_right(student, lesson):
    step, box = student.lesson_page.step, student.question.answer_box
    step.choose_picture("Flow")
    flow = step.panes.flow
    rows = flow.viewport.layout.rows
    row = next(number for number, each in enumerate(rows) if each.storage.name == "c")
    moment = step.player.moment
    for cell in range(len(rows[row].column)):
        student.click(flow, (flow.canvas.flow.cell_rect(row, cell).center() + flow.viewport.origin()).toPoint())
    assert flow.marks.selected is None  # what they will be made of is not to be seen
    assert step.player.moment == moment
    assert box.answer == student.current_question.answer == set(range(11))
    student.press_check()
    assert student.question.verdict.text().startswith("Right.")


def test_threads_are_clicked_on_their_circles_in_flow(student, tmp_path):
    reading = ASK.replace('"cells"\narray = "c"', '"writer"\narray = "c"\nelement = 9')
    write_lesson(tmp_path, reading.replace('{ line = "c[i] =" }', "{ end = true }"))
    student.window.files.open_file(tmp_path)
    student.wait_until(lambda: student.lessons.lesson is not None)
    student.wait_for_step()
    flow = student.lesson_page.step.panes.flow
    row = next(number for number, each in enumerate(flow.viewport.layout.rows) if each.storage.name == "c")
    student.click(flow, (flow.canvas.flow.circle_at(row, 9) + flow.viewport.origin()).toPoint())
    assert student.question.answer_box.answer == student.current_question.answer == (1, 1)


def test_threads_are_answered_in_the_lanes(student, tmp_path):
    write_lesson(tmp_path, SHOW + '[question]\nask = "lanes"\nblock = 1\n')
    student.window.files.open_file(tmp_path / "lesson.md")
    student.wait_until(lambda: student.lessons.lesson is not None)
    student.wait_for_step()
    card = student.lesson_page.step.panes.lanes
    for moment in (student.lesson_page.step.player.moment, 0):
        student.lesson_page.step.player.go_to(moment)
        assert card.block_label.text() == "block 1 of 2"  # it is the one that is asked about
    box = card.grid.box_at(QPointF(2.5 * card.grid.width() / 32, 6))
    student.click(card.grid, box.center().toPoint())
    assert student.question.answer_box.answer == {2}
    card.grid.thread_clicked.emit(0, 1)  # of another block
    assert student.question.answer_box.answer == {2}


def test_what_is_asked_is_not_to_be_seen_before_it_is_answered(student, tmp_path):
    racing = KERNEL.replace("blockIdx.x * blockDim.x + ", "")
    shown = SHOW.replace('at = { line = "c[i] =" }\n', "")
    write_lesson(tmp_path, shown + '[question]\nask = "mistake"\n', kernel=racing)
    student.window.files.open_file(tmp_path)
    student.wait_until(lambda: student.lessons.lesson is not None)
    student.wait_for_step()
    panes = student.lesson_page.step.panes
    assert panes.verdict.text() == ""
    assert panes.timeline.findings == ()
    assert not panes.counters.isVisible()
    student.give_answer(student.current_question.answer)
    student.press_check()
    assert "race" in panes.verdict.text()
    assert panes.timeline.findings
    assert panes.counters.isVisible()


def test_hints_come_by_key_and_another_question_has_none_shown(student, lesson):
    student.press(Key.Key_F9)
    student.press(Key.Key_F9)
    assert student.question.hints.hints_label.text() == "1. Count.\n2. Eight threads."
    student.press(Key.Key_F9)
    assert "Look at line 3: " in student.question.hints.hints_label.text()
    student.click(student.question.retry_button)
    student.wait_for_step()
    assert student.question.hints.hints_label.isHidden()
    assert student.side().requests[-1].seed == 1


def test_who_is_wrong_twice_is_given_a_hint(student, lesson):
    for attempts in (1, 2):
        student.answer_wrong()
        student.click(student.question.retry_button)
        student.wait_for_step()
        assert student.question.hints.visible_count == (attempts == 2)
    assert student.question.hints.hints_label.text() == "1. Count."
    go_to_step(student, 2)
    assert student.question.hints.visible_count == 0


def test_after_next_keys_answer(student, lesson):
    student.click(student.pane.next)
    student.wait_for_step()
    student.click(student.pane.next)
    student.wait_for_step()
    box = student.question.answer_box
    student.wait_until(lambda: box.isAncestorOf(student.window.focusWidget()))
    QTest.keyClicks(student.window.focusWidget(), "-1")
    student.press(Key.Key_Return)
    assert student.question.verdict.property("verdict") == "bad"
    assert student.question.retry_button.hasFocus()


def test_what_is_said_at_length_is_brought_into_view(student):
    student.begin_lesson("13-histogram")
    again, bar = student.question.retry_button, student.pane.scroll_area.verticalScrollBar()
    student.answer_wrong()
    student.wait_until(lambda: again.visibleRegion().boundingRect() == again.rect())
    assert bar.value() > 0


def test_f5_checks_an_answer(student, lesson):
    go_to_step(student, 2)
    student.give_answer(student.current_question.answer)
    student.press(Key.Key_F5)
    assert student.question.verdict.text().startswith("Right.")
    assert 2 in student.lessons.find_completed_steps(lesson)
    student.press(Key.Key_Return)  # the way on has the focus
    assert student.lessons.step_number == 3


def test_for_a_class_questions_are_shown_and_nothing_is_remembered(student, lesson):
    student.click(student.pane.for_class)
    student.wait_for_step()
    assert student.pane.for_class.isChecked()
    assert not student.question.check.isVisible()
    student.click(student.question.reveal)
    assert student.question.verdict.property("verdict") == "neutral"
    assert "It writes 0 to 10." in student.question.verdict.text()
    assert student.question.answer_box.pad.missing == frozenset(range(11))
    assert student.lessons.find_completed_steps(lesson) == frozenset()
    assert SavedSettings(student.window.saved_settings._store._path).shows_class
    student.click(student.pane.for_class)
    student.wait_for_step()
    assert student.question.check.isVisible()


def test_a_task_is_judged_and_its_failing_input_seen(student, lesson):
    go_to_step(student, 1)
    page = student.lesson_page
    assert page.source is page.writing.source
    student.write_text(KERNEL.replace("i < n", "i <= n"))
    student.grade()
    said = student.task.verdict.text()
    assert "The smallest input that fails: n = " in said
    assert page.writing.source.code.problems
    assert student.task.hints.visible_count == 0
    student.grade()
    assert student.task.hints.hints_label.text() == "1. Mind the end."
    student.click(student.task.show_failure_button)
    student.wait_until(lambda: not student.lessons.busy and page.stepping and page.step.is_up_to_date)
    moment, finding = page.step.models.recording.findings[0]
    assert page.step.player.moment == min(moment + 1, page.step.player.end)
    assert finding.kind == "out-of-bounds"
    (found,) = page.step.models.data.findings
    assert page.step.followed == found.thread
    assert found.faulty.elements
    assert page.step.panes.kinds.chosen == "Arrays"
    assert [panel.outside for panel in page.step.panes.arrays.panels if panel.outside] == [found.faulty.elements]
    assert "i <= n" in page.step.source.code.kernel_document.text
    student.press(Key.Key_F2)  # that key is Run's, which a lesson has not
    assert page.stepping
    student.click(page.tabs, page.tabs.tabRect(0).center())
    student.write_text(KERNEL)
    assert not student.task.verdict.isVisible()  # that was said of another text
    student.grade()
    assert student.task.verdict.text().startswith("Accepted")
    assert 1 in student.lessons.find_completed_steps(lesson)
    student.click(student.task.reset_button)
    assert page.writing.text == lesson.steps[1].task.start


def test_what_does_not_compile_is_marked_at_its_line(student, lesson):
    go_to_step(student, 1)
    student.write_text(KERNEL.replace("a[i] + b[i]", "a[i] + d[i]"))
    student.grade()
    assert "does not compile" in student.task.verdict.text()
    assert [problem.line for problem in student.lesson_page.writing.source.code.problems] == [4]
    assert not student.task.show_failure_button.isVisible()


def test_a_test_leaves_the_text_cursor_where_the_student_types(student, lesson):
    go_to_step(student, 1)
    student.write_text(KERNEL.replace("i < n", "i <= n"))
    code = student.lesson_page.writing.source.code
    QTest.keyClick(code, Key.Key_Home, CTRL)
    student.grade()
    assert [problem.line for problem in code.problems] == [4]
    assert code.textCursor().position() == 0


def test_judging_is_stopped(student, lesson):
    go_to_step(student, 1)
    host = student.side()
    host.answers_later = True
    student.press(Key.Key_F5)
    student.wait_until(lambda: any(isinstance(each, JudgeTask) for each in host.pending.values()))
    assert student.lessons.is_grading
    assert student.task.test_button.text() == "Testing…"
    assert student.window.header.stop.isEnabled()
    student.press(Key.Key_Escape)
    assert host.cancels == 1
    assert not student.lessons.busy
    assert student.task.test_button.isEnabled()
    host.answers_later = False
    student.grade()
    assert student.task.verdict.isVisible()


def test_another_step_while_one_is_recorded_shows_that_one(student, lesson):
    host = student.side()
    host.answers_later = True
    student.teaching.open_lesson(lesson, 2)
    student.teaching.open_lesson(lesson, 0)
    host.answer()
    student.wait_until(lambda: len(host.pending) == 1)
    assert student.question.scene is None  # what has come is of the step before
    host.answers_later = False
    host.answer_all()
    student.wait_for_step()
    assert student.current_question.kind == "cells"


def test_progress_and_what_is_written_are_kept(qtbot, student, lesson, make_window, store):
    student.give_answer(student.current_question.answer)
    student.press_check()
    go_to_step(student, 1)
    half = KERNEL.replace("a[i] + b[i]", "a[i]")
    student.write_text(half)
    close_window(student.window)
    kept = json.loads(store.read_text("utf-8"))
    assert kept[f"lessons/{lesson.folder}/steps"] == ["Step 1"]
    again = Student(make_window(SavedSettings(store)))
    again.window.teaching.show_shelf()
    again.wait_until(lambda: len(again.lessons.lessons) == len(find_lesson_folders(LIBRARY)) + 1)  # the folder as well
    found = next(each for each in again.lessons.lessons if each.folder == lesson.folder)
    again.teaching.open_lesson(found)
    again.wait_for_step()
    assert again.lessons.find_completed_steps(found) == {0}
    assert again.lessons.step_number == 1
    assert again.lesson_page.writing.text == half


def test_lines_are_kept_in_the_order_that_they_were_left_in(student, tmp_path):
    ordered = KERNEL.replace("// gap:", "// lines:")
    write_lesson(tmp_path, TASK.replace('"gap"', '"order"'), SHOW, kernel=ordered)
    student.window.files.open_file(tmp_path)
    student.wait_until(lambda: student.lessons.lesson is not None)
    lines = student.lesson_page.writing.line_order
    before = lines.lines
    lines.setFocus()
    QTest.keyClick(lines, Key.Key_Down, ALT)
    assert lines.lines == before[::-1]
    assert student.lesson_page.writing.assembled_pane.code.kernel_document.text == student.lesson_page.writing.text
    student.press(Key.Key_Right, modifier=ALT)
    student.wait_for_step()
    student.press(Key.Key_Left, modifier=ALT)
    assert lines.lines == before[::-1]
    student.click(student.task.reset_button)
    assert lines.lines == before


def test_a_folder_is_dropped_and_what_is_wrong_in_it_is_said(student, tmp_path):
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        write_lesson(tmp_path / name, ASK)
    file = tmp_path / "bad" / "lesson.md"
    file.write_text(file.read_text("utf-8").replace('ask = "cells"', 'ask = "guess"'), "utf-8")
    drop_path(student.window, tmp_path)
    student.wait_until(lambda: student.teaching.shows_shelf and student.teaching.shelf.errors_label.isVisible())
    assert student.teaching.shelf.errors_label.text().startswith("bad/lesson.md:")
    assert "'guess' is not a kind of question" in student.teaching.shelf.errors_label.text()
    assert next(iter(student.teaching.shelf.tiles)) == str(tmp_path / "good"), "the user's lessons are listed first"


def test_a_folder_without_lessons_says_so(student, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    drop_path(student.window, empty)
    student.wait_until(lambda: student.window.banner.isVisible())
    assert "There is no lesson in empty" in student.window.banner.message.text()
    assert not student.pane.isVisible()


def test_lessons_are_opened_by_a_dialog(student, tmp_path, monkeypatch):
    write_lesson(tmp_path, ASK)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    student.open_shelf()
    student.click(student.teaching.shelf.open)
    student.wait_until(lambda: student.lessons.lesson is not None)
    assert student.lessons.lesson.title == "Adding"
    student.teaching.close_lesson()
    student.press(Key.Key_O, modifier=CTRL)
    student.wait_until(lambda: student.lessons.lesson is not None)


def test_a_step_that_cannot_be_shown_says_file_line_and_reason(student, tmp_path):
    write_lesson(tmp_path, ASK.replace("c[i] =", "d[i] ="))
    student.window.files.open_file(tmp_path)
    student.wait_until(lambda: student.lessons.lesson is not None and not student.lessons.busy)
    student.wait_until(lambda: "is not in add.cu" in student.lesson_page.message_label.text())
    assert student.lesson_page.message_label.text().startswith(f"{tmp_path.name}/lesson.md:")
    assert student.lesson_page.stack.currentWidget() is student.lesson_page.message_label


def test_an_engine_that_fails_is_told_of_and_asked_again(student, lesson):
    go_to_step(student, 1)
    host = student.side()
    host.answers_later = True
    student.press(Key.Key_F5)
    student.wait_until(lambda: host.pending)
    host.answers_later = False
    host.answer(Failure("crash", "The engine ended.", "Try again."))
    student.wait_until(lambda: student.window.banner.isVisible())
    assert student.window.banner.message.text() == "The engine ended."
    assert not student.lessons.busy
    student.grade()


def test_a_step_of_another_tab_shows_the_patterns_own_page(student, lesson):
    to_pattern(student, 3)
    page = student.window.page
    assert page.pattern.name == "reduction"
    assert (page.variant.name, page.form.values["n"]) == ("shared", 4096)
    assert page.comparing is not None
    assert student.pane.isVisible()
    student.press(Key.Key_Left, modifier=ALT)
    student.wait_for_step()
    assert student.teaching.visible_page is not None


def to_pattern(student, number):
    student.teaching.open_lesson(student.lessons.lesson, number)
    student.wait_until(lambda: not student.lessons.busy and student.teaching.visible_page is None)


def test_a_patterns_scene_is_explored_on_its_own_page(student):
    student.begin_lesson("08-reduction")
    student.click(student.lesson_page.explore)
    page = student.window.page
    assert page.pattern.name == "reduction"
    assert page.variant.name == "neighbored"
    assert page.stepping
    assert page.step.settings.params["values"] == "3 1 7 0 4 1 6 3"
    assert student.pane.isVisible()


def test_a_rungs_limit_leads_to_the_lesson_that_lifts_it(student):
    window = student.window
    window.choose_pattern("reduction")
    window.choose_variant("neighbored-less")
    assert not window.page.idea.lesson.isVisible()  # nobody has read the lessons yet
    student.lessons.preload_builtin_lessons()
    student.wait_until(lambda: window.page.idea.lesson.isVisible())
    assert window.page.idea.lesson.text() == "Lesson: Coalesced access: sectors per request"
    window.choose_variant("peak")
    assert not window.page.idea.lesson.isVisible()
    window.choose_variant("neighbored")
    student.click(window.page.idea.lesson)
    student.wait_for_step()
    assert student.lessons.lesson.name == "08-reduction"
    assert student.pane.isVisible()


def test_a_lesson_whose_file_has_changed_is_read_anew(student, lesson, tmp_path):
    write_lesson(tmp_path / "adding", VALUE)
    student.window.files.open_file(tmp_path / "adding")
    student.wait_until(lambda: len(student.lessons.lesson.steps) == 1)
    student.wait_for_step()
    assert student.current_question.kind == "value"


def test_our_lessons_are_read_once(student):
    student.open_shelf()
    student.press(Key.Key_F7)
    student.lessons.preload_builtin_lessons()
    requests = [each for each in student.side().requests if isinstance(each, ReadLessons)]
    assert requests == [ReadLessons()]
    assert not any(isinstance(each, ShowStep) for each in student.side().requests)


def test_everything_is_reached_where_text_is_large(student, lesson):
    window = student.window
    for size in ("normal", "large", "lecture hall"):
        window.appearance.set_text_size(size)
        student.wait_until(lambda: student.pane.width() <= max(322, 0.3 * window.width()))
        assert window.sidebar.isVisible() == (size == "normal")
        assert student.pane.next.height() >= student.pane.next.sizeHint().height()
    student.press(Key.Key_F7)
    assert window.sidebar.isVisible()


def test_the_list_of_lessons_offers_lectures(qtbot, window):
    window.teaching.show_shelf()
    shelf = window.teaching.shelf
    qtbot.waitUntil(lambda: shelf.isVisible())
    titles = [title for title, _ in list_builtin_sequences()]
    assert list(shelf.lectures) == titles
    qtbot.mouseClick(shelf.lectures[titles[1]], Qt.MouseButton.LeftButton)
    assert window.sequences.sequence.title == titles[1]
    assert not window.teaching.shows_shelf
    assert (window.page.pattern.name, window.page.stepping) == ("scan", True)
