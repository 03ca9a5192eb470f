"""Table of the limits of each variant: a row per variant, a column per resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PyQt6.QtCore import QModelIndex, QRect, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFont, QFontMetrics, QPainter, QResizeEvent
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
)

from gpu.messages.events import Failure
from gpu.messages.modeled_time import LIMITS, ModeledTime
from gui.painting.colors import mix_colors
from gui.painting.theme import code_font, look, resize_font
from gui.run_view.cards.modeled_card import limit_colors
from gui.widgets.basic import format_figure, wrap_tip
from gui.widgets.glossary_tip import add_definition

TIME_TITLE = "µs"
_MAX_NAME_SHARE = 0.24
"""Maximum share of the width for the variants' names."""
_MIN_FIGURE = "99.9"
"""A column of figures has at least the width of this one."""
_FIGURE_PADDING = 7
"""Pixels beside the longest figure of a column, at the normal text size."""
_MAX_NAME_LINES = 2
"""Lines of a name at the normal text size; where one needs more, all names are written in the small size."""
_PADDING = 8
"""Pixels beside a text in its cell."""
_ROW_PADDING = 6
"""Pixels above and below the lines of a name or reason."""
_WORD_PADDING = 9
"""Pixels beside the longest word of a name."""
_HEAD_PADDING = 4
"""Pixels beside the name of a column, at the normal text size."""
_MIN_AMOUNT_US = 0.005
"""Microseconds below which a cell is empty."""
_SHORT_NAMES = {"arithmetic": "arith."}
_TERMS = {"shared": "wavefront", "issue": "instruction issue", "latency": "latency", "atomics": "contention"}
"""Terms of the glossary, by limit."""
_SHARE_ROLE = Qt.ItemDataRole.UserRole


