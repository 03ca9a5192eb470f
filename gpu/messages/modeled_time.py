"""Modeled times of launches on a described GPU: time, limiting resource, and accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu.messages.kernels import KernelLaunch
from gpu.messages.requests import Request
from gpu.messages.shared_arrays import SharedArray
from gpu.timing.gpus import UNSCALED, GpuDescription, GpuScaling
from gpu.timing.validation import ErrorBound

LIMITS = {
    "DRAM": "Traffic between DRAM and the L2 cache, at DRAM's rate",
    "L2": "Loads and stores of the multiprocessors, at the L2 cache's rate",
    "L1": "Cache lines that requests to global memory touch, one per cycle",
    "shared": "Passes over the banks of shared memory, one per cycle; bank conflicts need more of them",
    "issue": "Instructions of warps, one per cycle and warp scheduler",
    "arithmetic": "The busiest arithmetic unit",
    "latency": "Waiting although no unit is busy: too few operations are in flight",
    "atomics": "Atomic operations on one word, one after the other, and all of them together",
    "launch": "Launch overhead",
}
"""Resources that can limit a launch, with their descriptions."""

_MAX_OPCODES = 6
"""Most opcodes to list for a line."""
_SATURATED = 0.75
"""Share of the time during which a unit must be busy to be called the limit."""


@dataclass(frozen=True)
class LineCode:
    """Machine instructions of a source line, over all launched kernels.

    Parameters
    ----------
    instructions, local_memory_count : int
        Number of instructions, and of those that access local memory, where registers are spilled.
    opcodes : mapping of str to int
        Counts by opcode, the most frequent first.
    """

    instructions: int
    local_memory_count: int
    opcodes: Mapping[str, int]

    @property
    def description(self) -> str:
        """Description as a sentence."""
        names = ", ".join(f"{count} {name}" for name, count in list(self.opcodes.items())[:_MAX_OPCODES])
        more = ", …" if len(self.opcodes) > _MAX_OPCODES else ""
        local = f"; {self.local_memory_count} access local memory" if self.local_memory_count else ""
        return f"{self.instructions} machine instructions: {names}{more}{local}"


@dataclass(frozen=True)
class KernelTime:
    """Modeled time of a kernel's launches with the same block size, over the host program.

    Parameters
    ----------
    grid, block : tuple of int
        Of the first launch.
    time_us : float
        Sum over the launches.
    registers, shared_bytes : int
        Registers per thread, and shared memory per block.
    blocks, warps : int
        Resident blocks and warps per multiprocessor.
    limited_by : str
        As in `gpu.timing.occupancy.Occupancy`.
    spilled_bytes : int
        Bytes of spilled registers per thread; also 0 if the assembler reported none.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    launches: int
    time_us: float
    registers: int
    shared_bytes: int
    blocks: int
    warps: int
    limited_by: str
    spilled_bytes: int = 0

    @property
    def threads(self) -> int:
        """Threads per block."""
        x, y, z = (*self.block, 1, 1)[:3]
        return x * y * z


