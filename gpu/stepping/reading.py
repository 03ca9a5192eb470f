"""What the parts of a statement were worth to one thread, from what was recorded of an event."""

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
_LOOSEST, _TIGHTEST = 0, 20
_BITWISE = frozenset(("&", "|", "^", "<<", ">>"))

_MASK = 1 << 16
"""Unsigned constants from here on are bits rather than numbers, and are shown as such."""


class Shown(NamedTuple):
    """An expression in words, what it is worth (None where that is not known), and how tightly it binds."""

    text: str
    value: Value = None
    level: int = _TIGHTEST

    def beside(self, level: int) -> str:
        """Return the text beside an operator that binds so tightly."""
        return f"({self.text})" if self.level < level else self.text

    def after(self, op: str) -> str:
        """Return the text to the right of an operator."""
        is_negative = self.level == _TIGHTEST and self.text.startswith("-")
        return f"({self.text})" if is_negative or self._is_apart(op) else self.beside(_LEVELS[op] + 1)

    def before(self, op: str) -> str:
        """Return the text to the left of an operator."""
        return f"({self.text})" if self._is_apart(op) else self.beside(_LEVELS[op])

    def _is_apart(self, op: str) -> bool:
        """Whether parentheses tell what few know by heart: which of two operators on bits or truths binds tighter."""
        if op == "||":
            return self.level == _LEVELS["&&"]
        return op in _BITWISE and self.level not in (_LEVELS[op], _LOOSEST, _TIGHTEST)


