"""Input forms generated from a pattern's declared parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PyQt6.QtCore import QSize, Qt, pyqtSignal
from PyQt6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QLineEdit,
    QPlainTextEdit,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from gpu.base.errors import InputError
from gpu.declaration.pattern import Choice, Integer, Matrix, Parameter, Real
from gpu.declaration.roles import Role
from gpu.declaration.text_parameters import BinEdges, Numbers, Text, format_edges
from gui.painting.theme import look
from gui.widgets.basic import label, restyle, set_role, wrap_tip
from gui.widgets.matrix_editor import MatrixEditor
from gui.widgets.number_box import NumberBox
from gui.widgets.wrapping import WrappingLayout

_SLIDER_STEPS = 200
_MAX_SUMMARY_LENGTH = 24
"""Maximum number of characters of a text in a summary."""


class ParameterField(QWidget):
    """A parameter's label and input widgets."""

    changed = pyqtSignal()

    def __init__(self, parameter: Parameter) -> None:
        super().__init__()
        self.parameter = parameter
        self.setToolTip(wrap_tip(parameter.help))

    @property
    def value(self) -> Any:
        """Return the entered value, unchecked."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Set a value that has already been checked, without emitting `changed`."""
        raise NotImplementedError

    @property
    def fallback_value(self) -> Any:
        """Return the value that stays in use while the entered one is invalid; None for the last accepted value."""
        return None

    def show_validity(self, invalid: bool) -> None:
        """Show whether the value is invalid."""

    def _lay_out(self, *widgets: QWidget) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        heading = label(self.parameter.label, "caption")
        heading.setBuddy(widgets[0])
        layout.addWidget(heading)
        line = QHBoxLayout()
        line.setSpacing(10)
        for widget in widgets:
            line.addWidget(widget)
        layout.addLayout(line)


class ChoiceField(ParameterField):
    """A combo box."""

    def __init__(self, parameter: Choice) -> None:
        super().__init__(parameter)
        self.box = QComboBox()
        for title, option in zip(
            parameter.titles or map(_format_option_title, parameter.options), parameter.options, strict=True
        ):
            self.box.addItem(title, option)
        self.box.setAccessibleName(parameter.label)
        self.box.setAccessibleDescription(parameter.help)
        self._lay_out(self.box)
        self.set_value(parameter.initial)
        self.box.currentIndexChanged.connect(self.changed)

    @property
    def value(self) -> str:
        return str(self.box.currentData())

    def set_value(self, value: Any) -> None:
        self.box.blockSignals(True)
        self.box.setCurrentIndex(self.box.findData(value))
        self.box.blockSignals(False)

    def show_validity(self, invalid: bool) -> None:
        restyle(self.box, "bad", invalid)


class _Slider(QSlider):
    """A slider that is preferably long enough for exact values, but can shrink where space is short."""

    def sizeHint(self) -> QSize:
        return QSize(look().px(110), super().sizeHint().height())


