"""Searches that lanes leave at a loaded value: longer paths than are executed."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.cli import main as cli
from gpu.timing import launch
from gpu.timing.caches import iterate_visits
from gpu.timing.gpus import find_gpu
from gpu.timing.launch import LaunchModel
from gpu.timing.ptx import machine
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape
from tests.gpu.cli.no_desktop import NO_WINDOW

VISITS = 2000
TEXT = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 entries, .param .u64 keys, .param .u64 bound)
{
    ld.param.u64 %rd1, [entries];
    ld.param.u64 %rd2, [keys];
    ld.param.u32 %r1, [bound];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r6, [%rd4];
    mov.u32 %r7, 0;
$L1:
    ld.global.u32 %r8, [%rd1];
    setp.eq.u32 %p1, %r8, %r6;
    @%p1 bra $L2;
    add.s32 %r7, %r7, 1;
    add.s64 %rd1, %rd1, 4;
    setp.lt.u32 %p2, %r7, %r1;
    @%p2 bra $L1;
$L2:
    st.global.u32 [%rd4], %r7;
    ret;
}
"""


@pytest.fixture(autouse=True)
def short_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_MAXIMUM_VISITS", VISITS)
    monkeypatch.setattr(launch, "_MAXIMUM_OPERATIONS", 5 * VISITS)
    monkeypatch.setattr(launch, "_MINIMUM_DIFFERENCE", 1e-3 * 40_000 / VISITS)


def build_memory(entries: int, places: np.ndarray, bound: int) -> tuple[SampledMemory, np.ndarray]:
    """Return memory in which each thread's key is at its place of the searched array, and the kernel's parameters."""
    memory = SampledMemory({
        0: np.arange(entries, dtype=np.uint32).view(np.uint8), 1: places.astype(np.uint32).view(np.uint8)
    })  # fmt: skip
    return memory, np.array([memory.address(0), memory.address(1), bound], np.int64).view(np.uint8)


def count_iterations(entries: int, places: np.ndarray, bound: int) -> float:
    """Return the iterations of all threads of a block in its path."""
    memory, parameters = build_memory(entries, places, bound)
    kernel = PtxMachine(parse_ptx(TEXT).find_kernel("k"), {}, values=False)
    path = kernel.run(GridShape((1, 1, 1), (places.size, 1, 1)), parameters, [0], memory)
    assert not path.completed
    return sum(times * float(visit.lanes.sum()) for visit, times in iterate_visits(path.steps) if visit.block == 1)


def test_searches_end_in_the_middle_of_the_array_on_average() -> None:
    places = np.random.default_rng(0).permutation(np.linspace(0, 20_000, 64)).astype(int)
    assert count_iterations(20_000, places, 20_000) == pytest.approx(places.sum(), rel=0.1)


def test_lanes_go_on_leaving_as_often_as_before_however_large_the_bound() -> None:
    places = np.append(np.arange(32) * 30, np.full(32, 1 << 20))
    executed = VISITS // 2
    assert count_iterations(1 << 14, places, 1 << 30) == pytest.approx(
        places[:32].sum() + 32 * (executed + executed), rel=0.1
    )


def test_long_searches_take_as_long_per_iteration_as_their_executed_part() -> None:
    places = np.random.default_rng(0).integers(0, 20_000, 264 * 1024)
    memory, parameters = build_memory(20_000, places, 20_000)
    model = LaunchModel(PtxMachine(parse_ptx(TEXT).find_kernel("k"), {}), find_gpu("h200"), 16)
    found = model.estimate_launch(GridShape((264, 1, 1), (1024, 1, 1)), parameters, memory)
    assert not found.is_complete
    assert found.limiting_resource != "latency"
    assert found.time_us < 1.5 * max(found.breakdown.values())


def test_a_launch_that_is_not_followed_to_its_end_says_so(tmp_path, capsys) -> None:
    file = tmp_path / "search.cu"
    file.write_text("""__global__ void search(const int *in, int *out, int n) {
        int i = 0;
        while (i < n && in[i % 1024] == 0) ++i;
        out[threadIdx.x] = i;
    }""")
    arguments = "search --grid 4 --block 64 --arg zeros:4096 --arg zeros:256 --arg"
    rows = {}
    for count in (16, 100 * VISITS):
        assert cli.main(["model", str(file), *arguments.split(), str(count)], NO_WINDOW) == 0
        rows[count] = capsys.readouterr().out
    assert "followed" not in rows[16]
    assert "not to the end of the blocks" in rows[100 * VISITS]
