"""Kernels whose wrong twin fails only on hardware that delays writes, or with relaxed operations on barrier objects."""

from __future__ import annotations

from tests.gpu.simulator.checkers.independent_kernels import KernelPair

_ATOMIC = """
#include <cuda/atomic>
using Device = cuda::atomic_ref<int, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed, acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release, seq_cst = cuda::memory_order_seq_cst;
constexpr auto acq_rel = cuda::memory_order_acq_rel;
"""

_MBARRIER = """
__global__ void k(const int *in, int *out) {
    __shared__ unsigned long long word;
    __shared__ int s[64];
    unsigned barrier = (unsigned)__cvta_generic_to_shared(&word), done = 0;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" :: "r"(barrier) : "memory");
    __syncthreads();
    s[threadIdx.x] = in[threadIdx.x];
    BEFORE
    asm volatile("{ .reg .b64 t; mbarrier.arrive.ARRIVE.cta.shared::cta.b64 t, [%0]; }" :: "r"(barrier) : "memory");
    while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.WAIT.cta.shared::cta.b64 p, [%1], 0;"
                               "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier) : "memory");
    AFTER
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""


def _mbarrier(before: str, arrive: str, wait: str, after: str) -> str:
    source = _MBARRIER.replace("BEFORE", before).replace("AFTER", after)
    return source.replace("ARRIVE", arrive).replace("WAIT", wait)


TRIAL_PAIRS = (
    KernelPair(
        "Peterson's lock, seq_cst",
        "Peterson's lock, release and acquire",
        2,
        32,
        ("arange:64", "zeros:1"),
        _ATOMIC
        + """
__device__ int wants[2], turn;
__global__ void k(const int *in, int *sum) {
    if (threadIdx.x) return;
    int me = blockIdx.x, other = 1 - me;
    Device mine(wants[me]), theirs(wants[other]), next(turn);
    for (int i = 0; i < 2; ++i) {
        mine.store(1, seq_cst);
        next.store(other, seq_cst);
        while (theirs.load(seq_cst) == 1 && next.load(seq_cst) == other) {}
        sum[0] += in[me + i];
        mine.store(0, release);
    }
}
""",
        (
            ("(1, seq_cst)", "(1, release)"),
            ("(other, seq_cst)", "(other, release)"),
            ("load(seq_cst)", "load(acquire)"),
        ),
        ("race",),
        "In the single order of the seq_cst accesses, one thread reads the flag of the other.",
        "Each thread may read the other's flag before its own write of a flag is visible, so both enter.",
    ),
    KernelPair(
        "flags of two warps with a fence between write and read",
        "flags of two warps with a fence that acquires and releases",
        1,
        64,
        ("arange:64", "zeros:1"),
        _ATOMIC
        + """
__global__ void k(const int *in, int *sum) {
    __shared__ int wants[2];
    if (threadIdx.x < 2) wants[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % 32) return;
    int me = threadIdx.x / 32;
    cuda::atomic_ref<int, cuda::thread_scope_block> mine(wants[me]), theirs(wants[1 - me]);
    mine.store(1, relaxed);
    cuda::atomic_thread_fence(seq_cst, cuda::thread_scope_block);
    if (theirs.load(relaxed) == 0) *sum = in[me];
}
""",
        (("atomic_thread_fence(seq_cst", "atomic_thread_fence(acq_rel"),),
        ("race",),
        "Of two sequentially consistent fences, the later one's thread reads the other flag.",
        "A fence that acquires and releases does not order a write before a later read.",
    ),
    KernelPair(
        "volatile flags with a fence between write and read",
        "volatile flags without a fence between write and read",
        2,
        32,
        ("arange:64", "zeros:1"),
        """
__device__ volatile int wants[2];
__global__ void k(const int *in, int *sum) {
    if (threadIdx.x) return;
    int me = blockIdx.x;
    wants[me] = 1;
    __threadfence();
    if (wants[1 - me] == 0) *sum = in[me];
}
""",
        (("    __threadfence();\n", ""),),
        ("race",),
        "__threadfence() is a sequentially consistent fence.",
        "Both threads may read the other's flag before their own is visible.",
    ),
    KernelPair(
        "old version overwritten after all readers",
        "old version overwritten while readers use it",
        4,
        32,
        ("arange:64", "zeros:4"),
        """
