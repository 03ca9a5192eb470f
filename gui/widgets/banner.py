"""Non-modal message: one sentence, advice, and optional details."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout

from gui.painting.theme import look
from gui.widgets.basic import button, label, restyle, row, set_role


class Banner(QFrame):
    """A message bar, hidden until there is a message."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("banner", "bad")
        self.setAccessibleName("Message")
        self.message = label("", "card-title", wrap=True, name="Message")
        self.advice = label("", "muted", wrap=True, name="Advice")
        for text in (self.message, self.advice):
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.action = button("", name="Action")
        self._on_action: Callable[[], object] = lambda: None
        self._on_dismiss: Callable[[], object] = lambda: None
        self._topics: tuple[str, ...] = ()
        self.action.clicked.connect(self._run_action)
        self.details_button = button("Details", "flat")
        self.details_button.setCheckable(True)
        self.dismiss_button = button("Dismiss", "flat")
        self.detail = QPlainTextEdit()
        set_role(self.detail, "code")
        self.detail.setReadOnly(True)
        self.detail.setAccessibleName("Details")
        self.detail.setTabChangesFocus(True)
        self.details_button.toggled.connect(self._show_details)
        self.dismiss_button.clicked.connect(self._dismiss)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 8, 8, 8)
        layout.setSpacing(3)
        top = row(self.message, self.action, self.details_button, self.dismiss_button, stretch=0)
        layout.addLayout(top)
        layout.addWidget(self.advice)
        layout.addWidget(self.detail)
        self.hide()

    def show_message(
        self,
        message: str,
        advice: str = "",
        detail: str = "",
        tone: str = "bad",
        action: tuple[str, Callable[[], object]] | None = None,
        dismiss_action: tuple[str, Callable[[], object]] | None = None,
        topics: tuple[str, ...] = (),
    ) -> None:
        """Show a message.

        Parameters
        ----------
        message, advice, detail : str
            A sentence, what to do about it, and details that are hidden at first.
        tone : str
            "bad", "warn" or "neutral".
        action : (str, callable), optional
            Text and callback of an additional button.
        dismiss_action : (str, callable), optional
            Text and callback of the closing button; without it, that button only closes the message.
        topics : tuple of str
            Topics of the message; `hide_topic` hides the message for any of them.
        """
        self._topics = topics
        text, self._on_action = action or ("", lambda: None)
        self.action.setText(text)
        self.action.setAccessibleName(text)
        self.action.setVisible(bool(text))
        closing, self._on_dismiss = dismiss_action or ("Dismiss", lambda: None)
        self.dismiss_button.setText(closing)
        self.dismiss_button.setAccessibleName(closing)
        self.dismiss_button.setToolTip("" if dismiss_action else "Close this message")
        restyle(self, "banner", tone)
        self.message.setText(message)
        self.advice.setText(advice)
        self.advice.setVisible(bool(advice))
        self.detail.setPlainText(detail)
        lines = (detail.count("\n") + 1) * self.detail.fontMetrics().lineSpacing()
        self.detail.setFixedHeight(min(lines + look().px(24), look().px(150)))
        self.details_button.setChecked(False)
        self.details_button.setVisible(bool(detail))
        self.detail.hide()
        self.show()

    def hide_topic(self, topic: str) -> None:
        """Hide the message if it is about a topic that no longer applies."""
        if topic in self._topics:
            self.hide()

    def _show_details(self, shown: bool) -> None:
        self.details_button.setText("Hide details" if shown else "Details")
        self.detail.setVisible(shown)

    def _dismiss(self) -> None:
        self.hide()
        self._on_dismiss()

    def _run_action(self) -> None:
        self.hide()
        self._on_action()
