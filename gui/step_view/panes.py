"""Layout of the Step tab: pictures, source, cards, timeline and transport."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import QEvent, QObject, Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QHBoxLayout, QSizePolicy, QSplitter, QStackedWidget, QWidget

from gui.editor.source_pane import SourcePane
from gui.painting.theme import look
from gui.step_view.arrays.view import MemoryView
from gui.step_view.cards.counters import ROWS, CountersCard
from gui.step_view.cards.findings import FindingsLabel
from gui.step_view.cards.lanes import LanesCard
from gui.step_view.dataflow.view import FlowView
from gui.step_view.pictures.launches import LaunchesView
from gui.step_view.pictures.schedules import SchedulesView
from gui.step_view.pictures.tiles import TilesView
from gui.step_view.pictures.variables import VariablesView
from gui.step_view.side_by_side.variants import VariantsView
from gui.step_view.time.player import Player
from gui.step_view.time.timeline import Timeline
from gui.step_view.time.transport import Transport
from gui.step_view.warps.view import WarpsView
from gui.widgets.basic import Badge, Card, ElidedLabel, Segments, button, column, label, row
from gui.widgets.wrapping import WrappingLayout

FLOW_LEGEND = "cell: value  ·  circle: its thread  ·  lines: from its operands"
ARRAYS_LEGEND = "framed: read  ·  filled: written, in its warp's color  ·  click: the thread"
VARIABLES_LEGEND = "tinted: just changed  ·  a 32-bit value that all lanes share: one bit per lane"
TILES_LEGEND = "number: lane with the element  ·  filled: the thread's elements, x3 is x[3]  ·  click: the thread"
WARPS_LEGEND = "click or drag: a cycle and a warp's line  ·  wheel: scroll, Ctrl+wheel: zoom"
LAUNCHES_LEGEND = "dashed: launched  ·  filled: running  ·  tinted: waiting  ·  click: go there"

_PROBLEM_LINES = 18
"""Lines of text that a reported problem in the source takes from the counts."""
_MIN_CODE_HEIGHT = 66
"""Height in pixels, at the normal text size, of a file's name and three lines, which the cards below must leave."""
_COUNT_ROWS_BY_HEIGHT = (
    (35, frozenset(ROWS)),
    (21, frozenset(ROWS) - {"total"}),
    (18, frozenset(("so far", "this step"))),
    (0, frozenset(("so far", "textbook"))),
)
"""Rows of counts to show, by the minimum height of the right side in lines of text."""


