"""Every atomic on every type that CUDA has it for: what is left in memory, and what each thread has found there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.gpu.simulator.kernel_runner import build, launch, run_kernel

Array = np.ndarray[Any, Any]

LANES = 70  # two warps and a bit

C_NAMES = {
    "int32": "int",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
INTEGERS = ("int32", "uint32", "uint64")


def _increment(old: Any, limit: Any) -> Any:
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _decrement(old: Any, limit: Any) -> Any:
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


# CUDA C++ Programming Guide, atomic functions: the operation, and the types it is there for.
OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], tuple[str, ...]]] = {
    "atomicAdd": (np.add, (*INTEGERS, "float32", "float64")),
    "atomicSub": (np.subtract, ("int32", "uint32")),
    "atomicExch": (lambda old, value: value, (*INTEGERS, "float32")),
    "atomicMin": (np.minimum, INTEGERS),
    "atomicMax": (np.maximum, INTEGERS),
    "atomicAnd": (np.bitwise_and, INTEGERS),
    "atomicOr": (np.bitwise_or, INTEGERS),
    "atomicXor": (np.bitwise_xor, INTEGERS),
    "atomicInc": (_increment, ("uint32",)),
    "atomicDec": (_decrement, ("uint32",)),
}


CASES = [(name, type) for name, (_, types) in OPERATIONS.items() for type in types]


def write_source(name: str, dtype: str) -> str:
    """Write kernels that apply an atomic at index[i], in global and in shared memory, in lanes that a mask picks."""
    type = C_NAMES[dtype]
    return f"""
    __global__ void used(const int *index, const {type} *values, {type} *memory, {type} *found) {{
        int i = threadIdx.x;
        if (index[i] >= 0) found[i] = {name}(&memory[index[i]], values[i]);
    }}
    __global__ void unused(const int *index, const {type} *values, {type} *memory, {type} *found) {{
        int i = threadIdx.x;
        if (index[i] >= 0) {name}(memory + index[i], values[i]);
    }}
    __global__ void shared(const int *index, const {type} *values, {type} *memory, {type} *found) {{
        __shared__ {type} box[8];
        int i = threadIdx.x;
        if (i < 8) box[i] = memory[i];
        __syncthreads();
        if (index[i] >= 0) found[i] = {name}(&box[index[i]], values[i]);
        __syncthreads();
        if (i < 8) memory[i] = box[i];
    }}"""


def draw_values(dtype: str, count: int, generator: np.random.Generator) -> Array:
    if dtype.startswith("float"):
        return generator.integers(-1000, 1000, count).astype(dtype)  # sums of these are exact, in any order
    small = generator.integers(0, 40, count).astype(dtype)
    wide = np.frombuffer(generator.bytes(count * np.dtype(dtype).itemsize), dtype)
    return np.where(generator.random(count) < 0.5, small, wide)


def draw_indices(kind: str, generator: np.random.Generator) -> Array:
    """Return the element for each lane, -1 for a lane that takes no part; 8 elements are there."""
    match kind:
        case "one address":
            return np.full(LANES, 3, np.int32)
        case "distinct addresses":
            index = np.full(LANES, -1, np.int32)
            index[generator.permutation(LANES)[:8]] = np.arange(8)
            return index
        case _:
            return generator.integers(-3, 8, LANES).clip(-1).astype(np.int32)


def has_valid_order(start: Any, pairs: list[tuple[Any, Any]], combine: Callable[[Any, Any], Any], end: Any) -> bool:
    """Whether the pairs (operand, what was found) can be put in a row that leads from `start` to `end`."""
    left, current = list(pairs), start
    while left:
        ready = [
            (number, combine(current, operand)) for number, (operand, found) in enumerate(left) if found == current
        ]
        if not ready:
            return False
        # Those that change nothing go first: later they might not find this value any more.
        number, current = next(((number, new) for number, new in ready if new == current), ready[0])
        del left[number]
    return bool(current == end)


@pytest.mark.parametrize("kind", ["one address", "distinct addresses", "some of each"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_atomic(name: str, dtype: str, kind: str) -> None:
    combine = OPERATIONS[name][0]
    generator = np.random.default_rng([ord(letter) for letter in name + dtype])
    index, operands = draw_indices(kind, generator), draw_values(dtype, LANES, generator)
    start, untouched = draw_values(dtype, 8, generator), draw_values(dtype, LANES, generator)
    module = build(write_source(name, dtype))
    ends = {}
    for kernel in ("used", "unused", "shared"):
        _, _, memory, found = launch(module, kernel, index, operands, start, untouched, block=LANES)
        ends[kernel] = memory
        idle = index < 0 if kernel != "unused" else np.ones(LANES, bool)
        np.testing.assert_array_equal(found[idle], untouched[idle])
        if kernel == "unused":
            continue
        for element in range(8):
            lanes = np.flatnonzero(index == element)
            pairs = [(operands[lane], found[lane]) for lane in lanes]
            with np.errstate(over="ignore"):
                assert has_valid_order(start[element], pairs, combine, memory[element]), f"{kernel}, element {element}"
    if name != "atomicExch":  # whichever order: the others end the same
        np.testing.assert_array_equal(ends["used"], ends["unused"])
        np.testing.assert_array_equal(ends["used"], ends["shared"])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_compare_and_swap(dtype: str) -> None:
    type = C_NAMES[dtype]
    source = f"""
    __global__ void swap({type} *memory, {type} *found) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        found[i] = atomicCAS(&memory[0], ({type})100, ({type})i);  // one wins
        atomicCAS(&memory[1], ({type})5, ({type})i);               // nobody does
        {type} mine = atomicCAS(memory + 2 + i, ({type})(i % 3), ({type})77);
        found[{LANES} + i] = mine;
    }}"""
    memory = np.concatenate([[100, 6], np.arange(LANES) % 2]).astype(dtype)
    memory, found = run_kernel(source, "swap", memory, np.zeros(2 * LANES, dtype), grid=2, block=LANES // 2)
    winners = np.flatnonzero(found[:LANES] == 100)
    assert winners.size == 1
    assert memory[0] == winners[0]
    assert (np.delete(found[:LANES], winners) == winners[0]).all()
    assert memory[1] == 6
    lane = np.arange(LANES)
    np.testing.assert_array_equal(found[LANES:], lane % 2)
    np.testing.assert_array_equal(memory[2:], np.where(lane % 2 == lane % 3, 77, lane % 2))


def test_every_atomic_of_a_single_lane() -> None:
    kernels = [
        f"__global__ void f{number}(const {type} *value, {type} *memory, {type} *found) {{"
        f"    if (threadIdx.x == 40) *found = {name}(memory, *value);"
        "}"
        for number, (name, type) in enumerate((name, C_NAMES[dtype]) for name, dtype in CASES)
    ]
    module, generator = build("\n".join(kernels)), np.random.default_rng(3)
    for number, (name, dtype) in enumerate(CASES):
        value, start = draw_values(dtype, 1, generator), draw_values(dtype, 1, generator)
        _, memory, found = launch(module, f"f{number}", value, start, np.zeros(1, dtype), block=LANES)
        assert found == start, (name, dtype)
        with np.errstate(over="ignore"):
            assert memory == OPERATIONS[name][0](start, value), (name, dtype)


@pytest.mark.parametrize(("expected", "is_equal"), [(100, True), (5, False)])
def test_a_compare_and_swap_of_a_single_lane(expected: int, *, is_equal: bool) -> None:
    source = f"""
    __global__ void swap(int *memory, int *found) {{
        if (threadIdx.x == 40) *found = atomicCAS(memory, {expected}, 7);
    }}"""
    memory, found = run_kernel(source, "swap", np.array([100], np.int32), np.zeros(1, np.int32), block=LANES)
    assert found == 100
    assert memory == (7 if is_equal else 100)


def test_exchanges_form_a_chain() -> None:
    """Every value put in comes out once, but for the last; what was there at first comes out too."""
    source = "__global__ void pass(int *box, int *found) { int i = threadIdx.x; found[i] = atomicExch(box, i); }"
    box, found = run_kernel(source, "pass", np.array([-7], np.int32), np.zeros(LANES, np.int32), block=LANES)
    assert sorted([*found.tolist(), int(box[0])]) == [-7, *range(LANES)]


def test_tickets_of_all_blocks_are_distinct() -> None:
    source = """
    __device__ unsigned int ticket;
    __global__ void take(unsigned int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(&ticket, 1u); }
    """
    [out] = run_kernel(source, "take", np.zeros(50 * 33, np.uint32), grid=50, block=33)
    assert sorted(out.tolist()) == list(range(50 * 33))


@pytest.mark.parametrize("space", ["shared", "global"])
def test_a_lock_made_of_compare_and_swap(space: str) -> None:
    """One thread of each warp takes it, so that it can be given back."""
    source = f"""
    __device__ int global_lock;
    __global__ void guard(int *total) {{
        {"__shared__ int lock;" if space == "shared" else ""}
        int *held = {"&lock" if space == "shared" else "&global_lock"};
        if (threadIdx.x == 0) *held = 0;
        __syncthreads();
        if (threadIdx.x % 32 == 0) {{
            bool done = false;
            while (!done) {{
                if (atomicCAS(held, 0, 1) == 0) {{
                    *total += 1;
                    __threadfence();
                    atomicExch(held, 0);
                    done = true;
                }}
            }}
        }}
    }}"""
    [total] = run_kernel(source, "guard", np.zeros(1, np.int32), grid=1, block=128)
    assert total[0] == 4


def test_a_float_maximum_made_of_compare_and_swap() -> None:
    source = """
    __device__ float raise(float *address, float value) {
        int *bits = (int *)address;
        int old = *bits, expected;
        do {
            expected = old;
            if (__int_as_float(expected) >= value) break;
            old = atomicCAS(bits, expected, __float_as_int(value));
        } while (old != expected);
        return __int_as_float(old);
    }
    __global__ void largest(const float *in, float *out) { raise(out, in[blockIdx.x * blockDim.x + threadIdx.x]); }
    """
    given = np.random.default_rng(4).normal(size=200).astype(np.float32)
    _, out = run_kernel(source, "largest", given, np.full(1, -np.inf, np.float32), grid=5, block=40)
    assert out[0] == given.max()


def test_an_atomic_in_a_condition_is_lazy_and_its_value_converts() -> None:
    source = """
    __global__ void claim(int *count, unsigned long long *wide, float *out) {
        int i = threadIdx.x;
        if (i % 2 && atomicAdd(count, 1) < 5) out[i] = 1;
        out[32 + i] = i < 3 ? atomicAdd(&wide[0], 1ull << 40) >> 40 : -1.0f;
        out[64 + i] = atomicMax(&count[1], i / 2) / 2.0f >= 0;
    }"""
    count, wide, out = run_kernel(
        source, "claim", np.zeros(2, np.int32), np.zeros(1, np.uint64), np.zeros(96, np.float32)
    )
    assert count.tolist() == [16, 15]
    assert wide[0] == 3 << 40
    assert out[:32].sum() == 5
    assert out[:32:2].sum() == 0
    assert sorted(out[32:35].tolist()) == [0, 1, 2]
    assert (out[35:64] == -1).all()
    assert (out[64:] == 1).all()


def test_atomics_of_floats_round_as_float32() -> None:
    source = "__global__ void add(float *sum) { atomicAdd(sum, 1.0f); }"
    [total] = run_kernel(source, "add", np.array([2.0**24], np.float32), grid=3)
    assert total[0] == 2.0**24
