"""Lower operators: arithmetic, also on pointers, assignments, and `c ? a : b`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position, is_own
from gpu.simulator.frontend.expressions import calls
from gpu.simulator.frontend.expressions.names import find_bit_field
from gpu.simulator.frontend.lowering.addresses import is_assignment
from gpu.simulator.frontend.lowering.bit_fields import insert_bits, read_bits
from gpu.simulator.frontend.lowering.constant_folding import fold_constants
from gpu.simulator.frontend.lowering.conversions import (
    address_of,
    build_constant,
    convert,
    dereference,
    negate_index,
    only_child,
    promote,
    read,
    scale_to_elements,
)
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error, is_function_type, value_type
from gpu.simulator.ir.contraction import contract_operands, contract_product
from gpu.simulator.types import BOOL, INT64, VOID, BitField, Pointer, Scalar, Type, decay

_POINTER_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")


def lower_binary(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower an operator with two operands, an assignment, or a comma, which may be a rewritten launch."""
    left, right = cursor.children
    operator = cursor.operator
    if operator == "=":
        bits = find_bit_field(lower, left)
        if bits is not None:
            return assign_bits(lower, bits, lower.convert(right, bits[0].type))
        return _lower_assignment(lower, cursor, _required_place(lower, left))
    if operator == ",":
        launch = calls.lower_launch(lower, left, right)
        if launch is not None:
            return launch
        first = lower.lower_discarded(left)
        second = lower.value(right)
        return ir.Sequence(second.type, first, second)
    if operator in ("&&", "||"):
        return fold_constants(ir.Logical(BOOL, operator, lower.condition(left), lower.condition(right)))  # type: ignore[arg-type]
    first, second = lower.value(left), lower.value(right)
    if isinstance(first.type, Pointer) or isinstance(second.type, Pointer):
        return _lower_pointer_arithmetic(lower, cursor, operator, first, second)
    type = lower.type_of(cursor)
    if not isinstance(type, Scalar):
        raise build_unsupported_error(cursor, f"the operator {operator} here")
    operands = contract_operands(operator, first, second)
    position = _find_undefined_position(cursor, operator, first.type, second)
    return fold_constants(ir.Binary(type, operator, *operands, position=position))


def _find_undefined_position(cursor: Cursor, operator: str, type: Type, right: ir.Expression) -> SourcePosition | None:
    """Return the position of an integer operator in the user's code that is undefined for some values, else None."""
    if operator not in ("/", "%", "<<", ">>") or not isinstance(type, Scalar) or type.is_float or not is_own(cursor):
        return None
    if isinstance(right, ir.Const):
        is_shift = operator in ("<<", ">>")
        amount = int(right.value)
        if 0 <= amount < 8 * type.size if is_shift else amount not in (0, -1):
            return None
    return get_reported_position(cursor)


def _lower_pointer_arithmetic(
    lower: Lowering, cursor: Cursor, operator: str, first: ir.Expression, second: ir.Expression
) -> ir.Expression:
    if operator in _POINTER_COMPARISONS:
        return ir.Binary(BOOL, operator, convert(first, INT64, cursor), convert(second, INT64, cursor))
    if operator in ("+", "-") and isinstance(first.type, Pointer) and isinstance(second.type, Scalar):
        index = second if operator == "+" else negate_index(second)
        return ir.Offset(first.type, first, scale_to_elements(index, lower.type_of(cursor)))
    if operator == "+" and isinstance(second.type, Pointer):
        return ir.Offset(second.type, second, first)
    if operator == "-":
        return ir.Distance(INT64, first, second)
    raise build_unsupported_error(cursor, f"the operator {operator} on pointers")


