"""A count of a kernel of the user's is the same wherever it is shown: `simulate`, the Step tab's card, Compare."""

from __future__ import annotations

import json

import pytest

from gpu.cli.user_code.simulate_report import format_json
from gpu.kernel.simulate import simulate
from gpu.messages.kernels import KernelLaunch
from gpu.run.kernel_launch import count_kernel, record_kernel
from gpu.stepping.tally import Tally

TEXT = """
#include <cooperative_groups.h>
struct Pair { float a, b; };

__global__ void divergent(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    if (threadIdx.x % 3 == 0) x = x * x + 1.0f;
    else if (threadIdx.x % 3 == 1) x = x > 8.0f && in[n - 1 - i] > 2.0f ? sqrtf(x) : -x;
    for (int k = 0; k < threadIdx.x % 4; ++k) {
        if (x > 50.0f) break;
        if (k == 1) continue;
        x += k;
    }
    switch (i % 3) {
    case 0: x += 1.0f; break;
    case 1: x -= 1.0f;
    default: x *= 2.0f;
    }
    out[i] = x;
}

__global__ void atomics(int *bins, const int *in, int n) {
    __shared__ int own[8];
    if (threadIdx.x < 8) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[in[i] % 8], 1);
    __syncthreads();
    if (threadIdx.x < 8 && own[threadIdx.x] > 0) {
        int before = atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
        atomicMax(&bins[8], before);
    }
}

__global__ void transpose(float *out, const float *in) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void shuffled(int *out, const int *in) {
    int t = threadIdx.x;
    int sum = in[blockIdx.x * blockDim.x + t];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    unsigned int odd = __ballot_sync(0xffffffffu, sum % 2);
    __syncwarp();
    if (t % 32 == 0) atomicAdd(out, sum + __popc(odd));
}

__global__ void nested(Pair *pairs, double *sums, int n) {
    extern __shared__ double s[];
    int t = threadIdx.x;
    Pair own = pairs[t % n];
    s[t] = own.a * 2.0 + own.b;
    int left = t;
    while (left > 0 && left % 5 != 0) --left;
    do {
        s[t] += left;
        left -= 7;
    } while (left > 0);
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}

template <typename T> __device__ T folded(T value) {
    auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    for (int distance = warp.size() / 2; distance > 0; distance /= 2) value += warp.shfl_xor(value, distance);
    return value;
}
template <typename T> __global__ void grouped(T *out) {
    T value = folded<T>(threadIdx.x);
    if (threadIdx.x % 2) out[threadIdx.x] = value; else out[threadIdx.x] = value > T(7) ? value : T(0);
}

__global__ void child(int *out, int first) { out[first + threadIdx.x] += threadIdx.x; }
__global__ void parent(int *out) {
    if (threadIdx.x < 2) child<<<1, 16>>>(out, 16 * threadIdx.x);
}
"""

LAUNCHES = [
    ("divergent", (2,), (40,), ("zeros:70", "random:70:1", "70"), 0),
    ("atomics", (2,), (48,), ("zeros:9", "arange:200", "200"), 0),
    ("transpose", (1,), (32, 32), ("zeros:1024", "arange:1024"), 0),
    ("shuffled", (2,), (64,), ("zeros:1", "arange:128"), 0),
    ("nested", (2,), (64,), ("zeros:24", "zeros:2", "12"), 512),
    ("grouped<float>", (1,), (64,), ("zeros:64",), 0),
    ("parent", (1,), (32,), ("zeros:32",), 0),
]


@pytest.mark.parametrize(("kernel", "grid", "block", "arguments", "shared"), LAUNCHES, ids=lambda each: str(each)[:12])
def test_every_count_of_an_own_kernel_is_the_same(kernel, grid, block, arguments, shared) -> None:
    launch = KernelLaunch("/nowhere/mine.cu", TEXT, kernel, grid, block, arguments, shared)
    simulation = simulate("mine.cu", kernel, grid, block, arguments, source=TEXT, shared_bytes=shared)
    assert not simulation.findings
    total = json.loads(format_json(simulation))["counters"]["total"]
    compared = count_kernel(launch)[1].counts
    recording = record_kernel(launch, "round-robin")
    stepped = Tally(recording).counts_at(recording.event_count)

    def sum_counts(*names: str) -> int:
        return sum(total.get(name, 0) for name in names)

    memory = [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st", "red", "atom")]
    banks = [f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st", "atom")]
    for name, in_all, beside, played in (
        ("sectors", sum_counts(*memory), compared.sectors, stepped.sectors),
        ("conflicts", sum_counts(*banks), compared.conflicts, stepped.bank_conflicts),
        ("operations", sum_counts("operations"), compared.operations, stepped.operations),
        ("branches", sum_counts("branches"), compared.branches, stepped.branches),
        ("divergent", sum_counts("divergent_branches"), compared.divergent_branches, stepped.divergent_branches),
        ("barriers", sum_counts("block_barriers"), compared.barriers, stepped.barriers),
        ("lanes", total["lanes_per_warp_statement"], compared.lanes, stepped.lanes_per_warp),
    ):
        assert in_all == beside == pytest.approx(played), name
