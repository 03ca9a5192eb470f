"""The phases of a recording, which the comments of its kernels name: see `gpu.stepping.phase_comments`.

A warp is in the phase of the last such comment before the statement that it executes. If the statement's function has
none, or the statement is the head of a loop that has such comments in its body, the warp stays in its previous phase.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from gpu.base.warp import WARP
from gpu.recording.packing import Array
from gpu.recording.recording import LaunchSpan, Recording
from gpu.recording.statements import TraceFunction
from gpu.recording.trace import Trace
from gpu.stepping.phase_comments import LineAndColumn, PhaseMark, find_phase_marks

_MAX_VALUES = 3
"""The most values of a variable that a name lists one by one, if warps differ."""


@dataclass(frozen=True)
class Phase:
    """An interval of moments, `first` to `last` (exclusive), with its name in the kernel, or ""."""

    first: int
    last: int
    name: str
    launch: int


@dataclass(frozen=True, eq=False)
class Phases:
    """The phases of a recording.

    Parameters
    ----------
    names : tuple of str
        All distinct names; the first is "".
    event_phases : int array
        For each event of all launches, the index of its phase in `iterate_names`.
    intervals : tuple of Phase
        Consecutive intervals without gaps; if warps or lanes take turns, those of the first one. Empty if no phase has
        a name.
    """

    names: tuple[str, ...]
    event_phases: Array
    intervals: tuple[Phase, ...]

    def phase_at(self, moment: int) -> str:
        """Return the phase of the statement executed just before a moment; "" for none."""
        return self.names[self.event_phases[moment - 1]] if moment else ""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The moments at which named phases begin."""
        return tuple(stretch.first for stretch in self.intervals if stretch.name)


def find_phases(recording: Recording) -> Phases:
    """Return the phases of a recording."""
    names: dict[str, int] = {"": 0}
    marks = {name: find_phase_marks(text) for name, text in recording.texts.items() if "phase:" in text}
    parts = [np.zeros(0, np.int64)]
    for launch in recording.launches:
        numbers = np.zeros(launch.count, np.int64)
        if marks:
            for event, name in enumerate(_PhaseTracker(launch, marks).iterate_names()):
                numbers[event] = names.setdefault(name, len(names))
        parts.append(numbers)
    of_event, all_names = np.concatenate(parts), tuple(names)
    intervals = tuple(_split_intervals(recording, all_names, of_event)) if len(all_names) > 1 else ()
    return Phases(all_names, of_event, intervals)


def _split_intervals(recording: Recording, names: Sequence[str], event_phases: Array) -> Iterator[Phase]:
    for launch in recording.launches:
        phase_numbers = event_phases[launch.first : launch.first + launch.count]
        events = (
            np.arange(launch.count) if launch.trace.lanes_per_part is None else _find_first_lane_events(launch.trace)
        )
        borders = events[np.flatnonzero(np.diff(phase_numbers[events], prepend=-1))].tolist()
        # Events of other lanes before the first lane's first statement belong to the first phase.
        for first, last in pairwise([0, *borders[1:], launch.count] if borders else []):
            name = names[phase_numbers[first or borders[0]]]
            yield Phase(launch.first + first, launch.first + last, name, launch.number)


def _find_first_lane_events(trace: Trace) -> Array:
    """Return the events of each batch's first lane, which represents the others if lanes take turns."""
    masks, mask_numbers = np.unique(trace.data.events["mask"], return_inverse=True)
    has_first = np.array([(trace.lanes.mask_lanes(mask) == 0).any() for mask in masks.tolist()], bool)
    events: Array = np.flatnonzero(has_first[mask_numbers])
    return events


