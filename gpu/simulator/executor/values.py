"""What the compiler's closures pass on as a value, and everything that is done with one.

There is one compiler. Given `PlainValues`, its closures pass on what NumPy computes: one scalar where all lanes agree,
an array of one value a lane, a `PointerValue`, or, of a struct, a tuple of its leaves. Whoever wants more of a value,
such as where it came from, gives the compiler another algebra, in which a value is accompanied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpu.simulator import ir
from gpu.simulator.executor import exchanges
from gpu.simulator.executor.call_frame import CallFrame, Evaluator, Executable, assign_local
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite
from gpu.simulator.executor.observe import Access
from gpu.simulator.executor.pointers import PointerValue, from_number, unobserved
from gpu.simulator.executor.running import Meeting, RunningBatch
from gpu.simulator.types import INT64, Pointer, Scalar

Leaf = Scalar | Pointer
Leaves = Sequence[tuple[int, Leaf]]
Barrier = Callable[[CallFrame, LaneMask, Any], tuple[LaneMask, Any]]
"""What lets lanes wait at a barrier of their block with a vote each, and returns who arrived and how they voted."""

TellExchange = Callable[[CallFrame, LaneMask, Any, Sequence[Any]], None]


class PlainValues:
    """Values as they are. What another algebra replaces says what a value is to the rest of the compiler.

    `bare` is the algebra of what is used up where it is computed, addresses and conditions: values as they are.
    """

    #: Whether lanes that do not need a value may compute it too, where that has no effect.
    speculates = True

    @property
    def bare(self) -> PlainValues:
        return self

    # From and to bare values.

    def lift(self, value: Any) -> Any:
        """Return a bare value, such as an address or a constant, as a value."""
        return value

    def lifted(self, run: Evaluator) -> Evaluator:
        """Return the closure of a value from that of a bare one."""
        return run

    def strip(self, value: Any) -> Any:
        """Return a value without what accompanies it."""
        return value

    def stripped(self, run: Evaluator) -> Evaluator:
        """Return the closure of a bare value from that of a value."""
        return run

    # Values from values.

    def variable(self, slot: int) -> Evaluator:
        """Return the closure that reads a variable."""
        return lambda frame, mask: frame.values[slot]

    def apply(self, op: str, function: Callable[..., Any], operands: Sequence[Evaluator]) -> Evaluator:
        """Return the closure of an operation, which is called `op`."""
        if len(operands) == 1:
            (only,) = operands
            return lambda frame, mask: function(only(frame, mask))
        if len(operands) == 2:
            left, right = operands
            return lambda frame, mask: function(left(frame, mask), right(frame, mask))
        return lambda frame, mask: function(*(run(frame, mask) for run in operands))

    def operation(self, op: str, function: Callable[[Any, Any], Any]) -> Callable[[LaneMask, Any, Any], Any]:
        """Return an operation on two values in some lanes."""
        return lambda mask, left, right: function(left, right)

    def converted(self, function: Callable[[Any], Any], value: Any) -> Any:
        """Return what is the same number, the same bits or the same pointer in another type."""
        return function(value)

    def conversion(self, function: Callable[[Any], Any], operand: Evaluator) -> Evaluator:
        """Return the closure of what is the same in another type."""
        return lambda frame, mask: function(operand(frame, mask))

    def logical(self, op: str, left: Evaluator, right: Evaluator) -> Evaluator:
        """Return the closure of `&&` or `||`, whose right side runs only in the lanes that need it."""
        conjunction = op == "&&"

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            first = left(frame, mask)
            true, false = mask.split(first)
            needed = true if conjunction else false
            if needed is None:
                return np.bool_(not conjunction)
            second = right(frame, needed)
            if needed is mask:
                return second
            return first & second if conjunction else first | (second & needed.bits)

        return run

    def merged(self, old: Any, new: Any, mask: LaneMask) -> Any:
        """Return a value that is `new` in the lanes of a mask and `old` elsewhere; None is none yet."""
        return assign_local(old, new, mask)

    def choice(self, condition: Evaluator, chosen: Evaluator, other: Evaluator) -> Evaluator:
        """Return the closure of what takes one of two variables that are numbers, by a bare condition."""

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            decided = condition(frame, mask)
            if not isinstance(decided, np.ndarray):
                return (chosen if decided else other)(frame, mask)
            return np.where(decided, chosen(frame, mask), other(frame, mask))

        return run

    def composed(self, parts: Sequence[Any]) -> Any:
        """Return a struct's value from those of its parts."""
        flat: list[Any] = []
        for part in parts:
            if isinstance(part, tuple):
                flat += part
            else:
                flat.append(part)
        return tuple(flat)

    def part(self, whole: Evaluator, which: int | slice) -> Evaluator:
        """Return the closure of a leaf of a struct, or of several of them."""
        return lambda frame, mask: whole(frame, mask)[which]

    def parts(self, value: Any) -> Sequence[Any]:
        """Return the values of a struct's leaves, or a value that is no struct."""
        return value if isinstance(value, tuple) else (value,)

    # Memory.

    # Each takes an address, and what the method of that takes; the values that are stored or operands, and the one
    # that is returned, are this algebra's.
    read: Callable[..., Any] = staticmethod(PointerValue.load)
    write: Callable[..., None] = staticmethod(PointerValue.store)
    atomic: Callable[..., Any] = staticmethod(PointerValue.atomic)

    def tell_read(self, batch: RunningBatch, access: Access) -> Any:
        """Tell the observer of an access that has read whole vectors, and return what was read."""
        assert batch.observer is not None
        batch.observer.access(batch, access)
        return access.values

    def tell_write(self, batch: RunningBatch, access: Access, value: Any) -> None:
        """Tell the observer of an access that has written a value, whole vectors."""
        assert batch.observer is not None
        batch.observer.access(batch, access)

    # Between lanes.

    def exchange(
        self,
        op: str,
        dtype: np.dtype[Any],
        named: Evaluator,
        given: Evaluator,
        others: Sequence[Evaluator],
        tell: TellExchange,
    ) -> Evaluator:
        """Return the closure of an exchange between the lanes of a warp.

        `named` is which lanes take part, `given` what each brings, and `others` say from where to where; all but
        `given` are bare. `tell` is called with frame, mask, the named lanes and the others.
        """

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            here, own = named(frame, mask), given(frame, mask)
            by = [other(frame, mask) for other in others]
            batch, scheduler = frame.batch, frame.batch.scheduler
            if scheduler is None:
                tell(frame, mask, here, by)
                return exchanges.run(op, batch, mask, [here, own, *by]).astype(dtype, copy=False)
            met = scheduler.meet(op, mask, here, [own, *by])
            return met.outcome(lambda: exchanged(frame, met))

        def exchanged(frame: CallFrame, met: Meeting) -> Any:
            tell(frame, met.mask, met.named, met.brought[1:])
            return exchanges.run(op, frame.batch, met.mask, [met.named, *met.brought]).astype(dtype, copy=False)

        return run

    def product(self, op: str, dtype: np.dtype[Any], operands: Sequence[Evaluator]) -> Evaluator:
        """Return the closure of a result of a product of tiles, which whole warps compute."""

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            met = meet_all(op, frame, mask, [operand(frame, mask) for operand in operands])
            return met.outcome(lambda: exchanges.run(op, frame.batch, met.mask, [*met.brought]))

        return run

    def vote(self, op: str, predicate: Evaluator, barrier: Barrier) -> Evaluator:
        """Return the closure of a vote of a block at a barrier."""
        barrier = self.interrupting(barrier)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            arrived, votes = barrier(frame, mask, np.not_equal(predicate(frame, mask), 0))
            return exchanges.block_vote(op, frame.batch, arrived, votes)

        return run

    def interrupting(self, barrier: Barrier) -> Barrier:
        """Return a barrier at which lanes wait in the middle of a statement."""
        return barrier

    # Functions and variables.

    #: Takes note, where it is there, of the value that a variable (by its slot) got in some lanes.
    noted: Callable[[int, Any, LaneMask], None] | None = None

    def launched(
        self, function: ir.Function, arguments: Sequence[Any], variables: dict[str, PointerValue]
    ) -> Sequence[Any]:
        """Return the values of a kernel's arguments."""
        return arguments

    def body(self, function: ir.Function, body: Executable) -> Executable:
        """Return the body of a function that runs in a frame which has its arguments."""
        return body


