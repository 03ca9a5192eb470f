"""The window's style sheet, generated from a look."""

from __future__ import annotations

from gpu.base.paths import ASSETS
from gui.painting.theme import FONT_SIZES, Look, code_families, text_families

ICONS = ASSETS / "icons"


def style_sheet(look: Look) -> str:
    """Return the style sheet of the whole window."""
    t = look.theme
    families = ", ".join(f'"{name}"' for name in text_families()) or "sans-serif"
    fixed = ", ".join(f'"{name}"' for name in code_families()) or "monospace"

    nav = max(3, 7 - (look.text_px - FONT_SIZES["normal"]) * 2 // 3)  # larger text leaves less room in the sidebar

    def icon(name: str) -> str:
        return f'url("{(ICONS / f"{name}-{t.name}.svg").as_posix()}")'

    bad_border, warn_border = _mix_colors(t.bad, t.surface, 0.45), _mix_colors(t.warn, t.surface, 0.45)
    return f"""
QWidget {{ font-family: {families}; font-size: {look.text_px}px; color: {t.text}; }}
QMainWindow {{ background: {t.canvas}; }}
QDialog {{ background: {t.surface}; border: 1px solid {t.border}; }}
QLabel {{ background: transparent; }}
QToolTip {{ background: {t.raised}; color: {t.text}; border: 1px solid {t.border}; padding: 4px 6px; }}

QFrame[role="bar"] {{ background: {t.surface}; border: none; border-bottom: 1px solid {t.border}; }}
QFrame[role="side"] {{ background: {t.surface}; border: none; border-right: 1px solid {t.border}; }}
QFrame[role="foot"] {{ background: {t.surface}; border: none; border-top: 1px solid {t.border}; }}
QFrame[role="card"] {{ background: {t.surface}; border: 1px solid {t.border}; border-radius: 8px; }}
QFrame[role="rule"] {{ background: {t.border}; border: none; }}

QLabel[role="brand"] {{ color: {t.accent}; font-size: {look.title_px}px; font-weight: 700; }}
QLabel[role="title"] {{ font-size: {look.title_px}px; font-weight: 600; }}
QLabel[role="card-title"] {{ font-weight: 600; }}
QLabel[role="muted"] {{ color: {t.muted}; }}
QLabel[role="caption"] {{ color: {t.muted}; font-size: {look.small_px}px; }}
QLabel[role="section"] {{ color: {t.muted}; font-size: {look.small_px}px; font-weight: 600; }}
QFrame[role="side"] QLabel[role="section"] {{ font-size: {min(look.small_px, look.side_px - 1)}px; }}
QLabel[role="figure"] {{ font-size: {look.figure_px}px; font-weight: 600; }}
QLabel[role="huge"] {{ font-size: {look.px(44)}px; font-weight: 600; }}
QLabel[role="code"] {{ font-family: {fixed}; font-size: {look.small_px}px; color: {t.text}; }}
QLabel[role="code"][tone="best"] {{ color: {t.good}; font-weight: 700; }}
QLabel[role="code"][tone="muted"] {{ color: {t.muted}; }}
QLabel[role="note"] {{ color: {t.muted}; background: {t.surface}; border: 1px solid {t.border};
    border-radius: 8px; padding: {look.px(8)}px {look.px(14)}px; }}
QLabel[role="error"] {{ color: {t.bad}; font-size: {look.small_px}px; }}

QLabel[badge="neutral"], QLabel[badge="good"], QLabel[badge="bad"], QLabel[badge="warn"] {{
    border-radius: {look.px(8)}px; padding: {look.px(3)}px {look.px(9)}px; font-size: {look.small_px}px;
    font-weight: 600; }}
QLabel[tight="true"] {{ padding: {look.px(2)}px {look.px(5)}px; }}
QLabel[badge="neutral"] {{ color: {t.muted}; background: {t.raised}; }}
QLabel[badge="good"] {{ color: {t.good}; background: {_mix_colors(t.good, t.surface)}; }}
QLabel[badge="bad"] {{ color: {t.bad}; background: {_mix_colors(t.bad, t.surface)}; }}
QLabel[badge="warn"] {{ color: {t.warn}; background: {_mix_colors(t.warn, t.surface)}; }}

Banner {{ margin: 8px 8px 0 8px; }}
QFrame[banner="bad"] {{ background: {_mix_colors(t.bad, t.surface)}; border: 1px solid {bad_border};
    border-radius: 8px; }}
QFrame[banner="warn"] {{ background: {_mix_colors(t.warn, t.surface)}; border: 1px solid {warn_border};
    border-radius: 8px; }}
QFrame[banner="neutral"] {{ background: {t.accent_soft}; border: 1px solid {t.border}; border-radius: 8px; }}

QPushButton, QToolButton {{ background: {t.raised}; border: 1px solid {t.border}; border-radius: 6px;
    padding: {look.px(5)}px {look.px(12)}px; }}
QPushButton:hover, QToolButton:hover {{ border-color: {t.faint}; }}
QPushButton:pressed, QToolButton:pressed {{ background: {t.border}; }}
QPushButton:focus, QToolButton:focus {{ border-color: {t.accent}; }}
QPushButton:disabled, QToolButton:disabled {{ color: {t.faint}; }}
QPushButton[role="primary"] {{ background: {t.accent}; border-color: {t.accent}; color: {t.on_accent};
    font-weight: 600; }}
QPushButton[role="primary"]:hover {{ background: {_mix_colors(t.text, t.accent, 0.15)}; }}
QPushButton[role="primary"]:focus {{ border-color: {t.text}; }}
QPushButton[role="primary"]:disabled {{ background: {t.raised}; border-color: {t.border}; color: {t.faint}; }}
QPushButton[role="flat"], QToolButton[role="flat"] {{ background: transparent; border-color: transparent;
    color: {t.muted}; padding: {look.px(4)}px {look.px(8)}px; }}
QPushButton[role="flat"]:hover, QToolButton[role="flat"]:hover {{ background: {t.raised}; color: {t.text}; }}
QPushButton[role="flat"]:focus, QToolButton[role="flat"]:focus {{ border-color: {t.accent}; }}
QToolButton::menu-indicator {{ image: none; }}
QPushButton[role="segment"] {{ border-radius: 5px; border-color: transparent; background: transparent;
    color: {t.muted}; padding: {look.px(3)}px {look.px(9)}px; font-size: {look.small_px}px; }}
QPushButton[role="segment"]:checked {{ background: {t.accent_soft}; color: {t.text}; }}
QPushButton[role="segment"]:hover {{ color: {t.text}; }}
QPushButton[role="segment"]:focus {{ border-color: {t.accent}; }}
QPushButton[role="transport"] {{ padding: {look.px(5)}px {look.px(6)}px; }}
QPushButton[role="nav"] {{ text-align: left; background: transparent; border: none; border-radius: 0;
    border-left: 3px solid transparent; color: {t.muted}; padding: {nav}px 13px;
    font-size: {look.side_px}px; }}
QPushButton[role="nav"]:hover {{ color: {t.text}; background: {t.raised}; }}
QPushButton[role="nav"]:checked {{ color: {t.text}; background: {t.accent_soft}; border-left-color: {t.accent};
    font-weight: 600; }}
QPushButton[role="nav"]:focus {{ background: {t.raised}; border-left-color: {t.accent}; }}
QLabel[verdict="good"], QLabel[verdict="bad"], QLabel[verdict="neutral"] {{ border-radius: 6px; }}
QLabel[verdict="good"] {{ background: {_mix_colors(t.good, t.surface)}; }}
QLabel[verdict="bad"] {{ background: {_mix_colors(t.bad, t.surface)}; }}
QLabel[verdict="neutral"] {{ background: {t.accent_soft}; }}
QProgressBar {{ background: {t.border}; border: none; border-radius: 2px; }}
QProgressBar::chunk {{ background: {t.accent}; border-radius: 2px; }}
QProgressBar[whole="true"]::chunk {{ background: {t.good}; }}
QRadioButton::indicator {{ width: {look.px(14)}px; height: {look.px(14)}px; border: 1px solid {t.faint};
    border-radius: {look.px(8)}px; background: {t.raised}; }}
QRadioButton::indicator:checked {{ background: {t.accent}; border: {look.px(4)}px solid {t.raised};
    width: {look.px(8)}px; height: {look.px(8)}px; }}
QRadioButton::indicator:focus {{ border-color: {t.accent}; }}
QPushButton[role="link"] {{ background: transparent; border: 1px solid transparent; color: {t.accent};
    text-align: left; padding: 0; }}
QPushButton[role="link"]:focus {{ border-color: {t.accent}; }}

QComboBox, QAbstractSpinBox, QLineEdit {{ background: {t.raised}; border: 1px solid {t.border};
    border-radius: 6px; padding: {look.px(4)}px {look.px(9)}px; min-height: {look.px(19)}px;
    selection-background-color: {t.accent}; selection-color: {t.on_accent}; }}
QLineEdit[role="inline"] {{ padding: 0 {look.px(3)}px; min-height: 0; border-radius: 3px;
    font-size: {look.small_px}px; }}
QComboBox:hover, QAbstractSpinBox:hover, QLineEdit:hover {{ border-color: {t.faint}; }}
QComboBox:focus, QAbstractSpinBox:focus, QLineEdit:focus {{ border-color: {t.accent}; }}
QComboBox[bad="true"], QAbstractSpinBox[bad="true"], QLineEdit[bad="true"] {{ border-color: {t.bad}; }}
/* Fusion's default popup covers the box and has white edges. */
QComboBox {{ combobox-popup: 0; }}
QComboBox::drop-down {{ border: none; width: {look.px(24)}px; }}
QComboBox::down-arrow {{ image: {icon("down")}; width: {look.px(10)}px; height: {look.px(10)}px; }}
QComboBox QAbstractItemView {{ background: {t.surface}; border: 1px solid {t.border}; outline: none; padding: 4px;
    selection-background-color: {t.accent_soft}; selection-color: {t.text}; }}
QComboBox QAbstractItemView::item {{ min-height: {look.px(26)}px; padding: 0 6px; border: none; }}
QComboBox:disabled, QAbstractSpinBox:disabled, QLineEdit:disabled, QCheckBox:disabled {{ color: {t.faint}; }}
QAbstractSpinBox {{ padding-right: {look.px(20)}px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{
    border: none; background: transparent; width: {look.px(18)}px; }}
QAbstractSpinBox::up-button {{ subcontrol-position: top right; margin: 2px 2px 0 0; }}
QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; margin: 0 2px 2px 0; }}
QAbstractSpinBox::up-arrow {{ image: {icon("up")}; width: {look.px(8)}px; height: {look.px(8)}px; }}
QAbstractSpinBox::down-arrow {{ image: {icon("down")}; width: {look.px(8)}px; height: {look.px(8)}px; }}

QSlider::groove:horizontal {{ height: 4px; border-radius: 2px; background: {t.border}; }}
QSlider::sub-page:horizontal {{ height: 4px; border-radius: 2px; background: {t.accent}; }}
QSlider::handle:horizontal {{ width: 14px; height: 14px; margin: -5px 0; border-radius: 7px; background: {t.text}; }}
QSlider::handle:horizontal:focus {{ background: {t.accent}; }}

QCheckBox {{ spacing: 8px; }}
QCheckBox::indicator {{ width: {look.px(15)}px; height: {look.px(15)}px; border: 1px solid {t.faint};
    border-radius: 4px; background: {t.raised}; }}
QCheckBox::indicator:checked {{ background: {t.accent}; border-color: {t.accent}; image: {icon("check")}; }}
QCheckBox::indicator:focus {{ border-color: {t.accent}; }}

QMenu {{ background: {t.surface}; border: 1px solid {t.border}; padding: 6px; }}
QMenu::item {{ padding: {look.px(5)}px {look.px(28)}px {look.px(5)}px {look.px(22)}px; border-radius: 5px; }}
QMenu::item:selected {{ background: {t.accent_soft}; }}
QMenu::item:disabled {{ color: {t.faint}; }}
QMenu::separator {{ height: 1px; background: {t.border}; margin: 5px 8px; }}
QMenu::indicator {{ width: {look.px(12)}px; height: {look.px(12)}px; left: 6px; }}
QMenu::indicator:checked {{ image: {icon("tick")}; }}

QFrame[role="problem"] {{ background: {t.raised}; border: none; border-top: 1px solid {t.border}; }}
QFrame[role="problem"][tone="bad"] {{ background: {_mix_colors(t.bad, t.surface)}; }}
QFrame[role="problem"][tone="warn"] {{ background: {_mix_colors(t.warn, t.surface)}; }}
QFrame[role="problem"] QLabel {{ color: {t.text}; }}
QFrame[role="problem"] QLabel[tone="good"] {{ color: {t.good}; }}
QFrame[role="problem"] QPushButton {{ padding: 0 {look.px(6)}px; font-size: {look.small_px}px; }}
QPushButton[small="true"] {{ padding: {look.px(2)}px {look.px(7)}px; font-size: {look.small_px}px; }}

QPlainTextEdit[role="code"] {{ font-family: {fixed}; font-size: {look.small_px}px; }}
QPlainTextEdit, QTextEdit, QTableView {{ background: {t.surface}; border: none;
    selection-background-color: {t.accent_soft}; selection-color: {t.text}; }}
QPlainTextEdit[role="entry"] {{ background: {t.raised}; border: 1px solid {t.border};
    border-radius: {look.px(6)}px; padding: {look.px(4)}px; }}
QPlainTextEdit[role="entry"]:focus {{ border-color: {t.accent}; }}
QTextEdit[role="notes"] {{ font-size: {look.px(19)}px; }}
QTextEdit[role="notes"][editing="true"] {{ background: {t.raised}; border-radius: {look.px(6)}px; }}
QTableView {{ gridline-color: {t.border}; }}
QTableCornerButton::section {{ background: {t.surface}; border: none; }}
/* Qt's own file dialog has black arrows, and columns for a smaller font. */
QFileDialog {{ filedialog-parent-directory-icon: {icon("up")}; backward-icon: {icon("left")};
    forward-icon: {icon("right")}; }}
QFileDialog QToolButton {{ padding: {look.px(3)}px; }}
QFileDialog QTreeView {{ font-size: {look.small_px}px; }}
QFileDialog QListView, QTreeView {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.border};
    selection-background-color: {t.accent_soft}; selection-color: {t.text}; outline: none; }}
QTreeView::item:selected {{ background: {t.accent_soft}; color: {t.text}; }}
QListView {{ background: transparent; border: none; outline: none; }}
QListView::item {{ padding: {look.px(5)}px {look.px(4)}px; border-bottom: 1px solid {t.border}; color: {t.text}; }}
QListView::item:hover {{ background: {t.raised}; }}
QListView::item:selected {{ background: {t.accent_soft}; }}
QHeaderView {{ background: transparent; }}
QHeaderView::section {{ background: transparent; border: none; border-bottom: 1px solid {t.border}; color: {t.muted};
    font-size: {look.small_px}px; padding: {look.px(3)}px {look.px(6)}px; }}
QAbstractScrollArea::corner {{ background: transparent; border: none; }}
QScrollArea, QScrollArea > QWidget > QWidget {{ background: transparent; border: none; }}
QScrollBar:vertical {{ background: transparent; width: 10px; margin: 2px; }}
QScrollBar:horizontal {{ background: transparent; height: 10px; margin: 2px; }}
QScrollBar::handle {{ background: {t.border}; border-radius: 3px; min-height: 28px; min-width: 28px; }}
QScrollBar::handle:hover {{ background: {t.faint}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QSplitter::handle {{ background: transparent; }}
QSplitter::handle:hover {{ background: {t.accent_soft}; border-radius: 3px; }}

QTabBar::tab {{ background: transparent; color: {t.muted}; padding: {look.px(6)}px {look.px(14)}px;
    border-radius: 6px; }}
QTabBar::tab:selected {{ background: {t.accent}; color: {t.on_accent}; font-weight: 600; }}
QGraphicsView {{ border: none; }}
"""


def _mix_colors(color: str, ground: str, share: float = 0.16) -> str:
    """Return a blend of `share` of `color` and 1 - `share` of `ground`."""
    mixed = (round(share * int(color[i : i + 2], 16) + (1 - share) * int(ground[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{value:02x}" for value in mixed)
