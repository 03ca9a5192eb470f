"""Addresses of the places that expressions read and write, including memory that is split into scalars."""

from __future__ import annotations

from collections.abc import Callable

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.compiled.analysis.scalar_replacement import PointerTarget, SplitPlace, find_place_target, find_target
from gpu.simulator.compiled.block.memory import Value
from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.thread.context import ThreadContext
from gpu.simulator.types import BOOL, INT64, Pointer, Scalar, Type, leaves

_SUBSCRIPT = {"+": "add nsw", "-": "sub nsw", "*": "mul nsw"}


class AccessWriter:
    """Writes addresses, loads and stores.

    Parameters
    ----------
    find_strip_value : callable
        (frame, index) -> the index in 64 bits if it is a progression along a strip of threads; None otherwise.
    """

    def __init__(
        self, thread: ThreadContext, find_strip_value: Callable[[PlannedFrame, ir.Expression], str | None]
    ) -> None:
        self._thread = thread
        self._find_strip_value = find_strip_value

    def read(self, frame: PlannedFrame, place: ir.Place, type: Type) -> Value:
        """Return the value at a place."""
        if (
            isinstance(place, ir.Local)
            and (value := self._thread.memory.parameter_value(frame, place.slot)) is not None
        ):
            return value
        target = self._split_target(frame, find_place_target(place)) if isinstance(place, ir.Element) else None
        if target is None or isinstance(type, Scalar | Pointer):
            return self._thread.memory.load(self.address(frame, place), type)
        member = self._member_addresses(frame, *target)
        values: list[str] = []
        for offset, leaf in leaves(type):
            value = self._thread.memory.load(member(offset, leaf.size), leaf)
            assert isinstance(value, str)
            values.append(value)
        return tuple(values)

    def write(self, frame: PlannedFrame, place: ir.Place, type: Type, value: Value) -> None:
        """Write a value to a place.

        Parameters
        ----------
        frame : PlannedFrame
            The frame of the place's variables.
        place : ir.Place
            A variable or an element of memory.
        value : str or tuple of str
            The value; for a struct, one per leaf.
        """
        target = self._split_target(frame, find_place_target(place)) if isinstance(place, ir.Element) else None
        if target is None or isinstance(type, Scalar | Pointer):
            self._thread.memory.store(self.address(frame, place), type, value)
        else:
            self._write_members(self._member_addresses(frame, *target), type, value)

    def write_part(self, part: SplitPlace, type: Type, value: Value) -> None:
        """Write a value to memory that is split."""
        self._write_members(self._part_addresses(part), type, value)

    def address(self, frame: PlannedFrame, place: ir.Place) -> str:
        """Return the address of a place."""
        if isinstance(place, ir.Local):
            return self._thread.memory.variable_address(frame, place.slot, place.type)
        target = self._split_target(frame, find_place_target(place))
        if target is not None:
            return self._member_addresses(frame, *target)(0, place.type.size)
        start = self._thread.scalar(frame, place.pointer)
        return self.offset_address(frame, start, place.index, place.type.size) if place.index is not None else start

    def offset_address(self, frame: PlannedFrame, start: str, index: ir.Expression, size: int) -> str:
        """Return an address moved by a number of elements.

        Parameters
        ----------
        frame : PlannedFrame
            The frame of the index's variables.
        start : str
            The address of element 0.
        index : ir.Expression
            The number of elements, of an integer type.
        size : int
            Bytes per element.
        """
        offset = self._subscript(frame, index)
        if size in (1, 2, 4, 8):
            return self._thread.asm.value(f"getelementptr i{8 * size}, ptr {start}, i64 {offset}", "p")
        return self._thread.asm.offset(start, self._thread.asm.value(f"mul nsw i64 {offset}, {size}"))

    def alias_split_memory(self, inner: PlannedFrame, slot: int, frame: PlannedFrame, argument: ir.Expression) -> bool:
        """Make a parameter an alias of the split memory that its argument points to, if any.

        Parameters
        ----------
        inner : PlannedFrame
            The frame of the called function.
        slot : int
            The parameter's slot in it.
        frame : PlannedFrame
            The caller's frame.

        Returns
        -------
        bool
            False if the argument is not a pointer to split memory; nothing was changed.
        """
        target = self._split_target(frame, find_target(argument)) if isinstance(argument.type, Pointer) else None
        if target is None:
            return False
        self._thread.memory.set_alias(inner, slot, target[0])
        return True

    def _split_target(
        self, frame: PlannedFrame, target: PointerTarget | None
    ) -> tuple[SplitPlace, PointerTarget] | None:
        """Return the part of split memory that a pointer points to."""
        part = self._thread.memory.find_part(frame, target.slot) if target is not None else None
        return (part.offset_by(target.offset), target) if part is not None and target is not None else None

    def _member_addresses(
        self, frame: PlannedFrame, part: SplitPlace, target: PointerTarget
    ) -> Callable[[int, int], str]:
        """Return a function from a member's offset and size in bytes to its address."""
        if not target.indices:
            return self._part_addresses(part)
        rows = self._thread.memory.row_shape(part)
        assert rows is not None
        row = str(part.offset // rows.width)
        for index, stride in target.indices:
            offset = self._thread.asm.value(f"mul nsw i64 {self._subscript(frame, index)}, {stride // rows.width}")
            row = self._thread.asm.value(f"add nsw i64 {row}, {offset}")
        width = rows.width
        return lambda offset, size: self._thread.memory.row_address(
            part, self._thread.asm.value(f"add nsw i64 {row}, {offset // width}") if offset else row
        )

    def _part_addresses(self, part: SplitPlace) -> Callable[[int, int], str]:
        return lambda offset, size: self._thread.memory.member_address(part.offset_by(offset), size)

    def _write_members(self, member: Callable[[int, int], str], type: Type, value: Value) -> None:
        values = value if isinstance(value, tuple) else (value,)
        for (offset, leaf), each in zip(leaves(type), values, strict=True):
            self._thread.memory.store(member(offset, leaf.size), leaf, each)

    def _subscript(self, frame: PlannedFrame, index: ir.Expression) -> str:
        """Return an index in 64 bits.

        Sums and products of indices that do not fit into 32 bits point outside of any array, so compute them in 64
        bits; LLVM then detects that neighboring threads access neighboring elements.
        """
        strip_index = self._find_strip_value(frame, index)
        if strip_index is not None:
            return strip_index
        match index:
            case ir.Const(_, number):
                return str(int(number))
            case ir.Local(_, slot, _) if (computed := self._thread.memory.computed_expression(frame, slot)) is not None:
                return self._subscript(frame, computed)
            case ir.Binary() if (quotient := self._thread.block.quotient(frame, index)) is not None:
                return quotient
            case ir.Binary(Scalar(name), "+" | "-" | "*" as op, left, right) if name.endswith(("32", "64")):
                first, second = self._subscript(frame, left), self._subscript(frame, right)
                return self._thread.asm.value(f"{_SUBSCRIPT[op]} i64 {first}, {second}", "x")
            case ir.Cast(Scalar() as target, operand) if (
                isinstance(operand.type, Scalar)
                and not operand.type.is_float
                and operand.type != BOOL
                and 4 <= operand.type.size <= target.size
            ):
                return self._subscript(frame, operand)
        assert isinstance(index.type, Scalar)
        value = self._thread.scalar(frame, index)
        return value if index.type.size == 8 else arithmetic.emit_cast(self._thread.asm, index.type, INT64, value)
