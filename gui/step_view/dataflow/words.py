"""A dataflow's rows and cells, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.painting.values import as_text, thread_name
from gui.step_view.dataflow.layout import Cells, DataflowLayout

if TYPE_CHECKING:
    from gpu.stepping.races import Race


def row_title(row: Cells) -> str:
    """Return what stands at the left of a row."""
    return row.label


def where(row: Cells, cell: int) -> str:
    """Return the name of the element that a cell shows: s[11], or sum for a variable of a thread."""
    name = row.storage.name
    return name if row.storage.space == "register" else f"{name}[{int(row.column[cell])}]"


def describe_race(race: Race, *, several_blocks: bool) -> str:
    """Return who races for an element: written by thread 3, read by thread 4, nothing orders them."""
    racers = (
        f"{'written' if each.writes else 'read'} by "
        + thread_name(each.block, each.thread, several_blocks=several_blocks)
        for each in (race.first, race.second)
    )
    return f"{' / '.join(racers)}, nothing orders them"


def describe_cell(layout: DataflowLayout, cell: tuple[int, int], *, several_blocks: bool) -> str:
    """Return which element a cell is, its value, who made it, from what, and at which line."""
    number, place = cell
    row = layout.rows[number]
    text = f"{where(row, place)} = {as_text(row.value[place].item())}"
    if not row.made[place]:
        return text if row.moment[place] < 0 else f"{text}  (kept)"
    sources = row.sources
    parts = []
    for _, source_row, source_cell in sources[sources[:, 0] == place].tolist():
        source = layout.rows[source_row]
        parts.append(f"{where(source, source_cell)} = {as_text(source.value[source_cell].item())}")
    by = thread_name(int(row.block[place]), int(row.thread[place]), several_blocks=several_blocks)
    made = f"\n{by}, line {row.line}"
    return text + made + (f"\nfrom {', '.join(parts)}" if parts else "")
