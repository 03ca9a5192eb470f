"""Strong reads of data whose values count only if a flag has not changed meanwhile, as in a seqlock."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from gpu.base.errors import SourcePosition
from gpu.simulator.ir.nodes import (
    Assign,
    Atomic,
    Binary,
    Call,
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
    Return,
    Select,
    Unary,
    Update,
)
from gpu.simulator.ir.walking import walk
from gpu.simulator.types import Pointer

_Spot = tuple[tuple[str, int, int], ...]
"""A file, line and column; of what a called function does, the spot of the call comes first."""

_COMPARISONS = ("==", "!=", "^", "-")
"""The operations whose result tells whether two values are equal."""

_MAX_DEPTH, _MAX_NODES = 3, 20_000
"""How deep calls are followed, and up to how many nodes in all."""


@dataclass(frozen=True)
class _StrongAccess:
    """A strong access: what identifies its pointer, and where it is."""

    location: Hashable
    spot: _Spot


class _Window(NamedTuple):
    """Two accesses of flags whose values are compared, the flags, and whether the second one swaps."""

    begin: _Spot
    end: _Spot
    first: Hashable
    second: Hashable
    is_swap: bool


class ValidatedReads(NamedTuple):
    """The identities of the places of volatile reads that a later access validates, or is meant to validate."""

    valid: set[int]
    invalid: set[int]


def find_validated_reads(functions: Iterable[Function]) -> ValidatedReads:
    """Return the identities of the places of volatile reads that a later access validates.

    Such a read is between a strong read of a flag and a later access of the same flag, which tests whether the flag
    still has the value that was read: by a comparison with another strong read, after a fence, or by an atomic
    compare-and-swap. If another thread writes the data meanwhile, the flag has changed, and the value is discarded. So
    a seqlock reads its data, a stack the next element, and a deque a task that another thread may take. The flag may
    also be two counters: a writer advances one of them before and the other one after it writes, and a reader reads
    them in the opposite order. Calls of functions count as what these do.

    If the flag also chooses one of several copies, as in a latch, the writes of a copy need only follow one of the
    flag.

    A comparison validates no read of data that the same function writes without a write of the flag before and after.
    Such a read is invalid if the function advances the flag on one side of each write of the data only.
    """
    found, functions = ValidatedReads(set(), set()), list(functions)
    if not any(_is_volatile_read(node) for function in functions for node in walk(function.body)):
        return found
    for function in functions:
        for place, is_valid in _Body(function).find_reads():
            (found.valid if is_valid else found.invalid).add(place)
    return ValidatedReads(found.valid, found.invalid - found.valid)


class _Scope:
    """A function as it is called: what its variables receive.

    Parameters
    ----------
    function : Function
        The function.
    path : tuple
        The spots of the calls that lead to it.
    caller : _Scope or None
        The calling function; None for the outermost one.
    arguments : tuple of Expression
        The arguments of the call.
    """

    def __init__(
        self,
        function: Function,
        path: _Spot = (),
        caller: _Scope | None = None,
        arguments: tuple[Expression, ...] = (),
    ) -> None:
        self.path, self.caller, self.arguments = path, caller, arguments
        self.nodes: list[Any] = list(walk(function.body))
        self.values: dict[int, list[Expression]] = {}
        for node in self.nodes:
            match node:
                case Declare(slot, _, value) if value is not None:
                    self.values.setdefault(slot, []).append(value)
                case Assign(_, Local(slot=slot), value):
                    self.values.setdefault(slot, []).append(value)
        self._calls: dict[int, _Scope] = {}

    def enter(self, call: Call) -> _Scope | None:
        """Return the scope of a called function; None if calls are nested too deep."""
        if id(call) not in self._calls and len(self.path) < _MAX_DEPTH:
            spot = self.find_spot(call.position)
            self._calls[id(call)] = _Scope(call.function, spot, self, call.arguments)
        return self._calls.get(id(call))

    def find_spot(self, position: SourcePosition) -> _Spot:
        return (*self.path, (position.file, position.line, position.column))

    def access(self, place: Element) -> _StrongAccess:
        return _StrongAccess(self._find_location(place), self.find_spot(place.position))

    def find_sources(self, slot: int) -> tuple[_Scope, list[Expression]]:
        """Return the values that a variable receives, and the scope in which they are computed."""
        if self.caller is not None and slot < len(self.arguments) and slot not in self.values:
            return self.caller, [self.arguments[slot]]
        return self, self.values.get(slot, [])

    def find_reads(self, value: Expression, visited: set[tuple[int, int]]) -> set[_StrongAccess]:
        """Return the strong reads from which a value is computed."""
        match value:
            case Load(_, place):
                return {self.access(place)} if place.volatile else set()
            case Atomic(_, _, place):
                return {self.access(place)}
            case Local(slot=slot) if (id(self), slot) not in visited:
                visited.add((id(self), slot))
                scope, values = self.find_sources(slot)
                return {read for each in values for read in scope.find_reads(each, visited)}
            case Cast(operand=operand) | Unary(operand=operand):
                return self.find_reads(operand, visited)
            case Assign(value=assigned):
                return self.find_reads(assigned, visited)
            case Binary(left=left, right=right):
                return self.find_reads(left, visited) | self.find_reads(right, visited)
            case Select(condition=condition, chosen=chosen, other=other):
                return {read for each in (condition, chosen, other) for read in self.find_reads(each, visited)}
            case Intrinsic(arguments=arguments):
                return {read for each in arguments for read in self.find_reads(each, visited)}
            case Call() if (inner := self.enter(value)) is not None:
                results = [node.value for node in inner.nodes if isinstance(node, Return) and node.value is not None]
                return {read for each in results for read in inner.find_reads(each, visited)}
        return set()

    def _find_location(self, place: Element) -> Hashable:
        """Return what identifies a flag: its variable or parameter, and its offset in it; its own place if unknown."""
        scope, pointer, offset = self, place.pointer, 0
        visited: set[tuple[int, int]] = set()
        while True:
            match pointer:
                case Offset() | Member():
                    offset += pointer.offset if isinstance(pointer, Member) else 0
                    pointer = pointer.pointer
                case Cast(operand=operand):
                    pointer = operand
                case Local(type=Pointer(), slot=slot):
                    source, values = scope.find_sources(slot)
                    if len(values) != 1 or (id(scope), slot) in visited:
                        return scope.path, slot, offset
                    visited.add((id(scope), slot))
                    scope, pointer = source, values[0]
                case Local(slot=slot):
                    return scope.path, slot, offset
                case Global(name=name):
                    return name, offset
                case _:
                    return id(place)


class _Body:
    """What a function does, with the functions that it calls."""

    def __init__(self, function: Function) -> None:
        self._nodes: list[tuple[Any, _Scope]] = []
        pending = [_Scope(function)]
        while pending and len(self._nodes) < _MAX_NODES:
            scope = pending.pop()
            self._nodes += [(node, scope) for node in scope.nodes]
            called = (scope.enter(node) for node in scope.nodes if isinstance(node, Call))
            pending += [each for each in called if each is not None]

    def find_reads(self) -> Iterator[tuple[int, bool]]:
        """Yield the identity of the place of each volatile read in a window, and whether the window validates it."""
        nodes = self._nodes
        data = [(node.place, scope.access(node.place), scope) for node, scope in nodes if _is_volatile_read(node)]
        fences = [scope.find_spot(node.position) for node, scope in nodes if _is_fence(node)]
        writes = [scope.access(place) for node, scope in nodes if (place := _find_written_place(node)) is not None]
        swapped = {
            scope.access(node.place).location
            for node, scope in nodes
            if isinstance(node, Atomic) and node.op == "cas" and isinstance(node.place, Element)
        }
        for window in self._find_windows():
            first = [write.spot for write in writes if write.location == window.first]
            second = [write.spot for write in writes if write.location == window.second]
            for place, read, scope in data:
                if not window.begin < read.spot < window.end:
                    continue
                spots = [write.spot for write in writes if write.location == read.location]
                has_fences = _is_between(fences, window.begin, read.spot) and _is_between(fences, read.spot, window.end)
                is_copy = place.index is not None and window.begin in _find_spots(scope, place.index)
                enclosed = all(_encloses(second, spot, None if is_copy else first) for spot in spots)
                if window.is_swap or (has_fences and enclosed):
                    yield id(place), True
                elif spots and first and second and not swapped & {window.first, read.location}:
                    is_one_sided = max(first) < min(spots) or max(spots) < min(second)
                    if has_fences and is_one_sided:
                        yield id(place), False

    def _find_windows(self) -> Iterator[_Window]:
        for node, scope in self._nodes:
            if isinstance(node, Binary) and node.op in _COMPARISONS:
                left, right = (scope.find_reads(side, set()) for side in (node.left, node.right))
                for one, other in product(left, right):
                    if one.spot != other.spot:
                        earlier, later = sorted((one, other), key=lambda each: each.spot)
                        yield _Window(earlier.spot, later.spot, earlier.location, later.location, is_swap=False)
            elif isinstance(node, Atomic) and node.op == "cas" and node.used and isinstance(node.place, Element):
                swap = scope.access(node.place)
                for read in scope.find_reads(node.arguments[0], set()):
                    if read.location == swap.location:
                        # The new value is read before the operation, but stands after its place.
                        spots = (scope.find_spot(each.position) for each in walk(node) if isinstance(each, Element))
                        *path, (file, line, column) = max(swap.spot, *spots)
                        end = (*path, (file, line, column + 1))
                        yield _Window(read.spot, end, read.location, read.location, is_swap=True)


def _encloses(before: list[_Spot], spot: _Spot, after: list[_Spot] | None) -> bool:
    """Return whether a spot follows one of some and precedes one of others; None if it need not precede any."""
    return min(before, default=spot) < spot and (after is None or spot < max(after, default=spot))


def _find_spots(scope: _Scope, value: Expression) -> set[_Spot]:
    """Return where the strong reads are from which a value is computed."""
    return {read.spot for read in scope.find_reads(value, set())}


def _find_written_place(node: object) -> Element | None:
    """Return the place that a node writes by a strong access, if it does."""
    if isinstance(node, Atomic) or (
        isinstance(node, Assign | Update) and isinstance(node.place, Element) and node.place.volatile
    ):
        return node.place if isinstance(node.place, Element) else None
    return None


def _is_volatile_read(node: object) -> bool:
    return isinstance(node, Load) and node.place.volatile and node.place.order is None


def _is_fence(node: object) -> bool:
    return isinstance(node, Fence) and node.name.startswith("__threadfence")


def _is_between(spots: Iterable[_Spot], begin: _Spot, end: _Spot) -> bool:
    return any(begin < spot < end for spot in spots)
