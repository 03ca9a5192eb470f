"""Texts for a dataflow's rows, cells and races."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gui.painting.values import format_value
from gui.step_view.dataflow.layout import DataflowLayout

if TYPE_CHECKING:
    from gpu.recording.recording import Recording
    from gpu.stepping.dataflow.rows import Row
    from gpu.stepping.races import Race


@dataclass(frozen=True)
class CellFinding:
    """A finding about a cell: the event that shows it, and its description."""

    moment: int
    text: str


def element_name(row: Row, cell: int) -> str:
    """Return the name of the element that a cell shows, such as s[11], or sum for a thread's variable."""
    name = row.storage.name
    return name if row.storage.space == "register" else f"{name}[{int(row.column[cell])}]"


def describe_race(recording: Recording, race: Race) -> str:
    """Return a race in words: "race: written by thread 3; read by thread 4; not synchronized"."""
    racers = (
        f"{'written' if each.is_write else 'read'} by " + recording.name_thread(race.launch, each.block, each.thread)
        for each in (race.first, race.second)
    )
    return f"race: {'; '.join(racers)}; not synchronized"


def describe_cell(layout: DataflowLayout, cell: tuple[int, int]) -> str:
    """Return a cell's element, value, thread, source line and operands."""
    number, row_cell = cell
    row = layout.rows[number]
    text = f"{element_name(row, row_cell)} = {format_value(row.value[row_cell].item())}"
    if not row.computed[row_cell]:
        return text if row.moment[row_cell] < 0 else f"{text}  (unchanged)"
    sources = row.sources
    parts = []
    for _, source_row, source_cell in sources[sources[:, 0] == row_cell].tolist():
        source = layout.rows[source_row]
        parts.append(f"{element_name(source, source_cell)} = {format_value(source.value[source_cell].item())}")
    thread = layout.dataflow.recording.name_thread(row.launch, int(row.block[row_cell]), int(row.thread[row_cell]))
    origin = f"\n{thread}, line {row.line}"
    return text + origin + (f"\nfrom {', '.join(parts)}" if parts else "")
