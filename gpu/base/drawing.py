"""Shared parts of SVG drawings, which follow the light or dark theme of the viewer's system."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

THEMES = {
    "light": {"surface": "#ffffff", "border": "#d5dce6", "text": "#17202c", "muted": "#4f5c6f", "accent": "#0969c3"},
    "dark": {"surface": "#161b22", "border": "#2a323d", "text": "#e9eef5", "muted": "#a0acbc", "accent": "#4cc2ff"},
}
"""The colors of the window's themes; the viewer's system selects one."""

_TEXT_STYLE = (
    "text{font:13px system-ui,'Segoe UI',sans-serif}.title{font-size:16px;font-weight:600}"
    ".name{font-size:13px;font-weight:600}.small{font-size:12px}.middle{text-anchor:middle}.end{text-anchor:end}"
)


def format_svg(
    width: float, height: float, title: str, parts: Iterable[str], style: str, colors: Callable[[str], str]
) -> str:
    """Return an SVG drawing with a background.

    Parameters
    ----------
    width, height : float
        In pixels.
    title : str
        Text alternative of the drawing.
    parts : iterable of str
        The elements, in painting order.
    style : str
        CSS rules in addition to those of the text classes "title", "name", "small", "middle" and "end".
    colors : callable
        A theme's name -> its CSS rules.
    """
    themes = {
        name: f"text{{fill:{t['text']}}}.small{{fill:{t['muted']}}}.ground{{fill:{t['surface']}}}{colors(name)}"
        for name, t in THEMES.items()
    }
    rules = f"{_TEXT_STYLE}{style}{themes['light']}@media (prefers-color-scheme:dark){{{themes['dark']}}}"
    extent = f'width="{width:g}" height="{height:g}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {extent} viewBox="0 0 {width:g} {height:g}">',
        f"<title>{escape(title)}</title>",
        f"<style>{rules}</style>",
        f'<rect class="ground" {extent}/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def format_text(x: float, y: float, content: str, css_class: str) -> str:
    """Return a text element of an SVG drawing.

    Parameters
    ----------
    x, y : float
        The position of the text's anchor on its baseline, in pixels.
    content : str
        The plain text, which is escaped.
    css_class : str
        One or more class names, separated by spaces.
    """
    return f'<text class="{css_class}" x="{x:g}" y="{y:g}">{escape(content)}</text>'
