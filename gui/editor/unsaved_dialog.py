"""The dialog for unsaved edits when the window closes."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt, pyqtBoundSignal, pyqtSignal
from PyQt6.QtWidgets import QDialog, QWidget

from gui.editor.document import KernelDocument
from gui.painting.theme import look
from gui.widgets.basic import button, dialog_column, label, row


class UnsavedDialog(QDialog):
    """List the unsaved kernels, and ask whether to save them; modeless, so that the window stays usable."""

    save_requested = pyqtSignal()
    discard_requested = pyqtSignal()

    def __init__(self, parent: QWidget, documents: Sequence[KernelDocument]) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Edited kernels")
        names = ", ".join(document.path.name for document in documents)
        text = label(f"Edited but not saved: {names}.", wrap=True, name="Unsaved kernels")
        text.setMinimumWidth(look().px(320))
        self.cancel = button("Cancel")
        self.discard = button("Discard")
        self.save = button("Save as…", "primary")
        self.save.clicked.connect(lambda: self._close_with_signal(self.save_requested))
        self.discard.clicked.connect(lambda: self._close_with_signal(self.discard_requested))
        self.cancel.clicked.connect(self.reject)
        self.save.setDefault(True)
        self.setLayout(dialog_column("Save your edits?", text, row(0, self.cancel, self.discard, self.save)))

    def _close_with_signal(self, request: pyqtBoundSignal) -> None:
        self.accept()
        request.emit()
