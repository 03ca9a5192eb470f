"""Constants that a variable outside of functions is initialized with, also by constructors that only store them."""

from __future__ import annotations

from collections.abc import Mapping

from gpu.base.errors import CompileError
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, get_reported_position
from gpu.simulator.frontend.lowering.conversions import convert
from gpu.simulator.types import Scalar, leaves

_Constants = dict[int, ir.Const]
"""Constants by their offsets in bytes."""


def find_constants(value: ir.Expression, cursor: Cursor) -> list[tuple[int, ir.Const]]:
    """Return the constants that a value consists of, with their offsets in bytes.

    Parameters
    ----------
    cursor : Cursor
        The initializer in the source, for errors.

    Raises
    ------
    CompileError
        The value is not constant.
    """
    return list(_evaluate(value, {}, cursor).items())


def _evaluate(value: ir.Expression, arguments: Mapping[int, ir.Const], cursor: Cursor) -> _Constants:
    """Return the constants of a value; `arguments` are those of the constructor that computes it, by slot."""
    match value:
        case ir.Const():
            return {0: value}
        case ir.Null():
            return {}  # the bytes of a null pointer are zeros, as those of a variable without an initializer
        case ir.Local(_, slot) if slot in arguments:
            return {0: arguments[slot]}
        case ir.Cast(Scalar() as type, operand):
            return {0: _convert(_evaluate(operand, arguments, cursor)[0], type, cursor)}
        case ir.Construct(type, parts):
            flat = [part for inner in parts for part in _evaluate(inner, arguments, cursor).values()]
            return {
                offset: _convert(part, leaf, cursor)
                for (offset, leaf), part in zip(leaves(type), flat, strict=True)
                if isinstance(leaf, Scalar)
            }
        case ir.Sequence(_, ir.Sequence(_, ir.Assign(_, ir.Local(), ir.Temporary()), ir.Call() as call), ir.Load()):
            return _run_constructor(call, arguments, cursor)
    raise _not_constant_error(cursor)


def _run_constructor(call: ir.Call, arguments: Mapping[int, ir.Const], cursor: Cursor) -> _Constants:
    """Return what a constructor stores in its object."""
    own = {slot: _evaluate(argument, arguments, cursor)[0] for slot, argument in enumerate(call.arguments[1:], 1)}
    stored: _Constants = {}
    assert isinstance(call.function.body, ir.Block)
    for statement in call.function.body.statements:
        match statement:
            case ir.Evaluate(ir.Assign(_, ir.Element(_, pointer, None), value)):
                start = _find_offset(pointer, cursor)
                stored |= {start + offset: part for offset, part in _evaluate(value, own, cursor).items()}
            case ir.Evaluate(ir.Call(_, _, (pointer, *_)) as inner):
                start = _find_offset(pointer, cursor)
                stored |= {start + offset: part for offset, part in _run_constructor(inner, own, cursor).items()}
            case _:
                raise _not_constant_error(cursor)
    return stored


def _find_offset(pointer: ir.Expression, cursor: Cursor) -> int:
    """Return the offset of a pointer from the object of a constructor."""
    match pointer:
        case ir.Local(_, 0):
            return 0
        case ir.Member(_, inner, offset):
            return offset + _find_offset(inner, cursor)
    raise _not_constant_error(cursor)


def _convert(constant: ir.Const, type: Scalar, cursor: Cursor) -> ir.Const:
    converted = convert(constant, type, cursor)
    if not isinstance(converted, ir.Const):
        raise _not_constant_error(cursor)
    return converted


def _not_constant_error(cursor: Cursor) -> CompileError:
    position = get_reported_position(cursor)
    return CompileError(
        f"{position}: a variable in device memory can only be initialized with constants.", position=position
    )
