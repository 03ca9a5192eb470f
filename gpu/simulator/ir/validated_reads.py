"""Strong reads of data whose values count only if a flag has not changed meanwhile, as in a seqlock."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gpu.base.errors import SourcePosition
from gpu.simulator.ir.nodes import (
    Assign,
    Atomic,
    Binary,
    Cast,
    Declare,
    Element,
    Expression,
    Fence,
    Function,
    Global,
    Intrinsic,
    Load,
    Local,
    Member,
    Offset,
    Unary,
    Update,
)
from gpu.simulator.ir.walking import walk

_Spot = tuple[str, int, int]
"""A file, line and column."""


@dataclass(frozen=True)
class _StrongAccess:
    """A strong access: what identifies its pointer, and where it is."""

    location: Hashable
    spot: _Spot


class ValidatedReads(NamedTuple):
    """The identities of the places of volatile reads that a later access validates, or is meant to validate."""

    valid: set[int]
    invalid: set[int]


def find_validated_reads(functions: Iterable[Function]) -> ValidatedReads:
    """Return the identities of the places of volatile reads that a later access validates.

    Such a read is between a strong read of a flag and a later access of the same flag, which tests whether the flag
    still has the value that was read: by a comparison with another strong read, after a fence, or by an atomic
    compare-and-swap. If another thread writes the data meanwhile, the flag has changed, and the value is discarded. So
    a seqlock reads its data, a stack the next element, and a deque a task that another thread may take.

    A comparison validates no read of data that the same function writes without a write of the flag before and after.
    Such a read is invalid if the function advances the flag on one side of each write of the data only.
    """
    found = ValidatedReads(set(), set())
    for function in functions:
        for place, is_valid in _find_function_reads(function):
            (found.valid if is_valid else found.invalid).add(place)
    return ValidatedReads(found.valid, found.invalid - found.valid)


def _find_function_reads(function: Function) -> Iterator[tuple[int, bool]]:
    nodes = list(walk(function.body))
    data = [node.place for node in nodes if isinstance(node, Load) and node.place.volatile and node.place.order is None]
    if not data:
        return
    fences = [_find_spot(node.position) for node in nodes if _is_fence(node)]
    values: dict[int, list[Expression]] = {}
    for node in nodes:
        match node:
            case Declare(slot, _, value) if value is not None:
                values.setdefault(slot, []).append(value)
            case Assign(_, Local(slot=slot), value):
                values.setdefault(slot, []).append(value)
    writes = [_access_of(place) for node in nodes if (place := _find_written_place(node)) is not None]
    swapped = {_access_of(node.place).location for node in nodes if isinstance(node, Atomic) and node.op == "cas"}
    for begin, end, flag, is_swap in _find_windows(nodes, values):
        flag_spots = [write.spot for write in writes if write.location == flag]
        for place in data:
            read = _access_of(place)
            if not begin < read.spot < end:
                continue
            spots = [write.spot for write in writes if write.location == read.location]
            has_fences = _is_between(fences, begin, read.spot) and _is_between(fences, read.spot, end)
            if is_swap or (has_fences and all(_encloses(flag_spots, spot) for spot in spots)):
                yield id(place), True
            elif spots and flag_spots and not swapped & {flag, read.location}:
                is_one_sided = max(flag_spots) < min(spots) or max(spots) < min(flag_spots)
                if has_fences and is_one_sided:
                    yield id(place), False


def _encloses(flag_spots: list[_Spot], spot: _Spot) -> bool:
    return min(flag_spots, default=spot) < spot < max(flag_spots, default=spot)


def _find_written_place(node: object) -> Element | None:
    """Return the place that a node writes by a strong access, if it does."""
    if isinstance(node, Atomic) or (
        isinstance(node, Assign | Update) and isinstance(node.place, Element) and node.place.volatile
    ):
        return node.place if isinstance(node.place, Element) else None
    return None


def _find_windows(
    nodes: list[object], values: dict[int, list[Expression]]
) -> Iterator[tuple[_Spot, _Spot, Hashable, bool]]:
    """Yield the spots of two accesses of a flag whose values are compared, the flag, and whether the second swaps."""
    for node in nodes:
        if isinstance(node, Binary) and node.op in ("==", "!="):
            left, right = (_find_reads(side, values, set()) for side in (node.left, node.right))
            for first in left:
                for second in right:
                    if first.location == second.location and first.spot != second.spot:
                        yield min(first.spot, second.spot), max(first.spot, second.spot), first.location, False
        elif isinstance(node, Atomic) and node.op == "cas" and node.used:
            swap = _access_of(node.place)
            for first in _find_reads(node.arguments[0], values, set()):
                if first.location == swap.location:
                    # The new value is read before the operation, but stands after its place.
                    spots = (_find_spot(each.position) for each in walk(node) if isinstance(each, Element))
                    file, line, column = max(swap.spot, *spots)
                    yield first.spot, (file, line, column + 1), swap.location, True


def _find_reads(value: Expression, values: dict[int, list[Expression]], visited: set[int]) -> set[_StrongAccess]:
    """Return the strong reads from which a value is computed."""
    match value:
        case Load(_, place):
            return {_access_of(place)} if place.volatile else set()
        case Atomic(_, _, place):
            return {_access_of(place)}
        case Local(slot=slot) if slot not in visited:
            visited.add(slot)
            return {read for each in values.get(slot, []) for read in _find_reads(each, values, visited)}
        case Cast(operand=operand) | Unary(operand=operand):
            return _find_reads(operand, values, visited)
        case Binary(left=left, right=right):
            return _find_reads(left, values, visited) | _find_reads(right, values, visited)
        case Intrinsic(arguments=arguments):
            return {read for each in arguments for read in _find_reads(each, values, visited)}
    return set()


def _access_of(place: Element) -> _StrongAccess:
    return _StrongAccess(_find_location(place), _find_spot(place.position))


def _find_location(place: Element) -> Hashable:
    """Return what identifies a flag: its variable or parameter, and its offset in it; its own place if unknown."""
    pointer: Expression = place.pointer
    offset = 0
    while isinstance(pointer, Offset | Member | Cast):
        offset += pointer.offset if isinstance(pointer, Member) else 0
        pointer = pointer.operand if isinstance(pointer, Cast) else pointer.pointer
    match pointer:
        case Local(slot=slot):
            return slot, offset
        case Global(name=name):
            return name, offset
    return id(place)


def _is_fence(node: object) -> bool:
    return isinstance(node, Fence) and node.name.startswith("__threadfence")


def _find_spot(position: SourcePosition) -> _Spot:
    return position.file, position.line, position.column


def _is_between(spots: Iterable[_Spot], begin: _Spot, end: _Spot) -> bool:
    return any(begin < spot < end for spot in spots)
