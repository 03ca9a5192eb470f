"""What the simulator counts, against a slow count lane by lane, and against what textbooks say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu.base.errors import LaunchError
from gpu.base.lane_mask import LaneMask
from gpu.base.paths import KERNELS
from gpu.simulator.counting.counters import METRICS, Counters, HotAddress
from gpu.simulator.counting.traffic import Warps, count_shared_wavefronts, narrow_indices
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build

Array = np.ndarray[Any, Any]

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
MOVED = "l1tex__t_bytes_pipe_lsu_mem_global_op_{}.sum"
ASKED = "global_bytes_asked_op_{}"
USED = "global_bytes_used_op_{}"
IDEAL = "global_ideal_sectors_op_{}"
PER_REQUEST = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"
EFFICIENCY = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.pct"
SHARED_REQUESTS = "smsp__inst_executed_op_shared_{}.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"

GLOBAL_NAMES = (REQUESTS, SECTORS, MOVED, ASKED, USED, IDEAL)
SIZES = {"unsigned char": 1, "short": 2, "float": 4, "double": 8, "float2": 8, "float4": 16}


def count_launch(
    module: SimulatedModule,
    kernel: str,
    *arguments: Any,
    grid: Sequence[int] = (1,),
    block: Sequence[int] = (32,),
    shared_bytes: int = 0,
    counters: Counters | None = None,
) -> Counters:
    """Launch a kernel and return what was counted."""
    counters = counters or Counters()
    bound = [each.reshape(-1).view(np.uint8) if isinstance(each, np.ndarray) else each for each in arguments]
    extents = [(*extent, 1, 1)[:3] for extent in (grid, block)]
    module.kernel(kernel).launch(extents[0], extents[1], bound, shared_bytes=shared_bytes, observers=[counters])
    return counters


def count_kernel(
    source: str, *arguments: Any, defines: Mapping[str, int | str] | None = None, **launch: Any
) -> Counters:
    """Launch the kernel `k` of a source text and return what was counted."""
    return count_launch(build(source, defines), "k", *arguments, **launch)


def find_line(source: str, fragment: str) -> tuple[str, int]:
    [number] = [number for number, line in enumerate(source.splitlines(), 1) if fragment in line]
    return "test.cu", number


def warps_of(index: Array, threads: int) -> Iterator[list[int]]:
    """What each warp's lanes want, -1 for nothing; lanes past the end of a block are no lanes."""
    for block in index.reshape(-1, threads).tolist():
        for start in range(0, threads, 32):
            yield block[start : start + 32]


