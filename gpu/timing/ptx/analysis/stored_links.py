"""Loops that follow links which they also store, as pointer jumping does: the blocks shorten each other's paths."""

from __future__ import annotations

from collections.abc import Sequence

from gpu.timing.ptx.analysis.backward_slices import (
    MEMORY_OPCODES,
    build_argument_comparison,
    find_address_registers,
    find_spaces,
)
from gpu.timing.ptx.analysis.control_flow import NaturalLoop
from gpu.timing.ptx.analysis.lane_dependence import find_dependent_registers
from gpu.timing.ptx.program import PtxInstruction, PtxKernel


def follows_stored_links(kernel: PtxKernel, loop: NaturalLoop) -> bool:
    """Return whether a loop loads addresses from an array of global memory that it stores to, and ends by such a load.

    Links are places in the array itself. Other values that blocks exchange shorten no path.
    """
    instructions = [each for number in sorted(loop.blocks) for each in kernel.blocks[number].instructions]
    accesses = [each for each in instructions if "global" in find_spaces(each)]
    loads, stores = ([each for each in accesses if each.opcode == opcode] for opcode in ("ld", "st"))
    arithmetic = [each for each in instructions if each.opcode not in MEMORY_OPCODES]
    have_distinct_arguments = build_argument_comparison(kernel)

    def follows(link: PtxInstruction) -> bool:
        alike = [each for each in loads if not have_distinct_arguments(each, link)]
        linked = find_dependent_registers([*arithmetic, *alike], lambda each: each in alike)
        return not linked.isdisjoint(find_address_registers(link))

    return any(
        any(not have_distinct_arguments(store, link) for store in stores)
        and follows(link)
        and _decides_jump(link, instructions)
        for link in loads
    )


def _decides_jump(load: PtxInstruction, instructions: Sequence[PtxInstruction]) -> bool:
    """Return whether a loaded value determines a jump, through some instructions alone."""
    dependent = find_dependent_registers(instructions, lambda each: each is load)
    return any(each.ends_block and each.guard in dependent for each in instructions)
