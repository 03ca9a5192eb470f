"""What one thread runs: statements and expressions as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpu.simulator import ir
from gpu.simulator.compiled import arithmetic
from gpu.simulator.compiled.assembly import Assembly, NotCompiled, memory_type, value_type
from gpu.simulator.compiled.own_memory import Part, Reached, Rows, place_reached, reached
from gpu.simulator.compiled.plan import Bind, Frame
from gpu.simulator.types import BOOL, INT64, Pointer, Scalar, Type, leaves

Value = str | tuple[str, ...]
_SUBSCRIPT = {"+": "add nsw", "-": "sub nsw", "*": "mul nsw"}


class Storage(Protocol):
    """Where the variables of frames are, for the thread that is being written."""

    def variable(self, frame: Frame, slot: int, type: Type) -> str:
        """Return the address of a variable."""
        ...

    def computed(self, frame: Frame, slot: int) -> ir.Expression | None:
        """Return what is computed wherever a variable is used, None for one that is kept."""
        ...

    def memory(self, frame: Frame, slot: int) -> str | None:
        """Return the address of an array: the thread's own, or a shared one; None for a slot that holds a pointer."""
        ...

    def own_memory(self, frame: Frame, slot: int, size: int) -> str:
        """Return the address of memory of the thread's own that comes to life."""
        ...

    def part(self, frame: Frame, slot: int) -> Part | None:
        """Return the memory that is taken apart and that a variable holds, or leads to."""
        ...

    def lead_to(self, frame: Frame, slot: int, part: Part) -> None:
        """Take note that a parameter leads to memory that is taken apart."""
        ...

    def member(self, part: Part, size: int) -> str:
        """Return the address of a thread's member of such memory."""
        ...

    def members(self, part: Part) -> dict[int, int]:
        """Return the members of such memory: their offsets and sizes in bytes."""
        ...

    def rows(self, part: Part) -> Rows | None:
        """Return what rows such memory has become, None where each member has an array."""
        ...

    def in_row(self, part: Part, row: str) -> str:
        """Return the address of a thread's value in a row, an i64."""
        ...

    def variable_of_module(self, name: str) -> str:
        """Return the address of a __constant__ or __device__ variable."""
        ...

    def quotient(self, frame: Frame, expression: ir.Binary) -> str | None:
        """Return threadIdx.x divided by a constant, or the rest, as i64, where that is known of the threads around."""
        ...

    def special(self, name: str, axis: int) -> str:
        """Return a value of threadIdx, blockIdx, blockDim or gridDim: i32."""
        ...

    def flags(self, frame: Frame, expression: ir.Binary) -> str:
        """Return the flags of an integer operation that is known not to wrap."""
        ...

    def is_shared(self, frame: Frame, pointer: ir.Expression) -> bool:
        """Whether a pointer surely leads to shared memory, which only this block uses."""
        ...

    def assertion(self, assertion: ir.Assertion) -> tuple[str, int]:
        """Return the address of the word that a failure leaves, and the assertion's number, from 1."""
        ...

    def leave(self, frame: Frame, kind: str) -> None:
        """Write what a `break`, a `continue` or a `return` out of the region does."""
        ...


@dataclass
class _Targets:
    """Where jumps of a function lead; "" is out of the region."""

    breaks: str = ""
    continues: str = ""
    returns: str = ""
    result: Callable[[Value, Type], None] | None = field(default=None)