def count_global_slowly(index: Array, threads: int, size: int) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for warp in warps_of(index, threads):
        wanted = [element for element in warp if element >= 0]
        if not wanted:
            continue
        used = {element * size + byte for element in wanted for byte in range(size)}
        touched = {byte // 32 for byte in used}
        counted[REQUESTS] += 1
        counted[SECTORS] += len(touched)
        counted[MOVED] += 32 * len(touched)
        counted[ASKED] += len(wanted) * size
        counted[USED] += len(used)
        counted[IDEAL] += -(-len(used) // 32)
    return counted


def count_atomics_slowly(index: Array, threads: int, size: int) -> dict[str, int]:
    """Lanes go in turns: in each, every address that is still wanted serves one lane."""
    counted: Counter[str] = Counter()
    for warp in warps_of(index, threads):
        waiting = Counter(element for element in warp if element >= 0)
        if waiting:
            counted[REQUESTS] += 1
            counted[ASKED] += waiting.total() * size
            counted[IDEAL] += -(-waiting.total() * size // 32)
        while waiting:
            turn = len({element * size // 32 for element in waiting})
            counted[SECTORS] += turn
            counted[MOVED] += 32 * turn
            waiting -= Counter(waiting.keys())
    return counted


def count_shared_slowly(index: Array, threads: int, size: int, op: str) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for warp in warps_of(index, threads):
        counted[SHARED_REQUESTS] += any(element >= 0 for element in warp)
        lanes = {8: 16, 16: 8}.get(size, 32)
        full = warp + [-1] * (32 - len(warp))
        pairs = [
            all(full[lane] == full[lane ^ other] or min(full[lane], full[lane ^ other]) < 0 for lane in range(32))
            for other in (1, 2)
        ]
        if op == "ld" and any(pairs):
            lanes = min(32, 2 * lanes)
        for start in range(0, len(warp), lanes):
            words = [
                byte // 4
                for element in warp[start : start + lanes]
                for byte in range(element * size, element * size + size, min(size, 4))
                if element >= 0
            ]
            if words:
                banks = Counter(word % 32 for word in (words if op == "atom" else set(words)))
                passes = max(banks.values())
                counted[WAVEFRONTS] += passes
                counted[CONFLICTS] += passes - 1
                counted["worst_bank_conflict"] = max(counted["worst_bank_conflict"], passes)
    return counted


GATHER = """
__global__ void k(const int *index, const ELEMENT *data, ELEMENT *out) {
    int i = index[blockIdx.x * blockDim.x + threadIdx.x];
    if (i >= 0) {
        ELEMENT value =
            data[i];
        out[i] =
            value;
    }
}"""

GATHER_SHARED = """
__global__ void k(const int *index, const ELEMENT *data, ELEMENT *out) {
    __shared__ ELEMENT tile[COUNT];
    int i = index[blockIdx.x * blockDim.x + threadIdx.x];
    if (i >= 0) {
        ELEMENT value = data[i];
        tile[i] = value;
        ELEMENT back = tile[i];
        out[i] = back;
    }
}"""

COUNT = 320


@st.composite
def patterns(draw: st.DrawFn) -> tuple[Array, int, int]:
    """Indices of all threads, -1 for those that do not take part; threads of a block; blocks."""
    threads = draw(st.sampled_from([1, 7, 31, 32, 33, 48, 64, 100]))
    blocks = draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lanes = np.arange(threads * blocks)
    form = draw(
        st.sampled_from(["random", "near", "strided", "falling", "swizzled", "pairs", "some pairs", "few", "same"])
    )
    index = {
        "random": random.integers(0, COUNT, lanes.size),
        "near": (lanes + random.integers(0, 4, lanes.size)) % COUNT,
        "strided": (lanes * int(random.integers(1, 40)) + int(random.integers(0, 9))) % COUNT,
        "falling": (-lanes) % COUNT,
        "swizzled": (lanes ^ int(random.integers(0, 32))) % COUNT,
        "pairs": (lanes // 2 if random.random() < 0.5 else lanes // 4 * 2 + lanes % 2)
        * int(random.integers(1, 20))
        % COUNT,
        "some pairs": np.where(lanes // 32 % 2, lanes // 2, lanes) * int(random.integers(1, 20)) % COUNT,
        "few": random.integers(0, 3, lanes.size) * int(random.integers(1, 33)),
        "same": np.full(lanes.size, int(random.integers(0, COUNT))),
    }[form]
    active = random.random(lanes.size) < draw(st.sampled_from([1.0, 1.0, 0.9, 0.5, 0.05]))
    return np.where(active, index, -1).astype(np.int32), threads, blocks


MODULES = {
    (source, type): build(source, {"ELEMENT": type, "COUNT": COUNT})
    for source in (GATHER, GATHER_SHARED)
    for type in SIZES
}


def counts_by_name(counts: Mapping[str, int], op: str) -> dict[str, int]:
    return {name.format(op): value for name, value in counts.items() if value}


def select_counts(counts: Mapping[str, Any], names: Sequence[str], op: str) -> dict[str, Any]:
    wanted = {name.format(op) for name in names}
    return {name: value for name, value in counts.items() if name in wanted}


@pytest.mark.parametrize("type", SIZES)
@settings(max_examples=40, deadline=None)
@given(pattern=patterns())
def test_sectors_agree_with_a_count_lane_by_lane(type: str, pattern: tuple[Array, int, int]) -> None:
    index, threads, blocks = pattern
    data = np.zeros(COUNT * SIZES[type], np.uint8)
    counters = count_launch(MODULES[GATHER, type], "k", index, data, data.copy(), grid=(blocks,), block=(threads,))
    lines, right = counters.per_line(), count_global_slowly(index, threads, SIZES[type])
    for op, fragment in (("ld", "ELEMENT value ="), ("st", "out[i] =")):
        file, line = find_line(GATHER, fragment)
        counted: Counter[str] = Counter()
        for number in (line, line + 1):
            counted.update(select_counts(lines.get((file, number), {}), GLOBAL_NAMES, op))
        assert dict(counted) == counts_by_name(right, op)


@pytest.mark.parametrize("type", SIZES)
@settings(max_examples=40, deadline=None)
@given(pattern=patterns())
def test_bank_conflicts_agree_with_a_count_lane_by_lane(type: str, pattern: tuple[Array, int, int]) -> None:
    index, threads, blocks = pattern
    data = np.zeros(COUNT * SIZES[type], np.uint8)
    counters = count_launch(
        MODULES[GATHER_SHARED, type], "k", index, data, data.copy(), grid=(blocks,), block=(threads,)
    )
    lines = counters.per_line()
    names = [SHARED_REQUESTS, WAVEFRONTS, CONFLICTS, "worst_bank_conflict"]
    for op, fragment in (("st", "tile[i] = value"), ("ld", "back = tile[i]")):
        right = counts_by_name(count_shared_slowly(index, threads, SIZES[type], op), op)
        assert select_counts(lines.get(find_line(GATHER_SHARED, fragment), {}), names, op) == right


def test_a_launch_of_many_batches_counts_the_same_as_lane_by_lane() -> None:
    threads, blocks = 96, 1100
    index = np.random.default_rng(5).integers(-40, COUNT, threads * blocks).astype(np.int32)
    index[index < 0] = -1
    data = np.zeros(COUNT, np.float32)
    counters = count_launch(MODULES[GATHER_SHARED, "float"], "k", index, data, data, grid=(blocks,), block=(threads,))
    lines = counters.per_line()
    load = lines[find_line(GATHER_SHARED, "ELEMENT value = data[i]")]
    assert select_counts(load, GLOBAL_NAMES, "ld") == counts_by_name(count_global_slowly(index, threads, 4), "ld")
    right = counts_by_name(count_shared_slowly(index, threads, 4, "ld"), "ld")
    assert select_counts(lines[find_line(GATHER_SHARED, "back = tile[i]")], list(right), "ld") == right


ATOMICS = """
__global__ void k(const int *index, ELEMENT *bins) {
    __shared__ ELEMENT tile[COUNT];
    int i = index[blockIdx.x * blockDim.x + threadIdx.x];
    if (i >= 0) {
        atomicAdd(&bins[i], (ELEMENT)1);
        atomicAdd(&tile[i], (ELEMENT)1);
    }
}"""


@pytest.mark.parametrize("type", ["unsigned int", "unsigned long long"])
@settings(max_examples=40, deadline=None)
@given(pattern=patterns())
def test_atomic_queues_agree_with_a_count_lane_by_lane(type: str, pattern: tuple[Array, int, int]) -> None:
    index, threads, blocks = pattern
    size = 8 if "long" in type else 4
    bins = np.zeros(COUNT * size, np.uint8)
    counters = count_kernel(
        ATOMICS, index, bins, grid=(blocks,), block=(threads,), defines={"ELEMENT": type, "COUNT": COUNT}
    )
    queues = [
        max(Counter(element for element in warp if element >= 0).values(), default=0)
        for warp in warps_of(index, threads)
    ]
    total = counters.total()
    for space in ("global", "shared"):
        assert total[f"atomic_queues_{space}"] == sum(queues)
        assert total[f"longest_atomic_queue_{space}"] == max(queues)
    right = counts_by_name(count_atomics_slowly(index, threads, size), "red") | counts_by_name(
        count_shared_slowly(index, threads, size, "atom"), "atom"
    )
    assert {name: total[name] for name in right} == right
    everywhere = Counter(element for element in index.tolist() if element >= 0)
    within = [Counter(each for each in block if each >= 0) for block in index.reshape(blocks, threads).tolist()]
    assert total["hottest_atomics_global"] == max(everywhere.values(), default=0)
    assert total["hottest_atomics_shared"] == max((n for block in within for n in block.values()), default=0)
    if everywhere:
        hottest = counters.hottest()
        element, times = hottest["global"].element, hottest["global"].count
        assert hottest["global"].memory == "bins"
        assert everywhere[element] == times
        assert any(block[hottest["shared"].element] == hottest["shared"].count for block in within)


@pytest.mark.parametrize(
    ("type", "index", "sectors"),
    [
        ("float", "t", 4),
        ("float", "2 * t", 8),
        ("float", "32 * t", 32),
        ("float", "t + 1", 5),
        ("float", "31 - t", 4),
        ("float", "0", 1),
        ("unsigned char", "t", 1),
        ("unsigned char", "t + 1", 2),
        ("short", "t", 2),
        ("double", "t", 8),
        ("float4", "t", 16),
        ("float4", "2 * t", 32),
    ],
)
def test_sectors_of_a_request(type: str, index: str, sectors: int) -> None:
    source = f"""
    __global__ void k(const {type} *data, {type} *out) {{
        int t = threadIdx.x;
        out[{index}] = data[{index}];
    }}"""
    data = np.zeros(32 * 40 * SIZES[type], np.uint8)
    total = count_kernel(source, data, data.copy()).total()
    for op in ("ld", "st"):
        assert total[REQUESTS.format(op)] == 1
        assert total[PER_REQUEST.format(op)] == sectors
        used = 4 if index == "0" else 32 * SIZES[type]
        assert total[EFFICIENCY.format(op)] == 100 * used / (32 * sectors)
        assert total[IDEAL.format(op)] == -(-used // 32)
        assert total[ASKED.format(op)] == 32 * SIZES[type]


def test_an_access_of_some_lanes_asks_for_their_bytes_only() -> None:
    source = "__global__ void k(float *data) { if (threadIdx.x < 8) data[threadIdx.x] += 1.0f; }"
    total = count_kernel(source, np.zeros(32, np.float32), block=(96,)).total()
    assert (total[REQUESTS.format("ld")], total[SECTORS.format("ld")], total[ASKED.format("ld")]) == (1, 1, 32)
    assert total[EFFICIENCY.format("st")] == 100.0


@pytest.mark.parametrize(
    ("declaration", "place", "conflicts"),
    [
        ("float tile[32][32]", "tile[t][0]", 31),
        ("float tile[32][33]", "tile[t][0]", 0),
        ("float tile[32][32]", "tile[0][t]", 0),
        ("float tile[32][32]", "tile[3][3]", 0),
        ("float tile[32][32]", "tile[t / 8][0]", 3),
        ("float tile[32][32]", "tile[t][(t ^ 5) & 31]", 0),
        ("float tile[1024]", "tile[2 * t]", 1),
        ("float tile[1024]", "tile[3 * t]", 0),
        ("unsigned char tile[1024]", "tile[t]", 0),
        ("unsigned char tile[4096]", "tile[128 * t]", 31),
        ("double tile[32]", "tile[t]", 0),
        ("double tile[64]", "tile[2 * t]", 2),
        ("float4 tile[32]", "tile[t].x", 3),
        ("float4 tile[32]", "tile[t]", 0),
        ("float4 tile[64]", "tile[2 * t]", 4),
    ],
)
def test_bank_conflicts_of_a_request(declaration: str, place: str, conflicts: int) -> None:
    type = declaration.split()[0] if declaration.startswith("unsigned") or "." not in place else "float"
    type = "unsigned char" if type == "unsigned" else type
    source = f"""
    __global__ void k({type} *out) {{
        __shared__ {declaration};
        int t = threadIdx.x;
        out[t] = {place};
    }}"""
    total = count_kernel(source, np.zeros(32 * SIZES[type], np.uint8)).total()
    assert total[SHARED_REQUESTS.format("ld")] == 1
    assert total[CONFLICTS.format("ld")] == conflicts
    least = {8: 2, 16: 4}.get(SIZES[type], 1)
    assert total[WAVEFRONTS.format("ld")] == least + conflicts
    assert total["worst_bank_conflict"] == 1 + conflicts // least


# What Nsight Compute counted on an H200 for one warp: of loads and stores of 8 and 16 bytes in shared memory wavefronts
# and bank conflicts, of atomicAdd the same in shared memory, and sectors in global memory, of 4 and of 8 bytes.
MEASURED = {
    "t / 2": ((1, 0), (2, 0), (2, 0), (4, 0), (2, 1), 4, 8),
    "t / 4 * 2 + t % 2": ((1, 0), (2, 0), (2, 0), (4, 0), (2, 1), 4, 8),
    "t < 16 ? t / 2 : t": ((2, 0), (2, 0), (4, 0), (4, 0), (2, 1), 4, 8),
    "t < 16 ? t / 2 : t / 4 * 2 + t % 2": ((2, 0), (2, 0), (4, 0), (4, 0), (2, 1), 4, 8),
    "t / 8 % 2 ? t : t / 2": ((3, 1), (3, 1), (4, 0), (4, 0), (3, 2), 6, 8),
    "(7 * t + t * t) % 64": ((4, 2), (4, 2), (8, 4), (8, 4), (2, 1), 10, 17),
    "t % 3 ? (7 * t + t * t) % 64 : -1": ((4, 2), (4, 2), (7, 3), (7, 3), (2, 1), 10, 15),
    "16 * (t / 2)": ((16, 15), (16, 14), (16, 14), (16, 12), (16, 15), 32, 32),
    "t / 4": ((1, 0), (2, 0), (2, 0), (4, 0), (4, 3), 4, 8),
}


@pytest.mark.parametrize("pattern", MEASURED)
def test_counts_are_those_of_nsight_compute(pattern: str) -> None:
    source = f"""
    __global__ void k(double *out, float4 *out4, int *global, unsigned long long *wide) {{
        __shared__ double eight[512];
        __shared__ float4 sixteen[512];
        __shared__ int four[512];
        int t = threadIdx.x, i = {pattern};
        if (i < 0) return;
        out[i] = eight[i];
        eight[i] = 1.0;
        out4[i] = sixteen[i];
        sixteen[i] = float4{{}};
        atomicAdd(&four[i], 1);
        atomicAdd(&global[i], 1);
        atomicAdd(&wide[i], 1ull);
    }}"""
    lines = count_kernel(source, *(np.zeros(512 * size, np.uint8) for size in (8, 16, 4, 8))).per_line()

    def passes(fragment: str, op: str) -> tuple[float, float]:
        line = lines[find_line(source, fragment)]
        return line[WAVEFRONTS.format(op)], line.get(CONFLICTS.format(op), 0)

    assert (
        passes("= eight[i]", "ld"),
        passes("eight[i] = 1.0", "st"),
        passes("= sixteen[i]", "ld"),
        passes("sixteen[i] = float4", "st"),
        passes("&four[i]", "atom"),
        lines[find_line(source, "&global[i]")][SECTORS.format("red")],
        lines[find_line(source, "&wide[i]")][SECTORS.format("red")],
    ) == MEASURED[pattern]


TRANSPOSE = """
__global__ void k(const float *in, float *out, int n) {
    __shared__ float tile[32][32 + PADDING];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}"""


@pytest.mark.parametrize(("padding", "conflicts"), [(0, 31), (1, 0)])
def test_a_transposed_tile_conflicts_unless_it_is_padded(padding: int, conflicts: int) -> None:
    n = 64
    data = np.zeros(n * n, np.float32)
    counters = count_kernel(
        TRANSPOSE, data, data.copy(), np.int32(n), grid=(2, 2), block=(32, 32), defines={"PADDING": padding}
    )
    total, requests = counters.total(), 4 * 32
    assert total[CONFLICTS.format("st")] == 0
    assert total[CONFLICTS.format("ld")] == conflicts * requests
    assert total["worst_bank_conflict"] == conflicts + 1
    assert total[PER_REQUEST.format("ld")] == total[PER_REQUEST.format("st")] == 4.0
    assert (total["block_barriers"], total["warp_barriers"]) == (4, requests)
    line = counters.per_line()[find_line(TRANSPOSE, "= tile")]
    assert line.get(CONFLICTS.format("ld"), 0) == conflicts * requests


def test_neighbored_pairs_leave_a_half_three_quarters_seven_eighths_idle() -> None:
    source = """
    __global__ void k(float *data) {
        int t = threadIdx.x;
        if (t % 2 == 0)
            data[t] += data[t + 1];
        __syncthreads();
        if (t % 4 == 0)
            data[t] += data[t + 2];
        __syncthreads();
        if (t % 8 == 0)
            data[t] += data[t + 4];
    }"""
    lines = count_kernel(source, np.zeros(64, np.float32), block=(64,)).per_line()
    idle = [
        1 - lines[find_line(source, f"data[t + {stride}]")]["lanes_per_warp_statement"] / 32 for stride in (1, 2, 4)
    ]
    assert idle == [1 / 2, 3 / 4, 7 / 8]


NEIGHBORED = """
__global__ void k(float *data) {
    int t = threadIdx.x;
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0) data[t] += data[t + stride];
        __syncthreads();
    }
}"""

INTERLEAVED = """
__global__ void k(float *data) {
    int t = threadIdx.x;
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) data[t] += data[t + stride];
        __syncthreads();
    }
}"""


@pytest.mark.parametrize("source", [NEIGHBORED, INTERLEAVED])
@pytest.mark.parametrize("n", [1, 2, 32, 256])
def test_a_reduction_of_n_takes_n_minus_1_operations(source: str, n: int) -> None:
    counters = count_kernel(source, np.zeros(n, np.float32), block=(n,))
    assert counters.per_line().get(find_line(source, "data[t] +="), {}).get("operations", 0) == n - 1
    assert counters.total()["block_barriers"] == n.bit_length() - 1


def test_an_interleaved_reduction_diverges_in_its_last_warp_only() -> None:
    neighbored, interleaved = (
        count_kernel(source, np.zeros(256, np.float32), block=(256,)).total() for source in (NEIGHBORED, INTERLEAVED)
    )
    # Eight rounds. Neighbored: 5 rounds split all 8 warps, then strides of 32, 64, 128 leave 4, 2, 1 warps with a lane.
    assert neighbored["divergent_branches"] == 5 * 8 + 4 + 2 + 1
    # Interleaved: strides of 16, 8, 4, 2, 1 split the first warp.
    assert interleaved["divergent_branches"] == 5
    assert neighbored["branches"] == interleaved["branches"] == 8 * (9 + 8)


def test_a_branch_diverges_where_both_sides_are_taken_within_a_warp() -> None:
    source = """
    __global__ void k(int *out) {
        int t = threadIdx.x, v = 0;
        if (t < 32) v = 1;
        if (t < 40) v = 2;
        if (t % 2) v = 3; else v = 4;
        if (t < 1000) v = 5;
        out[t] = v;
    }"""
    counters = count_kernel(source, np.zeros(80, np.int32), block=(80,))
    lines = counters.per_line()
    expected = {"t < 32": 0, "t < 40": 1, "t % 2": 3, "t < 1000": 0}
    for fragment, divergent in expected.items():
        line = lines[find_line(source, fragment)]
        assert (line["branches"], line.get("divergent_branches", 0)) == (3, divergent)
    sides = lines[find_line(source, "t % 2")]
    assert (sides["warp_statements"], sides["lane_statements"]) == (3 + 3 + 3, 80 + 40 + 40)
    assert counters.total()["divergent_branches"] == 4


def test_a_switch_diverges_where_lanes_of_a_warp_jump_to_different_labels() -> None:
    source = """
    __global__ void k(int *out) {
        int t = threadIdx.x, v = 0;
        switch (t % 3) { case 0: v = 1; case 1: v += 2; break; default: v = 3; }
        switch (t / 32) { case 0: v += 1; break; case 2: v += 2; break; }
        switch (t) { case 40: v += 1; }
        switch (t) { case 90: v += 1; }
        out[t] = v;
    }"""
    lines = count_kernel(source, np.zeros(80, np.int32), block=(80,)).per_line()
    for fragment, divergent in {"t % 3": 3, "t / 32": 0, "case 40": 1, "case 90": 0}.items():
        line = lines[find_line(source, fragment)]
        assert (line["branches"], line.get("divergent_branches", 0)) == (3, divergent)


def test_lanes_that_leave_a_loop_one_by_one() -> None:
    source = """
    __global__ void k(int *out) {
        int sum = 0;
        for (int i = 0; i < threadIdx.x; ++i)
            sum += i;
        out[threadIdx.x] = sum;
    }"""
    counters = count_kernel(source, np.zeros(32, np.int32))
    lines = counters.per_line()
    test = lines[find_line(source, "for (")]
    assert (test["branches"], test["divergent_branches"]) == (32, 31)
    body = lines[find_line(source, "sum += i")]
    assert (body["warp_statements"], body["lane_statements"]) == (31, 31 * 32 // 2)
    assert body["lanes_per_warp_statement"] == 16.0
    assert body["operations"] == 31 * 32 // 2


def test_atomics_whose_result_is_not_used_are_reductions() -> None:
    source = """
    __global__ void k(int *a, int *old) {
        atomicAdd(&a[0], 1);
        old[threadIdx.x] = atomicAdd(&a[threadIdx.x], 1);
    }"""
    counters = count_kernel(source, np.zeros(48, np.int32), np.zeros(48, np.int32), block=(48,))
    total = counters.total()
    assert (total[REQUESTS.format("red")], total[SECTORS.format("red")]) == (2, 32 + 16)
    assert (total[REQUESTS.format("atom")], total[SECTORS.format("atom")]) == (2, 4 + 2)
    assert total["longest_atomic_queue_global"] == 32
    assert total["atomic_queues_global"] == 32 + 16 + 1 + 1
    assert counters.hottest() == {"global": HotAddress("a", 0, 49)}
    assert total["longest_atomic_queue_shared"] == total["hottest_atomics_shared"] == 0


def test_barriers_and_fences_by_warps_and_lines() -> None:
    source = """
    __global__ void k(int *out) {
        __syncthreads();
        if (threadIdx.x >= 64) return;
        __syncthreads();
        __threadfence();
        __threadfence_block();
        if (threadIdx.x < 3)
            __syncwarp(7);
    }"""
    counters = count_kernel(source, np.zeros(1, np.int32), grid=(3,), block=(80,))
    total, lines = counters.total(), counters.per_line()
    assert (total["block_barriers"], total["warp_barriers"]) == (6, 3 * (3 + 2))
    assert (total["fences"], total["warp_syncs"]) == (3 * 2 * 2, 3)
    assert lines[find_line(source, "__threadfence();")]["fences"] == 6
    assert lines[find_line(source, "__syncwarp")]["warp_syncs"] == 3


def histogram(kernel: str, image: Array, grid: int, block: int) -> Counters:
    module = SimulatedModule((KERNELS / "histogram.cu").read_text(), KERNELS / "histogram.cu", {})
    bins = np.zeros(256, np.uint32)
    arguments = (image, bins, np.int32(image.size), np.int32(256))
    counters = count_launch(module, kernel, *arguments, grid=(grid,), block=(block,), shared_bytes=1024)
    assert kernel == "histogram_racy" or bins.sum() == image.size
    return counters


def test_a_constant_image_lets_whole_warps_queue() -> None:
    image = np.full(1 << 14, 9, np.uint8)
    warps = image.size // 32
    counters = histogram("histogram_interleaved", image, 8, 128)
    total = counters.total()
    assert total["longest_atomic_queue_global"] == 32
    assert total["atomic_queues_global"] == 32 * warps
    assert (total[REQUESTS.format("red")], total[SECTORS.format("red")]) == (warps, 32 * warps)
    assert counters.hottest() == {"global": HotAddress("bins", 9, image.size)}

    privatized = histogram("histogram_privatized", image, 8, 128)
    total = privatized.total()
    assert total["longest_atomic_queue_shared"] == 32
    assert total["atomic_queues_shared"] == 32 * warps
    assert total[CONFLICTS.format("atom")] == 31 * warps
    assert privatized.hottest() == {
        "global": HotAddress("bins", 9, 8),
        "shared": HotAddress("block_bins", 9, image.size // 8),
    }


def test_neighboring_bytes_are_one_sector_and_sections_one_a_lane() -> None:
    image = np.random.default_rng(1).integers(0, 256, 1 << 15).astype(np.uint8)
    interleaved = histogram("histogram_interleaved", image, 4, 128).total()
    assert interleaved[PER_REQUEST.format("ld")] == 1.0
    assert interleaved[EFFICIENCY.format("ld")] == 100.0
    sections = histogram("histogram_block_partition", image, 4, 128).total()
    assert sections[PER_REQUEST.format("ld")] == 32.0
    assert sections[EFFICIENCY.format("ld")] == 100 / 32
    racy = histogram("histogram_racy", image, 4, 128).total()
    assert racy[REQUESTS.format("st")] == image.size // 32
    assert racy[REQUESTS.format("ld")] == 2 * image.size // 32


def test_a_tile_spares_most_loads_of_a_convolution() -> None:
    radius, width, height = 2, 64, 64
    path = KERNELS / "convolution.cu"
    module = SimulatedModule(path.read_text(), path, {"RADIUS": radius})
    image, out, taps = np.ones(width * height, np.float32), np.zeros(width * height, np.float32), 25
    totals = {}
    # The tile of the kernel is as its file says.
    rows = int(path.read_text().split("#define TILE_HEIGHT")[1].split()[0])
    for name in ("convolve_naive", "convolve_constant", "convolve_tiled"):
        module.kernel(name)
        if "naive" not in name:
            module.set_constant("FILTER", np.full(taps, 1 / taps, np.float32))
        sizes = (np.int32(width), np.int32(height))
        extra = (np.full(taps, 1 / taps, np.float32),) if "naive" in name else ()
        rest = (*sizes, np.int32(radius), np.int32(0)) if "naive" in name else (*sizes, np.int32(0))
        grid, block = (width // 32, height // rows), (32, rows)
        totals[name] = count_launch(module, name, image, *extra, out, *rest, grid=grid, block=block).total()
        np.testing.assert_allclose(out, 1, rtol=1e-5)
    warps = width * height // 32
    load = REQUESTS.format("ld")
    assert totals["convolve_naive"][load] == 2 * taps * warps  # a coefficient beside every pixel
    assert totals["convolve_constant"][load] == taps * warps
    assert totals["convolve_tiled"][load] < taps * warps / 5
    assert totals["convolve_tiled"][SHARED_REQUESTS.format("ld")] == taps * warps
    assert totals["convolve_tiled"][CONFLICTS.format("ld")] == totals["convolve_tiled"][CONFLICTS.format("st")] == 0
    for total in totals.values():
        assert total[SECTORS.format("st")] == total[IDEAL.format("st")] == 4 * warps
        assert total["operations"] >= 2 * taps * width * height


def test_lines_add_up_to_the_total_and_launches_to_more() -> None:
    counters = histogram("histogram_aggregated", np.arange(3000).astype(np.uint8), 3, 96)
    total = counters.total()
    added: Counter[str] = Counter()
    for counts in counters.per_line().values():
        added.update(counts)
    ratios = {name for name in total if name.endswith((".ratio", ".pct"))} | {"lanes_per_warp_statement"}
    maxima = {name for name in total if name.startswith(("worst", "longest", "hottest"))}
    for name in total.keys() - ratios - maxima:
        assert added[name] == total[name], name
    assert list(total) == [name for name in METRICS if name in total]
    assert json.loads(json.dumps(total)) == total

    source = "__global__ void k(int *a) { atomicAdd(a, 1); }"
    twice = Counters()
    for _ in range(2):
        count_kernel(source, np.zeros(1, np.int32), counters=twice)
    assert twice.total()["lane_statements"] == 64
    assert twice.total()["hottest_atomics_global"] == 32


def test_nothing_counted_is_all_zeros_and_no_ratio() -> None:
    total = Counters().total()
    assert set(total.values()) == {0}
    assert not [name for name in total if name.endswith((".ratio", ".pct"))]
    assert Counters().per_line() == {}
    assert all(meaning and "\n" not in meaning for meaning in METRICS.values())


def test_a_launch_that_fails_leaves_what_was_counted_before() -> None:
    source = """
    __global__ void k(int *a, int bad) {
        atomicAdd(&a[0], 1);
        a[bad] = 1;
    }"""
    counters = Counters()
    with pytest.raises(LaunchError):
        count_kernel(source, np.zeros(4, np.int32), np.int32(4), counters=counters)
    assert counters.total()["hottest_atomics_global"] == 32
    count_kernel(source, np.zeros(4, np.int32), np.int32(3), counters=counters)
    total = counters.total()
    assert (total["hottest_atomics_global"], total[REQUESTS.format("red")], total[REQUESTS.format("st")]) == (32, 2, 1)


@pytest.mark.parametrize("lane", range(32))
def test_a_load_of_8_bytes_serves_a_whole_warp_only_where_every_pair_agrees(lane: int) -> None:
    warps, elements = Warps(LaneMask(np.ones(32, bool))), np.zeros(32, np.int64)
    assert count_shared_wavefronts(warps, elements, 8, reads=True).total.tolist() == [1]
    elements[lane] = 1
    assert count_shared_wavefronts(warps, elements, 8, reads=True).total.tolist() == [2], "it agrees with nobody"
    # A pair are neighbors, or else a lane and the next but one.
    for other in (lane ^ 1, lane ^ 2):
        agreed = elements.copy()
        agreed[other] = 1
        assert count_shared_wavefronts(warps, agreed, 8, reads=True).total.tolist() == [1]


@pytest.mark.parametrize(
    ("size", "reads", "passes"),
    [(4, True, 1), (4, False, 1), (8, True, 1), (8, False, 2), (16, True, 2), (16, False, 4)],
)
def test_one_element_for_all_lanes_takes_as_many_passes_as_groups_of_lanes(size: int, reads: bool, passes: int) -> None:
    found = count_shared_wavefronts(Warps(LaneMask(np.ones(32, bool))), 3, size, reads=reads)
    assert (found.total.tolist(), found.minimum.tolist()) == ([passes], [passes])


def test_numbers_are_made_narrow_only_where_they_all_fit() -> None:
    assert narrow_indices(np.array([2**31 - 2]), 2**31 - 1).dtype == np.int32
    assert narrow_indices(np.array([5], np.int32), 2**31 + 1).dtype == np.int64
    assert narrow_indices(np.array([2**31]), 2**31 + 1).tolist() == [2**31]
