"""Drop-down panel with the settings of a recording: a small input and the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from PyQt6.QtCore import QSignalBlocker, pyqtSignal
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QFrame, QVBoxLayout, QWidget

from gpu.base.errors import InputError
from gpu.base.schedules import KINDS, Schedule
from gpu.declaration.pattern import find_by_role
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.text_parameters import Text
from gui.painting.theme import look
from gui.step_view.recording.steppable import Steppable
from gui.widgets.basic import Segments, button, label, row, set_role
from gui.widgets.forms import ParameterForm, summarize_parameters
from gui.widgets.number_box import NumberBox
from gui.widgets.wrapping import WrappingLayout

_MAX_SEED = 2**31 - 1


class SettingsPanel(QFrame):
    """The parameters and the schedule of a recording."""

    changed = pyqtSignal()

    def __init__(self, steppable: Steppable, parent: QWidget) -> None:
        super().__init__(parent)
        self.steppable = steppable
        """The recorded program; its variants have the same parameters."""
        set_role(self, "card")
        self.setAccessibleName("Recording settings")
        self.form = ParameterForm(steppable.parameters, columns=2)
        self.schedule_kinds = Segments(tuple(KINDS), "Schedule")
        for kind in KINDS.values():
            self.schedule_kinds.buttons[kind.name].setToolTip(f"{kind.summary[0].upper()}{kind.summary[1:]}")
        self.seed = NumberBox(0, _MAX_SEED)
        self.seed.setAccessibleName("Seed of the schedule")
        self.seed.setToolTip("Each seed gives another schedule")
        self.seed.setEnabled(False)
        self.new_input_button = button("New input", tip="Same parameters, other random values")
        self.close_button = button("Done", "flat", tip="Close  (Esc)")
        self.close_button.clicked.connect(self.hide)
        self.input_seed = 0
        self._followed_values: dict[str, Any] = {}
        self.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 14)
        layout.setSpacing(look().px(10))
        # Follow the size of the fields, which changes with the style sheet and with fields that appear.
        layout.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        layout.addLayout(row(label("Recording settings", "card-title"), 0, self.close_button))
        layout.addWidget(self.form)
        rule = QFrame()
        set_role(rule, "rule")
        rule.setFixedHeight(1)
        layout.addWidget(rule)
        # With large text, the seed wraps to a line below the schedule.
        line = WrappingLayout(across=8, down=8, spread=True)
        for items in (
            (label("Schedule", "caption"), self.schedule_kinds),
            (label("Seed", "caption"), self.seed, self.new_input_button),
        ):
            group = QWidget()
            group.setLayout(row(*items))
            line.addWidget(group)
        layout.addLayout(line)
        self.form.changed.connect(lambda _: self.changed.emit())
        self.schedule_kinds.group.buttonToggled.connect(self._apply_schedule_kind)
        self.seed.valueChanged.connect(lambda _: self._apply_seed())
        self.new_input_button.clicked.connect(self._request_new_input)
        self.new_input_button.setVisible(steppable.random)

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the last accepted values of the form."""
        return self.form.accepted

    @property
    def schedule(self) -> str:
        """Return the schedule in the format of `StepPattern.schedule`."""
        return str(
            Schedule(
                KINDS[self.schedule_kinds.chosen],
                self.seed.value() if self.seed.is_valid else self.seed.last_valid_value,
            )
        )

    @property
    def text(self) -> str:
        """Return the settings in one line."""
        parts = []
        for parameter, words in summarize_parameters(self.steppable.parameters, self.params):
            threads = str(self.steppable.threads_per_block(self.params) or "") if parameter.role is Role.BLOCK else ""
            arrow = f" → {threads}" if threads and threads != self.params[parameter.name] else ""
            parts.append(words + arrow)
        return " · ".join([*parts, self.schedule])

    def restore(self, params: Mapping[str, Any], schedule: str) -> None:
        """Restore the settings of the last session without a signal; ignore those that are not allowed here."""
        valid = {}
        for name, value in params.items():
            parameter = self.form.fields[name].parameter
            if parameter.role is Role.SOURCE and value == FROM_FILE:
                continue  # a file of numbers is no longer open
            with suppress(InputError):
                valid[name] = parameter.check(value)
        self.form.set_values(valid)
        with suppress(InputError):
            restored = Schedule.parse(schedule)
            with QSignalBlocker(self.seed), QSignalBlocker(self.schedule_kinds.group):
                self.seed.setValue(min(restored.seed, _MAX_SEED))
                self.schedule_kinds.choose(restored.kind.name)
            self.seed.setEnabled(restored.kind.seeded)

    def apply_example(self, params: Mapping[str, Any]) -> None:
        """Apply an example's parameters, if they fully determine its size, and emit `changed`."""
        size = find_by_role(self.steppable.parameters, Role.SIZE)
        with suppress(InputError):
            checked = {name: self.form.fields[name].parameter.check(value) for name, value in params.items()}
            all_values = {**{parameter.name: parameter.initial for parameter in self.steppable.parameters}, **checked}
            if size is not None and size.applies(all_values) and size.name not in params:
                return
            self.form.set_values(all_values)
            self.changed.emit()

    def follow_input(self, params: Mapping[str, Any]) -> None:
        """Apply the parameters of the Run tab that changed since the last call; of a text, only the beginning."""
        followed = {
            each.name: params[each.name]
            for each in self.steppable.parameters
            if each.name in self.steppable.followed_parameters and each.applies(params)
        }
        before, self._followed_values = self._followed_values, followed
        if not before:
            return  # keep the settings of the last session
        changed = {
            name for name, value in followed.items() if name not in before or not np.array_equal(value, before[name])
        }
        if not changed:
            return
        for name in (each for each in followed if each in changed or each in self.steppable.always_copied):
            parameter, value = self.form.fields[name].parameter, followed[name]
            if isinstance(parameter, Text):
                value = value[: parameter.maximum]
            with suppress(InputError):
                self.form.set_values({name: parameter.check(value)})
        self.changed.emit()

    def toggle(self) -> None:
        """Open the panel at the top right of the tab, or close it."""
        if self.isVisible():
            self.hide()
            return
        self.show()
        self.raise_()
        self.form.setFocus()

    def move_to_corner(self) -> None:
        """Move to the position that belongs to the tab's size."""
        parent = self.parentWidget()
        assert parent is not None
        self.move(max(0, parent.width() - self.width() - look().px(6)), 0)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self.move_to_corner()

    def _apply_schedule_kind(self, _: Any, on: bool) -> None:
        if on:
            self.seed.setEnabled(KINDS[self.schedule_kinds.chosen].seeded)
            self.changed.emit()

    def _apply_seed(self) -> None:
        if self.seed.is_valid:
            self.form.show_error("")
        else:
            wrong, valid = self.seed.value(), self.seed.last_valid_value
            self.form.show_error(f"The seed is a whole number from 0, not {wrong}. Still using {valid}.")
        self.changed.emit()

    def _request_new_input(self) -> None:
        self.input_seed += 1
        self.changed.emit()
