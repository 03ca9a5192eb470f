"""What the window asks of the timing model, against what is reckoned by hand."""

from __future__ import annotations

import pytest

from gpu.errors import InputError
from gpu.messages.kernels import KernelLaunch
from gpu.messages.modeled import LIMITS, as_duration, short_name
from gpu.messages.requests import ModelKernel, ModelPattern, Result
from gpu.run.execute import execute
from gpu.timing.gpus import AS_DESCRIBED, Supposed

N = 1 << 20


def modeled(
    variant="grid-stride", *, pattern="reduction", gpu="h200", supposed=AS_DESCRIBED, operations=False, **params
):
    request = ModelPattern(pattern, variant, gpu, {"n": N, **params}, supposed=supposed, operations=operations)
    result = execute(None, request, None, lambda progress: None)
    assert isinstance(result, Result)
    return result.modeled


@pytest.fixture(scope="module")
def found():
    return modeled()


def test_it_says_the_time_and_what_would_be_the_limit(found) -> None:
    assert set(found.limits) == set(LIMITS)
    assert found.bound_by == max(found.limits, key=found.limits.get)
    assert found.limits["launch"] < found.time_us
    assert found.limits["DRAM"] == pytest.approx(4 * N / 4525e9 * 1e6, rel=0.05)
    assert found.dram_bytes == pytest.approx(4 * N, rel=0.05)
    assert (found.operations, found.least_bytes, found.counted) == (N - 1, 4 * N + 4, False)


def test_launches_of_a_kernel_are_one_line(found) -> None:
    assert [(each.kernel, each.launches, each.threads) for each in found.kernels] == [("reduce_grid_stride", 2, 256)]
    assert found.launches == 2
    assert found.longest is found.kernels[0]


def test_the_sentence_says_all_of_it(found) -> None:
    assert found.sentence.startswith(f"on an H200: {as_duration(found.time_us)} (modeled, ")
    assert found.sentence.endswith(found.waits)
    if found.source == "sass":
        assert found.error is not None
        assert found.error.of == "reduction"
        assert found.error.words in found.sentence
        assert "from nvcc" in found.compiled
    else:
        assert "accuracy unknown" in found.sentence
        assert "Without nvcc" in found.compiled


def test_a_gpu_that_was_never_compared_says_so() -> None:
    found = modeled(gpu="t4")
    assert (found.validated, found.error) == (False, None)
    assert "never compared with measurements" in found.sentence
    assert found.time_us > modeled().time_us


def test_twice_the_bandwidth_takes_half_as_long_in_memory(found) -> None:
    twice = modeled(supposed=Supposed(bandwidth=2.0))
    assert twice.limits["DRAM"] == pytest.approx(found.limits["DRAM"] / 2, rel=0.01)
    assert twice.time_us <= found.time_us
    assert twice.error is None


def test_with_fewer_registers_a_multiprocessor_holds_fewer_blocks(found) -> None:
    fewer = modeled(supposed=Supposed(registers=0.125))
    assert fewer.longest.warps < found.longest.warps
    assert fewer.longest.limited_by == "registers"


def test_where_the_pattern_has_no_operations_they_are_counted() -> None:
    plain, counted = (modeled("ballot", pattern="compaction", operations=on) for on in (False, True))
    assert plain.operations == 0
    assert counted.counted
    assert 0 < counted.operations < N  # the scan of what each block keeps, on the part that is counted


def test_a_launch_of_any_kernel_is_modeled(tmp_path) -> None:
    text = """extern "C" __global__ void twice(float *values, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) values[i] *= 2.0f;
    }"""
    path = tmp_path / "own.cu"
    path.write_text(text)
    launch = KernelLaunch(str(path), text, "twice", (64, 1, 1), (256, 1, 1), ("random:16384", "16384"))
    found = execute(None, ModelKernel(launch, "h200", operations=True), None, print).modeled
    assert found.operations == 16384
    assert [(each.kernel, each.grid) for each in found.kernels] == [("twice", (64, 1, 1))]
    if found.source == "sass":
        assert set(found.lines) == {"own.cu"}
        assert found.lines["own.cu"][3].opcodes["STG"] == 1
        assert "machine instructions: " in found.lines["own.cu"][3].words
        assert 2 not in found.lines["own.cu"] or not found.lines["own.cu"][2].local
    assert found.bound_by == "launch"
    assert found.waits.startswith("launch overhead is ")


def test_a_library_has_no_kernels_to_model() -> None:
    with pytest.raises(InputError, match="kernels are not available"):
        modeled("thrust", pattern="sort")


def test_a_gpu_that_nobody_described_is_refused() -> None:
    with pytest.raises(InputError, match="There is no GPU description for 'voodoo'"):
        modeled(gpu="voodoo")


@pytest.mark.parametrize(
    ("time_us", "text"),
    [(4.26, "4.3 µs"), (430.0, "430 µs"), (4300.0, "4.30 ms"), (43e3, "43.0 ms"), (2.5e6, "2.50 s")],
)
def test_times_have_the_unit_that_suits_them(time_us, text) -> None:
    assert as_duration(time_us) == text


def test_names_are_short() -> None:
    assert [short_name(each) for each in ("NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090")] == ["H100", "RTX 4090"]
