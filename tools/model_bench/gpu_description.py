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


_Row = tuple[str, str, str]
"""A property's name, its value as TOML, and the source of the value."""

_DRIVER, _GUIDE = "measured: driver", "CUDA C++ Programming Guide"
_MEASURED, _LESS_ADDRESS = "measured", "measured, less the address"


class _Figures(dict[str, float]):
    """Measurements by name."""

    def __missing__(self, name: str) -> float:
        raise InputError(f"There is no measurement of {name!r}.")

    def starting_with(self, start: str) -> list[float]:
        """Return the measurements whose names start with a text."""
        return [value for name, value in self.items() if name.startswith(start)]


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
    measurements = _Figures(figures)
    capability = int(measurements["attribute capability"])
    if capability not in _SHARED_SIZES:
        raise InputError(f"The timing model does not support GPUs of compute capability {capability / 10}.")
    rows = [
        *_list_limits(measurements, capability),
        *_list_arithmetic(measurements, capability),
        *_list_latencies(measurements),
        *_list_bandwidths(measurements),
        *_list_atomics_and_launches(measurements),
    ]
    lines = [f"# {gpu}, measured by `python -m tools.model_bench --device`.", f'name = "{gpu}"', "validated = false"]
    lines += [f'{name} = {{ value = {value}, source = "{source}" }}' for name, value, source in rows]
    return "\n".join(lines) + "\n"


def _list_limits(figures: _Figures, capability: int) -> list[_Row]:
    """Return the numbers of units and the capacities of registers and memories."""
    return [
        ("capability", f'"{capability // 10}.{capability % 10}"', _DRIVER),
        ("multiprocessors", f"{figures['attribute multiprocessor_count']:.0f}", _DRIVER),
        ("schedulers", "4", _GUIDE),
        ("clock_ghz", f"{figures['clock GHz']:.3f}", "measured: cycles per nanosecond"),
        ("warps", f"{figures['attribute max_threads_per_multiprocessor'] / 32:.0f}", _DRIVER),
        ("blocks", f"{figures['attribute max_blocks_per_multiprocessor']:.0f}", _DRIVER),
        ("registers", f"{figures['attribute max_registers_per_multiprocessor']:.0f}", _DRIVER),
        ("register_unit", "256", "CUDA occupancy calculator"),
        ("shared_bytes", f"{figures['attribute max_shared_memory_per_multiprocessor']:.0f}", _DRIVER),
        ("shared_unit", "256" if capability < 80 else "128", "CUDA occupancy calculator"),
        ("shared_reserved_bytes", f"{max(1.0, figures['attribute reserved_shared_memory_per_block']):.0f}", _DRIVER),
        ("first_cache_bytes", f"{_FIRST_CACHE_KIB[capability] << 10}", _GUIDE),
        ("shared_sizes", f"{list(_SHARED_SIZES[capability])}", _GUIDE),
        ("last_cache_bytes", f"{figures['attribute l2_cache_size']:.0f}", _DRIVER),
        ("last_cache_written_share", "0.64", "assumed: as on the H200"),
        ("last_cache_parts", "2" if capability in (80, 90) else "1", "NVIDIA white papers"),
    ]


def _list_arithmetic(figures: _Figures, capability: int) -> list[_Row]:
    """Return the throughput of the arithmetic units in lanes per cycle, and their latencies in cycles."""
    return [
        ("float_lanes", f"{_nearest_power_of_two(figures['rate ffma lanes per cycle'])}", _MEASURED),
        ("integer_lanes", f"{_nearest_power_of_two(figures['rate imad lanes per cycle'])}", _MEASURED),
        ("double_lanes", f"{_nearest_power_of_two(figures['rate dfma lanes per cycle'])}", _MEASURED),
        ("special_lanes", f"{_nearest_power_of_two(figures['rate rsqrt lanes per cycle'])}", _MEASURED),
        ("load_store_lanes", "32" if capability in (70, 80, 90) else "16", "NVIDIA white papers: load/store units"),
        ("tensor_lanes", f"{_TENSOR_LANES[capability]}", "data sheets, not measured"),
        ("arithmetic_cycles", f"{figures['latency ffma cycles']:.1f}", _MEASURED),
        ("double_cycles", f"{figures['latency dfma cycles']:.1f}", _MEASURED),
        ("special_cycles", f"{figures['latency rsqrt cycles']:.1f}", _MEASURED),
        ("tensor_cycles", "17", "assumed: per step, as papers measure on A100"),
    ]


