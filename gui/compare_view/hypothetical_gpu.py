"""What-if sliders: another memory bandwidth, another number of registers, another block size."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QLabel, QSlider, QWidget

from gpu.timing.gpus import GpuScaling
from gui.painting.theme import look
from gui.widgets.basic import button, label, row
from gui.widgets.wrapping import WrappingLayout

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_UNCHANGED_INDEX = FACTORS.index(1.0)


class _StepSlider(QWidget):
    """A slider over a few values, with its name and its current value."""

    value_changed = pyqtSignal()

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(name)
        self.slider.setToolTip(tip)
        self.slider.setPageStep(1)
        self.slider.setFixedWidth(look().px(84))
        self.value_label: QLabel = label("", "code")
        self.texts: tuple[str, ...] = ()
        self.slider.valueChanged.connect(self._on_slider_moved)
        self.setLayout(row(label(name, "caption"), self.slider, self.value_label, spacing=6))

    def set_values(self, texts: Sequence[str], selected_index: int) -> None:
        """Set the values, of which one is selected."""
        self.slider.blockSignals(True)
        self.texts = tuple(texts)
        self.slider.setRange(0, max(len(texts) - 1, 0))
        self.slider.setValue(selected_index)
        self.slider.blockSignals(False)
        self._show_value()

    def _show_value(self) -> None:
        slider_value = self.slider.value()
        text = self.texts[slider_value] if slider_value < len(self.texts) else ""
        self.value_label.setText(text)
        self.value_label.setMinimumWidth(self.value_label.fontMetrics().horizontalAdvance("×0.25"))
        self.slider.setAccessibleDescription(text)

    def _on_slider_moved(self) -> None:
        self._show_value()
        self.value_changed.emit()


class HypotheticalGpuSliders(QWidget):
    """The sliders, and a button that resets them."""

    changed = pyqtSignal()

    def __init__(self) -> None:
        super().__init__()
        self.bandwidth = _StepSlider("Bandwidth", "Model the GPU with more or less memory bandwidth")
        self.registers = _StepSlider("Registers", "Model multiprocessors with more or fewer registers")
        self.block = _StepSlider("Block", "Model blocks with this number of threads")
        self.reset = button("Reset", "flat", tip="The described GPU and the current block size")
        self.reset.clicked.connect(self.reset_sliders)
        self._blocks: tuple[int, ...] = ()
        self._current_block = 0
        layout = WrappingLayout(self, across=12, down=4)
        for each in (self.bandwidth, self.registers, self.block, self.reset):
            layout.addWidget(each)
        for factor in (self.bandwidth, self.registers):
            factor.set_values([f"×{each:g}" for each in FACTORS], _UNCHANGED_INDEX)
        for each in (self.bandwidth, self.registers, self.block):
            each.value_changed.connect(self._on_slider_moved)
        self.block.hide()
        self.reset.hide()

    @property
    def supposed(self) -> GpuScaling:
        """The supposed changes to the GPU."""
        bandwidth, registers = (FACTORS[each.slider.value()] for each in (self.bandwidth, self.registers))
        return GpuScaling(bandwidth, registers)

    @property
    def threads(self) -> int:
        """The selected threads per block; 0 if they cannot be changed."""
        return self._blocks[self.block.slider.value()] if self._blocks else 0

    @property
    def blocks(self) -> tuple[int, ...]:
        """The possible block sizes."""
        return self._blocks

    @property
    def has_changes(self) -> bool:
        """Whether any slider differs from the real value."""
        return bool(self.description)

    @property
    def description(self) -> str:
        """The suppositions as text, or ""."""
        supposed, parts = self.supposed, []
        if supposed.bandwidth != 1:
            parts.append(f"×{supposed.bandwidth:g} bandwidth")
        if supposed.registers != 1:
            parts.append(f"×{supposed.registers:g} registers")
        if self.threads != self._current_block:
            parts.append(f"{self.threads} threads per block")
        return ", ".join(parts)

    def set_block_sizes(self, blocks: Sequence[int], current_block: int) -> None:
        """Set the possible block sizes and the current one."""
        if (tuple(blocks), current_block) == (self._blocks, self._current_block):
            return
        self._blocks, self._current_block = tuple(blocks), current_block if current_block in blocks else 0
        if not self._current_block:
            self._blocks = ()
        self.block.setVisible(bool(self._blocks))
        self.block.set_values(
            [str(block) for block in self._blocks], self._blocks.index(current_block) if self._blocks else 0
        )
        self.reset.setVisible(self.has_changes)

    def reset_sliders(self) -> None:
        """Reset all sliders."""
        for each, place in (
            (self.bandwidth, _UNCHANGED_INDEX),
            (self.registers, _UNCHANGED_INDEX),
            (self.block, self._blocks.index(self._current_block) if self._blocks else 0),
        ):
            each.slider.setValue(place)

    def _on_slider_moved(self) -> None:
        self.reset.setVisible(self.has_changes)
        self.changed.emit()
