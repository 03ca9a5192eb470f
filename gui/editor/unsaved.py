"""What is asked when the window closes and edited kernels would be lost."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt, pyqtBoundSignal, pyqtSignal
from PyQt6.QtWidgets import QDialog, QVBoxLayout, QWidget

from gui.editor.document import KernelDocument
from gui.painting.theme import look
from gui.widgets.basic import button, label, row


class UnsavedDialog(QDialog):
    """Names the kernels that were edited, and asks what is to become of them; it does not hold up the window."""

    save_wanted = pyqtSignal()
    discard_wanted = pyqtSignal()

    def __init__(self, parent: QWidget, documents: Sequence[KernelDocument]) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Edited kernels")
        names = ", ".join(document.path.name for document in documents)
        text = label(f"Edited and not saved: {names}.", wrap=True, name="Unsaved kernels")
        text.setMinimumWidth(look().px(320))
        self.save = button("Save as…", "primary")
        self.discard = button("Discard")
        self.cancel = button("Cancel")
        self.save.clicked.connect(lambda: self._choose(self.save_wanted))
        self.discard.clicked.connect(lambda: self._choose(self.discard_wanted))
        self.cancel.clicked.connect(self.reject)
        self.save.setDefault(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addWidget(label("Save what you edited?", "title"))
        layout.addWidget(text)
        layout.addLayout(row(0, self.save, self.discard, self.cancel))

    def _choose(self, wanted: pyqtBoundSignal) -> None:
        self.accept()
        wanted.emit()