class _PhaseTracker:
    """Track the phases of a launch's warps.

    Parameters
    ----------
    marks : mapping of str to (tuple of PhaseMark)
        The phase comments of each source text.
    """

    def __init__(self, launch: LaunchSpan, marks: Mapping[str, tuple[PhaseMark, ...]]) -> None:
        self._trace, self._marks = launch.trace, marks
        self._callers = dict(self._trace.data.calls.tolist())
        self._cached_mark = lru_cache(maxsize=None)(self._find_mark)
        self._cached_groups = lru_cache(maxsize=None)(self._find_groups)
        self._cached_positions = lru_cache(maxsize=None)(self._find_positions)
        self._group_size = launch.trace.lanes_per_part or WARP
        # The phase of each warp, or of each lane, in each call, and the comment that started it.
        self._current_phases: dict[tuple[int, int], str] = {}
        self._entry_marks: dict[tuple[int, int], PhaseMark | None] = {}
        self._frame_functions: dict[int, int] = {}

    def iterate_names(self) -> Iterator[str]:
        """Yield the name of each event's phase."""
        data = self._trace.data
        columns = ("function", "position", "frame", "mask", "kind", "batch", "resumed")
        rows = zip(*(data.events[name].tolist() for name in columns), strict=True)
        latest: dict[tuple[int, int], str] = {}
        for event, (function, position, frame, mask, kind, batch, resumed) in enumerate(rows):
            groups = self._cached_groups(mask)
            if resumed:
                # The rest of a statement after a call belongs to the phase of the called function.
                yield latest.get((batch, groups[0]), "")
                continue
            name = latest[batch, groups[0]] = self._update_phase(
                event, function, position, frame, groups, data.kinds[kind]
            )
            yield name

    def _update_phase(
        self, event: int, function: int, position: int, frame: int, groups: tuple[int, ...], kind: str
    ) -> str:
        """Return the name of an event's phase, and record it as the current phase of its lanes."""
        self._frame_functions[frame] = function
        mark, key = self._cached_mark(function, position), (frame, groups[0])
        if mark is not None and self._is_inlined_header(frame, position):
            return self._find_inherited_phase(*key)
        if mark is None:
            self._entry_marks[key] = None
            return self._find_inherited_phase(*key)
        new = self._entry_marks.get(key) is not mark or kind == "advance"
        if new or (mark.variables and "{" in self._current_phases[key]):
            name = mark.format_name(self._format_variables(mark, event)) if mark.variables else mark.name
            self._entry_marks[key] = mark
        else:
            name = self._current_phases[key]
        if any(self._current_phases.get((frame, group)) != name for group in groups):
            self._current_phases.update(dict.fromkeys(((frame, group) for group in groups), name))
        return name

    def _is_inlined_header(self, frame: int, position: int) -> bool:
        """Return whether a statement is in one of our headers, which is shown at the call and has other names."""
        caller = self._frame_functions.get(self._callers.get(frame, -1))
        return caller not in (None, self._frame_functions[frame]) and position in self._cached_positions(caller)

    def _find_positions(self, function: int) -> frozenset[int]:
        return frozenset(statement.position for statement in self._trace.data.functions[function].statements)

    def _find_inherited_phase(self, frame: int, group: int) -> str:
        """Return the current phase of lanes, from their innermost call that has one; "" for none."""
        while frame >= 0:
            if (name := self._current_phases.get((frame, group))) is not None:
                return name
            frame = self._callers.get(frame, -1)
        return ""

    def _find_groups(self, mask: int) -> tuple[int, ...]:
        """Return the groups of lanes (warps, or lanes that take turns) that a mask contains."""
        return tuple(np.unique(self._trace.lanes.mask_lanes(mask) // self._group_size).tolist()) or (0,)

    def _find_mark(self, function: int, position: int) -> PhaseMark | None:
        """Return the comment that applies to a statement; None if its warps stay in their phase."""
        data = self._trace.data
        source = data.positions[position]
        place = (source.line, source.column)
        earlier_marks = [mark for mark in self._marks.get(source.file, ()) if mark.start < place < mark.end]
        if not earlier_marks:
            return None
        head = self._find_loop_start(data.functions[function], position, earlier_marks[-1].end)
        return earlier_marks[-1] if head is None or head < earlier_marks[-1].start else None

    def _find_loop_start(self, function: TraceFunction, position: int, until: LineAndColumn) -> LineAndColumn | None:
        """Return the start of the innermost loop around a statement with phase comments in its body; None for none."""
        positions = self._trace.data.positions
        start = None
        for loop in function.loops_at(position):
            inside = [
                statement.position
                for statement in function.statements
                if loop in statement.loops and statement.position >= 0
            ]
            places = sorted((positions[each].line, positions[each].column) for each in inside)
            marks = self._marks[positions[position].file]
            if any(places[0] < mark.start < places[-1] and mark.end == until for mark in marks):
                start = places[0]
        return start

    def _format_variables(self, mark: PhaseMark, event: int) -> dict[str, str]:
        """Return the values of a name's variables, for the lanes that execute an event."""
        lanes = self._trace.lanes.mask_lanes(int(self._trace.data.events["mask"][event]))
        variables = {**self._trace.events[event].registers, **self._trace.registers(event, mark.variables)}
        texts = {}
        for name in mark.variables:
            if (variable := variables.get(name)) is not None and variable.defined[lanes].all():
                texts[name] = _format_values(np.unique(variable.values[lanes]).tolist())
        return texts


def _format_values(values: Sequence[object]) -> str:
    """Format values: 3, or 0, 1, or 0 to 7."""
    if len(values) > _MAX_VALUES:
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(str, values))