class Panes(QWidget):
    """The widgets of the Step tab: pictures at the left, source and cards at the right, time at the bottom."""

    def __init__(
        self, player: Player, source: SourcePane, schedules_view: SchedulesView, variants_view: VariantsView
    ) -> None:
        super().__init__()
        self._has_phases = self._shows_cycles = self._counts_hidden = False
        self._make_pictures(schedules_view, variants_view)
        self.right = self._make_right(source)
        self._strip = source.strip
        for each in (self.right, self._strip):
            each.installEventFilter(self)
        self.time = self._make_time(player)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(8)
        self.splitter.addWidget(self.picture)
        self.splitter.addWidget(self.right)
        self.splitter.setStretchFactor(0, 3)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.setSizes([look().px(576), look().px(538)])
        self.setLayout(column(self.splitter, self.time, stretch=0))

    def _make_pictures(self, schedules_view: SchedulesView, variants_view: VariantsView) -> None:
        self.flow = FlowView()
        self.message = label("", "muted", wrap=True, name="Reason for no picture")
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.pictures = QStackedWidget()
        self.arrays = MemoryView()
        self.pictures.addWidget(self.flow)
        self.pictures.addWidget(self.arrays)
        self.variables_view = VariablesView()
        self.pictures.addWidget(self.variables_view)
        self.tiles = TilesView()
        self.pictures.addWidget(self.tiles)
        self.warps = WarpsView()
        self.pictures.addWidget(self.warps)
        self.launches = LaunchesView()
        self.pictures.addWidget(self.launches)
        self.pictures.addWidget(schedules_view)
        self.pictures.addWidget(variants_view)
        self.pictures.addWidget(self.message)
        self.picture = Card("Dataflow", margins=(1, 7, 1, 7))
        self.picture.body.setSpacing(4)
        self.picture.body.removeItem(self.picture.head)
        self.picture.title.hide()
        self.kinds = Segments(
            ("Flow", "Arrays", "Variables", "Tiles", "Timeline", "Launches", "Two schedules", "Side by side"), "Picture"
        )
        for kind in ("Tiles", "Launches"):
            self.kinds.buttons[kind].hide()
        self.state = Badge()
        self.state.hide()
        self.zoom_buttons = {
            "−": button("−", "flat", tip="Smaller  (−, Ctrl+wheel)", name="Zoom out"),
            "fit": button("Fit all", "flat", tip="The whole picture  (F)", name="Fit"),
            "+": button("+", "flat", tip="Larger  (+, Ctrl+wheel)", name="Zoom in"),
        }
        for zoom_button in self.zoom_buttons.values():
            zoom_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.symbols = button("Σ x", "segment", tip="Show how each value was computed instead of values  (S)")
        self.symbols.setCheckable(True)
        self.symbols.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.export = button("Export…", "flat", tip="Save a picture, an animation or the recording")
        self.export.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.legend = ElidedLabel("caption", "Legend")
        self.legend.show_text(FLOW_LEGEND)
        self._foot_row = row(self.legend, margins=(14, 0, 8, 0), stretch=0)
        self._head_row = self._make_head()
        self.picture.body.addLayout(self._head_row)
        self.picture.body.addWidget(self.pictures, 1)
        self.picture.body.addLayout(self._foot_row)
        self.picture.installEventFilter(self)

    def _make_head(self) -> QHBoxLayout:
        """Return the layout of the controls above the picture."""
        pairs = self.kinds.move_buttons_to_widget("Two schedules", "Side by side")
        self._kind_groups = (self.kinds, pairs)
        lines = WrappingLayout(across=20, down=2)
        lines.setContentsMargins(0, 2, 0, 2)
        for items in ((self.kinds,), (pairs, self.state)):
            group = QWidget()
            group.setLayout(row(*items))
            lines.addWidget(group)
        kinds = QWidget()
        kinds.setLayout(lines)
        self._tools = QWidget()
        self._tools.setLayout(row(self.symbols, *self.zoom_buttons.values(), self.export, spacing=0))
        self._tools.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        head = row(kinds, self._tools, stretch=0)
        head.setContentsMargins(12, 0, 8, 0)
        return head

    def _place_tools(self) -> None:
        """Place the picture tools next to the picture names or, if they do not fit there, below the picture."""
        tools = (self.symbols, *self.zoom_buttons.values(), self.export)
        names_width, tools_width = (
            sum(each.sizeHint().width() for each in group) for group in (self._kind_groups, tools)
        )
        below = names_width + tools_width + 50 > self.picture.width()
        if below != (self._foot_row.indexOf(self._tools) >= 0):
            for layout in (self._head_row, self._foot_row):
                layout.removeWidget(self._tools)
            (self._foot_row if below else self._head_row).addWidget(self._tools, 0, Qt.AlignmentFlag.AlignRight)

    def _make_right(self, source: SourcePane) -> QWidget:
        self.statement = ElidedLabel("code", "Statement with its values")
        self.phase = ElidedLabel("section", "Phase", right=True)
        self.phase.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.phase.hide()
        self.variables = ElidedLabel("caption", "Variables of the thread")
        words = Card("Statement", margins=(12, 6, 12, 8))
        words.title.hide()
        words.body.setSpacing(2)
        words.body.addWidget(self.statement)
        line = row(self.variables, self.phase, stretch=0)
        words.body.addLayout(line)
        self.lanes = LanesCard()
        self.counters = CountersCard()
        self._recording_cards = (words, self.lanes, self.counters)
        self.warps.card.hide()
        right = QWidget()
        right.setLayout(column(source, words, self.lanes, self.counters, self.warps.card, stretch=0))
        return right

    def show_cycles(self, on: bool) -> None:
        """Show the cards of the timeline of cycles instead of those of the recording, or the reverse."""
        self._shows_cycles = on
        self.time.setVisible(not on)
        self._fit_to_height()
        self.warps.card.setVisible(on and self.warps.run is not None)

    def set_counts_hidden(self, hidden: bool) -> None:
        """Hide the counts, which would reveal the answer to a question, or show them again."""
        self._counts_hidden = hidden
        self._fit_to_height()

    def reserve_phases(self, names: Sequence[str]) -> None:
        """Reserve space for the longest of the phase names; none without names."""
        self.phase.ensurePolished()
        metric = self.phase.fontMetrics()
        longest = max((metric.horizontalAdvance(name) for name in names), default=0)
        self.phase.setFixedWidth(min(longest + look().px(4), look().px(170)))
        self._has_phases = longest > 0
        self._fit_to_height()

    def _make_time(self, player: Player) -> Card:
        self.timeline = Timeline()
        self.transport = Transport(player)
        self.verdict = FindingsLabel()
        time = Card("Time", margins=(12, 4, 12, 8))
        time.title.hide()
        time.body.setSpacing(4)
        time.body.addWidget(self.timeline)
        controls = QWidget()
        controls.setLayout(row(self.transport, 10, self.transport.speed, self.transport.loop))
        self._controls = controls
        self._time_line = WrappingLayout(across=8, down=4, spread=True)
        for each in (self.transport.count, controls, self.verdict):
            self._time_line.addWidget(each)
        time.body.addLayout(self._time_line)
        time.installEventFilter(self)
        return time

    def _arrange_time_line(self) -> None:
        """Place the findings to the right of the controls or, if they do not fit there, above them next to the step."""
        parts = (self.transport.count, self._controls, self.verdict)
        needed_width = sum(max(part.minimumSizeHint().width(), part.minimumWidth()) + 8 for part in parts)
        first = [self.transport.count, self.verdict][: 1 + (needed_width > self.time.width() - 18)]
        order = [*first, *(part for part in parts if part not in first)]
        current = [item.widget() for item in map(self._time_line.itemAt, range(len(parts))) if item is not None]
        if order != current:
            for each in order:
                self._time_line.removeWidget(each)
                self._time_line.addWidget(each)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        shares = (QEvent.Type.Resize, QEvent.Type.ShowToParent, QEvent.Type.HideToParent)
        if event is not None and watched is self.picture:
            if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
                self._place_tools()
        elif event is not None and watched is self.time:
            if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
                self._arrange_time_line()
        elif event is not None and event.type() in shares and (watched is self.right or event.type() != shares[0]):
            self._fit_to_height()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._fit_to_height()

    def _fit_to_height(self) -> None:
        """Hide less important parts if the window is low or the text large; the code comes first."""
        roomy = self.height() >= 38 * look().text_px
        for part in (self.lanes, self.warps):
            part.show_details(roomy)
        has_problem = self._strip.isVisibleTo(self.right)
        lines = max(self.right.height() / look().text_px - _PROBLEM_LINES * has_problem, 0)
        for widget in (self.variables, self.legend):
            widget.setVisible(roomy)
        self.phase.setVisible(roomy and self._has_phases)
        room = self.right.height() - look().px(_MIN_CODE_HEIGHT) - self._strip.sizeHint().height() * has_problem
        for card in self._recording_cards:
            if card is self.counters:
                for rows in (rows for min_lines, rows in _COUNT_ROWS_BY_HEIGHT if lines >= min_lines):
                    self.counters.show_rows(rows)
                    if card.sizeHint().height() + 8 <= room:
                        break
            room -= card.sizeHint().height() + 8
            is_held_back = self._shows_cycles or (card is self.counters and self._counts_hidden)
            card.setVisible(room >= 0 and not is_held_back)
