"""What the parts of a statement were worth to one thread, from what was recorded of an event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpu.simulator.trace.recorder import ACCESS, OPERATION
from gpu.simulator.trace.trace import Trace
from gpu.simulator.trace.trace_events import Event
from gpu.stepping.c_arithmetic import Value, binary, convert, literal, unary
from gpu.stepping.c_expression import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Group,
    Name,
    Node,
    Number,
    Place,
    Unary,
    UnreadableError,
    base_of,
    level_of,
    parse,
)

_AXES = {"x": 0, "y": 1, "z": 2}
_NUMPY = {
    "bool": np.bool_, "char": np.int8, "unsigned char": np.uint8, "short": np.int16, "unsigned short": np.uint16,
    "int": np.int32, "unsigned": np.uint32, "unsigned int": np.uint32, "long long": np.int64, "long": np.int64,
    "unsigned long long": np.uint64, "size_t": np.uint64, "float": np.float32, "double": np.float64,
}  # fmt: skip


def as_text(value: Value) -> str:
    """Return a value as C would write it, floats with six digits; of a vector all its parts."""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(as_text, value)) + ")"
    kind = np.asarray(value).dtype.kind
    if kind == "b":
        return "true" if value else "false"
    return f"{float(value):.6g}" if kind == "f" else str(int(value))


@dataclass(frozen=True)
class Reach:
    """One access by the thread: what it found or left; `value` is a tuple for a vector."""

    action: str
    array: str
    element: int
    value: Value
    after: Value


@dataclass
class Scene:
    """An event as one thread saw it.

    Parameters
    ----------
    trace : Trace
    event : Event
    lane : int
        The thread's number in the gang.
    accesses : list of Reach
        Those of the whole statement, also where it went on after a call.
    before, after : dict of str to value
        The variables before and after the event.
    changed : dict of str to value
        Those that the event changed.
    constants : dict of str to str
        What macros without arguments stand for.
    """

    trace: Trace
    event: Event
    lane: int
    accesses: list[Reach]
    before: dict[str, Value]
    after: dict[str, Value]
    changed: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace, number: int, block: int, thread: int) -> Scene | None:
        """Return the scene of an event; None where the thread does not take part."""
        if number >= len(trace.events):
            return None
        event = trace.events[number]
        here = np.flatnonzero((event.blocks == block) & (event.threads == thread))
        if not here.size:
            return None
        lane = int(event.lanes[here[0]])
        parts = _parts(trace, number, lane)
        accesses = [reach for part in parts for reach in _reaches(trace, part, lane)]
        before = _of_lane(trace.registers(parts[0].number), lane)
        changed: dict[str, Value] = {}
        for part in parts:
            changed.update(_of_lane(part.registers, lane))
        return cls(trace, event, lane, accesses, before, {**before, **changed}, changed)

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """The variables after the event, in words."""
        return tuple((name, as_text(value)) for name, value in self.after.items())

    @property
    def taken(self) -> bool | None:
        """Of a branch, whether the condition held."""
        taken = self.event.taken
        return None if taken is None else bool(np.isin(self.lane, taken))

    def written(self, name: str) -> Value:
        """Return what a variable got; None where it got nothing."""
        return self.changed.get(name)

    def stored(self) -> Value:
        """Return what was stored last; None where nothing was."""
        return next((reach.after for reach in reversed(self.accesses) if reach.action == "write"), None)

    def effects(self, *, atomics_only: bool = False) -> str:
        """Return in words what memory and variables got."""
        told = []
        for reach in self.accesses:
            if reach.action == "atomic":
                told.append(f"{reach.array}[{reach.element}] from {as_text(reach.value)} to {as_text(reach.after)}")
            elif reach.action == "write" and not atomics_only:
                told.append(f"{reach.array}[{reach.element}] = {as_text(reach.after)}")
        if not atomics_only:
            told += [f"{name} = {as_text(value)}" for name, value in self.changed.items()]
        return ", ".join(told)

    def special(self, name: str) -> Value:
        """Return threadIdx.x and its like; None for any other name."""
        kind, _, axis = name.partition(".")
        if name == "warpSize":
            return np.int32(32)
        if axis not in _AXES:
            return None
        launch = self.trace.launch_of(self.event.gang)
        extent = {"blockDim": launch.block, "gridDim": launch.grid}.get(kind)
        if extent is not None:
            return np.uint32(extent[_AXES[axis]])
        whole = {"threadIdx": launch.block, "blockIdx": launch.grid}.get(kind)
        if whole is None:
            return None
        number = self.lane % launch.lanes_per_block
        if kind == "blockIdx":
            number = int(self.trace.block_of(self.event.gang, self.lane))
        x, y, _ = whole
        return np.uint32((number % x, number // x % y, number // (x * y))[_AXES[axis]])

    def operators(self) -> list[str]:
        """Return what the thread's operations on data were in the event."""
        table = self.trace.data.arrays["operations"]
        events = table[:, OPERATION.index("event")]
        rows = range(*np.searchsorted(events, [self.event.number, self.event.number + 1]).tolist())
        names = self.trace.about["operators"]
        return [
            str(names[int(table[row, OPERATION.index("operator")])])
            for row in rows
            if self.lane in self.trace.lanes_of_mask(int(table[row, OPERATION.index("mask")]))
        ]


