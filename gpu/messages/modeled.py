"""How long launches would take on a GPU that is described, as plain data: the time, what holds it back, how sure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu.timing.validation import KnownError

LIMITS = {
    "DRAM": "What goes between memory and the last cache, at memory's rate",
    "L2": "What the multiprocessors load and store, at the last cache's rate",
    "L1": "Lines that requests to global memory touch, one a cycle",
    "shared": "Passes over the banks of shared memory, one a cycle; conflicts take more of them",
    "issue": "Instructions of warps, one a cycle and scheduler",
    "arithmetic": "The busiest of the units that add, multiply, compare",
    "latency": "What is waited for although no unit is busy: too little is under way at once",
    "atomics": "Atomics on one word, one after the other, and all of them together",
    "launch": "What each launch takes that does nothing",
}
"""What can hold a launch back, each with what its time is of."""

_OPCODES = 6
"""How many are named of a line."""
_SATURATED = 0.75
"""Of the time that a unit is busy for it to be called the limit."""


@dataclass(frozen=True)
class LineCode:
    """A source line in machine instructions, of all kernels that were launched.

    Parameters
    ----------
    instructions, local : int
        How many there are, and how many of them reach local memory, where spilled registers are.
    opcodes : mapping of str to int
        The most frequent first.
    """

    instructions: int
    local: int
    opcodes: Mapping[str, int]

    @property
    def words(self) -> str:
        """Return it in a sentence."""
        names = ", ".join(f"{count} {name}" for name, count in list(self.opcodes.items())[:_OPCODES])
        more = ", …" if len(self.opcodes) > _OPCODES else ""
        local = f"; {self.local} reach local memory" if self.local else ""
        return f"{self.instructions} machine instructions: {names}{more}{local}"


@dataclass(frozen=True)
class KernelTime:
    """Launches of one kernel with the same block, all of a host program's.

    Parameters
    ----------
    kernel : str
    grid, block : tuple of int
        Of the first of them.
    launches : int
    time_us : float
        Of all of them.
    registers, shared_bytes : int
        Of a thread, and of a block.
    blocks, warps : int
        What a multiprocessor holds at once.
    limited_by : str
        As of `gpu.timing.occupancy.Occupancy`.
    spilled_bytes : int
        That a thread stores because registers are few; 0 also where no assembler said.
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
        """Return the threads of a block."""
        x, y, z = (*self.block, 1, 1)[:3]
        return x * y * z


@dataclass(frozen=True)
class ModeledTime:
    """A host program's launches, or one launch, modeled.

    Parameters
    ----------
    gpu, name : str
        The key of the GPU's description, and its name.
    validated : bool
        Whether the model has been compared with one that was measured.
    time_us : float
        Of all launches.
    limits : mapping of str to float
        By the names of `LIMITS`: microseconds that the launches would take if that were the only limit.
    bound_by : str
        One of those names.
    waits : str
        What it waits for, as a clause.
    kernels : tuple of KernelTime
        The longest first.
    launches : int
        Those of kernels, and buffers that are filled.
    instructions, dram_bytes, l2_bytes : float
        Of warps; between memory and the last cache; that the last cache sees.
    source : str
        What said the instructions: "sass" where nvcc compiled them, "ir" where LLVM did.
    error : KnownError or None
        What such times were within where they were compared with measured ones; None where none were.
    all_ran : bool
        Whether every launch found what those before it left.
    operations, least_bytes : float
        Operations on data, and what must be read and written whatever the kernel; 0 where not known.
    work : float
        What the pattern's throughput counts, in its thousands; 0 where there is no pattern.
    counted : bool
        Whether the operations were counted on a small part, not what the pattern says that they are.
    lines : mapping of str to mapping of int to LineCode
        By file and line, what the assembler made of them; nothing where there was none.
    """

    gpu: str
    name: str
    validated: bool
    time_us: float
    limits: Mapping[str, float]
    bound_by: str
    waits: str
    kernels: tuple[KernelTime, ...]
    launches: int
    instructions: float
    dram_bytes: float
    l2_bytes: float
    source: str
    error: KnownError | None = None
    all_ran: bool = True
    operations: float = 0.0
    least_bytes: float = 0.0
    work: float = 0.0
    counted: bool = False
    lines: Mapping[str, Mapping[int, LineCode]] = field(default_factory=dict)

    @property
    def sureness(self) -> str:
        """Return how sure the time is, in words."""
        if self.error is not None:
            return self.error.words
        if self.validated:
            return "how far off is not known"
        return "never compared with a real one"

    @property
    def compiled(self) -> str:
        """Return what the instructions are from, in a sentence."""
        if self.source == "sass":
            return "Instructions and registers as nvcc compiles them."
        return "Without nvcc: PTX by LLVM, registers estimated."

    @property
    def sentence(self) -> str:
        """Return time, GPU, sureness and reason, in one sentence."""
        where = f"on {article(self.name)} {short_name(self.name)}"
        return f"{where}: {as_duration(self.time_us)} (modeled, {self.sureness}) – {self.waits}"

    @property
    def longest(self) -> KernelTime | None:
        """Return the kernel that takes longest; None where none was launched."""
        return self.kernels[0] if self.kernels else None