class IntegerField(ParameterField):
    """A slider for quick changes and a box for exact values."""

    def __init__(self, parameter: Integer) -> None:
        super().__init__(parameter)
        self._bounds = parameter
        self.box = NumberBox(parameter.minimum, parameter.maximum, parameter.step, parameter.minimum_label)
        self.box.setAccessibleName(parameter.label)
        self.box.setAccessibleDescription(f"{parameter.help} {parameter.unit}".strip())
        self.slider = _Slider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(f"{parameter.label}, slider")
        steps = (parameter.maximum - parameter.minimum) // parameter.step
        # A wide range gets a logarithmic slider: 16 to 32 is as far as 1024 to 2048.
        self._is_logarithmic = steps > _SLIDER_STEPS
        self._min_ratio = max(parameter.minimum, 1)
        self.slider.setRange(0, _SLIDER_STEPS if self._is_logarithmic else steps)
        self.slider.setMinimumWidth(look().px(56))
        self._lay_out(self.box, self.slider)
        self.box.setValue(parameter.default)
        self.slider.setValue(self._to_slider_position(parameter.default))
        self.box.valueChanged.connect(self._on_box_changed)
        self.slider.valueChanged.connect(self._on_slider_changed)

    @property
    def value(self) -> int:
        return self.box.value()

    @property
    def fallback_value(self) -> int:
        return self.box.last_valid_value

    def set_value(self, value: Any) -> None:
        if value == self.box.value():
            return  # do not disturb typing
        for widget, number in ((self.box, int(value)), (self.slider, self._to_slider_position(int(value)))):
            widget.blockSignals(True)
            widget.setValue(number)
            widget.blockSignals(False)

    def show_validity(self, invalid: bool) -> None:
        restyle(self.box, "bad", invalid)

    def _to_slider_position(self, value: int) -> int:
        low, high = self._min_ratio, self._bounds.maximum
        if self._is_logarithmic:
            return round(_SLIDER_STEPS * math.log(max(value, low) / low) / math.log(high / low))
        return (value - self._bounds.minimum) // self._bounds.step

    def _on_slider_changed(self, position: int) -> None:
        low, high, step = self._bounds.minimum, self._bounds.maximum, self._bounds.step
        if self._is_logarithmic and position:
            low_ratio = self._min_ratio
            exact = low_ratio * (high / low_ratio) ** (position / _SLIDER_STEPS)
            # Powers of two are the usual choice, so the slider snaps to them.
            power = 2 ** round(math.log2(exact))
            exact = power if low <= power <= high and abs(math.log(exact / power)) < 0.06 else exact
            value = low + round((exact - low) / step) * step
        else:
            value = low + position * step
        self.box.blockSignals(True)
        self.box.setValue(value)
        self.box.blockSignals(False)
        self.changed.emit()

    def _on_box_changed(self, value: int) -> None:
        self.slider.blockSignals(True)
        self.slider.setValue(self._to_slider_position(value))
        self.slider.blockSignals(False)
        self.changed.emit()


class LineField(ParameterField):
    """A single-line text box."""

    def __init__(self, parameter: Parameter) -> None:
        super().__init__(parameter)
        self.box = QLineEdit()
        self.box.setAccessibleName(parameter.label)
        self.box.setAccessibleDescription(f"{parameter.help} {parameter.unit}".strip())
        self._lay_out(self.box)
        self.set_value(parameter.initial)
        self.box.textEdited.connect(self.changed)

    @property
    def value(self) -> str:
        return self.box.text()

    def show_validity(self, invalid: bool) -> None:
        restyle(self.box, "bad", invalid)


class RealField(LineField):
    """A single-line box for a real number."""

    def __init__(self, parameter: Real) -> None:
        super().__init__(parameter)
        self.box.setFixedWidth(look().px(110))

    def set_value(self, value: Any) -> None:
        self.box.setText(f"{float(value):.12g}")


class MatrixField(ParameterField):
    """A grid of coefficients; the Run tab places its `editor`, which needs more space than the form's lines have."""

    def __init__(self, parameter: Matrix) -> None:
        super().__init__(parameter)
        self.largest = parameter.maximum
        """Maximum number of rows and columns."""
        self.editor = MatrixEditor(parameter.label)
        self.editor.setAccessibleDescription(parameter.help)
        self._value = np.asarray(parameter.initial)
        self.editor.show_values(self._value, read_only=False)
        self.editor.changed.connect(self._on_edited)

    @property
    def value(self) -> Any:
        return self._value

    def set_value(self, value: Any) -> None:
        self._value = np.array(value, np.float32)
        self.editor.show_values(self._value, read_only=False)

    def preview(self, values: Any) -> None:
        """Show a read-only matrix; the field's own value does not change."""
        self.editor.show_values(values, read_only=True)

    def show_own_value(self) -> None:
        """Show the field's own value again."""
        self.editor.show_values(self._value, read_only=False)

    def _on_edited(self) -> None:
        self._value = self.editor.values
        self.changed.emit()


