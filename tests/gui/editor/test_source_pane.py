from __future__ import annotations

import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QColor, QTextCharFormat, QTextCursor
from PyQt6.QtWidgets import QApplication, QFileDialog

from gpu.base.errors import Diagnostic
from gpu.base.paths import KERNELS
from gpu.messages.verdicts import Remedy
from gpu.patterns import all_patterns
from gui.editor.kernel_lines import find_kernel_lines
from gui.editor.source_pane import SourcePane
from gui.painting.theme import DARK, LIGHT, Look, look, set_look

WAVE = QTextCharFormat.UnderlineStyle.WaveUnderline
EVERY_KERNEL = [
    (variant.file or pattern.kernel_file, kernel)
    for pattern in all_patterns().values()
    for variant in pattern.variants
    for kernel in variant.kernels
]
OF_FILE = {file: [each for each in EVERY_KERNEL if each[0] == file] for file, _ in EVERY_KERNEL}


@pytest.mark.parametrize(("file", "kernel"), EVERY_KERNEL)
def test_every_declared_kernel_is_found_whole(file, kernel):
    lines = (KERNELS / file).read_text().split("\n")
    first, last = find_kernel_lines("\n".join(lines), kernel)
    body = lines[first : last + 1]
    assert body[0].startswith("//")
    assert sum("__global__" in line for line in body) == 1
    assert any(kernel in line for line in body)
    assert lines[last] == "}"
    assert "\n".join(body).count("{") == "\n".join(body).count("}")


def test_a_kernel_that_is_not_there():
    assert find_kernel_lines("__global__ void other() {}", "mine") == (0, 0)
    assert find_kernel_lines("", "mine") == (0, 0)


def test_a_declaration_or_a_call_is_not_the_kernel():
    text = "// calls __global__ void k(\n__global__ void k(int n);\n\n__global__ void k(int n) {\n}\n"
    assert find_kernel_lines(text, "k") == (3, 4)


def test_every_file_is_set_in_the_font_of_code_in_whatever_order_they_come(qtbot):
    pane = SourcePane()
    qtbot.addWidget(pane)
    pane.setStyleSheet('QPlainTextEdit[role="code"] { font-size: 23px; }')
    with qtbot.waitExposed(pane):
        pane.show()
    for file, kernel in (("scan.cu", "scan_blelloch"), ("reduction.cu", "reduce_tree"), ("scan.cu", "scan_blelloch")):
        pane.show_kernel(file, kernel)
        assert pane.code.document().defaultFont().pixelSize() == 23
    pane.setStyleSheet('QPlainTextEdit[role="code"] { font-size: 31px; }')
    pane.show_kernel("reduction.cu", "reduce_tree")
    assert pane.code.document().defaultFont().pixelSize() == 31


@pytest.mark.parametrize(
    ("file", "kernel"),
    [
        pytest.param(*each, marks=() if each in (OF_FILE[each[0]][0], OF_FILE[each[0]][-1]) else pytest.mark.sweep)
        for each in EVERY_KERNEL
    ],
)
def test_the_pane_scrolls_to_the_kernel_and_colors_it(qtbot, file, kernel):
    pane = SourcePane()
    qtbot.addWidget(pane)
    pane.resize(500, 300)
    with qtbot.waitExposed(pane):
        pane.show()
    pane.show_kernel(file, kernel)
    text = (KERNELS / file).read_text()
    assert pane.code.toPlainText() == text
    first, _ = find_kernel_lines(text, kernel)
    block = pane.code.document().findBlockByNumber(first)
    assert block.isVisible()
    assert pane.code.firstVisibleBlock().blockNumber() <= first
    colors = {span.format.foreground().color().name() for span in block.layout().formats()}
    assert "#7f8ea3" in colors or "#637085" in colors
    assert pane.title.text() == file
    assert pane.kernel.text() == kernel


def test_a_file_that_is_gone_is_said_in_the_pane(qtbot):
    pane = SourcePane()
    qtbot.addWidget(pane)
    pane.show_kernel("gone.cu", "k")
    assert "Cannot read" in pane.code.toPlainText()


@pytest.fixture
def pane(qtbot):
    made = SourcePane()
    qtbot.addWidget(made)
    made.resize(500, 300)
    with qtbot.waitExposed(made):
        made.show()
    made.show_kernel("convolution.cu", "convolve_tiled")
    return made


