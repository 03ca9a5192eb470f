"""Exchanges between the lanes of a warp, and votes of a block, on arrays with one value per thread."""

from __future__ import annotations

import numpy as np

from gpu.base.warp import WARP
from gpu.simulator.compiled.block.lanes import ExchangeLanes
from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.llvm.assembly import UnsupportedKernel, value_type
from gpu.simulator.compiled.llvm.matrix_products import write_product
from gpu.simulator.ir.intrinsics import FULL_WARP_SYNC, MATRIX_PRODUCTS
from gpu.simulator.types import Scalar

_BITS = f"<{WARP} x i1>"
_WIDTHS = ("1", "2", "4", "8", "16", "32")


_VOTES = ("__activemask", "__ballot_sync", "__any_sync", "__all_sync")


def needs_addresses(op: str, number: int) -> bool:
    """Return whether an operation needs the address of an argument, even if all lanes pass the same value."""
    return op in MATRIX_PRODUCTS and number > 0


def reads_vectors(op: str) -> bool:
    """Return whether an operation reads each warp's arguments once, as vectors."""
    return op in _VOTES or op.startswith("__reduce_")


def write_exchange(lanes: ExchangeLanes, op: str, type: Scalar) -> None:
    """Write an operation; `type` is that of its result."""
    if op.startswith("__shfl"):
        _shuffle(lanes, op)
    elif op == FULL_WARP_SYNC:
        _check_full_warps(lanes)
    elif op in MATRIX_PRODUCTS:
        _matrix_product(lanes, type)
    elif op.startswith("__syncthreads"):
        _block_vote(lanes, op)
    elif op == "__match_any_sync":
        _match_any(lanes)
    elif op in _VOTES:
        _vote(lanes, op)
    elif op.startswith("__reduce_"):
        _reduce(lanes, op.removeprefix("__reduce_").removesuffix("_sync"), type)
    else:
        raise UnsupportedKernel(f"the exchange {op}")


def _shuffle(lanes: ExchangeLanes, op: str) -> None:
    width = lanes.uniform_argument(3) if lanes.has_argument(3) else str(WARP)
    distance = lanes.uniform_argument(2)
    if distance is not None and width in _WIDTHS:
        _shuffle_uniform(lanes, op, distance, int(width))
    else:
        _shuffle_general(lanes, op)


def _shuffle_uniform(lanes: ExchangeLanes, op: str, argument: str, width: int) -> None:
    """Shuffle all lanes by the same distance, in sections of `width`; the results of inactive lanes are not used."""
    asm, llvm_type = lanes.asm, value_type(lanes.argument_type(1))
    distance = asm.value(f"and i64 {asm.value(f'zext i32 {argument} to i64')}, {WARP - 1}")
    if op == "__shfl_sync":
        distance = asm.value(f"and i64 {distance}, {width - 1}")
    elif op != "__shfl_xor_sync":
        is_in_range = asm.value(f"icmp ult i64 {distance}, {width}")
        distance = asm.value(f"select i1 {is_in_range}, i64 {distance}, i64 0")
    with lanes.loop_over_threads() as thread:
        lane = asm.value(f"and i64 {thread}, {width - 1}")
        if op == "__shfl_sync":
            source = asm.value(f"or i64 {asm.value(f'and i64 {thread}, {-width}')}, {distance}")
            lanes.store_result(thread, lanes.argument(1, source))
            return
        match op:
            case "__shfl_up_sync":
                source, is_inside = (
                    asm.value(f"sub nsw i64 {thread}, {distance}"),
                    asm.value(f"icmp uge i64 {lane}, {distance}"),
                )
            case "__shfl_down_sync":
                source = asm.value(f"add nuw nsw i64 {thread}, {distance}")
                is_inside = asm.value(f"icmp ult i64 {asm.value(f'add nuw nsw i64 {lane}, {distance}')}, {width}")
            case _:
                source = asm.value(f"xor i64 {thread}, {distance}")
                end = asm.value(f"add nuw nsw i64 {asm.value(f'and i64 {thread}, {-width}')}, {width}")
                is_inside = asm.value(f"icmp ult i64 {source}, {end}")
        own_value, other_value = lanes.argument(1, thread), lanes.argument(1, source)
        lanes.store_result(
            thread, asm.value(f"select i1 {is_inside}, {llvm_type} {other_value}, {llvm_type} {own_value}")
        )


