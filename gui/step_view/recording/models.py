"""A recording with everything that is read from it, put together in the background so that the window never waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpu.declaration.pattern import Array, CountedText
from gpu.errors import LockstepError
from gpu.warp import WARP
from gui.step_view.dataflow.layout import DataflowLayout

if TYPE_CHECKING:
    from gpu.stepping.launch_tree import Grid
    from gpu.stepping.moment.lanes import LaneStates
    from gpu.stepping.phases import Phases
    from gpu.stepping.races import Race
    from gpu.stepping.recording import Recording
    from gpu.stepping.segments import Segment
    from gpu.stepping.tally import Tally


@dataclass(frozen=True, eq=False)
class Models:
    """A recording and its views.

    Parameters
    ----------
    layout : DataflowLayout
        Its dataflow, laid out.
    lines : int array
        The source line of each event of all launches.
    files : tuple of str
        Its file.
    segments : tuple of Segment
        From barrier to barrier.
    phases : Phases
        As the kernels' comments name them.
    addresses : int
        The most addresses that atomics of one access want; 0 without atomics.
    grids : tuple of Grid
        The host's launches, and those by kernels.
    races : tuple of Race
        Where threads race for elements.
    """

    recording: Recording
    layout: DataflowLayout
    lanes: LaneStates
    tally: Tally
    lines: Array
    files: tuple[str, ...]
    segments: tuple[Segment, ...]
    phases: Phases
    addresses: int
    grids: tuple[Grid, ...]
    races: tuple[Race, ...]

    @property
    def launching(self) -> bool:
        """Whether any kernel launches others."""
        return any(grid.parent >= 0 for grid in self.grids)

    @cached_property
    def multiplying_tiles(self) -> bool:
        """Whether any kernel has tensor cores multiply tiles."""
        from gpu.stepping.moment.tiles import has_tiles

        return has_tiles(self.recording)

    @property
    def several_blocks(self) -> bool:
        """Whether any launch has more than one block."""
        return any(np.prod(launch.trace.grid) > 1 for launch in self.recording.launches)

    @property
    def spaces(self) -> frozenset[str]:
        """The memory spaces of the arrays."""
        return frozenset(array.space for launch in self.recording.launches for array in launch.trace.arrays)

    @property
    def two_dimensional(self) -> bool:
        """Whether what is worked on has rows and columns; a shared array of two buffers is no picture."""
        shapes = (
            launch.shapes[array.number]
            for launch in self.recording.launches
            for array in launch.trace.arrays
            if array.space == "global"
        )
        return any(shape is not None and len(shape) > 1 and shape[-2] > 1 and shape[-1] > 1 for shape in shapes)

    @property
    def warps(self) -> tuple[int, ...]:
        """The warps of a block, by launch."""
        return tuple(launch.trace.launches[0].lanes_per_block // WARP for launch in self.recording.launches)

    @cached_property
    def racing_cells(self) -> dict[tuple[int, int], Race]:
        """The cells of the dataflow in which the elements stand that threads race for, by row and cell.

        Each is marked where either of the two accesses saw it or left it.
        """
        found: dict[tuple[int, int], Race] = {}
        for race in self.races:
            for racer in (race.first, race.second):
                moment = racer.moment + 1
                cell = self.layout.dataflow.cell_at(moment, race.name, race.element, block=race.block)
                if cell is not None:
                    found.setdefault(cell, race)
        return found

    def given(self, launch: int) -> frozenset[str]:
        """Return the names of the arrays that held something when a launch began."""
        before = {number for each in self.recording.launches[:launch] for number in each.buffers if number is not None}
        here = self.recording.launches[launch]
        names = {array.name for array in here.trace.arrays if here.buffers[array.number] in before}
        read = {row.storage.name for row in self.layout.rows if row.launch == launch and not row.made.any()}
        return frozenset(names | read)

    def next_execution(self, file: str, line: int, moment: int) -> int | None:
        """Return the moment after which a line has next been executed; from the last execution it goes to the first."""
        here = np.flatnonzero((self.lines == line) & np.array([Path(each).name == file for each in self.files], bool))
        if not here.size:
            return None
        later = here[here + 1 > moment]
        return int(later[0] if later.size else here[0]) + 1


def with_text(models: Models, text: CountedText | None) -> Models:
    """Return the same of a text that was counted: with its letters, names of bins, and lines from one to the other."""
    if text is None:
        return models
    from gpu.stepping.counted import counted_elements

    counted = counted_elements(models.recording, text.characters, text.bins)
    return replace(models, layout=DataflowLayout(models.layout.dataflow, text, counted))


def load(path: str | Path) -> Models:
    """Read a recording from a file of this program's own processes.

    Raises
    ------
    InputError
        It cannot be read.
    """
    from gpu.stepping.recording import Recording

    return models_of(Recording.load(path))


def load_checked(data: bytes, path: Path) -> Models:
    """Read a recording from bytes that an `Inspector` gave of a file; InputError where they are none all the same."""
    from gpu.stepping.recording import Recording, damaged

    try:
        return models_of(Recording.read(data, path))
    except LockstepError:
        raise
    except Exception as error:
        raise damaged(path) from error


def models_of(recording: Recording) -> Models:
    """Return a recording with its views."""
    from gpu.stepping.derived import derive

    derived = derive(recording)
    positions, _ = recording.statements
    lines = np.array([position.line for position in positions], np.int64)
    files = tuple(position.file for position in positions)
    return Models(
        recording, DataflowLayout(derived.dataflow), derived.lanes, derived.tally, lines, files, derived.segments,
        derived.phases, derived.addresses, derived.grids, derived.races,
    )  # fmt: skip
