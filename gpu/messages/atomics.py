"""The atomics lesson's figures: contention as counted, latencies as assumed, interleavings as they ran."""

from __future__ import annotations

from dataclasses import dataclass

VARIANTS = ("block-partition", "interleaved", "privatized", "aggregated", "peak")
"""The histogram's variants that are put side by side: in global memory, in sections and interleaved, in a block's own,
in runs, for each lane."""


MOST_ELEMENTS = 2**18
"""Elements that are counted: some tenths of a second a variant."""


@dataclass(frozen=True)
class Contended:
    """The atomics on one kind of memory, counted by the simulator.

    Parameters
    ----------
    operations : int
        Atomics of single threads.
    addresses : int
        On how many addresses; each block's shared memory has addresses of its own.
    hottest : int
        The most atomics on one address.
    warp_queue, block_queue : int
        The most threads of a warp, and of a block, that want one address with the same atomic.
    """

    operations: int = 0
    addresses: int = 0
    hottest: int = 0
    warp_queue: int = 0
    block_queue: int = 0


@dataclass(frozen=True)
class AtomicCounts:
    """What a variant's atomics are, for one input.

    Parameters
    ----------
    variant : str
    elements : int
        Pixels, characters or numbers that were counted.
    of_global, of_shared : Contended
    """

    variant: str
    elements: int
    of_global: Contended
    of_shared: Contended


@dataclass(frozen=True)
class Latencies:
    """What the model assumes.

    Parameters
    ----------
    clock_ghz : float
    global_cycles, shared_cycles : float
        Cycles one way, to the memory that does the atomic and back: an atomic on an address begins when the one before
        has ended, and takes both ways. DRAM takes some 200, the last cache tens, shared memory a few.
    """

    clock_ghz: float = 1.0
    global_cycles: float = 200.0
    shared_cycles: float = 4.0

    def per_second(self, cycles: float) -> float:
        """Return how many atomics a second one address takes."""
        return self.clock_ghz * 1e9 / (2 * cycles)


@dataclass(frozen=True)
class ModeledAtomics:
    """What the latencies make of counted atomics.

    Parameters
    ----------
    time_ms : float
        The queue at the hottest address of shared memory, then that at the hottest of global memory.
    bound_by : {"global", "shared", ""}
        Which of the two is longer; empty where there are no atomics.
    per_second : float
        Elements a second.
    """

    time_ms: float
    bound_by: str
    per_second: float


def model(counts: AtomicCounts, latencies: Latencies) -> ModeledAtomics:
    """Return how long a variant takes where nothing but the queues at single addresses costs time."""
    at_global = counts.of_global.hottest / latencies.per_second(latencies.global_cycles)
    at_shared = counts.of_shared.hottest / latencies.per_second(latencies.shared_cycles)
    seconds = at_global + at_shared
    bound = "" if not seconds else "global" if at_global >= at_shared else "shared"
    return ModeledAtomics(1e3 * seconds, bound, counts.elements / seconds if seconds else 0.0)


CACHE_SPEEDUP = 10
"""An atomic in the last cache takes tens of cycles where memory takes hundreds."""
OPERATIONS = 6
"""Arithmetic of a text's histogram for each atomic: -, >=, <, /, and + twice."""
_CHANNELS, _TRANSFERS, _CHANNEL_BYTES, _ELEMENT_BYTES = 8, 2, 8, 4


@dataclass(frozen=True)
class Chain:
    """What follows from how long one atomic takes, step by step, after Kirk and Hwu's chapter; all a second.

    Parameters
    ----------
    on_one : float
        Atomics on one address, in memory.
    in_cache : float
        The same in the last cache.
    evenly, skewed : float
        Atomics on so many addresses: where all have as many, and where the hottest has as many as it has here.
    operations : float
        Arithmetic that even atomics leave room for.
    bytes, elements : float
        What the memory moves: 8 channels of 8 bytes, twice a clock.
    """

    on_one: float
    in_cache: float
    evenly: float
    skewed: float
    operations: float
    bytes: float
    elements: float


def chain(contended: Contended, latencies: Latencies) -> Chain | None:
    """Return what follows from counted atomics on global memory; None where there are none."""
    if not contended.operations:
        return None
    on_one = latencies.per_second(latencies.global_cycles)
    evenly = contended.addresses * on_one
    moved = latencies.clock_ghz * 1e9 * _CHANNELS * _TRANSFERS * _CHANNEL_BYTES
    return Chain(
        on_one=on_one,
        in_cache=CACHE_SPEEDUP * on_one,
        evenly=evenly,
        skewed=contended.operations / contended.hottest * on_one,
        operations=OPERATIONS * evenly,
        bytes=moved,
        elements=moved / _ELEMENT_BYTES,
    )


def _in_words(per_second: float) -> str:
    """Return a rate with three digits and its prefix."""
    return f"{per_second / 1e9:.3g} G" if per_second >= 1e9 else f"{per_second / 1e6:.3g} M"


def chain_in_words(contended: Contended, latencies: Latencies) -> tuple[tuple[str, str], ...]:
    """Return the chain as figures and what each is of; nothing where there are no atomics."""
    found = chain(contended, latencies)
    if found is None:
        return ()
    few = contended.addresses
    return (
        (f"{_in_words(found.on_one)} atomics/s", f"one address, {2 * latencies.global_cycles:g} cycles"),
        (f"{_in_words(found.evenly)} atomics/s", f"evenly on {few} address{'es' if few > 1 else ''}"),
        (f"{_in_words(found.skewed)} atomics/s", f"as here, {contended.hottest} on one"),
        (f"{_in_words(found.in_cache)} atomics/s", f"in a cache, × {CACHE_SPEEDUP}"),
        (f"{_in_words(found.operations)} operations/s", f"{OPERATIONS} for each, evenly"),
        (f"{found.bytes / 1e9:.3g} GB/s", f"{_in_words(found.elements)} elements/s"),
    )


@dataclass(frozen=True)
class Moment:
    """A step of one of two threads.

    Parameters
    ----------
    thread : int
        0 or 1.
    step : {"read", "add", "write", "atomic"}
    value : int
        The counter's value where it was read or written, else that of the thread's variable.
    """

    thread: int
    step: str
    value: int


@dataclass(frozen=True)
class Interleaving:
    """One order in which two threads that each count one did so.

    Parameters
    ----------
    moments : tuple of Moment
    result : int
        The counter afterwards; it began at 0.
    """

    moments: tuple[Moment, ...]
    result: int

    @property
    def right(self) -> bool:
        """Whether no update was lost."""
        return self.result == 2


@dataclass(frozen=True)
class AtomicsStudy:
    """What the lesson shows.

    Parameters
    ----------
    counts : tuple of AtomicCounts
        Of each of `VARIANTS`.
    elements : int
        Elements of the whole input; where more than were counted, the rest was cut off.
    ignored : int
        Characters that are no letters: they are left out before anything is counted.
    racy, atomic : tuple of Interleaving
        Of two threads that read, add and write; and of two that do it at once.
    """

    counts: tuple[AtomicCounts, ...]
    elements: int
    ignored: int
    racy: tuple[Interleaving, ...]
    atomic: tuple[Interleaving, ...]

    @property
    def of_memory(self) -> Contended:
        """The atomics of a variant that has all of them in global memory."""
        return next(counts.of_global for counts in self.counts if counts.variant == "interleaved")
