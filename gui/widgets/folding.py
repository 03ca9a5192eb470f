"""Collapsible settings form: one line shows the values and expands the form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PyQt6.QtWidgets import QWidget

from gui.widgets.basic import ElidedButton, column
from gui.widgets.forms import ParameterForm, summarize_parameters


class FoldingForm(QWidget):
    """A form that can be collapsed into a line of its values."""

    def __init__(self, form: ParameterForm) -> None:
        super().__init__()
        self.form = form
        self.summary_button = ElidedButton("Settings", "Open or close the settings")
        self.summary_button.setCheckable(True)
        self.summary_button.hide()
        self._summary = ""
        self.setLayout(column(self.summary_button, form, spacing=6))
        self.summary_button.toggled.connect(lambda _: self._update_visibility())
        form.error_shown.connect(lambda: self.summary_button.setChecked(True))

    def set_foldable(self, foldable: bool) -> None:
        """Collapse the form into a line that expands it on click, or show the form without a line."""
        if foldable != self.summary_button.isHidden():
            return
        self.summary_button.setVisible(foldable)
        self.summary_button.setChecked(False)
        self._update_visibility()

    def show_values(self, params: Mapping[str, Any]) -> None:
        """Set the values that the line shows."""
        self._summary = " · ".join(words for _, words in summarize_parameters(self.form.parameters, params))
        self._update_visibility()

    def _update_visibility(self) -> None:
        is_open = self.summary_button.isChecked()
        self.form.setVisible(is_open or self.summary_button.isHidden())
        self.summary_button.show_text("Settings" if is_open else self._summary, suffix="  ▴" if is_open else "  ▾")
