"""Calls of CUDA's built-in functions: atomic operations, barriers, exchanges within warps, printf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position, read_string_literal
from gpu.simulator.frontend.lowering.conversions import build_constant
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.ir.intrinsics import ATOMICS, BLOCK_VOTES, FENCES, INTRINSICS, WARP_OPERATIONS
from gpu.simulator.types import BOOL, INT32, VOID, Pointer, Scalar, Type

_ATOMIC_SCOPES: dict[str, ir.Scope] = {"": "device", "block": "block", "system": "system"}
"""The scopes of atomic functions by the suffix of their names."""

_ORDERED = "__lockstep_"
"""The prefix of strong accesses whose last argument is a memory order, as in `__lockstep_atomicAdd_block`."""

_PHASE = "__lockstep_phase_"
"""The prefix of operations on barrier objects."""


@dataclass(frozen=True)
class _Call:
    """A call of a built-in function, and the type of its result."""

    lower: Lowering
    cursor: Cursor
    type: Type

    @property
    def name(self) -> str:
        return self.cursor.spelling

    @property
    def arguments(self) -> tuple[Cursor, ...]:
        return self.cursor.arguments

    @property
    def position(self) -> SourcePosition:
        return get_reported_position(self.cursor)

    @property
    def scalar(self) -> Scalar:
        assert isinstance(self.type, Scalar)
        return self.type

    @property
    def pointer(self) -> Pointer:
        assert isinstance(self.type, Pointer)
        return self.type

    def values(self) -> tuple[ir.Expression, ...]:
        """Lower the arguments that are in the source; the others keep their defaults."""
        return tuple(self.lower.value(argument) for argument in self.arguments if is_explicit(argument))


_LowerCall = Callable[[_Call], ir.Expression]


def lower_builtin_call(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower a call of one of CUDA's functions."""
    call = _Call(lower, cursor, lower.type_of(cursor))
    lower_call = _FUNCTIONS.get(call.name) or _find_family(call)
    if lower_call is None:
        raise build_unsupported_error(
            cursor,
            f"a call of {call.name or 'this'}, which is not defined here",
            advice="Define it in this file or in one that it includes.",
        )
    return lower_call(call)


def _find_family(call: _Call) -> _LowerCall | None:
    """Return the lowering of a call by a part of its name, or by a table of operations."""
    name = call.name
    base, _, scope = name.removeprefix(_ORDERED).partition("_")
    if name.startswith(_ORDERED) and base in ("load", "store"):
        return lambda call: _access_in_order(call, _ATOMIC_SCOPES[scope])
    if base in ATOMICS and scope in _ATOMIC_SCOPES:
        return lambda call: _atomic(call, ATOMICS[base], _ATOMIC_SCOPES[scope])
    if name.startswith("__builtin_") and isinstance(call.type, Scalar) and (number := call.cursor.constant) is not None:
        type = call.type
        return lambda call: build_constant(type, number)
    for prefix, lower_call in _PREFIXES.items():
        if name.startswith(prefix):
            return lower_call
    if name in FENCES:
        return lambda call: ir.Fence(VOID, name, call.position, *call.values())
    if name in WARP_OPERATIONS or name in BLOCK_VOTES:
        return lambda call: ir.Warp(call.scalar, name, call.values(), call.position)
    if name in INTRINSICS and isinstance(call.type, Scalar):
        type = call.type
        return lambda call: ir.Intrinsic(type, name, tuple(map(call.lower.value, call.arguments)))
    return None


def build_cluster_barrier(
    lower: Lowering, part: Literal["arrive", "wait"], position: SourcePosition, *, is_relaxed: bool = False
) -> ir.Expression:
    """Return an arrival at the cluster's barrier, or the wait at it."""
    lower.scope.function.syncs_cluster = True
    return ir.ClusterBarrier(VOID, part, position, is_relaxed)


