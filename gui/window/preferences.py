"""The preferences dialog; every change applies at once."""

from __future__ import annotations

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QDialog, QGridLayout, QWidget

from gui.painting.theme import FONT_SIZES, THEMES
from gui.widgets.basic import Segments, button, dialog_column, label, row
from gui.window.header import CLUSTER, ENGINES


class Preferences(QDialog):
    """Theme, text size and engine."""

    theme_chosen = pyqtSignal(str)
    text_size_chosen = pyqtSignal(str)
    engine_chosen = pyqtSignal(str)

    def __init__(self, parent: QWidget, theme: str, text_size: str, engine: str) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Preferences")
        self.theme = Segments(tuple(THEMES), "Theme")
        self.text_size = Segments(tuple(FONT_SIZES), "Text size")
        self.engine = Segments(tuple(text for text, _ in ENGINES.values()), "Engine")
        self.theme.choose(theme)
        self.text_size.choose(text_size)
        names = {text: name for name, (text, _) in ENGINES.items()}
        if engine in ENGINES:
            self.engine.choose(ENGINES[engine][0])
        grid = QGridLayout()
        grid.setHorizontalSpacing(24)
        grid.setVerticalSpacing(14)
        for line, (name, segments) in enumerate(
            (("Theme", self.theme), ("Text size", self.text_size), ("Engine", self.engine))
        ):
            grid.addWidget(label(name, "muted"), line, 0)
            grid.addWidget(segments, line, 1)
        grid.setColumnStretch(2, 1)
        close = button("Close", "primary")
        close.clicked.connect(self.accept)
        close.setDefault(True)
        caption = label("Changes apply at once and are saved.", "caption")
        self.setLayout(dialog_column("Preferences", grid, row(caption, 24, 0, close)))
        self.theme.picked.connect(self.theme_chosen)
        self.text_size.picked.connect(self.text_size_chosen)
        self.engine.picked.connect(lambda text: self._choose_engine(names[text]))

    def _choose_engine(self, name: str) -> None:
        if name == CLUSTER:
            self.accept()  # the cluster dialog opens next
        self.engine_chosen.emit(name)
