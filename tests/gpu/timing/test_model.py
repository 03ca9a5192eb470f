"""The model as a whole: what is known of a GPU comes out of it, on kernels that are reckoned by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gpu.base.errors import CompileError, InputError, KernelError
from gpu.cli import main as cli
from gpu.patterns import find_pattern
from gpu.run.modeling.timing_model import model_pattern
from tests import needs
from tests.gpu.cli.no_desktop import NO_WINDOW
from tests.gpu.timing.modeled_kernels import model_kernel

pytestmark = needs.nvcc

COPY = """
extern "C" __global__ void copy(const float *from, float *to, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i * stride];
}
extern "C" __global__ void count(unsigned *counts, int words) {
    atomicAdd(&counts[threadIdx.x % words], threadIdx.x);
}
extern "C" __global__ void multiply_add(float *values, int rounds) {
    float x = values[threadIdx.x];
    for (int i = 0; i < rounds; ++i) x = x * 0.5f + 1.0f;
    values[threadIdx.x] = x;
}
"""


def model_kernel_text(tmp_path, kernel, grid, block, arguments, gpu="h200"):
    path = tmp_path / "kernels.cu"
    path.write_text(COPY, "utf-8")
    return model_kernel(path, COPY, kernel, grid, block, arguments, gpu)


def test_a_copy_moves_its_bytes_at_the_rate_of_memory(tmp_path) -> None:
    n = 1 << 24
    found = model_kernel_text(tmp_path, "copy", n // 256, 256, [f"zeros:{n}", f"zeros:{n}", n, 1])
    assert found.bound_by == "memory"
    assert found.data()["dram_bytes"] == pytest.approx(8 * n, rel=0.35)  # the last cache keeps what is written last
    assert 8 * n / found.gpu.memory_gb_s / 1e3 * 0.7 < found.time_us < 8 * n / found.gpu.memory_gb_s / 1e3 * 2


def test_a_header_beside_the_file_is_found_by_the_compiler(tmp_path) -> None:
    (tmp_path / "twice.cuh").write_text("__device__ inline float twice(float x) { return 2 * x; }\n", "utf-8")
    text = '#include "twice.cuh"\nextern "C" __global__ void k(float *x) { x[threadIdx.x] = twice(x[0]); }\n'
    found = model_kernel(tmp_path / "k.cu", text, "k", 1, 32, ["zeros:32"], "h200")
    assert found.data()["source"] == "sass", "not LLVM's code, as where nvcc rejects the file"


def test_lanes_apart_move_more_sectors(tmp_path) -> None:
    n = 1 << 16
    together, apart = (
        model_kernel_text(tmp_path, "copy", n // 256, 256, [f"zeros:{8 * n}", f"zeros:{n}", n, stride], "l4")
        for stride in (1, 8)
    )
    one, other = (each.data()["l2_sectors"] for each in (together, apart))
    assert other - one == n - n // 8
    assert one == pytest.approx(2 * n // 8, rel=0.1)  # its code is fetched besides


def test_lines_say_which_machine_instructions_they_became(tmp_path) -> None:
    found = model_kernel_text(tmp_path, "copy", 4, 256, ["zeros:1024", "zeros:1024", 1024, 1]).data()
    (kernel,) = found["kernels"]
    assert (kernel["kernel"], kernel["file"], kernel["spilled_bytes"]) == ("copy", "kernels.cu", 0)
    assert kernel["registers"] == found["registers"]
    text = COPY.splitlines()
    copying = {each["line"]: each for each in found["lines"]}
    assert sum(each["sass"] for each in copying.values()) == kernel["sass"]
    opcodes = copying[text.index("    if (i < n) to[i] = from[i * stride];") + 1]["opcodes"]
    assert (opcodes["LDG"], opcodes["STG"]) == (1, 1)
    assert not any("LDG" in each["opcodes"] for line, each in copying.items() if "from[" not in text[line - 1])


def test_what_a_loop_does_only_in_later_rounds_is_counted(tmp_path) -> None:
    """The rounds that are left out are not all like the first ones: a column's walk stores when it is far enough."""
    late = """
extern "C" __global__ void walk(const float *from, float *to, int rows, int above) {
    float sum = 0;
    for (int y = -above; y < rows; ++y) {
        sum += from[(y + above) * 1024 + blockIdx.x * 32 + threadIdx.x];
        if (y >= 0) to[y * 1024 + blockIdx.x * 32 + threadIdx.x] = sum;
    }
}
"""
    path = tmp_path / "late.cu"
    path.write_text(late, "utf-8")

    def sectors(above: int) -> float:
        arguments = ["zeros:8388608", "zeros:8388608", 4000, above]
        return model_kernel(path, late, "walk", 32, 32, arguments, "l4").data()["l2_sectors"]

    none, many = sectors(0), sectors(600)
    assert many - none == pytest.approx(600 * 1024 / 8, rel=0.01)  # loads; the stores are as many as before


