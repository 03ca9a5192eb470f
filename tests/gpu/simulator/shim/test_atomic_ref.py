"""cuda::atomic and cuda::atomic_ref: what they do to memory, and what their orders order."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import CompileError
from gpu.simulator.checkers.races.races import RaceChecker
from tests.gpu.simulator.kernel_runner import build, run_kernel
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

OPERATIONS = """#include <cuda/atomic>
struct Pair { short low, high; };
__global__ void k(int *ints, unsigned char *bytes, float *floats, double *sum, long long *most, Pair *pair, int **moved,
                  int *found) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_device> total(ints[0]);
    found[i] = total.fetch_add(1, cuda::memory_order_relaxed);
    cuda::atomic_ref least(ints[1]);
    least.fetch_min(i - 5);
    cuda::std::atomic_ref<int>(ints[2]) ^= i;
    cuda::atomic_ref<int>(ints[3])--;
    cuda::atomic_ref<unsigned char, cuda::thread_scope_block>(bytes[i % 3]).fetch_add(1);
    cuda::atomic_ref<float>(floats[0]) += 1.5f;
    cuda::atomic_ref<float>(floats[1]).fetch_max((float)(i % 77));
    cuda::atomic_ref<double>(*sum).fetch_sub(0.25);
    cuda::atomic_ref<long long>(*most).fetch_max(i * 1000000007ll);
    cuda::atomic_ref<int *> place(*moved);
    place.fetch_add(2);
    cuda::atomic_ref<Pair> both(*pair);
    Pair known{0, 0};
    while (!both.compare_exchange_weak(known, Pair{(short)(known.low + 1), (short)(known.high - 1)},
                                       cuda::std::memory_order_acq_rel, cuda::memory_order::acquire)) {
    }
    __shared__ cuda::atomic<int, cuda::thread_scope_block> count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    count++;
    __syncthreads();
    if (threadIdx.x == 0) {
        int before = count.exchange(-1);
        ints[4 + blockIdx.x] = before + 1000 * count;
    }
}
"""


@pytest.mark.parametrize("executor", ["kernel", "compiled_kernel"])
def test_every_operation_on_every_kind_of_value(executor):
    ints = np.array([0, 100, 0, 0, 0, 0], np.int32)
    given = (ints, np.zeros(4, np.uint8), np.zeros(2, np.float32), np.zeros(1), np.zeros(1, np.int64),
             np.zeros(2, np.int16), np.zeros(1, np.int64), np.zeros(128, np.int32))  # fmt: skip
    kernel = getattr(build(OPERATIONS), executor)("k")
    kernel.launch((2, 1, 1), (64, 1, 1), [each.view(np.uint8) for each in given])
    _, counted, floats, total, most, pair, moved, found = given
    assert ints.tolist() == [128, -5, np.bitwise_xor.reduce(np.arange(128)), -128, 64 - 1000, 64 - 1000]
    assert counted.tolist() == [43, 43, 42, 0], "a byte's neighbors are left as they are"
    assert floats.tolist() == [1.5 * 128, 76]
    assert total[0] == -0.25 * 128
    assert most[0] == 127 * 1000000007
    assert pair.tolist() == [128, -128]
    assert moved[0] == 128 * 2 * 4
    assert sorted(found) == list(range(128))


PASSING = """#include <cuda/atomic>
__global__ void f(int *data, int *flag, int *out) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x != 0) {
        while (ready.load(cuda::memory_order_acquire) == 0) {
        }
        out[0] = data[0];
    } else {
        data[0] = 42;
        ready.store(1, ORDER);
    }
}
"""


@pytest.mark.parametrize(("order", "found"), [("release", []), ("seq_cst", []), ("relaxed", [(7, 9)])])
def test_a_message_is_ordered_by_release_and_acquire_alone(order, found):
    checker, out = RaceChecker(), np.zeros(1, np.int32)
    text = PASSING.replace("ORDER", f"cuda::memory_order_{order}")
    launch_watched(checker, text, np.zeros(1, np.int32), np.zeros(1, np.int32), out, grid=2, block=1)
    assert out[0] == 42
    assert finding_lines(checker.findings) == found


def test_threads_of_a_block_wait_for_each_other_at_an_atomic_in_shared_memory():
    text = """#include <cuda/atomic>
