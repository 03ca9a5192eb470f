"""Synchronization kernels with known verdicts, written from the CUDA and PTX memory models.

Each right kernel has a wrong twin that differs in a few words. The verdicts do not depend on the checkers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelPair:
    """A right kernel `k` and its wrong twin.

    Parameters
    ----------
    right, wrong : str
        The names of the two cases.
    grid, block : int
        Blocks and threads.
    arguments : tuple
        Specifications of arrays, and numbers.
    source : str
        The text of the right kernel.
    edits : tuple of (str, str)
        Texts of the right kernel and their replacements in the wrong one.
    kinds : tuple of str
        The acceptable kinds of findings in the wrong kernel.
    reason, error : str
        Why the right kernel is right, and why the wrong one is wrong.
    """

    right: str
    wrong: str
    grid: int
    block: int
    arguments: tuple[str | int, ...]
    source: str
    edits: tuple[tuple[str, str], ...]
    kinds: tuple[str, ...]
    reason: str
    error: str

    def build_wrong_source(self) -> str:
        """Return the text of the wrong kernel."""
        source = self.source
        for right, wrong in self.edits:
            assert right in source, right
            source = source.replace(right, wrong)
        return source


_ATOMIC = """
#include <cuda/atomic>
using Device = cuda::atomic_ref<int, cuda::thread_scope_device>;
using Block = cuda::atomic_ref<int, cuda::thread_scope_block>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;
"""

_GROUPS = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
"""

_MBARRIER = """
__device__ void wait_for(unsigned barrier, unsigned parity) {
    unsigned done = 0;
    while (!done) {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    }
}
"""

