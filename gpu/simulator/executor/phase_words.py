"""The word of 64 bits that a barrier in shared memory is, for both executors.

From below it has how many arrivals its phase still waits for, how many each phase has, for how many bytes of copies it
waits, and the phase's parity. No barrier is 0, or has the highest bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

COUNT_BITS, BYTES_BITS, PARITY_BIT = 20, 22, 62
MOST_ARRIVALS = (1 << COUNT_BITS) - 1
NO_BYTES = 1 << (BYTES_BITS - 1)

UNINITIALIZED = "comes to a barrier that nobody has initialized"
TOO_MANY_ARRIVALS = "arrives at a barrier more often than its phase has arrivals"
MISUSE_ADVICE = "One thread initializes it, and a __syncthreads() follows before others come."


@dataclass(frozen=True)
class PhaseWord:
    """What the word of a barrier says."""

    missing: int
    expected: int
    bytes: int
    parity: int

    @classmethod
    def of(cls, word: int) -> PhaseWord | None:
        """Return what a word says; None for one that is no barrier, as what nobody has written."""
        if word >> 63 or not word:
            return None
        expected = word >> COUNT_BITS & MOST_ARRIVALS
        waited = (word >> 2 * COUNT_BITS & ((1 << BYTES_BITS) - 1)) - NO_BYTES
        return cls(word & MOST_ARRIVALS, expected, waited, word >> PARITY_BIT & 1)

    @property
    def word(self) -> int:
        """The word that says so."""
        counts = self.missing | self.expected << COUNT_BITS
        return counts | (self.bytes + NO_BYTES) << 2 * COUNT_BITS | self.parity << PARITY_BIT

    @property
    def next(self) -> PhaseWord:
        """The phase that follows where nothing is missing, else this one."""
        if self.missing or self.bytes:
            return self
        return replace(self, missing=self.expected, parity=1 - self.parity)
