"""The look of the window: a dark and a light theme, and the text size from which all lengths follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from PyQt6.QtGui import QColor, QFont, QFontDatabase, QPalette

FONT_SIZES = {"normal": 13, "large": 16, "lecture hall": 19}
"""Body text size in pixels, by the name shown in the preferences."""


@dataclass(frozen=True)
class Theme:
    """Colors by purpose; `channels` are those of red, green and blue curves."""

    name: str
    canvas: str
    surface: str
    raised: str
    border: str
    text: str
    muted: str
    faint: str
    accent: str
    on_accent: str
    accent_soft: str
    good: str
    warn: str
    bad: str
    channels: tuple[str, str, str]
    syntax: dict[str, str] = field(hash=False)


DARK = Theme(
    name="dark",
    canvas="#0e1116",
    surface="#161b22",
    raised="#1f2630",
    border="#2a323d",
    text="#e9eef5",
    muted="#a0acbc",
    faint="#6f7b8b",
    accent="#4cc2ff",
    on_accent="#04131d",
    accent_soft="#16344a",
    good="#6fe3a1",
    warn="#f5bd55",
    bad="#ff8279",
    channels=("#ff7070", "#5fd893", "#5aa9ff"),
    syntax={
        "Comment": "#7f8ea3",
        "Comment.Preproc": "#c9a5f7",
        "Keyword": "#7cc7ff",
        "Keyword.Type": "#6fdcc8",
        "Name.Function": "#f2d479",
        "Name.Builtin": "#f4a6c8",
        "Name.Variable.Global": "#f4a6c8",
        "Literal.Number": "#ffb786",
        "Literal.String": "#a5dc8c",
        "Operator": "#c3ccd9",
    },
)

LIGHT = Theme(
    name="light",
    canvas="#eceff4",
    surface="#ffffff",
    raised="#f3f5f9",
    border="#d5dce6",
    text="#17202c",
    muted="#4f5c6f",
    faint="#7d8998",
    accent="#0969c3",
    on_accent="#ffffff",
    accent_soft="#dcecfb",
    good="#12753c",
    warn="#8f5400",
    bad="#bd2f2a",
    channels=("#d63a3a", "#16894c", "#2563eb"),
    syntax={
        "Comment": "#637085",
        "Comment.Preproc": "#7b3fc4",
        "Keyword": "#0b5cad",
        "Keyword.Type": "#0f7669",
        "Name.Function": "#8a5a00",
        "Name.Builtin": "#b02a6f",
        "Name.Variable.Global": "#b02a6f",
        "Literal.Number": "#b24a08",
        "Literal.String": "#2f7d1e",
        "Operator": "#39465a",
    },
)

THEMES = {theme.name: theme for theme in (DARK, LIGHT)}


@dataclass(frozen=True)
class Look:
    """A theme at a text size, in pixels."""

    theme: Theme
    text_px: int

    @property
    def is_enlarged(self) -> bool:
        """Return whether the text is larger than normal."""
        return self.text_px > FONT_SIZES["normal"]

    @property
    def small_px(self) -> int:
        """Return the size of captions."""
        return max(11, round(self.text_px * 0.88))

    @property
    def title_px(self) -> int:
        """Return the size of a page's title."""
        return round(self.text_px * 1.3)

    @property
    def figure_px(self) -> int:
        """Return the size of the one large number of a card."""
        return round(self.text_px * 1.75)

    @property
    def side_px(self) -> int:
        """Return the text size of the sidebar, which the largest setting does not enlarge: pages need the room."""
        return min(self.text_px, FONT_SIZES["large"])

    def px(self, length: float) -> int:
        """Return a length scaled with the text; `length` is in pixels at the normal text size."""
        return round(length * self.text_px / FONT_SIZES["normal"])


_look = Look(DARK, FONT_SIZES["normal"])


def look() -> Look:
    """Return the current look; custom-painted widgets call this in every paint event."""
    return _look


def set_look(new: Look) -> None:
    """Set the current look. The window then sets its style sheet, and every widget receives a StyleChange event."""
    global _look
    _look = new


@cache
def text_families() -> tuple[str, ...]:
    """Return the installed ones of the preferred text fonts, best first."""
    return _find_installed_families(
        "Inter", "Segoe UI Variable Text", "Segoe UI", "SF Pro Text", "Helvetica Neue", "Cantarell", "Ubuntu",
        "Noto Sans", "Roboto", "Open Sans", "DejaVu Sans",
    )  # fmt: skip


@cache
def code_families() -> tuple[str, ...]:
    """Return the installed ones of the preferred code fonts, best first."""
    return _find_installed_families(
        "JetBrains Mono", "Cascadia Code", "Cascadia Mono", "SF Mono", "Menlo", "Consolas", "Fira Code",
        "Ubuntu Mono", "Noto Sans Mono", "DejaVu Sans Mono", "Liberation Mono",
    )  # fmt: skip


def _find_installed_families(*preferred: str) -> tuple[str, ...]:
    installed = set(QFontDatabase.families())
    return tuple(name for name in preferred if name in installed)


def code_font(px: int | None = None) -> QFont:
    """Return the fixed-width font for source code and for numbers that must not shift while they change."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    if code_families():
        font.setFamilies(list(code_families()))
    font.setPixelSize(px or look().text_px)
    return font


def resize_font(font: QFont, px: int) -> QFont:
    """Return a font in another size, in pixels."""
    resized = QFont(font)
    resized.setPixelSize(px)
    return resized


def palette(theme: Theme) -> QPalette:
    """Return Qt's palette, for widgets that the style sheet does not cover."""
    colors = QPalette()
    roles = {
        QPalette.ColorRole.Window: theme.canvas,
        QPalette.ColorRole.Base: theme.surface,
        QPalette.ColorRole.AlternateBase: theme.raised,
        QPalette.ColorRole.Button: theme.raised,
        QPalette.ColorRole.WindowText: theme.text,
        QPalette.ColorRole.Text: theme.text,
        QPalette.ColorRole.ButtonText: theme.text,
        QPalette.ColorRole.ToolTipBase: theme.raised,
        QPalette.ColorRole.ToolTipText: theme.text,
        QPalette.ColorRole.PlaceholderText: theme.faint,
        QPalette.ColorRole.Highlight: theme.accent,
        QPalette.ColorRole.HighlightedText: theme.on_accent,
        QPalette.ColorRole.Link: theme.accent,
    }
    for role, color in roles.items():
        colors.setColor(role, QColor(color))
    for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText):
        colors.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.faint))
    return colors