def move_cursor(pane, words, behind=True):
    """Put the cursor behind the first place of some words, or before it."""
    cursor = pane.code.textCursor()
    cursor.setPosition(pane.document.text.index(words) + len(words) * behind)
    pane.code.setTextCursor(cursor)
    pane.code.setFocus()


def test_typing_edits_and_the_badge_says_so_until_it_is_undone(qtbot, pane):
    original = pane.document.text
    assert pane.edited_badge.isHidden()
    assert not pane.revert.isEnabled()
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, " int a;")
    assert "__syncthreads(); int a;" in pane.document.text
    assert pane.edited_badge.isVisible()
    assert pane.edited_badge.text() == "edited"
    for _ in range(2):
        qtbot.keyClick(pane.code, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: pane.document.text == original)
    qtbot.waitUntil(pane.edited_badge.isHidden)


def test_revert_goes_back_and_can_itself_be_undone(qtbot, pane):
    original = pane.document.text
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, "x")
    edited = pane.document.text
    qtbot.mouseClick(pane.revert, Qt.MouseButton.LeftButton)
    assert pane.document.text == original
    assert pane.edited_badge.isHidden()
    qtbot.keyClick(pane.code, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert pane.document.text == edited
    assert pane.edited_badge.isVisible()


def test_revert_leaves_the_cursor_where_the_edit_was(qtbot, pane):
    move_cursor(pane, "__syncthreads();")
    before = pane.code.textCursor().position()
    qtbot.keyClicks(pane.code, " // here")
    top = pane.code.firstVisibleBlock().blockNumber()
    qtbot.mouseClick(pane.revert, Qt.MouseButton.LeftButton)
    assert pane.code.textCursor().position() == before
    assert pane.code.firstVisibleBlock().blockNumber() == top
    # One that stands elsewhere stays there.
    pane.document.replace(f"// 𝛼𝛽\n{pane.document.text}")
    assert pane.code.textCursor().position() == before + len("// 𝛼𝛽\n") + 2
    qtbot.mouseClick(pane.revert, Qt.MouseButton.LeftButton)
    assert pane.code.textCursor().position() == before
    assert not pane.document.edited


def test_panes_of_the_same_texts_show_the_same_edits(qtbot, pane):
    other = SourcePane(pane.sources)
    qtbot.addWidget(other)
    other.show_kernel("convolution.cu", "convolve_naive")
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, " // here")
    assert "__syncthreads(); // here" in other.code.toPlainText()
    assert other.edited_badge.text() == "edited"
    pane.show_kernel("histogram.cu", "histogram_racy")
    pane.show_kernel("convolution.cu", "convolve_tiled")
    assert "__syncthreads(); // here" in pane.code.toPlainText()


def show_diagnostics(pane, *lines, severity="error"):
    pane.document.show_diagnostics(
        pane.document.text, [Diagnostic(line, 5, 9, severity, f"wrong in {line}") for line in lines]
    )


def test_problems_are_underlined_told_and_gone_through(qtbot, pane):
    lines = pane.document.text.splitlines()
    first, second, *_ = (number for number, line in enumerate(lines, 1) if line.startswith("__constant__"))
    show_diagnostics(pane, first, second)
    assert pane.strip.isVisible()
    assert pane.strip.message.text() == f"Line {first}: wrong in {first}"
    waves = [each for each in pane.code.extraSelections() if each.format.underlineStyle() == WAVE]
    assert [each.cursor.blockNumber() + 1 for each in waves] == [second, first]
    assert {each.cursor.selectionEnd() - each.cursor.selectionStart() for each in waves} == {4}
    move_cursor(pane, "#ifndef", behind=False)
    for line in (first, second, first):
        qtbot.mouseClick(pane.strip.next_button, Qt.MouseButton.LeftButton)
        assert pane.code.textCursor().blockNumber() + 1 == line
        assert pane.strip.message.text() == f"Line {line}: wrong in {line}"
    show_diagnostics(pane)
    assert pane.strip.isHidden()


def test_a_problem_moves_with_its_line(qtbot, pane):
    show_diagnostics(pane, 70)
    move_cursor(pane, "// Convolution", behind=False)
    qtbot.keyClick(pane.code, Qt.Key.Key_Return)
    assert [(problem.line, problem.diagnostic.message) for problem in pane.code.problems] == [(71, "wrong in 70")]