PLAIN = PlainValues()


def meet_all(op: str, frame: CallFrame, mask: LaneMask, brought: Sequence[Any]) -> Meeting:
    """Let all lanes of each warp meet with what they bring."""
    scheduler = frame.batch.scheduler
    if scheduler is None:
        return Meeting(mask, exchanges.ALL_LANES, brought)
    return scheduler.meet(op, mask, exchanges.ALL_LANES, brought)


def load(
    values: PlainValues,
    batch: RunningBatch,
    address: PointerValue,
    leaves: Leaves,
    vector: int,
    mask: LaneMask,
    site: AccessSite,
) -> Any:
    """Return a struct's value in memory; `vector` is its size where it is loaded as a whole, else 0.

    Observers see the members of a vector type as the one access that they are on a GPU.
    """
    whole = _whole(batch, address, vector, mask, site)
    if whole is None:
        return values.composed(
            [load_leaf(values, batch, _at(address, at), None, leaf, mask, site) for at, leaf in leaves]
        )
    with unobserved(batch):
        plain = tuple(load_leaf(PLAIN, batch, _at(address, at), None, leaf, mask, site) for at, leaf in leaves)
    return values.tell_read(batch, replace(whole, values=plain))


def store(
    values: PlainValues,
    batch: RunningBatch,
    address: PointerValue,
    leaves: Leaves,
    vector: int,
    value: Any,
    mask: LaneMask,
    site: AccessSite,
) -> None:
    """Write a value to memory, seen as `load` is."""
    whole = _whole(batch, address, vector, mask, site)
    if whole is None:
        for (at, leaf), part in zip(leaves, values.parts(value), strict=True):
            store_leaf(values, batch, _at(address, at), None, leaf, part, mask, site)
        return
    plain = values.strip(value)
    with unobserved(batch):
        for (at, leaf), part in zip(leaves, plain, strict=True):
            store_leaf(PLAIN, batch, _at(address, at), None, leaf, part, mask, site)
    values.tell_write(batch, replace(whole, values=plain), value)


