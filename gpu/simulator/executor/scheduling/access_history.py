"""The history of strong accesses: where the parts of a kernel compete, and what they announce to each other."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable

from gpu.simulator.executor.state.memory import AccessSite
from gpu.simulator.executor.state.running_batch import StrongAccess


class _Location:
    """The parts that wrote a location, the sites that accessed it, and whether one of them tests its value.

    `announced` has the locations that a part has read before its write, by part and site.
    """

    def __init__(self) -> None:
        self.announced: defaultdict[tuple[int, AccessSite], set[Hashable]] = defaultdict(set)
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
    announcements : set of AccessSite
        The writes in the source, without compare-and-swaps, that follow reads of their part, and whose values are
        tested by a part that has written what was read.
    """

    def __init__(self) -> None:
        self.sites: set[AccessSite] = set()
        self.has_decisions = False
        self.swaps: set[AccessSite] = set()
        self.announcements: set[AccessSite] = set()
        # The most executions of each write in a run so far, and those in the current one.
        self._most_writes: Counter[AccessSite] = Counter()
        self._writes: Counter[AccessSite] = Counter()
        self._locations: defaultdict[Hashable, _Location] = defaultdict(_Location)
        # The locations that a part has read since its last write.
        self._read: defaultdict[int, set[Hashable]] = defaultdict(set)

    def copy(self) -> AccessHistory:
        """Return what the runs show so far, to be extended by another run than this history."""
        history = AccessHistory()
        history.sites, history.has_decisions = set(self.sites), self.has_decisions
        history.swaps, history.announcements = set(self.swaps), set(self.announcements)
        history._most_writes = self._most_writes | self._writes
        return history

    def begin_run(self) -> None:
        """Forget which parts wrote which locations."""
        self._most_writes |= self._writes
        self._writes.clear()
        self._locations.clear()
        self._read.clear()

    def note(self, access: StrongAccess) -> None:
        """Note an access of the current run."""
        self._note_announcements(access)
        location = self._locations[access.location]
        location.sites.add(access.site)
        location.is_tested |= access.is_tested
        if access.writes:
            location.writers.add(access.part)
            self._writes[access.site] += 1
        if len(location.writers) > 1:
            self.sites |= location.sites
            self.has_decisions |= location.is_tested and len(location.sites) > 1

    def _note_announcements(self, access: StrongAccess) -> None:
        location = self._locations[access.location]
        if access.is_tested:
            for (part, site), read in location.announced.items():
                if part != access.part and any(
                    access.part in self._locations[each].writers for each in read if each != access.location
                ):
                    self.announcements.add(site)
        if access.writes:
            read = self._read.pop(access.part, set())
            if read and access.expected is None:  # a compare-and-swap tests itself
                location.announced[access.part, access.site] |= read
        else:
            self._read[access.part].add(access.location)

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
        known = _sort_sites(self.swaps if self.swaps and number % 3 else writes)
        if not known:
            return None
        site = known[number // 3 % len(known)]
        return site, generator.randrange(self._most_writes[site])

    def choose_announcement(self, number: int) -> AccessSite | None:
        """Return one of `announcements`, in rotation by a number; None if there is none."""
        known = _sort_sites(self.announcements)
        return known[number % len(known)] if known else None


def _sort_sites(sites: Iterable[AccessSite]) -> list[AccessSite]:
    return sorted(sites, key=lambda site: (site.position.line_key, site.position.column))
