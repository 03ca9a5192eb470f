"""Hints that are asked for one after the other."""

from __future__ import annotations

from PyQt6.QtWidgets import QVBoxLayout, QWidget

from gui.widgets.basic import button, label

MISSED = 2
"""Wrong attempts at a step, after which the first hint is shown unasked."""


class Hints(QWidget):
    """A button that shows one hint more each time it is pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Hints")
        self.more = button("Hint", tip="One hint more")
        self.shown = label("", "muted", wrap=True, name="Hints that were given")
        self._hints: tuple[str, ...] = ()
        self.count = 0
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.shown)
        self.more.clicked.connect(self.show_more)
        self.open(())

    def open(self, hints: tuple[str, ...]) -> None:
        """Have other hints, none of them shown."""
        self._hints, self.count = hints, 0
        self._show()

    def show_more(self) -> None:
        """Show one hint more."""
        self.count = min(self.count + 1, len(self._hints))
        self._show()

    def show_first(self) -> None:
        """Show a hint where none is shown."""
        if not self.count:
            self.show_more()

    def _show(self) -> None:
        left = len(self._hints) - self.count
        self.more.setEnabled(left > 0)
        self.more.setText(f"Hint ({left})" if left else "Hint")
        self.more.setVisible(bool(self._hints))
        self.shown.setText("\n".join(f"{number}. {hint}" for number, hint in enumerate(self._hints[: self.count], 1)))
        self.shown.setVisible(bool(self.count))
