"""The atomics lesson's figures: contention as counted, latencies as assumed, interleavings as they ran."""

from __future__ import annotations

from dataclasses import dataclass

VARIANTS = ("interleaved", "privatized", "aggregated", "peak")
"""The histogram's variants that are put side by side: in global memory, in a block's own, in runs, for each lane."""


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
class Modelled:
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


def model(counts: AtomicCounts, latencies: Latencies) -> Modelled:
    """Return how long a variant takes where nothing but the queues at single addresses costs time."""
    at_global = counts.of_global.hottest / latencies.per_second(latencies.global_cycles)
    at_shared = counts.of_shared.hottest / latencies.per_second(latencies.shared_cycles)
    seconds = at_global + at_shared
    bound = "" if not seconds else "global" if at_global >= at_shared else "shared"
    return Modelled(1e3 * seconds, bound, counts.elements / seconds if seconds else 0.0)


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
    racy, atomic : tuple of Interleaving
        Of two threads that read, add and write; and of two that do it at once.
    """

    counts: tuple[AtomicCounts, ...]
    elements: int
    racy: tuple[Interleaving, ...]
    atomic: tuple[Interleaving, ...]
