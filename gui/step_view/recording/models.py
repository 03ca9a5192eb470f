"""Models of a recording: everything derived from it, computed in the background so that the window never waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpu.base.errors import LockstepError
from gpu.declaration.pattern import Array, CountedText
from gui.step_view.dataflow.descriptions import CellFinding, describe_race
from gui.step_view.dataflow.layout import DataflowLayout

if TYPE_CHECKING:
    from gpu.recording.recording import Recording
    from gpu.stepping.derived_data import DerivedData
    from gpu.stepping.findings import LocatedFinding
    from gpu.stepping.races import Race


@dataclass(frozen=True, eq=False)
class RecordingModels:
    """The data derived from a recording, and the layout of its dataflow."""

    data: DerivedData
    layout: DataflowLayout

    @property
    def recording(self) -> Recording:
        """Return the recording."""
        return self.data.recording

    @cached_property
    def lines(self) -> Array:
        """Return the source line of each event of all launches: int64."""
        return np.array([position.line for position in self.recording.statements[0]], np.int64)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Return the source file of each event."""
        return tuple(position.file for position in self.recording.statements[0])

    @property
    def has_child_launches(self) -> bool:
        """Return whether there are child launches."""
        return any(grid.parent >= 0 for grid in self.data.grids)

    @cached_property
    def has_tile_products(self) -> bool:
        """Return whether any kernel multiplies tiles on tensor cores."""
        from gpu.stepping.moment.tiles import has_tiles

        return has_tiles(self.recording)

    @property
    def spaces(self) -> frozenset[str]:
        """Return the memory spaces of the arrays."""
        return frozenset(array.space for launch in self.recording.launches for array in launch.trace.arrays)

    @property
    def two_dimensional(self) -> bool:
        """Return whether any global array has rows and columns; a shared array may have them as two buffers."""
        shapes = (
            launch.shapes[array.number]
            for launch in self.recording.launches
            for array in launch.trace.arrays
            if array.space == "global"
        )
        return any(shape is not None and len(shape) > 1 and shape[-2] > 1 and shape[-1] > 1 for shape in shapes)

    @cached_property
    def racing_cells(self) -> dict[tuple[int, int], Race]:
        """Return the races by the row and cell of the dataflow at which either access read or left the element."""
        races: dict[tuple[int, int], Race] = {}
        for race in self.data.races:
            for racer in (race.first, race.second):
                moment = racer.moment + 1
                cell = self.layout.dataflow.cell_at(moment, race.name, race.element, block=race.block)
                if cell is not None:
                    races.setdefault(cell, race)
        return races

    @cached_property
    def finding_cells(self) -> dict[tuple[int, int], CellFinding]:
        """Return the findings by the row and cell of the dataflow that they are about."""
        cells = {
            cell: CellFinding(race.second.moment, describe_race(self.recording, race))
            for cell, race in self.racing_cells.items()
        }
        for found in self.data.findings:
            about = [self._find_faulty_cell(found), self._find_written_cell(found)]
            cell = next((each for each in about if each is not None), None)
            if cell is not None:
                cells.setdefault(cell, CellFinding(found.moment, found.finding.message))
        return cells

    def has_cell(self, found: LocatedFinding) -> bool:
        """Return whether the dataflow shows the element that a finding is about, or if it has none, what it writes."""
        if found.finding.kind == "race":
            return any(race.second.moment == found.moment for race in self.racing_cells.values())
        find_cell = self._find_written_cell if found.faulty is None else self._find_faulty_cell
        return find_cell(found) is not None

    def _find_faulty_cell(self, found: LocatedFinding) -> tuple[int, int] | None:
        """Return the row and cell with the element that a finding's thread accesses."""
        faulty = found.faulty
        if faulty is None or found.thread not in faulty.threads:
            return None
        element = faulty.elements[faulty.threads.index(found.thread)]
        return self.layout.dataflow.cell_at(found.moment + 1, faulty.name, element, block=faulty.block)

    def _find_written_cell(self, found: LocatedFinding) -> tuple[int, int] | None:
        """Return the row and cell with the element that a finding's thread writes in its event."""
        from gpu.stepping.moment.array_accesses import find_array_accesses

        if found.thread is None:
            return None
        launch, event = self.recording.locate_moment(found.moment)
        block, thread = found.thread
        for access in find_array_accesses(launch.trace, event):
            own = access.elements[(access.blocks == block) & (access.threads == thread)]
            if access.is_write and own.size:
                name = launch.trace.arrays[access.array_number].name
                return self.layout.dataflow.cell_at(found.moment + 1, name, int(own[0]), block=block)
        return None

    def prepare(self, moment: int) -> None:
        """Compute what the window shows first, at a moment: texts, cells with findings, lanes and variables."""
        _ = self.layout.text_lengths, self.finding_cells, self.lines, self.files
        if self.recording.event_count:
            event = min(max(moment - 1, 0), self.recording.event_count - 1)
            self.data.lanes.lanes_at(event)
            launch, number = self.recording.locate_moment(event)
            launch.trace.registers(number)

    @property
    def has_outside_elements(self) -> bool:
        """Return whether an access ended a launch because it is out of an array's bounds."""
        return any(
            found.faulty is not None
            and found.faulty.find_outside(self.recording.launches[found.launch].trace.arrays[found.faulty.array].count)
            for found in self.data.findings
        )

    def initialized_arrays(self, launch: int) -> frozenset[str]:
        """Return the names of the arrays that had values when a launch began."""
        before = {number for each in self.recording.launches[:launch] for number in each.buffers if number is not None}
        launched = self.recording.launches[launch]
        names = {array.name for array in launched.trace.arrays if launched.buffers[array.number] in before}
        read = {row.storage.name for row in self.layout.rows if row.launch == launch and not row.computed.any()}
        # An access that ended the launch is in no row.
        failed = {
            each.faulty.name
            for each in self.data.findings
            if each.launch == launch and each.faulty is not None and each.faulty.is_input
        }
        return frozenset(names | read | failed)

    def next_execution(self, file: str, line: int, moment: int) -> int | None:
        """Return the moment after a line's next execution, or its first execution if there is no later one."""
        events = np.flatnonzero((self.lines == line) & np.array([Path(each).name == file for each in self.files], bool))
        if not events.size:
            return None
        later = events[events + 1 > moment]
        return int(later[0] if later.size else events[0]) + 1


def add_text(models: RecordingModels, text: CountedText | None) -> RecordingModels:
    """Return the models of a histogram of a text with its characters, bin names, and lines between them."""
    if text is None:
        return models
    from gpu.stepping.binned_elements import match_binned_elements

    counted = match_binned_elements(models.recording, text.characters, text.bins)
    return replace(models, layout=DataflowLayout(models.layout.dataflow, text, counted))


def load_models(path: str | Path) -> RecordingModels:
    """Read a recording from a trusted file, written by one of this program's processes.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    from gpu.recording.recording import Recording

    return build_models(Recording.load(path))


def load_checked_models(data: bytes, path: Path) -> RecordingModels:
    """Read a recording from bytes that an `Inspector` has checked; raise InputError if they are still damaged."""
    from gpu.recording.recording import Recording, build_damage_error

    try:
        return build_models(Recording.read(data, path))
    except LockstepError:
        raise
    except Exception as error:
        raise build_damage_error(path) from error


def build_models(recording: Recording) -> RecordingModels:
    """Return the models of a recording."""
    from gpu.stepping.derived_data import derive_data

    data = derive_data(recording)
    return RecordingModels(data, DataflowLayout(data.dataflow))
