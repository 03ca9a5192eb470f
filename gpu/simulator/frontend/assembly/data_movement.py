"""Moves, loads, stores and atomic operations of inline PTX."""

from __future__ import annotations

from typing import Any

from gpu.simulator import ir
from gpu.simulator.frontend.assembly.parsing import Instruction, find_order, find_scope, split_parts
from gpu.simulator.frontend.assembly.statement import AssemblyStatement, Lowerings
from gpu.simulator.frontend.lowering.conversions import build_constant, convert
from gpu.simulator.frontend.lowering.cuda_functions import build_phase_operation
from gpu.simulator.types import INT32, UINT8, UINT32, Pointer, Scalar

_ATOMICS = frozenset(("add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"))


def _lower_mov(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, source = instruction.operands
    type = asm.find_type(instruction.types[-1])
    if source.startswith("{"):
        parts = split_parts(source)
        narrow = Scalar(f"uint{8 * type.size // len(parts)}")
        combined: ir.Expression = build_constant(type, 0)
        for index, part in enumerate(parts):
            value = convert(asm.value(part, narrow), type, asm.cursor)
            shift = build_constant(INT32, index * 8 * narrow.size)
            combined = ir.Binary(type, "|", combined, ir.Binary(type, "<<", value, shift))
        asm.store(target, combined)
    elif target.startswith("{"):
        parts = split_parts(target)
        narrow = Scalar(f"uint{8 * type.size // len(parts)}")
        for index, part in enumerate(parts):
            shift = build_constant(INT32, index * 8 * narrow.size)
            value = ir.Binary(type, ">>", asm.value(source, type), shift)
            asm.store(part, convert(value, narrow, asm.cursor))
    else:
        register = asm.registers.get(source)
        keeps_pointer = register is not None and isinstance(register.type, Pointer) and type.size == 8
        asm.store(target, register if keeps_pointer and register is not None else asm.value(source, type))


def _lower_cvta(asm: AssemblyStatement, instruction: Instruction) -> None:
    if not any(word.startswith("shared") for word in instruction.suffixes):
        _lower_mov(asm, instruction)
        return
    target, source = instruction.operands
    type = asm.find_type(instruction.types[-1])
    if "to" in instruction.modifiers:
        pointer = asm.registers.get(source)
        if pointer is None:
            raise asm.unsupported_error()
        if not isinstance(pointer.type, Pointer):
            pointer = ir.Cast(Pointer(UINT8), pointer)
        asm.store(target, ir.SharedAddress(type, pointer, asm.position))
    else:
        number = asm.value(source, type)
        asm.store(target, ir.SharedAddress(Pointer(UINT8), number, asm.position))


def _lower_ld(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, address = instruction.operands
    type = asm.find_type(instruction.types[-1])
    parts = split_parts(target) if target.startswith("{") else [target]
    for number, part in enumerate(parts):
        place = asm.place(address, type, number * type.size)
        asm.store(part, ir.Load(type, place))


def _lower_st(asm: AssemblyStatement, instruction: Instruction) -> None:
    address, source, *barrier = instruction.operands
    type = asm.find_type(instruction.types[-1])
    parts = split_parts(source) if source.startswith("{") else [source]
    for number, part in enumerate(parts):
        place = asm.place(address, type, number * type.size)
        asm.emit(ir.Assign(type, place, asm.value(part, type)))
    if "async" in instruction.suffixes and len(barrier) == 1:
        # The store completes at once, which is allowed, and signals its barrier.
        byte_count = build_constant(UINT32, type.size * len(parts))
        completion = build_phase_operation(
            asm.lower, "complete", asm.shared_pointer(barrier[0]), byte_count, asm.position
        )
        asm.emit(completion)
    elif "async" in instruction.suffixes or barrier:
        raise asm.unsupported_error()


def _lower_red(asm: AssemblyStatement, instruction: Instruction) -> None:
    asm.emit(_atomic(asm, instruction, instruction.operands, used=False))


def _lower_atom(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, *operands = instruction.operands
    asm.store(target, _atomic(asm, instruction, operands, used=True))


def _atomic(asm: AssemblyStatement, instruction: Instruction, operands: Any, *, used: bool) -> ir.Expression:
    address, *values = operands
    op = instruction.modifiers[0] if instruction.modifiers else ""
    if op not in _ATOMICS or len(values) != (2 if op == "cas" else 1):
        raise asm.unsupported_error()
    type = asm.find_type(instruction.types[-1])
    arguments = tuple(asm.value(value, type) for value in values)
    place = asm.place(address, type)
    scope, order = find_scope(instruction.suffixes, "device"), find_order(instruction.suffixes) or "relaxed"
    return ir.Atomic(type, op, place, arguments, used, scope, order)


def _lower_mapa(asm: AssemblyStatement, instruction: Instruction) -> None:
    """Lower the mapping of an address to another block of the cluster: a shared address, or a pointer."""
    target, address, rank = instruction.operands
    position, block_rank = asm.position, asm.value(rank, UINT32)
    type = asm.find_type(instruction.types[-1])
    is_number = "shared::cluster" in instruction.suffixes
    pointer: ir.Expression = ir.Cast(Pointer(UINT8), asm.value(address, type))
    if is_number:
        pointer = ir.SharedAddress(Pointer(UINT8), asm.value(address, type), position)
    mapped: ir.Expression = ir.ClusterAddress(Pointer(UINT8), pointer, block_rank, position)
    asm.store(target, ir.SharedAddress(type, mapped, position) if is_number else mapped)


LOWERINGS: Lowerings = {
    "mov": _lower_mov,
    "cvta": _lower_cvta,
    "ld": _lower_ld,
    "st": _lower_st,
    "red": _lower_red,
    "atom": _lower_atom,
    "mapa": _lower_mapa,
    "ldu": _lower_ld,
}
