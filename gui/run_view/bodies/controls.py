"""The controls of a simulation and its picture, below the picture."""

from __future__ import annotations

from PyQt6.QtCore import QSize, Qt, pyqtSignal
from PyQt6.QtWidgets import QComboBox, QMenu, QPushButton, QSlider, QWidget

from gui.painting.glyphs import glyph
from gui.painting.theme import look
from gui.qt.events import StyleListener
from gui.run_view.bodies.simulation import LiveSimulation
from gui.widgets.basic import Segments, button, label, restyle, row, set_role
from gui.widgets.wrapping import WrappingLayout

SPEEDS = (1, 2, 5, 10, 20, 50, 100)
COLORS = ("speed", "origin")
_BRIGHTNESS_STEPS = 20
"""Slider steps from the middle to an end, a factor of ten in brightness."""
_BUTTONS = (("first", "Restart", "R"), ("play", "Play", "Space"), ("step", "Single step", "."))


class Controls(StyleListener, QWidget):
    """Buttons, speed, color, brightness, and files."""

    film_requested = pyqtSignal()
    """The user starts or ends a film."""

    def __init__(self, simulation: LiveSimulation) -> None:
        super().__init__()
        self.simulation = simulation
        self.buttons: dict[str, QPushButton] = {}
        for name, text, key in _BUTTONS:
            control = self.buttons[name] = button("", "transport", tip=f"{text}  ({key})", name=text)
            control.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        set_role(self.buttons["play"], "primary")
        self.buttons["first"].clicked.connect(lambda: simulation.restart(simulation.bodies))
        self.buttons["play"].clicked.connect(lambda: simulation.play(not simulation.playing))
        self.buttons["step"].clicked.connect(simulation.step)
        simulation.playing_changed.connect(self._show_playing)

        self.speed = QComboBox()
        self.speed.setAccessibleName("Steps per frame")
        self.speed.setToolTip(
            "Time steps per frame, which set the speed of the simulation; slow steps reduce the number"
        )
        for speed in SPEEDS:
            self.speed.addItem(f"{speed}×", speed)
        self.speed.currentIndexChanged.connect(self._on_speed_changed)
        self.color = Segments(COLORS, "Color by")
        self.color.picked.connect(self._on_color_changed)
        self.brightness = QSlider(Qt.Orientation.Horizontal)
        self.brightness.setAccessibleName("Brightness")
        self.brightness.setToolTip("Brightness of the bodies")
        self.brightness.setRange(-_BRIGHTNESS_STEPS, _BRIGHTNESS_STEPS)
        self.brightness.valueChanged.connect(self._on_brightness_changed)
        self.record = button("Record…", tip="Record a GIF or MP4 of the simulation")
        self.record.clicked.connect(self.film_requested)
        self.files = button("Files", tip="Save a picture or the bodies; open bodies")
        self.menu = QMenu(self)
        self.files.setMenu(self.menu)
        for widget in (self.speed, self.brightness, self.record, self.files):
            widget.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._groups: list[QWidget] = []
        layout = WrappingLayout(self, across=10, down=6)
        for group in (
            (*self.buttons.values(),),
            (label("steps", "caption"), self.speed),
            (self.color,),
            (label("brightness", "caption"), self.brightness),
            (self.record, self.files),
        ):
            holder = QWidget()
            holder.setLayout(row(*group, spacing=6))
            self._groups.append(holder)
            layout.addWidget(holder)
        self._restyle()

    def _on_speed_changed(self) -> None:
        self.simulation.steps_per_frame = self.speed.currentData()

    def _on_color_changed(self) -> None:
        self.simulation.color = self.color.chosen
        self.simulation.redraw()

    def _on_brightness_changed(self, position: int) -> None:
        self.simulation.exposure = 10 ** (position / _BRIGHTNESS_STEPS)
        self.simulation.redraw()

    def show_recording(self, recording: bool) -> None:
        """Show whether the button starts or ends a film."""
        self.record.setText("■ End film" if recording else "Record…")
        self.record.setToolTip("End the film and write it" if recording else "Record a GIF or MP4 of the simulation")

    def _show_playing(self, playing: bool) -> None:
        play = self.buttons["play"]
        text = "Pause" if playing else "Play"
        play.setText(text)
        play.setAccessibleName(text)
        play.setIcon(glyph("pause" if playing else "play", look().theme.on_accent))

    def _restyle(self) -> None:
        self.brightness.setFixedWidth(look().px(56))
        size = QSize(look().px(16), look().px(14))
        for name, control in self.buttons.items():
            control.setIconSize(size)
            control.setMinimumWidth(look().px(84 if name == "play" else 38))
            if name != "play":
                control.setIcon(glyph(name, look().theme.text))
        self._show_playing(self.simulation.playing)
        # Equal heights, so that the centers are aligned.
        for group in self._groups:
            group.setMinimumHeight(0)
        highest = max(group.sizeHint().height() for group in self._groups)
        for group in self._groups:
            group.setMinimumHeight(highest)
        restyle(self.buttons["play"], "role", "primary")
