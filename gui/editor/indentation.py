"""Editing operations for Return, Tab and the closing brace."""

from __future__ import annotations

from PyQt6.QtGui import QTextCursor

INDENT = 4


def insert_line_break(cursor: QTextCursor) -> None:
    """Insert a line with the current indentation, one level deeper after an opening brace."""
    cursor.beginEditBlock()
    cursor.removeSelectedText()
    text, column = cursor.block().text(), cursor.positionInBlock()
    depth = min(len(text) - len(text.lstrip(" ")), column)
    opens = text[:column].rstrip().endswith("{")
    closes = text[column:].lstrip().startswith("}")
    cursor.insertText("\n" + " " * (depth + INDENT * opens))
    if opens and closes:
        position = cursor.position()
        cursor.insertText("\n" + " " * depth)
        cursor.setPosition(position)
    cursor.endEditBlock()


def insert_closing_brace(cursor: QTextCursor) -> None:
    """Insert a closing brace, one level less indented if it is the first character of its line."""
    cursor.beginEditBlock()
    cursor.removeSelectedText()
    before = cursor.block().text()[: cursor.positionInBlock()]
    if before.endswith(" " * INDENT) and not before.strip():
        cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, INDENT)
    cursor.insertText("}")
    cursor.endEditBlock()


def indent_selection(cursor: QTextCursor, *, back: bool) -> None:
    """Indent or unindent the selected lines; without a selection, insert blanks up to the next tab stop."""
    cursor.beginEditBlock()
    if not cursor.hasSelection() and not back:
        cursor.insertText(" " * (INDENT - cursor.positionInBlock() % INDENT))
    else:
        first, last = _find_selected_lines(cursor)
        line = first
        while line.block().isValid() and line.blockNumber() <= last:
            text = line.block().text()
            line.movePosition(QTextCursor.MoveOperation.StartOfBlock)
            if back:
                blanks = min(len(text) - len(text.lstrip(" ")), INDENT)
                line.movePosition(QTextCursor.MoveOperation.Right, QTextCursor.MoveMode.KeepAnchor, blanks)
                line.removeSelectedText()
            elif text.strip():
                line.insertText(" " * INDENT)
            if not line.movePosition(QTextCursor.MoveOperation.NextBlock):
                break
    cursor.endEditBlock()


def _find_selected_lines(cursor: QTextCursor) -> tuple[QTextCursor, int]:
    """Return a cursor at the first selected line, and the number of the last."""
    first, last = QTextCursor(cursor), QTextCursor(cursor)
    first.setPosition(cursor.selectionStart())
    last.setPosition(cursor.selectionEnd())
    number = last.blockNumber()
    if last.atBlockStart() and number > first.blockNumber():
        number -= 1  # a selection that ends at a line's start does not include that line
    return first, number