class ThreadWriter:
    """Writes what a thread does.

    Parameters
    ----------
    asm : Assembly
    storage : Storage
    """

    def __init__(self, asm: Assembly, storage: Storage) -> None:
        self._asm = asm
        self._storage = storage
        self._targets = _Targets()
        self._depth = 0
        self.access = ""
        """What is appended to loads and stores: the group of accesses that threads make independently."""

    # Memory.

    def load(self, address: str, type: Type) -> Value:
        """Return the value at an address."""
        values = []
        for offset, leaf in leaves(type):
            place = self._asm.offset(address, offset)
            value = self._asm.value(f"load {memory_type(leaf)}, ptr {place}, align {leaf.size}{self.access}", "l")
            values.append(self._asm.value(f"icmp ne i8 {value}, 0") if leaf == BOOL else value)
        return values[0] if isinstance(type, Scalar | Pointer) else tuple(values)

    def store(self, address: str, type: Type, value: Value) -> None:
        """Write a value to an address."""
        given = value if isinstance(value, tuple) else (value,)
        for (offset, leaf), part in zip(leaves(type), given, strict=True):
            place = self._asm.offset(address, offset)
            what = self._asm.value(f"zext i1 {part} to i8") if leaf == BOOL else part
            self._asm.emit(f"store {memory_type(leaf)} {what}, ptr {place}, align {leaf.size}{self.access}")

    def read(self, frame: Frame, place: ir.Place, type: Type) -> Value:
        """Return the value at a place."""
        apart = self._apart(frame, place_reached(place)) if isinstance(place, ir.Element) else None
        if apart is None or isinstance(type, Scalar | Pointer):
            return self.load(self.address(frame, place), type)
        member = self._members(frame, *apart)
        return tuple(self._single(self.load(member(offset, leaf.size), leaf)) for offset, leaf in leaves(type))

    def write(self, frame: Frame, place: ir.Place, type: Type, value: Value) -> None:
        """Write a value to a place."""
        apart = self._apart(frame, place_reached(place)) if isinstance(place, ir.Element) else None
        if apart is None or isinstance(type, Scalar | Pointer):
            self.store(self.address(frame, place), type, value)
        else:
            self._write_members(self._members(frame, *apart), type, value)

    def _write_members(self, member: Callable[[int, int], str], type: Type, value: Value) -> None:
        given = value if isinstance(value, tuple) else (value,)
        for (offset, leaf), each in zip(leaves(type), given, strict=True):
            self.store(member(offset, leaf.size), leaf, each)

    def _apart(self, frame: Frame, found: Reached | None) -> tuple[Part, Reached] | None:
        """Return the part of memory that is taken apart and that a pointer leads to."""
        part = self._storage.part(frame, found.slot) if found is not None else None
        return (part.moved(found.offset), found) if part is not None and found is not None else None

    def _members(self, frame: Frame, part: Part, found: Reached) -> Callable[[int, int], str]:
        """Return what gives the address of a member, so many bytes further and so many bytes long."""
        if not found.indices:
            return lambda offset, size: self._storage.member(part.moved(offset), size)
        rows = self._storage.rows(part)
        assert rows is not None
        row = str(part.offset // rows.width)
        for index, by in found.indices:
            at = self._asm.value(f"mul nsw i64 {self.subscript(frame, index)}, {by // rows.width}")
            row = self._asm.value(f"add nsw i64 {row}, {at}")
        width = rows.width
        return lambda offset, size: self._storage.in_row(
            part, self._asm.value(f"add nsw i64 {row}, {offset // width}") if offset else row
        )

    @staticmethod
    def _single(value: Value) -> str:
        assert isinstance(value, str)
        return value

    def address(self, frame: Frame, place: ir.Place) -> str:
        """Return where a place is."""
        if isinstance(place, ir.Local):
            return self._storage.variable(frame, place.slot, place.type)
        apart = self._apart(frame, place_reached(place))
        if apart is not None:
            return self._members(frame, *apart)(0, place.type.size)
        start = self.scalar(frame, place.pointer)
        return self._moved(frame, start, place.index, place.type.size) if place.index is not None else start

    def _moved(self, frame: Frame, start: str, index: ir.Expression, size: int) -> str:
        at = self.subscript(frame, index)
        if size in (1, 2, 4, 8):
            return self._asm.value(f"getelementptr i{8 * size}, ptr {start}, i64 {at}", "p")
        return self._asm.offset(start, self._asm.value(f"mul nsw i64 {at}, {size}"))

    def subscript(self, frame: Frame, index: ir.Expression) -> str:
        """Return an index in 64 bits. Sums and products of indices that fit no 32 bits point outside of any array, so
        they are computed in 64 bits at once: LLVM then sees that neighbouring threads access neighbouring elements.
        """
        match index:
            case ir.Const(_, known):
                return str(int(known))
            case ir.Local(_, slot, _) if (computed := self._storage.computed(frame, slot)) is not None:
                return self.subscript(frame, computed)
            case ir.Binary() if (quotient := self._storage.quotient(frame, index)) is not None:
                return quotient
            case ir.Binary(Scalar(name), "+" | "-" | "*" as op, left, right) if name.endswith(("32", "64")):
                first, second = self.subscript(frame, left), self.subscript(frame, right)
                return self._asm.value(f"{_SUBSCRIPT[op]} i64 {first}, {second}", "x")
            case ir.Cast(Scalar() as target, operand) if (
                isinstance(operand.type, Scalar)
                and not operand.type.is_float
                and operand.type != BOOL
                and 4 <= operand.type.size <= target.size
            ):
                return self.subscript(frame, operand)
        assert isinstance(index.type, Scalar)
        value = self.scalar(frame, index)
        if index.type.size == 8:
            return value
        return arithmetic.cast(self._asm, index.type, Scalar("int64"), value)

    # Expressions.

    def scalar(self, frame: Frame, expression: ir.Expression) -> str:
        """Return the value of an expression that is no struct."""
        value = self.value(frame, expression)
        assert isinstance(value, str)
        return value

    def value(self, frame: Frame, expression: ir.Expression) -> Value:
        """Write what computes an expression, and return its value; of a struct, one for each leaf."""
        asm = self._asm
        match expression:
            case ir.Const(type, value):
                return arithmetic.literal(type, value)
            case ir.Null():
                return "null"
            case ir.Local(type, slot, _):
                computed = self._storage.computed(frame, slot)
                if computed is not None:
                    return self.value(frame, computed)
                memory = self._storage.memory(frame, slot)
                return memory if memory is not None else self.load(self._storage.variable(frame, slot, type), type)
            case ir.Global(_, name):
                return self._storage.variable_of_module(name)
            case ir.Special(_, name, axis):
                return self._storage.special(name, axis)
            case ir.Unary(_, op, operand):
                assert isinstance(operand.type, Scalar)
                return arithmetic.unary(asm, op, operand.type, self.scalar(frame, operand))
            case ir.Binary(_, op, left, right):
                assert isinstance(left.type, Scalar)
                quotient = self._storage.quotient(frame, expression)
                if quotient is not None:
                    return arithmetic.cast(asm, INT64, left.type, quotient)
                first, second = self.scalar(frame, left), self.scalar(frame, right)
                if op in ("<<", ">>") and isinstance(right.type, Scalar):
                    second = arithmetic.cast(asm, right.type, left.type, second)
                return arithmetic.binary(
                    asm, op, left.type, first, second, flags=self._storage.flags(frame, expression)
                )
            case ir.Logical(_, op, left, right):
                return self._logical(frame, op, left, right)
            case ir.Select(type, condition, chosen, other):
                return self._select(frame, type, condition, chosen, other)
            case ir.Sequence(_, before, after):
                self.value(frame, before)
                return self.value(frame, after)
            case ir.Cast():
                return self._cast(frame, expression)
            case ir.Offset(type, pointer, index):
                return self._moved(frame, self.scalar(frame, pointer), index, type.element.size)
            case ir.Member(_, pointer, offset):
                return asm.offset(self.scalar(frame, pointer), offset)
            case ir.Construct(_, parts):
                flat: list[str] = []
                for part in parts:
                    given = self.value(frame, part)
                    flat += given if isinstance(given, tuple) else (given,)
                return tuple(flat)
            case ir.Extract(type, operand, first_leaf):
                whole = self.value(frame, operand)
                assert isinstance(whole, tuple)
                if isinstance(type, Scalar | Pointer):
                    return whole[first_leaf]
                return whole[first_leaf : first_leaf + len(leaves(type))]
            case ir.Temporary(type, inner):
                place = asm.alloca(type.element.size, "temporary")
                if inner is not None:
                    self.store(place, type.element, self.value(frame, inner))
                return place
            case ir.Distance():
                return self._distance(frame, expression)
            case ir.Load(type, place):
                return self.read(frame, place, type)
            case ir.Assign(type, place, inner):
                new = self.value(frame, inner)
                self.write(frame, place, type, new)
                return new
            case ir.Update():
                return self._update(frame, expression)
            case ir.Intrinsic(type, name, arguments):
                kinds: list[Any] = [argument.type for argument in arguments]
                given_values = [self.scalar(frame, argument) for argument in arguments]
                return arithmetic.intrinsic(asm, name, type, kinds, given_values)
            case ir.Atomic():
                return self._atomic(frame, expression)
            case ir.Fence():
                asm.emit("fence seq_cst")
                return "0"
            case ir.Assertion():
                return self._assert(frame, expression)
            case ir.Call():
                return self._call(frame, expression)
        raise NotCompiled(_WORDS.get(type_name(expression), f"{type_name(expression).lower()} expressions"))

    def _logical(self, frame: Frame, op: str, left: ir.Expression, right: ir.Expression) -> str:
        asm = self._asm
        first = self.scalar(frame, left)
        if _is_cheap(right):
            second = self.scalar(frame, right)
            return asm.value(f"{'and' if op == '&&' else 'or'} i1 {first}, {second}")
        result = asm.alloca(1, "logical")
        asm.emit(f"store i1 {first}, ptr {result}")
        needed = first if op == "&&" else asm.value(f"xor i1 {first}, true")
        with asm.when(needed):
            asm.emit(f"store i1 {self.scalar(frame, right)}, ptr {result}")
        return asm.value(f"load i1, ptr {result}")

    def _select(
        self, frame: Frame, type: Type, condition: ir.Expression, chosen: ir.Expression, other: ir.Expression
    ) -> Value:
        asm = self._asm
        decided = self.scalar(frame, condition)
        if isinstance(type, Scalar | Pointer) and _is_cheap(chosen) and _is_cheap(other):
            first, second = self.scalar(frame, chosen), self.scalar(frame, other)
            return asm.value(f"select i1 {decided}, {value_type(type)} {first}, {value_type(type)} {second}")
        place = asm.alloca(type.size, "select")
        then, otherwise, after = asm.fresh("then"), asm.fresh("else"), asm.fresh("after")
        asm.branch(decided, then, otherwise)
        for label, side in ((then, chosen), (otherwise, other)):
            asm.place(label)
            self._store_own(place, type, self.value(frame, side))
            asm.jump(after)
        asm.place(after)
        return self._load_own(place, type)

    def _store_own(self, place: str, type: Type, value: Value) -> None:
        kept, self.access = self.access, ""
        self.store(place, type, value)
        self.access = kept

    def _load_own(self, place: str, type: Type) -> Value:
        kept, self.access = self.access, ""
        value = self.load(place, type)
        self.access = kept
        return value

    def _cast(self, frame: Frame, expression: ir.Cast) -> Value:
        source, target = expression.operand.type, expression.type
        operand = self.value(frame, expression.operand)
        if not isinstance(operand, str):
            return operand
        if isinstance(source, Scalar) and isinstance(target, Scalar):
            return arithmetic.cast(self._asm, source, target, operand)
        if isinstance(source, Pointer) and isinstance(target, Scalar):
            return arithmetic.pointer_number(self._asm, operand, target)
        if isinstance(source, Scalar) and isinstance(target, Pointer):
            number = arithmetic.cast(self._asm, source, Scalar("int64"), operand)
            return self._asm.value(f"inttoptr i64 {number} to ptr")
        return operand

    def _distance(self, frame: Frame, expression: ir.Distance) -> str:
        asm = self._asm
        assert isinstance(expression.left.type, Pointer)
        numbers = [
            asm.value(f"ptrtoint ptr {self.scalar(frame, side)} to i64") for side in (expression.left, expression.right)
        ]
        difference = asm.value(f"sub i64 {numbers[0]}, {numbers[1]}")
        return asm.value(f"sdiv i64 {difference}, {expression.left.type.element.size}")

    def _update(self, frame: Frame, expression: ir.Update) -> Value:
        asm, place = self._asm, expression.place
        by = expression.value
        if isinstance(expression.compute, Pointer):
            where = self.address(frame, place)
            old = self.load(where, place.type)
            assert isinstance(old, str)
            new = self._moved(frame, old, by, expression.compute.element.size)
        else:
            held, compute = expression.type, expression.compute
            assert isinstance(held, Scalar)
            right = self.scalar(frame, by)
            where = self.address(frame, place)
            old = self.load(where, place.type)
            assert isinstance(old, str)
            if expression.op in ("<<", ">>") and isinstance(by.type, Scalar):
                right = arithmetic.cast(asm, by.type, compute, right)
            widened = arithmetic.cast(asm, held, compute, old)
            computed = arithmetic.binary(asm, expression.op, compute, widened, right)
            new = arithmetic.cast(asm, compute, held, computed)
        self.store(where, place.type, new)
        return old if expression.gives_old else new

    def _atomic(self, frame: Frame, expression: ir.Atomic) -> str:
        asm, type = self._asm, expression.type
        what = memory_type(type)
        where = self.address(frame, expression.place)
        values = [self.scalar(frame, argument) for argument in expression.arguments]
        if expression.op == "cas":
            ints = f"i{8 * type.size}"
            pair = asm.value(f"cmpxchg ptr {where}, {ints} {values[0]}, {ints} {values[1]} seq_cst seq_cst")
            return asm.value(f"extractvalue {{ {ints}, i1 }} {pair}, 0")
        if self._storage.is_shared(frame, expression.place.pointer) and expression.op in _PLAIN:
            old = asm.value(f"load {what}, ptr {where}")
            new = arithmetic.binary(asm, _PLAIN[expression.op], type, old, values[0])
            asm.emit(f"store {what} {new}, ptr {where}")
            return old
        kind = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}.get(expression.op, expression.op)
        if type.is_float:
            kind = {"min": "fmin", "max": "fmax", "xchg": "xchg"}.get(kind, f"f{kind}")
        elif kind in ("min", "max") and not type.is_signed:
            kind = f"u{kind}"
        return asm.value(f"atomicrmw {kind} ptr {where}, {what} {values[0]} monotonic")

    def _assert(self, frame: Frame, assertion: ir.Assertion) -> str:
        """The first thread that finds the condition false leaves word of it, and its worker runs nothing more."""
        asm = self._asm
        holds, fails = asm.fresh("holds"), asm.fresh("fails")
        asm.branch(self.scalar(frame, assertion.condition), holds, fails)
        asm.place(fails)
        word, number = self._storage.assertion(assertion)
        pair = asm.value(f"cmpxchg ptr {word}, i64 0, i64 {number} seq_cst seq_cst")
        with asm.when(asm.value(f"extractvalue {{ i64, i1 }} {pair}, 1")):
            axes = [self._storage.special(name, axis) for name in ("threadIdx", "blockIdx") for axis in range(3)]
            for place, axis in enumerate(axes, start=1):
                asm.emit(f"store i64 {asm.value(f'zext i32 {axis} to i64')}, ptr {asm.offset(word, 8 * place)}")
        asm.emit("ret void")
        asm.ended = True
        asm.place(holds)
        return "0"

    def _call(self, frame: Frame, call: ir.Call) -> Value:
        """Write a function's body in place."""
        asm = self._asm
        if self._depth >= 24:
            raise NotCompiled("recursion")
        inner = Frame(asm.fresh(frame.path + "/call"), call.function, call.function.slots)
        for slot, ((_, type), argument) in enumerate(zip(call.function.parameters, call.arguments, strict=True)):
            if not self._leads(inner, slot, frame, argument):
                value = self.value(frame, argument)
                self._store_own(self._storage.variable(inner, slot, type), type, value)
        place = asm.alloca(call.type.size, "result")
        end = asm.fresh("returned")
        outer, self._targets = self._targets, _Targets(returns=end)
        self._targets.result = lambda value, type: self._store_own(place, type, value)
        self._depth += 1
        self.statement(inner, call.function.body)
        self._depth -= 1
        self._targets = outer
        asm.place(end)
        return self._load_own(place, call.type) if leaves(call.type) else "0"

    # Statements.

    def bind(self, bind: Bind, frame: Frame) -> None:
        """Write a parameter of an inlined function."""
        if not self._leads(bind.frame, bind.slot, frame, bind.value):
            place = self._storage.variable(bind.frame, bind.slot, bind.type)
            self.store(place, bind.type, self.value(frame, bind.value))

    def _leads(self, inner: Frame, slot: int, frame: Frame, argument: ir.Expression) -> bool:
        """Take note of a parameter that leads to memory that is taken apart; whether it does."""
        apart = self._apart(frame, reached(argument)) if isinstance(argument.type, Pointer) else None
        if apart is None:
            return False
        self._storage.lead_to(inner, slot, apart[0])
        return True

    def statement(self, frame: Frame, statement: ir.Statement) -> None:
        """Write a statement."""
        asm = self._asm
        match statement:
            case ir.Block(statements):
                for inner in statements:
                    self.statement(frame, inner)
            case ir.Evaluate(expression):
                self.value(frame, expression)
            case ir.Declare(slot, type, value):
                if value is not None and self._storage.computed(frame, slot) is None:
                    self.store(self._storage.variable(frame, slot, type), type, self.value(frame, value))
            case ir.DeclareMemory(slot, size, values, zeroed):
                self._declare_memory(frame, slot, size, values, zeroed)
            case ir.If(condition, then, orelse):
                labels = [asm.fresh(part) for part in ("then", "else", "after")]
                asm.branch(self.scalar(frame, condition), labels[0], labels[1])
                for label, side in ((labels[0], then), (labels[1], orelse)):
                    asm.place(label)
                    if side is not None:
                        self.statement(frame, side)
                    if not asm.ended:
                        asm.jump(labels[2])
                asm.place(labels[2])
            case ir.Loop():
                self._loop(frame, statement)
            case ir.Switch():
                self._switch(frame, statement)
            case ir.Jump(kind):
                label = self._targets.breaks if kind == "break" else self._targets.continues
                if label:
                    asm.jump(label)
                else:
                    self._storage.leave(frame, kind)
            case ir.Return(value):
                self._return(frame, value)
            case _:
                raise NotCompiled(f"a {type_name(statement).lower()} here")

    def _declare_memory(self, frame: Frame, slot: int, size: int, values: Any, zeroed: bool) -> None:
        asm = self._asm
        part = self._storage.part(frame, slot)
        if part is not None:
            for offset, width in self._storage.members(part).items() if zeroed else ():
                asm.emit(f"store i{8 * width} 0, ptr {self._storage.member(part.moved(offset), width)}{self.access}")
            for offset, value in values:
                member = self._members(frame, part.moved(offset), Reached(slot, offset))
                self._write_members(member, value.type, self.value(frame, value))
            return
        place = self._storage.own_memory(frame, slot, size)
        if zeroed:
            asm.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            asm.emit(f"call void @llvm.memset.p0.i64(ptr align 16 {place}, i8 0, i64 {size}, i1 false)")
        for offset, value in values:
            self.store(asm.offset(place, offset), value.type, self.value(frame, value))

    def _loop(self, frame: Frame, loop: ir.Loop) -> None:
        asm = self._asm
        test, body, step, end = (asm.fresh(part) for part in ("test", "body", "step", "end"))
        outer = (self._targets.breaks, self._targets.continues)
        self._targets.breaks, self._targets.continues = end, step
        asm.jump(test if loop.tests_first else body)
        asm.place(test)
        if loop.condition is not None:
            asm.branch(self.scalar(frame, loop.condition), body, end)
        asm.place(body)
        self.statement(frame, loop.body)
        asm.place(step)
        if loop.step is not None:
            self.value(frame, loop.step)
        asm.jump(test)
        asm.place(end)
        self._targets.breaks, self._targets.continues = outer

    def _switch(self, frame: Frame, switch: ir.Switch) -> None:
        asm = self._asm
        assert isinstance(switch.value.type, Scalar)
        what, value, end = value_type(switch.value.type), self.scalar(frame, switch.value), asm.fresh("end")
        labels = [asm.fresh("section") for _ in switch.sections]
        default = next((label for label, each in zip(labels, switch.sections, strict=True) if each.is_default), end)
        cases = " ".join(
            f"{what} {case}, label %{label}"
            for label, section in zip(labels, switch.sections, strict=True)
            for case in section.values
        )
        asm.emit(f"switch {what} {value}, label %{default} [ {cases} ]")
        asm.ended = True
        outer, self._targets.breaks = self._targets.breaks, end
        for label, section in zip(labels, switch.sections, strict=True):
            asm.place(label)
            self.statement(frame, section.body)
        asm.place(end)
        self._targets.breaks = outer

    def _return(self, frame: Frame, value: ir.Expression | None) -> None:
        if not self._targets.returns:
            if value is not None and frame.result is not None:
                caller, slot, type = frame.result
                self.store(self._storage.variable(caller, slot, type), type, self.value(frame, value))
            self._storage.leave(frame, "return")
            return
        if value is not None:
            assert self._targets.result is not None
            self._targets.result(self.value(frame, value), value.type)
        self._asm.jump(self._targets.returns)


