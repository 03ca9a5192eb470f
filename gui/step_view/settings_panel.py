"""What is recorded: a small input, the order of warps. A panel that drops down from a button."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QPoint, Qt, pyqtSignal
from PyQt6.QtWidgets import QFrame, QSpinBox, QVBoxLayout, QWidget

from gpu.pattern import Integer, Parameter, Pattern
from gui.forms import ParameterForm
from gui.theme import look
from gui.widgets import Segments, button, label, role, row

MOST_ELEMENTS = 1024


def small(parameter: Parameter, pattern: Pattern) -> Parameter:
    """Return a parameter with a range of what can be watched, where a Step starts with a value of its own."""
    start = pattern.step_params.get(parameter.name)
    if isinstance(parameter, Integer) and start is not None and parameter.maximum > MOST_ELEMENTS:
        top = parameter.minimum + (MOST_ELEMENTS - parameter.minimum) // parameter.step * parameter.step
        return replace(parameter, maximum=top, default=start)
    return parameter


class SettingsPanel(QFrame):
    """The parameters of a recording, and the order in which warps run."""

    changed = pyqtSignal()

    def __init__(self, pattern: Pattern, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        role(self, "card")
        self.setAccessibleName("What is recorded")
        self.form = ParameterForm(tuple(small(parameter, pattern) for parameter in pattern.parameters), columns=2)
        self.form.set_values({**pattern.check({}), **pattern.step_params})
        self.order = Segments(("round-robin", "shuffle"), "Order of warps")
        self.order.setToolTip("In lockstep, or each warp at a random pace: races then show other answers")
        self.seed = QSpinBox()
        self.seed.setRange(0, 9999)
        self.seed.setAccessibleName("Seed of the order")
        self.seed.setToolTip("Another seed, another order")
        self.seed.setEnabled(False)
        self.again = button("New input", tip="The same parameters, other random values")
        self.input_seed = 0
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 14)
        layout.setSpacing(look().px(10))
        layout.addWidget(label("What is recorded", "card-title"))
        layout.addWidget(self.form)
        rule = QFrame()
        role(rule, "rule")
        rule.setFixedHeight(1)
        layout.addWidget(rule)
        layout.addLayout(row(label("Order of warps", "caption"), self.order, label("seed", "caption"), self.seed, 0,
                             self.again))  # fmt: skip
        self.form.changed.connect(lambda _: self.changed.emit())
        self.order.group.buttonToggled.connect(self._take_order)
        self.seed.valueChanged.connect(lambda _: self.changed.emit())
        self.again.clicked.connect(self._reseed)
        self.again.setVisible(pattern.make_input is not None)

    @property
    def params(self) -> Mapping[str, Any]:
        """The values of the form."""
        return self.form.values

    @property
    def schedule(self) -> str:
        """The order, as a StepPattern has it."""
        return "round-robin" if self.order.chosen == "round-robin" else f"shuffle:{self.seed.value()}"

    def drop_from(self, widget: QWidget) -> None:
        """Open below a widget, right edges in line."""
        self.adjustSize()
        corner = widget.mapToGlobal(QPoint(widget.width() - self.sizeHint().width(), widget.height() + 4))
        self.move(corner)
        self.show()

    def _take_order(self, _: Any, on: bool) -> None:
        if on:
            self.seed.setEnabled(self.order.chosen == "shuffle")
            self.changed.emit()

    def _reseed(self) -> None:
        self.input_seed += 1
        self.changed.emit()
