"""Format expressions with the values that one thread had, from the recorded accesses and variables of an event."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np

from gpu.recording.statements import Term
from gpu.simulator.ir.intrinsics import INTRINSICS
from gpu.simulator.ir.operations import UNARY, get_binary_operation, get_cast
from gpu.simulator.types import BOOL, Scalar
from gpu.stepping.explanation.thread_event import ThreadEvent, Value, format_value

_LEVELS = {op: level for level, ops in enumerate(
    ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"), 1
) for op in ops.split()}  # fmt: skip
_LOWEST, _HIGHEST = 0, 20
_BITWISE = frozenset(("&", "|", "^", "<<", ">>"))

_MIN_MASK = 1 << 16
"""Unsigned constants from here on are shown in hexadecimal, as bit masks."""


class FormattedTerm(NamedTuple):
    """A formatted expression, its value (None if unknown), and its operator precedence level.

    `factors` are those of a product that is not rounded before the sum or difference that uses it.
    """

    text: str
    value: Value = None
    level: int = _HIGHEST
    factors: tuple[Value, ...] = ()

    def format_operand(self, level: int) -> str:
        """Return the text as an operand of an operator with a precedence level."""
        return f"({self.text})" if self.level < level else self.text

    def format_right_operand(self, op: str) -> str:
        """Return the text as the right operand of an operator."""
        is_negative = self.level == _HIGHEST and self.text.startswith("-")
        return f"({self.text})" if is_negative or self._needs_parentheses(op) else self.format_operand(_LEVELS[op] + 1)

    def format_left_operand(self, op: str) -> str:
        """Return the text as the left operand of an operator."""
        return f"({self.text})" if self._needs_parentheses(op) else self.format_operand(_LEVELS[op])

    def _needs_parentheses(self, op: str) -> bool:
        """Return whether parentheses clarify the precedence of two bitwise or logical operators."""
        if op == "||":
            return self.level == _LEVELS["&&"]
        return op in _BITWISE and self.level not in (_LEVELS[op], _LOWEST, _HIGHEST)


class TermFormatter:
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

    def format_term(self, term: Term) -> FormattedTerm:
        """Format an expression, with values in place of names."""
        with np.errstate(all="ignore"):
            return self._format(term)

    def format_assigned_value(self, term: Term) -> FormattedTerm:
        """Format an assigned value before its conversion; a plain copy shows the place it is copied from."""
        with np.errstate(all="ignore"):
            return self._format_assigned_value(term)

    def format_assignment(self, term: Term) -> tuple[str, FormattedTerm, Value]:
        """Return an assignment's target, its assigned value, and the recorded value if there is one."""
        with np.errstate(all="ignore"):
            return self._format_assignment(term) if term.kind == "assign" else self._format_update(term)[:3]

    def format_initialization(self, name: str, term: Term) -> tuple[str, FormattedTerm]:
        """Format the initialization of a variable; for a reference, the place it refers to."""
        with np.errstate(all="ignore"):
            if name.startswith("&"):
                return name[1:], FormattedTerm(self._format_pointee(term))
            return name, self._format_assigned_value(term)

    def _format(self, term: Term) -> FormattedTerm:
        match term.kind:
            case "constant":
                return _format_constant(term)
            case "variable":
                return _build_leaf(term.text, self._variable_value(term.text))
            case "special":
                return _build_leaf(
                    term.text,
                    self._thread_event.find_builtin_value(term.text) if self._thread_event is not None else None,
                )
            case "load":
                return self._format_load(term, self._format_place(term.parts[0]))
            case "place":
                return FormattedTerm(self._format_place(term))
            case "call":
                return self._format_call(term)
            case "warp":
                return self._format_warp_operation(term)
            case "atomic":
                return self._format_atomic(term)
            case "assign" | "update":
                return self._format_nested_assignment(term)
            case "temporary" if term.parts:
                formatted = self._format(term.parts[0])
                self._consume_stores(term)
                return formatted
            case "member":
                return FormattedTerm(f"&{self._format_pointee(term)}")
            case "sum" if term.rows:
                where = self._format_pointee(term)
                # A row is at the address of its first element.
                return FormattedTerm(where.removesuffix("[0]") if where.endswith("[0]") else f"&{where}")
        return self._format_operation(term)

    # Assignments.

    def _format_nested_assignment(self, term: Term) -> FormattedTerm:
        """Format an assignment within an expression."""
        if term.kind == "update" and term.value:
            place, _, _, previous = self._format_update(term)
            return _build_leaf(place, previous)
        place, formatted, _ = self._format_assignment(term) if term.kind == "assign" else self._format_update(term)[:3]
        return FormattedTerm(f"{place} = {formatted.text}", formatted.value, _LOWEST)

    def _format_assignment(self, term: Term) -> tuple[str, FormattedTerm, Value]:
        target, value = term.parts
        formatted = self._format_assigned_value(value)
        return self._format_place(target), formatted, self._store(term, formatted.value)

    def _format_update(self, term: Term) -> tuple[str, FormattedTerm, Value, Value]:
        """Return the place, the operation with values, its recorded result, and the previous value."""
        (target, operand), op, new = term.parts, term.text, None
        right = self._format(operand)
        place = self._format_place(target)
        old = self._variable_value(target.text) if target.kind == "variable" else self._consume_reads(1)
        if not (old is None or right.value is None or isinstance(old, tuple)):
            own_type, computed = Scalar(np.asarray(old).dtype.name), Scalar(term.type)
            left = FormattedTerm("", get_cast(own_type, computed)(old))
            new = get_cast(computed, own_type)(_compute_binary(op, computed, left, right))
        formatted = FormattedTerm(
            f"{_build_leaf(place, old).text} {op} {right.format_right_operand(op)}", new, _LEVELS[op]
        )
        return place, formatted, self._store(term, new), old

    def _format_assigned_value(self, term: Term) -> FormattedTerm:
        inner = term
        while inner.kind == "cast":
            (inner,) = inner.parts
        if inner.kind == "load":
            place = self._format_place(inner.parts[0])
            formatted = FormattedTerm(place, self._format_load(inner, place).value)
        else:
            formatted = self._format(inner)
        return FormattedTerm(formatted.text, _apply_casts(formatted.value, inner, term), formatted.level)

    def _store(self, term: Term, value: Value) -> Value:
        """Assign a value to a place, and return the recorded value."""
        target = term.parts[0]
        if target.kind != "variable":
            return self._consume_stores(term)
        self._changed[target.text] = value
        return self._thread_event.find_written_value(target.text) if self._thread_event is not None else None

    def _consume_stores(self, term: Term) -> Value:
        """Consume the next stores; return None if not all were recorded."""
        times = 1 if term.kind == "update" else term.value
        stores, self._writes = self._writes[:times], self._writes[times:]
        return _combine_accesses([store.after for store in stores], times)

    # Places.

    def _format_place(self, term: Term) -> str:
        """Format a place, with values for its indices."""
        if term.kind != "place":
            return term.text
        pointer, *index = term.parts
        if index:
            return self._format_base(pointer) + self._format_subscripts(index[0], term.rows)
        inner = self._format_pointee(pointer)
        return f"*{inner}" if term.text == "*" and pointer.kind not in ("sum", "member") else inner

    def _format_base(self, pointer: Term) -> str:
        return f"({self._format(pointer).text})" if pointer.kind == "sum" else self._format_pointee(pointer)

    def _format_pointee(self, pointer: Term) -> str:
        """Return the name of the place that a pointer points to."""
        match pointer.kind:
            case "member":
                owner = self._format_pointee(pointer.parts[0])
                return pointer.text if owner in ("this", "") else f"{owner}.{pointer.text}".removesuffix(".")
            case "sum":
                return self._format_base(pointer.parts[0]) + self._format_subscripts(pointer.parts[1], pointer.rows)
            case "variable" | "global":
                return pointer.text
            case "load":
                place = self._format_place(pointer.parts[0])
                self._format_load(pointer, place)
                return place
        return self._format(pointer).text

    def _format_subscripts(self, index: Term, rows: tuple[int, ...]) -> str:
        """Return an index in brackets, one pair per dimension of the array."""
        formatted = self._format(index)
        if formatted.value is None:
            return _format_source_subscripts(index, rows, formatted.text)
        rest, subscripts = int(formatted.value), ""
        for length in reversed(rows):
            rest, last = divmod(rest, max(length, 1))
            subscripts = f"[{last}]{subscripts}"
        return f"[{rest}]{subscripts}"

    def _format_load(self, term: Term, place: str) -> FormattedTerm:
        value = self._consume_reads(term.value)
        return FormattedTerm(place, value) if term.value > 1 else _build_leaf(place, value)

    def _consume_reads(self, times: int) -> Value:
        """Consume the next reads; return None if not all were recorded."""
        reads, self._reads = self._reads[:times], self._reads[times:]
        return _combine_accesses([each.value for each in reads if each.action == "read"], times)

    def _variable_value(self, name: str) -> Value:
        if name in self._changed or self._thread_event is None:
            return self._changed.get(name)
        return self._thread_event.before.get(name)

    # Operators.

    def _format_operation(self, term: Term) -> FormattedTerm:
        """Format an operation on values."""
        match term.kind:
            case "binary" | "sum" | "difference":
                return self._format_binary(term)
            case "logical":
                return self._format_logical(term)
            case "choice":
                return self._format_choice(term)
            case "cast":
                return self._format_cast(term)
        op, formatted = term.text, [self._format(part) for part in term.parts]
        text = f"{op}({', '.join(each.text for each in formatted)})"
        has_values = not any(each.value is None for each in formatted)
        match term.kind:
            case "unary":
                return FormattedTerm(
                    f"{op}{formatted[0].format_operand(_HIGHEST)}",
                    UNARY[op].get_function(Scalar(term.type))(formatted[0].value) if has_values else None,
                )
            case "comma":
                return FormattedTerm(f"{formatted[0].text}, {formatted[1].text}", formatted[1].value, _LOWEST)
            case "function":
                return FormattedTerm(
                    text, _compute_function(op, term.type, [each.value for each in formatted]) if has_values else None
                )
            case "construct":
                return FormattedTerm(f"{{{text[1:-1]}}}", _join_vector(formatted) if has_values else None)
            case "part":
                return _format_vector_part(term, formatted[0])
        return FormattedTerm(op)

    def _format_binary(self, term: Term) -> FormattedTerm:
        op = term.text
        left, right = (self._format(part) for part in term.parts)
        has_values = term.kind == "binary" and left.value is not None and right.value is not None
        value = _compute_binary(op, Scalar(term.type), left, right) if has_values else None
        text = f"{left.format_left_operand(op)} {op} {right.format_right_operand(op)}"
        factors = (left.value, right.value) if term.value and has_values else ()
        return FormattedTerm(text, value, _LEVELS[op], factors)

    def _format_logical(self, term: Term) -> FormattedTerm:
        op = term.text
        left = self._format(term.parts[0])
        if left.value is not None and bool(left.value) == (op == "||"):
            return left
        right = self._format(term.parts[1])
        value = None if left.value is None else right.value
        return FormattedTerm(f"{left.format_left_operand(op)} {op} {right.format_left_operand(op)}", value, _LEVELS[op])

    def _format_choice(self, term: Term) -> FormattedTerm:
        condition, chosen, other = term.parts
        selector = self._format(condition)
        if selector.value is not None:
            return self._format(chosen if selector.value else other)
        return FormattedTerm(
            f"{selector.format_operand(1)} ? {self._format(chosen).text} : {self._format(other).text}", None, _LOWEST
        )

    def _format_cast(self, term: Term) -> FormattedTerm:
        """Format a conversion; show the converted value if it differs."""
        (inner,) = term.parts
        formatted = self._format(inner)
        value = _apply_casts(formatted.value, inner, term)
        is_truth = term.type == BOOL.name or isinstance(formatted.value, np.bool_)
        if value is None or is_truth or format_value(value) == format_value(formatted.value):
            return FormattedTerm(formatted.text, value, formatted.level)
        return FormattedTerm(format_value(value), value)

    # Calls.

    def _format_call(self, term: Term) -> FormattedTerm:
        name, arguments = term.text, [self._format_argument(part) for part in term.parts]
        while "@" in name:
            name = name.replace("@", arguments.pop(0), 1)
        return FormattedTerm(f"{name.removeprefix('this.')}({', '.join(arguments)})")

    def _format_argument(self, term: Term) -> str:
        """Format a function's argument; an address is shown as the place it points to."""
        if term.kind == "sum" and not term.rows:
            return f"&{self._format_pointee(term)}"
        return self._format_pointee(term) if term.kind == "member" else self._format(term).text

    def _format_atomic(self, term: Term) -> FormattedTerm:
        place, *arguments = term.parts
        address = f"&{self._format_place(place)}" if place.text == "[]" else self._format(place.parts[0]).text
        formatted = [self._format(argument).text for argument in arguments]
        atomic_access = next((access for access in self._reads if access.action == "atomic"), None)
        if atomic_access is not None:
            self._reads.remove(atomic_access)
        return FormattedTerm(
            f"{term.text}({', '.join([address, *formatted])})", None if atomic_access is None else atomic_access.value
        )

    def _format_warp_operation(self, term: Term) -> FormattedTerm:
        formatted = [self._format(part) for part in term.parts]
        text = f"{term.text}({', '.join(each.text for each in formatted)})"
        source_lane = self._find_source_lane(term.text, [each.value for each in formatted[2:]])
        if self._thread_event is None or source_lane is None:
            return FormattedTerm(text)
        source_event = self._thread_event.find_lane_event(source_lane)
        return _build_leaf(
            text, TermFormatter(source_event).format_term(term.parts[1]).value if source_event is not None else None
        )

    def _find_source_lane(self, name: str, others: list[Value]) -> int | None:
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


