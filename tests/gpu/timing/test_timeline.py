"""When warps issue, and why they wait: reckoned by hand for small kernels, and the sums of all that the model runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gpu.engines.modeling_engine import LONGEST_LAUNCH, ModelingEngine
from gpu.patterns import find_pattern
from gpu.run.modeling.timing_model import model_host_program, model_pattern
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing import compiler, launch, multiprocessor
from gpu.timing.gpus import find_gpu
from gpu.timing.kernels import compile_modeled_file
from gpu.timing.launch import LaunchModel
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape
from gpu.timing.timeline import LaunchTimelines, WarpState
from tests import needs

H200 = find_gpu("h200")
ADDS = 8


def model_timelines(body: str, block: int, grid: int = 1) -> LaunchTimelines:
    """Return the timelines of a kernel of PTX without parameters."""
    kernel = parse_ptx(
        f".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n{body}\n}}\n"
    ).find_kernel("k")
    model = LaunchModel(PtxMachine(kernel, {}), H200, 16)
    shape = GridShape((grid, 1, 1), (block, 1, 1))
    return model.build_timelines(shape, np.zeros(16, np.uint8), SampledMemory({}))


def make_chain(register: str = "%f1") -> str:
    return f"mov.f32 {register}, 0f00000000;\n" + f"add.f32 {register}, {register}, 0f3F800000;\n" * ADDS


def select_spans(found: LaunchTimelines, warp: int, state: WarpState, resident: int = 1, word: str = "") -> np.ndarray:
    """Return a warp's spans in a state, of the first block that is run, in order; those of instructions with a word."""
    spans = found.find_spans(resident)
    spans = spans[(spans["warp"] == warp) & (spans["state"] == state) & (spans["block"] == 0)]
    return spans[[word in found.operations[each].text for each in spans["operation"]]]


def test_a_chain_of_one_warp_issues_once_in_each_latency() -> None:
    found = model_timelines(f"{make_chain()}ret;", 32)
    issues, waits = (select_spans(found, 0, state, word="add") for state in (WarpState.ISSUING, WarpState.DEPENDENCY))
    assert issues["begin"] == pytest.approx(np.arange(ADDS) * H200.arithmetic_cycles, abs=1e-4)
    assert issues["end"] - issues["begin"] == pytest.approx(np.ones(ADDS), abs=1e-4)
    assert waits["end"] - waits["begin"] == pytest.approx(np.full(ADDS - 1, H200.arithmetic_cycles - 1), abs=1e-4)
    assert found.timelines[0].issued == (ADDS + 1) * found.blocks


def test_a_second_warp_of_the_same_scheduler_issues_while_the_first_one_waits() -> None:
    alone, beside = model_timelines(f"{make_chain()}ret;", 32), model_timelines(f"{make_chain()}ret;", 5 * 32)
    first, fifth = (select_spans(beside, warp, WarpState.ISSUING, word="add") for warp in (0, 4))
    assert fifth["begin"][:-1] == pytest.approx(first["begin"][:-1] + 8, abs=1)  # warps start 2 cycles apart
    assert (
        select_spans(beside, 0, WarpState.ISSUING)["begin"][-1]
        <= select_spans(alone, 0, WarpState.ISSUING)["begin"][-1] + 1
    )
    others = [select_spans(beside, warp, WarpState.ISSUING, word="add")["begin"] for warp in (1, 2, 3)]
    for warp, each in enumerate(others, 1):  # each has a scheduler of its own
        assert each == pytest.approx(first["begin"] + 2 * warp, abs=1)


@pytest.mark.parametrize(("warps", "firsts"), [(8, [0, 1, 2, 3, 0]), (2, [0, 2, 1, 3, 2]), (1, [0, 1, 2, 3, 1])])
def test_warps_go_to_schedulers_in_turn_and_first_warps_not_all_to_one(warps, firsts) -> None:
    found = model_timelines("ret;", 32 * warps)
    assert found.find_schedulers(np.arange(5) * warps).tolist() == firsts
    assert np.bincount(found.find_schedulers(np.arange(32))).tolist() == [8] * 4


