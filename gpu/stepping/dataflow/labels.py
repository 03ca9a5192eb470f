"""What rows are called: after the loop variable that changed, else after the array or the line."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.trace import Trace
from gpu.simulator.trace.types import Register
from gpu.stepping.dataflow.outlines import Outlines
from gpu.stepping.recording import Recording

_Variables = dict[str, str]

# Of so many warps it is seen whether they agree: where warps take turns, each has an event of its own.
_EVENTS = 4


class Labels:
    """Labels of rows, made when they are asked for.

    Parameters
    ----------
    recording : Recording
    rows : Outlines
    """

    def __init__(self, recording: Recording, rows: Outlines) -> None:
        self._recording = recording
        self._rows = rows
        self._labels: dict[int, str] = {}
        self._variables: dict[int, _Variables] = {}
        self._loops: dict[int, dict[tuple[int, int], set[str]]] = {}

    @cached_property
    def _statements(self) -> list[tuple[SourcePosition | None, int]]:
        """The statement that each row begins, and its launch; None where a row goes on with that of the row before."""
        return [
            (None if self._rows.turn(number) else self._rows.position(number), row.launch)
            for number, row in enumerate(self._rows.all)
        ]

    def __getitem__(self, number: int) -> str:
        if number not in self._labels:
            self._labels[number] = self._label(number)
        return self._labels[number]

    def _label(self, number: int) -> str:
        row, before = self._rows[number], self._rows[number - 1] if number else None
        name = self._rows.storage(number).name
        if row.is_input:
            return name
        if turn := self._rows.turn(number):
            return f"turn {turn + 1}"
        known = self._loop_variables(number)
        follows = before is not None and not before.is_input and before.launch == row.launch
        past = self._loop_variables(number - 1) if follows else {}
        changed = [f"{name} = {value}" for name, value in known.items() if past.get(name) != value]
        if changed:
            return ", ".join(changed)
        position, _ = self._statements[number]
        line = f"line {position.line if position is not None else 0}"
        if before is None or before.storage != row.storage:
            return name or line
        again = self._statements[:number].count(self._statements[number])
        return line + (f", round {again + 1}" if again else "")

    def _loop_variables(self, number: int) -> _Variables:
        """Return the variables of the loops around a row that all its threads agree on, outermost loop first."""
        if number not in self._variables:
            row = self._rows[number]
            launch = self._recording.launches[row.launch]
            events = self._rows.events(number)
            some = np.unique(np.linspace(0, events.size - 1, _EVENTS).astype(np.int64))
            events = events[some] - launch.first
            found = [self._uniform(launch.number, launch.trace, int(event)) for event in events]
            same = found[0].items() if found else ()
            self._variables[number] = {
                name: value for name, value in same if all(each.get(name) == value for each in found)
            }
        return self._variables[number]

    def _uniform(self, launch: int, trace: Trace, event: int) -> _Variables:
        if launch not in self._loops:
            self._loops[launch] = self._variables_of_loops(trace)
        loops = self._loops[launch]
        found: _Variables = {}
        callers = dict(trace.data.calls.tolist())
        events = trace.data.events
        lanes = trace.lanes.of_mask(int(events["mask"][event]))
        while event >= 0:
            function, position, frame = events[event][["function", "position", "frame"]].tolist()
            around = trace.data.functions[function].loops_at(position)
            names = [name for loop in around for name in sorted(_of_loop(loops, function, loop))]
            registers = trace.registers(event, names) if names else {}
            here = {name: text for name in names if (text := _text(registers.get(name), lanes))}
            found = {**here, **found}
            caller = callers.get(frame, -1)
            earlier = np.flatnonzero(events["frame"][:event] == caller) if caller >= 0 else np.zeros(0)
            event = int(earlier[-1]) if earlier.size else -1
        return found

    def _variables_of_loops(self, trace: Trace) -> dict[tuple[int, int], set[str]]:
        """Return the names of the variables that each loop advances: in its header, else those named there."""
        events, registers, kinds = trace.data.events, trace.data.registers, trace.data.kinds
        of = registers["event"]
        own = (of >= 0) & (events["frame"][of] == registers["frame"])
        columns = [events[name][of[own]] for name in ("function", "position", "kind")]
        written = np.unique(np.stack([*columns, registers["slot"][own]], axis=1), axis=0)
        found: dict[tuple[int, int], set[str]] = {}
        fallback: dict[tuple[int, int], set[str]] = {}
        for function, position, kind, slot in written.tolist():
            description = trace.data.functions[function]
            name = description.variables.get(slot)
            around = description.loops_at(position)
            if not around or name is None or kinds[kind] == "declare":
                continue
            advances = kinds[kind] == "advance"
            if not advances and name not in self._header(trace, description.statements[around[-1]].position):
                continue
            chosen = found if advances else fallback
            chosen.setdefault((function, around[-1]), set()).add(name)
        return fallback | found

    def _header(self, trace: Trace, position: int) -> set[str]:
        """Return the names in the line where a loop begins."""
        if position < 0:
            return set()
        header = trace.data.positions[position]
        lines = self._recording.text(header.file).splitlines()
        return set(re.findall(r"[A-Za-z_]\w*", lines[header.line - 1])) if 0 < header.line <= len(lines) else set()


def _of_loop(loops: dict[tuple[int, int], set[str]], function: int, loop: int) -> set[str]:
    """Return the names of a loop's variables."""
    return loops.get((function, loop), set())


def _text(variable: Register | None, lanes: Array) -> str:
    """Return a variable's value where all lanes have the same one; "" elsewhere."""
    if variable is None or not variable.defined[lanes].all():
        return ""
    values = variable.values[lanes]
    return str(values[0]) if values.dtype.kind in "iub" and bool((values == values[0]).all()) else ""
