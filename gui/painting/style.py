"""The window's style sheet, generated from a look."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import Template

from gpu.base.paths import ASSETS
from gui.painting.theme import FONT_SIZES, Look, code_families, text_families

ICONS = ASSETS / "icons"
_TEMPLATE = Path(__file__).with_suffix(".qss")


def style_sheet(look: Look) -> str:
    """Return the style sheet of the whole window: `style.qss` with the look's colors, sizes and icons.

    In the template, `$px8` is a length of 8 pixels at the normal text size, and `$icon_down` an icon's URL.
    """
    theme = look.theme
    names = {
        **{name: value for name, value in vars(theme).items() if isinstance(value, str)},
        "text_families": ", ".join(f'"{name}"' for name in text_families()) or "sans-serif",
        "code_families": ", ".join(f'"{name}"' for name in code_families()) or "monospace",
        "accent_hover": _mix_colors(theme.text, theme.accent, 0.15),
        **{f"{tone}_soft": _mix_colors(getattr(theme, tone), theme.surface) for tone in ("good", "bad", "warn")},
        **{f"{tone}_border": _mix_colors(getattr(theme, tone), theme.surface, 0.45) for tone in ("bad", "warn")},
    }
    sizes = {
        **{f"{part}_px": getattr(look, f"{part}_px") for part in ("text", "small", "title", "figure", "side")},
        "side_section_px": min(look.small_px, look.side_px - 1),
        # Larger text leaves less room in the sidebar.
        "nav_padding": max(3, 7 - (look.text_px - FONT_SIZES["normal"]) * 2 // 3),
    }
    template = _read_template()
    for name in template.get_identifiers():
        if length := re.fullmatch(r"px(\d+)", name):
            sizes[name] = look.px(int(length[1]))
        elif name.startswith("icon_"):
            icon = ICONS / f"{name.removeprefix('icon_')}-{theme.name}.svg"
            names[name] = f'url("{icon.as_posix()}")'
    return template.substitute(names, **{name: f"{size}px" for name, size in sizes.items()})


@cache
def _read_template() -> Template:
    return Template(_TEMPLATE.read_text(encoding="utf-8"))


def _mix_colors(color: str, ground: str, share: float = 0.16) -> str:
    """Return a blend of `share` of `color` and 1 - `share` of `ground`."""
    mixed = (round(share * int(color[i : i + 2], 16) + (1 - share) * int(ground[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{value:02x}" for value in mixed)