PAIRS = (
    KernelPair(
        "two buffers with one barrier",
        "one buffer with one barrier",
        1,
        64,
        ("arange:256", "zeros:64", 4),
        """
__global__ void k(const int *in, int *out, int steps) {
    __shared__ int tile[2][64];
    int sum = 0;
    for (int i = 0; i < steps; ++i) {
        tile[i % 2][threadIdx.x] = in[i * 64 + threadIdx.x];
        __syncthreads();
        sum += tile[i % 2][63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
""",
        (
            ("tile[2][64]", "tile[64]"),
            ("tile[i % 2]", "tile"),
        ),
        ("race",),
        "A buffer is overwritten two iterations later; the barrier between orders the earlier reads before the write.",
        "No barrier separates the read in one iteration from the write in the next.",
    ),
    KernelPair(
        "warp sum with __syncwarp",
        "warp sum that lacks a __syncwarp",
        1,
        32,
        ("arange:32", "zeros:32"),
        """
__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    int lane = threadIdx.x;
    s[lane] = in[lane];
    s[lane + 32] = 0;
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
        int other = s[lane + d];
        __syncwarp();
        s[lane] += other;
        __syncwarp();
    }
    out[lane] = s[lane];
}
""",
        (("        s[lane] += other;\n        __syncwarp();\n", "        s[lane] += other;\n"),),
        ("race",),
        "__syncwarp separates each read from each write of another lane.",
        "A lane reads the sum of another lane from the previous iteration without synchronization.",
    ),
    KernelPair(
        "barrier under a condition of the block",
        "barrier under a condition of the thread",
        1,
        64,
        ("arange:64", "zeros:64"),
        """
__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    if (in[blockIdx.x + 1] > 0) {
        __syncthreads();
    }
    out[threadIdx.x] = s[threadIdx.x];
    __syncthreads();
}
""",
        (("in[blockIdx.x + 1] > 0", "in[threadIdx.x] > 0"),),
        ("barrier",),
        "All threads of a block evaluate the condition identically.",
        "Thread 0 skips the first barrier and the other threads do not.",
    ),
    KernelPair(
        "loop until nothing changes",
        "loop until nothing changes, reset too early",
        1,
        64,
        ("arange:64", "zeros:64"),
        """
__global__ void k(const int *in, int *out) {
    __shared__ int changed;
    int value = in[threadIdx.x] % 5;
    do {
        __syncthreads();
        if (threadIdx.x == 0) changed = 0;
        __syncthreads();
        if (value > 0) {
            --value;
            atomicOr(&changed, 1);
        }
        __syncthreads();
    } while (changed);
    out[threadIdx.x] = value;
}
""",
        (("    do {\n        __syncthreads();\n", "    do {\n"),),
        ("race",),
        "The barrier at the top orders all reads of the flag before its reset.",
        "Thread 0 resets the flag while other threads still read it in the loop's condition.",
    ),
    KernelPair(
        "maximum with __syncthreads_or",
        "maximum with a vote of the warp",
        1,
        64,
        ("random:64:3", "zeros:64"),
        """
__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    bool more;
    do {
        int best = max(s[t], s[t > 0 ? t - 1 : 0]);
        __syncthreads();
        more = best != s[t];
        s[t] = best;
    } while (__syncthreads_or(more));
    out[t] = s[t];
}
""",
        (("__syncthreads_or(more)", "__any_sync(0xffffffffu, more)"),),
        ("race", "barrier"),
        "__syncthreads_or is a barrier of the block, and all threads receive the same vote.",
        "A vote of a warp does not order thread 31's write before thread 32's read.",
    ),
    KernelPair(
        "barrier object of two warps",
        "barrier object with the count of one warp",
        1,
        64,
        ("arange:64", "zeros:64"),
        """
#include <cuda/barrier>
__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, 64);
    __syncthreads();
    s[threadIdx.x] = in[threadIdx.x];
    barrier.arrive_and_wait();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
""",
        (("init(&barrier, 64)", "init(&barrier, 32)"),),
        ("race", "barrier"),
        "The phase completes after all 64 arrivals.",
        "The arrivals of one warp complete a phase, so the other warp's writes are not ordered.",
    ),
    KernelPair(
        "barrier of the grid",
        "barrier of the block for data of the grid",
        2,
        32,
        ("zeros:64", "zeros:64"),
        _GROUPS
        + """
__global__ void k(int *data, int *out) {
    cg::grid_group grid = cg::this_grid();
    data[grid.thread_rank()] = threadIdx.x;
    grid.sync();
    out[grid.thread_rank()] = data[63 - grid.thread_rank()];
}
""",
        (("grid.sync();", "cg::this_thread_block().sync();"),),
        ("race",),
        "grid.sync() orders the writes of one block before the reads of the other.",
        "A block's barrier does not order accesses of two blocks.",
    ),
    KernelPair(
        "exchange inside a tile",
        "exchange between tiles",
        1,
        32,
        ("arange:32", "zeros:32"),
        _GROUPS
        + """
__global__ void k(const int *in, int *out) {
    __shared__ int s[32];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    s[threadIdx.x] = in[threadIdx.x];
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x ^ 4];
}
""",
        (("threadIdx.x ^ 4", "threadIdx.x ^ 8"),),
        ("race",),
        "Both lanes belong to the same tile of eight, which tile.sync() synchronizes.",
        "tile.sync() synchronizes eight lanes, but the lanes are eight apart.",
    ),
    KernelPair(
        "shuffle of half a warp",
        "shuffle of half a warp with the mask of the whole",
        1,
        32,
        ("arange:32", "zeros:32"),
        """
__global__ void k(const int *in, int *out) {
    int value = in[threadIdx.x];
    if (threadIdx.x < 16) value += __shfl_xor_sync(0x0000ffffu, value, 8);
    value += __shfl_xor_sync(0xffffffffu, value, 16);
    out[threadIdx.x] = value;
}
""",
        (("0x0000ffffu", "0xffffffffu"),),
        ("warp-mask", "barrier"),
        "The mask names exactly the lanes that execute the shuffle.",
        "The mask names lanes 16 to 31, which do not execute this shuffle.",
    ),
    KernelPair(
        "flag with fences of the device",
        "flag with a fence of the block",
        2,
        32,
        ("zeros:32", "zeros:1", "zeros:32"),
        """
__global__ void k(int *data, volatile int *flag, int *out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0) {}
            __threadfence();
        }
        __syncthreads();
        out[threadIdx.x] = data[31 - threadIdx.x];
    }
}
""",
        (
            (
                "            __threadfence();\n            *flag = 1;",
                "            __threadfence_block();\n            *flag = 1;",
            ),
        ),
        ("race",),
        "Barrier, fence, flag; flag, fence, barrier: the customary publication of a block's results.",
        "The writer's fence orders its writes for its own block only, and the reader is in another block.",
    ),
    KernelPair(
        "relay over two scopes",
        "relay with a scope that is too narrow",
        3,
        64,
        ("zeros:1", "zeros:2", "zeros:1"),
        _ATOMIC
        + """
__global__ void k(int *data, int *flags, int *out) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *data = 7;
        Block(flags[0]).store(1, release);
    } else if (blockIdx.x == 0 && threadIdx.x == 32) {
        while (Block(flags[0]).load(acquire) == 0) {}
        Device(flags[1]).store(1, release);
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        while (Device(flags[1]).load(acquire) == 0) {}
        *out = *data;
    }
}
""",
        (
            ("blockIdx.x == 1 &&", "blockIdx.x == 2 &&"),
            ("blockIdx.x == 0 && threadIdx.x == 32", "blockIdx.x == 1 && threadIdx.x == 32"),
        ),
        ("race",),
        "Causality is transitive over a release in the block and a release on the device.",
        "The first release has the scope of the block, but its reader is in another block.",
    ),
    KernelPair(
        "release sequence through an addition",
        "release sequence broken by a store",
        3,
        1,
        ("zeros:1", "zeros:1", "zeros:1"),
        _ATOMIC
        + """
__global__ void k(int *data, int *flag, int *out) {
    Device state(*flag);
    if (blockIdx.x == 0) {
        *data = 7;
        state.store(1, release);
    } else if (blockIdx.x == 1) {
        while (state.load(relaxed) != 1) {}
        state.fetch_add(1, relaxed);
    } else {
        while (state.load(acquire) != 2) {}
        *out = *data;
    }
}
""",
        (("state.fetch_add(1, relaxed)", "state.store(2, relaxed)"),),
        ("race",),
        "A relaxed read-modify-write continues the release sequence, so the acquire synchronizes with the release.",
        "A relaxed store of another thread ends the release sequence, so the acquire reads from no release.",
    ),
    KernelPair(
        "last block sums after a barrier",
        "last block sums without a barrier",
        4,
        64,
        ("zeros:256", "zeros:1", "zeros:64"),
        """
__global__ void k(int *partial, unsigned *done, int *out) {
    __shared__ bool last;
    partial[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(done, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) {
        int sum = 0;
        for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i * 64 + threadIdx.x];
        out[threadIdx.x] = sum;
    }
}
""",
        (("= threadIdx.x;\n    __syncthreads();\n", "= threadIdx.x;\n"),),
        ("race",),
        "Barrier, fence and counter publish all partial results of a block.",
        "Thread 0 counts its block before the other threads of the block have written.",
    ),
    KernelPair(
        "one lock for one sum",
        "two locks for one sum",
        4,
        1,
        ("zeros:2", "zeros:1"),
        """
__global__ void k(int *lock, int *sum) {
    while (atomicCAS(&lock[0], 0, 1) != 0) {}
    __threadfence();
    *sum += blockIdx.x;
    __threadfence();
    atomicExch(&lock[0], 0);
}
""",
        (("lock[0]", "lock[blockIdx.x % 2]"),),
        ("race",),
        "All blocks take the same lock, with fences after locking and before unlocking.",
        "Even and odd blocks take different locks for the same sum.",
    ),
    KernelPair(
        "ticket lock",
        "ticket lock with a relaxed unlock",
        4,
        1,
        ("zeros:1", "zeros:1", "zeros:1"),
        _ATOMIC
        + """
__global__ void k(int *tickets, int *turn, int *sum) {
    int mine = Device(*tickets).fetch_add(1, relaxed);
    while (Device(*turn).load(acquire) != mine) {}
    *sum += blockIdx.x;
    Device(*turn).store(mine + 1, release);
}
""",
        (("mine + 1, release", "mine + 1, relaxed"),),
        ("race",),
        "The release of a turn synchronizes with the acquire of the next; drawing a ticket needs no order.",
        "A relaxed store does not order the sum before the next turn.",
    ),
    KernelPair(
        "sequence lock over atomic data",
        "sequence lock over plain data",
        2,
        1,
        ("zeros:1", "zeros:2", "zeros:1"),
        _ATOMIC
        + """
__global__ void k(int *sequence, int *data, int *out) {
    Device version(*sequence), a(data[0]), b(data[1]);
    if (blockIdx.x == 0) {
        for (int i = 1; i <= 8; ++i) {
            version.store(2 * i - 1, relaxed);
            cuda::atomic_thread_fence(release, cuda::thread_scope_device);
            a.store(i, relaxed);
            b.store(i, relaxed);
            version.store(2 * i, release);
        }
    } else {
        int before, after, x, y;
        do {
            before = version.load(acquire);
            x = a.load(relaxed);
            y = b.load(relaxed);
            cuda::atomic_thread_fence(acquire, cuda::thread_scope_device);
            after = version.load(relaxed);
        } while (before != after || after != 16);
        *out = x - y;
    }
}
""",
        (
            ("a.store(i, relaxed)", "data[0] = i"),
            ("b.store(i, relaxed)", "data[1] = i"),
            ("a.load(relaxed)", "data[0]"),
            ("b.load(relaxed)", "data[1]"),
        ),
        ("race",),
        "All shared accesses are atomic; fences order them as a sequence lock requires.",
        "The reader reads plain data while the writer may write it; a retry does not undo the race.",
    ),
    KernelPair(
        "stack with tags",
        "stack without tags",
        2,
        1,
        ("zeros:1", "1,2,3,3", "zeros:4", "zeros:2"),
        _ATOMIC
        + """
__global__ void k(int *top, int *next, int *payload, int *signals) {
    Device head(*top);
    if (blockIdx.x == 0) {
        int seen = head.load(acquire);
        int following = Device(next[seen % 8]).load(relaxed);
        Device(signals[0]).store(1, release);
        while (Device(signals[1]).load(acquire) == 0) {}
        while (!head.compare_exchange_strong(seen, seen / 8 * 8 + following, cuda::memory_order_acq_rel)) {
            following = Device(next[seen % 8]).load(relaxed);
        }
        payload[head.load(acquire) % 8] = 1;
    } else {
        while (Device(signals[0]).load(acquire) == 0) {}
        head.store(2, relaxed);  // pops nodes 0 and 1
        Device(next[0]).store(2, relaxed);
        head.store(8, release);  // pushes node 0 with the next tag
        Device(signals[1]).store(1, release);
        payload[1] = 2;
    }
}
""",
        (("head.store(8, release);  // pushes node 0 with the next tag", "head.store(0, release);  // pushes node 0"),),
        ("race",),
        "The tag changes with each push, so the first exchange fails and both blocks own different nodes.",
        "ABA: the exchange succeeds with a stale successor, so both blocks write to node 1.",
    ),
    KernelPair(
        "first wait for parity 0",
        "first wait for parity 1",
        1,
        64,
        ("arange:32", "zeros:32"),
        _MBARRIER
        + """
__global__ void k(const int *in, int *out) {
    __shared__ int s[32];
    __shared__ unsigned long long object;
    unsigned barrier = __cvta_generic_to_shared(&object);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(barrier) : "memory");
    __syncthreads();
    int lane = threadIdx.x % 32;
    if (threadIdx.x >= 32) {
        wait_for(barrier, 0);
        out[lane] = s[31 - lane];
    } else {
        s[lane] = in[lane];
        asm volatile("{ .reg .b64 token; mbarrier.arrive.shared.b64 token, [%0]; }" :: "r"(barrier) : "memory");
    }
}
""",
        (("wait_for(barrier, 0)", "wait_for(barrier, 1)"),),
        ("race", "barrier", "endless", "unfinished"),
        "The first phase of an mbarrier has parity 0; the other warp's 32 arrivals complete it.",
        "The phase before the first counts as complete, so the wait returns at once.",
    ),
    KernelPair(
        "ring of a producer and a consumer",
        "ring whose consumer frees a slot before reading it",
        1,
        64,
        ("arange:192", "zeros:32", 6),
        """
#include <cuda/barrier>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void k(const int *in, int *out, int steps) {
    __shared__ int ring[2][32];
    __shared__ Barrier full[2], empty[2];
    if (threadIdx.x < 2) {
        init(&full[threadIdx.x], 64);
        init(&empty[threadIdx.x], 64);
    }
    __syncthreads();
    int lane = threadIdx.x % 32, sum = 0;
    for (int i = 0; i < steps; ++i) {
        if (threadIdx.x < 32) {
            if (i >= 2) empty[i % 2].arrive_and_wait();
            ring[i % 2][lane] = in[i * 32 + lane];
            (void)full[i % 2].arrive();
        } else {
            full[i % 2].arrive_and_wait();
            sum += ring[i % 2][31 - lane];
            if (i + 2 < steps) (void)empty[i % 2].arrive();
        }
    }
    if (threadIdx.x >= 32) out[lane] = sum;
}
""",
        (
            ("            sum += ring[i % 2][31 - lane];\n", ""),
            ("empty[i % 2].arrive();\n", "empty[i % 2].arrive();\n            sum += ring[i % 2][31 - lane];\n"),
        ),
        ("race",),
        "The producer overwrites a slot after the consumer has read it and arrived.",
        "The consumer arrives at the empty barrier before its read, so the producer may overwrite the slot.",
    ),
    KernelPair(
        "asynchronous copy of two stages",
        "asynchronous copy read one stage too early",
        1,
        32,
        ("arange:64", "zeros:32"),
        """
#include <cuda_pipeline.h>
__global__ void k(const int *in, int *out) {
    __shared__ int s[2][32];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], &in[t], 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&s[1][t], &in[32 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    int sum = s[0][31 - t];
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = sum + s[1][31 - t];
}
""",
        (
            (
                "    int sum = s[0][31 - t];\n    __pipeline_wait_prior(0);\n    __syncthreads();\n    out[t] = sum +",
                "    out[t] = s[0][31 - t] +",
            ),
        ),
        ("race", "uninitialized"),
        "One pending stage is allowed while the first is read, none while the second is read.",
        "One stage may be pending after the wait: the second, which is read.",
    ),
    KernelPair(
        "bulk copy after a proxy fence",
        "bulk copy without a proxy fence",
        1,
        32,
        ("arange:32", "zeros:32"),
        """
__global__ void k(const int *in, int *out) {
    __shared__ __align__(16) int s[32];
    s[threadIdx.x] = in[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                     :: "l"(__cvta_generic_to_global(out)), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
""",
        (('    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n', ""),),
        ("race",),
        "Each writer's proxy fence and the barrier order the writes before the read of the asynchronous proxy.",
        "A barrier does not order writes of the generic proxy before reads of the asynchronous proxy.",
    ),
    KernelPair(
        "cluster barriers around a remote read",
        "block barrier before a remote read",
        2,
        32,
        ("zeros:64",),
        _GROUPS
        + """
__global__ void __cluster_dims__(2, 1, 1) k(int *out) {
    __shared__ int s[32];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    s[threadIdx.x] = 100 * rank + threadIdx.x;
    cluster.sync();
    out[rank * 32 + threadIdx.x] = cluster.map_shared_rank(s, 1 - rank)[threadIdx.x];
    cluster.sync();
}
""",
        (("threadIdx.x;\n    cluster.sync();", "threadIdx.x;\n    __syncthreads();"),),
        ("race", "uninitialized"),
        "The first barrier orders write and read; the second keeps the other block until the read is done.",
        "A block's barrier does not order the other block's write before the remote read.",
    ),
    KernelPair(
        "remote read between arrival and wait",
        "exit before a remote read",
        2,
        32,
        ("zeros:64",),
        _GROUPS
        + """
__global__ void __cluster_dims__(2, 1, 1) k(int *out) {
    __shared__ int s[32];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    s[threadIdx.x] = 100 * rank + threadIdx.x;
    cluster.sync();
    int value = cluster.map_shared_rank(s, 1 - rank)[threadIdx.x];
    cluster.barrier_arrive();
    out[rank * 32 + threadIdx.x] = value;
    cluster.barrier_wait();
}
""",
        (
            ("    int value =", "    if (rank == 0) return;\n    int value ="),
            ("    cluster.barrier_arrive();\n", ""),
            ("    cluster.barrier_wait();\n", ""),
        ),
        ("race", "use-after-scope", "use-after-free", "out-of-bounds", "barrier", "other"),
        "The read precedes the arrival at the last barrier, and local work may follow before the wait.",
        "Block 0 may exit before block 1 reads its shared memory.",
    ),
    KernelPair(
        "Peterson's lock",
        "Peterson's lock without order",
        2,
        1,
        ("zeros:2", "zeros:1", "zeros:1"),
        _ATOMIC
        + """
__global__ void k(int *wants, int *turn, int *sum) {
    Device mine(wants[blockIdx.x]), other(wants[1 - blockIdx.x]), next(*turn);
    for (int i = 0; i < 3; ++i) {
        mine.store(1, cuda::memory_order_seq_cst);
        next.store(1 - blockIdx.x, cuda::memory_order_seq_cst);
        while (other.load(cuda::memory_order_seq_cst) && next.load(cuda::memory_order_seq_cst) == 1 - blockIdx.x) {}
        *sum += 1;
        mine.store(0, cuda::memory_order_seq_cst);
    }
}
""",
        (("cuda::memory_order_seq_cst", "relaxed"),),
        ("race",),
        "Sequentially consistent accesses exclude each other and order the sums.",
        "Relaxed accesses do not order the sums of the two blocks.",
    ),
    KernelPair(
        "pipeline with two stages",
        "pipeline whose stage is released before the read",
        1,
        64,
        ("arange:256", "zeros:64"),
        _GROUPS
        + """#include <cuda/pipeline>
__global__ void k(const int *in, int *out) {
    __shared__ int s[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    pipe.producer_acquire();
    cuda::memcpy_async(block, s[0], in, 256, pipe);
    pipe.producer_commit();
    for (int i = 0; i < 4; ++i) {
        if (i + 1 < 4) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[(i + 1) % 2], in + (i + 1) * 64, 256, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += s[i % 2][63 - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
""",
        (
            ("        sum += s[i % 2][63 - threadIdx.x];\n", ""),
            ("consumer_release();\n", "consumer_release();\n        sum += s[i % 2][63 - threadIdx.x];\n"),
        ),
        ("race",),
        "Every thread releases a stage after it has read it.",
        "Another thread may start the next copy to the stage before the read.",
    ),
    KernelPair(
        "bulk copies from one buffer",
        "bulk copies from one buffer without a wait",
        1,
        32,
        ("arange:64", "zeros:64"),
        """
__global__ void k(const int *in, int *out) {
    __shared__ __align__(128) int s[32];
    for (int i = 0; i < 2; ++i) {
        s[threadIdx.x] = in[i * 32 + threadIdx.x];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                         :: "l"(out + i * 32), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
""",
        (('            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");\n', ""),),
        ("race",),
        "The wait for the reads of the bulk copy precedes the next write to its source.",
        "The next iteration overwrites the source of a running copy.",
    ),
    KernelPair(
        "late read by the thread that starts a bulk copy",
        "late read by the thread that starts a bulk copy without its own wait",
        1,
        64,
        ("arange:64", "zeros:64"),
        """
__device__ bool wait(unsigned at) {
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at) : "memory");
    return done;
}
__global__ void k(const int *in, int *out) {
    __shared__ __align__(128) int s[64];
    __shared__ unsigned long long phases;
    unsigned at = (unsigned)__cvta_generic_to_shared(&phases);
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at) : "memory");
    if (t == 0) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"((unsigned)__cvta_generic_to_shared(s)), "l"(in), "r"(at) : "memory");
    }
    if (t >= 32) {
        while (!wait(at)) {}
        out[t] = s[t];
    } else {
        int sum = 0;
        for (int i = 0; i < 200; ++i) sum = sum / 2 + in[i % 64];
        if (t == 0) while (!wait(at)) {}
        if (t == 0) out[t] = s[t] + sum;
    }
}
""",
        (("        if (t == 0) while (!wait(at)) {}\n", ""),),
        ("race",),
        "Each thread waits for the phase of the mbarrier before it reads the data.",
        "The wait of another warp does not order the copy before a read by the thread that started it.",
    ),
    KernelPair(
        "sum of values that additions publish",
        "sum of values that waits for one of two additions",
        3,
        32,
        ("zeros:3", "zeros:1"),
        """
__global__ void k(int *data, int *count) {
    if (threadIdx.x) return;
    if (blockIdx.x < 2) {
        data[blockIdx.x] = 7;
        asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :: "l"(count), "r"(1) : "memory");
    } else {
        int seen;
        do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
        while (seen < 2);
        data[2] = data[0] + data[1];
    }
}
""",
        (("seen < 2", "seen < 1"),),
        ("race",),
        "The last block observes both releases.",
        "The last block may observe the release of only one of the blocks whose values it reads.",
    ),
    KernelPair(
        "counter of two blocks",
        "counter of two blocks with block scope",
        2,
        32,
        ("zeros:1",),
        _ATOMIC
        + """
__global__ void k(int *sum) {
    Device(*sum).fetch_add(1, relaxed);
}
""",
        (("Device(*sum)", "Block(*sum)"),),
        ("race",),
        "Both operations have a scope that includes both blocks.",
        "The scope of each operation is its own block, so they are not atomic to each other.",
    ),
    KernelPair(
        "asynchronous copy after a barrier",
        "asynchronous copy before a barrier",
        1,
        64,
        ("arange:128", "zeros:64"),
        """
#include <cuda_pipeline.h>
__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    int value = s[63 - t];
    __syncthreads();
    __pipeline_memcpy_async(&s[t], &in[64 + t], 4);
    __pipeline_commit();
    __syncthreads();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = value + s[63 - t];
}
""",
        (("s[63 - t];\n    __syncthreads();\n", "s[63 - t];\n"),),
        ("race",),
        "A barrier separates the reads of the buffer from the start of the copy.",
        "The copy may overwrite the buffer at once, while other threads still read it.",
    ),
    KernelPair(
        "queue of one producer and one consumer",
        "queue whose consumer frees a slot by a relaxed store",
        2,
        1,
        ("zeros:4", "zeros:2", "zeros:1", 12),
        _ATOMIC
        + """
__global__ void k(int *slots, int *ends, int *out, int items) {
    Device head(ends[0]), tail(ends[1]);
    if (blockIdx.x == 0) {
        for (int i = 0; i < items; ++i) {
            while (i - tail.load(acquire) >= 4) {}
            slots[i % 4] = i * i;
            head.store(i + 1, release);
        }
    } else {
        int sum = 0;
        for (int i = 0; i < items; ++i) {
            while (head.load(acquire) <= i) {}
            sum += slots[i % 4];
            tail.store(i + 1, release);
        }
        *out = sum;
    }
}
""",
        (("tail.store(i + 1, release)", "tail.store(i + 1, relaxed)"),),
        ("race",),
        "Each side publishes its progress with release order, and the other side reads it with acquire order.",
        "A relaxed store does not order the read of a slot before the producer overwrites it.",
    ),
    KernelPair(
        "dissemination barrier of four blocks",
        "dissemination barrier that lacks its last round",
        4,
        32,
        ("zeros:128", "zeros:8", "zeros:128", 2),
        _ATOMIC
        + """
__global__ void k(int *data, int *flags, int *out, int rounds) {
    int b = blockIdx.x, i = b * 32 + threadIdx.x;
    data[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int r = 0; r < rounds; ++r) {
            Device(flags[r * 4 + (b + (1 << r)) % 4]).store(1, release);
            while (Device(flags[r * 4 + b]).load(acquire) == 0) {}
        }
    }
    __syncthreads();
    out[i] = data[(i + 32) % 128];
}
""",
        (("r < rounds", "r < rounds - 1"),),
        ("race",),
        "After log2(4) rounds each block has heard of all others, directly or through another block.",
        "After one round a block has heard only of its predecessor, and it reads the data of its successor.",
    ),
    KernelPair(
        "bottom-up tree with one counter per node",
        "bottom-up tree without a fence",
        4,
        2,
        ("zeros:8", "zeros:8", "zeros:1"),
        """
__global__ void k(int *sums, unsigned *counts, int *out) {
    int node = 8 + blockIdx.x * blockDim.x + threadIdx.x, sum = node;
    while (node > 1) {
        int parent = node / 2;
        if (node < 8) sums[node] = sum; else if (node % 2 == 0) sums[0] = 0;
        __threadfence();
        if (atomicAdd(&counts[parent], 1u) == 0) return;
        __threadfence();
        int other = node ^ 1;
        sum += other >= 8 ? other : sums[other];
        node = parent;
    }
    *out = sum;
}
""".replace(" else if (node % 2 == 0) sums[0] = 0;", ""),
        (("sums[node] = sum;\n        __threadfence();\n", "sums[node] = sum;\n"),),
        ("race",),
        "The second thread at a node reads the sum that the first one wrote before its fence and its operation.",
        "Without the fence, the counter does not publish the sum of the first thread.",
    ),
    KernelPair(
        "look-back over published prefixes",
        "look-back over prefixes without a release",
        4,
        32,
        ("arange:128", "zeros:4", "zeros:4", "zeros:128"),
        _ATOMIC
        + """
__global__ void k(const int *in, int *prefixes, int *ready, int *out) {
    __shared__ int s[32], before;
    int t = threadIdx.x, b = blockIdx.x, value = in[b * 32 + t];
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(0xffffffffu, value, d);
        if (t >= d) value += other;
    }
    s[t] = value;
    __syncwarp();
    if (t == 0) {
        int sum = 0;
        if (b > 0) {
            while (Device(ready[b - 1]).load(acquire) == 0) {}
            sum = prefixes[b - 1];
        }
        before = sum;
        prefixes[b] = sum + s[31];
        Device(ready[b]).store(1, release);
    }
    __syncwarp();
    out[b * 32 + t] = before + value;
}
""",
        (("store(1, release)", "store(1, relaxed)"),),
        ("race",),
        "A block publishes its prefix with release order, and its successor waits for it with acquire order.",
        "A relaxed flag does not publish the prefix.",
    ),
    KernelPair(
        "initialized once",
        "initialized once, tested without an order",
        4,
        1,
        ("zeros:1", "zeros:1", "zeros:4"),
        _ATOMIC
        + """
__global__ void k(int *table, int *state, int *out) {
    Device once(*state);
    if (once.load(acquire) != 2) {
        int expected = 0;
        if (once.compare_exchange_strong(expected, 1, relaxed, relaxed)) {
            *table = 42;
            once.store(2, release);
        } else {
            while (once.load(acquire) != 2) {}
        }
    }
    out[blockIdx.x] = *table;
}
""",
        (("load(acquire) != 2) {}", "load(relaxed) != 2) {}"), ("if (once.load(acquire)", "if (once.load(relaxed)")),
        ("race",),
        "All blocks but one read the state 2 with acquire order before they read the table.",
        "Relaxed reads of the state do not order the table's initialization before its use.",
    ),
    KernelPair(
        "lock for readers and a writer",
        "lock whose readers leave without an order",
        4,
        1,
        ("zeros:1", "zeros:1", "zeros:4"),
        _ATOMIC
        + """
__global__ void k(int *data, int *lock, int *out) {
    Device readers(*lock);
    if (blockIdx.x == 3) {
        int none;
        do {
            none = 0;
        } while (!readers.compare_exchange_weak(none, -100, acquire, relaxed));
        *data = 7;
        readers.store(0, release);
    } else {
        int count = readers.load(relaxed);
        while (count < 0 || !readers.compare_exchange_weak(count, count + 1, acquire, relaxed)) {
            count = readers.load(relaxed);
        }
        out[blockIdx.x] = *data;
        readers.fetch_sub(1, release);
    }
}
""",
        (("fetch_sub(1, release)", "fetch_sub(1, relaxed)"),),
        ("race",),
        "Readers leave with release order, and the writer enters with acquire order when no reader is left.",
        "A reader's relaxed exit does not order its read before the write.",
    ),
    KernelPair(
        "ticket lock of warps with block scope",
        "ticket lock of blocks with block scope",
        2,
        96,
        ("zeros:4", "zeros:2"),
        _ATOMIC
        + """
__global__ void k(int *locks, int *sums) {
    int *lock = locks + 2 * blockIdx.x, *sum = sums + blockIdx.x;
    if (threadIdx.x % 32) return;
    int mine = Block(lock[0]).fetch_add(1, relaxed);
    while (Block(lock[1]).load(acquire) != mine) {}
    *sum += mine;
    Block(lock[1]).store(mine + 1, release);
}
""",
        (("locks + 2 * blockIdx.x, *sum = sums + blockIdx.x", "locks, *sum = sums"),),
        ("race",),
        "The contenders for a lock are in one block.",
        "The contenders are in different blocks, which block scope does not include.",
    ),
    KernelPair(
        "tile that reuses its shared memory",
        "tile that reuses its shared memory too early",
        1,
        64,
        ("arange:256", "zeros:64", 4),
        _GROUPS
        + """
__global__ void k(const int *in, int *out, int steps) {
    __shared__ int s[64];
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int *mine = s + tile.meta_group_rank() * 16, sum = 0;
    for (int i = 0; i < steps; ++i) {
        mine[tile.thread_rank()] = in[i * 64 + threadIdx.x];
        tile.sync();
        sum += mine[15 - tile.thread_rank()];
        tile.sync();
    }
    out[threadIdx.x] = sum;
}
""",
        (("thread_rank()];\n        tile.sync();\n    }", "thread_rank()];\n    }"),),
        ("race",),
        "The second synchronization orders the reads of one step before the writes of the next.",
        "A lane overwrites an element that another lane may still read.",
    ),
    KernelPair(
        "three stages of asynchronous copies",
        "three stages of asynchronous copies with a wait for too few",
        1,
        32,
        ("arange:256", "zeros:32", 8),
        """
__device__ void copy(int *to, const int *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__global__ void k(const int *in, int *out, int steps) {
    __shared__ int s[3][32];
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < 2; ++i) {
        copy(&s[i][t], &in[i * 32 + t]);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int i = 0; i < steps; ++i) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        if (i + 2 < steps) copy(&s[(i + 2) % 3][t], &in[(i + 2) * 32 + t]);
        asm volatile("cp.async.commit_group;" ::: "memory");
        sum += s[i % 3][31 - t];
    }
    out[t] = sum;
}
""",
        (("wait_group 1;", "wait_group 2;"),),
        ("race", "uninitialized"),
        "At most one group, that of the next step, may be pending when a stage is read.",
        "Two groups may be pending, also that of the stage that is read.",
    ),
    KernelPair(
        "histogram over the shared memory of a cluster",
        "histogram over the shared memory of a cluster, read too early",
        2,
        32,
        ("arange:64", "zeros:32"),
        _GROUPS
        + """
__global__ void __cluster_dims__(2, 1, 1) k(const int *in, int *out) {
    __shared__ int bins[16];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    cluster.sync();
    int bin = in[blockIdx.x * 32 + threadIdx.x] % 32;
    atomicAdd(cluster.map_shared_rank(bins, bin / 16) + bin % 16, 1);
    cluster.sync();
    if (threadIdx.x < 16) out[rank * 16 + threadIdx.x] = bins[threadIdx.x];
}
""",
        (
            ("% 16, 1);\n    cluster.sync();", "% 16, 1);\n    __syncthreads();\n    cluster.barrier_arrive();"),
            ("= bins[threadIdx.x];", "= bins[threadIdx.x];\n    cluster.barrier_wait();"),
        ),
        ("race",),
        "The second barrier orders the updates by both blocks before the reads.",
        "A block's barrier does not order the other block's updates before the reads.",
    ),
    KernelPair(
        "barrier object that a warp leaves",
        "barrier object that a warp leaves without notice",
        1,
        64,
        ("arange:96", "zeros:32"),
        """
#include <cuda/barrier>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void k(const int *in, int *out) {
    __shared__ int s[32];
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) init(&barrier, 64);
    __syncthreads();
    if (threadIdx.x >= 32) {
        s[threadIdx.x - 32] = in[threadIdx.x];
        barrier.arrive_and_drop();
        return;
    }
    barrier.arrive_and_wait();
    int value = s[31 - threadIdx.x];
    barrier.arrive_and_wait();
    s[threadIdx.x] = value + 1;
    barrier.arrive_and_wait();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
""",
        (("barrier.arrive_and_drop();", "(void)barrier.arrive();"),),
        ("endless", "barrier"),
        "The warp that leaves lowers the number of expected arrivals.",
        "Later phases still expect the arrivals of the warp that has left, so they never complete.",
    ),
    KernelPair(
        "turns of two groups of warps",
        "turns of two groups of warps that share a buffer out of turn",
        1,
        128,
        ("arange:64", "zeros:64", 4),
        """
__device__ void sync(int barrier) {
    asm volatile("bar.sync %0, 128;" :: "r"(barrier) : "memory");
}
__device__ void arrive(int barrier) {
    asm volatile("bar.arrive %0, 128;" :: "r"(barrier) : "memory");
}
__global__ void k(const int *in, int *out, int steps) {
    __shared__ int s[64];
    int group = threadIdx.x / 64, t = threadIdx.x % 64;
    if (group == 0) s[t] = in[t];
    if (group == 1) arrive(1);
    for (int i = 0; i < steps; ++i) {
        sync(1 + group);
        s[t] += i;
        if (group == 0 || i + 1 < steps) arrive(2 - group);
    }
    if (group == 1) out[t] = s[t];
}
""",
        (
            ("        s[t] += i;\n        if", "        if"),
            ("arrive(2 - group);\n", "arrive(2 - group);\n        s[t] += i;\n"),
        ),
        ("race",),
        "Each group waits for its turn, and passes the turn on after its work.",
        "A group passes its turn on before its work.",
    ),
    KernelPair(
        "lanes of two branches meet at __syncwarp",
        "lanes of two branches that do not meet",
        1,
        32,
        ("arange:32", "zeros:32"),
        """
__global__ void k(const int *in, int *out) {
    __shared__ volatile int s[32];
    int lane = threadIdx.x;
    if (lane % 2) {
        s[lane] = in[lane];
        __syncwarp();
        out[lane] = s[lane - 1];
    } else {
        s[lane] = -in[lane];
        __syncwarp();
        out[lane] = s[lane + 1];
    }
}
""",
        (
            (
                "        s[lane] = -in[lane];\n        __syncwarp();",
                "        s[lane] = -in[lane];\n        __syncwarp(0x55555555u);",
            ),
            (
                "        s[lane] = in[lane];\n        __syncwarp();",
                "        s[lane] = in[lane];\n        __syncwarp(0xaaaaaaaau);",
            ),
        ),
        ("race",),
        "All lanes of the warp meet at the __syncwarp of their branch.",
        "Each mask names the lanes of one branch, so the branches are not ordered.",
    ),
    KernelPair(
        "exchange by a cluster barrier in two parts",
        "exchange by a relaxed arrival at a cluster barrier",
        2,
        64,
        ("arange:64", "zeros:128"),
        """
#include <cooperative_groups.h>
__global__ void __cluster_dims__(2, 1, 1) k(const int *in, int *out) {
    __shared__ int s[64];
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    int t = threadIdx.x;
    s[t] = in[t];
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[blockIdx.x * 64 + t] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[63 - t];
    cluster.sync();
}
""",
        (("arrive.release", "arrive.relaxed"),),
        ("race",),
        "The arrival releases the thread's writes, and the wait acquires those of all threads of the cluster.",
        "A relaxed arrival orders nothing.",
    ),
    KernelPair(
        "mbarriers of a cluster, initialized before a fence and a relaxed arrival",
        "mbarriers of a cluster, initialized without a fence",
        2,
        32,
        ("arange:32", "zeros:64"),
        """
#include <cooperative_groups.h>
__global__ void __cluster_dims__(2, 1, 1) k(const int *in, int *out) {
    __shared__ unsigned long long barrier;
    __shared__ int s[32];
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    unsigned t = threadIdx.x, own = (unsigned)__cvta_generic_to_shared(&barrier), other, done = 0;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(own) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(cluster.block_rank() ^ 1));
    cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[t] = in[t];
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(other) : "memory");
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; "
                     "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(own) : "memory");
    out[blockIdx.x * 32 + t] = s[31 - t];
    cluster.sync();
}
""",
        (('        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");\n', ""),),
        ("race",),
        "The fence orders the initialization before the arrival, which itself orders nothing.",
        "Nothing orders the initialization before the other block's arrival at the mbarrier.",
    ),
    KernelPair(
        "latch of two warps",
        "latch that waits for one of two warps",
        1,
        64,
        ("arange:64", "zeros:64"),
        _ATOMIC
        + """
__global__ void k(const int *in, int *out) {
    __shared__ int s[64], arrived;
    int t = threadIdx.x;
    if (t == 0) arrived = 0;
    __syncthreads();
    s[t] = in[t];
    __syncwarp();
    if (t % 32 == 0) Block(arrived).fetch_add(1, release);
    while (Block(arrived).load(acquire) < 2) {}
    out[t] = s[63 - t];
}
""",
        (("< 2", "< 1"),),
        ("race",),
        "A thread reads after both warps have arrived.",
        "A warp that arrives alone does not wait for the other one, whose values it reads.",
    ),
    KernelPair(
        "cuda::latch that all threads wait for",
        "cuda::latch that threads only count down",
        1,
        96,
        ("arange:96", "zeros:96"),
        """
#include <cuda/latch>
using Latch = cuda::latch<cuda::thread_scope_block>;
__global__ void k(const int *in, int *out) {
    __shared__ alignas(Latch) unsigned char place[sizeof(Latch)];
    __shared__ int s[96];
    int t = threadIdx.x;
    Latch *latch = t == 0 ? new (place) Latch(96) : (Latch *)place;
    __syncthreads();
    s[t] = in[t];
    latch->arrive_and_wait();
    out[t] = s[95 - t];
}
""",
        (("arrive_and_wait()", "count_down()"),),
        ("race",),
        "A thread reads after all threads have counted down with release order.",
        "A thread that does not wait may read before the others have written.",
    ),
    KernelPair(
        "cuda::counting_semaphore for one warp at a time",
        "cuda::counting_semaphore for two warps at a time",
        1,
        128,
        ("arange:128", "zeros:1"),
        """
#include <cuda/semaphore>
using Semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 4>;
__global__ void k(const int *in, int *out) {
    __shared__ alignas(Semaphore) unsigned char place[sizeof(Semaphore)];
    __shared__ int sum;
    if (threadIdx.x == 0) {
        new (place) Semaphore(1);
        sum = 0;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        Semaphore *semaphore = (Semaphore *)place;
        semaphore->acquire();
        sum += in[threadIdx.x];
        semaphore->release();
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = sum;
}
""",
        (("Semaphore(1)", "Semaphore(2)"),),
        ("race",),
        "The semaphore admits one warp at a time, and orders its accesses after those of the warp before.",
        "The semaphore admits two warps at a time, which both change the sum.",
    ),
    KernelPair(
        "bulk copies by cuda::ptx",
        "bulk copies by cuda::ptx, first phase waited for again",
        1,
        64,
        ("arange:192", "zeros:192"),
        """
#include <cuda/ptx>
namespace ptx = cuda::ptx;
__global__ void k(const int *in, int *out) {
    __shared__ alignas(16) int s[3][64];
    __shared__ alignas(8) uint64_t barrier;
    int t = threadIdx.x;
    if (t == 0) {
        ptx::mbarrier_init(&barrier, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
        if (t == 0) {
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s[i], in + 64 * i, 256, &barrier);
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, 256);
        } else {
            ptx::mbarrier_arrive(&barrier);
        }
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &barrier, i % 2)) {}
        out[64 * i + t] = s[i][63 - t];
        __syncthreads();
    }
}
""",
        (("i % 2", "0"),),
        ("race", "uninitialized"),
        "Each round waits for its own phase, which the copy completes.",
        "The second round waits for the phase of the first one, so its copy may still run.",
    ),
)
