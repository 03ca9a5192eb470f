"""GPU descriptions for the timing model: small files of numbers, each with its source."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.base.paths import ASSETS
from gpu.files.file_access import format_path
from gpu.files.text import read_text
from gpu.files.toml import TomlError, format_value, parse

FOLDER = ASSETS / "gpus"

_MAX_VALUE = 1e15
"""The largest number in a description: products of several such numbers do not overflow."""


@dataclass(frozen=True)
class GpuDescription:
    """A GPU description.

    Parameters
    ----------
    name : str
        The usual name.
    key : str
        The name on the command line.
    validated : bool
        Whether the timing model has been compared with measurements on this GPU.
    capability : str
        The compute capability, such as "9.0".
    multiprocessors, schedulers : int
        The number of multiprocessors, and of warp schedulers per multiprocessor.
    clock_ghz : float
        The clock under load.
    warps, blocks, registers, shared_bytes : int
        The limits per multiprocessor.
    register_unit, shared_unit, shared_reserved_bytes : int
        The allocation units of a warp's registers and a block's shared memory, and the bytes reserved per block.
    first_cache_bytes : int
        The size per multiprocessor of the L1 cache, including shared memory.
    shared_sizes : tuple of int
        The possible sizes of shared memory, in KiB.
    last_cache_bytes : int
    last_cache_written_share : float
        The share of L2 that holds stored data which has not been written to DRAM yet.
    last_cache_parts : int
        The number of L2 partitions; an access of a multiprocessor to another partition counts in both.
    float_lanes, integer_lanes, double_lanes, special_lanes : float
        Lanes of float32 multiply-adds, int32 operations, float64 multiply-adds, and reciprocal square roots and other
        special functions that a multiprocessor starts per cycle.
    load_store_lanes : int
        Lanes of loads and stores that a multiprocessor starts per cycle: a warp's request takes at least two cycles if
        there are 16.
    tensor_lanes : float
        Multiply-adds of 16-bit floats, with float32 sums, that the tensor cores of a multiprocessor start per cycle
        with `mma.sync`; half of it for TF32.
    arithmetic_cycles, double_cycles, special_cycles, tensor_cycles : float
        Cycles until a result is available.
    shared_cycles, first_cache_cycles, last_cache_cycles, memory_cycles : float
        Cycles until loaded data are available.
    shuffle_cycles, atomic_cycles, shared_atomic_cycles : float
    barrier_cycles : float
        Cycles from the arrival of a block's last warp at a barrier until the warps continue.
    last_cache_gb_s, memory_gb_s, copy_gb_s : float
        Rates of reads from L2 and from DRAM, and of a DRAM copy (bytes read and written).
    last_cache_random_gb_s : float
        Rate of scattered sectors from L2, of which all bytes are used.
    last_cache_mp_gb_s, memory_mp_gb_s : float
        Rates of reads by a single multiprocessor.
    random_gb_s : float
        Rate of scattered sectors from DRAM, of which all bytes are used.
    atomic_same_ns, atomic_ns : float
        Time between two atomic operations on one word of global memory, and on different sectors.
    atomic_lane_ns : float
        Time per lane of a warp with atomic operations on one word, a different one for each warp; on the whole GPU.
    launch_us : float
        Time of an empty kernel, between device events.
    block_ns : float
        Time between the starts of two blocks, on the whole GPU.
    sources : mapping of str to str
        The source of each number.
    """

    name: str
    key: str
    validated: bool
    capability: str
    multiprocessors: int
    schedulers: int
    clock_ghz: float
    warps: int
    blocks: int
    registers: int
    register_unit: int
    shared_bytes: int
    shared_unit: int
    shared_reserved_bytes: int
    first_cache_bytes: int
    shared_sizes: tuple[int, ...]
    last_cache_bytes: int
    last_cache_written_share: float
    last_cache_parts: int
    float_lanes: float
    integer_lanes: float
    double_lanes: float
    special_lanes: float
    load_store_lanes: int
    tensor_lanes: float
    arithmetic_cycles: float
    double_cycles: float
    special_cycles: float
    tensor_cycles: float
    shared_cycles: float
    first_cache_cycles: float
    last_cache_cycles: float
    memory_cycles: float
    shuffle_cycles: float
    atomic_cycles: float
    shared_atomic_cycles: float
    barrier_cycles: float
    last_cache_gb_s: float
    last_cache_random_gb_s: float
    memory_gb_s: float
    copy_gb_s: float
    last_cache_mp_gb_s: float
    memory_mp_gb_s: float
    random_gb_s: float
    atomic_same_ns: float
    atomic_ns: float
    atomic_lane_ns: float
    launch_us: float
    block_ns: float
    sources: dict[str, str]


@dataclass(frozen=True)
class GpuScaling:
    """Factors by which to scale a GPU's memory bandwidth and registers, for hypothetical GPUs."""

    bandwidth: float = 1.0
    registers: float = 1.0

    def scale_gpu(self, gpu: GpuDescription) -> GpuDescription:
        """Return the scaled GPU, which is not validated; if all factors are 1, return the GPU itself."""
        if self.bandwidth == self.registers == 1:
            return gpu
        return replace(
            gpu,
            validated=False,
            memory_gb_s=gpu.memory_gb_s * self.bandwidth,
            memory_mp_gb_s=gpu.memory_mp_gb_s * self.bandwidth,
            random_gb_s=gpu.random_gb_s * self.bandwidth,
            copy_gb_s=gpu.copy_gb_s * self.bandwidth,
            registers=max(gpu.register_unit * gpu.schedulers, int(gpu.registers * self.registers)),
        )


