"""Calls of what CUDA gives a kernel by name: atomics, barriers, what warps exchange, printf."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang import Cursor, CursorKind, start_of, string_of
from gpu.simulator.frontend.conversions import number_of
from gpu.simulator.frontend.lowering import Lowering
from gpu.simulator.frontend.types import refuse
from gpu.simulator.intrinsics import ATOMICS, BLOCK_VOTES, FENCES, INTRINSICS, WARP_OPERATIONS
from gpu.simulator.types import BOOL, INT32, VOID, Pointer, Scalar, Type

_TEXTURES = (
    "this kind of texture",
    "One or two dimensions are, read by element; or read from a pointer to global memory: a[y * width + x].",
)

# What the shim declares so that it is refused by name: the construct, and what to write instead.
_REFUSED = {
    "__lockstep_texture": _TEXTURES,
}


def call_by_name(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower a call of one of CUDA's functions."""
    name, arguments = cursor.spelling, cursor.arguments
    type = lower.type_of(cursor)
    if name in ATOMICS:
        return _atomic(lower, cursor, arguments)
    if name.startswith("__builtin_") and isinstance(type, Scalar) and (number := cursor.constant) is not None:
        return number_of(type, number)
    if name in ("__builtin_unreachable", "__builtin_assume"):  # a promise to the compiler
        return number_of(INT32, 0)
    if name == "__lockstep_wait_for_children":
        return ir.WaitForChildren(VOID, start_of(cursor))
    if name == "__lockstep_warps_in_turn":
        lower.scope.function.has_phases = True
        return number_of(INT32, 0)
    if name == "__lockstep_grid_sync":
        lower.scope.function.syncs_grid = True
        return ir.GridBarrier(VOID, start_of(cursor))
    if name in ("__lockstep_cluster_arrive", "__lockstep_cluster_wait"):
        return cluster_barrier(lower, "wait" if name.endswith("wait") else "arrive", start_of(cursor))
    if name == "__lockstep_cluster_map":
        assert isinstance(type, Pointer)
        pointer, rank = (lower.value(each) for each in arguments)
        return ir.ClusterAddress(type, pointer, rank, start_of(cursor))
    if name in ("clock", "clock64", "__lockstep_handle"):
        assert isinstance(type, Scalar)
        return ir.Clock(type, handle=name == "__lockstep_handle")
    if name.startswith(("__lockstep_texel", "__lockstep_surfel")):
        return _texel(lower, cursor, arguments)
    if name in ("__lockstep_allocated", "__lockstep_freed"):
        pointer, *size = (lower.value(each) for each in arguments)
        return ir.HeapChange(VOID, pointer, size[0] if size else None, start_of(cursor))
    if name == "__cvta_generic_to_shared":
        assert isinstance(type, Scalar)
        return ir.SharedAddress(type, lower.value(arguments[0]), start_of(cursor))
    if name == "__cvta_shared_to_generic":
        assert isinstance(type, Pointer)
        return ir.SharedAddress(type, lower.value(arguments[0]), start_of(cursor))
    if name.startswith("__lockstep_phase_"):
        pointer, argument = (lower.value(each) for each in arguments)
        return phase(lower, name.removeprefix("__lockstep_phase_"), pointer, argument, start_of(cursor))
    if name == "__lockstep_bulk_copy":
        to, source, count, *barrier = (lower.value(each) for each in arguments if is_written_out(each))
        lower.scope.function.has_phases |= bool(barrier)
        return ir.BulkCopy(VOID, to, source, count, barrier[0] if barrier else None, start_of(cursor))
    if name == "__lockstep_async_copy":
        to, source, count, *given = (lower.value(each) for each in arguments if is_written_out(each))
        return ir.AsyncCopy(VOID, to, source, count, given[0] if given else None, start_of(cursor))
    if name == "__lockstep_async_commit":
        return ir.AsyncCommit(VOID)
    if name == "__lockstep_async_wait":
        left = [lower.value(each) for each in arguments if is_written_out(each)]
        return ir.AsyncWait(VOID, left[0] if left else None)
    if name in FENCES:
        lanes = [lower.value(each) for each in arguments if is_written_out(each)]
        return ir.Fence(VOID, name, start_of(cursor), *lanes)
    if name == "__syncthreads":  # within an expression: a vote that nobody asks for
        return ir.Warp(INT32, "__syncthreads_or", (number_of(INT32, 0),), start_of(cursor))
    if name in WARP_OPERATIONS or name in BLOCK_VOTES:
        values = tuple(lower.value(argument) for argument in arguments if is_written_out(argument))
        assert isinstance(type, Scalar)
        return ir.Warp(type, name, values, start_of(cursor))
    if name == "printf":
        text = string_of(arguments[0])
        if text is None:
            raise refuse(cursor, "a printf whose format is not written out", instead="Write it as a string.")
        return ir.Print(INT32, text, tuple(_printed(lower, argument) for argument in arguments[1:]))
    if name == "__lockstep_assert":
        text = string_of(arguments[1]) or ""
        return ir.Assertion(VOID, lower.condition(arguments[0]), text, start_of(cursor))
    if name in INTRINSICS and isinstance(type, Scalar):
        return ir.Intrinsic(type, name, tuple(lower.value(argument) for argument in arguments))
    if name in _REFUSED:
        construct, instead = _REFUSED[name]
        raise refuse(cursor, construct, instead=instead)
    raise refuse(
        cursor,
        f"a call of {name or 'this'}, which has no body here",
        instead="Define it in this file or in one that it includes.",
    )