def test_what_was_found_in_an_older_text_is_not_shown(qtbot, pane):
    old = pane.document.text
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, "x")
    pane.document.show_diagnostics(old, [Diagnostic(3, 1, 2, "error", "old")])
    assert not pane.code.problems
    assert pane.strip.message.text() == "Checking…"


def test_that_a_text_compiles_is_all_that_is_said_of_it(qtbot, pane):
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, "//")
    pane.document.show_diagnostics(pane.document.text, [])
    assert pane.strip.message.text() == "No compile errors.", "what its run does wrong, the compiler cannot see"


def test_a_run_that_fails_is_shown_at_its_line_until_one_goes_well(qtbot, pane):
    text = pane.document.text
    pane.document.show_run(text, [Diagnostic(74, 1, 10_000, "error", "Out of bounds.")])
    assert pane.strip.message.text() == "Line 74: Out of bounds."
    pane.document.show_run(text, [])
    assert pane.strip.isHidden()


def test_a_run_of_a_mended_text_takes_away_what_the_edit_has_made_void(qtbot, pane):
    pane.document.show_run(pane.document.text, [Diagnostic(74, 1, 10_000, "error", "A race.")])
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, "__syncthreads();")
    pane.document.show_run(pane.document.text, [])
    assert pane.document.problems == ()


def test_what_the_compiler_warns_of_does_not_hide_what_a_run_does_wrong_there(qtbot, pane):
    text = pane.document.text
    warning = Diagnostic(74, 1, 3, "warning", "Unused.")
    pane.document.show_diagnostics(text, [warning])
    pane.document.show_run(text, [Diagnostic(74, 1, 3, "warning", "Never written.")])
    assert [problem.diagnostic for problem in pane.document.problems] == [warning]
    assert pane.strip.message.text() == "Line 74: Unused."
    assert pane.strip.property("tone") == "warn"
    pane.document.show_run(text, [Diagnostic(74, 1, 3, "error", "A race.")])
    assert {problem.diagnostic.message for problem in pane.document.problems} == {"Unused.", "A race."}
    assert pane.strip.message.text() == "Line 74: A race."
    move_cursor(pane, text.split("\n")[73].strip())
    assert pane.strip.message.text() == "Line 74: A race."
    assert pane.strip.property("tone") == "bad"


def background_color(pane, line):
    """Return the color at the lower right end of a line that is in view."""
    code, viewport = pane.code, pane.code.viewport()
    place = code.blockBoundingGeometry(code.document().findBlockByNumber(line - 1)).translated(code.contentOffset())
    return viewport.grab().toImage().pixelColor(viewport.width() - 3, int(place.bottom()) - 1)


def test_the_ground_of_a_kernel_moves_with_its_lines(qtbot, pane):
    first, _ = find_kernel_lines(pane.document.text, "convolve_tiled")
    raised = QColor(look().theme.raised)
    assert background_color(pane, first + 1) == background_color(pane, first + 2) == raised
    move_cursor(pane, "// Convolution", behind=False)
    qtbot.keyClick(pane.code, Qt.Key.Key_Return)
    pane.code.verticalScrollBar().setValue(first - 1)
    assert [background_color(pane, line) == raised for line in (first + 1, first + 2, first + 3)] == [False, True, True]


def test_lines_can_be_marked_and_clicked(qtbot, pane):
    pane.mark_line(12)
    assert background_color(pane, 12) == QColor(look().theme.accent_soft)
    assert background_color(pane, 13) != QColor(look().theme.accent_soft)
    first = pane.code.firstVisibleBlock().blockNumber() + 1
    assert first <= 12 < first + 20
    pane.mark_line(None)
    assert background_color(pane, 12) != QColor(look().theme.accent_soft)
    bar = pane.code.verticalScrollBar()
    bar.setValue(20)
    height = pane.code.blockBoundingRect(pane.code.firstVisibleBlock()).height()
    place = QPoint(30, round(2.5 * height + pane.code.contentOffset().y()))
    for widget in (pane.code.viewport(), pane.code._gutter):
        with qtbot.waitSignal(pane.line_clicked) as clicked:
            qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=place)
        assert clicked.args == [23]