SHARING = """
extern "C" __global__ void overlapping(const float *from, float *to, int more) {
    float sum = 0;
    for (int i = threadIdx.x; i < 1024 + more; i += 256) sum += from[blockIdx.x * 1024 + i];
    if (sum == 1.0f) to[threadIdx.x] = sum;
}
extern "C" __global__ void together(const float *from, float *to, int own) {
    __shared__ float s[1024];
    float sum = 0;
    for (int i = 0; i < 16; ++i) {
        s[threadIdx.x] = from[(i + own * blockIdx.x) * 1024 + threadIdx.x];
        __syncthreads();
        sum += s[1023 - threadIdx.x];
        __syncthreads();
    }
    if (sum == 1.0f) to[threadIdx.x] = sum;
}
extern "C" __global__ void windows(const float *from, float *to, int rows) {
    float sum = 0;
    for (int i = 0; i < rows; ++i) sum += from[(threadIdx.y + i) * 1024 + threadIdx.x];
    to[threadIdx.y * 32 + threadIdx.x] = sum;
}
"""


def sectors_of(tmp_path, kernel, grid, block, last, size=1 << 24):
    path = tmp_path / "sharing.cu"
    path.write_text(SHARING, "utf-8")
    arguments = [f"zeros:{size}", "zeros:4096", last]
    return model_kernel(path, SHARING, kernel, grid, block, arguments, "h200").data()["l2_sectors"]


def test_blocks_side_by_side_are_on_different_multiprocessors(tmp_path) -> None:
    """What two of them both want is asked of the last cache twice, however many one multiprocessor holds."""
    none, some = (sectors_of(tmp_path, "overlapping", 4 * 132, 256, more) for more in (0, 256))
    crossing = 0.5 * 4 * 132 * 128 * (1 - 0.5**0.25)  # a quarter of all is wanted by two
    assert some - none == pytest.approx(4 * 132 * 32 + crossing, rel=0.15)


def test_what_all_blocks_want_at_once_is_asked_for_less_often(tmp_path) -> None:
    apart, same = (sectors_of(tmp_path, "together", 132, 1024, own) for own in (16, 0))
    loaded = 132 * 16 * 128
    assert apart == pytest.approx(1.5 * loaded, rel=0.02)  # half of it crosses from one part of the cache to the other
    assert same == pytest.approx(0.6 * loaded, rel=0.05)


def test_rounds_that_are_left_out_are_in_the_first_cache_behind_them(tmp_path) -> None:
    """A window that moves down by a row a round wants one new row, also in the first round behind those left out."""
    few, many = (sectors_of(tmp_path, "windows", 1, (32, 16), rows) for rows in (8, 256))
    assert many - few == pytest.approx(1.5 * 248 * 4, rel=0.02)


def test_a_few_blocks_that_work_stand_for_themselves(tmp_path) -> None:
    few = """
extern "C" __global__ void some(const float *from, float *to, int n) {
    for (int i = blockIdx.x * 2048 + threadIdx.x; i < min(n, (int)blockIdx.x * 2048 + 2048); i += 256)
        to[i] = from[i] + 1.0f;
}
"""
    path = tmp_path / "few.cu"
    path.write_text(few, "utf-8")
    n = 16 * 2048
    found = model_kernel(path, few, "some", 128, 256, [f"zeros:{n}", f"zeros:{n}", n], "l4").data()
    small = model_kernel(path, few, "some", 16, 256, [f"zeros:{n}", f"zeros:{n}", n], "l4").data()
    assert small["l2_sectors"] > 2 * n // 8
    assert found["l2_sectors"] == pytest.approx(small["l2_sectors"], rel=0.35)