@dataclass(frozen=True)
class ModeledTime:
    """Modeled time of a launch or of all launches of a host program.

    Parameters
    ----------
    gpu, name : str
        Key of the GPU description, and the GPU's name.
    validated : bool
        Whether the timing model has been compared with measurements on this GPU.
    time_us : float
        Sum over all launches.
    limits : mapping of str to float
        For each name in `LIMITS`, the microseconds that the launches would take if it were the only limit.
    bound_by : str
        Name of the limiting resource.
    reason : str
        Reason for the time, as a clause.
    kernels : tuple of KernelTime
        The longest first.
    launches : int
        Number of kernel launches and fills of buffers.
    instructions, dram_bytes, l2_bytes : float
        Warp instructions; bytes between DRAM and the L2 cache; bytes that the L2 cache serves.
    source : str
        Origin of the instructions: "sass" if compiled by nvcc, "ir" if by LLVM.
    error : ErrorBound or None
        Error of such times in comparisons with measurements; None if there were none.
    all_executed : bool
        Whether every launch ran on the data that earlier launches left.
    is_complete : bool
        Whether the timing model followed the blocks of all launches to their end.
    operations, least_bytes : float
        Operations on data, and minimum traffic; 0 if unknown.
    work : float
        Work that the pattern's throughput counts, in its unit; 0 without a pattern.
    lines : mapping of str to mapping of int to LineCode
        Machine instructions by file and line; empty without an assembler.
    """

    gpu: str
    name: str
    validated: bool
    time_us: float
    limits: Mapping[str, float]
    bound_by: str
    reason: str
    kernels: tuple[KernelTime, ...]
    launches: int
    instructions: float
    dram_bytes: float
    l2_bytes: float
    source: str
    error: ErrorBound | None = None
    all_executed: bool = True
    is_complete: bool = True
    operations: float = 0.0
    least_bytes: float = 0.0
    work: float = 0.0
    lines: Mapping[str, Mapping[int, LineCode]] = field(default_factory=dict)

    @property
    def accuracy(self) -> str:
        """Accuracy of the time, as a phrase."""
        if self.error is not None:
            return self.error.text
        if self.validated:
            return "accuracy unknown"
        return "never compared with measurements"

    @property
    def source_sentence(self) -> str:
        """Origin of the instructions, as a sentence."""
        if self.source == "sass":
            return "Instructions and registers from nvcc."
        return "Without nvcc: PTX from LLVM, registers estimated."

    @property
    def longest_kernel(self) -> KernelTime | None:
        """The kernel with the longest time; None if there were no launches."""
        return self.kernels[0] if self.kernels else None


@dataclass(frozen=True)
class VariantOnGpu:
    """The run and the described GPU that a request is about.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources, side
        As in RunPattern.
    gpu : str
        Key, as in `gpu.timing.gpus.find_gpu`.
    """

    pattern: str
    variant: str
    gpu: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    side: int = 0


@dataclass(frozen=True)
class ModelPattern(VariantOnGpu, Request[ModeledTime]):
    """Model the time of one variant of a pattern on a described GPU.

    Parameters
    ----------
    pattern, variant, gpu, params, inputs, seed, sources, side
        As in VariantOnGpu.
    gpu_scaling : GpuScaling
        Changes to the GPU description.
    count_operations : bool
        Whether to count operations if the pattern does not declare them.
    """

    gpu_scaling: GpuScaling = UNSCALED
    count_operations: bool = False


@dataclass(frozen=True)
class ModelKernel(Request[ModeledTime]):
    """Model the time of any kernel's launch on a described GPU.

    `gpu_scaling` and `count_operations` are as in ModelPattern.
    """

    launch: KernelLaunch
    gpu: str
    gpu_scaling: GpuScaling = UNSCALED
    count_operations: bool = False


def short_name(name: str) -> str:
    """Return a GPU's usual short name: "H200", "RTX 4090"."""
    short = name
    for brand in ("NVIDIA ", "GeForce ", " 80GB HBM3"):
        short = short.replace(brand, "")
    return short


def indefinite_article(name: str) -> str:
    """Return "a" or "an" for a GPU's short name."""
    return "an" if short_name(name)[:1] in "AEFHILMNORSX" and short_name(name)[:2] != "Je" else "a"


def name_with_article(name: str) -> str:
    """Return a GPU's short name with its article: "an H200"."""
    return f"{indefinite_article(name)} {short_name(name)}"


