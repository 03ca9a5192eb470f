"""Settings that leave their room to what is made with them, where that is scarce: a line says and opens them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PyQt6.QtWidgets import QVBoxLayout, QWidget

from gui.widgets.basic import ElidedButton
from gui.widgets.forms import ParameterForm, in_words


class FoldingForm(QWidget):
    """A form that may be folded into a line of its values.

    Parameters
    ----------
    form : ParameterForm
    """

    def __init__(self, form: ParameterForm) -> None:
        super().__init__()
        self.form = form
        self.line = ElidedButton("Settings", "Open or close the settings")
        self.line.setCheckable(True)
        self.line.hide()
        self._words = ""
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self.line)
        layout.addWidget(form)
        self.line.toggled.connect(lambda _: self._show())
        form.refused.connect(lambda: self.line.setChecked(True))

    def let_fold(self, on: bool) -> None:
        """Fold the form into its line, which opens it from then on; or show all of it, without a line."""
        if on != self.line.isHidden():
            return
        self.line.setVisible(on)
        self.line.setChecked(False)
        self._show()

    def say(self, params: Mapping[str, Any]) -> None:
        """Say the values in the line."""
        self._words = " · ".join(words for _, words in in_words(self.form.parameters, params))
        self._show()

    def _show(self) -> None:
        opened = self.line.isChecked()
        self.form.setVisible(opened or self.line.isHidden())
        self.line.say("Settings" if opened else self._words, end="  ▴" if opened else "  ▾")