def test_what_is_stored_last_stays_in_the_last_cache(tmp_path) -> None:
    n = 1 << 24
    found = model_kernel_text(tmp_path, "copy", n // 256, 256, [f"zeros:{n}", f"zeros:{n}", n, 1])
    half_of_what_it_keeps = 0.64 * 62914560 / 2
    assert found.data()["dram_bytes"] == pytest.approx(8 * n - half_of_what_it_keeps, rel=0.01)


def test_bank_conflicts_are_the_wavefronts_that_a_stride_adds(tmp_path) -> None:
    strided = """
extern "C" __global__ void turn(float *values, int stride) {
    __shared__ float s[1024];
    s[threadIdx.x * stride % 1024] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = s[threadIdx.x];
}
"""
    path = tmp_path / "turn.cu"
    path.write_text(strided, "utf-8")
    for stride, ways in ((1, 1), (2, 2), (8, 8), (9, 1)):
        run = model_kernel(path, strided, "turn", 1, 64, ["zeros:64", stride], "l4")
        assert run.launches[0].estimate.bank_conflicts == 2 * (ways - 1)


def test_more_blocks_on_one_word_wait_longer(tmp_path) -> None:
    one, many = (model_kernel_text(tmp_path, "count", 4096, 256, ["zeros:4096", words]) for words in (1, 1024))
    assert one.bound_by == "atomics"
    assert one.time_us > 5 * many.time_us


def test_a_chain_of_arithmetic_takes_its_latency_for_each_step(tmp_path) -> None:
    few, many = (
        model_kernel_text(tmp_path, "multiply_add", 1, 32, ["zeros:32", rounds]).time_us for rounds in (10_000, 20_000)
    )
    steps = (many - few) * 1e3 * 1.98 / 10_000
    assert steps == pytest.approx(4.3, rel=0.3)


def test_more_warps_hide_the_latency_of_a_chain(tmp_path) -> None:
    alone, full = (
        model_kernel_text(tmp_path, "multiply_add", 1, threads, ["zeros:1024", 20_000]) for threads in (32, 512)
    )
    assert full.time_us < 1.3 * alone.time_us


@pytest.mark.parametrize(
    ("ladder", "block", "slower", "faster"),
    [
        ("reduction", 256, "interleaved", "grid-stride"),
        ("reduction", 256, "neighbored", "neighbored-less"),
        ("reduction", 256, "grid-stride", "peak"),
        ("scan", 1024, "brent-kung", "brent-kung-padded"),
    ],
)
def test_a_ladder_comes_out_in_its_order(ladder, block, slower, faster) -> None:
    pattern = find_pattern(ladder)
    params = pattern.check({"n": 1 << 22, "dtype": "float32", "block": block})
    inputs = pattern.prepare_inputs({}, params, 1)
    times = [model_pattern(pattern.variant(name), inputs, params, "h200").time_us for name in (slower, faster)]
    assert times[0] > times[1]


def test_the_memory_of_a_host_program_is_what_its_launches_leave() -> None:
    pattern = find_pattern("scan")
    params = pattern.check({"n": 1 << 14, "dtype": "int32"})
    found = model_pattern(pattern.variant("three-kernels"), pattern.prepare_inputs({}, params, 1), params, "rtx-4090")
    assert found.all_ran
    assert [launch.kernel for launch in found.launches].count("scan_sections") == 2
    assert not found.data()["validated"]


def test_the_command_prints_what_is_asked_for(capsys) -> None:
    assert cli.main(["model", "transpose", "--n", "128", "--gpu", "t4", "--json"], NO_WINDOW) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = {"time_us", "bound_by", "breakdown", "occupancy", "registers", "dram_bytes", "l2_sectors", "instructions"}
    assert wanted | {"sampled_blocks", "of_blocks", "source"} <= set(found)
    assert set(found["occupancy"]) == {"blocks", "warps", "limited_by"}
    assert found["gpu"] == "NVIDIA T4"


def test_a_file_is_modeled_by_its_own_name(tmp_path, capsys) -> None:
    path = tmp_path / "kernels.cu"
    path.write_text(COPY, "utf-8")
    words = ["model", str(path), "copy", "--grid", "64", "--block", "256", "--gpu", "h100"]
    arguments = [word for spec in ("zeros:16384", "zeros:16384", "16384", "1") for word in ("--arg", spec)]
    assert cli.main([*words, *arguments], NO_WINDOW) == 0
    printed = capsys.readouterr().out
    assert "(modeled" in printed
    assert "8 of 64 blocks" not in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model", "matmul", "--gpu", "abacus"], "There is no GPU description for 'abacus'"),
        (["model", "matmul", "--variant", "cublas"], "library"),
        (["model", "no-such-file.cu", "k"], "no-such-file.cu"),
        (["model", "sort", "--variant", "quicksort", "--n", "4096"], "launches child kernels"),
    ],
)
def test_what_cannot_be_modeled_is_said_in_one_line(words, said, capsys) -> None:
    assert cli.main(words, NO_WINDOW) != 0
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_errors_of_a_file_are_sentences(tmp_path) -> None:
    with pytest.raises(KernelError, match="no_kernel"):
        model_kernel_text(tmp_path, "no_kernel", 1, 32, [])
    with pytest.raises(InputError, match="takes 4 arguments"):
        model_kernel_text(tmp_path, "copy", 1, 32, [])
    path = tmp_path / "bad.cu"
    with pytest.raises(CompileError):
        model_kernel(path, "__global__ void k() { x = 1; }", "k", 1, 32, [], "h200")


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        (None, "Give --shared: it is not a constant where k.cu launches k, line 2."),
        ((1, 2, 3, 4), "The grid is one to three whole numbers, not"),
    ],
)
def test_an_extent_that_is_missing_or_wrong_is_refused_as_by_the_simulator(tmp_path, grid, said) -> None:
    text = "__global__ void k(int *x) { extern __shared__ int y[]; x[0] = y[0]; }\nvoid f() { k<<<1, 32, n()>>>(p); }\n"
    with pytest.raises(InputError, match=said):
        model_kernel(tmp_path / "k.cu", text, "k", grid, 32, ["zeros:32"], "h200")


