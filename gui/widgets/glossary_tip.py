"""Definitions of the glossary in tooltips."""

from __future__ import annotations

from typing import Protocol

from gpu.base.glossary import find_term
from gui.widgets.basic import wrap_tip


class HasToolTip(Protocol):
    """A widget, or an item of a table or list."""

    def toolTip(self) -> str: ...
    def setToolTip(self, tip: str | None, /) -> None: ...


def find_definition(name: str) -> str:
    """Return a term and its definition, in lines of plain text; an unknown term raises `UnknownTermError`."""
    term = find_term(name)
    return wrap_tip(f"{term.name[:1].upper()}{term.name[1:]}: {term.definition}".replace("`", ""))


def add_definition(widget: HasToolTip, name: str) -> None:
    """Append a term's definition to a tooltip, as its last paragraph, unless the tooltip already contains it.

    Setting the tooltip again removes the definition. An unknown term raises `UnknownTermError`.
    """
    definition, tip = find_definition(name), widget.toolTip()
    if definition not in tip:
        widget.setToolTip(f"{tip}\n\n{definition}".lstrip())
