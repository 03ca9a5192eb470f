"""What-if sliders: another memory bandwidth, another number of registers, another block size."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QLabel, QSlider, QWidget

from gpu.timing.gpus import Supposed
from gui.painting.theme import look
from gui.widgets.basic import button, label, row
from gui.widgets.wrapping import WrappingLayout

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_AS_IT_IS = FACTORS.index(1.0)


class _Stepped(QWidget):
    """A slider over a few values, with its name and its current value."""

    moved = pyqtSignal()

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(name)
        self.slider.setToolTip(tip)
        self.slider.setPageStep(1)
        self.slider.setFixedWidth(look().px(84))
        self.value: QLabel = label("", "code")
        self.texts: tuple[str, ...] = ()
        self.slider.valueChanged.connect(self._on_moved)
        self.setLayout(row(label(name, "caption"), self.slider, self.value, spacing=6))

    def offer(self, texts: Sequence[str], chosen: int) -> None:
        """Set the values, of which one is selected."""
        self.slider.blockSignals(True)
        self.texts = tuple(texts)
        self.slider.setRange(0, max(len(texts) - 1, 0))
        self.slider.setValue(chosen)
        self.slider.blockSignals(False)
        self._show()

    def _show(self) -> None:
        place = self.slider.value()
        text = self.texts[place] if place < len(self.texts) else ""
        self.value.setText(text)
        self.value.setMinimumWidth(self.value.fontMetrics().horizontalAdvance("×0.25"))
        self.slider.setAccessibleDescription(text)

    def _on_moved(self) -> None:
        self._show()
        self.moved.emit()


class WhatIf(QWidget):
    """The sliders, and a button that resets them."""

    changed = pyqtSignal()

    def __init__(self) -> None:
        super().__init__()
        self.bandwidth = _Stepped("Bandwidth", "Model the GPU with more or less memory bandwidth")
        self.registers = _Stepped("Registers", "Model multiprocessors with more or fewer registers")
        self.block = _Stepped("Block", "Model blocks with this number of threads")
        self.reset = button("Reset", "flat", tip="The described GPU and the current block size")
        self.reset.clicked.connect(self.take_back)
        self._blocks: tuple[int, ...] = ()
        self._current_block = 0
        layout = WrappingLayout(self, across=12, down=4)
        for each in (self.bandwidth, self.registers, self.block, self.reset):
            layout.addWidget(each)
        for factor in (self.bandwidth, self.registers):
            factor.offer([f"×{each:g}" for each in FACTORS], _AS_IT_IS)
        for each in (self.bandwidth, self.registers, self.block):
            each.moved.connect(self._on_moved)
        self.offer((), 0)

    @property
    def supposed(self) -> Supposed:
        """The supposed changes to the GPU."""
        bandwidth, registers = (FACTORS[each.slider.value()] for each in (self.bandwidth, self.registers))
        return Supposed(bandwidth, registers)

    @property
    def threads(self) -> int:
        """The selected threads per block; 0 if they cannot be changed."""
        return self._blocks[self.block.slider.value()] if self._blocks else 0

    @property
    def blocks(self) -> tuple[int, ...]:
        """The possible block sizes."""
        return self._blocks

    @property
    def any(self) -> bool:
        """Whether any slider differs from the real value."""
        return bool(self.words)

    @property
    def words(self) -> str:
        """The suppositions as text, or ""."""
        supposed, parts = self.supposed, []
        if supposed.bandwidth != 1:
            parts.append(f"×{supposed.bandwidth:g} bandwidth")
        if supposed.registers != 1:
            parts.append(f"×{supposed.registers:g} registers")
        if self.threads != self._current_block:
            parts.append(f"{self.threads} threads per block")
        return ", ".join(parts)

    def offer(self, blocks: Sequence[int], chosen: int) -> None:
        """Set the possible block sizes and the current one."""
        if (tuple(blocks), chosen) == (self._blocks, self._current_block):
            return
        self._blocks, self._current_block = tuple(blocks), chosen if chosen in blocks else 0
        if not self._current_block:
            self._blocks = ()
        self.block.setVisible(bool(self._blocks))
        self.block.offer([str(each) for each in self._blocks], self._blocks.index(chosen) if self._blocks else 0)
        self.reset.setVisible(self.any)

    def take_back(self) -> None:
        """Reset all sliders."""
        for each, place in (
            (self.bandwidth, _AS_IT_IS),
            (self.registers, _AS_IT_IS),
            (self.block, self._blocks.index(self._current_block) if self._blocks else 0),
        ):
            each.slider.setValue(place)

    def _on_moved(self) -> None:
        self.reset.setVisible(self.any)
        self.changed.emit()
