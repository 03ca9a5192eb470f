"""Counted costs of a variant's memory accesses and lanes; unlike times, they are the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

SECTOR_BYTES = 32
WARP = 32


@dataclass(frozen=True)
class RunCounts:
    """Totals over the launches of a run.

    Parameters
    ----------
    input : str
        Description of the input, such as "n = 1024"; figures per element of a small input represent the whole.
    elements : int
        Elements of that input.
    unit : str
        Kind of element: "element", "pixel", "character" or "body".
    least_bytes : int
        Minimum traffic: global memory that any variant must read and write.
    requests, sectors : int
        Accesses of warps to global memory, and the 32-byte sectors that they need, without caches.
    shared_requests, wavefronts, conflicts : int
        Accesses of warps to shared memory, their wavefronts, and the additional wavefronts due to bank conflicts.
    warp_statements, lane_statements : int
        Executed statements, counted once per warp, and once per active lane.
    branches, divergent_branches : int
        Branches that warps executed, and those that diverged.
    operations : int
        Operations on data by all lanes.
    barriers : int
        Counted once per block.
    atomics, hottest_atomics : int
        Atomic accesses of warps, and the most on one address in a single launch or block.
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
        """Bytes of all sectors."""
        return SECTOR_BYTES * self.sectors

    @property
    def lanes(self) -> float:
        """Average number of active lanes per statement, out of 32."""
        return self.lane_statements / self.warp_statements if self.warp_statements else 0.0

    @property
    def per_element_unit(self) -> str:
        """The unit of figures per element, such as "per element"."""
        return f"per {self.unit}"

    def per_element(self, amount: float) -> float:
        """Divide an amount by the number of elements."""
        return amount / self.elements if self.elements else 0.0

    def data(self) -> dict[str, Any]:
        """Return all counts as JSON types."""
        return {
            **asdict(self),
            "moved_bytes": self.moved_bytes,
            "moved_bytes_per_element": self.per_element(self.moved_bytes),
            "least_bytes_per_element": self.per_element(self.least_bytes),
            "lanes_per_warp_statement": self.lanes,
        }


@dataclass(frozen=True)
class Quantity:
    """Counted quantity by which variants can be compared.

    Parameters
    ----------
    unit : str
        Label of an axis; `{each}` is replaced by `RunCounts.per_element_unit`.
    value : callable
        Function of RunCounts that returns the figure.
    higher_is_better : bool
        Whether larger figures are better.
    """

    name: str
    unit: str
    value: Callable[[RunCounts], float]
    meaning: str
    higher_is_better: bool = False


QUANTITIES = (
    Quantity(
        "bytes moved",
        "bytes {each}",
        lambda counts: counts.per_element(counts.moved_bytes),
        "32-byte sectors of global memory that loads, stores and atomic operations need, in bytes, without caches",
    ),
    Quantity(
        "wavefronts",
        "wavefronts {each}",
        lambda counts: counts.per_element(counts.wavefronts),
        "Passes over the banks of shared memory; bank conflicts need more of them",
    ),
    Quantity(
        "bank conflicts",
        "conflicts {each}",
        lambda counts: counts.per_element(counts.conflicts),
        "Passes over the banks of shared memory beyond the minimum",
    ),
    Quantity(
        "operations",
        "operations {each}",
        lambda counts: counts.per_element(counts.operations),
        "Operations on data by all lanes, without index arithmetic",
    ),
    Quantity(
        "statements",
        "warp statements {each}",
        lambda counts: counts.per_element(counts.warp_statements),
        "Statements that warps execute, with any number of active lanes",
    ),
    Quantity(
        "active lanes",
        "lanes of 32",
        lambda counts: counts.lanes,
        "Average number of active lanes when a warp executes a statement",
        higher_is_better=True,
    ),
    Quantity(
        "divergence",
        "% of branches",
        lambda counts: 100 * counts.divergent_branches / counts.branches if counts.branches else 0.0,
        "Branches at which the lanes of a warp diverge, in percent of all branches",
    ),
    Quantity(
        "barriers",
        "barriers {each}",
        lambda counts: counts.per_element(counts.barriers),
        "Barriers, counted once per block",
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
    """Formatted figure: its name, value, unit and meaning."""

    name: str
    figure: str
    unit: str
    meaning: str

    @property
    def text(self) -> str:
        """The figure with its unit."""
        return f"{self.figure} {self.unit}".rstrip()


def list_figures(counts: RunCounts) -> tuple[CountedFigure, ...]:
    """Return a variant's figures except the bytes that it moves; figures that do not apply are omitted."""
    meaning = {quantity.name: quantity.meaning for quantity in QUANTITIES}

    def per_element(amount: int) -> tuple[str, str]:
        return format_figure(counts.per_element(amount)), counts.per_element_unit

    figures = [("sectors", *per_element(counts.sectors), meaning["bytes moved"])]
    if counts.shared_requests:
        figures += [
            ("wavefronts", *per_element(counts.wavefronts), meaning["wavefronts"]),
            ("conflicts", format_figure(counts.conflicts), "", meaning["bank conflicts"]),
        ]
    figures += [
        ("lanes", f"{counts.lanes:.1f} of {WARP}", "", meaning["active lanes"]),
        ("divergent", *_format_divergence(counts), "Branches at which the lanes of a warp diverge"),
        ("operations", *per_element(counts.operations), meaning["operations"]),
    ]
    if counts.barriers:
        figures.append(("barriers", format_figure(counts.barriers), "", meaning["barriers"]))
    if counts.atomics:
        hottest = f"by warps, {format_figure(counts.hottest_atomics)} on one address"
        figures.append(
            ("atomics", format_figure(counts.atomics), hottest, f"{meaning['atomics']}, and the most on one address")
        )
    return tuple(CountedFigure(*figure) for figure in figures)


def _format_divergence(counts: RunCounts) -> tuple[str, str]:
    if not counts.divergent_branches:
        return "0%", "of branches"
    share = 100 * counts.divergent_branches / counts.branches
    return f"{share:.0f}%" if share >= 10 else f"{share:.2g}%", "of branches"


def format_figure(value: float) -> str:
    """Format a figure with three significant digits and thousands separated."""
    if value >= 1000 or value == int(value):
        return f"{value:,.0f}".replace(",", "\u202f")
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}"
