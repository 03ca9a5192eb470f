"""The measured GPUs: what their page says, and the rates that separate memory bound from compute bound launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpu.timing.gpus import GpuDescription, find_gpu

GPUFLOPBENCH = "https://github.com/Scientific-Computing-Lab/gpuFLOPBench"

_BY_OTHERS = f"""\
[gpuFLOPBench]({GPUFLOPBENCH}) measured these launches, of its copies
of the programs, built by clang, with Nsight Compute, which locks the GPU to its base clock, 1.44 GHz, and empties the
caches. The same copies are modeled, with clang's unrolling of loops; later versions of some programs do other work. The
times exclude the gaps between kernels: an empty kernel takes 1.7 us, to which the model's launch time was set."""
_BY_US = f"""\
We measured these launches with `python -m tools.public_benchmark.measure`: the programs and arguments of
[gpuFLOPBench]({GPUFLOPBENCH}), built by nvcc, with Nsight
Compute, free clocks and empty caches. An empty kernel takes {{empty}}, to which the model's launch time was set.
{{use}}"""
_FIRST_ANSWERS = "These are the model's first answers: nothing was changed for these measurements."
_LOOKED_AT = """\
Two launches of the half looked at, of `urng` and `expdist`, showed effects that were missing; the model was not fitted
to others."""


@dataclass(frozen=True)
class Measurement:
    """How programs were measured on a GPU.

    Parameters
    ----------
    gpu : str
        The key of the GPU's description.
    dram_gb_s, host_gb_s : float
        The rates of DRAM in the GPU's data sheet, and of the bus to the host in each direction.
    launch_us : float
        The launch time with which the model gives the profiler's time of an empty kernel. The profiler measures from
        the start to the end of the kernel, events also the gaps between kernels.
    built_by_nvcc : bool
        Whether nvcc built the programs, not clang.
    note : str
        How it was measured, for the page.
    """

    gpu: str
    clock_ghz: float
    dram_gb_s: float
    host_gb_s: float
    launch_us: float
    built_by_nvcc: bool
    note: str

    @property
    def description(self) -> GpuDescription:
        """The description of the GPU, at its usual clock."""
        return find_gpu(self.gpu)

    @property
    def profiled_gpu(self) -> GpuDescription:
        """The GPU as the profiler measures it: the clock of multiprocessors and L2, not of DRAM, and launch time."""
        gpu = self.description
        ratio = self.clock_ghz / gpu.clock_ghz
        return replace(
            gpu,
            clock_ghz=self.clock_ghz,
            launch_us=self.launch_us,
            memory_cycles=gpu.last_cache_cycles + ratio * (gpu.memory_cycles - gpu.last_cache_cycles),
            last_cache_gb_s=gpu.last_cache_gb_s * ratio,
            last_cache_random_gb_s=gpu.last_cache_random_gb_s * ratio,
            last_cache_mp_gb_s=gpu.last_cache_mp_gb_s * ratio,
            memory_mp_gb_s=gpu.memory_mp_gb_s * ratio,
            atomic_same_ns=gpu.atomic_same_ns / ratio,
            atomic_ns=gpu.atomic_ns / ratio,
            atomic_lane_ns=gpu.atomic_lane_ns / ratio,
            block_ns=gpu.block_ns / ratio,
        )

    def is_compute_bound(self, float32_operations: float, float64_operations: float, dram_bytes: float) -> bool:
        """Return whether operations per byte exceed the ratio of the peak rates, for float32 or float64."""
        gpu = self.description
        return any(
            operations * self.dram_gb_s > 2 * lanes * gpu.multiprocessors * self.clock_ghz * dram_bytes
            for operations, lanes in ((float32_operations, gpu.float_lanes), (float64_operations, gpu.double_lanes))
        )


MEASUREMENTS: Mapping[str, Measurement] = {
    each.gpu: each
    for each in (
        Measurement("rtx-3080", 1.44, 760.3, 32.0, 1.3, False, _BY_OTHERS),
        Measurement("h100", 1.98, 3352.0, 64.0, 1.76, True, _BY_US.format(empty="2.1 us", use=_FIRST_ANSWERS)),
        Measurement("h200", 1.98, 4800.0, 64.0, 1.2, True, _BY_US.format(empty="1.5 us", use=_LOOKED_AT)),
    )
}
"""By the key of the GPU. At 1.44 GHz, the fastest kernel of the RTX 3080's data reaches 98 % of the peak."""
