"""Late announcements: a part announces what it has read only after another part has tested the announcement.

A reader loads a pointer, announces it, and follows it. A remover replaces the pointer, tests the announcements, and
reuses what the pointer led to. Hazard pointers and reference counts work so, and Dekker's algorithm is similar. It goes
wrong if the reader does not load the pointer again after its announcement, and then only if the reader is stopped
before it, the remover after its test, and often the reader once more before its compare-and-swap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from enum import Enum, auto

from gpu.base.warp import WARP
from gpu.simulator.executor.scheduling.access_history import AccessHistory
from gpu.simulator.executor.scheduling.preemption import PreemptingChooser
from gpu.simulator.executor.state.running_batch import StrongAccess

# The probabilities that a reader is stopped before an announcement, that it continues after a test of the announcement,
# and that the remover stays stopped until the location of the reader's compare-and-swap changes once more.
_STOP_PROBABILITY, _TEST_PROBABILITIES, _HOLD_PROBABILITY = 0.4, (0.3, 0.9), 0.6

# The strong accesses in a state before the stopped parts continue in any case.
_MAX_ACCESSES = 100

# How often parts that wait test again what they wait for, without a write of any.
_MAX_RECALLS = 20

_Reads = dict[Hashable, tuple[bytes, Callable[[], bytes]]]
"""By location, the bytes that a part has read, and a function that reads them again."""


class _State(Enum):
    """What the stopped parts wait for."""

    NOTHING = auto()
    """No part is stopped."""
    REMOVAL = auto()
    """The reader is stopped until another part has changed what it has read, and has tested the announcement."""
    USE = auto()
    """The remover is stopped until the reader waits or ends, withdraws its announcement, or fails to swap."""
    WITHDRAWAL = auto()
    """The reader is stopped before it withdraws its announcement, until all others wait or have ended."""
    RETURN = auto()
    """The reader is stopped until its compare-and-swap succeeds, although what it has read is out of date."""


class AnnouncementChooser(PreemptingChooser):
    """Stops a part before an announcement of what it has read, and runs others until they have tested it.

    Parameters
    ----------
    seed : int
        Selects the announcement in the source, and how often parts are stopped elsewhere.
    history : AccessHistory
        What earlier runs showed; at least one announcement.
    """

    def __init__(self, seed: int, history: AccessHistory, *, lanes_per_part: int = WARP) -> None:
        super().__init__(seed, history, lanes_per_part=lanes_per_part)
        self._target = history.choose_announcement(seed)
        self._test_probability = self._generator.choice(_TEST_PROBABILITIES)
        # The reads of each part since its last write, and since its last compare-and-swap.
        self._latest_reads: defaultdict[int, _Reads] = defaultdict(dict)
        self._reads: defaultdict[int, _Reads] = defaultdict(dict)
        self._enter(_State.NOTHING)

    def _enter(self, state: _State, *, stopped: int | None = None, first: int | None = None) -> None:
        """Enter a state in which a part is stopped, and another one runs before all others."""
        self._state, self.stopped, self._first = state, stopped, first
        self._held: int | None = None
        self._accesses = self._recalls = 0

    def keeps_running(self) -> bool:
        if super().keeps_running():
            return True
        self._first = None
        return False

    def choose_part(self, parts: Sequence[int]) -> int:
        if self._first in parts:
            self._turn = 0
            return parts.index(self._first)
        if self.stopped is None:
            return super().choose_part(parts)
        for stopped in ((self.stopped, self._held), (self.stopped,)):
            others = [part for part in parts if part not in stopped]
            if others:
                return parts.index(others[super().choose_part(others)])
        self._enter(_State.NOTHING)
        return super().choose_part(parts)

    def recalls_waiters(self, parts: Sequence[int]) -> bool:
        is_ready = self._first in parts or (self._first is None and set(parts) - {self.stopped, self._held})
        if is_ready or self._recalls == _MAX_RECALLS:
            return False
        self._recalls += 1
        return True

    def preempts(self, access: StrongAccess) -> bool:
        self._accesses += 1
        if access.writes:
            self._recalls = 0
        if self._state != _State.NOTHING and self._accesses > _MAX_ACCESSES:
            self._enter(_State.NOTHING)
        changes_state = self._changes_state(access)
        self._note_read(access)
        is_random = self._state in (_State.NOTHING, _State.REMOVAL) and self._first is None
        if is_random and not changes_state:
            return super().preempts(access)
        self.history.note(access)
        return changes_state

    def _changes_state(self, access: StrongAccess) -> bool:
        """Return whether other parts run before an access, as a part is stopped or continues."""
        match self._state:
            case _State.NOTHING:
                return self._stop_reader(access)
            case _State.REMOVAL:
                return self._follow_remover(access)
            case _State.USE if access.part == self._reader and access.writes:
                return self._stop_use(access)
            case _State.RETURN:
                return self._await_return(access)
        return False

    def _stop_reader(self, access: StrongAccess) -> bool:
        reads = self._latest_reads[access.part]
        if access.site is not self._target or not reads or self._generator.random() >= _STOP_PROBABILITY:
            return False
        self._enter(_State.REMOVAL, stopped=access.part)
        self._reader, self._location, self._announced = access.part, access.location, dict(reads)
        self._writer: int | None = None
        self._has_tested = False
        return True

    def _follow_remover(self, access: StrongAccess) -> bool:
        if self._first is None and self._writer is not None and _are_outdated(self._announced):
            self._first, self._writer = self._writer, None
            if access.part != self._first:
                return True
        if access.part == self._first and access.location == self._location:
            self._has_tested = access.is_tested and _are_outdated(self._announced)
            if not self._has_tested:
                self._first = None
        elif access.part == self._first and self._has_tested:  # it does not test the announcement again
            self._has_tested = False
            if self._generator.random() < self._test_probability:
                self._remover = access.part
                self._enter(_State.USE, stopped=access.part, first=self._reader)
                return True
        if access.writes and access.location in self._announced:
            self._writer = access.part
        return False

    def _stop_use(self, access: StrongAccess) -> bool:
        if access.location == self._location:
            self._enter(_State.WITHDRAWAL, stopped=self._reader, first=self._remover)
            return True
        if access.expected is None or access.read_bytes() == access.expected:
            return False
        self._enter(_State.RETURN, stopped=self._reader, first=self._remover)
        self._swap, self._found = access, access.read_bytes()
        if self._generator.random() < _HOLD_PROBABILITY:
            self._held, self._first = self._remover, None
        self._used = {
            location: read for location, read in self._reads[access.part].items() if location != access.location
        }
        return True

    def _await_return(self, access: StrongAccess) -> bool:
        value = self._swap.read_bytes()
        if value == self._swap.expected and _are_outdated(self._used):
            self._enter(_State.NOTHING, first=self._reader)
            return True
        if self._held is None or value == self._found:
            return False
        self._held, self._first = None, self._remover
        return access.part != self._first

    def _note_read(self, access: StrongAccess) -> None:
        """Note what a part reads, until its next write and its next compare-and-swap."""
        if access.writes:
            self._latest_reads.pop(access.part, None)
        if access.expected is not None:
            self._reads.pop(access.part, None)
        if not access.writes and access.expected is None:
            read = access.read_bytes(), access.read_bytes
            self._reads[access.part][access.location] = self._latest_reads[access.part][access.location] = read


def _are_outdated(reads: _Reads) -> bool:
    """Return whether any bytes have changed since a part read them."""
    return any(value != read_bytes() for value, read_bytes in reads.values())