class Reading:
    """Follows an expression in the order in which it was evaluated, and takes the thread's accesses one by one.

    Parameters
    ----------
    seen : ThreadEvent or None
        What the thread saw; None to have names and operators as they are in the text.
    """

    def __init__(self, seen: ThreadEvent | None) -> None:
        accesses = seen.accesses if seen is not None else []
        self._seen = seen
        self._reads = [access for access in accesses if access.action != "write"]
        self._writes = [access for access in accesses if access.action == "write"]
        self._changed: dict[str, Value] = {}

    def of(self, term: Term) -> Shown:
        """Return an expression with values in place of names."""
        with np.errstate(all="ignore"):
            return self._of(term)

    def given(self, term: Term) -> Shown:
        """Return what a place gets: as it is before it is converted, of what is merely copied where it comes from."""
        with np.errstate(all="ignore"):
            return self._given(term)

    def assignment(self, term: Term) -> tuple[str, Shown, Value]:
        """Return the place that is assigned to, what it should get, and what it got as far as that was recorded."""
        with np.errstate(all="ignore"):
            return self._assigned(term) if term.kind == "assign" else self._updated(term)[:3]

    def named(self, name: str, term: Term) -> tuple[str, Shown]:
        """Return a variable that gets its first value; of a reference what it refers to."""
        with np.errstate(all="ignore"):
            if name.startswith("&"):
                return name[1:], Shown(self._referred(term))
            return name, self._given(term)

    def _of(self, term: Term) -> Shown:
        match term.kind:
            case "constant":
                return _constant(term)
            case "variable":
                return _leaf(term.text, self._variable(term.text))
            case "special":
                return _leaf(term.text, self._seen.special(term.text) if self._seen is not None else None)
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
                shown = self._of(term.parts[0])
                self._stored(term)
                return shown
            case "member":
                return Shown(f"&{self._referred(term)}")
            case "sum" if term.rows:
                where = self._referred(term)
                # The first element of a row is where the row is.
                return Shown(where.removesuffix("[0]") if where.endswith("[0]") else f"&{where}")
        return self._operation(term)

    # Assignments.

    def _change(self, term: Term) -> Shown:
        """Return an assignment within an expression."""
        if term.kind == "update" and term.value:
            place, _, _, before = self._updated(term)
            return _leaf(place, before)
        place, shown, _ = self._assigned(term) if term.kind == "assign" else self._updated(term)[:3]
        return Shown(f"{place} = {shown.text}", shown.value, _LOOSEST)

    def _assigned(self, term: Term) -> tuple[str, Shown, Value]:
        target, value = term.parts
        shown = self._given(value)
        return self._place(target), shown, self._kept(term, shown.value)

    def _updated(self, term: Term) -> tuple[str, Shown, Value, Value]:
        """Return the place, the operation with values, what was recorded of its result, and what was there before."""
        (target, by), op, new = term.parts, term.text, None
        right = self._of(by)
        place = self._place(target)
        old = self._variable(target.text) if target.kind == "variable" else self._read(1)
        if not (old is None or right.value is None or isinstance(old, tuple)):
            own, computed = Scalar(np.asarray(old).dtype.name), Scalar(term.type)
            new = cast(computed, own)(binary(op, computed)(cast(own, computed)(old), right.value))
        shown = Shown(f"{_leaf(place, old).text} {op} {right.after(op)}", new, _LEVELS[op])
        return place, shown, self._kept(term, new), old

    def _given(self, term: Term) -> Shown:
        inner = term
        while inner.kind == "cast":
            (inner,) = inner.parts
        if inner.kind == "load":
            place = self._place(inner.parts[0])
            shown = Shown(place, self._load(inner, place).value)
        else:
            shown = self._of(inner)
        return Shown(shown.text, _converted(shown.value, inner, term), shown.level)

    def _kept(self, term: Term, value: Value) -> Value:
        """Let a place get a value, and return what was recorded of that."""
        target = term.parts[0]
        if target.kind != "variable":
            return self._stored(term)
        self._changed[target.text] = value
        return self._seen.written(target.text) if self._seen is not None else None

    def _stored(self, term: Term) -> Value:
        """Take the next stores; None where not all were recorded."""
        times = 1 if term.kind == "update" else term.value
        taken, self._writes = self._writes[:times], self._writes[times:]
        return _of_accesses([each.after for each in taken], times)

    # Places.

    def _place(self, term: Term) -> str:
        """Return a place in words, with values for its indices."""
        if term.kind != "place":
            return term.text
        pointer, *index = term.parts
        if index:
            return self._base(pointer) + self._subscripts(index[0], term.rows)
        inner = self._referred(pointer)
        return f"*{inner}" if term.text == "*" and pointer.kind not in ("sum", "member") else inner

    def _base(self, pointer: Term) -> str:
        return f"({self._of(pointer).text})" if pointer.kind == "sum" else self._referred(pointer)

    def _referred(self, pointer: Term) -> str:
        """Return the place that a pointer leads to, by its own name."""
        match pointer.kind:
            case "member":
                owner = self._referred(pointer.parts[0])
                return pointer.text if owner in ("this", "") else f"{owner}.{pointer.text}".removesuffix(".")
            case "sum":
                return self._base(pointer.parts[0]) + self._subscripts(pointer.parts[1], pointer.rows)
            case "variable" | "global":
                return pointer.text
            case "load":
                place = self._place(pointer.parts[0])
                self._load(pointer, place)
                return place
        return self._of(pointer).text

    def _subscripts(self, index: Term, rows: tuple[int, ...]) -> str:
        """Return an index in brackets, of an array of several dimensions one for each."""
        shown = self._of(index)
        if shown.value is None:
            return _written_subscripts(index, rows, shown.text)
        rest, found = int(shown.value), ""
        for length in reversed(rows):
            rest, last = divmod(rest, max(length, 1))
            found = f"[{last}]{found}"
        return f"[{rest}]{found}"

    def _load(self, term: Term, place: str) -> Shown:
        value = self._read(term.value)
        return Shown(place, value) if term.value > 1 else _leaf(place, value)

    def _read(self, times: int) -> Value:
        """Take the next reads; None where not all were recorded."""
        taken, self._reads = self._reads[:times], self._reads[times:]
        return _of_accesses([each.value for each in taken if each.action == "read"], times)

    def _variable(self, name: str) -> Value:
        if name in self._changed or self._seen is None:
            return self._changed.get(name)
        return self._seen.before.get(name)

    # Operators.

    def _operation(self, term: Term) -> Shown:
        """Return what is made of values alone."""
        match term.kind:
            case "binary" | "sum" | "difference":
                return self._binary(term)
            case "logical":
                return self._logical(term)
            case "choice":
                return self._choice(term)
            case "cast":
                return self._cast(term)
        op, shown = term.text, [self._of(part) for part in term.parts]
        text = f"{op}({', '.join(each.text for each in shown)})"
        known = not any(each.value is None for each in shown)
        match term.kind:
            case "unary":
                return Shown(f"{op}{shown[0].beside(_TIGHTEST)}", UNARY[op](shown[0].value) if known else None)
            case "comma":
                return Shown(f"{shown[0].text}, {shown[1].text}", shown[1].value, _LOOSEST)
            case "function":
                return Shown(text, INTRINSICS[op](*(each.value for each in shown)).astype(term.type) if known else None)
            case "made":
                return Shown(f"{{{text[1:-1]}}}", _joined(shown) if known else None)
            case "part":
                return _part(term, shown[0])
        return Shown(op)

    def _binary(self, term: Term) -> Shown:
        op = term.text
        left, right = (self._of(part) for part in term.parts)
        known = term.kind == "binary" and left.value is not None and right.value is not None
        value = binary(op, Scalar(term.type))(left.value, right.value) if known else None
        return Shown(f"{left.before(op)} {op} {right.after(op)}", value, _LEVELS[op])

    def _logical(self, term: Term) -> Shown:
        op = term.text
        left = self._of(term.parts[0])
        if left.value is not None and bool(left.value) == (op == "||"):
            return left
        right = self._of(term.parts[1])
        value = None if left.value is None else right.value
        return Shown(f"{left.before(op)} {op} {right.before(op)}", value, _LEVELS[op])

    def _choice(self, term: Term) -> Shown:
        condition, chosen, other = term.parts
        held = self._of(condition)
        if held.value is not None:
            return self._of(chosen if held.value else other)
        return Shown(f"{held.beside(1)} ? {self._of(chosen).text} : {self._of(other).text}", None, _LOOSEST)

    def _cast(self, term: Term) -> Shown:
        """Return what is converted; where that shows, as it is afterwards."""
        (inner,) = term.parts
        shown = self._of(inner)
        value = _converted(shown.value, inner, term)
        is_truth = term.type == BOOL.name or isinstance(shown.value, np.bool_)
        if value is None or is_truth or as_text(value) == as_text(shown.value):
            return Shown(shown.text, value, shown.level)
        return Shown(as_text(value), value)

    # Calls.

    def _call(self, term: Term) -> Shown:
        name, arguments = term.text, [self._argument(part) for part in term.parts]
        while "@" in name:
            name = name.replace("@", arguments.pop(0), 1)
        return Shown(f"{name.removeprefix('this.')}({', '.join(arguments)})")

    def _argument(self, term: Term) -> str:
        """Return what a function is given, of an address by what is there."""
        if term.kind == "sum" and not term.rows:
            return f"&{self._referred(term)}"
        return self._referred(term) if term.kind == "member" else self._of(term).text

    def _atomic(self, term: Term) -> Shown:
        place, *arguments = term.parts
        where = f"&{self._place(place)}" if place.text == "[]" else self._of(place.parts[0]).text
        shown = [self._of(argument).text for argument in arguments]
        found = next((access for access in self._reads if access.action == "atomic"), None)
        if found is not None:
            self._reads.remove(found)
        return Shown(f"{term.text}({', '.join([where, *shown])})", None if found is None else found.value)

    def _warp(self, term: Term) -> Shown:
        shown = [self._of(part) for part in term.parts]
        text = f"{term.text}({', '.join(each.text for each in shown)})"
        other = self._lane_of_shuffle(term.text, [each.value for each in shown[2:]])
        if self._seen is None or other is None:
            return Shown(text)
        there = self._seen.of_lane(other)
        return _leaf(text, Reading(there).of(term.parts[1]).value if there is not None else None)

    def _lane_of_shuffle(self, name: str, others: list[Value]) -> int | None:
        """Return the lane that a shuffle takes its value from."""
        if self._seen is None or not name.startswith("__shfl") or not others or None in others:
            return None
        by, width = int(others[0]), int(others[1]) if len(others) > 1 else 32
        own = self._seen.lane % 32
        start = own // width * width
        other = {
            "__shfl_sync": start + by % width,
            "__shfl_up_sync": own - by if own - by >= start else own,
            "__shfl_down_sync": own + by if own + by < start + width else own,
            "__shfl_xor_sync": own ^ by,
        }[name]
        return self._seen.lane - own + other