class TextField(ParameterField):
    """A multi-line text; a view may place its `editor` where there is more space."""

    def __init__(self, parameter: Text) -> None:
        super().__init__(parameter)
        self.editor = QPlainTextEdit()
        self.editor.setAccessibleName(parameter.label)
        self.editor.setAccessibleDescription(parameter.help)
        self.editor.setTabChangesFocus(True)
        set_role(self.editor, "entry")
        self.editor.setMinimumSize(look().px(180), look().px(56))
        self._lay_out(self.editor)
        self.set_value(parameter.initial)
        self.editor.textChanged.connect(self.changed)

    @property
    def value(self) -> str:
        return self.editor.toPlainText()

    def set_value(self, value: Any) -> None:
        if value != self.editor.toPlainText():
            self.editor.blockSignals(True)
            self.editor.setPlainText(value)
            self.editor.blockSignals(False)


class EdgesField(LineField):
    """A single-line box for increasing numbers."""

    def __init__(self, parameter: BinEdges) -> None:
        super().__init__(parameter)
        self.box.setMinimumWidth(look().px(200))

    def set_value(self, value: Any) -> None:
        self.box.setText(format_edges(value))
        self.box.setCursorPosition(0)


class NumbersField(LineField):
    """A single-line box for numbers."""

    def __init__(self, parameter: Numbers) -> None:
        super().__init__(parameter)
        self.box.setMinimumWidth(look().px(160))

    def set_value(self, value: Any) -> None:
        # Equal numbers keep the typed text, with its commas and a trailing space before the next number.
        if value != " ".join(self.box.text().replace(",", " ").split()):
            self.box.setText(value)
            self.box.setCursorPosition(0)


_FIELD_CLASSES: dict[type[Parameter], type[ParameterField]] = {
    Choice: ChoiceField,
    Integer: IntegerField,
    Real: RealField,
    Matrix: MatrixField,
    Text: TextField,
    BinEdges: EdgesField,
    Numbers: NumbersField,
}


class ParameterForm(QWidget):
    """A form for all parameters of a pattern; parameters that do not apply are hidden.

    Parameters
    ----------
    columns : int
        Number of columns of fields; 0 fills each line with as many fields as fit.
    """

    changed = pyqtSignal(dict)
    """Every parameter's checked value."""
    invalid = pyqtSignal(str)
    error_shown = pyqtSignal()
    """The form shows an error."""

    def __init__(self, parameters: tuple[Parameter, ...], columns: int = 0) -> None:
        super().__init__()
        self.parameters = parameters
        self.fields = {parameter.name: _FIELD_CLASSES[type(parameter)](parameter) for parameter in parameters}
        self._external_fields: set[str] = set()
        self.accepted = {name: field.parameter.initial for name, field in self.fields.items()}
        """The last accepted value of each parameter."""
        self.error = label("", "error", wrap=True, name="Error in the settings")
        self.error.hide()
        visible = [field for field in self.fields.values() if not isinstance(field, MatrixField)]
        self._columns = _FieldGrid(visible, columns) if columns else None
        fields: QLayout = self._columns or WrappingLayout()
        if not columns:
            for field in visible:
                fields.addWidget(field)
        for field in self.fields.values():
            field.changed.connect(self._check_values)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(fields)
        layout.addWidget(self.error)
        self._show_applicable()

    def detach_field(self, name: str) -> ParameterField:
        """Return a field for placement outside the form, which no longer shows or hides it."""
        field = self.fields[name]
        self._external_fields.add(name)
        field.hide()
        return field

    @property
    def values(self) -> dict[str, Any]:
        """Return the entered values of all fields, unchecked."""
        return {name: field.value for name, field in self.fields.items()}

    def set_values(self, values: Mapping[str, Any]) -> None:
        """Set values that have already been checked, without a signal."""
        for name, value in values.items():
            self.fields[name].set_value(value)
            self.accepted[name] = value
        self.show_error("")
        self._show_applicable()

    def change_values(self, **values: Any) -> None:
        """Set values as a user would: check them and emit signals."""
        for name, value in values.items():
            self.fields[name].set_value(value)
        self._check_values()

    def show_error(self, message: str, name: str = "") -> None:
        """Show an error below the fields and mark the field; an empty message clears the error."""
        self.error.setText(message)
        self.error.setVisible(bool(message))
        for each, field in self.fields.items():
            field.show_validity(bool(message) and each == name)
        if message:
            self.error_shown.emit()

    def _check_values(self) -> None:
        self._show_applicable()
        checked, values = {}, self.values
        for name, field in self.fields.items():
            try:
                checked[name] = field.parameter.check(field.value)
            except InputError as error:
                if not field.parameter.applies(values):  # the user cannot correct a hidden field
                    field.set_value(self.accepted[name])
                    checked[name] = self.accepted[name]
                    continue
                self._restore_value(name, field)
                text = (
                    f"{error.message} Still using {field.fallback_value}."
                    if field.fallback_value is not None
                    else error.message
                )
                self.show_error(text.replace(f"--{name}", field.parameter.label, 1), name)
                self.invalid.emit(error.message)
                return
        self.show_error("")
        self._accept_values(checked)

    def _accept_values(self, checked: dict[str, Any]) -> None:
        self.accepted = dict(checked)
        self.changed.emit(checked)

    def _restore_value(self, name: str, field: ParameterField) -> None:
        """Return to the last valid number if a prefix of the now invalid one was accepted while it was typed."""
        if field.fallback_value is not None and self.accepted[name] != field.fallback_value:
            self._accept_values({**self.accepted, name: field.parameter.check(field.fallback_value)})

    def _show_applicable(self) -> None:
        values = self.values
        for field in self.fields.values():
            if not isinstance(field, MatrixField) and field.parameter.name not in self._external_fields:
                field.setVisible(field.parameter.applies(values))
        if self._columns is not None:
            self._columns.arrange_fields()