def format_source(term: Term, value: str = "") -> str:
    """Return an expression as in the source; `value` overrides the text of an assigned value."""
    match term:
        case Term("assign" | "update", op, _, (place, assigned_term)):
            written = value or TermFormatter(None).format_term(assigned_term).text
            return f"{TermFormatter(None).format_term(place).text} {op.removesuffix('=')}= {written}"
        case Term("comma", _, _, (first, second)):
            return f"{format_source(first)}, {format_source(second)}"
    return TermFormatter(None).format_term(term).text


def _format_constant(term: Term) -> FormattedTerm:
    value = Scalar(term.type).dtype.type(term.value)
    is_mask = value.dtype.kind == "u" and value >= _MIN_MASK
    return FormattedTerm(hex(value) if is_mask else format_value(value), value)


def _combine_accesses(values: list[Value], times: int) -> Value:
    """Return the value of a number of accesses; None if there are fewer."""
    if len(values) < times or not times:
        return None
    return values[0] if times == 1 else tuple(values)


def _build_leaf(text: str, value: Value) -> FormattedTerm:
    return FormattedTerm(text if value is None else format_value(value), value)


def _join_vector(parts: list[FormattedTerm]) -> Value:
    values = [part.value if isinstance(part.value, tuple) else (part.value,) for part in parts]
    return tuple(each for value in values for each in value)


