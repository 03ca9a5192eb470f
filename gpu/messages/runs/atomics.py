"""Data of the atomics lesson: counted contention, assumed latencies, and interleavings that were executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu.messages.requests import Request
from gpu.messages.shared_arrays import SharedArray

VARIANTS = ("block-partition", "interleaved", "privatized", "aggregated", "peak")
"""Variants of the histogram that are compared: in global memory with a section per block, and interleaved; privatized
in shared memory; with aggregated runs; with a copy per lane."""


MAX_ELEMENTS = 2**18
"""Most elements that are counted; counting takes some tenths of a second per variant."""


@dataclass(frozen=True)
class ContentionCounts:
    """Atomic operations on one kind of memory, counted by the simulator.

    Parameters
    ----------
    operations : int
        Atomic operations of single threads.
    addresses : int
        Number of addresses; each block's shared memory has its own.
    hottest : int
        Most atomic operations on one address.
    warp_queue, block_queue : int
        Most threads of a warp, and of a block, that access one address in the same atomic operation.
    """

    operations: int = 0
    addresses: int = 0
    hottest: int = 0
    warp_queue: int = 0
    block_queue: int = 0


@dataclass(frozen=True)
class AtomicCounts:
    """Atomic operations of a variant for one input.

    Parameters
    ----------
    elements : int
        Pixels, characters or numbers that were processed.
    """

    variant: str
    elements: int
    global_counts: ContentionCounts
    shared_counts: ContentionCounts


@dataclass(frozen=True)
class Latencies:
    """Latencies of the textbook's example, Kirk and Hwu's: not those of a present GPU, which the timing model has.

    Parameters
    ----------
    global_cycles, shared_cycles : float
        Cycles one way between a multiprocessor and the memory that executes the operation. Operations on one address
        run one after the other, and each takes both ways. DRAM takes about 200, the L2 cache tens, shared memory few.
    """

    clock_ghz: float = 1.0
    global_cycles: float = 200.0
    shared_cycles: float = 4.0

    def per_second(self, cycles: float) -> float:
        """Return the atomic operations per second on one address."""
        return self.clock_ghz * 1e9 / (2 * cycles)


@dataclass(frozen=True)
class TextbookTime:
    """Time of counted atomic operations in the textbook's example.

    Parameters
    ----------
    time_ms : float
        The queue at the hottest address of shared memory, then that of global memory.
    bound_by : {"global", "shared", ""}
        The longer of the two; empty if there are no atomic operations.
    per_second : float
        Elements per second.
    """

    time_ms: float
    bound_by: str
    per_second: float


def compute_textbook_time(counts: AtomicCounts, latencies: Latencies) -> TextbookTime:
    """Return a variant's time if only the queues at single addresses take time."""
    at_global = counts.global_counts.hottest / latencies.per_second(latencies.global_cycles)
    at_shared = counts.shared_counts.hottest / latencies.per_second(latencies.shared_cycles)
    seconds = at_global + at_shared
    bound = "" if not seconds else "global" if at_global >= at_shared else "shared"
    return TextbookTime(1e3 * seconds, bound, counts.elements / seconds if seconds else 0.0)


CACHE_SPEEDUP = 10
"""Factor by which an atomic operation in the L2 cache is faster than in DRAM: tens of cycles instead of hundreds."""
OPERATIONS = 6
"""Arithmetic operations per atomic operation in a text's histogram: -, >=, <, /, and + twice."""
_CHANNELS, _TRANSFERS, _CHANNEL_BYTES, _ELEMENT_BYTES = 8, 2, 8, 4


@dataclass(frozen=True)
class LatencyChain:
    """Rates that follow from one atomic operation's latency, as in Kirk and Hwu's chapter; all per second.

    Parameters
    ----------
    on_one : float
        Atomic operations on one address, in DRAM.
    in_cache : float
        Atomic operations on one address, in the L2 cache.
    evenly, skewed : float
        Atomic operations on all addresses: if evenly distributed, and if distributed as counted.
    operations : float
        Arithmetic operations at the even rate.
    bytes, elements : float
        Memory bandwidth: 8 channels of 8 bytes, twice per clock.
    """

    on_one: float
    in_cache: float
    evenly: float
    skewed: float
    operations: float
    bytes: float
    elements: float