def build_phase_operation(
    lower: Lowering,
    op: str,
    pointer: ir.Expression,
    argument: ir.Expression,
    position: SourcePosition,
    *,
    is_relaxed: bool = False,
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
    is_relaxed : bool
        Whether it orders no accesses without a fence.
    """
    lower.scope.function.has_phases = True
    type: Type = BOOL if op == "test" else Scalar("uint64") if op in ("arrive", "drop") else VOID
    return ir.BarrierPhase(type, op, pointer, argument, position, is_relaxed)


def _lower_texel(call: _Call) -> ir.Expression:
    """Lower the parts of a fetch from a texture, or of an access to a surface, by coordinates."""
    name, position, type, cursor = call.name, call.position, call.scalar, call.cursor
    texture, *lowered = map(call.lower.value, call.arguments)
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


def _atomic(call: _Call, op: str, scope: ir.Scope) -> ir.Expression:
    lower, cursor, arguments = call.lower, call.cursor, call.arguments
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


def _access_in_order(call: _Call, scope: ir.Scope) -> ir.Expression:
    """Lower a strong load or store with a memory order."""
    lower, cursor, arguments = call.lower, call.cursor, call.arguments
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


def _lower_read_only_load(call: _Call) -> ir.Expression:
    place = _lower_element(call.lower, call.cursor, call.arguments[0])
    return ir.Load(place.type, replace(place, is_read_only=True))


def _lower_promise(call: _Call) -> ir.Expression:
    """Lower a promise to the compiler, which has no effect."""
    return build_constant(INT32, 0)


def _lower_warps_in_turn(call: _Call) -> ir.Expression:
    call.lower.scope.function.has_phases = True
    return build_constant(INT32, 0)


def _lower_grid_sync(call: _Call) -> ir.Expression:
    call.lower.scope.function.syncs_grid = True
    return ir.GridBarrier(VOID, call.position)


def _lower_cluster_map(call: _Call) -> ir.Expression:
    pointer, rank = call.values()
    return ir.ClusterAddress(call.pointer, pointer, rank, call.position)


def _lower_heap_change(call: _Call) -> ir.Expression:
    pointer, *size = call.values()
    return ir.HeapChange(VOID, pointer, size[0] if size else None, call.position)


def _lower_phase_operation(call: _Call) -> ir.Expression:
    pointer, argument = call.values()
    return build_phase_operation(call.lower, call.name.removeprefix(_PHASE), pointer, argument, call.position)


def _lower_bulk_copy(call: _Call) -> ir.Expression:
    destination, source, count, *barrier = call.values()
    call.lower.scope.function.has_phases |= bool(barrier)
    return ir.BulkCopy(VOID, destination, source, count, barrier[0] if barrier else None, call.position)


def _lower_tensor_copy(call: _Call) -> ir.Expression:
    call.lower.scope.function.has_phases = True
    destination, matrix, *numbers, signaled = call.values()
    return ir.TensorCopy(VOID, destination, matrix, tuple(numbers), signaled, call.position)


def _lower_async_copy(call: _Call) -> ir.Expression:
    destination, source, count, *source_bytes = call.values()
    return ir.AsyncCopy(VOID, destination, source, count, source_bytes[0] if source_bytes else None, call.position)


def _lower_printf(call: _Call) -> ir.Expression:
    text = read_string_literal(call.arguments[0])
    if text is None:
        raise build_unsupported_error(
            call.cursor, "a printf without a literal format", advice="Write the format as a string literal."
        )
    return ir.Print(INT32, text, tuple(_lower_print_argument(call.lower, each) for each in call.arguments[1:]))


def _lower_assertion(call: _Call) -> ir.Expression:
    condition, text = call.arguments[0], read_string_literal(call.arguments[1]) or ""
    return ir.Assertion(VOID, call.lower.condition(condition), text, call.position)


def _refuse_texture(call: _Call) -> ir.Expression:
    raise build_unsupported_error(
        call.cursor,
        "this kind of texture",
        advice="Use a texture with one or two dimensions, read by element, or a pointer to global memory: "
        "a[y * width + x].",
    )


_FUNCTIONS: dict[str, _LowerCall] = {
    "__ldg": _lower_read_only_load,
    "__builtin_unreachable": _lower_promise,
    "__builtin_assume": _lower_promise,
    "__lockstep_wait_for_children": lambda call: ir.WaitForChildren(VOID, call.position),
    "__lockstep_warps_in_turn": _lower_warps_in_turn,
    "__lockstep_grid_sync": _lower_grid_sync,
    "__lockstep_cluster_arrive": lambda call: build_cluster_barrier(call.lower, "arrive", call.position),
    "__lockstep_cluster_wait": lambda call: build_cluster_barrier(call.lower, "wait", call.position),
    "__lockstep_cluster_map": _lower_cluster_map,
    "clock": lambda call: ir.Clock(call.scalar, is_handle=False),
    "clock64": lambda call: ir.Clock(call.scalar, is_handle=False),
    "__lockstep_handle": lambda call: ir.Clock(call.scalar, is_handle=True),
    "__lockstep_allocated": _lower_heap_change,
    "__lockstep_freed": _lower_heap_change,
    "__cvta_generic_to_shared": lambda call: ir.SharedAddress(call.scalar, call.values()[0], call.position),
    "__cvta_shared_to_generic": lambda call: ir.SharedAddress(call.pointer, call.values()[0], call.position),
    "__lockstep_bulk_copy": _lower_bulk_copy,
    "__lockstep_tensor_copy": _lower_tensor_copy,
    "__lockstep_async_copy": _lower_async_copy,
    "__lockstep_async_commit": lambda call: ir.AsyncCommit(VOID),
    "__lockstep_async_wait": lambda call: ir.AsyncWait(VOID, *(call.values() or (None,))),
    # Within an expression: a vote without a result.
    "__syncthreads": lambda call: ir.Warp(INT32, "__syncthreads_or", (build_constant(INT32, 0),), call.position),
    "printf": _lower_printf,
    "__lockstep_assert": _lower_assertion,
    "__lockstep_texture": _refuse_texture,  # the shim declares it only to refuse it by name
}
"""The lowering of each function by its name."""

_PREFIXES: dict[str, _LowerCall] = {
    "__lockstep_texel": _lower_texel,
    "__lockstep_surfel": _lower_texel,
    _PHASE: _lower_phase_operation,
}
"""The lowering of functions by the beginning of their names."""
