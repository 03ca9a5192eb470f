"""GPUs as the model knows them: small files of numbers, each with its source."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from gpu.errors import InputError
from gpu.files.opening import name_of
from gpu.files.text import read_text
from gpu.files.toml import TomlError, parse, shown

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "gpus"

_MOST = 1e15
"""What no number of a GPU comes near: products of several of them are still numbers."""


@dataclass(frozen=True)
class GpuDescription:
    """A GPU.

    Parameters
    ----------
    name : str
        As people say it.
    key : str
        As the command line says it.
    validated : bool
        Whether the model has been compared with one that was measured.
    capability : str
        Its compute capability, such as "9.0".
    multiprocessors, schedulers : int
        How many there are, and how many schedulers each has.
    clock_ghz : float
        What it runs at under load.
    warps, blocks, registers, shared_bytes : int
        The most that a multiprocessor holds.
    register_unit, shared_unit, shared_reserved_bytes : int
        What a warp's registers, and a block's shared memory, are rounded up to, and what each block takes besides.
    first_cache_bytes : int
        Of a multiprocessor, shared memory being a part of it.
    shared_sizes : tuple of int
        What can be shared memory of it, in KiB.
    last_cache_bytes : int
    last_cache_parts : int
        What a multiprocessor wants of another part than its own is counted in both.
    float_lanes, integer_lanes, double_lanes, special_lanes : float
        Multiply-adds of float32, operations on int32, multiply-adds of float64, reciprocal roots and the like, of
        lanes, that a multiprocessor begins in a cycle.
    tensor_lanes : float
        Multiply-adds of 16-bit floats, with sums of float32, that the tensor cores of a multiprocessor begin in a cycle
        for `mma.sync`; of TF32 half as many.
    arithmetic_cycles, double_cycles, special_cycles, tensor_cycles : float
        Until a result can be used.
    shared_cycles, first_cache_cycles, last_cache_cycles, memory_cycles : float
        Until what is loaded can be used.
    shuffle_cycles, atomic_cycles, shared_atomic_cycles : float
    barrier_cycles : float
        For the warps of a block to go on when all are there.
    last_cache_gb_s, memory_gb_s, copy_gb_s : float
        Read from the last cache, from memory, and read and written in a copy.
    last_cache_random_gb_s : float
        Sectors that lie here and there in the last cache, of each of which all bytes are wanted.
    last_cache_mp_gb_s, memory_mp_gb_s : float
        What one multiprocessor alone can read.
    random_gb_s : float
        Sectors that lie here and there in memory, of each of which all bytes are wanted.
    atomic_same_ns, atomic_ns : float
        Between two atomics on one word of global memory, and on different sectors.
    atomic_lane_ns : float
        Between two lanes of a warp with atomics on one word, where each warp has a word of its own; on the whole GPU.
    launch_us : float
        An empty kernel, from event to event.
    block_ns : float
        Between the starts of two blocks, on the whole GPU.
    sources : mapping of str to str
        Where each number is from.
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
    last_cache_parts: int
    float_lanes: float
    integer_lanes: float
    double_lanes: float
    special_lanes: float
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
class Supposed:
    """What if a GPU had more, or less: factors of what is described."""

    bandwidth: float = 1.0
    registers: float = 1.0

    def of(self, gpu: GpuDescription) -> GpuDescription:
        """Return the GPU that is supposed, which nobody has measured; with no other factor than 1 it is the same."""
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


AS_DESCRIBED = Supposed()


def keys() -> tuple[str, ...]:
    """Return the names of the GPUs that are described here."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def find_gpu(name: str) -> GpuDescription:
    """Return a GPU by its key, by the driver's name of it, or from a file whose path is given.

    Raises
    ------
    InputError
        There is none of that name, or the file describes none.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return read(path)
    words = set(name.lower().replace("-", " ").split())
    fitting = [key for key in keys() if set(key.split("-")) <= words]
    if not fitting:
        raise InputError(
            f"No GPU {name!r} is described here.", advice=f"Choose one of {', '.join(keys())}, or give a .toml file."
        )
    return read(FOLDER / f"{max(fitting, key=len)}.toml")


def read(path: Path) -> GpuDescription:
    """Read a description; InputError says what is missing or wrong in it."""
    file = name_of(path)
    try:
        data = parse(read_text(path))
    except TomlError as error:
        raise InputError(f"{file} is no description of a GPU: line {error.line}: {error.reason}.") from None
    values: dict[str, Any] = {"key": path.stem}
    sources: dict[str, str] = {}
    for each in fields(GpuDescription):
        if each.name in ("key", "sources"):
            continue
        if each.name not in data:
            raise InputError(f"{file} does not say what {each.name} is.")
        given = data.pop(each.name)
        if isinstance(given, dict):
            if set(given) != {"value", "source"}:
                raise InputError(f"{file}: {each.name} has a value and a source, and nothing else.")
            given, sources[each.name] = given["value"], str(given["source"])
        elif each.name not in ("name", "validated"):
            raise InputError(f"{file}: {each.name} has no source.")
        values[each.name] = _checked(file, each.name, str(each.type), given)
    if data:
        raise InputError(f"{file} describes {name_of(next(iter(data)))}, which the model does not know.")
    return GpuDescription(**values, sources=sources)


def _checked(file: str, name: str, type: str, value: Any) -> Any:
    wanted: Any = {"str": str, "bool": bool, "int": int, "float": (int, float), "tuple[int, ...]": list}[type]
    if not isinstance(value, wanted) or (isinstance(value, bool) and type != "bool"):
        raise InputError(f"{file}: {name} is {shown(value)}, which is not what it has to be.")
    if type == "tuple[int, ...]":
        return tuple(_checked(file, name, "int", each) for each in value)
    if type in ("int", "float") and not 0 < value <= _MOST:
        raise InputError(f"{file}: {name} is {shown(value)}, and it has to be above 0 and at most {_MOST:g}.")
    return float(value) if type == "float" else value
