"""Calls of CUDA's built-in functions: atomic operations, barriers, exchanges within warps, printf."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position, read_string_literal
from gpu.simulator.frontend.lowering.conversions import build_constant
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.ir.intrinsics import ATOMICS, BLOCK_VOTES, FENCES, INTRINSICS, WARP_OPERATIONS
from gpu.simulator.types import BOOL, INT32, VOID, Pointer, Scalar, Type

_TEXTURES = (
    "this kind of texture",
    "Use a texture with one or two dimensions, read by element, or a pointer to global memory: a[y * width + x].",
)

# Functions that the shim declares only to refuse them by name: the construct, and the alternative.
_REFUSED = {
    "__lockstep_texture": _TEXTURES,
}

_ATOMIC_SCOPES: dict[str, ir.Scope] = {"": "device", "block": "block", "system": "system"}
"""The scopes of atomic functions by the suffix of their names."""

_ORDERED = "__lockstep_"
"""The prefix of strong accesses whose last argument is a memory order, as in `__lockstep_atomicAdd_block`."""


def lower_builtin_call(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower a call of one of CUDA's functions."""
    name, arguments = cursor.spelling, cursor.arguments
    type = lower.type_of(cursor)
    base, _, scope = name.removeprefix(_ORDERED).partition("_")
    if name.startswith(_ORDERED) and base in ("load", "store"):
        return _access_in_order(lower, cursor, arguments, _ATOMIC_SCOPES[scope])
    if name == "__ldg":
        place = _lower_element(lower, cursor, arguments[0])
        return ir.Load(place.type, replace(place, is_read_only=True))
    if base in ATOMICS and scope in _ATOMIC_SCOPES:
        return _atomic(lower, cursor, arguments, ATOMICS[base], _ATOMIC_SCOPES[scope])
    if name.startswith("__builtin_") and isinstance(type, Scalar) and (number := cursor.constant) is not None:
        return build_constant(type, number)
    if name in ("__builtin_unreachable", "__builtin_assume"):  # a promise to the compiler
        return build_constant(INT32, 0)
    if name == "__lockstep_wait_for_children":
        return ir.WaitForChildren(VOID, get_reported_position(cursor))
    if name == "__lockstep_warps_in_turn":
        lower.scope.function.has_phases = True
        return build_constant(INT32, 0)
    if name == "__lockstep_grid_sync":
        lower.scope.function.syncs_grid = True
        return ir.GridBarrier(VOID, get_reported_position(cursor))
    if name in ("__lockstep_cluster_arrive", "__lockstep_cluster_wait"):
        return build_cluster_barrier(
            lower, "wait" if name.endswith("wait") else "arrive", get_reported_position(cursor)
        )
    if name == "__lockstep_cluster_map":
        assert isinstance(type, Pointer)
        pointer, rank = (lower.value(each) for each in arguments)
        return ir.ClusterAddress(type, pointer, rank, get_reported_position(cursor))
    if name in ("clock", "clock64", "__lockstep_handle"):
        assert isinstance(type, Scalar)
        return ir.Clock(type, is_handle=name == "__lockstep_handle")
    if name.startswith(("__lockstep_texel", "__lockstep_surfel")):
        return _lower_texel(lower, cursor, arguments)
    if name in ("__lockstep_allocated", "__lockstep_freed"):
        pointer, *size = (lower.value(each) for each in arguments)
        return ir.HeapChange(VOID, pointer, size[0] if size else None, get_reported_position(cursor))
    if name == "__cvta_generic_to_shared":
        assert isinstance(type, Scalar)
        return ir.SharedAddress(type, lower.value(arguments[0]), get_reported_position(cursor))
    if name == "__cvta_shared_to_generic":
        assert isinstance(type, Pointer)
        return ir.SharedAddress(type, lower.value(arguments[0]), get_reported_position(cursor))
    if name.startswith("__lockstep_phase_"):
        pointer, argument = (lower.value(each) for each in arguments)
        return build_phase_operation(
            lower, name.removeprefix("__lockstep_phase_"), pointer, argument, get_reported_position(cursor)
        )
    if name == "__lockstep_bulk_copy":
        destination, source, count, *barrier = (lower.value(each) for each in arguments if is_explicit(each))
        lower.scope.function.has_phases |= bool(barrier)
        return ir.BulkCopy(
            VOID, destination, source, count, barrier[0] if barrier else None, get_reported_position(cursor)
        )
    if name == "__lockstep_tensor_copy":
        lower.scope.function.has_phases = True
        destination, matrix, *numbers, signaled = (lower.value(each) for each in arguments)
        return ir.TensorCopy(VOID, destination, matrix, tuple(numbers), signaled, get_reported_position(cursor))
    if name == "__lockstep_async_copy":
        destination, source, count, *source_bytes = (lower.value(each) for each in arguments if is_explicit(each))
        return ir.AsyncCopy(
            VOID, destination, source, count, source_bytes[0] if source_bytes else None, get_reported_position(cursor)
        )
    if name == "__lockstep_async_commit":
        return ir.AsyncCommit(VOID)
    if name == "__lockstep_async_wait":
        pending = [lower.value(each) for each in arguments if is_explicit(each)]
        return ir.AsyncWait(VOID, pending[0] if pending else None)
    if name in FENCES:
        lanes = [lower.value(each) for each in arguments if is_explicit(each)]
        return ir.Fence(VOID, name, get_reported_position(cursor), *lanes)
    if name == "__syncthreads":  # within an expression: a vote without a result
        return ir.Warp(INT32, "__syncthreads_or", (build_constant(INT32, 0),), get_reported_position(cursor))
    if name in WARP_OPERATIONS or name in BLOCK_VOTES:
        values = tuple(lower.value(argument) for argument in arguments if is_explicit(argument))
        assert isinstance(type, Scalar)
        return ir.Warp(type, name, values, get_reported_position(cursor))
    if name == "printf":
        text = read_string_literal(arguments[0])
        if text is None:
            raise build_unsupported_error(
                cursor, "a printf without a literal format", advice="Write the format as a string literal."
            )
        return ir.Print(INT32, text, tuple(_lower_print_argument(lower, argument) for argument in arguments[1:]))
    if name == "__lockstep_assert":
        text = read_string_literal(arguments[1]) or ""
        return ir.Assertion(VOID, lower.condition(arguments[0]), text, get_reported_position(cursor))
    if name in INTRINSICS and isinstance(type, Scalar):
        return ir.Intrinsic(type, name, tuple(lower.value(argument) for argument in arguments))
    if name in _REFUSED:
        construct, instead = _REFUSED[name]
        raise build_unsupported_error(cursor, construct, advice=instead)
    raise build_unsupported_error(
        cursor,
        f"a call of {name or 'this'}, which is not defined here",
        advice="Define it in this file or in one that it includes.",
    )


