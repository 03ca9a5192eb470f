"""The rung of the ladder that is shown: its idea, its limit, and the way to the rung that lifts that."""

from __future__ import annotations

from PyQt6.QtCore import pyqtSignal

from gpu.declaration.pattern import Pattern, Variant
from gui.widgets.basic import Card, ElidedButton, button, label, role, row


class RungCard(Card):
    """A variant, and its neighbors a press away.

    Parameters
    ----------
    pattern : Pattern
    """

    variant_wanted = pyqtSignal(str)
    shown = pyqtSignal(str)
    """The variant that is shown."""
    lesson_wanted = pyqtSignal(str)
    """The lesson that lifts a variant's limit is wanted."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__("", margins=(12, 10, 12, 10))
        self._pattern = pattern
        self.setAccessibleName("Variant")
        self.title.setWordWrap(True)
        self.head.setStretch(0, 1)
        self.below = button("‹", "flat", name="The rung before")
        self.above = button("›", "flat", name="The next rung")
        self.head.addLayout(row(self.below, self.above, spacing=0))
        self.idea = label("", "muted", wrap=True, name="Idea of the variant")
        self.limit = label("", "caption", wrap=True, name="What limits the variant")
        self.lifts = ElidedButton("The rung that lifts the limit", "Go to that rung")
        role(self.lifts, "link")
        self.body.setSpacing(4)
        for each in (self.idea, self.limit):
            self.body.addWidget(each)
        self.body.addLayout(row(self.lifts, 0))
        self.lesson = ElidedButton("The lesson that lifts the limit", "Work it out in a lesson")
        role(self.lesson, "link")
        self.lesson.hide()
        self.body.addLayout(row(self.lesson, 0))
        self._variant = ""
        self.lesson.clicked.connect(lambda: self.lesson_wanted.emit(self._variant))
        self._goals: dict[str, str] = {}
        for name, made in (("below", self.below), ("above", self.above), ("lifts", self.lifts)):
            made.clicked.connect(lambda _=False, name=name: self.variant_wanted.emit(self._goals[name]))

    def show_variant(self, variant: Variant) -> None:
        """Show a variant of the pattern."""
        ladder = self._pattern.variants
        place = ladder.index(variant)
        self.title.setText(f"{place + 1}  {variant.title}")
        self.idea.setText(variant.idea)
        self.limit.setText(f"Limit: {variant.limit}")
        self._goals.clear()
        for name, made, there in (("below", self.below, place - 1), ("above", self.above, place + 1)):
            made.setEnabled(0 <= there < len(ladder))
            made.setToolTip(f"{there + 1}  {ladder[there].title}" if made.isEnabled() else "")
            if made.isEnabled():
                self._goals[name] = ladder[there].name
        lifts = self._pattern.lifts(variant)
        self.lifts.setVisible(lifts is not None)
        if lifts is not None:
            self._goals["lifts"] = lifts.name
            self.lifts.say(f"Lifted by {ladder.index(lifts) + 1}  {lifts.title}")
        self._variant = variant.name
        self.shown.emit(variant.name)

    @property
    def variant(self) -> str:
        """The name of the variant that is shown."""
        return self._variant

    def show_lesson(self, title: str) -> None:
        """Offer the lesson that lifts the variant's limit; "" for none."""
        self.lesson.setVisible(bool(title))
        self.lesson.say(f"Lesson: {title}")
