"""The rows of a dataflow picture without their values: the steps that create rows, the rows' order and their labels.

A label is the loop variable that changed, or the array's name or the source line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.recording.packing import Array
from gpu.recording.recording import Recording
from gpu.recording.tables import ACTIONS
from gpu.recording.trace import Trace
from gpu.recording.variables import RegisterState
from gpu.stepping.dataflow.provenance import Provenance
from gpu.stepping.dataflow.value_graph import Columns, ValueGraph
from gpu.stepping.dataflow.writes import Storage


@dataclass(frozen=True)
class RowOutline:
    """The position of a row, without its values.

    Parameters
    ----------
    storage : int
    launch : int
    step : int
        The last program step of the row, which shows its storage's content after that step.
    writes : array
        The indices of the defining writes, ascending; empty for an input.
    """

    storage: int
    launch: int
    step: int
    writes: Array

    @property
    def is_input(self) -> bool:
        """Whether the row shows the content of an array before a launch."""
        return not self.writes.size


MAX_COMPLETE_CELLS = 4096
"""The largest array that is shown completely. Larger arrays show only the cells that were accessed."""


class Outlines:
    """The outlines of all rows, in order; the input arrays of a launch precede its other rows.

    Parameters
    ----------
    provenance : Provenance
    columns : Columns
    graph : ValueGraph
    """

    def __init__(self, provenance: Provenance, columns: Columns, graph: ValueGraph) -> None:
        self._provenance, self._columns = provenance, columns
        firsts = np.array(provenance.first_steps or [0])
        steps = _build_step_outlines(provenance, graph)
        launches = [int(np.searchsorted(firsts, step.step, side="right")) - 1 for step in steps]
        inputs = sorted(_find_inputs(provenance, columns, graph), key=lambda each: _input_sort_key(provenance, *each))
        rows = [RowOutline(storage, launch, int(firsts[launch]), np.zeros(0, np.int64)) for launch, storage in inputs]
        rows += [
            RowOutline(step.storage, launch, step.step, step.writes)
            for step, launch in zip(steps, launches, strict=True)
        ]
        self.outlines = tuple(sorted(rows, key=lambda row: (row.launch, row.step)))
        self.input_storages = frozenset(row.storage for row in self.outlines if row.is_input)

    def __len__(self) -> int:
        return len(self.outlines)

    def __getitem__(self, number: int) -> RowOutline:
        return self.outlines[number]

    def storage(self, number: int) -> Storage:
        """Return the storage that a row shows."""
        return self._provenance.storages[self.outlines[number].storage]

    def events(self, number: int) -> Array:
        """Return the event numbers that computed values of a row; for an input, the one before the launch."""
        row = self.outlines[number]
        if row.is_input:
            return np.array([self._provenance.recording.launches[row.launch].first - 1])
        events: Array = np.unique(self._provenance.writes.moment[row.writes])
        return events

    def turn(self, number: int) -> int:
        """Return the number of atomic operations of the statement that preceded the row's on the same elements."""
        row = self.outlines[number]
        return 0 if row.is_input else int(self._provenance.turns[row.step])

    def position(self, number: int) -> SourcePosition | None:
        """Return the source position of a row's statement; None for an input."""
        if self.outlines[number].is_input:
            return None
        return self._provenance.recording.position(
            int(self._provenance.writes.moment[self.outlines[number].writes].min())
        )

    def select_visible_cells(self, storage: int, cells: Array) -> Array:
        """Return the cells to show; for a large array, those that were written or are the source of a value."""
        if self._provenance.storages[storage].count <= MAX_COMPLETE_CELLS:
            return cells
        storages, used_cells = self._used_inputs
        writes = self._provenance.writes
        own_cells = np.union1d(used_cells[storages == storage], writes.cell[self._provenance.find_writes(storage)])
        return np.intersect1d(cells, own_cells)

    @cached_property
    def _used_inputs(self) -> tuple[Array, Array]:
        """The storages and cells of input values that were used."""
        nodes = np.unique(np.concatenate((self._provenance.operations.sources.ravel(), self._provenance.writes.node)))
        return self._columns.find_input_cells(nodes)

    @cached_property
    def row_of_write(self) -> Array:
        """For each write the row that it defines a value in; -1 for none."""
        rows = np.full(len(self._provenance.writes), -1)
        for number, row in enumerate(self.outlines):
            rows[row.writes] = number
        return rows


def _find_inputs(provenance: Provenance, columns: Columns, graph: ValueGraph) -> set[tuple[int, int]]:
    """Return pairs of a launch and a storage, if the launch uses the storage's initial content."""
    used = np.unique(columns.find_input_indices(graph.sources[1]))
    inputs = {(provenance.inputs[number].launch, provenance.inputs[number].storage) for number in used if number >= 0}
    return inputs | {
        (launch, storage)
        for storage, launch in provenance.first_reading_launch.items()
        if _is_visible_input(provenance, storage)
    }