def _list_latencies(figures: _Figures) -> list[_Row]:
    """Return the latencies of memories, shuffles, atomic operations and barriers in cycles."""
    last = min(figures.starting_with("latency last cache"))
    memory = min(figures.starting_with("latency memory"))
    return [
        ("shared_cycles", f"{figures['latency shared cycles']:.0f}", _MEASURED),
        ("first_cache_cycles", f"{figures['latency first cache cycles'] - _ADDRESS_CYCLES:.0f}", _LESS_ADDRESS),
        ("last_cache_cycles", f"{last - _ADDRESS_CYCLES:.0f}", _LESS_ADDRESS),
        ("memory_cycles", f"{memory - _ADDRESS_CYCLES:.0f}", _LESS_ADDRESS),
        ("shuffle_cycles", f"{figures['latency shfl cycles']:.0f}", _MEASURED),
        ("atomic_cycles", f"{figures['latency global atomic cycles']:.0f}", _MEASURED),
        ("shared_atomic_cycles", f"{figures['latency shared atomic cycles']:.0f}", _MEASURED),
        ("barrier_cycles", f"{figures['barrier of 1 warps cycles']:.1f}", "measured: one warp"),
    ]


def _list_bandwidths(figures: _Figures) -> list[_Row]:
    """Return the bandwidths of the memory and the last cache in GB/s."""
    bandwidth = max(
        value for name, value in figures.items() if name.startswith("last cache read") and "multiprocessor" not in name
    )
    return [
        ("last_cache_gb_s", f"{bandwidth:.0f}", _MEASURED),
        ("last_cache_random_gb_s", f"{figures['random sectors of the last cache GB/s']:.0f}", _MEASURED),
        ("memory_gb_s", f"{figures['memory read GB/s']:.0f}", _MEASURED),
        ("copy_gb_s", f"{figures['memory copied GB/s']:.0f}", _MEASURED),
        ("last_cache_mp_gb_s", f"{figures['last cache read by one multiprocessor GB/s']:.1f}", _MEASURED),
        ("memory_mp_gb_s", f"{figures['memory read by one multiprocessor GB/s']:.1f}", _MEASURED),
        ("random_gb_s", f"{figures['random sectors of 1024 MB GB/s']:.0f}", "measured: sectors at random addresses"),
    ]


def _list_atomics_and_launches(figures: _Figures) -> list[_Row]:
    """Return the times of atomic operations in ns, of a launch in µs, and of a block in ns."""
    same, different, lane = (
        figures.starting_with(f"global atomics adding {place} of 16777216")[0]
        for place in ("one word", "anywhere", "a word a warp")
    )
    return [
        ("atomic_same_ns", f"{same:.3f}", _MEASURED),
        ("atomic_ns", f"{different:.4f}", _MEASURED),
        ("atomic_lane_ns", f"{lane:.4f}", _MEASURED),
        ("launch_us", f"{figures['launch of 1 blocks of 32 us']:.2f}", _MEASURED),
        (
            "block_ns",
            f"{figures['launch of 262144 blocks of 256 us'] * 1e3 / 262144:.3f}",
            "measured: 262144 blocks of 256 threads",
        ),
    ]


def _nearest_power_of_two(rate: float) -> int:
    """Return the power of two nearest to a measured rate."""
    return max(1, int(2 ** round(math.log2(rate))))
