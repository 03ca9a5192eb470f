"""A label that renders Markdown from untrusted lessons: no HTML, and no images that would load files."""

from __future__ import annotations

from collections.abc import Iterator

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QColor, QTextCharFormat, QTextCursor, QTextDocument, QTextFormat, QTextFragment
from PyQt6.QtWidgets import QLabel

from gui.painting.theme import code_font, look, resize_font
from gui.qt.events import StyleListener

_FEATURES = (
    QTextDocument.MarkdownFeature.MarkdownDialectCommonMark.value | QTextDocument.MarkdownFeature.MarkdownNoHTML.value
)


class MarkdownLabel(StyleListener, QLabel):
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

    def _restyle(self) -> None:
        if self.markdown:
            self._render()

    def _render(self) -> None:
        document = QTextDocument()
        font = resize_font(self.font(), look().text_px)
        document.setDefaultFont(font)
        document.setMarkdown(self.markdown, QTextDocument.MarkdownFeature(_FEATURES))
        _replace_images(document)
        _format_code(document)
        self.setText(document.toHtml())


def _replace_images(document: QTextDocument) -> None:
    """Replace images by their alternative text: a label would load the image's file, which may be any file."""
    for span, cursor in reversed(list(_iterate_spans(document))):  # from the end, so that positions stay valid
        if span.charFormat().isImageFormat():
            text = span.charFormat().property(QTextFormat.Property.ImageAltText.value)
            cursor.insertText(str(text or ""), QTextCharFormat())


def _format_code(document: QTextDocument) -> None:
    """Give code the font and background of kernel sources."""
    for span, cursor in list(_iterate_spans(document)):
        if span.charFormat().fontFixedPitch():
            style = QTextCharFormat()
            style.setFont(code_font(look().small_px))
            style.setBackground(QColor(look().theme.raised))
            cursor.mergeCharFormat(style)


def _iterate_spans(document: QTextDocument) -> Iterator[tuple[QTextFragment, QTextCursor]]:
    """Yield the parts of a document with one format, and a cursor that selects each."""
    block = document.begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            span = iterator.fragment()
            cursor = QTextCursor(document)
            cursor.setPosition(span.position())
            cursor.setPosition(span.position() + span.length(), QTextCursor.MoveMode.KeepAnchor)
            yield span, cursor
            iterator += 1
        block = block.next()