class _HeatDelegate(QStyledItemDelegate):
    """Delegate that colors a limit's cell by its share of the time."""

    def paint(self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        share = index.data(_SHARE_ROLE)
        if painter is not None and share:
            color = limit_colors()[index.column() - 2]
            ground = option.rect.adjusted(1, 1, -1, -1)
            painter.fillRect(ground, mix_colors(color, look().theme.surface, 0.08 + 0.62 * min(share, 1.0)))
        super().paint(painter, option, index)


class LimitsTable(QTableWidget):
    """The table of limits; the limiting resource of each row is in bold."""

    row_selected = pyqtSignal(int)
    """The selected row."""

    def __init__(self) -> None:
        super().__init__(0, 2 + len(LIMITS))
        self.setAccessibleName("Modeled time and limits in microseconds, one row per variant")
        self.setItemDelegate(_HeatDelegate(self))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setWordWrap(True)
        self.setHorizontalHeaderLabels(["", TIME_TITLE, *(_SHORT_NAMES.get(name, name) for name in LIMITS)])
        names, heads = self.verticalHeader(), self.horizontalHeader()
        assert names is not None
        assert heads is not None
        names.hide()
        names.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        heads.setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        heads.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        for column, meaning in enumerate(("", "Modeled time, all launches", *LIMITS.values())):
            if (item := self.horizontalHeaderItem(column)) is not None:
                item.setToolTip(meaning)
                if item.text() in _TERMS:
                    add_definition(item, _TERMS[item.text()])
        self._models: Mapping[int, ModeledTime | Failure] = {}
        self._bounds: Mapping[int, str] = {}
        self._titles: Sequence[str] = ()
        self._name_font = self.font()
        self.itemSelectionChanged.connect(lambda: self.row_selected.emit(self.currentRow()))

    def show_titles(self, titles: Sequence[str]) -> None:
        """Show empty rows with these titles."""
        # A number stays on the line of the name's first word.
        self._titles = tuple(title.replace("  ", "\u00a0\u00a0", 1) for title in titles)
        self.blockSignals(True)
        self.setRowCount(len(titles))
        self.blockSignals(False)
        self.show_times({})

    def show_times(self, models: Mapping[int, ModeledTime | Failure], bounds: Mapping[int, str] | None = None) -> None:
        """Fill rows with results, by row number.

        Parameters
        ----------
        bounds : mapping or None
            Clauses with a bound of the time, by row number, for rows without a result.
        """
        self._models, self._bounds = models, bounds or {}
        self.clearSpans()
        self._hide_empty_limits()
        self._resize_rows()
        times = [each.time_us for each in models.values() if isinstance(each, ModeledTime)]
        for line, title in enumerate(self._titles):
            model = models.get(line)
            self._fill_row(line, title, model, best=isinstance(model, ModeledTime) and model.time_us == min(times))

    def _hide_empty_limits(self) -> None:
        """Hide the columns of the limits that no modeled variant reaches, so that the others fit."""
        times = [each for each in self._models.values() if isinstance(each, ModeledTime)]
        for column, name in enumerate(LIMITS, 2):
            self.setColumnHidden(column, bool(times) and all(each.limits[name] < _MIN_AMOUNT_US for each in times))
        self._resize_columns()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._resize_columns()
        self._resize_rows()

    def _resize_rows(self) -> None:
        """Make rows high enough for their names and reasons, and higher if there is room for all."""
        heights, view = self.verticalHeader(), self.viewport()
        assert heights is not None
        assert view is not None
        height = view.height() // max(1, self.rowCount())
        heights.setDefaultSectionSize(min(max(height, look().px(26)), look().px(44)))
        ends = [self.columnWidth(0) + self.columnWidth(1)]
        for column in range(2, self.columnCount()):
            ends.append(ends[-1] + self.columnWidth(column))
        # A reason wraps in the visible columns: beyond them, its end would be off the screen.
        visible = max(sum(end <= view.width() for end in ends[1:]), 1)
        for line, title in enumerate(self._titles):
            needed = self._text_height(title, self.columnWidth(0), QFontMetrics(self._name_font))
            if text := self._find_text(line):
                needed = max(needed, self._text_height(text, ends[visible] - ends[0], self.fontMetrics()))
                if visible > 1:
                    self.setSpan(line, 2, 1, visible)
            self.setRowHeight(line, max(heights.defaultSectionSize(), needed))

    def _find_text(self, line: int) -> str:
        """Return the text of a row without figures: why it has none, or a bound of its time; else ""."""
        model = self._models.get(line)
        if isinstance(model, Failure):
            return model.message
        return self._bounds.get(line, "") if model is None else ""

    @staticmethod
    def _text_height(text: str, width: int, metrics: QFontMetrics) -> int:
        """Return the height of a row for a text that wraps in a cell of a width."""
        room = QRect(0, 0, width - _PADDING, 1000)
        return metrics.boundingRect(room, int(Qt.TextFlag.TextWordWrap), text).height() + _ROW_PADDING

    def _resize_columns(self) -> None:
        """Give each limit's column the width of its name, the names' column its share, and divide the rest."""
        heads = self.horizontalHeader()
        view = self.viewport()
        assert heads is not None
        assert view is not None
        figures, padding = QFontMetrics(self._figure_font(strong=True)), look().px(_FIGURE_PADDING)
        widths = {}
        for column in range(1, self.columnCount()):
            if self.isColumnHidden(column):
                continue
            item = self.horizontalHeaderItem(column)
            text = heads.fontMetrics().horizontalAdvance(item.text() if item is not None else "")
            longest = max(map(figures.horizontalAdvance, (_MIN_FIGURE, *self._list_figures(column))))
            widths[column] = max(text + look().px(_HEAD_PADDING), longest + padding)
        for font in (self.font(), resize_font(self.font(), look().small_px)):
            names = self._find_name_width(font, view.width(), sum(widths.values()))
            metrics = QFontMetrics(font)
            lines = max((self._text_height(each, names, metrics) for each in self._titles), default=0)
            if lines - _ROW_PADDING < (_MAX_NAME_LINES + 0.5) * metrics.lineSpacing():
                break
        self._name_font = font
        for line in range(self.rowCount()):
            if (name := self.item(line, 0)) is not None:
                name.setFont(font)
        heads.resizeSection(0, names)
        more = max(view.width() - names - sum(widths.values()), 0) // len(widths)
        for column, width in widths.items():
            heads.resizeSection(column, width + more)

    def _find_name_width(self, font: QFont, room: int, figures: int) -> int:
        """Return the width of the names' column: its share of the room, as far as the figures leave it."""
        # Names wrap between words, so the longest word is their least width.
        words = [word for title in self._titles for word in title.split(" ")]
        least = max(map(QFontMetrics(font).horizontalAdvance, words), default=0) + _WORD_PADDING
        return max(min(round(_MAX_NAME_SHARE * room), room - figures), least)

    def _list_figures(self, column: int) -> list[str]:
        times = [each for each in self._models.values() if isinstance(each, ModeledTime)]
        if column == 1:
            return [format_figure(each.time_us) for each in times]
        return [_format_microseconds(each.limits[tuple(LIMITS)[column - 2]]) for each in times]

    @staticmethod
    def _figure_font(*, strong: bool) -> QFont:
        font = code_font(look().small_px)
        font.setWeight(QFont.Weight.Bold if strong else QFont.Weight.Normal)
        return font

    def restyle(self) -> None:
        """Apply the theme's colors and the text size."""
        self._resize_columns()
        self.show_times(self._models, self._bounds)

    def _fill_row(self, line: int, title: str, model: ModeledTime | Failure | None, *, best: bool) -> None:
        cells = ["" for _ in range(1 + len(LIMITS))]
        tip, bound, shares, reason = "", "", [0.0] * len(cells), self._find_text(line)
        if isinstance(model, ModeledTime):
            amounts = [model.limits[name] for name in LIMITS]
            cells = [format_figure(model.time_us), *(_format_microseconds(amount) for amount in amounts)]
            shares = [0.0, *(amount / model.time_us if model.time_us else 0.0 for amount in amounts)]
            tip, bound = model.reason[:1].upper() + model.reason[1:], model.bound_by
        elif reason:
            tip, cells[0], cells[1] = reason, "–" if model is not None else "", reason
        strong = {0: best} | {1 + index: name == bound for index, name in enumerate(LIMITS)}
        name = QTableWidgetItem(title)
        name.setFont(self._name_font)
        name.setToolTip(wrap_tip(f"{title}: {tip}") if tip else title)
        self.setItem(line, 0, name)
        for index, text in enumerate(cells):
            item = QTableWidgetItem(text)
            is_reason = index == 1 and bool(reason)
            side = Qt.AlignmentFlag.AlignLeft if is_reason else Qt.AlignmentFlag.AlignRight
            item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
            item.setToolTip(wrap_tip(tip))
            item.setData(_SHARE_ROLE, shares[index])
            if is_reason:
                item.setForeground(QColor(look().theme.muted))
            else:
                item.setFont(self._figure_font(strong=strong[index]))
            if index == 0 and best:
                item.setForeground(QColor(look().theme.good))
            self.setItem(line, 1 + index, item)


def _format_microseconds(microseconds: float) -> str:
    """Format microseconds, with two decimals below 1; "" for none."""
    if microseconds < _MIN_AMOUNT_US:
        return ""
    return f"{microseconds:.2f}" if microseconds < 1 else format_figure(microseconds)