def short_name(name: str) -> str:
    """Return a GPU's name as people say it: "H200", "RTX 4090"."""
    said = name
    for brand in ("NVIDIA ", "GeForce ", " 80GB HBM3"):
        said = said.replace(brand, "")
    return said


def article(name: str) -> str:
    """Return "a" or "an", as the GPU's short name is spoken."""
    return "an" if short_name(name)[:1] in "AEFHILMNORSX" and short_name(name)[:2] != "Je" else "a"


def as_duration(microseconds: float) -> str:
    """Return a time in the unit that suits it."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.2f} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.{2 if microseconds < 1e4 else 1}f} ms"
    return f"{microseconds:.{1 if microseconds < 100 else 0}f} µs"


@dataclass(frozen=True)
class Waiting:
    """What a reason is made of.

    Parameters
    ----------
    limits : mapping of str to float
        As of `ModeledTime`.
    bound_by : str
    body_us : float
        The time without what launches cost.
    launches : int
    loads, load_bytes, load_us : float
        Loads that a thread has under way at once, the bytes of one, and how long it waits for all of them in all.
    warps, most_warps : int
        What a multiprocessor holds, and could.
    dram_bytes, instructions : float
    """

    limits: Mapping[str, float]
    bound_by: str
    body_us: float
    launches: int
    loads: float
    load_bytes: float
    load_us: float
    warps: int
    most_warps: int
    dram_bytes: float
    instructions: float

    @property
    def words(self) -> str:
        """Return what is waited for, as a clause."""
        limit = self.limits[self.bound_by]
        busy = limit / self.body_us if self.body_us else 0.0
        match self.bound_by:
            case "launch":
                share = f"{limit / max(self.body_us + limit, limit):.0%}".replace("%", " %")
                if self.launches == 1:
                    return f"its launch is {share} of it: there is little work"
                return f"its {self.launches} launches are {share} of it: there is little work for each"
            case "DRAM" if busy >= _SATURATED:
                return f"waits for memory's bandwidth: {as_bytes(self.dram_bytes)} to and from it"
            case "L2" if busy >= _SATURATED:
                return "waits for the last cache's bandwidth"
            case "DRAM" | "L2" | "latency":
                return self._latency()
            case "L1":
                return "waits for L1: lanes of a request want many lines"
            case "shared":
                return "waits for shared memory: passes over its banks"
            case "issue":
                return f"waits to issue: {_many(self.instructions)} instructions of warps"
            case "arithmetic":
                return "waits for the arithmetic units"
        return "waits for atomics: those on one word go one after the other"

    def _latency(self) -> str:
        few = self.warps < self.most_warps / 2
        beside = f", {self.warps} of {self.most_warps} warps to hide it" if few else ""
        if self.loads and (self.load_us >= 0.3 * self.body_us or self.bound_by != "latency"):
            count = round(self.loads)
            many = "one" if count <= 1 else str(count)
            size = f"{self.load_bytes:.0f}-byte load{'' if count <= 1 else 's'}"
            return f"waits for memory: {many} {size} a thread under way{beside}"
        return f"waits for results of its own and at barriers{beside or ': little is under way at once'}"


def _many(amount: float) -> str:
    """Return a number as people say it."""
    for size, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if amount >= size:
            return f"{amount / size:.3g} {word}"
    return f"{amount:.0f}"


def as_bytes(amount: float) -> str:
    """Return bytes as people say them."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount:.0f} bytes"