def test_a_warp_waits_at_a_barrier_until_the_last_one_has_come() -> None:
    body = f"""
        mov.u32 %r1, %tid.x;
        setp.ge.u32 %p1, %r1, 32;
        @%p1 bra LATE;
        {make_chain()}
        LATE:
        bar.sync 0;
        ret;
    """
    found = model_timelines(body, 64)
    (came,) = select_spans(found, 0, WarpState.ISSUING, word="bar")["begin"]
    (waits,) = select_spans(found, 1, WarpState.BARRIER)
    (early,) = select_spans(found, 1, WarpState.ISSUING, word="bar")
    assert early["begin"] + 10 < came  # it has no chain to go through
    assert waits["begin"] == early["end"]
    assert waits["end"] == pytest.approx(came + H200.barrier_cycles + 1.75, abs=1e-3)
    assert select_spans(found, 1, WarpState.ISSUING, word="ret")["begin"][0] == pytest.approx(waits["end"], abs=1.1)


def test_blocks_that_wait_for_memory_hide_each_other() -> None:
    body = """
        ld.param.u64 %rd1, [p0];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 4;
        add.s64 %rd3, %rd1, %rd2;
        ld.global.f32 %f1, [%rd3];
        add.f32 %f2, %f1, %f1;
        st.global.f32 [%rd3], %f2;
        ret;
    """
    kernel = parse_ptx(f".version 9.0\n.visible .entry k(.param .u64 p0)\n{{\n{body}\n}}\n").find_kernel("k")
    memory = SampledMemory({0: np.zeros(1 << 12, np.uint8)})
    parameters = np.array([memory.address(0), 0], np.int64).view(np.uint8)
    model = LaunchModel(PtxMachine(kernel, {}), H200, 16)
    found = model.build_timelines(GridShape((2, 1, 1), (64, 1, 1)), parameters, memory)
    (load,) = select_spans(found, 0, WarpState.ISSUING, word="ld.global")
    (waits,) = select_spans(found, 0, WarpState.MEMORY)
    assert waits["begin"] == load["end"]
    assert waits["end"] - load["begin"] >= H200.first_cache_cycles
    assert found.operations[waits["operation"]].text.startswith("add.f32")  # what waits is who needs it
    alone, full = found.timelines[0], found.timelines[-1]
    assert full.cycles < alone.cycles / 5
    assert alone.state_cycles[WarpState.ISSUING] == full.state_cycles[WarpState.ISSUING]


CASES = [
    ("reduction", "neighbored", {"n": 2**16}),
    ("reduction", "grid-stride", {"n": 2**16}),
    ("matmul", "tiled", {"n": 128}),
]


@pytest.fixture
def without_nvcc(monkeypatch) -> None:
    monkeypatch.setattr(compiler, "find_nvcc", lambda: "")


def model_pattern_timelines(
    pattern: str, variant: str, given: dict[str, int]
) -> tuple[LaunchTimelines, ModelingEngine]:
    declared = find_pattern(pattern)
    params = declared.check(given)
    engine = ModelingEngine(H200, LONGEST_LAUNCH)
    model_host_program(declared.variant(variant), declared.prepare_inputs({}, params, 0), params, engine)
    assert engine.timelines is not None
    engine.close()
    return engine.timelines, engine


@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case[:2])))
def test_spans_come_to_what_the_model_counts_without_them(case, monkeypatch) -> None:
    plain = []
    real = multiprocessor.simulate_multiprocessor

    def twice(*given, max_spans: int = 0, **options):
        plain.append(real(*given, **options))
        assert plain[-1].spans.size == 0
        return real(*given, max_spans=max_spans, **options)

    monkeypatch.setattr(multiprocessor, "simulate_multiprocessor", twice)
    found, engine = model_pattern_timelines(*case)
    pattern, variant, given = case
    declared = find_pattern(pattern)
    params = declared.check(given)
    modeled = model_pattern(declared.variant(variant), declared.prepare_inputs({}, params, 0), params, "h200")
    assert [each.time_us for each in engine.launches] == [each.time_us for each in modeled.launches]
    estimate = engine.launches[engine.timed_launch].estimate
    assert estimate is not None
    runs = {(float(run.block_ends[-1]), run.issued): run for run in plain}
    for each in found.timelines:
        without = runs[each.cycles, each.issued]
        assert without.state_cycles.tolist() == list(each.state_cycles)
        spans = found.find_spans(each.resident)
        lengths = spans["end"].astype(np.float64) - spans["begin"]
        sums = np.bincount(spans["state"], lengths, len(WarpState))
        assert each.recorded_until == each.cycles
        assert sums == pytest.approx(each.state_cycles, rel=1e-3, abs=1)
        assert np.count_nonzero(spans["state"] == WarpState.ISSUING) == each.issued
        # At each scheduler one instruction at a time, and no warp does two things, nor nothing while it is there.
        for scheduler in range(found.schedulers):
            own = found.find_schedulers(spans["warp"].astype(int)) == scheduler
            own = spans[own & (spans["state"] == WarpState.ISSUING)]
            own = np.sort(own, order="begin")
            assert (own["begin"][1:] >= own["end"][:-1] - 0.01).all()
        same = (spans["warp"][1:] == spans["warp"][:-1]) & (spans["block"][1:] == spans["block"][:-1])
        assert np.array_equal(spans["begin"][1:][same], spans["end"][:-1][same])
        if not found.omission:
            of_grid = each.state_cycles[WarpState.ISSUING] / found.blocks * estimate.total_blocks
            assert of_grid == pytest.approx(estimate.instructions, rel=0.02)


