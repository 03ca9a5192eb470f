"""The orders in which a simulated launch may run: what they are called, and what each of them lets happen."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.errors import InputError
from gpu.warp import WARP

ROUND_ROBIN = "round-robin"
_MOST_DIGITS = 18


@dataclass(frozen=True)
class ScheduleKind:
    """A kind of schedule.

    Parameters
    ----------
    name : str
        What comes before the colon.
    title : str
        What the window calls it.
    summary : str
        What it lets happen, in a line.
    seeded : bool
        Whether a seed chooses one of many.
    together : int or None
        How many lanes go together, whose turn comes at any time; None where all do.
    """

    name: str
    title: str
    summary: str
    seeded: bool = True
    together: int | None = None


KINDS: dict[str, ScheduleKind] = {
    kind.name: kind
    for kind in (
        ScheduleKind(ROUND_ROBIN, "In lockstep", "all warps in lockstep", seeded=False),
        ScheduleKind(
            "shuffle", "Shuffled warps", "each warp on its own, in an order that the seed decides", together=WARP
        ),
        ScheduleKind(
            "lanes",
            "Lanes apart",
            "each lane on its own, as hardware since Volta may have it; lanes meet where the kernel says so",
            together=1,
        ),
        ScheduleKind(
            "cached",
            "Kept in registers",
            "in lockstep, but what is neither volatile nor ordered may stay in registers, as a compiler may have it",
        ),
    )
}
"""All kinds, by name."""

NAMES = tuple(f"{kind.name}:SEED" if kind.seeded else kind.name for kind in KINDS.values())
"""How each kind is written."""

HELP = (
    "; ".join(f"{name}: {kind.summary}" for name, kind in zip(NAMES, KINDS.values(), strict=True)) + f" ({ROUND_ROBIN})"
)
"""What all of them let happen, in a line each."""


@dataclass(frozen=True)
class Schedule:
    """A schedule: one of a kind, chosen by its seed (0 where the kind has none)."""

    kind: ScheduleKind
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.kind.name}:{self.seed}" if self.kind.seeded else self.kind.name

    @property
    def title(self) -> str:
        """What the window calls it."""
        return f"{self.kind.title}, seed {self.seed}" if self.kind.seeded else self.kind.title

    @classmethod
    def of(cls, text: str) -> Schedule:
        """Return the schedule that a text names.

        Raises
        ------
        InputError
            It names none.
        """
        name, colon, seed = text.partition(":")
        kind = KINDS.get(name)
        if kind is not None and not kind.seeded and not colon:
            return cls(kind)
        if kind is not None and kind.seeded and seed.isascii() and seed.isdigit() and len(seed) <= _MOST_DIGITS:
            return cls(kind, int(seed))
        known = ", ".join(NAMES[:-1]) + f" or {NAMES[-1]}"
        raise InputError(f"{text[:40]!r} is no schedule: it is {known}, where SEED is a whole number from 0.")
