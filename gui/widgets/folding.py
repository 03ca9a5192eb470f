"""Collapsible settings form: one line shows the values and expands the form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PyQt6.QtWidgets import QVBoxLayout, QWidget

from gui.widgets.basic import ElidedButton
from gui.widgets.forms import ParameterForm, in_words


class FoldingForm(QWidget):
    """A form that can be collapsed into a line of its values.

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
        """Collapse the form into a line that expands it on click, or show the form without a line."""
        if on != self.line.isHidden():
            return
        self.line.setVisible(on)
        self.line.setChecked(False)
        self._show()

    def say(self, params: Mapping[str, Any]) -> None:
        """Set the values that the line shows."""
        self._words = " · ".join(words for _, words in in_words(self.form.parameters, params))
        self._show()

    def _show(self) -> None:
        is_open = self.line.isChecked()
        self.form.setVisible(is_open or self.line.isHidden())
        self.line.say("Settings" if is_open else self._words, end="  ▴" if is_open else "  ▾")
