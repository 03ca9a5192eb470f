"""A pattern's example settings: a list to choose from, and a description of the chosen example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QFrame, QWidget

from gpu.declaration.pattern import Pattern, Preset
from gui.painting.theme import look
from gui.widgets.basic import label, row, wrap_tip
from gui.widgets.elided_box import ElidedBox


def find_preset(pattern: Pattern, params: Mapping[str, Any], variant: str = "") -> Preset | None:
    """Return the preset that matches the settings; of several matches, the one with the variant."""
    matches = []
    for preset in pattern.presets:
        values = pattern.check(preset.params)
        if all(np.array_equal(values[name], params[name]) for name in values):
            matches.append(preset)
    return next((preset for preset in matches if preset.variant == variant), matches[0] if matches else None)


class Examples(QWidget):
    """The list of examples, placed in the tab bar's line; `description_banner` describes the current example."""

    preset_selected = pyqtSignal(object)
    """Preset"""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self._pattern = pattern
        self.box = ElidedBox("Example", "Settings of an instructive example")
        self.box.addItem("Choose…")
        for number, preset in enumerate(pattern.presets, 1):
            self.box.addItem(preset.title)
            self.box.setItemData(number, wrap_tip(preset.text), Qt.ItemDataRole.ToolTipRole)
        self.box.setMinimumWidth(look().px(210))
        heading = label("Example", "caption")
        heading.setBuddy(self.box)
        self.setLayout(row(heading, self.box))
        self.box.activated.connect(self._select_preset)
        self.text = label("", wrap=True, name="Description of the example")
        self.description_banner = QFrame()
        self.description_banner.setProperty("banner", "neutral")
        self.description_banner.setLayout(row(self.text, margins=(14, 6, 14, 6)))
        self.description_banner.hide()
        if not pattern.presets:
            self.hide()

    def _select_preset(self, number: int) -> None:
        if number:
            self.preset_selected.emit(self._pattern.presets[number - 1])

    def show_params(self, params: Mapping[str, Any], variant: str) -> None:
        """Select the example that matches the settings, if any."""
        preset = find_preset(self._pattern, params, variant)
        self.box.setCurrentIndex(self._pattern.presets.index(preset) + 1 if preset is not None else 0)
        self.text.setText(preset.text if preset is not None else "")
        self.description_banner.setVisible(preset is not None)
