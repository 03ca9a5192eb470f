"""The phases of a recording, which the comments of its kernels name: see `gpu.simulator.frontend.phases`.

A warp is in the phase of the last such comment before the statement that it executes. Where there is none in the
statement's function, and at the head of a loop whose body names phases, it stays in the one that it was in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from gpu.simulator.frontend.phases import PhaseMark, Place, phase_marks
from gpu.simulator.trace.functions import TraceFunction
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.trace import Trace
from gpu.stepping.recording import LaunchSpan, Recording
from gpu.warp import WARP

_MOST_VALUES = 3
"""Values of a variable that are told one by one, where warps do not agree."""


@dataclass(frozen=True)
class Phase:
    """A stretch of moments, `first` to `last` (not included), and how the kernel calls it; "" where it does not."""

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
        All that there are; the first is "".
    of_event : int array
        For each event of all launches the number of its phase's name.
    stretches : tuple of Phase
        One after the other, without gaps; where warps or lanes take turns, those of the first one. None where no phase
        has a name.
    """

    names: tuple[str, ...]
    of_event: Array
    stretches: tuple[Phase, ...]

    def at(self, moment: int) -> str:
        """Return the phase of the statement that has just been executed at a moment; "" for none."""
        return self.names[self.of_event[moment - 1]] if moment else ""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The moments at which named phases begin."""
        return tuple(stretch.first for stretch in self.stretches if stretch.name)

    def covering(self, first: int, last: int) -> str:
        """Return the phase that most of some moments are in."""
        here = self.of_event[first:last]
        return self.names[int(np.bincount(here).argmax())] if here.size else ""


def phases_of(recording: Recording) -> Phases:
    """Return the phases of a recording."""
    names: dict[str, int] = {"": 0}
    marks = {name: phase_marks(text) for name, text in recording.texts.items() if "phase:" in text}
    parts = [np.zeros(0, np.int64)]
    for launch in recording.launches:
        found = np.zeros(launch.count, np.int64)
        if marks:
            for event, name in enumerate(_Walk(launch, marks).names()):
                found[event] = names.setdefault(name, len(names))
        parts.append(found)
    of_event, every = np.concatenate(parts), tuple(names)
    made = tuple(_stretches(recording, every, of_event)) if len(every) > 1 else ()
    return Phases(every, of_event, made)


def _stretches(recording: Recording, names: Sequence[str], of_event: Array) -> Iterator[Phase]:
    for launch in recording.launches:
        own = of_event[launch.first : launch.first + launch.count]
        told = np.arange(launch.count) if launch.trace.together is None else _of_first_lanes(launch.trace)
        borders = told[np.flatnonzero(np.diff(own[told], prepend=-1))].tolist()
        # What others do before the first lane's first statement belongs to the beginning.
        for first, last in pairwise([0, *borders[1:], launch.count] if borders else []):
            name = names[own[first or borders[0]]]
            yield Phase(launch.first + first, launch.first + last, name, launch.number)


def _of_first_lanes(trace: Trace) -> Array:
    """Return the events of each batch's first lane: where lanes take turns, it stands for the others."""
    masks, which = np.unique(trace.data.events["mask"], return_inverse=True)
    has_first = np.array([(trace.lanes.of_mask(mask) == 0).any() for mask in masks.tolist()], bool)
    found: Array = np.flatnonzero(has_first[which])
    return found


