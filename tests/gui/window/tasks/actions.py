"""Actions for tables of tasks: each function returns a function of the desk."""

from __future__ import annotations

from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QTextCursor
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication, QComboBox, QTabBar

from gui.driving.window_session import wait_until
from tests.gui.window.walker import PATIENCE_S, Key

NO_MODIFIER = Qt.KeyboardModifier.NoModifier


def pattern(name, variant=0):
    """Show a pattern and, by its number's key, a variant."""

    def act(desk):
        desk.show_pattern(name)
        desk.press(Key.Key_F2)
        if variant:
            desk.press(Key(Key.Key_0 + variant))
            desk.wait_until_idle()

    return act


def example(name):
    return choose("Example", name)


def press(*keys, modifier=NO_MODIFIER):
    return lambda desk: desk.press(*keys, modifier=modifier)


def click(name):
    return lambda desk: desk.click(desk.find(name))


def choose(box, text):
    """Choose an entry of a list by its arrow keys, and wait until what it changes is computed."""

    def act(desk):
        desk.choose(box, text)
        desk.wait_until_idle()

    return act


def open_list(name):
    """Open a list by a click."""

    def act(desk):
        box = desk.find(name, QComboBox)
        desk.click(box)
        desk.wait_until(box.view().isVisible)

    return act


def close_list(desk):
    """Close the open list by Escape."""
    view = next(each.view() for each in desk.window.findChildren(QComboBox) if each.view().isVisible())
    QTest.keyClick(view, Key.Key_Escape)
    desk.wait_until(lambda: not view.isVisible())


def enter(field, text):
    """Type a value into a field of the visible form, and press Enter."""

    def act(desk):
        form = desk.step_tab.settings.form if desk.page.stepping else desk.page.form
        box = form.fields[field].box
        box.setFocus()
        box.selectAll()
        QTest.keyClicks(box, text)
        QTest.keyClick(QApplication.focusWidget(), Key.Key_Return)

    return act


def answer_dialog(name):
    """Answer the next dialog for a file with a file of the task."""
    return lambda desk: desk.answer_file_dialog(desk.files / name)


def write(name, text):
    """Write a file of the task."""
    return lambda desk: (desk.files / name).write_text(text)


def open_file(name):
    """Open a file of the task by Ctrl+O, and wait until its page is there."""

    def act(desk):
        desk.answer_file_dialog(desk.files / name)
        desk.press(Key.Key_O, modifier=Qt.KeyboardModifier.ControlModifier)
        desk.settle()

    return act


def record(desk):
    """Open the Step tab, and wait for its recording."""
    desk.record_steps()


def tab(name):
    """Click a tab."""

    def act(desk):
        bar = next(
            each
            for each in desk.window.findChildren(QTabBar)
            if each.isVisible() and name in map(each.tabText, range(each.count()))
        )
        place = next(place for place in range(bar.count()) if bar.tabText(place) == name)
        desk.click(bar, bar.tabRect(place).center())

    return act


def sees(*texts):
    """Wait until texts are painted."""

    def act(desk):
        for text in texts:
            assert desk.sees(text), f'"{text}" is not painted: {desk.painted_text()}'

    return act


def misses(*texts):
    """Check that texts are not painted."""

    def act(desk):
        for text in texts:
            assert text not in desk.painted_text(), text

    return act


def expect(read, value):
    """Wait until what is read of the desk has a value."""

    def act(desk):
        assert wait_until(lambda: read(desk) == value, PATIENCE_S), f"{read(desk)!r}, not {value!r}"

    return act


def picture(name):
    return lambda desk: desk.take_picture(name)


def begin_lecture(desk):
    """Press F11, in a window of the desk's size instead of the full screen."""
    desk.press(Key.Key_F11)
    desk.restore_size()
    view = desk.window.lecturing.view
    desk.wait_until(lambda: (view.width(), view.height()) == desk.size)


def drag(widget, by):
    """Drag the left button from the middle of a widget."""

    def act(desk):
        found = desk.find(widget)
        middle = found.rect().center()
        QTest.mousePress(found, Qt.MouseButton.LeftButton, pos=middle)
        QTest.mouseMove(found, middle + QPoint(*by))
        QTest.mouseRelease(found, Qt.MouseButton.LeftButton, pos=middle + QPoint(*by))

    return act


def step_until(read, value):
    """Press → until what is read of the desk has a value."""

    def act(desk):
        while read(desk) != value:
            before = desk.step_tab.player.moment
            desk.press(Key.Key_Right)
            assert desk.step_tab.player.moment == before + 1, f"{value!r} does not come"

    return act


def comment_out(function, line):
    """Comment out the first line with a text after a function's head, by keys."""

    def act(desk):
        code = desk.page.source.code
        lines = code.toPlainText().split("\n")
        start = next(number for number, text in enumerate(lines) if function in text)
        place = next(number for number in range(start, len(lines)) if line in lines[number])
        code.setTextCursor(QTextCursor(code.document().findBlockByNumber(place)))
        code.ensureCursorVisible()
        desk.click(code.viewport(), code.cursorRect().center())
        desk.press(Key.Key_Home)
        QTest.keyClicks(code, "// ")

    return act