def compute_latency_chain(contention: ContentionCounts, latencies: Latencies) -> LatencyChain | None:
    """Return the rates that follow from counted atomic operations on global memory; None if there are none."""
    if not contention.operations:
        return None
    on_one = latencies.per_second(latencies.global_cycles)
    evenly = contention.addresses * on_one
    moved = latencies.clock_ghz * 1e9 * _CHANNELS * _TRANSFERS * _CHANNEL_BYTES
    return LatencyChain(
        on_one=on_one,
        in_cache=CACHE_SPEEDUP * on_one,
        evenly=evenly,
        skewed=contention.operations / contention.hottest * on_one,
        operations=OPERATIONS * evenly,
        bytes=moved,
        elements=moved / _ELEMENT_BYTES,
    )


def _format_rate(per_second: float) -> str:
    """Format a rate with three digits and its prefix."""
    return f"{per_second / 1e9:.3g} G" if per_second >= 1e9 else f"{per_second / 1e6:.3g} M"


def describe_latency_chain(contention: ContentionCounts, latencies: Latencies) -> tuple[tuple[str, str], ...]:
    """Format the chain as pairs of a rate and its meaning; empty if there are no atomic operations."""
    rates = compute_latency_chain(contention, latencies)
    if rates is None:
        return ()
    few = contention.addresses
    return (
        (f"{_format_rate(rates.on_one)} atomics/s", f"one address, {2 * latencies.global_cycles:g} cycles"),
        (f"{_format_rate(rates.evenly)} atomics/s", f"spread over {few} address{'es' if few > 1 else ''}"),
        (f"{_format_rate(rates.skewed)} atomics/s", f"this input, {contention.hottest} on one"),
        (f"{_format_rate(rates.in_cache)} atomics/s", f"one address in the L2, × {CACHE_SPEEDUP}"),
        (f"{_format_rate(rates.operations)} operations/s", f"spread, {OPERATIONS} per atomic"),
        (f"{rates.bytes / 1e9:.3g} GB/s", f"{_format_rate(rates.elements)} elements/s"),
    )


@dataclass(frozen=True)
class ThreadStep:
    """One step of one of two threads.

    Parameters
    ----------
    thread : int
        0 or 1.
    step : {"read", "add", "write", "atomic"}
    value : int
        The counter's value for a read or write, else the value of the thread's variable.
    """

    thread: int
    step: str
    value: int


@dataclass(frozen=True)
class Interleaving:
    """One order in which two threads each increment a counter.

    Parameters
    ----------
    result : int
        The counter's final value; it starts at 0.
    """

    moments: tuple[ThreadStep, ...]
    result: int

    @property
    def is_correct(self) -> bool:
        """Whether no update was lost."""
        return self.result == 2


@dataclass(frozen=True)
class AtomicsStudy:
    """Data that the atomics lesson shows.

    Parameters
    ----------
    counts : tuple of AtomicCounts
        For each of `VARIANTS`.
    elements : int
        Elements of the whole input; may exceed the number that was processed.
    textbook_counts : ContentionCounts
        Atomic operations of the textbook's kernel, all in global memory; for a text, on its letters alone. Its queues
        are not counted.
    racy, atomic : tuple of Interleaving
        Two threads that read, add and write separately; two that use an atomic operation.
    """

    counts: tuple[AtomicCounts, ...]
    elements: int
    textbook_counts: ContentionCounts
    racy: tuple[Interleaving, ...]
    atomic: tuple[Interleaving, ...]


@dataclass(frozen=True)
class StudyAtomics(Request[AtomicsStudy]):
    """Count the atomic operations of the histogram's variants, and run two threads in all interleavings.

    It runs in the simulator's process for every engine.

    Parameters
    ----------
    params, inputs, seed
        As in RunPattern, for the histogram.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