def _shuffle_general(lanes: ExchangeLanes, op: str) -> None:
    """Give each lane the value of another lane, or its own if that is outside of its section of `width` lanes."""
    asm = lanes.asm
    with lanes.loop_over_active() as thread:
        lane = asm.value(f"and i64 {thread}, {WARP - 1}")
        distance = asm.value(f"and i64 {asm.value(f'zext i32 {lanes.argument(2, thread)} to i64')}, {WARP - 1}")
        width = asm.value(f"sext i32 {lanes.argument(3, thread)} to i64") if lanes.has_argument(3) else str(WARP)
        # As PTX defines `shfl`, for any width: the bits of the lane that stay the same, and the others.
        kept = asm.value(f"and i64 {asm.value(f'sub i64 {WARP}, {width}')}, {WARP - 1}")
        free = asm.value(f"xor i64 {kept}, {WARP - 1}")
        first = asm.value(f"and i64 {lane}, {kept}")
        if op == "__shfl_sync":
            source = asm.value(f"or i64 {first}, {asm.value(f'and i64 {distance}, {free}')}")
        else:
            operation = {"__shfl_up_sync": "sub", "__shfl_down_sync": "add", "__shfl_xor_sync": "xor"}[op]
            source = asm.value(f"{operation} i64 {lane}, {distance}")
        is_inside = asm.value(f"icmp sle i64 {source}, {asm.value(f'or i64 {first}, {free}')}")
        if op != "__shfl_xor_sync":
            is_inside = asm.value(f"and i1 {is_inside}, {asm.value(f'icmp sge i64 {source}, {first}')}")
        chosen = asm.value(f"select i1 {is_inside}, i64 {source}, i64 {lane}")
        start = asm.value(f"sub i64 {thread}, {lane}")
        lanes.store_result(thread, lanes.argument(1, asm.value(f"add i64 {start}, {chosen}")))


def _vote(lanes: ExchangeLanes, op: str) -> None:
    """Write a vote of each warp: the lanes' answers are combined in one word."""
    asm = lanes.asm
    with lanes.loop_over_warps() as warp:
        answers = warp.participating_lanes()
        if op == "__all_sync":
            answers = asm.value(
                f"and {_BITS} {answers}, {asm.value(f'xor {_BITS} {warp.true_lanes(1)}, splat (i1 true)')}"
            )
        elif op != "__activemask":
            answers = asm.value(f"and {_BITS} {answers}, {warp.true_lanes(1)}")
        word = asm.value(f"bitcast {_BITS} {answers} to i32")
        if op in ("__any_sync", "__all_sync"):
            result = asm.value(f"icmp {'ne' if op == '__any_sync' else 'eq'} i32 {word}, 0")
            word = asm.value(f"zext i1 {result} to i32")
        warp.store_result(word)


def _reduce(lanes: ExchangeLanes, operation: str, type: Scalar) -> None:
    asm, llvm_type = lanes.asm, value_type(type)
    limits = np.iinfo(type.dtype)
    neutral = {"min": int(limits.max), "max": int(limits.min), "and": -1}.get(operation, 0)
    name = (
        {"min": "smin", "max": "smax"}.get(operation, operation)
        if type.is_signed
        else {"min": "umin", "max": "umax"}.get(operation, operation)
    )
    vector_type = f"<{WARP} x {llvm_type}>"
    asm.declare(f"{llvm_type} @llvm.vector.reduce.{name}.v{WARP}{llvm_type}({vector_type})")
    with lanes.loop_over_warps() as warp:
        active, values = warp.participating_lanes(), warp.argument_vector(1)
        selection = f"select {_BITS} {active}, {vector_type} {values}, {vector_type} splat ({llvm_type} {neutral})"
        warp.store_result(
            asm.value(
                f"call {llvm_type} @llvm.vector.reduce.{name}.v{WARP}{llvm_type}({vector_type} {asm.value(selection)})"
            )
        )


def _is_participating(lanes: ExchangeLanes, thread: str, lane: str) -> str:
    """Return whether a lane is active, and named by the mask that it passes, if there is one."""
    asm = lanes.asm
    is_active = lanes.is_active(thread)
    if not lanes.has_argument(0):
        return is_active
    shifted = asm.value(f"lshr i32 {lanes.argument(0, thread)}, {asm.value(f'trunc i64 {lane} to i32')}")
    return asm.value(f"and i1 {is_active}, {asm.value(f'trunc i32 {shifted} to i1')}")


