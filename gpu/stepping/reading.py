"""What the parts of a statement were worth to one thread, from what was recorded of an event."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
from gpu.stepping.scene import Scene, as_text

_NUMPY = {
    "bool": np.bool_, "char": np.int8, "unsigned char": np.uint8, "short": np.int16, "unsigned short": np.uint16,
    "int": np.int32, "unsigned": np.uint32, "unsigned int": np.uint32, "long long": np.int64, "long": np.int64,
    "unsigned long long": np.uint64, "size_t": np.uint64, "float": np.float32, "double": np.float64,
}  # fmt: skip


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
