"""Directed preemption: one part is stopped at a chosen access until the others wait, or until a fault is possible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from gpu.base.warp import WARP
from gpu.simulator.executor.scheduling.access_history import AccessHistory
from gpu.simulator.executor.scheduling.preemption import PreemptingChooser
from gpu.simulator.executor.state.running_batch import StrongAccess

# The probabilities that the other parts are stopped before a write to a location with several writers, before a read of
# one, and before another strong access; and that the stopped part continues when another one is about to write the same
# location. Without stops the others run by their priorities, until they wait or end. For a compare-and-swap, the first
# choice brings its value back, and the second one lets it meet a write; the seed selects among the others.
_CHOICES = (
    (0.5, 0.0, 0.0, 0.0),
    (0.5, 0.15, 0.15, 0.4),
    (0.0, 0.0, 0.0, 0.0),
    (0.8, 0.0, 0.0, 0.0),
    (0.8, 0.0, 0.0, 0.4),
)

# The probabilities that a compare-and-swap is stopped, and that it continues when its location has the expected value
# again, and nothing shows that it should not.
_STOP_PROBABILITY, _RETURN_PROBABILITY = 0.4, 0.2

# The strong accesses of the other parts after which a compare-and-swap continues in any case.
_MAX_ACCESSES = 60

# How often parts that wait test again what they wait for, without a write of any, before the stopped part continues.
_MAX_RECALLS = 2

_Read = tuple[bytes, Callable[[], bytes]]
"""The bytes that a part has read, and a function that reads them again."""


class DirectedChooser(PreemptingChooser):
    """Stops one part before a chosen write to a location with several writers, and runs the others meanwhile.

    The seed chooses one of these writes in the source and one of its executions, so that each trial stops another one,
    as in active testing. The part continues when all others wait or have ended, or at random when another part is about
    to write the same location.

    A compare-and-swap is stopped if it would succeed, several times in a run. It continues when its location has
    changed and has the expected value again, while another value that the part has read since is out of date, as in the
    ABA problem. Then the part runs on alone, until its turn ends.

    Parameters
    ----------
    seed : int
        Also selects how often the other parts are stopped.
    history : AccessHistory
        What earlier runs showed; their writes are those among which the seed chooses.
    """

    def __init__(self, seed: int, history: AccessHistory, *, lanes_per_part: int = WARP) -> None:
        super().__init__(seed, history, lanes_per_part=lanes_per_part)
        self._target = history.choose_write(seed, self._generator)
        is_swap = self._target is not None and self._target[0] in history.swaps
        *self._probabilities, self._meeting_probability = (
            _CHOICES[seed % 2] if is_swap else self._generator.choice(_CHOICES)
        )
        self._bound = None if any(self._probabilities) else 0
        self._executions = 0
        self._can_continue: Callable[[], bool] = lambda: False
        self._alone: int | None = None
        # The location before whose access the part is stopped.
        self._location: Hashable = None
        # How often parts that wait were recalled since one of them wrote.
        self._recalls = 0
        # The strong reads of each part since its last compare-and-swap.
        self._reads: defaultdict[int, dict[Hashable, _Read]] = defaultdict(dict)

    def keeps_running(self) -> bool:
        if super().keeps_running():
            return True
        self._alone = None
        return False

    def choose_part(self, parts: Sequence[int]) -> int:
        if self._alone in parts:
            return parts.index(self._alone)
        if self.stopped in parts:
            others = [index for index, part in enumerate(parts) if part != self.stopped]
            if others and not self._can_continue():
                return others[super().choose_part([parts[index] for index in others])]
            chosen = parts.index(self.stopped)
            self.stopped = None
            return chosen
        return super().choose_part(parts)

    def recalls_waiters(self, parts: Sequence[int]) -> bool:
        if self._recalls == _MAX_RECALLS or self._can_continue() or any(part != self.stopped for part in parts):
            return False
        self._recalls += 1
        return True

    def preempts(self, access: StrongAccess) -> bool:
        if access.part == self._alone:
            return False
        if access.writes:
            self._recalls = 0
        reads = self._take_reads(access)
        if self.stopped is not None and (self._meets(access) or self._can_continue()):
            self.history.note(access)
            return True
        if self.stopped is None and self._is_chosen(access, reads):
            self.history.note(access)
            self.stopped, self._location, self._recalls = access.part, access.location, 0
            return True
        return super().preempts(access)

    def _meets(self, access: StrongAccess) -> bool:
        """Return whether the stopped part continues as another one is about to write the same location."""
        if (
            not access.writes
            or access.location != self._location
            or self._generator.random() >= self._meeting_probability
        ):
            return False
        self._can_continue = lambda: True
        return True

    def _take_reads(self, access: StrongAccess) -> Sequence[_Read]:
        """Note a read; return what a part has read elsewhere before a compare-and-swap, since the one before."""
        if access.expected is None:
            if not access.writes:
                self._reads[access.part][access.location] = access.read_bytes(), access.read_bytes
            return ()
        reads = [read for location, read in self._reads.pop(access.part, {}).items() if location != access.location]
        if reads:
            self.history.swaps.add(access.site)
        return reads

    def _is_chosen(self, access: StrongAccess, reads: Sequence[_Read]) -> bool:
        """Return whether a part is to be stopped before an access, and determine when it may continue."""
        if self._target is None or access.site is not self._target[0]:
            return False
        self._can_continue = lambda: False
        if reads:
            if access.read_bytes() != access.expected or self._generator.random() >= _STOP_PROBABILITY:
                return False
            self._can_continue = self._expect_return(access, reads)
            return True
        self._executions += 1
        return self._executions == self._target[1] + 1

    def _expect_return(self, access: StrongAccess, reads: Sequence[_Read]) -> Callable[[], bool]:
        """Return a function that tells whether a stopped compare-and-swap is to continue."""
        has_changed, accesses = False, 0

        def can_continue() -> bool:
            nonlocal has_changed, accesses
            accesses += 1
            if access.read_bytes() != access.expected:
                has_changed = True
            elif has_changed:
                if any(value != read_bytes() for value, read_bytes in reads):
                    self._alone = access.part
                    return True
                has_changed = False
                return self._generator.random() < _RETURN_PROBABILITY
            return accesses > _MAX_ACCESSES

        return can_continue