def load_leaf(
    values: PlainValues,
    batch: RunningBatch,
    address: PointerValue,
    index: Any,
    leaf: Leaf,
    mask: LaneMask,
    site: AccessSite,
) -> Any:
    """Return the scalars or pointers that are `index` elements after an address."""
    if isinstance(leaf, Pointer):
        return values.converted(from_number, values.read(address, batch, index, INT64.dtype, mask, site))
    return values.read(address, batch, index, leaf.dtype, mask, site)


def store_leaf(
    values: PlainValues,
    batch: RunningBatch,
    address: PointerValue,
    index: Any,
    leaf: Leaf,
    value: Any,
    mask: LaneMask,
    site: AccessSite,
) -> None:
    """Write the scalars or pointers that are `index` elements after an address."""
    if isinstance(leaf, Pointer):
        values.write(address, batch, index, INT64.dtype, values.converted(PointerValue.number, value), mask, site)
    else:
        values.write(address, batch, index, leaf.dtype, value, mask, site)


def _whole(batch: RunningBatch, address: PointerValue, vector: int, mask: LaneMask, site: AccessSite) -> Access | None:
    """Return the access, without its values yet, that observers see instead of its parts."""
    if not vector or address.mixed:
        return None
    memory, element = address.element(batch, vector, mask, site)  # before anything is touched: it must be aligned
    return Access(site, memory, element, vector, mask, None) if batch.observer is not None else None


def _at(address: PointerValue, offset: int) -> PointerValue:
    return address.moved(offset, 1) if offset else address