def test_only_what_is_in_view_is_colored_and_the_rest_when_it_comes_there(qtbot, pane):
    document = pane.document
    document.replace("int a = 1;\n" * 3000)
    top = document.findBlockByNumber(0)
    bottom = document.findBlockByNumber(2990)
    pane.code.verticalScrollBar().setValue(0)
    qtbot.waitUntil(lambda: bool(top.layout().formats()))
    assert not bottom.layout().formats()
    pane.code.verticalScrollBar().setValue(2990)
    assert bottom.layout().formats()


def test_a_comment_that_opens_colors_the_lines_below(qtbot, pane):
    document = pane.document
    document.replace("int a;\nint b;\nint c;\n")
    pane.code.setFocus()
    qtbot.keyClick(pane.code, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)

    def colors(line):
        return [span.format.foreground().color().name() for span in document.findBlockByNumber(line).layout().formats()]

    keyword = colors(2)
    qtbot.keyClicks(pane.code, "/*")
    comment = colors(2)
    assert comment != keyword
    assert len(comment) == 1
    qtbot.keyClicks(pane.code, "*/")
    assert colors(2) == keyword


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("    int a;|", ["Return", "b"], "    int a;\n    b|"),
        ("  if (x) {|", ["Return"], "  if (x) {\n      |"),
        ("{|}", ["Return"], "{\n    |\n}"),
        ("|  a", ["Return"], "\n|  a"),
        ("a|", ["Return", "Tab", "b"], "a\n    b|"),
        ("  a|", ["Return", "Tab", "Tab", "Backtab", "b"], "  a\n    b|"),
        ("    |", ["}"], "}|"),
        ("a[|", ["}"], "a[}|"),
        ("a|", ["Tab"], "a|"),
        ("    |a", ["Tab"], "    |a"),
        ("      a|", ["Backtab"], "      a|"),
    ],
)
def test_indentation(qtbot, pane, before, keys, after):
    pane.document.replace(before.replace("|", ""))
    cursor = pane.code.textCursor()
    cursor.setPosition(before.index("|"))
    pane.code.setTextCursor(cursor)
    pane.code.setFocus()
    for key in keys:
        if len(key) == 1:
            qtbot.keyClicks(pane.code, key)
        else:
            qtbot.keyClick(pane.code, getattr(Qt.Key, f"Key_{key}"))
    text, place = pane.document.text, pane.code.textCursor().position()
    assert text[:place] + "|" + text[place:] == after


def test_tab_moves_the_selected_lines_and_one_undo_takes_it_back(qtbot, pane):
    pane.document.replace("a\n\nb\nc\n")
    cursor = pane.code.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(5, cursor.MoveMode.KeepAnchor)
    pane.code.setTextCursor(cursor)
    qtbot.keyClick(pane.code, Qt.Key.Key_Tab)
    assert pane.document.text == "    a\n\n    b\nc\n"
    qtbot.keyClick(pane.code, Qt.Key.Key_Backtab)
    assert pane.document.text == "a\n\nb\nc\n"
    pane.code.undo()
    assert pane.document.text == "    a\n\n    b\nc\n"


def test_save_as_and_open(qtbot, pane, tmp_path, monkeypatch):
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, " int größe;".replace("ö", "oe").replace("ß", "ss"))
    text = pane.document.text
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "mine"), ""))
    with qtbot.waitSignal(pane.saved) as saved:
        qtbot.keyClick(pane.code, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert saved.args == [str(tmp_path / "mine.cu")]
    assert (tmp_path / "mine.cu").read_text() == text
    assert pane.edited_badge.isVisible()
    assert not pane.document.unsaved
    pane.document.replace(pane.document.original)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(tmp_path / "mine.cu"), ""))
    qtbot.mouseClick(pane.open, Qt.MouseButton.LeftButton)
    assert pane.document.text == text
    assert not pane.document.unsaved


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("gone.cu", None, "There is no file"),
        ("picture.cu", b"\xff\xfe\x00", "is not a text file"),
        ("zeros.cu", b"\0\0", "is not a text file"),
        ("huge.cu", b" " * (4 * 2**20 + 1), "too large"),
    ],
)
def test_a_file_that_is_no_kernel_is_told_and_the_text_stays(qtbot, pane, tmp_path, monkeypatch, name, content, reason):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    text = pane.document.text
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(tmp_path / name), ""))
    with qtbot.waitSignal(pane.failed) as failed:
        qtbot.mouseClick(pane.open, Qt.MouseButton.LeftButton)
    assert reason in failed.args[0]
    assert name in failed.args[0]
    assert pane.document.text == text


