"""Comparisons, conversions and arithmetic with carries of inline PTX; the shim has functions for the rest."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.frontend.assembly.parsing import Instruction
from gpu.simulator.frontend.assembly.statement import AssemblyStatement, Lowerings
from gpu.simulator.frontend.lowering.conversions import build_constant, convert
from gpu.simulator.types import BOOL, UINT32, Scalar

_COMPARES = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
_ROUNDINGS = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def _lower_setp(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, left, right, *extra_predicate = instruction.operands
    type = asm.find_type(instruction.types[-1])
    compare, *combine = instruction.modifiers
    if compare not in _COMPARES or len(combine) != len(extra_predicate) or len(extra_predicate) > 1:
        raise asm.unsupported_error()
    result: ir.Expression = ir.Binary(BOOL, _COMPARES[compare], asm.value(left, type), asm.value(right, type))
    if extra_predicate:
        result = asm.call(f"{combine[0]}_pred", [result, asm.value(extra_predicate[0], BOOL)])
    first, _, other = target.partition("|")
    asm.store(first.strip(), result)
    if other and not extra_predicate:
        asm.store(other.strip(), ir.Unary(BOOL, "!", asm.value(first.strip(), BOOL)))
    elif other:
        raise asm.unsupported_error()


def _lower_selp(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, chosen, other, condition = instruction.operands
    type = asm.find_type(instruction.types[-1])
    values = asm.value(chosen, type), asm.value(other, type)
    asm.store(target, ir.Select(type, asm.value(condition, BOOL), *values))


def _lower_cvt(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, source = instruction.operands
    if instruction.suffixes == ("rna", "tf32", "f32"):
        asm.store(target, asm.call("to_tf32", [source]))
        return
    target_type, source_type = (asm.find_type(name) for name in instruction.types)
    rounding = [word for word in instruction.modifiers if word in _ROUNDINGS]
    if set(instruction.modifiers) - {*_ROUNDINGS, "rz", "to", "space"} or "rz" in instruction.modifiers:
        raise asm.unsupported_error()
    value = asm.value(source, source_type)
    if rounding and source_type.is_float:
        value = ir.Intrinsic(source_type, _ROUNDINGS[rounding[0]] + ("f" if source_type.size == 4 else ""), (value,))
    asm.store(target, convert(value, target_type, asm.cursor))


def _lower_add(asm: AssemblyStatement, instruction: Instruction) -> None:
    if "cc" in instruction.modifiers:
        _lower_addc(asm, instruction)
    else:
        asm.lower_by_name(instruction)


def _lower_mad(asm: AssemblyStatement, instruction: Instruction) -> None:
    if "cc" in instruction.modifiers:
        _lower_madc(asm, instruction)
    else:
        asm.lower_by_name(instruction)


def _lower_addc(asm: AssemblyStatement, instruction: Instruction) -> None:
    type = Scalar(f"uint{8 * asm.find_type(instruction.types[-1]).size}")
    _, left, right = instruction.operands
    _lower_with_carry(asm, instruction, asm.value(left, type), asm.value(right, type))


def _lower_madc(asm: AssemblyStatement, instruction: Instruction) -> None:
    _, left, right, more = instruction.operands
    type = Scalar(f"uint{8 * asm.find_type(instruction.types[-1]).size}")
    product = asm.call(f"mul_{instruction.modifiers[0]}_{instruction.types[-1]}", [left, right])
    _lower_with_carry(asm, instruction, asm.reinterpret(product, type), asm.value(more, type))


def _lower_with_carry(
    asm: AssemblyStatement, instruction: Instruction, first: ir.Expression, second: ir.Expression
) -> None:
    """Add or subtract, with the saved carry if the instruction uses it, and save the new carry."""
    kind = "subc" if instruction.operation.startswith("sub") else "addc"
    carry = _get_carry(asm)
    before: ir.Expression = carry if instruction.operation in ("addc", "subc", "madc") else build_constant(UINT32, 0)
    unsigned = "u" + instruction.types[-1][1:]
    addends = [asm.declare(f"lockstep {number}", value.type, value) for number, value in enumerate((first, second))]
    operands = [*addends, before]
    value = asm.call(f"{kind}_{unsigned}", operands)
    result = asm.declare("lockstep result", value.type, value)
    if "cc" in instruction.modifiers:
        new_carry = asm.call(f"{kind}_carry_{unsigned}", operands)
        asm.emit(ir.Assign(UINT32, carry, new_carry))
    asm.store(instruction.operands[0], result)


def _get_carry(asm: AssemblyStatement) -> ir.Local:
    """Return the carry register, which persists across the `asm` statements of a function."""
    scope = asm.lower.scope
    if scope.carry is None:
        scope.carry = ir.Local(UINT32, scope.new_slot(), "carry")
        zero = build_constant(UINT32, 0)
        scope.hoisted_declarations.append(ir.Declare(scope.carry.slot, UINT32, zero, asm.position, "carry"))
    return scope.carry


LOWERINGS: Lowerings = {
    "setp": _lower_setp,
    "selp": _lower_selp,
    "cvt": _lower_cvt,
    "add": _lower_add,
    "mad": _lower_mad,
    "addc": _lower_addc,
    "madc": _lower_madc,
    "subc": _lower_addc,
    "sub": _lower_add,
}
