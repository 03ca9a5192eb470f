"""Hints of a lesson's step, shown one by one."""

from __future__ import annotations

from PyQt6.QtWidgets import QWidget

from gui.widgets.basic import button, column, label

MAX_WRONG_ATTEMPTS = 2
"""Number of wrong attempts after which the first hint is shown automatically."""


class Hints(QWidget):
    """A button that reveals the next hint each time it is pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Hints")
        self.hint_button = button("Hint", tip="Show the next hint")
        self.hints_label = label("", "muted", wrap=True, name="Hints shown")
        self._hints: tuple[str, ...] = ()
        self.visible_count = 0
        self.setLayout(column(self.hints_label))
        self.hint_button.clicked.connect(self.show_next)
        self.set_hints(())

    def set_hints(self, hints: tuple[str, ...]) -> None:
        """Set the hints, none of them shown."""
        self._hints, self.visible_count = hints, 0
        self._update_hints()

    def show_next(self) -> None:
        """Show the next hint."""
        self.visible_count = min(self.visible_count + 1, len(self._hints))
        self._update_hints()

    def show_first(self) -> None:
        """Show the first hint, unless hints are shown already."""
        if not self.visible_count:
            self.show_next()

    def _update_hints(self) -> None:
        remaining = len(self._hints) - self.visible_count
        self.hint_button.setEnabled(remaining > 0)
        self.hint_button.setText(f"Hint ({remaining})" if remaining else "Hint")
        self.hint_button.setVisible(bool(self._hints))
        self.hints_label.setText(
            "\n".join(f"{number}. {hint}" for number, hint in enumerate(self._hints[: self.visible_count], 1))
        )
        self.hints_label.setVisible(bool(self.visible_count))
