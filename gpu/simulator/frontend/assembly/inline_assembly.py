"""`asm` statements: lower PTX instructions to IR nodes, or to calls of the shim's functions for them."""

from __future__ import annotations

import re
from dataclasses import replace

from gpu.simulator import ir
from gpu.simulator.frontend.assembly import (
    arithmetic,
    async_copies,
    data_movement,
    matrices,
    parsing,
    synchronization,
)
from gpu.simulator.frontend.assembly.statement import ADVICE, AssemblyStatement, Lowerings
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.types import BOOL, UINT32, Pointer, Scalar

_WITHOUT_EFFECT = frozenset(
    ("prefetch", "prefetchu", "discard", "applypriority", "nanosleep", "pmevent", "griddepcontrol", "setmaxnreg")
)
_LOWERINGS: Lowerings = {
    **data_movement.LOWERINGS,
    **arithmetic.LOWERINGS,
    **synchronization.LOWERINGS,
    **matrices.LOWERINGS,
    **async_copies.LOWERINGS,
}
"""Instructions that are no calls of the shim's functions."""


def lower_assembly(lower: Lowering, cursor: Cursor) -> list[ir.Statement]:
    """Lower an `asm` statement: read the operands, execute all instructions, then write the outputs."""
    definition = lower.scope.definition
    asm_statements = parsing.parse_asm_statements(definition.printed_text)
    asm_cursors = [descendant for descendant in definition.descendants() if descendant.kind == CursorKind.ASM_STMT]
    indices = [number for number, asm_cursor in enumerate(asm_cursors) if asm_cursor.has_same_location(cursor)]
    if len(asm_statements) != len(asm_cursors) or not indices:
        raise build_unsupported_error(cursor, "this asm statement", advice=ADVICE)
    asm_statement = asm_statements[indices[0]]
    if len({asm_statements[index] for index in indices}) > 1:
        raise build_unsupported_error(cursor, "several asm statements of one macro", advice=ADVICE)
    parsed = parsing.parse_instructions(asm_statement.template)
    if parsed is None:
        raise build_unsupported_error(cursor, "a jump or invalid PTX in asm", advice=ADVICE)
    return _lower_instructions(AssemblyStatement(lower, cursor), parsed, asm_statement.constraints) if parsed else []


def _lower_instructions(
    asm: AssemblyStatement, parsed: list[parsing.Instruction], constraints: tuple[str, ...]
) -> list[ir.Statement]:
    outputs: list[tuple[ir.Place, ir.Local]] = []
    sums = _find_accumulators(parsed)
    # Explicitly named clobbers have no expressions.
    for number, (constraint, operand) in enumerate(zip(constraints, asm.cursor.children, strict=False)):
        name = f"%{number}"
        if constraint[0] in "=+":
            place = asm.lower.place(operand)
            if place is None:
                raise build_unsupported_error(operand, "this output operand of asm")
            if isinstance(place, ir.Element) and name in sums and constraint[0] == "+":
                place = replace(place, is_accumulator=True)
            register_type = place.type if isinstance(place.type, Scalar | Pointer) else UINT32
            initial: ir.Expression | None = None
            if isinstance(place, ir.Element) and place.is_accumulator:
                initial = ir.Load(place.type, place)
            elif constraint[0] == "+":
                initial = asm.lower.value(operand)
            if initial is not None and name in sums:
                asm.accumulators[name], initial = initial, None
            outputs.append((place, asm.declare(name, register_type, initial)))
            continue
        value = asm.lower.value(operand)
        asm.registers[name] = value if isinstance(value, ir.Const) else asm.declare(name, value.type, value)
    for each in parsed:
        asm.instruction = each
        if each.operation == ".reg":
            for name in each.operands:
                asm.declare(name, asm.find_type(each.types[0]), None)
            continue
        _lower_guarded(asm, each)
    for place, local in outputs:
        asm.emit(ir.Assign(place.type, place, local))
    return [ir.Block(tuple(asm.statements))]


def _lower_guarded(asm: AssemblyStatement, instruction: parsing.Instruction) -> None:
    if not instruction.guard:
        _lower_instruction(asm, instruction)
        return
    condition = asm.value(instruction.guard, BOOL)
    if instruction.is_negated:
        condition = ir.Unary(BOOL, "!", condition)
    with asm.guard(condition):
        _lower_instruction(asm, instruction)


def _lower_instruction(asm: AssemblyStatement, instruction: parsing.Instruction) -> None:
    if instruction.operation in _LOWERINGS:
        _LOWERINGS[instruction.operation](asm, instruction)
    elif instruction.operation not in _WITHOUT_EFFECT:
        asm.lower_by_name(instruction)


def _find_accumulators(parsed: list[parsing.Instruction]) -> frozenset[str]:
    """Return the registers that a statement uses only once, as the accumulator of a warpgroup's product."""
    sums: set[str] = set()
    other_registers: list[str] = []
    for each in parsed:
        is_product = each.suffixes[:1] == ("mma_async",)
        names = [name for operand in each.operands[is_product:] for name in re.findall(r"%\d+", operand)]
        if is_product:
            accumulators = re.findall(r"%\d+", each.operands[0])
            other_registers += sums.intersection(accumulators)
            sums.update(accumulators)
        other_registers += names
    return frozenset(sums.difference(other_registers))
