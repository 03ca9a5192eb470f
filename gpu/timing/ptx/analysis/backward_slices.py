"""Backward slices of a kernel: the instructions that determine branches and addresses; no others are executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from gpu.timing.ptx.program import PtxInstruction, PtxKernel
from gpu.timing.ptx.thread_operations import has_thread_operations

_SPACES = ("global", "shared", "local", "const")
MEMORY_OPCODES = ("ld", "ldu", "st", "atom", "red", "tex", "cp", "ldmatrix")
"""Opcodes that access memory."""
_CONTROL_OPCODES = ("bar", "barrier", "call")


def find_access_slice(kernel: PtxKernel) -> set[PtxInstruction]:
    """Return the backward slice of all jumps, of predicates of memory accesses, and of addresses.

    If a loaded value is in the slice, so are the stores to memory from which it may be loaded. Aliasing is decided per
    state space; a generic access may alias all of them.
    """
    return _compute_backward_slice(
        kernel,
        {name for instruction in kernel.instructions for name in _find_control_registers(instruction)},
        find_spaces,
    )


def find_jump_slice(kernel: PtxKernel) -> set[PtxInstruction] | None:
    """Return the backward slice of all jumps; None if it contains values that the kernel stores."""
    instructions = list(kernel.instructions)
    registers = {
        name
        for instruction in instructions
        if instruction.ends_block or instruction.opcode in _CONTROL_OPCODES
        for name in instruction.read_registers
    }
    slice_ = _compute_backward_slice(kernel, registers, lambda store: ())
    loads = [each for each in slice_ if each.opcode in MEMORY_OPCODES and "param" not in each.modifiers]
    stores = [instruction for instruction in instructions if instruction.opcode in ("st", "atom", "red")]
    if any(instruction.opcode == "call" for instruction in instructions) or not set(stores).isdisjoint(slice_):
        return None
    have_distinct_arguments = build_argument_comparison(kernel)
    for store in stores:
        for load in loads:
            if not set(find_spaces(store)).isdisjoint(find_spaces(load)) and not have_distinct_arguments(store, load):
                return None
    return slice_


def build_argument_comparison(kernel: PtxKernel) -> Callable[[PtxInstruction, PtxInstruction], bool]:
    """Return a function that decides whether two addresses are in arrays from different kernel arguments."""
    find_arguments = cache(partial(_find_arguments, kernel.find_writers()))

    def have_distinct_arguments(one: PtxInstruction, other: PtxInstruction) -> bool:
        arrays = find_arguments(one), find_arguments(other)
        return all(arrays) and arrays[0].isdisjoint(arrays[1])

    return have_distinct_arguments


def _find_arguments(writers: Mapping[str, Sequence[PtxInstruction]], instruction: PtxInstruction) -> set[str]:
    """Return the pointer arguments of the kernel from which an address is computed."""
    pending = find_address_registers(instruction)
    visited, arguments = set(pending), set[str]()
    while pending:
        for maker in writers.get(pending.pop(), ()):
            if maker.opcode in ("ld", "ldu") and "param" in maker.modifiers:
                arguments.update(maker.operands[1:] if maker.type[1:] == "64" else ())
            elif maker.opcode not in MEMORY_OPCODES:
                pending += [name for name in maker.read_registers if name not in visited]
                visited.update(maker.read_registers)
    return arguments


def _compute_backward_slice(
    kernel: PtxKernel, registers: set[str], stores_to: Callable[[PtxInstruction], Sequence[str]]
) -> set[PtxInstruction]:
    """Return the instructions that compute the given registers, and stores to memory that these load from."""
    instructions = list(kernel.instructions)
    read_spaces: set[str] = set()
    slice_: set[PtxInstruction] = set()
    previous_size = -1
    while previous_size != len(slice_) + len(registers):
        previous_size = len(slice_) + len(registers)
        for instruction in instructions:
            if instruction in slice_:
                continue
            is_source_store = instruction.opcode in ("st", "red", "atom") and not read_spaces.isdisjoint(
                stores_to(instruction)
            )
            if not is_source_store and registers.isdisjoint(instruction.written_registers):
                continue
            slice_.add(instruction)
            registers.update(instruction.read_registers)
            if instruction.opcode in ("ld", "ldu", "atom", "tex") and "param" not in instruction.modifiers:
                read_spaces.update(find_spaces(instruction))
    return slice_


def _find_control_registers(instruction: PtxInstruction) -> tuple[str, ...]:
    """Return the registers of an instruction that determine control flow, its addresses, or which lanes it counts."""
    if instruction.ends_block or instruction.opcode in _CONTROL_OPCODES:
        return instruction.read_registers
    if instruction.opcode not in MEMORY_OPCODES or "param" in instruction.modifiers:
        return (instruction.guard,) if instruction.guard and has_thread_operations(instruction) else ()
    if instruction.opcode == "cp":
        return instruction.read_registers
    addressed = find_address_registers(instruction)
    return (*addressed, instruction.guard) if instruction.guard else tuple(addressed)


def find_address_registers(instruction: PtxInstruction) -> list[str]:
    """Return the registers of an instruction's addresses."""
    addresses = [operand for operand in instruction.operands if operand.startswith("[")]
    return [name for name in instruction.read_registers if any(name in address for address in addresses)]


def find_spaces(instruction: PtxInstruction) -> tuple[str, ...]:
    """Return the state spaces that an instruction may access; all, if its address is generic."""
    return tuple(word for word in instruction.modifiers if word in _SPACES) or _SPACES
