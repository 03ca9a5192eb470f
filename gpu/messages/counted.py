"""What a variant does to memory and lanes, counted by the simulator: the same on every machine, unlike a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

SECTOR_BYTES = 32
WARP = 32


@dataclass(frozen=True)
class RunCounts:
    """What the launches of a run do, all together.

    Parameters
    ----------
    input : str
        What was run, such as "n = 1024": a small part of the input says what all of it would.
    elements : int
        Of that input.
    unit : str
        What they are: "element", "pixel", "character" or "body".
    least_bytes : int
        What any variant must read and write of global memory.
    requests, sectors : int
        Accesses of warps to global memory, and the 32-byte sectors that they want, as if there were no caches.
    shared_requests, wavefronts, conflicts : int
        Accesses of warps to shared memory, the passes over its banks that they take, and those that conflicts cost.
    warp_statements, lane_statements : int
        Statements, each once for every warp, and once for every active lane.
    branches, divergent_branches : int
        Tested by warps, and those where lanes part.
    operations : int
        On data, by all lanes.
    barriers : int
        Each once for every block that passes it.
    atomics, hottest_atomics : int
        Atomic accesses of warps, and the most that one address had, of a single launch or block.
    """

    input: str
    elements: int
    unit: str
    least_bytes: int
    requests: int = 0
    sectors: int = 0
    shared_requests: int = 0
    wavefronts: int = 0
    conflicts: int = 0
    warp_statements: int = 0
    lane_statements: int = 0
    branches: int = 0
    divergent_branches: int = 0
    operations: int = 0
    barriers: int = 0
    atomics: int = 0
    hottest_atomics: int = 0

    @property
    def moved_bytes(self) -> int:
        """Return the bytes of all sectors."""
        return SECTOR_BYTES * self.sectors

    @property
    def lanes(self) -> float:
        """Return how many of a warp's 32 lanes are active in a statement, on average."""
        return self.lane_statements / self.warp_statements if self.warp_statements else 0.0

    @property
    def each(self) -> str:
        """Return "an element", or what else there is."""
        return f"{'an' if self.unit[0] in 'aeiou' else 'a'} {self.unit}"

    def per_element(self, amount: float) -> float:
        """Return an amount for each element."""
        return amount / self.elements if self.elements else 0.0

    def data(self) -> dict[str, Any]:
        """Return all of it as JSON takes it."""
        return {
            **asdict(self),
            "moved_bytes": self.moved_bytes,
            "moved_bytes_per_element": self.per_element(self.moved_bytes),
            "least_bytes_per_element": self.per_element(self.least_bytes),
            "lanes_per_warp_statement": self.lanes,
        }


@dataclass(frozen=True)
class Quantity:
    """Something that is counted, by which variants can be compared.

    Parameters
    ----------
    name : str
        What it is called in a list.
    unit : str
        What stands at an axis; `{each}` is what an element is called with its article.
    value : callable
        RunCounts -> its figure.
    meaning : str
    more_is_better : bool
        Whether the greatest figure is the best.
    """

    name: str
    unit: str
    value: Callable[[RunCounts], float]
    meaning: str
    more_is_better: bool = False


QUANTITIES = (
    Quantity(
        "bytes moved",
        "bytes {each}",
        lambda counts: counts.per_element(counts.moved_bytes),
        "32-byte sectors of global memory that loads, stores and atomics want, in bytes, as if there were no caches",
    ),
    Quantity(
        "wavefronts",
        "wavefronts {each}",
        lambda counts: counts.per_element(counts.wavefronts),
        "Passes over the banks of shared memory; conflicts take more of them",
    ),
    Quantity(
        "bank conflicts",
        "conflicts {each}",
        lambda counts: counts.per_element(counts.conflicts),
        "Passes over the banks of shared memory beyond the least",
    ),
    Quantity(
        "operations",
        "operations {each}",
        lambda counts: counts.per_element(counts.operations),
        "Operations on data by all lanes; what leads to indices only is left out",
    ),
    Quantity(
        "statements",
        "warp statements {each}",
        lambda counts: counts.per_element(counts.warp_statements),
        "Statements that warps execute, with few lanes or with many",
    ),
    Quantity(
        "active lanes",
        "lanes of 32",
        lambda counts: counts.lanes,
        "Lanes that are active when a warp executes a statement, on average",
        more_is_better=True,
    ),
    Quantity(
        "divergence",
        "% of branches",
        lambda counts: 100 * counts.divergent_branches / counts.branches if counts.branches else 0.0,
        "Conditions at which lanes of a warp part, of all that warps test, in percent",
    ),
    Quantity(
        "barriers",
        "barriers {each}",
        lambda counts: counts.per_element(counts.barriers),
        "Barriers, each once for every block that passes it",
    ),
    Quantity(
        "atomics",
        "atomics {each}",
        lambda counts: counts.per_element(counts.atomics),
        "Atomic accesses of warps to global and shared memory",
    ),
)


@dataclass(frozen=True)
class CountedFigure:
    """A figure as it is read: its name, the figure, its unit, and what it means."""

    name: str
    figure: str
    unit: str
    meaning: str

    @property
    def text(self) -> str:
        """Return the figure with its unit."""
        return f"{self.figure} {self.unit}".rstrip()


def figures_of(counts: RunCounts) -> tuple[CountedFigure, ...]:
    """Return what there is to say of a variant beside the bytes that it moves; what it does not do is left out."""
    meaning = {quantity.name: quantity.meaning for quantity in QUANTITIES}

    def per(amount: int) -> tuple[str, str]:
        return short(counts.per_element(amount)), counts.each

    figures = [("sectors", *per(counts.sectors), meaning["bytes moved"])]
    if counts.shared_requests:
        figures += [
            ("wavefronts", *per(counts.wavefronts), meaning["wavefronts"]),
            ("conflicts", short(counts.conflicts), "", meaning["bank conflicts"]),
        ]
    figures += [
        ("lanes", f"{counts.lanes:.1f} of {WARP}", "", meaning["active lanes"]),
        ("divergent", *_share(counts), "Conditions at which lanes of a warp part, of all that warps test"),
        ("operations", *per(counts.operations), meaning["operations"]),
    ]
    if counts.barriers:
        figures.append(("barriers", short(counts.barriers), "", meaning["barriers"]))
    if counts.atomics:
        hottest = f"by warps, {short(counts.hottest_atomics)} at one address"
        figures.append(
            ("atomics", short(counts.atomics), hottest, f"{meaning['atomics']}; and the most on a single address")
        )
    return tuple(CountedFigure(*each) for each in figures)


def _share(counts: RunCounts) -> tuple[str, str]:
    if not counts.divergent_branches:
        return "0 %", "of branches"
    share = 100 * counts.divergent_branches / counts.branches
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %", "of branches"


def short(value: float) -> str:
    """Return a figure with three significant digits, thousands apart."""
    if value >= 1000 or value == int(value):
        return f"{value:,.0f}".replace(",", "\u2009")
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}"