def test_arrays_are_as_they_were(tmp_path) -> None:
    values = np.arange(64, dtype=np.float32)
    kept = values.copy()
    model_kernel_text(tmp_path, "multiply_add", 1, 32, [values, 4])
    assert np.array_equal(values, kept)


def test_a_kernel_that_launches_kernels_is_said_to_do_so(tmp_path) -> None:
    text = """
__global__ void child(float *values) { values[threadIdx.x] += 1.0f; }
extern "C" __global__ void parent(float *values) {
    if (threadIdx.x == 0) child<<<1, 32>>>(values);
}
"""
    path = tmp_path / "launches.cu"
    path.write_text(text, "utf-8")
    with pytest.raises(KernelError, match="parent launches child kernels"):
        model_kernel(path, text, "parent", 1, 32, ["zeros:32"], "h200")


CONFLICTS = """
extern "C" __global__ void columns(float *out, int rounds, int warps) {
    __shared__ float s[1024];
    float sum = 0;
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    if (t / 32 < warps)
        for (int i = 0; i < rounds; ++i) {
#pragma unroll
            for (int k = 0; k < 16; ++k) sum += s[t % 32 * 32 + ((k + i) & 31)];
        }
    out[t] = sum;
}
"""


@pytest.mark.parametrize(("warps", "cycles"), [(1, 64), (8, 32)])
def test_the_warps_of_one_scheduler_get_a_part_of_shared_memory(tmp_path, warps, cycles) -> None:
    """A request whose lanes want 32 words of a bank: 64.7 cycles where one warp asks, 32 where all do, on an H200."""
    path = tmp_path / "columns.cu"
    path.write_text(CONFLICTS, "utf-8")
    took = [
        model_kernel(path, CONFLICTS, "columns", 1, 256, ["zeros:256", rounds, warps], "h200").time_us
        for rounds in (100, 200)
    ]
    assert (took[1] - took[0]) * 1980 / (100 * 16 * warps) == pytest.approx(cycles, rel=0.1)


BARRIERS = """
extern "C" __global__ void barriers(int rounds) {
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int k = 0; k < 16; ++k) __syncthreads();
    }
}
"""


@pytest.mark.parametrize(("warps", "cycles"), [(1, 15.6), (8, 29.7), (32, 77.8)])
def test_barriers_of_many_warps_take_longer(tmp_path, warps, cycles) -> None:
    """From one to the next, as a microbenchmark measures it on an H200 and an H100."""
    path = tmp_path / "barriers.cu"
    path.write_text(BARRIERS, "utf-8")
    took = [model_kernel(path, BARRIERS, "barriers", 1, 32 * warps, [n], "h200").time_us for n in (20, 40)]
    assert (took[1] - took[0]) * 1980 / (20 * 16) == pytest.approx(cycles, rel=0.1)