def _parts(trace: Trace, number: int, lane: int) -> list[Event]:
    """Return the events of the statement that an event is a part of, as the thread saw them."""
    event, first = trace.events[number], number
    while trace.events[first].resumed and first > 0:
        first -= 1
        while first > 0 and not _same(trace.events[first], event, lane):
            first -= 1
    found = [trace.events[first]]
    for each in range(first + 1, len(trace.events)):
        following = trace.events[each]
        if _same(following, event, lane):
            if not following.resumed:
                break
            found.append(following)
    return found


def _same(one: Event, other: Event, lane: int) -> bool:
    return one.gang == other.gang and one.frame == other.frame and bool(np.isin(lane, one.lanes))


def _of_lane(registers: dict[str, Any], lane: int) -> dict[str, Value]:
    return {name: each.values[lane] for name, each in registers.items() if each.defined[lane]}


def _reaches(trace: Trace, event: Event, lane: int) -> list[Reach]:
    table = trace.data.arrays["accesses"]
    first = int(np.searchsorted(table[:, ACCESS.index("event")], event.number))
    found: list[Reach] = []
    for place, access in enumerate(event.accesses):
        (here,) = np.nonzero(access.lanes == lane)
        if not here.size:
            continue
        at = int(here[0])
        value, after = access.values[at], access.after[at]
        if int(table[first + place, ACCESS.index("part")]) and found:
            last = found[-1]
            value, after = (_more(last.value, value), _more(last.after, after))
            found[-1] = Reach(last.action, last.array, last.element, value, after)
            continue
        array = trace.arrays[int(access.arrays[at])].name
        found.append(Reach(access.action, array, int(access.elements[at]), value, after))
    return found


def _more(value: Value, part: Value) -> Value:
    return (*value, part) if isinstance(value, tuple) else (value, part)


