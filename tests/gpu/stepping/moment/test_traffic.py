"""What statements ask of memory, by hand, and added up against the counters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.simulator.counting.counters import Counters
from gpu.simulator.simulated_module import SimulatedModule
from gpu.stepping.moment.traffic import Traffic, find_max_address_count, traffic_at
from tests.gpu.simulator.kernel_runner import _to_three_dimensions
from tests.gpu.stepping.recordings import record_launch

STRIDED = """\
__global__ void k({type} *a, int stride) {{
    __shared__ {type} s[2048];
    s[threadIdx.x * stride % 2048] = 1;
    a[threadIdx.x * stride] = s[threadIdx.x * stride % 2048];
}}
"""


def record_strided(stride: int, *, type: str = "float", threads: int = 32) -> tuple[Traffic, Traffic]:
    array = np.zeros(2048, {"float": np.float32, "double": np.float64}[type])
    recording = record_launch(STRIDED.format(type=type), [array, np.int32(stride)], block=threads)
    return traffic_at(recording, 0), traffic_at(recording, 1)


@pytest.mark.parametrize(("stride", "degree"), [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (32, 32)])
def test_strides_in_shared_memory_hit_as_many_words_of_a_bank(stride, degree):
    written, copied = record_strided(stride)
    (write,) = written.accesses
    read, _ = copied.accesses
    for access in (write, read):
        assert (access.counts.degree, access.counts.conflicts, access.counts.wavefronts) == (degree, degree - 1, degree)
        assert access.count_bank_words().max() == degree
        assert access.count_bank_words().sum() == len(set(access.word[0].tolist()))
    assert write.bank[0].tolist() == [lane * stride % 32 for lane in range(32)]
    assert written.banks.max() == degree


def test_doubles_are_served_half_a_warp_at_a_time_and_take_two_banks_each():
    (write,) = record_strided(1, type="double")[0].accesses
    assert (write.counts.degree, write.counts.wavefronts, write.counts.conflicts) == (1, 2, 0)
    assert write.bank[0, :17].tolist() == [*range(0, 32, 2), 0]
    (write,) = record_strided(2, type="double")[0].accesses
    assert (write.counts.degree, write.counts.conflicts) == (2, 2)


@pytest.mark.parametrize(("stride", "moved"), [(0, 1), (1, 4), (2, 8), (8, 32), (32, 32)])
def test_sectors_of_global_memory(stride, moved):
    traffic = record_strided(stride)[1]
    write = traffic.accesses[1]
    assert (write.action, write.space, write.array) == ("write", "global", "a")
    assert (write.counts.lanes, write.counts.requests, write.counts.sectors) == (32, 1, moved)
    assert write.counts.ideal_sectors == (1 if stride == 0 else 4)
    assert traffic.sectors == moved


def test_in_words():
    assert record_strided(1)[0].summary == "shared: 32 writes, bank conflicts 0"
    assert (
        record_strided(2)[1].summary
        == "global: 32 writes, 8 sectors, 4 would suffice · shared: 32 reads, bank conflicts 1"
    )
    assert record_strided(1, threads=1)[0].summary == "shared: 1 write, bank conflicts 0"


def test_atomics_queue_for_an_address():
    source = """\
__global__ void k(int *bins) {
    __shared__ int s[4];
    if (threadIdx.x < 4) s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&s[threadIdx.x % 3 == 0], 1);
    atomicAdd(&bins[threadIdx.x / 40], 1);
}
"""
    recording = record_launch(source, [np.zeros(2, np.int32)], block=48)
    shared, others = (traffic_at(recording, recording.event_count - back) for back in (2, 1))
    assert shared.summary == "shared: 48 atomics, bank conflicts 30, 21 atomics on one address"
    assert others.summary == "global: 48 atomics, 40 sectors, 6 would suffice, 32 atomics on one address"
    (access,) = shared.accesses
    assert access.count_bank_words()[:2].tolist() == [21, 11]
    assert [(each.array, each.element, each.block, each.threads.tolist()) for each in shared.addresses(0)] == [
        ("s", 0, 0, [thread for thread in range(48) if thread % 3]), ("s", 1, 0, list(range(0, 48, 3)))
    ]  # fmt: skip
    assert [(each.element, each.block, each.threads.size) for each in others.addresses(0)] == [(0, -1, 40), (1, -1, 8)]
    assert find_max_address_count(recording) == 2


def test_blocks_queue_for_one_global_address_and_each_for_its_own_shared_one():
    source = """\
