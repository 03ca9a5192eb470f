"""The state of one `asm` statement while its instructions are lowered: registers, operands and IR statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from gpu.simulator import ir
from gpu.simulator.frontend.assembly.parsing import Instruction, find_order, find_scope, parse_number
from gpu.simulator.frontend.clang.parsing import Cursor, get_reported_position
from gpu.simulator.frontend.lowering.conversions import build_constant, convert
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.types import BOOL, INT32, INT64, UINT8, UINT32, Pointer, Scalar, Type

ADVICE = "Use the intrinsic for it, such as __ldg, __popc or __shfl_sync."
_KINDS = {"u": "uint", "b": "uint", "s": "int", "f": "float"}
_AXES = ("x", "y", "z")
_SPECIAL = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
_BITS: dict[tuple[str, str], str] = {
    ("float32", "i"): "__float_as_int",
    ("float32", "u"): "__float_as_uint",
    ("float64", "i"): "__double_as_longlong",
    ("float64", "u"): "__double_as_longlong",
}


@dataclass
class AssemblyStatement:
    """The registers and the lowered statements of one `asm` statement."""

    lower: Lowering
    cursor: Cursor
    registers: dict[str, ir.Expression] = field(default_factory=dict)
    statements: list[ir.Statement] = field(default_factory=list)
    accumulators: dict[str, ir.Expression] = field(default_factory=dict)
    """Initial values of the accumulators, which are read only where a product is added to them."""

    instruction: Instruction = field(init=False)
    """The instruction that is being lowered."""

    def __post_init__(self) -> None:
        self.position = get_reported_position(self.cursor)

    @contextmanager
    def guard(self, condition: ir.Expression) -> Iterator[None]:
        """Execute the statements that are added inside only in lanes in which a condition holds."""
        enclosing, self.statements = self.statements, []
        yield
        inner, self.statements = self.statements, enclosing
        self.statements.append(ir.If(condition, ir.Block(tuple(inner)), None, self.position))

    def declare(self, name: str, type: Type, value: ir.Expression | None) -> ir.Local:
        """Add a register with an initial value, or without one."""
        local = ir.Local(type, self.lower.scope.new_slot(), name)
        self.registers[name] = local
        self.statements.append(ir.Declare(local.slot, type, value, self.position, name))
        return local

    def emit(self, expression: ir.Expression) -> None:
        """Add the evaluation of an expression."""
        self.statements.append(ir.Evaluate(expression, self.position))

    def lower_by_name(self, instruction: Instruction) -> None:
        """Lower an instruction to a call of the shim's function for it."""
        target, *operands = instruction.operands or ("",)
        name = "_".join((instruction.operation, *instruction.modifiers, *instruction.types))
        self.store(target, self.call(name, operands))

    def call(self, name: str, operands: Sequence[str | ir.Expression]) -> ir.Expression:
        """Return a call of the shim's function for an instruction, with operands of the source or expressions."""
        try:
            callee = self.lower.scope.unit.find_header_function(f"__lockstep_ptx_{name}")
        except StopIteration:
            raise self.unsupported_error() from None
        function = self.lower.scope.add_call(callee, self.position)
        if len(operands) != len(function.parameters):
            raise self.unsupported_error()
        values = tuple(
            self.value(operand, type) if isinstance(operand, str) else self.reinterpret(operand, type)
            for operand, (_, type) in zip(operands, function.parameters, strict=True)
        )
        return ir.Call(function.type, function, values, self.position)

    def unsupported_error(self) -> Exception:
        """Return the error of an instruction that the simulator does not support."""
        return build_unsupported_error(self.cursor, f"the instruction {self.instruction}", advice=ADVICE)

    def find_type(self, name: str) -> Scalar:
        """Return the type of a name such as "u32"."""
        if name == "pred":
            return BOOL
        if not re.fullmatch(r"[usb](8|16|32|64)|f(32|64)", name):
            raise self.unsupported_error()
        return Scalar(f"{_KINDS[name[0]]}{name[1:]}")

    def value(self, text: str, type: Type) -> ir.Expression:
        """Return an operand as a value of a type; a register's bits are reinterpreted."""
        if text in self.registers:
            return self.reinterpret(self.registers[text], type)
        if text.startswith("!") and text[1:].strip() in self.registers:
            return ir.Unary(BOOL, "!", self.value(text[1:].strip(), BOOL))
        if text.startswith(("%", "$")):  # "$" replaces a single "%" before the name
            return self.reinterpret(self._special(text.lstrip("%$")), type)
        number = parse_number(text)
        if number is None or not isinstance(type, Scalar):
            raise self.unsupported_error()
        if isinstance(number, int):
            bits = number & ((1 << 8 * type.size) - 1)
            if type.is_float:
                return build_constant(type, number)
            return build_constant(
                type, bits - (1 << 8 * type.size) if type.is_signed and bits >> (8 * type.size - 1) else bits
            )
        return build_constant(type, number)

    def _special(self, name: str) -> ir.Expression:
        word, _, axis = name.partition(".")
        if word in _SPECIAL and axis in _AXES:
            return ir.Special(UINT32, _SPECIAL[word], _AXES.index(axis))
        if word in ("clock", "clock64", "globaltimer"):
            return ir.Clock(INT64)
        return self.call(name.replace(".", "_"), [])

    def reinterpret(self, value: ir.Expression, type: Type) -> ir.Expression:
        """Return a value whose bits are those of another."""
        if isinstance(type, Pointer):
            return ir.Cast(type, value)
        assert isinstance(type, Scalar)
        if isinstance(value.type, Pointer):
            value = ir.Cast(INT64, value)
        assert isinstance(value.type, Scalar)
        if value.type.is_float and not type.is_float and type != BOOL:
            name = _BITS[value.type.name, "i" if type.is_signed else "u"]
            bits = INT64 if value.type.size == 8 else INT32 if type.is_signed else UINT32
            return convert(ir.Intrinsic(bits, name, (value,)), type, self.cursor)
        if type.is_float and not value.type.is_float:
            name, bits = ("__longlong_as_double", INT64) if type.size == 8 else ("__uint_as_float", UINT32)
            return ir.Intrinsic(type, name, (convert(value, bits, self.cursor),))
        return convert(value, type, self.cursor)

    def store(self, target: str, value: ir.Expression) -> None:
        """Assign a value to a register; "_" only evaluates it."""
        if target == "_":
            self.emit(value)
            return
        local = self.registers.get(target)
        if not isinstance(local, ir.Local):
            raise self.unsupported_error()
        self.emit(ir.Assign(local.type, local, self.reinterpret(value, local.type)))

    def place(self, text: str, type: Scalar, offset: int = 0, *, suffixes: Sequence[str] | None = None) -> ir.Element:
        """Return the element at an address; `suffixes` replace those of the instruction."""
        suffixes = self.instruction.suffixes if suffixes is None else suffixes
        match = re.fullmatch(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?\w+)\s*)?\]", text)
        number = parse_number(match[2] or "0") if match is not None else None
        if match is None or not isinstance(number, int) or match[1] not in self.registers:
            raise self.unsupported_error()
        base = self.registers[match[1]]
        pointer: ir.Expression = ir.Cast(Pointer(type), base)
        if isinstance(base.type, Scalar) and any(word.startswith("shared") for word in suffixes):
            pointer = ir.SharedAddress(Pointer(type), base, self.position)
        elif isinstance(base.type, Scalar) and base.type.size < 8:
            raise build_unsupported_error(
                self.cursor, "a 32-bit address in asm", advice='Pass the pointer itself: "l"(p).'
            )
        if number + offset:
            pointer = ir.Member(Pointer(type), pointer, number + offset)
        order = find_order(suffixes)
        return ir.Element(
            type,
            pointer,
            None,
            self.position,
            volatile=order is not None,
            is_dereferenced=True,
            order=order,
            scope="system" if order == "volatile" else find_scope(suffixes, "system"),
            is_read_only="nc" in suffixes,
        )

    def shared_pointer(self, text: str) -> ir.Expression:
        """Return the pointer for an address in shared memory, such as a barrier's."""
        return self.place(text, UINT8, suffixes=("shared",)).pointer

    def global_pointer(self, text: str) -> ir.Expression:
        """Return the pointer for an address in global memory."""
        return self.place(text, UINT8, suffixes=("global",)).pointer

    def immediate(self, text: str) -> int | float | None:
        """Return an immediate operand, or a constant that is passed in as one."""
        register = self.registers.get(text)
        return int(register.value) if isinstance(register, ir.Const) else parse_number(text)


Lowerings = Mapping[str, Callable[[AssemblyStatement, Instruction], None]]
"""Functions that lower instructions, by operation."""
