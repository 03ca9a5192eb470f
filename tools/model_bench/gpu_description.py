"""Convert the measured properties of a GPU into a description for the timing model."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gpu.base.errors import InputError

_ADDRESS_CYCLES = 4.2
"""Cycles of each step of a pointer chain that compute the address and are not the memory's latency."""

_SHARED_SIZES = {
    75: (32, 64),
    80: (8, 16, 32, 64, 100, 132, 164),
    86: (8, 16, 32, 64, 100),
    87: (8, 16, 32, 64, 100, 132, 164),
    89: (8, 16, 32, 64, 100),
    90: (8, 16, 32, 64, 100, 132, 164, 196, 228),
}
"""Shared memory sizes in KiB by compute capability, from the CUDA C++ Programming Guide."""

_TENSOR_LANES = {75: 512, 80: 1024, 86: 256, 87: 1024, 89: 256, 90: 1288}
"""By compute capability, from data sheets: tensor cores are not measured here."""

_FIRST_CACHE_KIB = {75: 96, 80: 192, 86: 128, 87: 192, 89: 128, 90: 256}


def format_gpu_description(gpu: str, figures: Mapping[str, float]) -> str:
    """Return a GPU description as TOML.

    Parameters
    ----------
    gpu : str
        The driver's name of the GPU.
    figures : mapping of str to float
        Measurements of `microbenchmarks`.

    Raises
    ------
    InputError
        A figure is missing, or the GPU's compute capability is not supported.
    """

    def figure(name: str) -> float:
        if name not in figures:
            raise InputError(f"There is no measurement of {name!r}.")
        return figures[name]

    capability = int(figure("attribute capability"))
    if capability not in _SHARED_SIZES:
        raise InputError(f"The timing model does not support GPUs of compute capability {capability / 10}.")
    clock = figure("clock GHz")
    memory = min(value for name, value in figures.items() if name.startswith("latency memory"))
    last = min(value for name, value in figures.items() if name.startswith("latency last cache"))
    bandwidth = max(
        value for name, value in figures.items() if name.startswith("last cache read") and "multiprocessor" not in name
    )
    blocks = "launch of 262144 blocks of 256 us"
    same, different, lane = (
        next(value for name, value in figures.items() if name.startswith(f"global atomics adding {place} of 16777216"))
        for place in ("one word", "anywhere", "a word a warp")
    )
    driver, measured = "measured: driver", "measured"
    guide = "CUDA C++ Programming Guide"
    rows: list[tuple[str, str, str]] = [
        ("capability", f'"{capability // 10}.{capability % 10}"', driver),
        ("multiprocessors", f"{figure('attribute multiprocessor_count'):.0f}", driver),
        ("schedulers", "4", guide),
        ("clock_ghz", f"{clock:.3f}", "measured: cycles per nanosecond"),
        ("warps", f"{figure('attribute max_threads_per_multiprocessor') / 32:.0f}", driver),
        ("blocks", f"{figure('attribute max_blocks_per_multiprocessor'):.0f}", driver),
        ("registers", f"{figure('attribute max_registers_per_multiprocessor'):.0f}", driver),
        ("register_unit", "256", "CUDA occupancy calculator"),
        ("shared_bytes", f"{figure('attribute max_shared_memory_per_multiprocessor'):.0f}", driver),
        ("shared_unit", "256" if capability < 80 else "128", "CUDA occupancy calculator"),
        ("shared_reserved_bytes", f"{max(1.0, figure('attribute reserved_shared_memory_per_block')):.0f}", driver),
        ("first_cache_bytes", f"{_FIRST_CACHE_KIB[capability] << 10}", guide),
        ("shared_sizes", f"{list(_SHARED_SIZES[capability])}", guide),
        ("last_cache_bytes", f"{figure('attribute l2_cache_size'):.0f}", driver),
        ("last_cache_written_share", "0.64", "assumed: as on the H200"),
        ("last_cache_parts", "2" if capability in (80, 90) else "1", "NVIDIA white papers"),
        ("float_lanes", f"{_nearest_power_of_two(figure('rate ffma lanes per cycle'))}", measured),
        ("integer_lanes", f"{_nearest_power_of_two(figure('rate imad lanes per cycle'))}", measured),
        ("double_lanes", f"{_nearest_power_of_two(figure('rate dfma lanes per cycle'))}", measured),
        ("special_lanes", f"{_nearest_power_of_two(figure('rate rsqrt lanes per cycle'))}", measured),
        ("tensor_lanes", f"{_TENSOR_LANES[capability]}", "data sheets, not measured"),
        ("arithmetic_cycles", f"{figure('latency ffma cycles'):.1f}", measured),
        ("double_cycles", f"{figure('latency dfma cycles'):.1f}", measured),
        ("special_cycles", f"{figure('latency rsqrt cycles'):.1f}", measured),
        ("tensor_cycles", "17", "assumed: per step, as papers measure on A100"),
        ("shared_cycles", f"{figure('latency shared cycles'):.0f}", measured),
        (
            "first_cache_cycles",
            f"{figure('latency first cache cycles') - _ADDRESS_CYCLES:.0f}",
            "measured, less the address",
        ),
        ("last_cache_cycles", f"{last - _ADDRESS_CYCLES:.0f}", "measured, less the address"),
        ("memory_cycles", f"{memory - _ADDRESS_CYCLES:.0f}", "measured, less the address"),
        ("shuffle_cycles", f"{figure('latency shfl cycles'):.0f}", measured),
        ("atomic_cycles", f"{figure('latency global atomic cycles'):.0f}", measured),
        ("shared_atomic_cycles", f"{figure('latency shared atomic cycles'):.0f}", measured),
        ("barrier_cycles", f"{figure('barrier of 1 warps cycles'):.1f}", "measured: one warp"),
        ("last_cache_gb_s", f"{bandwidth:.0f}", measured),
        ("last_cache_random_gb_s", f"{figure('random sectors of the last cache GB/s'):.0f}", measured),
        ("memory_gb_s", f"{figure('memory read GB/s'):.0f}", measured),
        ("copy_gb_s", f"{figure('memory copied GB/s'):.0f}", measured),
        ("last_cache_mp_gb_s", f"{figure('last cache read by one multiprocessor GB/s'):.1f}", measured),
        ("memory_mp_gb_s", f"{figure('memory read by one multiprocessor GB/s'):.1f}", measured),
        ("random_gb_s", f"{figure('random sectors of 1024 MB GB/s'):.0f}", "measured: sectors at random addresses"),
        ("atomic_same_ns", f"{same:.3f}", measured),
        ("atomic_ns", f"{different:.4f}", measured),
        ("atomic_lane_ns", f"{lane:.4f}", measured),
        ("launch_us", f"{figure('launch of 1 blocks of 32 us'):.2f}", measured),
        ("block_ns", f"{figure(blocks) * 1e3 / 262144:.3f}", "measured: 262144 blocks of 256 threads"),
    ]
    lines = [f"# {gpu}, measured by `python -m tools.model_bench --device`.", f'name = "{gpu}"', "validated = false"]
    lines += [f'{name} = {{ value = {value}, source = "{source}" }}' for name, value, source in rows]
    return "\n".join(lines) + "\n"


def _nearest_power_of_two(rate: float) -> int:
    """Return the power of two nearest to a measured rate."""
    return max(1, int(2 ** round(math.log2(rate))))
