"""One row of a benchmark: what ran, how long it took, and its rate."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """Measured times of a variant or a peer.

    Parameters
    ----------
    work : str
        The task, the same for a variant and its peers.
    name : str
        Title of the variant, or name of the peer.
    is_variant : bool
        Whether it is a variant.
    times_ms : tuple of float
        One for each repetition; empty if it could not be measured.
    amount : float
        Work of one repetition, in `unit` times seconds.
    unit : str
        Unit of the rate, such as "GB/s".
    remark : str
        Applies to this row only: "verified", or why there is no figure.
    """

    work: str
    name: str
    is_variant: bool
    times_ms: tuple[float, ...]
    amount: float
    unit: str
    remark: str = ""

    @property
    def median_ms(self) -> float | None:
        return statistics.median(self.times_ms) if self.times_ms else None

    @property
    def rate(self) -> float | None:
        median = self.median_ms
        return self.amount / median * 1e3 if median else None

    @property
    def time_range(self) -> str:
        """The fastest and the slowest repetition, in ms."""
        return f"{min(self.times_ms):.3g} to {max(self.times_ms):.3g}" if self.times_ms else ""


def format_table(rows: Sequence[Measurement]) -> str:
    """Return a Markdown table, grouped by work, with each rate as a multiple of the group's best peer's."""
    lines = [
        "| work | variant or peer | median ms | min to max | rate | of the best peer | |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for work in dict.fromkeys(row.work for row in rows):
        group = [row for row in rows if row.work == work]
        peers = [row.rate for row in group if not row.is_variant and row.rate is not None]
        for row in group:
            if row.rate is None:
                lines.append(f"| {work} | {row.name} | | | | | {row.remark} |")
                continue
            share = f"{row.rate / max(peers):.2f} x" if peers else ""
            name = f"**{row.name}**" if row.is_variant else row.name
            figures = f"{row.median_ms:.3f} | {row.time_range} | {_format_rate(row.rate)} {row.unit} | {share}"
            lines.append(f"| {work} | {name} | {figures} | {row.remark} |")
    return "\n".join(lines)


def _format_rate(rate: float) -> str:
    return f"{rate:.4g}" if rate < 1000 else f"{float(f'{rate:.4g}'):,.0f}"
