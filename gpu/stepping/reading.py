"""Format expressions with the values that one thread had, from the recorded accesses and variables of an event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu.simulator.intrinsics import INTRINSICS
from gpu.simulator.operations import UNARY, binary, cast
from gpu.simulator.trace.terms import Term
from gpu.simulator.types import BOOL, Scalar
from gpu.stepping.thread_event import ThreadEvent, Value, as_text

_LEVELS = {op: level for level, ops in enumerate(
    ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"), 1
) for op in ops.split()}  # fmt: skip
_LOWEST, _HIGHEST = 0, 20
_BITWISE = frozenset(("&", "|", "^", "<<", ">>"))

_MASK = 1 << 16
"""Unsigned constants from here on are shown in hexadecimal, as bit masks."""


class Shown(NamedTuple):
    """A formatted expression, its value (None if unknown), and its operator precedence level."""

    text: str
    value: Value = None
    level: int = _HIGHEST

    def beside(self, level: int) -> str:
        """Return the text as an operand of an operator with a precedence level."""
        return f"({self.text})" if self.level < level else self.text

    def after(self, op: str) -> str:
        """Return the text as the right operand of an operator."""
        is_negative = self.level == _HIGHEST and self.text.startswith("-")
        return f"({self.text})" if is_negative or self._needs_parentheses(op) else self.beside(_LEVELS[op] + 1)

    def before(self, op: str) -> str:
        """Return the text as the left operand of an operator."""
        return f"({self.text})" if self._needs_parentheses(op) else self.beside(_LEVELS[op])

    def _needs_parentheses(self, op: str) -> bool:
        """Return whether parentheses clarify the precedence of two bitwise or logical operators."""
        if op == "||":
            return self.level == _LEVELS["&&"]
        return op in _BITWISE and self.level not in (_LEVELS[op], _LOWEST, _HIGHEST)


class Reading:
    """Format an expression in evaluation order, consuming the thread's recorded accesses one by one.

    Parameters
    ----------
    thread_event : ThreadEvent or None
        The event of the thread; None to keep names and operators as in the source.
    """

    def __init__(self, thread_event: ThreadEvent | None) -> None:
        accesses = thread_event.accesses if thread_event is not None else []
        self._thread_event = thread_event
        self._reads = [access for access in accesses if access.action != "write"]
        self._writes = [access for access in accesses if access.action == "write"]
        self._changed: dict[str, Value] = {}

    def of(self, term: Term) -> Shown:
        """Format an expression, with values in place of names."""
        with np.errstate(all="ignore"):
            return self._format(term)

    def given(self, term: Term) -> Shown:
        """Format an assigned value before its conversion; a plain copy shows the place it is copied from."""
        with np.errstate(all="ignore"):
            return self._assigned_value(term)

    def assignment(self, term: Term) -> tuple[str, Shown, Value]:
        """Return an assignment's target, its assigned value, and the recorded value if there is one."""
        with np.errstate(all="ignore"):
            return self._assign(term) if term.kind == "assign" else self._update(term)[:3]

    def named(self, name: str, term: Term) -> tuple[str, Shown]:
        """Format the initialization of a variable; for a reference, the place it refers to."""
        with np.errstate(all="ignore"):
            if name.startswith("&"):
                return name[1:], Shown(self._pointee(term))
            return name, self._assigned_value(term)

    def _format(self, term: Term) -> Shown:
        match term.kind:
            case "constant":
                return _constant(term)
            case "variable":
                return _leaf(term.text, self._variable(term.text))
            case "special":
                return _leaf(
                    term.text, self._thread_event.special(term.text) if self._thread_event is not None else None
                )
            case "load":
                return self._load(term, self._place(term.parts[0]))
            case "place":
                return Shown(self._place(term))
            case "call":
                return self._call(term)
            case "warp":
                return self._warp(term)
            case "atomic":
                return self._atomic(term)
            case "assign" | "update":
                return self._change(term)
            case "temporary" if term.parts:
                formatted = self._format(term.parts[0])
                self._next_stored(term)
                return formatted
            case "member":
                return Shown(f"&{self._pointee(term)}")
            case "sum" if term.rows:
                where = self._pointee(term)
                # A row is at the address of its first element.
                return Shown(where.removesuffix("[0]") if where.endswith("[0]") else f"&{where}")
        return self._operation(term)

    # Assignments.

    def _change(self, term: Term) -> Shown:
        """Format an assignment within an expression."""
        if term.kind == "update" and term.value:
            place, _, _, previous = self._update(term)
            return _leaf(place, previous)
        place, formatted, _ = self._assign(term) if term.kind == "assign" else self._update(term)[:3]
        return Shown(f"{place} = {formatted.text}", formatted.value, _LOWEST)

    def _assign(self, term: Term) -> tuple[str, Shown, Value]:
        target, value = term.parts
        formatted = self._assigned_value(value)
        return self._place(target), formatted, self._store(term, formatted.value)

    def _update(self, term: Term) -> tuple[str, Shown, Value, Value]:
        """Return the place, the operation with values, its recorded result, and the previous value."""
        (target, operand), op, new = term.parts, term.text, None
        right = self._format(operand)
        place = self._place(target)
        old = self._variable(target.text) if target.kind == "variable" else self._next_read(1)
        if not (old is None or right.value is None or isinstance(old, tuple)):
            own_type, computed = Scalar(np.asarray(old).dtype.name), Scalar(term.type)
            new = cast(computed, own_type)(binary(op, computed)(cast(own_type, computed)(old), right.value))
        formatted = Shown(f"{_leaf(place, old).text} {op} {right.after(op)}", new, _LEVELS[op])
        return place, formatted, self._store(term, new), old

    def _assigned_value(self, term: Term) -> Shown:
        inner = term
        while inner.kind == "cast":
            (inner,) = inner.parts
        if inner.kind == "load":
            place = self._place(inner.parts[0])
            formatted = Shown(place, self._load(inner, place).value)
        else:
            formatted = self._format(inner)
        return Shown(formatted.text, _converted(formatted.value, inner, term), formatted.level)

    def _store(self, term: Term, value: Value) -> Value:
        """Assign a value to a place, and return the recorded value."""
        target = term.parts[0]
        if target.kind != "variable":
            return self._next_stored(term)
        self._changed[target.text] = value
        return self._thread_event.written(target.text) if self._thread_event is not None else None

    def _next_stored(self, term: Term) -> Value:
        """Consume the next stores; return None if not all were recorded."""
        times = 1 if term.kind == "update" else term.value
        stores, self._writes = self._writes[:times], self._writes[times:]
        return _access_value([each.after for each in stores], times)

    # Places.

    def _place(self, term: Term) -> str:
        """Format a place, with values for its indices."""
        if term.kind != "place":
            return term.text
        pointer, *index = term.parts
        if index:
            return self._base(pointer) + self._subscripts(index[0], term.rows)
        inner = self._pointee(pointer)
        return f"*{inner}" if term.text == "*" and pointer.kind not in ("sum", "member") else inner

    def _base(self, pointer: Term) -> str:
        return f"({self._format(pointer).text})" if pointer.kind == "sum" else self._pointee(pointer)

    def _pointee(self, pointer: Term) -> str:
        """Return the name of the place that a pointer points to."""
        match pointer.kind:
            case "member":
                owner = self._pointee(pointer.parts[0])
                return pointer.text if owner in ("this", "") else f"{owner}.{pointer.text}".removesuffix(".")
            case "sum":
                return self._base(pointer.parts[0]) + self._subscripts(pointer.parts[1], pointer.rows)
            case "variable" | "global":
                return pointer.text
            case "load":
                place = self._place(pointer.parts[0])
                self._load(pointer, place)
                return place
        return self._format(pointer).text

    def _subscripts(self, index: Term, rows: tuple[int, ...]) -> str:
        """Return an index in brackets, one pair per dimension of the array."""
        formatted = self._format(index)
        if formatted.value is None:
            return _written_subscripts(index, rows, formatted.text)
        rest, subscripts = int(formatted.value), ""
        for length in reversed(rows):
            rest, last = divmod(rest, max(length, 1))
            subscripts = f"[{last}]{subscripts}"
        return f"[{rest}]{subscripts}"

    def _load(self, term: Term, place: str) -> Shown:
        value = self._next_read(term.value)
        return Shown(place, value) if term.value > 1 else _leaf(place, value)

    def _next_read(self, times: int) -> Value:
        """Consume the next reads; return None if not all were recorded."""
        reads, self._reads = self._reads[:times], self._reads[times:]
        return _access_value([each.value for each in reads if each.action == "read"], times)

    def _variable(self, name: str) -> Value:
        if name in self._changed or self._thread_event is None:
            return self._changed.get(name)
        return self._thread_event.before.get(name)

    # Operators.

    def _operation(self, term: Term) -> Shown:
        """Format an operation on values."""
        match term.kind:
            case "binary" | "sum" | "difference":
                return self._binary(term)
            case "logical":
                return self._logical(term)
            case "choice":
                return self._choice(term)
            case "cast":
                return self._cast(term)
        op, formatted = term.text, [self._format(part) for part in term.parts]
        text = f"{op}({', '.join(each.text for each in formatted)})"
        has_values = not any(each.value is None for each in formatted)
        match term.kind:
            case "unary":
                return Shown(
                    f"{op}{formatted[0].beside(_HIGHEST)}", UNARY[op](formatted[0].value) if has_values else None
                )
            case "comma":
                return Shown(f"{formatted[0].text}, {formatted[1].text}", formatted[1].value, _LOWEST)
            case "function":
                return Shown(
                    text, INTRINSICS[op](*(each.value for each in formatted)).astype(term.type) if has_values else None
                )
            case "made":
                return Shown(f"{{{text[1:-1]}}}", _joined(formatted) if has_values else None)
            case "part":
                return _part(term, formatted[0])
        return Shown(op)

    def _binary(self, term: Term) -> Shown:
        op = term.text
        left, right = (self._format(part) for part in term.parts)
        has_values = term.kind == "binary" and left.value is not None and right.value is not None
        value = binary(op, Scalar(term.type))(left.value, right.value) if has_values else None
        return Shown(f"{left.before(op)} {op} {right.after(op)}", value, _LEVELS[op])

    def _logical(self, term: Term) -> Shown:
        op = term.text
        left = self._format(term.parts[0])
        if left.value is not None and bool(left.value) == (op == "||"):
            return left
        right = self._format(term.parts[1])
        value = None if left.value is None else right.value
        return Shown(f"{left.before(op)} {op} {right.before(op)}", value, _LEVELS[op])

    def _choice(self, term: Term) -> Shown:
        condition, chosen, other = term.parts
        selector = self._format(condition)
        if selector.value is not None:
            return self._format(chosen if selector.value else other)
        return Shown(f"{selector.beside(1)} ? {self._format(chosen).text} : {self._format(other).text}", None, _LOWEST)

    def _cast(self, term: Term) -> Shown:
        """Format a conversion; show the converted value if it differs."""
        (inner,) = term.parts
        formatted = self._format(inner)
        value = _converted(formatted.value, inner, term)
        is_truth = term.type == BOOL.name or isinstance(formatted.value, np.bool_)
        if value is None or is_truth or as_text(value) == as_text(formatted.value):
            return Shown(formatted.text, value, formatted.level)
        return Shown(as_text(value), value)

    # Calls.

    def _call(self, term: Term) -> Shown:
        name, arguments = term.text, [self._argument(part) for part in term.parts]
        while "@" in name:
            name = name.replace("@", arguments.pop(0), 1)
        return Shown(f"{name.removeprefix('this.')}({', '.join(arguments)})")

    def _argument(self, term: Term) -> str:
        """Format a function's argument; an address is shown as the place it points to."""
        if term.kind == "sum" and not term.rows:
            return f"&{self._pointee(term)}"
        return self._pointee(term) if term.kind == "member" else self._format(term).text

    def _atomic(self, term: Term) -> Shown:
        place, *arguments = term.parts
        address = f"&{self._place(place)}" if place.text == "[]" else self._format(place.parts[0]).text
        formatted = [self._format(argument).text for argument in arguments]
        access_found = next((access for access in self._reads if access.action == "atomic"), None)
        if access_found is not None:
            self._reads.remove(access_found)
        return Shown(
            f"{term.text}({', '.join([address, *formatted])})", None if access_found is None else access_found.value
        )

    def _warp(self, term: Term) -> Shown:
        formatted = [self._format(part) for part in term.parts]
        text = f"{term.text}({', '.join(each.text for each in formatted)})"
        other = self._lane_of_shuffle(term.text, [each.value for each in formatted[2:]])
        if self._thread_event is None or other is None:
            return Shown(text)
        source_event = self._thread_event.of_lane(other)
        return _leaf(text, Reading(source_event).of(term.parts[1]).value if source_event is not None else None)

    def _lane_of_shuffle(self, name: str, others: list[Value]) -> int | None:
        """Return the lane from which a shuffle reads its value."""
        if self._thread_event is None or not name.startswith("__shfl") or not others or None in others:
            return None
        delta, width = int(others[0]), int(others[1]) if len(others) > 1 else 32
        lane = self._thread_event.lane % 32
        start = lane // width * width
        other = {
            "__shfl_sync": start + delta % width,
            "__shfl_up_sync": lane - delta if lane - delta >= start else lane,
            "__shfl_down_sync": lane + delta if lane + delta < start + width else lane,
            "__shfl_xor_sync": lane ^ delta,
        }[name]
        return self._thread_event.lane - lane + other


