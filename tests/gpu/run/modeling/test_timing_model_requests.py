"""What the window asks of the timing model, against what is reckoned by hand."""

from __future__ import annotations

import pytest

from gpu.base.errors import InputError
from gpu.messages.kernels import KernelLaunch
from gpu.messages.modeled_time import LIMITS, ModelKernel, ModelPattern, TimeExplanation, format_duration, short_name
from gpu.run.handlers.execution import execute_request
from gpu.timing.gpus import UNSCALED, GpuScaling

N = 1 << 20


def model_pattern(
    variant="grid-stride", *, pattern="reduction", gpu="h200", supposed=UNSCALED, operations=False, **params
):
    request = ModelPattern(pattern, variant, gpu, {"n": N, **params}, gpu_scaling=supposed, count_operations=operations)
    return execute_request(None, request, None, lambda progress: None)


@pytest.fixture(scope="module")
def modeled_reduction():
    return model_pattern()


def test_it_says_the_time_and_what_would_be_the_limit(modeled_reduction) -> None:
    assert set(modeled_reduction.limits) == set(LIMITS)
    assert modeled_reduction.bound_by == max(modeled_reduction.limits, key=modeled_reduction.limits.get)
    assert modeled_reduction.limits["launch"] < modeled_reduction.time_us
    assert modeled_reduction.limits["DRAM"] == pytest.approx(4 * N / 4525e9 * 1e6, rel=0.05)
    assert modeled_reduction.dram_bytes == pytest.approx(4 * N, rel=0.05)
    assert (modeled_reduction.operations, modeled_reduction.least_bytes) == (N - 1, 4 * N + 4)


def test_launches_of_a_kernel_are_one_line(modeled_reduction) -> None:
    assert [(each.kernel, each.launches, each.threads) for each in modeled_reduction.kernels] == [
        ("reduce_grid_stride", 2, 256)
    ]
    assert modeled_reduction.launches == 2
    assert modeled_reduction.longest_kernel is modeled_reduction.kernels[0]


def test_the_sentence_says_all_of_it(modeled_reduction) -> None:
    if modeled_reduction.source == "sass":
        assert modeled_reduction.error is not None
        assert modeled_reduction.error.pattern == "reduction"
        assert modeled_reduction.error.text == modeled_reduction.accuracy
        assert "from nvcc" in modeled_reduction.source_sentence
    else:
        assert modeled_reduction.accuracy == "accuracy unknown"
        assert "Without nvcc" in modeled_reduction.source_sentence


def test_a_gpu_that_was_never_compared_says_so() -> None:
    found = model_pattern(gpu="t4")
    assert (found.validated, found.error) == (False, None)
    assert "never compared with measurements" in found.accuracy
    assert found.time_us > model_pattern().time_us


def test_twice_the_bandwidth_takes_half_as_long_in_memory(modeled_reduction) -> None:
    twice = model_pattern(supposed=GpuScaling(bandwidth=2.0))
    assert twice.limits["DRAM"] == pytest.approx(modeled_reduction.limits["DRAM"] / 2, rel=0.01)
    assert twice.time_us <= modeled_reduction.time_us
    assert twice.error is None


def test_with_fewer_registers_a_multiprocessor_holds_fewer_blocks(modeled_reduction) -> None:
    fewer = model_pattern(supposed=GpuScaling(registers=0.125))
    assert fewer.longest_kernel.warps < modeled_reduction.longest_kernel.warps
    assert fewer.longest_kernel.limited_by == "registers"


def test_where_the_pattern_has_no_operations_they_are_counted() -> None:
    plain, counted = (model_pattern("ballot", pattern="compaction", operations=on) for on in (False, True))
    assert plain.operations == 0
    assert 0 < counted.operations < N  # the scan of what each block keeps, on the part that is counted


def test_a_launch_of_any_kernel_is_modeled(tmp_path) -> None:
    text = """extern "C" __global__ void twice(float *values, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) values[i] *= 2.0f;
    }"""
    path = tmp_path / "own.cu"
    path.write_text(text)
    launch = KernelLaunch(str(path), text, "twice", (64, 1, 1), (256, 1, 1), ("random:16384", "16384"))
    found = execute_request(None, ModelKernel(launch, "h200", count_operations=True), None, print)
    assert found.operations == 16384
    assert [(each.kernel, each.grid) for each in found.kernels] == [("twice", (64, 1, 1))]
    if found.source == "sass":
        assert set(found.lines) == {"own.cu"}
        assert found.lines["own.cu"][3].opcodes["STG"] == 1
        assert "machine instructions: " in found.lines["own.cu"][3].description
        assert 2 not in found.lines["own.cu"] or not found.lines["own.cu"][2].local_memory_count
    assert found.bound_by == "launch"
    assert found.reason.startswith("launch overhead is ")


def test_a_library_has_no_kernels_to_model() -> None:
    with pytest.raises(InputError, match="kernels are not available"):
        model_pattern("thrust", pattern="sort")


def test_a_gpu_that_nobody_described_is_refused() -> None:
    with pytest.raises(InputError, match="There is no GPU description for 'voodoo'"):
        model_pattern(gpu="voodoo")


@pytest.mark.parametrize(
    ("time_us", "text"),
    [(4.26, "4.3 µs"), (430.0, "430 µs"), (4300.0, "4.30 ms"), (43e3, "43.0 ms"), (2.5e6, "2.50 s")],
)
def test_times_have_the_unit_that_suits_them(time_us, text) -> None:
    assert format_duration(time_us) == text


def test_names_are_short() -> None:
    assert [short_name(each) for each in ("NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090")] == ["H100", "RTX 4090"]


@pytest.mark.parametrize(("size", "words"), [(0.6, "1 byte"), (1.0, "1 byte"), (3.6, "4 bytes")])
def test_a_reason_has_the_number_of_its_bytes(size, words) -> None:
    found = TimeExplanation(dict.fromkeys(LIMITS, 1.0), "latency", 9.0, 1, 1.0, size, 8.0, 64, 64, 0.0, 0.0)
    assert found.reason == f"waits for memory: one load of {words} per thread in flight"
