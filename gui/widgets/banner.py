"""Non-modal message: one sentence, advice, and optional details."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout

from gui.painting.theme import look
from gui.widgets.basic import button, label, restyle, role, row


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
        self._act: Callable[[], object] = lambda: None
        self._refuse: Callable[[], object] = lambda: None
        self._about: tuple[str, ...] = ()
        self.action.clicked.connect(self._take_action)
        self.more = button("Details", "flat", tip="Show details")
        self.more.setCheckable(True)
        self.dismiss = button("Dismiss", "flat")
        self.detail = QPlainTextEdit()
        role(self.detail, "code")
        self.detail.setReadOnly(True)
        self.detail.setAccessibleName("Details")
        self.detail.setTabChangesFocus(True)
        self.more.toggled.connect(self.detail.setVisible)
        self.dismiss.clicked.connect(self._dismiss)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 8, 8, 8)
        layout.setSpacing(3)
        top = row(self.message, self.action, self.more, self.dismiss)
        top.setStretch(0, 1)
        layout.addLayout(top)
        layout.addWidget(self.advice)
        layout.addWidget(self.detail)
        self.hide()

    def say(
        self,
        message: str,
        advice: str = "",
        detail: str = "",
        tone: str = "bad",
        action: tuple[str, Callable[[], object]] | None = None,
        instead: tuple[str, Callable[[], object]] | None = None,
        about: tuple[str, ...] = (),
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
        instead : (str, callable), optional
            Text and callback of the closing button; without it, that button only closes the message.
        about : tuple of str
            Topics of the message; `over` hides the message for any of them.
        """
        self._about = about
        text, self._act = action or ("", lambda: None)
        self.action.setText(text)
        self.action.setAccessibleName(text)
        self.action.setVisible(bool(text))
        closing, self._refuse = instead or ("Dismiss", lambda: None)
        self.dismiss.setText(closing)
        self.dismiss.setAccessibleName(closing)
        self.dismiss.setToolTip("" if instead else "Close this message")
        restyle(self, "banner", tone)
        self.message.setText(message)
        self.advice.setText(advice)
        self.advice.setVisible(bool(advice))
        self.detail.setPlainText(detail)
        lines = (detail.count("\n") + 1) * self.detail.fontMetrics().lineSpacing()
        self.detail.setFixedHeight(min(lines + look().px(24), look().px(150)))
        self.more.setChecked(False)
        self.more.setVisible(bool(detail))
        self.detail.hide()
        self.show()

    def over(self, what: str) -> None:
        """Hide the message if it is about a topic that no longer applies."""
        if what in self._about:
            self.hide()

    def _dismiss(self) -> None:
        self.hide()
        self._refuse()

    def _take_action(self) -> None:
        self.hide()
        self._act()
