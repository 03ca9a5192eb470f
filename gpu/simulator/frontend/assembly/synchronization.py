"""Warp operations, barriers, fences and traps of inline PTX."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.frontend.assembly.parsing import Instruction, find_order
from gpu.simulator.frontend.assembly.statement import AssemblyStatement, Lowerings
from gpu.simulator.frontend.lowering.conversions import build_constant, convert
from gpu.simulator.frontend.lowering.cuda_functions import build_cluster_barrier
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.types import BOOL, INT32, UINT32, VOID, Scalar

_SHUFFLES = {"idx": "__shfl_sync", "up": "__shfl_up_sync", "down": "__shfl_down_sync", "bfly": "__shfl_xor_sync"}
_FENCES = {"cta": "__threadfence_block", "cluster": "__threadfence_cluster", "sys": "__threadfence_system"}
_BARRIER_VOTES = {"popc": "__syncthreads_count", "and": "__syncthreads_and", "or": "__syncthreads_or"}


def _warp(asm: AssemblyStatement, target: str, type: Scalar, op: str, values: tuple[ir.Expression, ...]) -> None:
    asm.store(target, ir.Warp(type, op, values, asm.position))


def _lower_shfl(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, source, distance, clamp_operand, *mask = instruction.operands
    kind = instruction.modifiers[-1] if instruction.modifiers else ""
    clamp = asm.value(clamp_operand, INT32)
    if kind not in _SHUFFLES or not mask or "|" in target or not isinstance(clamp, ir.Const):
        raise asm.unsupported_error()
    width = 32 - (int(clamp.value) >> 8 & 31)
    values = (
        asm.value(mask[0], UINT32),
        asm.value(source, UINT32),
        asm.value(distance, UINT32 if kind in ("up", "down") else INT32),
        build_constant(INT32, width),
    )
    _warp(asm, target, UINT32, _SHUFFLES[kind], values)


def _lower_vote(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, predicate, *mask = instruction.operands
    kind = instruction.modifiers[-1] if instruction.modifiers else ""
    if kind not in ("ballot", "any", "all") or not mask:
        raise asm.unsupported_error()
    vote_value = convert(asm.value(predicate, BOOL), INT32, asm.cursor)
    values = (asm.value(mask[0], UINT32), vote_value)
    type = UINT32 if kind == "ballot" else INT32
    vote: ir.Expression = ir.Warp(type, f"__{kind}_sync", values, asm.position)
    if kind != "ballot":
        vote = ir.Binary(BOOL, "!=", vote, build_constant(INT32, 0))
    asm.store(target, vote)


def _lower_match(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, value, mask = instruction.operands
    if instruction.modifiers != ("any",):
        raise asm.unsupported_error()
    type = asm.find_type(instruction.types[-1])
    values = (asm.value(mask, UINT32), asm.value(value, type))
    _warp(asm, target, UINT32, "__match_any_sync", values)


def _lower_redux(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, value, mask = instruction.operands
    type = asm.find_type(instruction.types[-1])
    values = (asm.value(mask, UINT32), asm.value(value, type))
    _warp(asm, target, type, f"__reduce_{instruction.modifiers[0]}_sync", values)


def _lower_activemask(asm: AssemblyStatement, instruction: Instruction) -> None:
    _warp(asm, instruction.operands[0], UINT32, "__activemask", ())


def _lower_bar(asm: AssemblyStatement, instruction: Instruction) -> None:
    if instruction.modifiers == ("warp",):
        lanes = asm.value(instruction.operands[0], UINT32)
        asm.emit(ir.Fence(VOID, "__syncwarp", asm.position, lanes))
    elif instruction.operands == ("0",) and not instruction.modifiers:
        asm.statements.append(ir.Barrier(asm.position))
    elif "red" in instruction.modifiers:
        _lower_barrier_vote(asm, instruction)
    else:
        _lower_named_barrier(asm, instruction)


def _lower_barrier_vote(asm: AssemblyStatement, instruction: Instruction) -> None:
    """Lower a barrier that combines a predicate of each thread."""
    vote_name = _BARRIER_VOTES.get(instruction.modifiers[-1])
    if vote_name is None or len(instruction.operands) < 3:
        raise asm.unsupported_error()
    target, number, *count, predicate = instruction.operands
    if number != "0" or count:
        raise build_unsupported_error(
            asm.cursor,
            f"{instruction} at a barrier other than 0 or with a thread count",
            advice=f"{instruction.operation}.red at barrier 0, for all threads of the block, is supported.",
        )
    votes = convert(asm.value(predicate, BOOL), INT32, asm.cursor)
    vote: ir.Expression = ir.Warp(INT32, vote_name, (votes,), asm.position)
    is_count = vote_name == "__syncthreads_count"
    if not is_count:
        vote = ir.Binary(BOOL, "!=", vote, build_constant(INT32, 0))
    asm.store(target, convert(vote, UINT32, asm.cursor) if is_count else vote)


def _lower_named_barrier(asm: AssemblyStatement, instruction: Instruction) -> None:
    arrives = instruction.modifiers == ("arrive",)
    if not (arrives or not instruction.modifiers) or len(instruction.operands) not in ((2,) if arrives else (1, 2)):
        raise asm.unsupported_error()
    number, *count = (asm.value(operand, UINT32) for operand in instruction.operands)
    asm.lower.scope.function.has_phases = True
    barrier = ir.NamedBarrier(
        VOID,
        "arrive" if arrives else "sync",
        number,
        count[0] if count else None,
        instruction.operation == "bar" or "aligned" in instruction.suffixes,
        asm.position,
    )
    asm.emit(barrier)


def _lower_barrier(asm: AssemblyStatement, instruction: Instruction) -> None:
    match instruction.suffixes:
        case ("cluster", "arrive" | "wait" as part, *modifiers):
            position, is_relaxed = asm.position, "relaxed" in modifiers
            barrier = build_cluster_barrier(asm.lower, part, position, is_relaxed=is_relaxed)
            asm.emit(barrier)
        case _:
            _lower_bar(asm, instruction)


def _lower_membar(asm: AssemblyStatement, instruction: Instruction) -> None:
    name = next((_FENCES[word] for word in instruction.suffixes if word in _FENCES), "__threadfence")
    order = find_order(instruction.suffixes)
    if order in ("acquire", "release", "acq_rel"):
        name += f".{order}"
    asm.emit(ir.Fence(VOID, name, asm.position))


def _lower_fence(asm: AssemblyStatement, instruction: Instruction) -> None:
    if "proxy" in instruction.suffixes:
        asm.emit(ir.Fence(VOID, "fence.proxy.async", asm.position))
    elif "mbarrier_init" in instruction.suffixes:
        asm.emit(ir.Fence(VOID, "fence.mbarrier_init", asm.position))
    else:
        _lower_membar(asm, instruction)


def _lower_trap(asm: AssemblyStatement, instruction: Instruction) -> None:
    assertion = ir.Assertion(VOID, build_constant(BOOL, 0), "trap is not reached", asm.position)
    asm.emit(assertion)


LOWERINGS: Lowerings = {
    "shfl": _lower_shfl,
    "vote": _lower_vote,
    "match": _lower_match,
    "redux": _lower_redux,
    "activemask": _lower_activemask,
    "bar": _lower_bar,
    "barrier": _lower_barrier,
    "membar": _lower_membar,
    "fence": _lower_fence,
    "trap": _lower_trap,
}