__global__ void k(int *count) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, 1);
    atomicAdd(count, 1);
}
"""
    recording = record_launch(source, [np.zeros(1, np.int32)], grid=3, block=8)
    found = [traffic_at(recording, moment) for moment in range(recording.event_count)]
    shared = [each for each in found if any(access.space == "shared" and access.addresses for access in each.accesses)]
    lanes = {
        block: [a.threads.size for t in shared for a in t.addresses(block) if a.block == block] for block in range(3)
    }
    assert lanes == {0: [8], 1: [8], 2: [8]}
    everybody = [each for traffic in found for each in traffic.addresses(0) if each.block == -1]
    assert sum(each.threads.size for each in everybody) == 24
    assert find_max_address_count(recording) == 1
    assert (
        find_max_address_count(
            record_launch("__global__ void k(int *a) { a[0] = 1; }", [np.zeros(1, np.int32)], block=1)
        )
        == 0
    )


def test_a_vector_is_one_access():
    source = "__global__ void k(float4 *a, float4 *b) { b[threadIdx.x] = a[threadIdx.x]; }"
    arrays = [np.zeros(128, np.float32) for _ in range(2)]
    traffic = traffic_at(record_launch(source, arrays, block=32), 0)
    assert [(each.action, each.size, each.counts.sectors, each.counts.ideal_sectors) for each in traffic.accesses] == [
        ("read", 16, 16, 16), ("write", 16, 16, 16)
    ]  # fmt: skip


def test_the_end_asks_nothing():
    recording = record_launch(STRIDED.format(type="float"), [np.zeros(32, np.float32), np.int32(1)])
    assert traffic_at(recording, recording.event_count).summary == ""
    assert traffic_at(recording, recording.event_count).banks is None


MIXED = """\
__global__ void k(int *a, double *d, int2 *v, unsigned char *c) {
    __shared__ int s[512];
    __shared__ double w[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t * 5 % 512] = a[i * 7 % 300];
    w[t * 3 % 128] = d[i % 100];
    __syncthreads();
    for (int j = 0; j < t % 5; j++) {
        v[(i * 3 + j) % 50] = make_int2(s[(t * j) % 512], 1);
        if (t % 3 == j)
            c[i * j % 90] += w[(t >> j) % 128] > 0;
        atomicAdd(&a[i * j % 11], 1);
        atomicAdd(&s[t * j % 37], 1);
    }
}
"""


def test_all_events_add_up_to_what_the_counters_count():
    arrays = [np.zeros(300, np.int32), np.zeros(100), np.zeros(100, np.int32), np.zeros(90, np.uint8)]
    recording = record_launch(MIXED, arrays, grid=3, block=72)
    found: dict[str, int] = {}
    for moment in range(recording.event_count):
        for access in traffic_at(recording, moment).accesses:
            for name in ("sectors", "ideal_sectors", "wavefronts", "conflicts", "requests"):
                key = f"{access.space} {access.action} {name}"
                found[key] = found.get(key, 0) + getattr(access.counts, name)
    counters = Counters()
    module = SimulatedModule(MIXED, Path("kernel.cu"), {})
    bound = [np.array(array).view(np.uint8) for array in arrays]
    module.kernel("k").launch(_to_three_dimensions(3), _to_three_dimensions(72), bound, observers=[counters])
    total = counters.total()
    for action, op in (("read", "ld"), ("write", "st")):
        assert found[f"global {action} sectors"] == total[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum"]
        assert found[f"global {action} ideal_sectors"] == total[f"global_ideal_sectors_op_{op}"]
        assert found[f"global {action} requests"] == total[f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum"]
    assert found["global atomic sectors"] == total["l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"]
    for action, op in (("read", "ld"), ("write", "st"), ("atomic", "atom")):
        name = f"l1tex__data_{{}}_mem_shared_op_{op}.sum"
        assert found[f"shared {action} wavefronts"] == total[name.format("pipe_lsu_wavefronts")]
        assert found[f"shared {action} conflicts"] == total[name.format("bank_conflicts_pipe_lsu")]