def build_cluster_barrier(lower: Lowering, part: Literal["arrive", "wait"], position: SourcePosition) -> ir.Expression:
    """Return an arrival at the cluster's barrier, or the wait at it."""
    lower.scope.function.syncs_cluster = True
    return ir.ClusterBarrier(VOID, part, position)


def build_phase_operation(
    lower: Lowering, op: str, pointer: ir.Expression, argument: ir.Expression, position: SourcePosition
) -> ir.Expression:
    """Return an operation on a barrier object, and mark the function as one that uses them.

    Parameters
    ----------
    lower : Lowering
        The lowering of expressions in the function.
    op : str
        The operation, as of `gpu.simulator.ir.BarrierPhase`.
    pointer : ir.Expression
        The address of the barrier object.
    argument : ir.Expression
        The operation's argument, such as the number of arrivals.
    position : SourcePosition
        The position of the operation.
    """
    lower.scope.function.has_phases = True
    type: Type = BOOL if op == "test" else Scalar("uint64") if op in ("arrive", "drop") else VOID
    return ir.BarrierPhase(type, op, pointer, argument, position)


def _lower_texel(lower: Lowering, cursor: Cursor, arguments: tuple[Cursor, ...]) -> ir.Expression:
    """Lower the parts of a fetch from a texture, or of an access to a surface, by coordinates."""
    name, position = cursor.spelling, get_reported_position(cursor)
    type = lower.type_of(cursor)
    assert isinstance(type, Scalar)
    texture, *lowered = (lower.value(argument) for argument in arguments)
    if name == "__lockstep_texels_are_filtered":
        return ir.TexelWeight(type, texture, 0, None, position)
    number, *places = lowered
    if not isinstance(number, ir.Const):
        raise build_unsupported_error(cursor, "a texture with elements of unknown size")
    if name == "__lockstep_texel_weight":
        return ir.TexelWeight(type, texture, int(number.value), places[0], position)
    if name == "__lockstep_surfel":
        boundary, *places = places
        assert isinstance(boundary, ir.Const)
        return ir.Texel(type, texture, tuple(places), int(number.value), position, boundary=int(boundary.value))
    corner: tuple[int, ...] = ()
    if name == "__lockstep_texel_beside":
        dimensions = len(places) // 2
        corner = tuple(int(place.value) for place in places[:dimensions] if isinstance(place, ir.Const))
        places = places[dimensions:]
    return ir.Texel(type, texture, tuple(places), int(number.value), position, corner)


