"""Choosers: they select the part, a warp or a lane, that runs next."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from gpu.simulator.executor.scheduling.long_waits import LongWaits
from gpu.simulator.executor.state.memory import AccessSite

# The probabilities that a lane continues with its next statement without a switch: a seed selects one.
_STAY_PROBABILITIES = (0.0, 0.5, 0.9)


class StrongAccess(NamedTuple):
    """A strong access that a part is about to perform.

    `location` identifies the bytes of its first lane, and `is_tested` says that the value read decides a branch.
    `read_bytes` returns these bytes; `expected` are those that a compare-and-swap replaces, None for other accesses.
    """

    part: int
    site: AccessSite
    location: Hashable
    writes: bool
    is_tested: bool
    read_bytes: Callable[[], bytes]
    expected: bytes | None


class _Location:
    """The parts that wrote a location, the sites that accessed it, and whether one of them tests its value."""

    def __init__(self) -> None:
        self.writers: set[int] = set()
        self.sites: set[AccessSite] = set()
        self.is_tested = False


class AccessHistory:
    """What runs of a kernel show of the strong accesses by which its parts compete.

    Attributes
    ----------
    sites : set of AccessSite
        The accesses in the source to locations that several parts of a run have written.
    has_decisions : bool
        Whether one of several accesses in the source to such a location tests its value.
    swaps : set of AccessSite
        The compare-and-swaps in the source before which a part reads other locations too.
    """

    def __init__(self) -> None:
        self.sites: set[AccessSite] = set()
        self.has_decisions = False
        self.swaps: set[AccessSite] = set()
        # The most executions of each write in a run so far, and those in the current one.
        self._most_writes: Counter[AccessSite] = Counter()
        self._writes: Counter[AccessSite] = Counter()
        self._locations: defaultdict[Hashable, _Location] = defaultdict(_Location)

    def copy(self) -> AccessHistory:
        """Return what the runs show so far, to be extended by another run than this history."""
        history = AccessHistory()
        history.sites, history.has_decisions = set(self.sites), self.has_decisions
        history.swaps = set(self.swaps)
        history._most_writes = self._most_writes | self._writes
        return history

    def begin_run(self) -> None:
        """Forget which parts wrote which locations."""
        self._most_writes |= self._writes
        self._writes.clear()
        self._locations.clear()

    def note(self, access: StrongAccess) -> None:
        """Note an access of the current run."""
        location = self._locations[access.location]
        location.sites.add(access.site)
        location.is_tested |= access.is_tested
        if access.writes:
            location.writers.add(access.part)
            self._writes[access.site] += 1
        if len(location.writers) > 1:
            self.sites |= location.sites
            self.has_decisions |= location.is_tested and len(location.sites) > 1

    def choose_write(self, number: int, generator: random.Random) -> tuple[AccessSite, int] | None:
        """Return a write in the source to a location with several writers, and which of its executions in a run.

        Parameters
        ----------
        number : int
            Selects the write: two of three times one of `swaps`, else one of all, in rotation.
        generator : random.Random
            Selects the execution, from 0.

        Returns
        -------
        (AccessSite, int) or None
            None if no such write is known.
        """
        writes = self._most_writes.keys() & self.sites
        known = sorted(
            self.swaps if self.swaps and number % 3 else writes,
            key=lambda site: (site.position.line_key, site.position.column),
        )
        if not known:
            return None
        site = known[number // 3 % len(known)]
        return site, generator.randrange(self._most_writes[site])


class Chooser:
    """Selects the part that runs next.

    Attributes
    ----------
    long_waits : LongWaits or None
        Prolongs the waits of parts in loops; None if a wait ends as soon as the memory changes that it waits for.
    history : AccessHistory or None
        Notes the strong accesses; None if nothing depends on them.
    stopped : int or None
        A part that continues only after the others; None if there is none.
    """

    long_waits: LongWaits | None = None
    history: AccessHistory | None = None
    stopped: int | None = None

    def keeps_running(self) -> bool:
        """Return whether the running part continues without a call of `choose`."""
        return False

    def choose(self, count: int) -> int:
        """Return the index of the next part out of `count`, which are ordered by the time they became ready."""
        raise NotImplementedError

    def choose_part(self, parts: Sequence[int]) -> int:
        """Return the index of the next part; `parts` are the numbers of those that are ready, in the same order."""
        return self.choose(len(parts))

    def recalls_waiters(self, parts: Sequence[int]) -> bool:
        """Return whether parts that wait in loops are to run again, as only `parts` are ready, among them `stopped`."""
        return False

    def preempts(self, access: StrongAccess) -> bool:
        """Note a strong access; return whether other parts run before the running one performs it."""
        if self.history is not None:
            self.history.note(access)
        return False


class RoundRobinChooser(Chooser):
    """Selects parts in rotation."""

    def __init__(self) -> None:
        self._last = 0

    def choose(self, count: int) -> int:
        self._last = (self._last + 1) % count
        return self._last


class ShuffledChooser(Chooser):
    """Selects parts at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def choose(self, count: int) -> int:
        return int(self._generator.random() * count)


class DriftingChooser(ShuffledChooser):
    """Selects parts at random, and lets lanes run ahead of each other by a distance that depends on the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._stay_probability = self._generator.choice(_STAY_PROBABILITIES)

    def keeps_running(self) -> bool:
        return self._generator.random() < self._stay_probability


class LateChooser(ShuffledChooser):
    """Selects parts at random, and lets each wait in a loop last longer than any number of iterations."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.long_waits: LongWaits = LongWaits()
        self._seed = seed

    def __str__(self) -> str:
        """The schedule of the same parts without long waits."""
        return f"shuffle:{self._seed}"

    def keeps_running(self) -> bool:
        return self.long_waits.keeps_running()