def _apply_casts(value: Value, source: Term, target: Term) -> Value:
    """Apply the casts between two terms to a value."""
    if target is source or value is None or isinstance(value, tuple):
        return value
    value = _apply_casts(value, source, target.parts[0])
    return get_cast(Scalar(np.asarray(value).dtype.name), Scalar(target.type))(value)


def _compute_binary(op: str, type: Scalar, left: FormattedTerm, right: FormattedTerm) -> Value:
    """Return the result of a binary operator, rounded once if an operand is a product that is not rounded."""
    rounded: Value = get_binary_operation(op, type)(left.value, right.value)
    if not (left.factors or right.factors) or not np.isfinite(rounded):
        return rounded
    # Fractions, as the window would have to load a compiler for the executor's function.
    first, second = (prod(map(Fraction, map(float, each.factors or (each.value,)))) for each in (left, right))
    exact = first - second if op == "-" else first + second
    return type.dtype.type(float(exact)) if exact else rounded  # zeros have signs


def _compute_function(name: str, type: str, values: list[Value]) -> Value:
    """Return the result of an intrinsic, converted to a type."""
    function = INTRINSICS[name].get_function(Scalar(np.asarray(values[0]).dtype.name))
    result: Value = function(*values).astype(type)
    return result


def _format_vector_part(term: Term, vector: FormattedTerm) -> FormattedTerm:
    """Format a part of a vector value."""
    first, count = term.value
    text = f"{vector.format_operand(_HIGHEST)}.{term.text}" if term.text else vector.text
    if not isinstance(vector.value, tuple) or len(vector.value) < first + count:
        return FormattedTerm(text)
    return _build_leaf(text, vector.value[first] if count == 1 else vector.value[first : first + count])


def _format_source_subscripts(index: Term, rows: tuple[int, ...], text: str) -> str:
    """Return subscripts as in the source, if the index is still a row times its length plus an offset."""
    match index:
        case Term("binary", "+", _, (Term("binary", "*", _, (row, Term("constant"))), last)) if rows:
            leading = _format_source_subscripts(row, rows[:-1], TermFormatter(None).format_term(row).text)
            return f"{leading}[{TermFormatter(None).format_term(last).text}]"
    return f"[{text}]"
