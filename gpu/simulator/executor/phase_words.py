"""Encoding of an mbarrier as a 64-bit word in shared memory, for both executors.

From the lowest bit: the pending arrivals of the phase, the expected arrivals per phase, the pending bytes of copies,
and the phase's parity. The word of an initialized mbarrier is not 0, and its highest bit is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

COUNT_BITS, BYTES_BITS, PARITY_BIT = 20, 22, 62
MOST_ARRIVALS = (1 << COUNT_BITS) - 1
NO_BYTES = 1 << (BYTES_BITS - 1)

UNINITIALIZED = "uses a barrier that is not initialized"
TOO_MANY_ARRIVALS = "arrives at a barrier more often than its phase expects"
MISUSE_ADVICE = "Let one thread initialize it, then call __syncthreads() before other threads use it."


@dataclass(frozen=True)
class PhaseWord:
    """The fields of an mbarrier's word: pending arrivals, expected arrivals, pending bytes and parity."""

    missing: int
    expected: int
    bytes: int
    parity: int

    @classmethod
    def of(cls, word: int) -> PhaseWord | None:
        """Decode a word; return None if it is not an initialized mbarrier."""
        if word >> 63 or not word:
            return None
        expected = word >> COUNT_BITS & MOST_ARRIVALS
        pending = (word >> 2 * COUNT_BITS & ((1 << BYTES_BITS) - 1)) - NO_BYTES
        return cls(word & MOST_ARRIVALS, expected, pending, word >> PARITY_BIT & 1)

    @property
    def word(self) -> int:
        """The encoded word."""
        counts = self.missing | self.expected << COUNT_BITS
        return counts | (self.bytes + NO_BYTES) << 2 * COUNT_BITS | self.parity << PARITY_BIT

    @property
    def next(self) -> PhaseWord:
        """The next phase if this one is complete, else this one."""
        if self.missing or self.bytes:
            return self
        return replace(self, missing=self.expected, parity=1 - self.parity)