def summarize_parameters(parameters: Sequence[Parameter], params: Mapping[str, Any]) -> list[tuple[Parameter, str]]:
    """Return the applicable, informative parameters with their values as words, the size first."""
    summary: list[tuple[Parameter, str]] = []
    for parameter in parameters:
        value = params[parameter.name]
        if not parameter.applies(params) or not isinstance(value, str | int | float):
            continue
        if isinstance(parameter, Integer) and parameter.minimum_label and value == parameter.minimum:
            continue
        if parameter.role is Role.SIZE:
            summary.insert(0, (parameter, f"{value} {parameter.unit}"))
            continue
        if isinstance(parameter, Choice) and parameter.titles:
            value = parameter.titles[parameter.options.index(str(value))].lower()
        # A word needs no label, a number does.
        if isinstance(parameter, Text) and isinstance(value, str) and len(value) > _MAX_SUMMARY_LENGTH:
            value = f"{value[:_MAX_SUMMARY_LENGTH].rstrip()}…"
        if isinstance(value, float):
            value = f"{value:.12g}"  # as in its field
        is_word = isinstance(value, str) and not (value.isdecimal() or isinstance(parameter, Real))
        summary.append((parameter, str(value) if is_word else f"{parameter.label.lower()} {value}"))
    return summary


class _FieldGrid(QGridLayout):
    """A grid of fields; hidden fields leave no gaps."""

    def __init__(self, fields: Sequence[ParameterField], columns: int) -> None:
        super().__init__()
        self._fields, self._column_count = fields, columns
        self.setContentsMargins(0, 0, 0, 0)
        self.setHorizontalSpacing(20)
        self.setVerticalSpacing(10)
        self.setColumnStretch(columns, 1)
        self.arrange_fields()

    def arrange_fields(self) -> None:
        """Move the visible fields to the first cells of the grid."""
        for number, field in enumerate(sorted(self._fields, key=lambda field: field.isHidden())):
            self.removeWidget(field)
            self.addWidget(field, *divmod(number, self._column_count))


def _format_option_title(option: str) -> str:
    """Return an option's title: sobel-x becomes Sobel x."""
    text = option.replace("-", " ")
    return text[:1].upper() + text[1:]