def test_a_folder_that_takes_no_file_is_told_and_the_text_stays_unsaved(qtbot, pane, tmp_path, monkeypatch):
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, "x")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "no" / "mine.cu"), ""))
    with qtbot.waitSignal(pane.failed) as failed:
        qtbot.mouseClick(pane.save, Qt.MouseButton.LeftButton)
    assert failed.args[0].startswith("Cannot write ")
    assert "mine.cu" in failed.args[0]
    assert pane.document.unsaved


def test_a_pane_that_is_hidden_for_a_while_shows_the_same_lines_afterwards(qtbot):
    pane = SourcePane()
    qtbot.addWidget(pane)
    pane.resize(500, 300)
    pane.show_kernel("scan.cu", "scan_brent_kung")
    with qtbot.waitExposed(pane):
        pane.show()
    first, _ = find_kernel_lines((KERNELS / "scan.cu").read_text(), "scan_brent_kung")
    assert pane.code.firstVisibleBlock().blockNumber() in (first - 1, first)
    for place in (lambda: pane.mark_line(280), lambda: pane.code.verticalScrollBar().setValue(10)):
        place()
        there = pane.code.verticalScrollBar().value()
        pane.hide()
        pane.show()
        assert pane.code.verticalScrollBar().value() == there


def test_no_kernel_is_no_line():
    assert find_kernel_lines("__global__ void some(int *data) {\n}", "") == (0, 0)


def test_what_is_said_belongs_to_the_text_that_is_seen(qtbot, pane):
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, " __gl")
    line = pane.code.textCursor().blockNumber() + 1
    found = Diagnostic(line, 1, 5, "error", "unknown type name '__gl'")
    pane.document.show_diagnostics(pane.document.text, [found])
    assert pane.strip.message.text() == f"Line {line}: unknown type name '__gl'"
    qtbot.keyClicks(pane.code, "o")
    assert pane.strip.message.text() == "Checking…"
    pane.document.show_diagnostics(pane.document.text, [])
    assert pane.strip.message.text() == "No compile errors."
    qtbot.keyClick(pane.code, Qt.Key.Key_Backspace)
    assert pane.strip.message.text() == "Checking…"
    pane.document.show_diagnostics(pane.document.text, [found])
    assert pane.strip.message.text() == f"Line {line}: unknown type name '__gl'"


def test_the_edit_that_mends_is_offered_and_can_be_undone(qtbot, pane):
    move_cursor(pane, "__syncthreads();")
    qtbot.keyClicks(pane.code, " ")
    text = pane.document.text
    pane.document.show_diagnostics(text, [])
    remedy = Remedy("Insert __syncthreads(); before line 8", 8, "    __syncthreads();")
    pane.document.show_run(text, (Diagnostic(7, 1, 3, "error", "A race."),), remedy)
    assert pane.strip.message.text() == "Line 7: A race."
    assert pane.strip.remedy.isVisibleTo(pane.strip)
    assert pane.strip.remedy.text() == "Insert __syncthreads(); before line 8"
    qtbot.mouseClick(pane.strip.remedy, Qt.MouseButton.LeftButton)
    lines = text.split("\n")
    assert pane.document.text == "\n".join([*lines[:7], "    __syncthreads();", *lines[7:]])
    assert pane.code.textCursor().blockNumber() == 7
    assert not pane.strip.remedy.isVisibleTo(pane.strip)
    pane.document.undo()
    assert pane.document.text == text


def test_a_recording_replaces_the_message_of_a_run_and_both_advise_the_offered_barrier(pane):
    run, recorded = (f"Race: {values}. Add a __syncwarp() between them." for values in ("wrote 9000", "wrote 2"))
    remedy = Remedy("Insert __syncthreads(); before line 8", 8, "    __syncthreads();")
    pane.document.show_run(pane.document.text, (Diagnostic(7, 1, 3, "error", run),), remedy)
    advice = "Add a __syncthreads() between them."
    assert pane.strip.message.toolTip() == f"Line 7: Race: wrote 9000. {advice}"
    pane.set_markers({}, {7: recorded})
    assert pane.strip.message.toolTip() == f"Line 7: Race: wrote 2. {advice}"
    pane.set_markers({}, {})
    message = " ".join(pane.strip.message.toolTip().split())
    assert message == f"Line 7: in Run, not in this recording: Race: wrote 9000. {advice}"