UNSCALED = GpuScaling()


def list_gpu_keys() -> tuple[str, ...]:
    """Return the keys of the GPU descriptions in the program's folder."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def find_gpu(name: str) -> GpuDescription:
    """Return a GPU by its key, by the driver's name, or from a .toml file.

    Raises
    ------
    InputError
        There is no such GPU, or the file is not a description.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return read_gpu(path)
    words = set(name.lower().replace("-", " ").split())
    fitting = [key for key in list_gpu_keys() if set(key.split("-")) <= words]
    if not fitting:
        raise InputError(
            f"There is no GPU description for {name!r}.",
            advice=f"Choose one of {', '.join(list_gpu_keys())}, or specify a .toml file.",
        )
    return read_gpu(FOLDER / f"{max(fitting, key=len)}.toml")


def read_gpu(path: Path) -> GpuDescription:
    """Read a description; raise InputError for a missing or invalid value."""
    file = format_path(path)
    try:
        data = parse(read_text(path))
    except TomlError as error:
        raise InputError(f"{file} is not a GPU description: line {error.line}: {error.reason}.") from None
    values: dict[str, Any] = {"key": path.stem}
    sources: dict[str, str] = {}
    for field in fields(GpuDescription):
        if field.name in ("key", "sources"):
            continue
        if field.name not in data:
            raise InputError(f"{file} has no value for {field.name}.")
        entry = data.pop(field.name)
        if isinstance(entry, dict):
            if set(entry) != {"value", "source"}:
                raise InputError(f"{file}: {field.name} must have a value and a source, and nothing else.")
            entry, sources[field.name] = entry["value"], str(entry["source"])
        elif field.name not in ("name", "validated"):
            raise InputError(f"{file}: {field.name} has no source.")
        values[field.name] = _check_value(file, field.name, str(field.type), entry)
    if data:
        raise InputError(
            f"{file} has a value for {format_path(next(iter(data)))}, which the timing model does not use."
        )
    return GpuDescription(**values, sources=sources)


def _check_value(file: str, name: str, type: str, value: Any) -> Any:
    expected: Any = {"str": str, "bool": bool, "int": int, "float": (int, float), "tuple[int, ...]": list}[type]
    if not isinstance(value, expected) or (isinstance(value, bool) and type != "bool"):
        raise InputError(f"{file}: {name} is {format_value(value)}, which has the wrong type.")
    if type == "tuple[int, ...]":
        return tuple(_check_value(file, name, "int", each) for each in value)
    if type in ("int", "float") and not 0 < value <= _MAX_VALUE:
        raise InputError(f"{file}: {name} is {format_value(value)}, but must be above 0 and at most {_MAX_VALUE:g}.")
    return float(value) if type == "float" else value
