"""Hints of a lesson's step, shown one by one."""

from __future__ import annotations

from PyQt6.QtWidgets import QVBoxLayout, QWidget

from gui.widgets.basic import button, label

MISSED = 2
"""Number of wrong attempts after which the first hint is shown automatically."""


class Hints(QWidget):
    """A button that reveals the next hint each time it is pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Hints")
        self.more = button("Hint", tip="Show the next hint")
        self.shown = label("", "muted", wrap=True, name="Hints shown")
        self._hints: tuple[str, ...] = ()
        self.count = 0
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.shown)
        self.more.clicked.connect(self.show_more)
        self.open(())

    def open(self, hints: tuple[str, ...]) -> None:
        """Set the hints, none of them shown."""
        self._hints, self.count = hints, 0
        self._show()

    def show_more(self) -> None:
        """Show the next hint."""
        self.count = min(self.count + 1, len(self._hints))
        self._show()

    def show_first(self) -> None:
        """Show the first hint, unless hints are shown already."""
        if not self.count:
            self.show_more()

    def _show(self) -> None:
        left = len(self._hints) - self.count
        self.more.setEnabled(left > 0)
        self.more.setText(f"Hint ({left})" if left else "Hint")
        self.more.setVisible(bool(self._hints))
        self.shown.setText("\n".join(f"{number}. {hint}" for number, hint in enumerate(self._hints[: self.count], 1)))
        self.shown.setVisible(bool(self.count))