def as_written(term: Term, value: str = "") -> str:
    """Return an expression as in the source; `value` overrides the text of an assigned value."""
    match term:
        case Term("assign" | "update", op, _, (place, assigned_term)):
            written = value or Reading(None).of(assigned_term).text
            return f"{Reading(None).of(place).text} {op.removesuffix('=')}= {written}"
        case Term("comma", _, _, (first, second)):
            return f"{as_written(first)}, {as_written(second)}"
    return Reading(None).of(term).text


def _constant(term: Term) -> Shown:
    value = Scalar(term.type).dtype.type(term.value)
    is_mask = value.dtype.kind == "u" and value >= _MASK
    return Shown(hex(value) if is_mask else as_text(value), value)


def _access_value(values: list[Value], times: int) -> Value:
    """Return the value of a number of accesses; None if there are fewer."""
    if len(values) < times or not times:
        return None
    return values[0] if times == 1 else tuple(values)


def _leaf(text: str, value: Value) -> Shown:
    return Shown(text if value is None else as_text(value), value)


def _joined(parts: list[Shown]) -> Value:
    """Return the vector of all parts' values."""
    values = [part.value if isinstance(part.value, tuple) else (part.value,) for part in parts]
    return tuple(each for value in values for each in value)


def _converted(value: Value, source: Term, target: Term) -> Value:
    """Apply the casts between two terms to a value."""
    if target is source or value is None or isinstance(value, tuple):
        return value
    value = _converted(value, source, target.parts[0])
    return cast(Scalar(np.asarray(value).dtype.name), Scalar(target.type))(value)


def _part(term: Term, vector: Shown) -> Shown:
    """Format a part of a vector value."""
    first, count = term.value
    text = f"{vector.beside(_HIGHEST)}.{term.text}" if term.text else vector.text
    if not isinstance(vector.value, tuple) or len(vector.value) < first + count:
        return Shown(text)
    return _leaf(text, vector.value[first] if count == 1 else vector.value[first : first + count])


def _written_subscripts(index: Term, rows: tuple[int, ...], text: str) -> str:
    """Return subscripts as in the source, if the index is still a row times its length plus an offset."""
    match index:
        case Term("binary", "+", _, (Term("binary", "*", _, (row, Term("constant"))), last)) if rows:
            leading = _written_subscripts(row, rows[:-1], Reading(None).of(row).text)
            return f"{leading}[{Reading(None).of(last).text}]"
    return f"[{text}]"
