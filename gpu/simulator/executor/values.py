"""Values of the compiled closures, and the operations on them, as an algebra that can be replaced.

With `PlainValues`, a value is a NumPy result: one scalar if all lanes agree, an array with one value per lane, a
`PointerValue`, or for a struct a tuple of its leaves. Another algebra can attach more to each value, such as its
provenance; the compiler stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError
from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor import exchanges
from gpu.simulator.executor.state.call_frame import CallFrame, Evaluator, Executable, assign_local
from gpu.simulator.executor.state.memory import AccessSite, DeviceMemory
from gpu.simulator.executor.state.observer import Access
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer, without_observer
from gpu.simulator.executor.state.running_batch import RunningBatch, WarpOperation
from gpu.simulator.types import INT64, Pointer, Scalar

Leaf = Scalar | Pointer
Leaves = Sequence[tuple[int, Leaf]]
Barrier = Callable[[CallFrame, LaneMask, Any], tuple[LaneMask, Any]]
"""Waits at a block barrier with a vote per lane; returns the lanes that arrived and their votes."""

ConditionNotifier = Callable[[CallFrame, LaneMask, LaneMask | None], None]
"""Notifies the observer of the lanes that test a condition, and of those that evaluate an operand; None for none."""

ExchangeNotifier = Callable[[CallFrame, LaneMask, Any, Sequence[Any]], None]


class PlainValues:
    """The algebra of plain NumPy values. Subclasses override methods to attach more to a value.

    `bare` is the algebra for addresses and conditions, which need only plain values.
    """

    #: Whether lanes that do not need a value may compute it too if that has no side effects.
    allows_speculation = True

    @property
    def bare(self) -> PlainValues:
        return self

    # Conversion from and to bare values.

    def lift(self, value: Any) -> Any:
        """Convert a bare value, such as an address or a constant, to a value."""
        return value

    def lift_closure(self, run: Evaluator) -> Evaluator:
        """Convert the closure of a bare value to that of a value."""
        return run

    def strip(self, value: Any) -> Any:
        """Convert a value to a bare value."""
        return value

    def strip_closure(self, run: Evaluator) -> Evaluator:
        """Convert the closure of a value to that of a bare value."""
        return run

    # Operations on values.

    def variable(self, slot: int) -> Evaluator:
        """Return a closure that reads a variable."""
        return lambda frame, mask: frame.values[slot]

    def apply(self, op: str, function: Callable[..., Any], operands: Sequence[Evaluator]) -> Evaluator:
        """Return a closure that applies a function to operands; `op` is the operation's name."""
        if len(operands) == 1:
            (only,) = operands
            return lambda frame, mask: function(only(frame, mask))
        if len(operands) == 2:
            left, right = operands
            return lambda frame, mask: function(left(frame, mask), right(frame, mask))
        return lambda frame, mask: function(*(run(frame, mask) for run in operands))

    def operation(self, op: str, function: Callable[[Any, Any], Any]) -> Callable[[LaneMask, Any, Any], Any]:
        """Return a function of a mask and two values that applies a binary operation."""
        return lambda mask, left, right: function(left, right)

    def exact_product(self, multiply: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator) -> Evaluator:
        """Return a closure of a product that is not rounded, for a fused operation only: here, of its factors."""
        return lambda frame, mask: (left(frame, mask), right(frame, mask))

    def fused_operation(
        self, op: str, function: Callable[..., Any], *, product_first: bool
    ) -> Callable[[LaneMask, Any, Any], Any]:
        """Return a function of a mask and two operands, of which one is an exact product.

        Parameters
        ----------
        op : str
            "+" or "-".
        function : callable
            The function of the two factors and the other operand.
        product_first : bool
            Whether the first operand is the product.
        """
        if product_first:
            return lambda mask, factors, other: function(*factors, other)
        return lambda mask, other, factors: function(*factors, other)

    def convert(self, function: Callable[[Any], Any], value: Any) -> Any:
        """Convert a value to another type that represents the same number, bits or pointer."""
        return function(value)

    def conversion(self, function: Callable[[Any], Any], operand: Evaluator) -> Evaluator:
        """Return a closure that converts a value to another type."""
        return lambda frame, mask: function(operand(frame, mask))

    def logical(self, op: str, left: Evaluator, right: Evaluator, report: ConditionNotifier | None = None) -> Evaluator:
        """Return a closure of `&&` or `||` that evaluates the right side only in the lanes that need it.

        `report`, if given, is called with these lanes before.
        """
        conjunction = op == "&&"

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            first = left(frame, mask)
            true, false = mask.split(first)
            needed = true if conjunction else false
            if report is not None:
                report(frame, mask, needed)
            if needed is None:
                return np.bool_(not conjunction)
            second = right(frame, needed)
            if needed is mask:
                return second
            return first & second if conjunction else first | (second & needed.bits)

        return run

    def merge(self, old: Any, new: Any, mask: LaneMask) -> Any:
        """Return a value that is `new` in the lanes of a mask and `old` in the others; `old` may be None."""
        return assign_local(old, new, mask)

    def choice(self, condition: Evaluator, chosen: Evaluator, other: Evaluator) -> Evaluator:
        """Return a closure that selects one of two scalar variables by a bare condition."""

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            decision = condition(frame, mask)
            if not isinstance(decision, np.ndarray):
                return (chosen if decision else other)(frame, mask)
            return np.where(decision, chosen(frame, mask), other(frame, mask))

        return run

    def compose(self, parts: Sequence[Any]) -> Any:
        """Return the value of a struct, composed of the values of its parts."""
        flat: list[Any] = []
        for part in parts:
            if isinstance(part, tuple):
                flat += part
            else:
                flat.append(part)
        return tuple(flat)

    def part(self, aggregate: Evaluator, selection: int | slice) -> Evaluator:
        """Return a closure of one leaf of a struct, or of several; `selection` is their index or slice."""
        return lambda frame, mask: aggregate(frame, mask)[selection]

    def parts(self, value: Any) -> Sequence[Any]:
        """Return the values of a struct's leaves, or a tuple of the value if it is not a struct."""
        return value if isinstance(value, tuple) else (value,)

    # Memory.

    # Each takes a PointerValue and the arguments of its method of that name; stored values, operands and results are
    # values of this algebra.
    read: Callable[..., Any] = staticmethod(PointerValue.load)
    write: Callable[..., None] = staticmethod(PointerValue.store)
    atomic: Callable[..., Any] = staticmethod(PointerValue.atomic)

    def report_read(self, batch: RunningBatch, access: Access) -> Any:
        """Notify the observer of a read of whole vectors, and return the value."""
        assert batch.observer is not None
        batch.observer.access(batch, access)
        return access.values

    def report_write(self, batch: RunningBatch, access: Access, value: Any) -> None:
        """Notify the observer of a write of whole vectors."""
        assert batch.observer is not None
        batch.observer.access(batch, access)

    def report_failed_access(
        self,
        batch: RunningBatch,
        address: PointerValue,
        index: Any,
        dtype: np.dtype[Any],
        mask: LaneMask,
        site: AccessSite,
        count: int = 1,
    ) -> None:
        """Handle an access of `count` numbers per lane that raised an error; the default does nothing."""

    def load(
        self, batch: RunningBatch, address: PointerValue, leaves: Leaves, vector: int, mask: LaneMask, site: AccessSite
    ) -> Any:
        """Load a struct or vector from memory. Observers see one access for a vector, as on a GPU.

        Parameters
        ----------
        batch : RunningBatch
            The batch of the lanes.
        address : PointerValue
            The address of each lane.
        leaves : sequence of tuple of int and Leaf
            The offset in bytes and the type of each leaf.
        vector : int
            The size in bytes of a vector that is loaded as a whole, else 0.
        site : AccessSite
            The access in the source.
        """
        try:
            observed = _find_vector(batch, address, vector, mask, site)
            if observed is not None:
                with without_observer(batch):
                    load = PLAIN.load_leaf
                    plain = tuple(
                        load(batch, _offset_address(address, at), None, leaf, mask, site) for at, leaf in leaves
                    )
        except LaunchError:
            self._report_failed_vector(batch, address, leaves, mask, site)
            raise
        if observed is None:
            return self.compose(
                [self.load_leaf(batch, _offset_address(address, at), None, leaf, mask, site) for at, leaf in leaves]
            )
        live = batch.exclude_ended(mask)
        return plain if live is None else self.report_read(batch, Access(site, *observed, vector, live, plain))

    def store(
        self,
        batch: RunningBatch,
        address: PointerValue,
        leaves: Leaves,
        vector: int,
        value: Any,
        mask: LaneMask,
        site: AccessSite,
    ) -> None:
        """Store a struct or vector. Observers see one access for a vector, as on a GPU.

        Parameters
        ----------
        batch, address, leaves, vector, mask, site
            As of `load`.
        value : value of the algebra
            The struct or vector.
        """
        plain = self.strip(value)
        try:
            observed = _find_vector(batch, address, vector, mask, site)
            if observed is not None:
                with without_observer(batch):
                    for (at, leaf), part in zip(leaves, plain, strict=True):
                        PLAIN.store_leaf(batch, _offset_address(address, at), None, leaf, part, mask, site)
        except LaunchError:
            self._report_failed_vector(batch, address, leaves, mask, site)
            raise
        if observed is None:
            for (at, leaf), part in zip(leaves, self.parts(value), strict=True):
                self.store_leaf(batch, _offset_address(address, at), None, leaf, part, mask, site)
            return
        live = batch.exclude_ended(mask)
        if live is not None:
            self.report_write(batch, Access(site, *observed, vector, live, plain), value)

    def load_leaf(
        self, batch: RunningBatch, address: PointerValue, index: Any, leaf: Leaf, mask: LaneMask, site: AccessSite
    ) -> Any:
        """Load scalars or pointers.

        Parameters
        ----------
        batch, mask, site
            As of `load`.
        address : PointerValue
            The address of element 0, for each lane.
        index : int, array or None
            The element, one for all lanes or one per lane; None for 0.
        leaf : Scalar or Pointer
            The type of the elements; a pointer is stored as a 64-bit number.
        """
        if isinstance(leaf, Pointer):
            return self.convert(
                partial(to_pointer, mask=mask), self.read(address, batch, index, INT64.dtype, mask, site)
            )
        return self.read(address, batch, index, leaf.dtype, mask, site)

    def store_leaf(
        self,
        batch: RunningBatch,
        address: PointerValue,
        index: Any,
        leaf: Leaf,
        value: Any,
        mask: LaneMask,
        site: AccessSite,
    ) -> None:
        """Store scalars or pointers.

        Parameters
        ----------
        batch, address, index, leaf, mask, site
            As of `load_leaf`.
        value : value of the algebra
            The values.
        """
        if isinstance(leaf, Pointer):
            self.write(address, batch, index, INT64.dtype, self.convert(PointerValue.number, value), mask, site)
        else:
            self.write(address, batch, index, leaf.dtype, value, mask, site)

    def _report_failed_vector(
        self, batch: RunningBatch, address: PointerValue, leaves: Leaves, mask: LaneMask, site: AccessSite
    ) -> None:
        _, first = leaves[0]
        assert isinstance(first, Scalar)
        self.report_failed_access(batch, address, None, first.dtype, mask, site, len(leaves))

    # Between lanes.

    def exchange(
        self,
        op: str,
        dtype: np.dtype[Any],
        mask_argument: Evaluator,
        operand: Evaluator,
        others: Sequence[Evaluator],
        notify: ExchangeNotifier,
    ) -> Evaluator:
        """Return a closure of an exchange between the lanes of a warp.

        Parameters
        ----------
        op : str
            Such as "__shfl_down_sync".
        dtype : dtype
            The type of the result.
        mask_argument : Evaluator
            The mask argument, bare.
        operand : Evaluator
            The value of each lane.
        others : sequence of Evaluator
            The further arguments, bare: of a shuffle the source lane or distance, and the width.
        notify : callable
            Notifies the observer; called with frame, mask, mask argument and further arguments.
        """

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            members, value = mask_argument(frame, mask), operand(frame, mask)
            arguments = [other(frame, mask) for other in others]
            batch, scheduler = frame.batch, frame.batch.scheduler
            if scheduler is None:
                notify(frame, mask, members, arguments)
                return exchanges.run_warp_operation(op, batch, mask, [members, value, *arguments]).astype(
                    dtype, copy=False
                )
            sync = scheduler.wait_for_lanes(op, mask, members, [value, *arguments])
            return sync.compute_once(lambda: exchange(frame, sync))

        def exchange(frame: CallFrame, sync: WarpOperation) -> Any:
            notify(frame, sync.mask, sync.member_mask, sync.operands[1:])
            return exchanges.run_warp_operation(op, frame.batch, sync.mask, [sync.member_mask, *sync.operands]).astype(
                dtype, copy=False
            )

        return run

    def product(self, op: str, dtype: np.dtype[Any], operands: Sequence[Evaluator]) -> Evaluator:
        """Return a closure of an element of a matrix product, which full warps compute."""

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            sync = synchronize_warps(op, frame, mask, [operand(frame, mask) for operand in operands])
            return sync.compute_once(lambda: exchanges.run_warp_operation(op, frame.batch, sync.mask, [*sync.operands]))

        return run

    def vote(self, op: str, predicate: Evaluator, barrier: Barrier) -> Evaluator:
        """Return a closure of a vote of a block at a barrier."""
        barrier = self.wrap_barrier(barrier)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            arrived, votes = barrier(frame, mask, np.not_equal(predicate(frame, mask), 0))
            return exchanges.block_vote(op, frame.batch, arrived, votes)

        return run

    def wrap_barrier(self, barrier: Barrier) -> Barrier:
        """Return a barrier for use in the middle of a statement."""
        return barrier

    # Functions and variables.

    #: If not None, called with slot, value and mask after each assignment to a variable.
    on_assign: Callable[[int, Any, LaneMask], None] | None = None

    def bind_arguments(
        self, function: ir.Function, arguments: Sequence[Any], variables: dict[str, PointerValue]
    ) -> Sequence[Any]:
        """Return the values of a kernel's arguments."""
        return arguments

    def body(self, function: ir.Function, body: Executable) -> Executable:
        """Return the closure of a function's body, which runs in a frame that contains its arguments."""
        return body


