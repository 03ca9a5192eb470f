"""The labels of a dataflow picture's rows: the loop variable that changed, or the array's name or the source line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.recording.packing import Array
from gpu.recording.recording import Recording
from gpu.recording.tables import ACTIONS
from gpu.recording.trace import Trace
from gpu.recording.variables import RegisterState
from gpu.stepping.dataflow.rows import Row

_Variables = dict[str, str]

# The number of events in which variables are compared: if warps take turns, each warp has its own event.
_SAMPLED_EVENTS = 4


def label_rows(recording: Recording, rows: Sequence[Row]) -> None:
    """Set the label of each row."""
    labels = _Labels(recording, rows)
    for row in rows:
        row.label = labels.format_label(row.number)


class _Labels:
    """The labels of rows."""

    def __init__(self, recording: Recording, rows: Sequence[Row]) -> None:
        self._recording = recording
        self._rows = rows
        self._variables: dict[int, _Variables] = {}
        self._loops: dict[int, dict[tuple[int, int], set[str]]] = {}

    @cached_property
    def _statements(self) -> list[tuple[SourcePosition | None, int]]:
        """Each row's first statement and launch; the statement is None if the row continues the previous one."""
        return [(None if row.turn else row.position, row.launch) for row in self._rows]

    def format_label(self, number: int) -> str:
        """Return the label of a row."""
        row, previous_row = self._rows[number], self._rows[number - 1] if number else None
        name = row.storage.name
        if row.is_input:
            return name
        if row.turn:
            return f"turn {row.turn + 1}"
        current = self._loop_variables(number)
        follows = previous_row is not None and not previous_row.is_input and previous_row.launch == row.launch
        previous = self._loop_variables(number - 1) if follows else {}
        changed = [f"{name} = {value}" for name, value in current.items() if previous.get(name) != value]
        if changed:
            return ", ".join(changed)
        position, _ = self._statements[number]
        line = f"line {position.line if position is not None else 0}"
        if previous_row is None or previous_row.storage != row.storage:
            return name or line
        repetitions = self._statements[:number].count(self._statements[number])
        return line + (f", round {repetitions + 1}" if repetitions else "")

    def _loop_variables(self, number: int) -> _Variables:
        """Return the loop variables of a row that are equal in all its threads, outermost loop first."""
        if number not in self._variables:
            row = self._rows[number]
            launch = self._recording.launches[row.launch]
            sample = np.unique(np.linspace(0, row.events.size - 1, _SAMPLED_EVENTS).astype(np.int64))
            events = row.events[sample] - launch.first
            issued = (_find_issuing_event(launch.trace, int(event)) for event in events)
            variables = [self._uniform_variables(launch.number, launch.trace, event) for event in issued]
            first = variables[0].items() if variables else ()
            self._variables[number] = {
                name: value for name, value in first if all(each.get(name) == value for each in variables)
            }
        return self._variables[number]

    def _uniform_variables(self, launch: int, trace: Trace, event: int) -> _Variables:
        if launch not in self._loops:
            self._loops[launch] = self._find_advanced_variables(trace)
        loops = self._loops[launch]
        variables: _Variables = {}
        callers = dict(trace.data.calls.tolist())
        events = trace.data.events
        lanes = trace.lanes.mask_lanes(int(events["mask"][event]))
        while event >= 0:
            function, position, frame = events[event][["function", "position", "frame"]].tolist()
            loop_numbers = trace.data.functions[function].loops_at(position)
            names = [name for loop in loop_numbers for name in sorted(loops.get((function, loop), set()))]
            registers = trace.registers(event, names) if names else {}
            local = {name: text for name in names if (text := _format_uniform_value(registers.get(name), lanes))}
            variables = {**local, **variables}
            caller = callers.get(frame, -1)
            earlier = np.flatnonzero(events["frame"][:event] == caller) if caller >= 0 else np.zeros(0)
            event = int(earlier[-1]) if earlier.size else -1
        return variables

    def _find_advanced_variables(self, trace: Trace) -> dict[tuple[int, int], set[str]]:
        """Return the variables that each loop advances: in its header, or else in its body and named in the header."""
        events, registers, kinds = trace.data.events, trace.data.registers, trace.data.kinds
        event_numbers = registers["event"]
        is_own = (event_numbers >= 0) & (events["frame"][event_numbers] == registers["frame"])
        columns = [events[name][event_numbers[is_own]] for name in ("function", "position", "kind")]
        written = np.unique(np.stack([*columns, registers["slot"][is_own]], axis=1), axis=0)
        advanced: dict[tuple[int, int], set[str]] = {}
        fallback: dict[tuple[int, int], set[str]] = {}
        for function, position, kind, slot in written.tolist():
            description = trace.data.functions[function]
            name = description.variables.get(slot)
            loop_numbers = description.loops_at(position)
            if not loop_numbers or name is None or kinds[kind] == "declare":
                continue
            advances = kinds[kind] == "advance"
            if not advances and name not in self._find_header_names(
                trace, description.statements[loop_numbers[-1]].position
            ):
                continue
            chosen = advanced if advances else fallback
            chosen.setdefault((function, loop_numbers[-1]), set()).add(name)
        return fallback | advanced

    def _find_header_names(self, trace: Trace, position: int) -> set[str]:
        """Return the names in a loop's first line."""
        if position < 0:
            return set()
        header = trace.data.positions[position]
        lines = self._recording.text(header.file).splitlines()
        return set(re.findall(r"[A-Za-z_]\w*", lines[header.line - 1])) if 0 < header.line <= len(lines) else set()


def _find_issuing_event(trace: Trace, event: int) -> int:
    """Return the event that issued an event's write: an earlier one if the value stayed in a register in between.

    A loop variable may have advanced since then.
    """
    events, accesses = trace.data.events, trace.data.accesses
    has_write = np.zeros(len(events), bool)
    has_write[accesses["event"][accesses["action"] != ACTIONS.index("read")]] = True
    if not has_write[event]:
        return event  # it writes a variable
    same = ~has_write[:event]
    for column in ("function", "frame", "position", "statement"):
        same &= events[column][:event] == events[column][event]
    lanes = trace.lanes.mask_lanes(int(events["mask"][event]))
    for earlier in np.flatnonzero(same)[::-1].tolist():
        if np.isin(lanes, trace.lanes.mask_lanes(int(events["mask"][earlier]))).any():
            return int(earlier)
    return event


def _format_uniform_value(variable: RegisterState | None, lanes: Array) -> str:
    """Return a variable's value if it is an integer and equal in all lanes; otherwise ""."""
    if variable is None or not variable.defined[lanes].all():
        return ""
    values = variable.values[lanes]
    return str(values[0]) if values.dtype.kind in "iub" and bool((values == values[0]).all()) else ""
