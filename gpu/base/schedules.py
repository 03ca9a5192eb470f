"""Schedules: the orders in which the simulator can run the warps and lanes of a launch."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.base.errors import InputError
from gpu.base.warp import WARP

ROUND_ROBIN = "round-robin"
_MAX_DIGITS = 18


@dataclass(frozen=True)
class ScheduleKind:
    """A kind of schedule.

    Parameters
    ----------
    name : str
        Its name on the command line, before the colon.
    title : str
        Its name in the window.
    summary : str
        One-line description.
    seeded : bool
        Whether a seed selects one of many schedules of this kind.
    group_size : int or None
        Number of lanes that advance together, independently of all others; None if all lanes do.
    """

    name: str
    title: str
    summary: str
    seeded: bool = True
    group_size: int | None = None


KINDS: dict[str, ScheduleKind] = {
    kind.name: kind
    for kind in (
        ScheduleKind(ROUND_ROBIN, "In lockstep", "all warps in lockstep", seeded=False),
        ScheduleKind(
            "shuffle",
            "Shuffled warps",
            "warps advance independently, in an order that the seed decides",
            group_size=WARP,
        ),
        ScheduleKind(
            "lanes",
            "Independent lanes",
            "lanes advance independently, as on Volta and later; they wait for each other only at barriers",
            group_size=1,
        ),
        ScheduleKind(
            "preempt",
            "Stopped at atomics",
            "warps run until the seed stops them before atomic or volatile accesses, so that others run in between",
            group_size=WARP,
        ),
        ScheduleKind(
            "cached",
            "Cached in registers",
            "in lockstep, but values that are neither volatile nor ordered may stay in registers, as compilers allow",
        ),
    )
}
"""All kinds, by name."""

NAMES = tuple(f"{kind.name}:SEED" if kind.seeded else kind.name for kind in KINDS.values())
"""The syntax of each kind."""

HELP = (
    "; ".join(f"{name}: {kind.summary}" for name, kind in zip(NAMES, KINDS.values(), strict=True)) + f" ({ROUND_ROBIN})"
)
"""Command-line help for all kinds."""


@dataclass(frozen=True)
class Schedule:
    """A schedule of a kind, selected by its seed (0 if the kind has none)."""

    kind: ScheduleKind
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.kind.name}:{self.seed}" if self.kind.seeded else self.kind.name

    @property
    def title(self) -> str:
        """Its name in the window."""
        return f"{self.kind.title}, seed {self.seed}" if self.kind.seeded else self.kind.title

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Parse a schedule.

        Raises
        ------
        InputError
            The text is not a schedule.
        """
        name, colon, seed = text.partition(":")
        kind = KINDS.get(name)
        if kind is not None and not kind.seeded and not colon:
            return cls(kind)
        if kind is not None and kind.seeded and seed.isascii() and seed.isdigit() and len(seed) <= _MAX_DIGITS:
            return cls(kind, int(seed))
        names = ", ".join(NAMES[:-1]) + f" or {NAMES[-1]}"
        raise InputError(f"{text[:40]!r} is not a schedule: use {names}, where SEED is a whole number from 0.")
