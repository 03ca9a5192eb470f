"""Transport controls of a player: buttons, speed and loop."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QSize, Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from gui.painting.glyphs import glyph
from gui.painting.theme import look
from gui.qt.events import StyleListener, is_event_type
from gui.step_view.time.player import SPEEDS, Player
from gui.widgets.basic import ElidedLabel, restyle, set_role

_BUTTONS = (
    ("first", "First", "Home"),
    ("barrier back", "Previous barrier", "Shift+←"),
    ("back", "Back", "←"),
    ("play", "Play", "Space"),
    ("step", "Step", "→"),
    ("barrier on", "Next barrier", "Shift+→"),
    ("last", "Last", "End"),
)
_GAP = 4


class Transport(StyleListener, QWidget):
    """The buttons of a player, with widgets for count, speed and loop to be placed separately.

    Parameters
    ----------
    moment_name : str
        Name of a moment, such as "step" or "cycle".
    """

    def __init__(self, player: Player, moment_name: str = "step") -> None:
        super().__init__()
        self.player = player
        self._moment_name = moment_name
        self.buttons: dict[str, QPushButton] = {}
        self.count = ElidedLabel("card-title", "Step")
        # Its text does not determine its width, but its reserved minimum width does.
        self.count.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Preferred)
        self._end = 0
        self.speed = QComboBox()
        self.speed.setAccessibleName("Speed")
        for speed in SPEEDS:
            self.speed.addItem(f"{speed:g}×" if speed >= 1 else {0.25: "¼×", 0.5: "½×"}[speed], speed)
        self.speed.setCurrentIndex(SPEEDS.index(1.0))
        self.speed.setToolTip("Playback speed")
        self.loop = QCheckBox("Loop")
        self.loop.setToolTip("Restart at the end")
        for widget in (self.speed, self.loop):
            widget.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(_GAP)
        for name, text, key in _BUTTONS:
            button = QPushButton()
            set_role(button, "primary" if name == "play" else "transport")
            button.setToolTip(f"{text}  ({key})")
            button.setAccessibleName(text)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self.buttons[name] = button
            layout.addWidget(button)
        self.buttons["play"].setText("Play")
        press = {
            "first": lambda: player.go_to_end(last=False),
            "barrier back": lambda: player.go_to_border(-1),
            "back": lambda: player.step(-1),
            "play": player.toggle,
            "step": lambda: player.step(1),
            "barrier on": lambda: player.go_to_border(1),
            "last": lambda: player.go_to_end(last=True),
        }
        for name, do in press.items():
            self.buttons[name].clicked.connect(lambda _=False, do=do: do())
        self.speed.currentIndexChanged.connect(lambda: player.set_speed(self.speed.currentData()))
        self.loop.toggled.connect(lambda on: setattr(player, "loop", on))
        player.playing_changed.connect(self._show_playing)
        player.moved.connect(self._show_moment)
        self._restyle()

    def sizeHint(self) -> QSize:
        return QSize(sum(map(self._preferred_width, self.buttons)) + self._gaps, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(sum(map(self._min_width, self.buttons)) + self._gaps, super().minimumSizeHint().height())

    @property
    def _gaps(self) -> int:
        return _GAP * (len(self.buttons) - 1)

    def _preferred_width(self, name: str) -> int:
        """Return a button's preferred width."""
        return max(look().px(84 if name == "play" else 38), self._min_width(name))

    def _min_width(self, name: str) -> int:
        """Return a button's minimum width for its icon and text; for Play and Pause, that of the longer one."""
        button = self.buttons[name]
        measure = button.fontMetrics().horizontalAdvance
        longer = max(map(measure, ("Play", "Pause"))) - measure(button.text()) if name == "play" else 0
        return button.minimumSizeHint().width() + longer

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._share_width()

    def _share_width(self) -> None:
        """Shrink all buttons evenly if there is less space than they prefer."""
        preferred, minimum = self.sizeHint().width(), self.minimumSizeHint().width()
        share = min(max((self.width() - minimum) / max(1, preferred - minimum), 0), 1)
        for name, button in self.buttons.items():
            narrow = self._min_width(name)
            button.setFixedWidth(narrow + int(share * (self._preferred_width(name) - narrow)))

    def _show_playing(self, playing: bool) -> None:
        play = self.buttons["play"]
        play.setText("Pause" if playing else "Play")
        play.setAccessibleName("Pause" if playing else "Play")
        play.setIcon(glyph("pause" if playing else "play", look().theme.on_accent))

    def _show_moment(self, moment: int) -> None:
        end = self.player.end
        self.count.show_text(self._format_count(moment, end))
        if end != self._end:
            self._end = end
            self._reserve_count_width()
        for name in ("first", "barrier back", "back"):
            self.buttons[name].setEnabled(moment > 0)
        for name in ("step", "barrier on", "last"):
            self.buttons[name].setEnabled(moment < end)
        self.buttons["play"].setEnabled(end > 0)

    def _reserve_count_width(self) -> None:
        """Reserve space for the longest count."""
        self.count.ensurePolished()
        longest = self.count.fontMetrics().horizontalAdvance(self._format_count(self._end, self._end))
        self.count.setMinimumWidth(max(longest + look().px(4), look().px(96)))

    def event(self, event: QEvent | None) -> bool:
        if is_event_type(event, QEvent.Type.LayoutRequest):
            self._share_width()  # a button's preferred width has changed with the text size
        return super().event(event)

    def _restyle(self) -> None:
        size = QSize(look().px(16), look().px(14))
        for name, button in self.buttons.items():
            button.setIconSize(size)
            if name != "play":
                button.setIcon(glyph(name, look().theme.text))
        self._show_playing(self.player.playing)
        self._share_width()
        self._reserve_count_width()
        restyle(self.buttons["play"], "role", "primary")

    def _format_count(self, moment: int, end: int) -> str:
        return f"{self._moment_name} {moment} of {end}" if end else ""