__global__ void f(int *out) {
    __shared__ cuda::atomic<unsigned, cuda::thread_scope_block> turn;
    if (threadIdx.x == 0) turn.store(0);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        unsigned warp = threadIdx.x / 32;
        while (turn.load() != warp) {
        }
        out[warp] = turn.fetch_add(1) * 10;
        turn.notify_all();
    }
    turn.wait(threadIdx.x / 32);
}"""
    checker, out = RaceChecker(), np.zeros(3, np.int32)
    launch_watched(checker, text, out, block=96)
    assert out.tolist() == [0, 10, 20]
    assert checker.findings == []


def test_a_plain_read_races_with_an_atomic_store():
    text = """#include <cuda/atomic>
__global__ void f(int *flag, int *out) {
    if (blockIdx.x == 0) cuda::atomic_ref<int>(*flag).store(1);
    else out[0] = *flag;
}"""
    checker = RaceChecker()
    launch_watched(checker, text, np.zeros(1, np.int32), np.zeros(1, np.int32), grid=2, block=1)
    assert finding_lines(checker.findings) == [(3, 4)]


@pytest.mark.parametrize("executor", ["kernel", "compiled_kernel"])
@pytest.mark.parametrize("type", ["unsigned char", "unsigned", "unsigned long long"])
def test_each_thread_has_its_own_reference(executor, type):
    text = f"""#include <cuda/atomic>
using Reference = cuda::atomic_ref<{type}, cuda::thread_scope_device>;
__global__ void k({type} *values) {{
    int i = threadIdx.x;
    values[96 + i] = Reference(values[i % 3]).load();
    Reference(values[192 + i]).store(i + 1);
}}"""
    values = np.zeros(288, np.dtype({"unsigned char": "u1", "unsigned": "u4"}.get(type, "u8")))
    values[:3] = [5, 6, 7]
    getattr(build(text), executor)("k").launch((1, 1, 1), (77, 1, 1), [values.view(np.uint8)])
    assert values[96:173].tolist() == [5 + i % 3 for i in range(77)]
    assert values[192:269].tolist() == list(range(1, 78))


def test_atomics_outside_of_functions_start_with_their_initial_values() -> None:
    source = """#include <cuda/atomic>
    struct Pair { int first; float second; __device__ constexpr Pair(int n) : first(n), second(2.5f) {} };
    __device__ cuda::atomic<int, cuda::thread_scope_device> count{41};
    __device__ cuda::atomic<unsigned long long> wide(1ull << 40);
    __device__ cuda::std::atomic<float> real{1};
    __device__ cuda::atomic<int> slots[3] = {5, {6}}, empty;
    __device__ cuda::std::atomic_flag flag{true};
    __device__ Pair pair(6);
    __global__ void k(double *out) {
        out[0] = count.fetch_add(1);
        out[1] = count;
        out[2] = wide.load();
        out[3] = real.load();
        for (int i = 0; i < 3; ++i) out[4 + i] = slots[i].load();
        out[7] = empty.load();
        out[8] = flag.test();
        out[9] = pair.first + pair.second;
    }"""
    out = run_kernel(source, "k", np.zeros(10), block=1)[0]
    np.testing.assert_array_equal(out, [41, 42, 2.0**40, 1, 5, 6, 0, 0, 1, 8.5])


def test_a_variable_in_device_memory_needs_constants() -> None:
    source = """struct Clock { int start; __device__ Clock(int n) { start = n + clock(); } };
    __device__ Clock first(1);
    __global__ void k(int *out) { *out = first.start; }"""
    with pytest.raises(CompileError, match=r"2:\d+: a variable in device memory .* with constants"):
        build(source).kernel("k")
