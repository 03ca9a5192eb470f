"""A label that renders Markdown from untrusted lessons: no HTML, and no images that would load files."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, Qt
from PyQt6.QtGui import QColor, QTextCharFormat, QTextCursor, QTextDocument
from PyQt6.QtWidgets import QLabel

from gui.painting.theme import code_font, look
from gui.qt.events import is_event_type

_FEATURES = (
    QTextDocument.MarkdownFeature.MarkdownDialectCommonMark.value | QTextDocument.MarkdownFeature.MarkdownNoHTML.value
)


class MarkdownLabel(QLabel):
    """A label with Markdown in the current theme.

    Parameters
    ----------
    name : str
        The accessible name.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.markdown = ""

    def show_text(self, markdown: str) -> None:
        """Show a Markdown text."""
        self.markdown = markdown
        self.setVisible(bool(markdown))
        self._render()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_event_type(event, QEvent.Type.StyleChange) and self.markdown:
            self._render()

    def _render(self) -> None:
        document = QTextDocument()
        font = self.font()
        font.setPixelSize(look().text_px)
        document.setDefaultFont(font)
        document.setMarkdown(_replace_images(self.markdown), QTextDocument.MarkdownFeature(_FEATURES))
        _format_code(document)
        self.setText(document.toHtml())


def _replace_images(markdown: str) -> str:
    """Replace images by links with their alternative text: a label would load the image's file."""
    return markdown.replace("![", "[")


def _format_code(document: QTextDocument) -> None:
    """Give code the font and background of kernel sources."""
    block = document.begin()
    while block.isValid():
        spans, iterator = [], block.begin()
        while not iterator.atEnd():
            spans.append(iterator.fragment())
            iterator += 1
        for span in spans:
            if not span.charFormat().fontFixedPitch():
                continue
            cursor = QTextCursor(document)
            cursor.setPosition(span.position())
            cursor.setPosition(span.position() + span.length(), QTextCursor.MoveMode.KeepAnchor)
            style = QTextCharFormat()
            style.setFont(code_font(look().small_px))
            style.setBackground(QColor(look().theme.raised))
            cursor.mergeCharFormat(style)
        block = block.next()