def as_written(term: Term, value: str = "") -> str:
    """Return an expression with names and operators as they are in the text; `value` is that of what is assigned."""
    match term:
        case Term("assign" | "update", op, _, (place, assigned)):
            written = value or Reading(None).of(assigned).text
            return f"{Reading(None).of(place).text} {op.removesuffix('=')}= {written}"
        case Term("comma", _, _, (first, second)):
            return f"{as_written(first)}, {as_written(second)}"
    return Reading(None).of(term).text


def _constant(term: Term) -> Shown:
    value = Scalar(term.type).dtype.type(term.value)
    is_mask = value.dtype.kind == "u" and value >= _MASK
    return Shown(hex(value) if is_mask else as_text(value), value)


def _of_accesses(values: list[Value], times: int) -> Value:
    """Return the value that so many accesses have; None where there are fewer."""
    if len(values) < times or not times:
        return None
    return values[0] if times == 1 else tuple(values)


def _leaf(text: str, value: Value) -> Shown:
    return Shown(text if value is None else as_text(value), value)


def _joined(parts: list[Shown]) -> Value:
    """Return the value that parts make together."""
    values = [part.value if isinstance(part.value, tuple) else (part.value,) for part in parts]
    return tuple(each for value in values for each in value)


def _converted(value: Value, source: Term, target: Term) -> Value:
    """Return a value as the casts from one term up to another make it."""
    if target is source or value is None or isinstance(value, tuple):
        return value
    value = _converted(value, source, target.parts[0])
    return cast(Scalar(np.asarray(value).dtype.name), Scalar(target.type))(value)


def _part(term: Term, whole: Shown) -> Shown:
    """Return a part of a value of several."""
    first, count = term.value
    text = f"{whole.beside(_TIGHTEST)}.{term.text}" if term.text else whole.text
    if not isinstance(whole.value, tuple) or len(whole.value) < first + count:
        return Shown(text)
    return _leaf(text, whole.value[first] if count == 1 else whole.value[first : first + count])


def _written_subscripts(index: Term, rows: tuple[int, ...], text: str) -> str:
    """Return subscripts as they are in the text, where the index still is a sum of rows and what is behind them."""
    match index:
        case Term("binary", "+", _, (Term("binary", "*", _, (row, Term("constant"))), last)) if rows:
            before = _written_subscripts(row, rows[:-1], Reading(None).of(row).text)
            return f"{before}[{Reading(None).of(last).text}]"
    return f"[{text}]"