class Reading:
    """Follows an expression in the order in which it was evaluated, and takes the thread's accesses one by one."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._reads = [reach for reach in scene.accesses if reach.action != "write"]
        self._arrays = {array.name for array in scene.trace.arrays}
        self._changed: dict[str, Value] = {}
        self._open: set[str] = set()

    def of(self, node: Node) -> tuple[str, Value]:
        """Return an expression with values in place of names, and what it is worth, None where that is not known."""
        match node:
            case Number(text):
                return text, literal(text)
            case Name(text):
                value = self._name(text)
                return (text, None) if value is None else (as_text(value), value)
            case Group(inner):
                shown, value = self.of(inner)
                return (shown if isinstance(inner, Number | Name | Place | Group) else f"({shown})"), value
            case Unary("&", operand):
                return f"&{self.place(operand)[0]}", None
            case Unary(op, operand):
                shown, value = self.of(operand)
                return f"{op}{shown}", unary(op, value)
            case Binary(op, left, right):
                return self._binary(op, left, right)
            case Choice(condition, chosen, other):
                shown, held = self.of(condition)
                if held is None or isinstance(held, tuple):
                    return f"{shown} ? {self.of(chosen)[0]} : {self.of(other)[0]}", None
                return self.of(chosen if held else other)
            case Cast(type, operand):
                shown, value = self.of(operand)
                dtype = _NUMPY.get(type)
                known = value is not None and dtype is not None and not isinstance(value, tuple)
                value = convert(value, np.dtype(dtype)) if known else None
                return (as_text(value) if value is not None else f"({type}){shown}"), value
            case Call(name, arguments):
                return self._call(name, arguments)
            case Place():
                return self._load(node)
            case Assign(after=True):
                old = self._change(node)[2]
                return (self.place(node.place)[0] if old is None else as_text(old)), old
            case Assign():
                place, shown, value = self.assignment(node)
                return f"({place} = {shown})", value

    def assignment(self, node: Assign) -> tuple[str, str, Value]:
        """Return the place, what it gets with values, and what that is worth."""
        if node.op == "=":
            shown, value = self.of(node.value)
            if isinstance(node.place, Name) and value is not None and not isinstance(value, tuple):
                old = self._name(node.place.text)
                known = old is not None and not isinstance(old, tuple)
                value = convert(value, np.asarray(old).dtype) if known else value
                self._changed[node.place.text] = value
            loads = isinstance(node.value, Place) and value is not None
            source = self._last_place if loads else ""
            place = self.place(node.place)[0]
            return place, source or shown, value
        place, shown, _, value = self._change(node)
        return place, shown, value

    def _change(self, node: Assign) -> tuple[str, str, Value, Value]:
        """Return the place, the operation with values, and what was there before and is there after it."""
        shown, value = self.of(node.value)
        op = node.op[:-1]
        place, _ = self.place(node.place)
        old = self._name(place) if isinstance(node.place, Name) else self._take(base_of(node.place))
        inner = f"({shown})" if level_of(node.value) < 20 and not shown.startswith("(") and " " in shown else shown
        before = place if old is None else as_text(old)
        new = binary(op, old, value)
        if isinstance(node.place, Name) and new is not None:
            self._changed[place] = convert(new, np.asarray(old).dtype)
        return place, f"{before} {op} {_signed(inner)}", old, new

    def place(self, node: Node) -> tuple[str, Value]:
        """Return a place with values for its indices, and the last of these."""
        match node:
            case Place(base, None, ""):
                return f"*{self.place(base)[0]}", None
            case Place(base, index, member):
                where = self.place(base)[0]
                if index is None:
                    return f"{where}{member}", None
                shown, value = self.of(index)
                return f"{where}[{shown if value is None else as_text(value)}]", value
            case Name(text):
                return text, None
            case Group(inner):
                return f"({self.place(inner)[0]})", None
            case Binary(op, left, right):
                return f"{self.place(left)[0]} {op} {self.of(right)[0]}", None
        return self.of(node)

    _last_place = ""

    def _load(self, node: Place) -> tuple[str, Value]:
        where, _ = self.place(node)
        base = base_of(node)
        value = self._take(base, vector=bool(node.member))
        self._last_place = where if value is not None else ""
        return (where, None) if value is None else (as_text(value), value)

    def _take(self, base: str, *, vector: bool = False) -> Value:
        """Take the next read, where it can be one of `base`: its own array's, or that of a pointer of another name."""
        if not self._reads or (vector and base not in self._arrays):
            return None
        own = self._reads[0].array == base
        if not own and (base in self._arrays or base in self._scene.before):
            return None
        return self._reads.pop(0).value

    def _name(self, name: str) -> Value:
        if name in ("true", "false"):
            return np.bool_(name == "true")
        for known in (self._changed, self._scene.before):
            if name in known:
                return known[name]
        if self._reads and self._reads[0].array == name and self._reads[0].action == "read":
            return self._reads.pop(0).value
        return self._constant(name) if name in self._scene.constants else self._scene.special(name)

    def _constant(self, name: str) -> Value:
        """Return what a macro is worth, where it stands for a number or a sum of such."""
        if name in self._open:
            return None
        self._open.add(name)
        try:
            return self.of(parse(self._scene.constants[name]))[1]
        except UnreadableError:
            return None
        finally:
            self._open.discard(name)

    def _binary(self, op: str, left: Node, right: Node) -> tuple[str, Value]:
        shown, value = self.of(left)
        if op in ("&&", "||"):
            if value is not None and bool(value) == (op == "||"):
                return shown, np.bool_(value)
            other, second = self.of(right)
            return f"{shown} {op} {other}", None if value is None or second is None else np.bool_(second)
        other, second = self.of(right)
        known = binary(op, value, second)
        return f"{shown}{op if op == ',' else f' {op}'} {_signed(other)}", second if op == "," else known

    def _call(self, name: str, arguments: Sequence[Node]) -> tuple[str, Value]:
        if name.startswith("atomic"):
            shown = [self.of(argument)[0] for argument in arguments]
            found = next((reach for reach in self._reads if reach.action == "atomic"), None)
            if found is not None:
                self._reads.remove(found)
            return f"{name}({', '.join(shown)})", None if found is None else found.value
        read = [self.of(argument) for argument in arguments]
        values = [value for _, value in read]
        if name.startswith("__shfl") and len(arguments) >= 3:
            value = self._shuffled(name, arguments)
            if value is not None:
                return as_text(value), value
        if name.startswith("static_cast<") and len(read) == 1:
            return read[0][0], None
        if name in ("min", "max") and len(values) == 2 and not any(v is None or isinstance(v, tuple) for v in values):
            less = bool(binary("<", values[0], values[1]))
            first = values[0] if less == (name == "min") else values[1]
            return f"{name}({read[0][0]}, {read[1][0]})", first
        operators = [each for each in self._scene.operators() if not each.startswith("atomic")]
        if name.isupper() and len(read) == 2 and len(operators) == 1:
            # A macro that stands for one operation.
            (op,) = operators
            if op[0].isalpha():
                return f"{op}({read[0][0]}, {read[1][0]})", None
            return f"{read[0][0]} {op} {_signed(read[1][0])}", binary(op, values[0], values[1])
        return f"{name}({', '.join(shown for shown, _ in read)})", None

    def _shuffled(self, name: str, arguments: Sequence[Node]) -> Value:
        """Return what a shuffle of a variable gives: what the other lane has in it."""
        variable, by = arguments[1], self.of(arguments[2])[1]
        width = self.of(arguments[3])[1] if len(arguments) > 3 else np.int32(32)
        register = self._scene.trace.registers(self._scene.event.number).get(getattr(variable, "text", ""))
        if by is None or width is None or register is None:
            return None
        own, by, width = self._scene.lane % 32, int(by), int(width)
        start = own // width * width
        other = {
            "__shfl_sync": start + by % width,
            "__shfl_up_sync": own - by if own - by >= start else own,
            "__shfl_down_sync": own + by if own + by < start + width else own,
            "__shfl_xor_sync": own ^ by,
        }.get(name)
        if other is None:
            return None
        lane = self._scene.lane - own + other
        return register.values[lane] if np.isin(lane, self._scene.event.lanes) else None


def _signed(shown: str) -> str:
    return f"({shown})" if shown.startswith("-") else shown