def _input_sort_key(provenance: Provenance, launch: int, storage: int) -> tuple[int, bool, bool, int]:
    """Sort arrays that are read before those that are only changed, and those before constants."""
    return (
        launch,
        provenance.storages[storage].space == "constant",
        storage not in provenance.first_reading_launch,
        storage,
    )


def _is_visible_input(provenance: Provenance, storage: int) -> bool:
    """Return whether an array without dependent values is shown, because it may control execution, like sort keys."""
    return provenance.storages[storage].space == "global"


def _build_step_outlines(provenance: Provenance, graph: ValueGraph) -> list[RowOutline]:
    """Return a row for each step that defines values in a storage.

    Consecutive statements in one iteration are merged into one row if they depend neither on each other nor on a
    barrier, such as the two halves of a compare-exchange.
    """
    writes, definitions = provenance.writes, graph.definitions
    step, storage = writes.step[definitions.write], writes.storage[definitions.write]
    order = np.lexsort((definitions.write, storage, step))
    step, storage, write, group = step[order], storage[order], definitions.write[order], definitions.group[order]
    borders = np.flatnonzero((step[1:] != step[:-1]) | (storage[1:] != storage[:-1])) + 1
    starts = np.concatenate(([0], borders)) if step.size else np.zeros(0, np.int64)
    ends = np.append(borders, step.size)
    barriers = np.cumsum(provenance.barriers)
    users, sources = graph.sources
    source_group = graph.group_of_node(sources)
    rows: list[RowOutline] = []
    groups: set[int] = set()
    cells: set[int] = set()
    for start, end in zip(starts, ends, strict=False):
        step_number, storage_number, step_writes = int(step[start]), int(storage[start]), write[start:end]
        own_groups = set(group[start:end].tolist())
        new_cells = set(writes.cell[step_writes].tolist())
        previous = rows[-1] if rows else None
        if (
            previous is not None
            and previous.storage == storage_number
            and provenance.scopes[previous.step] == provenance.scopes[step_number]
            and barriers[previous.step] == barriers[step_number]
            and not writes.is_atomic[step_writes].any()
            and not writes.is_atomic[previous.writes].any()
            and cells.isdisjoint(new_cells)
            and groups.isdisjoint(_source_groups(users, source_group, own_groups))
            and cells.isdisjoint(_written_cells(provenance, storage_number, previous.step + 1, step_number))
        ):
            rows[-1] = RowOutline(storage_number, -1, step_number, np.concatenate((previous.writes, step_writes)))
            groups |= own_groups
            cells |= new_cells
        else:
            rows.append(RowOutline(storage_number, -1, step_number, step_writes))
            groups, cells = own_groups, new_cells
    return rows


def _source_groups(users: Array, source_group: Array, groups: set[int]) -> set[int]:
    """Return the source groups of some groups; group numbers ascend with their steps."""
    low, high = np.searchsorted(users, min(groups)), np.searchsorted(users, max(groups), side="right")
    selected = np.isin(users[low:high], list(groups))
    return set(source_group[low:high][selected].tolist())


def _written_cells(provenance: Provenance, storage: int, first: int, last: int) -> set[int]:
    """Return the cells of a storage that were written in a range of steps."""
    writes = provenance.writes
    rows = slice(np.searchsorted(writes.step, first), np.searchsorted(writes.step, last, side="right"))
    return set(writes.cell[rows][writes.storage[rows] == storage].tolist())


_Variables = dict[str, str]

# The number of events in which variables are compared: if warps take turns, each warp has its own event.
_SAMPLED_EVENTS = 4


class Labels:
    """The labels of rows, computed on demand.

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
        """Each row's first statement and launch; the statement is None if the row continues the previous one."""
        return [
            (None if self._rows.turn(number) else self._rows.position(number), row.launch)
            for number, row in enumerate(self._rows.outlines)
        ]

    def __getitem__(self, number: int) -> str:
        if number not in self._labels:
            self._labels[number] = self._format_label(number)
        return self._labels[number]

    def _format_label(self, number: int) -> str:
        row, previous_row = self._rows[number], self._rows[number - 1] if number else None
        name = self._rows.storage(number).name
        if row.is_input:
            return name
        if turn := self._rows.turn(number):
            return f"turn {turn + 1}"
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
            events = self._rows.events(number)
            sample = np.unique(np.linspace(0, events.size - 1, _SAMPLED_EVENTS).astype(np.int64))
            events = events[sample] - launch.first
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
            names = [name for loop in loop_numbers for name in sorted(_loop_names(loops, function, loop))]
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


def _loop_names(loops: dict[tuple[int, int], set[str]], function: int, loop: int) -> set[str]:
    """Return the names of a loop's variables."""
    return loops.get((function, loop), set())


def _format_uniform_value(variable: RegisterState | None, lanes: Array) -> str:
    """Return a variable's value if it is an integer and equal in all lanes; otherwise ""."""
    if variable is None or not variable.defined[lanes].all():
        return ""
    values = variable.values[lanes]
    return str(values[0]) if values.dtype.kind in "iub" and bool((values == values[0]).all()) else ""
