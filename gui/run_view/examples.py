"""A pattern's demonstrations: a list to choose from, and what the chosen one shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QWidget

from gpu.declaration.pattern import Pattern, Preset
from gui.painting.theme import look
from gui.widgets.basic import label, row


def preset_of(pattern: Pattern, params: Mapping[str, Any], variant: str = "") -> Preset | None:
    """Return the preset whose settings these are; of several the one that begins with the variant."""
    found = []
    for preset in pattern.presets:
        wanted = pattern.check(preset.params)
        if all(np.array_equal(wanted[name], params[name]) for name in wanted):
            found.append(preset)
    return next((preset for preset in found if preset.variant == variant), found[0] if found else None)


class Examples(QWidget):
    """The list, which stands in the line of the tabs; `about` says what there is to see.

    Parameters
    ----------
    pattern : Pattern
    """

    chosen = pyqtSignal(object)
    """Preset"""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self._pattern = pattern
        self.box = QComboBox()
        self.box.setAccessibleName("Example")
        self.box.setToolTip("Settings that show something")
        self.box.addItem("Choose…")
        for number, preset in enumerate(pattern.presets, 1):
            self.box.addItem(preset.title)
            self.box.setItemData(number, preset.text, Qt.ItemDataRole.ToolTipRole)
        self.box.setMinimumWidth(look().px(210))
        heading = label("Example", "caption")
        heading.setBuddy(self.box)
        self.setLayout(row(heading, self.box))
        self.box.activated.connect(self._choose)
        self.text = label("", wrap=True, name="What the example shows")
        self.about = QFrame()
        self.about.setProperty("banner", "neutral")
        layout = QHBoxLayout(self.about)
        layout.setContentsMargins(14, 6, 14, 6)
        layout.addWidget(self.text)
        self.about.hide()
        if not pattern.presets:
            self.hide()

    def _choose(self, number: int) -> None:
        if number:
            self.chosen.emit(self._pattern.presets[number - 1])

    def show_params(self, params: Mapping[str, Any], variant: str) -> None:
        """Show which example the settings are, if any."""
        found = preset_of(self._pattern, params, variant)
        self.box.setCurrentIndex(self._pattern.presets.index(found) + 1 if found is not None else 0)
        self.text.setText(found.text if found is not None else "")
        self.about.setVisible(found is not None)