_PLAIN = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
_WORDS = {
    "Print": "printf",
    "Warp": "an exchange between threads in a lazy place",
    "IndirectCall": "a call through a function pointer",
    "GridBarrier": "a barrier of the whole grid",
    "Clock": "a clock",
    "WaitForChildren": "a wait for kernels that it launched",
}


def type_name(node: Any) -> str:
    """Return the word for a node of the IR."""
    return type(node).__name__


def _is_cheap(expression: Any) -> bool:
    """Whether an expression may be computed where C would not: it has no effect, and cannot fail."""
    match expression:
        case ir.Const() | ir.Local() | ir.Special() | ir.Null():
            return True
        case ir.Unary(_, _, operand) | ir.Cast(_, operand):
            return _is_cheap(operand)
        case ir.Binary(_, op, left, right):
            return op not in ("/", "%") and _is_cheap(left) and _is_cheap(right)
        case ir.Logical(_, _, left, right):
            return _is_cheap(left) and _is_cheap(right)
        case ir.Select(_, condition, chosen, other):
            return _is_cheap(condition) and _is_cheap(chosen) and _is_cheap(other)
        case ir.Intrinsic(_, name, arguments):
            return name in ("min", "max", "fminf", "fmaxf") and all(map(_is_cheap, arguments))
    return False
