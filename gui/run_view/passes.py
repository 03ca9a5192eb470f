"""Playback of a run: snapshots of the keys between its launches."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt, QTimer, pyqtSignal
from PyQt6.QtWidgets import QHBoxLayout, QPushButton, QSlider, QWidget

from gui.painting.theme import look
from gui.widgets.basic import label

_PLAYBACK_MS = 4000
_SHORTEST_MS, _LONGEST_MS = 50, 600


class PassesBar(QWidget):
    """A Play button, a slider over the snapshots, and the caption of the current snapshot."""

    pass_selected = pyqtSignal(int)
    """The number of the snapshot to show; the last is the result."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Passes of the run")
        self._captions: Sequence[str] = ()
        self.button = QPushButton("Play")
        self.button.setAccessibleName("Play the passes")
        self.button.setToolTip("Play the run: the keys between launches")
        self.button.setFixedWidth(self.button.fontMetrics().horizontalAdvance("Pause") + look().px(36))
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Pass")
        self.caption = label("", "caption", name="Current pass")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 2, 0, 2)
        layout.addWidget(self.button)
        layout.addWidget(self.slider, 1)
        layout.addWidget(self.caption)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._show_next)
        self.button.clicked.connect(self.toggle)
        self.slider.valueChanged.connect(self._show_pass)
        self.slider.sliderPressed.connect(self.pause)

    @property
    def playing(self) -> bool:
        """Whether playback is running."""
        return self._timer.isActive()

    def show_passes(self, captions: Sequence[str]) -> None:
        """Load snapshots with these captions, and play them from the first on."""
        self._captions = captions
        # Reserve room for the longest caption, so that the slider does not move.
        metrics = self.caption.fontMetrics()
        self.caption.setMinimumWidth(
            max(metrics.horizontalAdvance(self._format_caption(n)) for n in range(len(captions))) + 8
        )
        self.slider.blockSignals(True)
        self.slider.setRange(0, len(captions) - 1)
        self.slider.setValue(0)
        self.slider.blockSignals(False)
        self._timer.setInterval(max(_SHORTEST_MS, min(_LONGEST_MS, _PLAYBACK_MS // len(captions))))
        self._show_pass(0)
        self.play()

    def toggle(self) -> None:
        """Pause, or play (from the start if the end is shown)."""
        self.pause() if self.playing else self.play()

    def play(self) -> None:
        """Start or continue playback."""
        if self.slider.value() == self.slider.maximum():
            self.slider.setValue(0)
        self._timer.start()
        self.button.setText("Pause")

    def pause(self) -> None:
        """Pause playback."""
        self._timer.stop()
        self.button.setText("Play")

    def _show_next(self) -> None:
        if not self.isVisible() or self.slider.value() >= self.slider.maximum():
            self.slider.setValue(self.slider.maximum())
            self.pause()
            return
        self.slider.setValue(self.slider.value() + 1)

    def _show_pass(self, number: int) -> None:
        self.caption.setText(self._format_caption(number))
        self.pass_selected.emit(number)

    def _format_caption(self, number: int) -> str:
        return f"{self._captions[number]}   {number + 1} / {len(self._captions)}"