@pytest.mark.usefixtures("without_nvcc")
def test_what_is_written_down_is_bounded_and_whole_up_to_there(monkeypatch) -> None:
    whole, _ = model_pattern_timelines("reduction", "neighbored", {"n": 2**16})
    monkeypatch.setattr(launch, "_MAXIMUM_SPANS", 500)
    found, _ = model_pattern_timelines("reduction", "neighbored", {"n": 2**16})
    for own, all_of_it in zip(found.timelines, whole.timelines, strict=True):
        assert own.recorded_until < own.cycles == all_of_it.cycles
        assert own.state_cycles == all_of_it.state_cycles
        spans, others = found.find_spans(own.resident), whole.find_spans(own.resident)
        assert 500 <= spans.size <= 1012
        others = others[others["begin"] < np.float32(own.recorded_until)]
        others["end"] = np.minimum(others["end"], np.float32(own.recorded_until))
        assert np.array_equal(spans, others)


TEXT = """#define HALF 0.5f
__device__ float halved(float x) {
    return x * HALF;
}
extern "C" __global__ void reversed(const float *from, float *to, int n) {
    __shared__ float own[64];
    int t = threadIdx.x;
    own[t] = halved(from[t]);
    __syncthreads();
    to[t] =
        own[63 - t];
}
"""


@pytest.mark.parametrize("nvcc", [False, pytest.param(True, marks=needs.nvcc)])
def test_instructions_know_their_lines(nvcc, tmp_path, monkeypatch) -> None:
    if not nvcc:
        monkeypatch.setattr(compiler, "find_nvcc", lambda: "")
    module = SimulatedModule(TEXT, tmp_path / "own.cu", {}, tolerant=True)
    file = compile_modeled_file(TEXT, H200, [], module, lines=True)
    values = [np.zeros(256, np.uint8), np.zeros(256, np.uint8), np.int32(64)]
    found = file.build_timelines("reversed", GridShape((1, 1, 1), (64, 1, 1)), values)
    assert found.source == ("sass" if nvcc else "ir")
    lines = {word: {each.line for each in found.operations if word in each.text} for word in (
        "ld.global", "mul", "st.shared", "bar", "ld.shared", "st.global")}  # fmt: skip
    assert lines["ld.global"] == {8}
    assert 3 in lines["mul"]
    assert (lines["st.shared"], lines["bar"]) == ({8}, {9})
    assert lines["ld.shared"] | lines["st.global"] <= {10, 11}


@pytest.mark.usefixtures("without_nvcc")
def test_what_a_header_does_is_of_no_line_of_the_file(tmp_path) -> None:
    (tmp_path / "mine.cuh").write_text("__device__ inline float twice(float x) {\n\n\n    return x * 2.0f + 1.0f;\n}\n")
    text = '#include "mine.cuh"\nextern "C" __global__ void k(float *to) {\n    to[threadIdx.x] = twice(to[0]);\n}\n'
    module = SimulatedModule(text, tmp_path / "own.cu", {}, [tmp_path], tolerant=True)
    file = compile_modeled_file(text, H200, [tmp_path], module, lines=True)
    found = file.build_timelines("k", GridShape((1, 1, 1), (32, 1, 1)), [np.zeros(256, np.uint8)])
    assert {each.line for each in found.operations} <= {0, 2, 3}
    for one, other in pairwise(found.timelines):
        assert (one.resident + 1, one.last) == (other.resident, other.first)
