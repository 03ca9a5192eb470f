"""Spin box for a whole number that does not alter typed input."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QFocusEvent, QValidator
from PyQt6.QtWidgets import QSpinBox

from gui.qt.timers import create_single_shot_timer

_MAX_INT = 2**31 - 1
"""The largest value of Qt's spin box."""


class NumberBox(QSpinBox):
    """A number from `low` to `high` for the arrows; other numbers can be typed, and the caller rejects them.

    Qt's spin box drops the digit that makes a number too large: 4096 becomes 409.

    Parameters
    ----------
    step : int
        Step of the arrows; valid values are multiples of it above `low`.
    low_text : str
        Text shown for `low`; "" shows the number.
    """

    def __init__(self, low: int, high: int, step: int = 1, low_text: str = "") -> None:
        super().__init__()
        self.low, self.high, self._low_text = low, high, low_text
        self.last_valid_value = low
        """The last valid number."""
        self.setRange(-_MAX_INT, _MAX_INT)
        self.setSingleStep(step)
        self.editingFinished.connect(self._remember_valid_value)
        self._select_timer = create_single_shot_timer(0, self.selectAll, self)

    @property
    def is_valid(self) -> bool:
        """Return whether the number is in range and a multiple of the step above `low`."""
        return self.low <= self.value() <= self.high and (self.value() - self.low) % self.singleStep() == 0

    def setValue(self, value: int) -> None:
        super().setValue(value)
        self._remember_valid_value()

    def _remember_valid_value(self) -> None:
        if self.is_valid:
            self.last_valid_value = self.value()

    def focusInEvent(self, event: QFocusEvent | None) -> None:
        super().focusInEvent(event)
        if event is not None and event.reason() == Qt.FocusReason.MouseFocusReason:
            self._select_timer.start()  # after the click, which moves the text cursor

    def stepBy(self, steps: int) -> None:
        step = self.singleStep()
        target = min(max(self.value() + steps * step, self.low), self.high)
        self.setValue(self.low + (target - self.low) // step * step)

    def stepEnabled(self) -> QSpinBox.StepEnabledFlag:
        up, down = QSpinBox.StepEnabledFlag.StepUpEnabled, QSpinBox.StepEnabledFlag.StepDownEnabled
        none = QSpinBox.StepEnabledFlag.StepNone
        return (up if self.value() < self.high else none) | (down if self.value() > self.low else none)

    def textFromValue(self, value: int) -> str:
        return self._low_text if self._low_text and value == self.low else str(value)

    def valueFromText(self, text: str | None) -> int:
        if text == self._low_text and self._low_text:
            return self.low
        return min(max(int(text or 0), -_MAX_INT), _MAX_INT)

    def validate(self, text: str | None, place: int) -> tuple[QValidator.State, str, int]:
        text = text or ""
        digits = text.removeprefix("-")
        if (self._low_text and text == self._low_text) or (digits.isascii() and digits.isdigit()):
            return QValidator.State.Acceptable, text, place
        unfinished = not digits or self._low_text.startswith(text)
        return (QValidator.State.Intermediate if unfinished else QValidator.State.Invalid), text, place