def _is_true(lanes: ExchangeLanes, number: int, thread: str) -> str:
    kind = lanes.argument_type(number)
    return arithmetic.emit_cast(lanes.asm, kind, Scalar("bool"), lanes.argument(number, thread))


def _match_any(lanes: ExchangeLanes) -> None:
    asm = lanes.asm
    kind = lanes.argument_type(1)
    total = asm.alloca(8, "total")
    with lanes.loop_over_active() as thread:
        first = asm.value(f"and i64 {thread}, {-WARP}")
        remaining = asm.value(f"sub i64 {lanes.threads}, {first}")
        count = asm.value(f"select i1 {asm.value(f'icmp slt i64 {remaining}, {WARP}')}, i64 {remaining}, i64 {WARP}")
        own_value = lanes.argument(1, thread)
        asm.emit(f"store i32 0, ptr {total}")
        with asm.loop(count, "other", asm.no_unroll_metadata) as (lane, _):
            other = asm.value(f"add i64 {first}, {lane}")
            same = arithmetic.emit_binary(asm, "==", kind, own_value, lanes.argument(1, other))
            with asm.execute_if(asm.value(f"and i1 {same}, {_is_participating(lanes, other, lane)}")):
                bit = asm.value(f"shl i32 1, {asm.value(f'trunc i64 {lane} to i32')}")
                asm.update(total, "i32", "or", bit)
        lanes.store_result(thread, asm.value(f"load i32, ptr {total}"))


def _check_full_warps(lanes: ExchangeLanes) -> None:
    """Fail if only some lanes of a warp are active."""
    asm = lanes.asm
    if lanes.are_all_active and not lanes.threads % WARP:
        return
    with lanes.loop_over_warps() as warp:
        word = asm.value(f"bitcast {_BITS} {warp.participating_lanes()} to i32")
        # For a full warp the bits are all set or all clear, so that adding 1 gives 0 or 1.
        is_partial = asm.value(f"icmp ugt i32 {asm.value(f'add i32 {word}, 1')}, 1")
        fails, holds = asm.new_name("fails"), asm.new_name("holds")
        asm.branch(is_partial, fails, holds)
        asm.begin_block(fails)
        lanes.fail("all 32 lanes of the warp are here", warp.first)
        asm.begin_block(holds)


def _matrix_product(lanes: ExchangeLanes, type: Scalar) -> None:
    """Write a matrix product per warp; its lanes are all active or all inactive."""
    asm = lanes.asm
    with asm.loop(lanes.threads // WARP, "warp", asm.no_unroll_metadata) as (warp, after):
        first = "0" if warp == "0" else asm.value(f"mul nuw nsw i64 {warp}, {WARP}")
        active = asm.new_name("taking")
        asm.branch(lanes.is_active(first), active, after)
        asm.begin_block(active)
        result = lanes.result_address(first)
        if result is not None:
            column = asm.value(f"zext i32 {lanes.argument(0, first)} to i64")
            places = [lanes.argument_address(number, first) for number in range(1, lanes.argument_count)]
            write_product(asm, type, column, places, result)


def _block_vote(lanes: ExchangeLanes, op: str) -> None:
    asm = lanes.asm
    holding, present = asm.alloca(4, "holding"), asm.alloca(4, "present")
    for each in (holding, present):
        asm.emit(f"store i32 0, ptr {each}")
    with lanes.loop_over_active() as thread:
        for each, bit in ((holding, _is_true(lanes, 0, thread)), (present, "true")):
            asm.update(each, "i32", "add", asm.value(f"zext i1 {bit} to i32"))
    result = asm.value(f"load i32, ptr {holding}")
    if op == "__syncthreads_and":
        everyone = asm.value(f"icmp eq i32 {result}, {asm.value(f'load i32, ptr {present}')}")
        result = asm.value(f"zext i1 {everyone} to i32")
    elif op == "__syncthreads_or":
        result = asm.value(f"zext i1 {asm.value(f'icmp ne i32 {result}, 0')} to i32")
    with lanes.loop_over_active() as thread:
        lanes.store_result(thread, result)