PLAIN = PlainValues()


def synchronize_warps(op: str, frame: CallFrame, mask: LaneMask, operands: Sequence[Any]) -> WarpOperation:
    """Synchronize all lanes of each warp, and return the operands of all of them.

    Parameters
    ----------
    op : str
        The operation: lanes synchronize only with lanes that execute the same one.
    frame : CallFrame
        The running call.
    mask : LaneMask
        The lanes that arrive.
    operands : sequence
        Their operands, each one for all lanes or one per lane.
    """
    scheduler = frame.batch.scheduler
    if scheduler is None:
        return WarpOperation(mask, exchanges.ALL_LANES, operands)
    return scheduler.wait_for_lanes(op, mask, exchanges.ALL_LANES, operands)


def _find_vector(
    batch: RunningBatch, address: PointerValue, vector: int, mask: LaneMask, site: AccessSite
) -> tuple[DeviceMemory, Any] | None:
    """Return the memory and the element of a vector whose access observers see instead of those of its parts."""
    if not vector or address.mixed:
        return None
    found = address.find_element(batch, vector, mask, site)  # tests the alignment before any access
    return found if batch.observer is not None else None


def _offset_address(address: PointerValue, offset: int) -> PointerValue:
    return address.offset_by(offset, 1) if offset else address
