"""Asynchronous copies and mbarriers of inline PTX."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpu.simulator import ir
from gpu.simulator.frontend.assembly.parsing import Instruction
from gpu.simulator.frontend.assembly.statement import AssemblyStatement, Lowerings
from gpu.simulator.frontend.lowering.conversions import build_constant
from gpu.simulator.frontend.lowering.cuda_functions import build_phase_operation
from gpu.simulator.types import BOOL, INT32, UINT32, UINT64, VOID


def _lower_cp(asm: AssemblyStatement, instruction: Instruction) -> None:
    """Lower an asynchronous copy, or the wait for such copies."""
    match instruction.suffixes:
        case ("async", "mbarrier", "arrive", *rest):
            pointer, adds_arrival = asm.shared_pointer(instruction.operands[0]), int("noinc" not in rest)
            count = build_constant(UINT32, adds_arrival)
            asm.emit(build_phase_operation(asm.lower, "bind", pointer, count, asm.position))
        case ("async", "bulk", "commit_group"):
            asm.emit(ir.AsyncCommit(VOID, "bulk"))
        case ("async", "bulk", "wait_group", *_):
            left = asm.value(instruction.operands[0], UINT64)
            asm.emit(ir.AsyncWait(VOID, left, "bulk"))
        case ("async", "bulk", "tensor", "2d", "shared::cluster" | "shared::cta", "global", *rest) if _is_tile(rest):
            _lower_tensor_copy(asm, instruction)
        case ("async", "bulk", "shared::cluster" | "shared::cta", "global", *_):
            to, source, size, barrier, *_ = instruction.operands
            _lower_bulk_copy(asm, asm.shared_pointer(to), asm.global_pointer(source), size, barrier)
        case ("async", "bulk", "global", "shared::cta", *_):
            to, source, size, *_ = instruction.operands
            _lower_bulk_copy(asm, asm.global_pointer(to), asm.shared_pointer(source), size, "")
        case ("async", "commit_group"):
            asm.emit(ir.AsyncCommit(VOID))
        case ("async", "wait_all"):
            asm.emit(ir.AsyncWait(VOID, None))
        case ("async", "wait_group"):
            left = asm.value(instruction.operands[0], UINT64)
            asm.emit(ir.AsyncWait(VOID, left))
        case ("async", "ca" | "cg", "shared" | "shared::cta", "global", *_):
            to, source, size, *source_size = instruction.operands
            asm.emit(
                ir.AsyncCopy(
                    VOID,
                    asm.shared_pointer(to),
                    asm.global_pointer(source),
                    asm.value(size, UINT64),
                    asm.value(source_size[0], UINT64) if source_size else None,
                    asm.position,
                )
            )
        case _:
            raise asm.unsupported_error()


def _lower_bulk_copy(asm: AssemblyStatement, to: ir.Expression, source: ir.Expression, size: str, barrier: str) -> None:
    waits = asm.shared_pointer(barrier) if barrier else None
    asm.lower.scope.function.has_phases |= bool(barrier)
    copy = ir.BulkCopy(VOID, to, source, asm.value(size, UINT32), waits, asm.position)
    asm.emit(copy)


def _lower_tensor_copy(asm: AssemblyStatement, instruction: Instruction) -> None:
    """Lower a copy of a tensor map's box to shared memory, of this block or of several blocks of the cluster."""
    is_multicast = "multicast::cluster" in instruction.suffixes
    if len(instruction.operands) != (4 if is_multicast else 3):
        raise asm.unsupported_error()
    to, source, barrier, *block_mask = instruction.operands
    operands = re.fullmatch(r"\[\s*([^,\s]+)\s*,\s*\{\s*([^,\s]+)\s*,\s*([^,\s]+)\s*\}\s*\]", source)
    if operands is None:
        raise asm.unsupported_error()
    map_pointer = asm.place(f"[{operands[1]}]", UINT64, suffixes=("param",)).pointer
    coordinates = (asm.value(operands[number], INT32) for number in (2, 3))
    asm.lower.scope.function.has_phases = True
    copy = asm.call(
        "tensor_copy_multicast" if is_multicast else "tensor_copy",
        (asm.shared_pointer(to), map_pointer, *coordinates, asm.shared_pointer(barrier), *block_mask),
    )
    asm.emit(copy)


def _lower_mbarrier(asm: AssemblyStatement, instruction: Instruction) -> None:
    position = asm.position

    def emit(op: str, barrier: ir.Expression, argument: ir.Expression) -> None:
        asm.emit(build_phase_operation(asm.lower, op, barrier, argument, position))

    match instruction.suffixes:
        case ("init", *_):
            emit("init", asm.shared_pointer(instruction.operands[0]), asm.value(instruction.operands[1], UINT32))
        case ("inval", *_):
            return
        case ("expect_tx" | "complete_tx" as op, *_):
            address, amount = instruction.operands[:2]
            emit(op.removesuffix("_tx"), asm.shared_pointer(address), asm.value(amount, UINT32))
        case ("arrive" | "arrive_drop" as op, *rest) if "noComplete" not in rest:
            target, address, *counts = instruction.operands
            barrier = asm.shared_pointer(address)
            count: ir.Expression = build_constant(UINT32, 1)
            if counts and "expect_tx" in rest:
                emit("expect", barrier, asm.value(counts[0], UINT32))
            elif counts:
                count = asm.value(counts[0], UINT32)
            operation = "drop" if op.endswith("drop") else "arrive"
            arrived = build_phase_operation(
                asm.lower, operation, barrier, count, position, is_relaxed="relaxed" in rest
            )
            asm.store(target, arrived)
        case ("test_wait" | "try_wait", *rest):
            target, address, parity, *_ = instruction.operands
            barrier, number = asm.shared_pointer(address), asm.value(parity, UINT32)
            is_complete = build_phase_operation(
                asm.lower, "test", barrier, number, position, is_relaxed="relaxed" in rest
            )
            if "until" in instruction.suffixes:
                wait_loop = ir.Loop(ir.Unary(BOOL, "!", is_complete), None, ir.Block(()), True, position)
                asm.statements.append(wait_loop)
            else:
                asm.store(target, is_complete)
        case _:
            raise asm.unsupported_error()


def _is_tile(suffixes: Sequence[str]) -> bool:
    """Return whether the suffixes of a tensor copy are those of a box that an mbarrier completes."""
    words = [word for word in suffixes if word != "tile"]
    return words in (["mbarrier::complete_tx::bytes"], ["mbarrier::complete_tx::bytes", "multicast::cluster"])


LOWERINGS: Lowerings = {
    "cp": _lower_cp,
    "mbarrier": _lower_mbarrier,
}