RACE = (
    "Race reported between Write access at reduction.cu:113 by block 0, thread 128 and Read access at "
    "reduction.cu:113 by block 0, thread 0 on element 128 of s (shared memory): wrote 115, read 115. "
    "Several threads update this element by one statement, in which no barrier fits: use an atomic operation."
)


@pytest.mark.parametrize(
    ("size", "values", "end"),
    [
        ((390, 250), True, "use an atomic operation."),
        ((390, 220), False, "use an atomic operation."),
        ((410, 160), False, "use an atomic operation."),
    ],
)
def test_a_race_is_told_to_its_end_where_there_is_room_and_leaves_the_code_the_most(qtbot, pane, size, values, end):
    pane.resize(*size)
    line = pane.code.textCursor().blockNumber() + 1
    pane.document.show_diagnostics(pane.document.text, [Diagnostic(line, 1, 3, "error", RACE)])
    said = pane.strip.message
    qtbot.waitUntil(lambda: pane.strip.isVisible() and said.heightForWidth(said.width()) <= said.height())
    assert said.text().endswith(end), said.text()
    assert ("wrote 115, read 115" in said.text()) == values
    assert pane.strip.height() < pane.code.height()
    assert said.toolTip().endswith("use an atomic operation.")
    assert f"Line {line}: Race between Write at line 113 by thread 128 and Read at" in said.toolTip()


def test_a_short_message_leaves_the_code_the_height(qtbot, pane):
    pane.resize(390, 400)
    pane.document.show_diagnostics(pane.document.text, [Diagnostic(1, 1, 3, "error", "A race.")])
    line = pane.strip.message.fontMetrics().lineSpacing()
    qtbot.waitUntil(lambda: pane.strip.isVisible() and pane.strip.height() < 2.5 * line)
    assert pane.strip.height() < pane.code.height() / 5


def test_advice_is_left_out_before_it_is_cut_where_an_edit_follows_it(pane):
    advice = "No barrier separates the two accesses: add a __syncthreads() between them."
    run = Diagnostic(7, 1, 3, "error", f"{RACE.partition(' Several')[0]} {advice}")
    remedy = Remedy("Insert __syncthreads(); before line 8", 8, "    __syncthreads();")
    pane.document.show_run(pane.document.text, (run,), remedy)
    ends = set()
    for height in range(160, 300, 10):
        pane.resize(390, height)
        QApplication.processEvents()
        ends.add(pane.strip.message.text().split()[-1])
    assert {"accesses.", "them."} < ends
    assert advice in " ".join(pane.strip.message.toolTip().split())


def test_threads_of_blocks_with_rows_are_told_with_both_numbers(pane):
    told = RACE.replace("block 0, thread 128", "block (0, 1), thread (4, 2)").replace("block 0,", "block (0, 1),")
    pane.document.show_diagnostics(pane.document.text, [Diagnostic(1, 1, 3, "error", told)])
    assert "by thread (4, 2) and Read at line 113 by thread 0" in pane.strip.message.toolTip()


def test_the_line_that_is_typed_in_stays_in_view_when_a_problem_is_told_below(qtbot, pane):
    pane.resize(400, 260)
    last = pane.code.firstVisibleBlock().blockNumber() + pane.code._count_visible_lines() - 2
    cursor = QTextCursor(pane.document.findBlockByNumber(last))
    pane.code.setTextCursor(cursor)
    top = pane.code.firstVisibleBlock().blockNumber()
    pane.document.show_diagnostics(pane.document.text, [Diagnostic(last + 1, 1, 3, "error", RACE)])
    below = pane.code.viewport().height
    qtbot.waitUntil(lambda: pane.strip.height() > 40 and 0 <= pane.code.cursorRect().top() < below())
    assert pane.code.firstVisibleBlock().blockNumber() > top


def test_a_look_that_was_left_for_a_moment_comes_back_to_every_line(qtbot, pane):
    def colors():
        formats = pane.document.firstBlock().layout().formats()
        return [each.format.foreground().color().name() for each in formats]

    def colored():
        pane.document.color(pane.document.firstBlock(), 0)
        return colors()

    set_look(Look(DARK, look().text_px))
    while not pane.document.color_more():
        pass
    dark = colored()
    set_look(Look(LIGHT, look().text_px))
    assert colored() != dark
    set_look(Look(DARK, look().text_px))
    assert colored() == dark