__device__ int versions[2], current, finished;
__global__ void k(const int *in, int *out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        versions[1] = in[7];
        __threadfence();
        atomicExch(&current, 1);
        while (atomicAdd(&finished, 0) < gridDim.x - 1) {}
        __threadfence();
        versions[0] = 0;
    } else {
        int i = *(volatile int *)&current;
        __threadfence();
        if (i >= 0) out[blockIdx.x] = versions[i & 1];
        __threadfence();
        atomicAdd(&finished, 1);
    }
}
""",
        (("        while (atomicAdd(&finished, 0) < gridDim.x - 1) {}\n        __threadfence();\n", ""),),
        ("race",),
        "The writer waits until all readers have finished.",
        "A reader that has read the old index still uses the version that is overwritten.",
    ),
    KernelPair(
        "Dekker's lock with volatile flags",
        "Dekker's lock without a fence before the turn is passed on",
        2,
        32,
        ("arange:64", "zeros:1"),
        """
__device__ volatile int wants[2], turn;
__global__ void k(const int *in, int *sum) {
    if (threadIdx.x) return;
    int me = blockIdx.x, other = 1 - me;
    wants[me] = 1;
    __threadfence();
    while (wants[other]) {
        if (turn != me) {
            wants[me] = 0;
            while (turn != me) {}
            wants[me] = 1;
            __threadfence();
        }
    }
    __threadfence();
    sum[0] += in[me];
    __threadfence();
    turn = other;
    wants[me] = 0;
}
""",
        (("in[me];\n    __threadfence();", "in[me];"),),
        ("race",),
        "Volatile writes are strong, so the unordered writes of the turn do not race.",
        "The next thread may enter before the sum is visible.",
    ),
    KernelPair(
        "flags set by atomicExch() with a fence before the test",
        "flags set by atomicExch() without a fence before the test",
        2,
        32,
        ("arange:64", "zeros:1"),
        """
__device__ int wants[2];
__global__ void k(const int *in, int *sum) {
    if (threadIdx.x) return;
    int me = blockIdx.x;
    atomicExch(&wants[me], 1);
    __threadfence();
    if (*(volatile int *)&wants[1 - me] == 0) *sum = in[me];
}
""",
        (("    __threadfence();\n", ""),),
        ("race",),
        "__threadfence() is a sequentially consistent fence.",
        "atomicExch() is relaxed: both threads may read the other's flag before their own is visible.",
    ),
)
"""Pairs whose wrong twin only a trial shows."""

PAIRS = (
    KernelPair(
        "sequence lock over volatile data that are passed on",
        "sequence lock without a fence after the data",
        2,
        32,
        ("zeros:2", "zeros:1"),
        """
__device__ volatile unsigned version;
__global__ void k(int *data, int *out) {
    volatile int *pair = data;
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        for (int round = 1; round < 4; ++round) {
            version = 2 * round - 1;
            __threadfence();
            pair[0] = round;
            pair[1] = -round;
            __threadfence();
            version = 2 * round;
        }
    } else {
        int a, b;
        unsigned before, after;
        do {
            before = version;
            __threadfence();
            a = pair[0];
            b = pair[1];
            __threadfence(/* last */);
            after = version;
        } while (before != after || before % 2 || before == 0);
        out[0] = a + b;
    }
}
""",
        (("            __threadfence(/* last */);\n", ""),),
        ("race",),
        "The values count only if the version has not changed.",
        "The version may be read before the data.",
    ),
    KernelPair(
        "stack with a count in its head",
        "stack with the payload after the push",
        2,
        32,
        ("zeros:4", "zeros:1"),
        """