class _Walk:
    """The way of a launch's warps through the phases.

    Parameters
    ----------
    launch : LaunchSpan
    marks : mapping of str to (tuple of PhaseMark)
        The phases that each text names.
    """

    def __init__(self, launch: LaunchSpan, marks: Mapping[str, tuple[PhaseMark, ...]]) -> None:
        self._trace, self._marks = launch.trace, marks
        self._callers = dict(self._trace.data.calls.tolist())
        self._mark_at = lru_cache(maxsize=None)(self._mark)
        self._groups_of = lru_cache(maxsize=None)(self._groups)
        self._positions_of = lru_cache(maxsize=None)(self._positions)
        self._together = launch.trace.together or WARP
        # Where each warp, or each lane, is in each call, and by which comment.
        self._current: dict[tuple[int, int], str] = {}
        self._entered: dict[tuple[int, int], PhaseMark | None] = {}
        self._function_of: dict[int, int] = {}

    def names(self) -> Iterator[str]:
        """Yield the name of each event's phase."""
        data = self._trace.data
        columns = ("function", "position", "frame", "mask", "kind", "batch", "resumed")
        rows = zip(*(data.events[name].tolist() for name in columns), strict=True)
        latest: dict[tuple[int, int], str] = {}
        for event, (function, position, frame, mask, kind, batch, resumed) in enumerate(rows):
            groups = self._groups_of(mask)
            if resumed:
                # What is left of a statement after a call goes with what was called.
                yield latest.get((batch, groups[0]), "")
                continue
            name = latest[batch, groups[0]] = self._name(event, function, position, frame, groups, data.kinds[kind])
            yield name

    def _name(self, event: int, function: int, position: int, frame: int, groups: tuple[int, ...], kind: str) -> str:
        """Return the name of the phase of an event, and take note of where its lanes are now."""
        self._function_of[frame] = function
        mark, key = self._mark_at(function, position), (frame, groups[0])
        if mark is not None and self._stands_where_called(frame, position):
            return self._carried(*key)
        if mark is None:
            self._entered[key] = None
            return self._carried(*key)
        new = self._entered.get(key) is not mark or kind == "advance"
        if new or (mark.variables and "{" in self._current[key]):
            name = mark.named(self._values(mark, event)) if mark.variables else mark.name
            self._entered[key] = mark
        else:
            name = self._current[key]
        if any(self._current.get((frame, group)) != name for group in groups):
            self._current.update(dict.fromkeys(((frame, group) for group in groups), name))
        return name

    def _stands_where_called(self, frame: int, position: int) -> bool:
        """Return whether a statement is of a header of ours: it is shown where it was called, and knows other names."""
        caller = self._function_of.get(self._callers.get(frame, -1))
        return caller not in (None, self._function_of[frame]) and position in self._positions_of(caller)

    def _positions(self, function: int) -> frozenset[int]:
        return frozenset(each.position for each in self._trace.data.functions[function].statements)

    def _carried(self, frame: int, group: int) -> str:
        """Return the phase that lanes are in, as far as their calls say; "" for none."""
        while frame >= 0:
            if (name := self._current.get((frame, group))) is not None:
                return name
            frame = self._callers.get(frame, -1)
        return ""

    def _groups(self, mask: int) -> tuple[int, ...]:
        """Return which lanes a mask has, by the numbers of those that go together."""
        return tuple(np.unique(self._trace.lanes.of_mask(mask) // self._together).tolist()) or (0,)

    def _mark(self, function: int, position: int) -> PhaseMark | None:
        """Return the comment that a statement is under; None where it leaves its warps in the phase they are in."""
        data = self._trace.data
        at = data.positions[position]
        place = (at.line, at.column)
        before = [mark for mark in self._marks.get(at.file, ()) if mark.at < place < mark.until]
        if not before:
            return None
        head = self._loop_with_phases(data.functions[function], position, before[-1].until)
        return before[-1] if head is None or head < before[-1].at else None

    def _loop_with_phases(self, function: TraceFunction, position: int, until: Place) -> Place | None:
        """Return where the innermost loop around a statement begins in whose body phases are named; None for none."""
        positions = self._trace.data.positions
        found = None
        for loop in function.loops_at(position):
            within = [each.position for each in function.statements if loop in each.loops and each.position >= 0]
            places = sorted((positions[each].line, positions[each].column) for each in within)
            marks = self._marks[positions[position].file]
            if any(places[0] < mark.at < places[-1] and mark.until == until for mark in marks):
                found = places[0]
        return found

    def _values(self, mark: PhaseMark, event: int) -> dict[str, str]:
        """Return the variables that a name names, as they are for those that execute an event."""
        lanes = self._trace.lanes.of_mask(int(self._trace.data.events["mask"][event]))
        known = {**self._trace.events[event].registers, **self._trace.registers(event, mark.variables)}
        found = {}
        for name in mark.variables:
            if (variable := known.get(name)) is not None and variable.defined[lanes].all():
                found[name] = _told(np.unique(variable.values[lanes]).tolist())
        return found


def _told(values: Sequence[object]) -> str:
    """Return values in words: 3, or 0, 1, or 0 to 7."""
    if len(values) > _MOST_VALUES:
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(str, values))
