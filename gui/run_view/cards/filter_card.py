"""The card of the filter's coefficients, with controls to edit a custom filter."""

from __future__ import annotations

from typing import Any

import numpy as np
from PyQt6.QtCore import QModelIndex
from PyQt6.QtGui import QResizeEvent

from gpu.declaration.pattern import NO_CENTER_ROW, Parameter
from gpu.declaration.presentation import Filter
from gui.widgets.basic import Card, button, label
from gui.widgets.forms import MatrixField, ParameterForm
from gui.widgets.matrix_editor import format_short_number
from gui.widgets.number_box import NumberBox


class FilterCard(Card):
    """Coefficients of the filter in use.

    Parameters
    ----------
    parameter : Parameter
        The parameter that holds custom coefficients.
    """

    def __init__(self, image_filter: Filter, parameter: Parameter, form: ParameterForm) -> None:
        super().__init__("Filter")
        self._form = form
        self._filter, self._parameter = image_filter, parameter
        field = form.fields[parameter.name]
        assert isinstance(field, MatrixField)
        self.field = field
        self.edit = button("Edit", "segment", tip="Copy these coefficients and edit the copy", name="Edit the filter")
        self.edit.clicked.connect(self._start_editing)
        self.normalize = button("Sum to 1", "segment", tip="Divide by the sum, which keeps the brightness")
        self.normalize.clicked.connect(self._normalize_filter)
        self.side = NumberBox(1, field.largest, step=2)
        self.side.setAccessibleName("Rows and columns of your filter")
        self.side.setToolTip("Rows and columns of your filter: an odd number")
        self.side.valueChanged.connect(self._resize_filter)
        self.head.addStretch(1)
        for widget in (self.side, self.normalize, self.edit):
            self.head.addWidget(widget)
        self.body.addWidget(self.field.editor, 1)
        self.description_label = label("", "caption", wrap=True, name="Sum of the coefficients")
        self.body.addWidget(self.description_label)
        self.body.setSpacing(6)
        self.field.editor.setMouseTracking(True)
        self.field.editor.entered.connect(self._show_coefficient)
        self.field.editor.exited.connect(lambda: self._set_text(self._description))
        selection = self.field.editor.selectionModel()
        assert selection is not None
        selection.currentChanged.connect(self._show_coefficient)
        self._description = ""
        self.field.editor.refused.connect(lambda message: form.show_error(message, parameter.name))

    def show_params(self, params: dict[str, Any]) -> None:
        """Show the filter that the parameters select."""
        is_custom = self._parameter.applies(params)
        if is_custom:
            self.field.show_own_value()
        else:
            self.field.preview(self._filter.weights(params))
        self.edit.setVisible(not is_custom)
        self.normalize.setVisible(is_custom)
        self.side.setVisible(is_custom)
        values = self.field.editor.values
        self.side.blockSignals(True)
        self.side.setValue(len(values))
        self.side.blockSignals(False)
        side, total = len(values), float(values.sum(dtype=np.float64))
        total = 0.0 if abs(total) < 1e-6 else round(total, 6)
        obstacle = self._filter.separability_obstacle(values)
        self._description = (
            f"{side} × {side}, sum {format_short_number(total)}, {'not separable' if obstacle else 'separable'}"
        )
        if note := self._filter.second_filter(params):
            self._description = f"{self._description}  ·  {note}"
        self._set_text(self._description)
        separability_text = (
            obstacle or "Separable: the filter is a column times a row, so all but one of its singular values are 0."
        )
        self.description_label.setToolTip(
            "A sum of 1 keeps the brightness; a sum of 0 detects edges and is shown around mid-gray.\n"
            f"{separability_text}"
        )

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._set_text(self.description_label.text())

    def _set_text(self, text: str) -> None:
        """Show a text about the filter or a coefficient, and grow to the height it needs."""
        self.description_label.setText(text)
        margins = self.body.contentsMargins()
        self.description_label.setMinimumHeight(
            self.description_label.heightForWidth(self.width() - margins.left() - margins.right())
        )

    def _show_coefficient(self, cell: QModelIndex) -> None:
        if cell.isValid():
            value = float(self.field.editor.values[cell.row(), cell.column()])
            self._set_text(f"row {cell.row()}, column {cell.column()}: {value:.6g}")

    def _start_editing(self) -> None:
        source_choice = (
            {} if self._parameter.only_if is None else {self._parameter.only_if[0]: self._parameter.only_if[1][0]}
        )
        self._form.change_values(**source_choice, **{self._parameter.name: self.field.editor.values.copy()})
        self.field.editor.setFocus()
        middle = len(self.field.value) // 2
        model = self.field.editor.model()
        assert model is not None
        self.field.editor.setCurrentIndex(model.index(middle, middle))

    def _normalize_filter(self) -> None:
        values = self.field.value
        total = float(values.sum(dtype=np.float64))
        if abs(total) > 1e-6:
            self._form.change_values(**{self._parameter.name: (values / total).astype(np.float32)})
        else:
            self._form.show_error(
                "The coefficients sum to 0, so they cannot be scaled to sum to 1.", self._parameter.name
            )

    def _resize_filter(self, side: int) -> None:
        """Crop the filter to the new size, or pad it with zeros."""
        if side % 2 == 0:
            self._form.show_error(
                f"A filter has an odd number of rows, not {side}. {NO_CENTER_ROW}", self._parameter.name
            )
            return
        if not self.side.is_valid:
            unchanged = f"It keeps {len(self.field.value)} rows."
            self._form.show_error(
                f"A filter has 1 to {self.field.largest} rows, not {side}. {unchanged}", self._parameter.name
            )
            return
        old = self.field.value
        new = np.zeros((side, side), np.float32)
        shared = min(side, len(old))
        new_first, old_first = (side - shared) // 2, (len(old) - shared) // 2
        new_part = slice(new_first, new_first + shared)
        old_part = slice(old_first, old_first + shared)
        new[new_part, new_part] = old[old_part, old_part]
        self._form.change_values(**{self._parameter.name: new})