typedef unsigned long long Head;
__device__ Head head;
__device__ volatile int following[4];
__device__ void push(int node) {
    Head seen;
    do {
        seen = atomicAdd(&head, 0);
        following[node] = (int)seen;
        __threadfence();
    } while (atomicCAS(&head, seen, ((seen >> 32) + 1) << 32 | (unsigned)node) != seen);
}
__device__ int pop() {
    for (;;) {
        Head seen = atomicAdd(&head, 0);
        __threadfence();
        if ((int)seen == 0) return 0;
        int next = following[(int)seen];
        if (atomicCAS(&head, seen, ((seen >> 32) + 1) << 32 | (unsigned)next) == seen) {
            __threadfence();
            return (int)seen;
        }
    }
}
__global__ void k(int *payload, int *out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        payload[1] = 5;
        push(1);
        payload[2] = 6;
        push(2);
    }
    for (int i = 0; i < 3; ++i) {
        int node = pop();
        if (node) {
            payload[node] += 1;
            push(node);
        }
    }
}
""",
        (("payload[node] += 1;\n            push(node);", "push(node);\n            payload[node] += 1;"),),
        ("race",),
        "A late compare-and-swap fails, and the next node is discarded.",
        "Another thread may own the node already.",
    ),
    KernelPair(
        "volatile message with fences",
        "volatile message without any fence",
        2,
        32,
        ("zeros:2", "zeros:1"),
        """
__global__ void k(volatile int *box, int *out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        box[0] = 42;
        __threadfence();
        box[1] = 1;
    } else {
        while (box[1] == 0) {}
        __threadfence();
        out[0] = box[0];
    }
}
""",
        (("        __threadfence();\n", ""),),
        ("race",),
        "The flag releases the data.",
        "Volatile accesses to two locations may become visible in any order.",
    ),
    KernelPair(
        "relaxed arrival after a fence",
        "relaxed arrival without a fence",
        1,
        64,
        ("arange:64", "zeros:64"),
        _mbarrier("__threadfence_block();", "relaxed", "acquire", ""),
        (("    __threadfence_block();\n", ""),),
        ("race",),
        "A fence and a relaxed arrival release together.",
        "A relaxed arrival does not release.",
    ),
    KernelPair(
        "relaxed wait before a fence",
        "relaxed wait without a fence",
        1,
        64,
        ("arange:64", "zeros:64"),
        _mbarrier("", "release", "relaxed", "__threadfence_block();"),
        (("    __threadfence_block();\n", ""),),
        ("race",),
        "A relaxed wait and a fence acquire together.",
        "A relaxed wait does not acquire.",
    ),
    KernelPair(
        "sum by the completion function of a cuda::barrier",
        "sum by a completion function, read before the wait",
        1,
        64,
        ("arange:64", "zeros:64"),
        """
#include <cuda/barrier>
#include <new>
struct Fold {
    int *s, *total;
    __device__ void operator()() noexcept {
        *total = 0;
        for (int i = 0; i < 64; ++i) *total += s[i];
    }
};
using Barrier = cuda::barrier<cuda::thread_scope_block, Fold>;
__global__ void k(const int *in, int *out) {
    __shared__ alignas(Barrier) unsigned char place[sizeof(Barrier)];
    __shared__ int s[64], total;
    Barrier *barrier = (Barrier *)place;
    if (threadIdx.x == 0) new (barrier) Barrier(64, Fold{s, &total});
    __syncthreads();
    for (int i = 0; i < 2; ++i) {
        s[threadIdx.x] = in[threadIdx.x] + i;
        barrier->arrive_and_wait();
        out[threadIdx.x] = total;
        barrier->arrive_and_wait();
    }
}
""",
        (
            (
                "barrier->arrive_and_wait();\n        out[threadIdx.x] = total;",
                "auto token = barrier->arrive();\n        out[threadIdx.x] = total;\n        barrier->wait(token);",
            ),
        ),
        ("race", "uninitialized"),
        "The function runs after all arrivals and before all waits end.",
        "A thread reads the sum before or while it is computed.",
    ),
    KernelPair(
        "one thread of a tile writes for all in a lambda",
        "one thread of a tile writes in a lambda, and none waits",
        1,
        64,
        ("arange:64", "zeros:64"),
        """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int *in, int *out) {
    __shared__ int s[2];
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    cg::invoke_one(tile, [&] { s[threadIdx.x / 32] = in[threadIdx.x]; });
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x / 32];
}
""",
        (("    tile.sync();\n", ""),),
        ("race",),
        "The tile's barrier orders the write before the reads.",
        "invoke_one is no barrier.",
    ),
)