def describe_missing_blocks(blocks: int, resident_blocks: int, resident_warps: int, gpu: GpuDescription) -> str:
    """Return what a launch reaches with too few blocks for its theoretical occupancy, as a clause; "" if it has enough.

    Parameters
    ----------
    blocks : int
        Blocks of the launch.
    resident_blocks, resident_warps : int
        Blocks and warps that a multiprocessor can hold: the theoretical occupancy.
    """
    if blocks >= resident_blocks * gpu.multiprocessors:
        return ""
    reached = -(-blocks // gpu.multiprocessors)
    return (
        f"; this launch reaches {_count(reached, 'block')} and "
        f"{_count(reached * resident_warps // resident_blocks, 'warp')}: it has {_count(blocks, 'block')} for "
        f"{gpu.multiprocessors} multiprocessors"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number > 1 else ''}"


def describe_least_time(gpu: GpuDescription, bytes_read: int = 0, bytes_written: int = 0, blocks: int = 1) -> str:
    """Return a time that launches cannot be shorter than, and its reason: a first figure, without modeling anything.

    Parameters
    ----------
    bytes_read, bytes_written : int
        The minimum traffic of all launches. L2 retains a part of what is written.
    blocks : int
        The blocks of a launch.
    """
    retained = gpu.last_cache_written_share * gpu.last_cache_bytes
    traffic = bytes_read + max(bytes_written - retained, 0.0)
    transfer_us, start_us = traffic / gpu.memory_gb_s / 1e3, blocks * gpu.block_ns / 1e3
    reason = "of the launch"
    if traffic and transfer_us >= start_us:
        reason += f" and {format_bytes(traffic)} of DRAM traffic"
    elif blocks > 1:
        reason += f" and of the starts of {blocks:,} blocks"
    return f"at least {format_duration(gpu.launch_us + max(transfer_us, start_us))}, because {reason}"


def format_duration(microseconds: float) -> str:
    """Format a time in a suitable unit."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.2f} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.{2 if microseconds < 1e4 else 1}f} ms"
    return f"{microseconds:.{1 if microseconds < 100 else 0}f} µs"


@dataclass(frozen=True)
class TimeExplanation:
    """Data from which the reason of a modeled time is derived.

    Parameters
    ----------
    limits : mapping of str to float
        As in `ModeledTime`.
    body_us : float
        Time without launch overhead.
    loads, load_bytes, load_us : float
        Loads in flight per thread, bytes per load, and the total time that a thread waits for them.
    warps, max_warps : int
        Resident warps per multiprocessor, and their maximum.
    """

    limits: Mapping[str, float]
    bound_by: str
    body_us: float
    launches: int
    loads: float
    load_bytes: float
    load_us: float
    warps: int
    max_warps: int
    dram_bytes: float
    instructions: float

    @property
    def reason(self) -> str:
        """The reason, as a clause."""
        limit = self.limits[self.bound_by]
        busy = limit / self.body_us if self.body_us else 0.0
        match self.bound_by:
            case "launch":
                share = f"{limit / max(self.body_us + limit, limit):.0%}"
                if self.launches == 1:
                    return f"launch overhead is {share} of it: there is little work"
                return f"overhead of {self.launches} launches is {share} of it: there is little work per launch"
            case "DRAM" if busy >= _SATURATED:
                return f"limited by DRAM bandwidth: {format_bytes(self.dram_bytes)} of traffic"
            case "L2" if busy >= _SATURATED:
                return "limited by the bandwidth of the L2 cache"
            case "DRAM" | "L2" | "latency":
                return self._format_latency()
            case "L1":
                return "limited by L1: requests touch many cache lines"
            case "shared":
                return "limited by passes over the banks of shared memory"
            case "issue":
                return f"limited by instruction issue: {_format_count(self.instructions)} warp instructions"
            case "arithmetic":
                return "limited by the arithmetic units"
        return "limited by atomic operations: those on one word run one after the other"

    def _format_latency(self) -> str:
        few = self.warps < self.max_warps / 2
        warps = f", {self.warps} of {self.max_warps} warps to hide it" if few else ""
        if self.loads and (self.load_us >= 0.3 * self.body_us or self.bound_by != "latency"):
            count = round(self.loads)
            loads = "one load" if count <= 1 else f"{count} loads"
            size = "1 byte" if round(self.load_bytes) == 1 else f"{self.load_bytes:.0f} bytes"
            return f"waits for memory: {loads} of {size} per thread in flight{warps}"
        return f"waits for its own results and at barriers{warps or ': few operations are in flight'}"


def _format_count(amount: float) -> str:
    """Format a count with a word for its magnitude."""
    for size, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if amount >= size:
            return f"{amount / size:.3g} {word}"
    return f"{amount:.0f}"


def format_bytes(amount: float) -> str:
    """Format bytes in a suitable unit."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount:.0f} bytes"
