"""The card of the current variant: its idea, its limit, and a link to the variant that removes the limit."""

from __future__ import annotations

from PyQt6.QtCore import pyqtSignal

from gpu.declaration.pattern import Pattern, Variant
from gui.widgets.basic import Card, ElidedButton, button, label, row, set_role


class RungCard(Card):
    """A variant, with buttons for its neighbors in the ladder."""

    variant_requested = pyqtSignal(str)
    variant_shown = pyqtSignal(str)
    """The variant shown."""
    lesson_requested = pyqtSignal(str)
    """The lesson about a variant's limit is requested."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__("", margins=(12, 10, 12, 10))
        self._pattern = pattern
        self.setAccessibleName("Variant")
        self.title.setWordWrap(True)
        self.head.setStretch(0, 1)
        self.below = button("‹", "flat", name="Previous variant")
        self.above = button("›", "flat", name="Next variant")
        self.head.addLayout(row(self.below, self.above, spacing=0))
        self.idea = label("", "muted", wrap=True, name="Idea of the variant")
        self.limit = label("", "caption", wrap=True, name="Limit of the variant")
        self.next_button = ElidedButton("Variant that removes the limit", "Go to that variant")
        set_role(self.next_button, "link")
        self.body.setSpacing(4)
        for each in (self.idea, self.limit):
            self.body.addWidget(each)
        self.body.addLayout(row(self.next_button, 0))
        self.lesson = ElidedButton("Lesson about the limit", "Learn it in a lesson")
        set_role(self.lesson, "link")
        self.lesson.hide()
        self.body.addLayout(row(self.lesson, 0))
        self._variant = ""
        self.lesson.clicked.connect(lambda: self.lesson_requested.emit(self._variant))
        self._targets: dict[str, str] = {}
        for name, control in (("below", self.below), ("above", self.above), ("lifts", self.next_button)):
            control.clicked.connect(lambda _=False, name=name: self.variant_requested.emit(self._targets[name]))

    def show_variant(self, variant: Variant) -> None:
        """Show a variant of the pattern."""
        ladder = self._pattern.variants
        number = ladder.index(variant)
        self.title.setText(f"{number + 1}  {variant.title}")
        self.idea.setText(variant.idea)
        self.limit.setText(f"Limit: {variant.limit}")
        self._targets.clear()
        for name, control, index in (("below", self.below, number - 1), ("above", self.above, number + 1)):
            control.setEnabled(0 <= index < len(ladder))
            control.setToolTip(f"{index + 1}  {ladder[index].title}" if control.isEnabled() else "")
            if control.isEnabled():
                self._targets[name] = ladder[index].name
        lifts = self._pattern.find_successor(variant)
        self.next_button.setVisible(lifts is not None)
        if lifts is not None:
            self._targets["lifts"] = lifts.name
            self.next_button.show_text(f"Next: {ladder.index(lifts) + 1}  {lifts.title}")
        self._variant = variant.name
        self.variant_shown.emit(variant.name)

    @property
    def variant(self) -> str:
        """The name of the variant shown."""
        return self._variant

    def show_lesson(self, title: str) -> None:
        """Link to the lesson about the variant's limit; "" hides the link."""
        self.lesson.setVisible(bool(title))
        self.lesson.show_text(f"Lesson: {title}")