def cluster_barrier(lower: Lowering, part: Literal["arrive", "wait"], position: SourcePosition) -> ir.Expression:
    """Return an arrival at the barrier of the cluster, or the wait at it."""
    lower.scope.function.syncs_cluster = True
    return ir.ClusterBarrier(VOID, part, position)


def phase(
    lower: Lowering, op: str, pointer: ir.Expression, argument: ir.Expression, position: SourcePosition
) -> ir.Expression:
    """Return what a thread does with a barrier in memory; its function's threads wait for each other then."""
    lower.scope.function.has_phases = True
    type: Type = BOOL if op == "test" else Scalar("uint64") if op in ("arrive", "drop") else VOID
    return ir.BarrierPhase(type, op, pointer, argument, position)


def _texel(lower: Lowering, cursor: Cursor, arguments: tuple[Cursor, ...]) -> ir.Expression:
    """Lower what a fetch by coordinates asks of a texture, or of a surface."""
    name, position = cursor.spelling, start_of(cursor)
    type = lower.type_of(cursor)
    assert isinstance(type, Scalar)
    texture, *given = (lower.value(each) for each in arguments)
    if name == "__lockstep_texels_are_filtered":
        return ir.TexelWeight(type, texture, 0, None, position)
    number, *places = given
    if not isinstance(number, ir.Const):
        raise refuse(cursor, "a texture of elements whose size is not known")
    if name == "__lockstep_texel_weight":
        return ir.TexelWeight(type, texture, int(number.value), places[0], position)
    if name == "__lockstep_surfel":
        boundary, *places = places
        assert isinstance(boundary, ir.Const)
        return ir.Texel(type, texture, tuple(places), int(number.value), position, boundary=int(boundary.value))
    beside: tuple[int, ...] = ()
    if name == "__lockstep_texel_beside":
        dimensions = len(places) // 2
        beside = tuple(int(each.value) for each in places[:dimensions] if isinstance(each, ir.Const))
        places = places[dimensions:]
    return ir.Texel(type, texture, tuple(places), int(number.value), position, beside)


def _printed(lower: Lowering, argument: Cursor) -> ir.Expression | str:
    text = string_of(argument)
    if text is not None:
        return text
    value = lower.value(argument)
    if not isinstance(value.type, Scalar | Pointer):
        raise refuse(argument, f"{value.type} as an argument of printf", instead="Print its members, one by one.")
    return value


def _atomic(lower: Lowering, cursor: Cursor, arguments: tuple[Cursor, ...]) -> ir.Expression:
    pointer = lower.value(arguments[0])
    if not isinstance(pointer.type, Pointer) or not isinstance(pointer.type.element, Scalar):
        raise refuse(cursor, f"{cursor.spelling} on this address")
    element = pointer.type.element
    place = ir.Element(element, pointer, None, start_of(cursor))
    if isinstance(pointer, ir.Offset):
        place = replace(place, pointer=pointer.pointer, index=pointer.index, rows=pointer.rows)
    values = tuple(lower.converted(argument, element) for argument in arguments[1:])
    return ir.Atomic(element, ATOMICS[cursor.spelling], place, values)


def is_written_out(argument: Cursor) -> bool:
    """Whether an argument is written out; clang stands something empty in for a default."""
    return argument.kind != CursorKind.UNEXPOSED_EXPR or bool(argument.children)