def _lower_print_argument(lower: Lowering, argument: Cursor) -> ir.Expression | str:
    text = read_string_literal(argument)
    if text is not None:
        return text
    value = lower.value(argument)
    if not isinstance(value.type, Scalar | Pointer):
        raise build_unsupported_error(
            argument, f"{value.type} as an argument of printf", advice="Print its members, one by one."
        )
    return value


def _atomic(lower: Lowering, cursor: Cursor, arguments: tuple[Cursor, ...], op: str, scope: ir.Scope) -> ir.Expression:
    place = _lower_element(lower, cursor, arguments[0])
    element = place.type
    if not isinstance(element, Scalar):
        raise build_unsupported_error(cursor, f"{cursor.spelling} on this address")
    *operands, last = arguments[1:]
    if cursor.spelling.startswith(_ORDERED):
        values = tuple(lower.convert(argument, element) for argument in operands)
        return ir.Atomic(element, op, place, values, scope=scope, order=lower.value(last))
    values = tuple(lower.convert(argument, element) for argument in arguments[1:])
    return ir.Atomic(element, op, place, values, scope=scope)


def _lower_element(lower: Lowering, cursor: Cursor, address: Cursor) -> ir.Element:
    """Lower the element that a pointer argument points to."""
    pointer = lower.value(address)
    if not isinstance(pointer.type, Pointer):
        raise build_unsupported_error(cursor, f"{cursor.spelling} on this address")
    place = ir.Element(pointer.type.element, pointer, None, get_reported_position(cursor))
    if isinstance(pointer, ir.Offset):
        place = replace(place, pointer=pointer.pointer, index=pointer.index, rows=pointer.rows)
    return place


def _access_in_order(lower: Lowering, cursor: Cursor, arguments: tuple[Cursor, ...], scope: ir.Scope) -> ir.Expression:
    """Lower a strong load or store with a memory order."""
    pointer, order = lower.value(arguments[0]), lower.value(arguments[-1])
    assert isinstance(pointer.type, Pointer)
    element = pointer.type.element
    place = ir.Element(element, pointer, None, get_reported_position(cursor), volatile=True, order=order, scope=scope)
    if len(arguments) == 2:
        return ir.Load(element, place)
    return ir.Assign(element, place, lower.convert(arguments[1], element))


def is_explicit(argument: Cursor) -> bool:
    """Return whether an argument is in the source; clang represents a default by an empty expression."""
    return argument.kind != CursorKind.UNEXPOSED_EXPR or bool(argument.children)
