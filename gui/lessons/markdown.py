"""A label with Markdown: headings, lists, emphasis and code, and nothing that a stranger's text could load or run."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, Qt
from PyQt6.QtGui import QColor, QTextCharFormat, QTextCursor, QTextDocument
from PyQt6.QtWidgets import QLabel

from gui.painting.theme import code_font, look
from gui.qt.events import is_of

_FEATURES = (
    QTextDocument.MarkdownFeature.MarkdownDialectCommonMark.value | QTextDocument.MarkdownFeature.MarkdownNoHTML.value
)


class MarkdownLabel(QLabel):
    """Shows a text as the look that is on has it.

    Parameters
    ----------
    name : str
        What assistive technology calls it.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.markdown = ""

    def say(self, markdown: str) -> None:
        """Show another text."""
        self.markdown = markdown
        self.setVisible(bool(markdown))
        self._render()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange) and self.markdown:
            self._render()

    def _render(self) -> None:
        document = QTextDocument()
        font = self.font()
        font.setPixelSize(look().text_px)
        document.setDefaultFont(font)
        document.setMarkdown(_without_pictures(self.markdown), QTextDocument.MarkdownFeature(_FEATURES))
        _color_code(document)
        self.setText(document.toHtml())


def _without_pictures(markdown: str) -> str:
    """Let a picture be its words: a label would look for its file."""
    return markdown.replace("![", "[")


def _color_code(document: QTextDocument) -> None:
    """Give code the font and the ground that kernels have elsewhere."""
    block = document.begin()
    while block.isValid():
        spans, place = [], block.begin()
        while not place.atEnd():
            spans.append(place.fragment())
            place += 1
        for span in spans:
            if not span.charFormat().fontFixedPitch():
                continue
            cursor = QTextCursor(document)
            cursor.setPosition(span.position())
            cursor.setPosition(span.position() + span.length(), QTextCursor.MoveMode.KeepAnchor)
            made = QTextCharFormat()
            made.setFont(code_font(look().small_px))
            made.setBackground(QColor(look().theme.raised))
            cursor.mergeCharFormat(made)
        block = block.next()