def lower_compound_assignment(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower a compound assignment such as `+=` to its value."""
    left, right = cursor.children
    bits = find_bit_field(lower, left)
    if bits is None:
        return _lower_assignment(lower, cursor, _required_place(lower, left))
    return _update_bits(lower, bits, cursor.operator[:-1], lower.value(right))


def lower_unary(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower an operator with one operand, including `++` and `--`."""
    operand = only_child(cursor)
    operator = cursor.operator
    if operator in ("x++", "++x", "x--", "--x"):
        bits = find_bit_field(lower, operand)
        if bits is not None:
            one = build_constant(promote(bits[0].type), 1)
            return _update_bits(lower, bits, "+" if "+" in operator else "-", one, returns_old=operator[0] == "x")
        return _lower_increment(_required_place(lower, operand), operator)
    if operator in ("*", "&") and is_function_type(cursor.type):
        return lower.value(operand)
    if operator == "*":
        return read(dereference(lower.value(operand), cursor))
    if operator == "&":
        place = _required_place(lower, operand)
        if isinstance(place, ir.Local):
            raise build_unsupported_error(cursor, f"the address of {place.name}")
        return address_of(place)
    if operator in ("+", "__extension__"):
        return lower.value(operand)
    type = lower.type_of(cursor)
    if operator not in ("-", "~", "!") or not isinstance(type, Scalar):
        raise build_unsupported_error(cursor, f"the operator {operator} here")
    return fold_constants(
        ir.Unary(type, operator, lower.condition(operand) if operator == "!" else lower.value(operand))
    )


def _lower_increment(place: ir.Place, operator: str) -> ir.Expression:
    up, returns_old = "+" in operator, operator.startswith("x")
    if isinstance(place.type, Pointer):
        step = ir.Const(INT64, np.int64(1 if up else -1))
        return ir.Update(place.type, place, "+", step, place.type, returns_old)
    compute = promote(place.type)
    return ir.Update(place.type, place, "+" if up else "-", build_constant(compute, 1), compute, returns_old)


def _lower_assignment(lower: Lowering, cursor: Cursor, place: ir.Place) -> ir.Expression:
    """Lower `=`, a compound assignment, `++x` or `--x` to a place that is already lowered."""
    if cursor.kind == CursorKind.UNARY_OPERATOR:
        return _lower_increment(place, cursor.operator)
    _, right = cursor.children
    if cursor.kind == CursorKind.BINARY_OPERATOR:
        return ir.Assign(place.type, place, lower.convert(right, place.type))
    operator = cursor.operator[:-1]
    value = lower.value(right)
    if isinstance(place.type, Pointer):
        step = value if operator == "+" else negate_index(value)
        return ir.Update(place.type, place, "+", step, place.type)
    # Clang has converted the right side to the type of the computation, except for shifts.
    shift = operator in ("<<", ">>")
    compute = promote(place.type) if shift else value.type
    assert isinstance(compute, Scalar)
    position = _find_undefined_position(cursor, operator, compute, value)
    return ir.Update(place.type, place, operator, contract_product(operator, value), compute, position=position)


def assign_bits(lower: Lowering, bits: tuple[BitField, ir.Element], value: ir.Expression) -> ir.Expression:
    """Lower an assignment to a bit field, which reads and writes its storage unit."""
    field, _ = bits
    new = ir.Local(field.type, lower.scope.new_slot(), field.name)
    return _write_bits(lower, bits, [ir.Assign(new.type, new, value)], lambda unit: new)


def _update_bits(
    lower: Lowering,
    bits: tuple[BitField, ir.Element],
    operator: str,
    operand: ir.Expression,
    *,
    returns_old: bool = False,
) -> ir.Expression:
    """Lower a compound assignment to a bit field, or an increment; the operand has the type of the computation."""
    field, _ = bits
    compute = promote(field.type) if operator in ("<<", ">>") else operand.type
    assert isinstance(compute, Scalar)
    right = ir.Local(operand.type, lower.scope.new_slot(), field.name)

    def compute_value(unit: ir.Expression) -> ir.Expression:
        old = convert(read_bits(field, unit), compute, None)
        return convert(ir.Binary(compute, operator, old, right), field.type, None)

    first = [ir.Assign(right.type, right, operand)]
    return _write_bits(lower, bits, first, compute_value, returns_old=returns_old)


def _write_bits(
    lower: Lowering,
    bits: tuple[BitField, ir.Element],
    first: Sequence[ir.Expression],
    compute_value: Callable[[ir.Expression], ir.Expression],
    *,
    returns_old: bool = False,
) -> ir.Expression:
    """Return an expression that writes a bit field; its value is the field's new or old value.

    Parameters
    ----------
    lower : Lowering
        The lowering of expressions in the function.
    bits : (BitField, Element)
        The bit field and its storage unit.
    first : sequence of Expression
        What is evaluated before the unit is read.
    compute_value : callable
        Returns the new value, from the old one of the unit.
    returns_old : bool
        Whether the expression's value is the old value.
    """
    field, place = bits
    pointer = ir.Local(Pointer(field.unit), lower.scope.new_slot(), "unit")
    old, new = (ir.Local(field.unit, lower.scope.new_slot(), "bits") for _ in range(2))
    target = replace(place, pointer=pointer)
    effects = [
        *first,
        ir.Assign(pointer.type, pointer, address_of(place)),
        ir.Assign(old.type, old, ir.Load(old.type, target)),
        ir.Assign(new.type, new, insert_bits(field, old, compute_value(old))),
        ir.Assign(new.type, target, new),
    ]
    result = read_bits(field, old if returns_old else new)
    for effect in reversed(effects):
        result = ir.Sequence(result.type, effect, result)
    return result


def _required_place(lower: Lowering, cursor: Cursor) -> ir.Place:
    place = lower.place(cursor)
    if place is None:
        raise build_unsupported_error(
            cursor,
            f"an assignment to this ({cursor.kind.name.lower().replace('_', ' ')})",
            advice="Assign to a variable or an element, with one assignment per statement.",
        )
    return place


def place_of_operation(lower: Lowering, cursor: Cursor) -> ir.Place | None:
    """Lower `*p`, or an assignment that is itself a place; None for an operation that is only a value."""
    if cursor.kind == CursorKind.UNARY_OPERATOR and cursor.operator == "*":
        return dereference(lower.value(only_child(cursor)), cursor)
    return _place_of_assignment(lower, cursor) if is_assignment(cursor) else None


def _place_of_assignment(lower: Lowering, cursor: Cursor) -> ir.Place:
    """Lower an assignment as the target of another, as in `(a += 2) *= 3`; compute the place once."""
    place = _required_place(lower, cursor.children[0])
    if isinstance(place, ir.Local):
        raise build_unsupported_error(
            cursor, "an assignment to this assignment", advice="Write one assignment per statement."
        )
    pointer = ir.Local(Pointer(decay(place.type)), lower.scope.new_slot(), "assigned")
    target = ir.Element(place.type, pointer, None, place.position, place.volatile)
    store_pointer = ir.Assign(pointer.type, pointer, address_of(place))
    assignment = ir.Sequence(VOID, store_pointer, _lower_assignment(lower, cursor, target))
    return ir.Element(place.type, ir.Sequence(pointer.type, assignment, pointer), None, place.position, place.volatile)


def lower_conditional(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower `c ? a : b` to its value."""
    condition, chosen, other = cursor.children
    type = value_type(lower.type_of(cursor))
    return fold_constants(
        ir.Select(type, lower.condition(condition), lower.convert(chosen, type), lower.convert(other, type))
    )


def place_of_choice(lower: Lowering, cursor: Cursor) -> ir.Place | None:
    """Lower `c ? a : b` to a place if both sides are places in memory."""
    condition, *sides = cursor.children
    places = [lower.place(side) for side in sides]
    chosen, other = places
    if not isinstance(chosen, ir.Element) or not isinstance(other, ir.Element) or chosen.type != other.type:
        return None
    type = Pointer(decay(chosen.type))
    pointer = ir.Select(type, lower.condition(condition), address_of(chosen), address_of(other))
    return ir.Element(chosen.type, pointer, None, get_reported_position(cursor), chosen.volatile or other.volatile)
