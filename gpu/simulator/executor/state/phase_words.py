"""Encoding of an mbarrier as a 64-bit word in shared memory, for both executors.

From the lowest bit: the pending arrivals of the phase, the expected arrivals per phase, the pending bytes of copies,
and the phase's parity. The word of an initialized mbarrier is not 0, and its highest bit is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

COUNT_BITS, BYTES_BITS, PARITY_BIT = 20, 22, 62
MAX_ARRIVALS = (1 << COUNT_BITS) - 1
BYTES_BIAS = 1 << (BYTES_BITS - 1)

UNINITIALIZED = "uses a barrier that is not initialized"
TOO_MANY_ARRIVALS = "arrives at a barrier more often than its phase expects"
MISUSE_ADVICE = "Let one thread initialize it, then call __syncthreads() before other threads use it."


@dataclass(frozen=True)
class PhaseWord:
    """The fields of an mbarrier's word: pending arrivals, expected arrivals, pending bytes and parity."""

    pending_arrivals: int
    expected_arrivals: int
    pending_bytes: int
    parity: int

    @classmethod
    def decode(cls, word: int) -> PhaseWord | None:
        """Decode a word; return None if it is not an initialized mbarrier."""
        if word >> 63 or not word:
            return None
        expected = word >> COUNT_BITS & MAX_ARRIVALS
        pending = (word >> 2 * COUNT_BITS & ((1 << BYTES_BITS) - 1)) - BYTES_BIAS
        return cls(word & MAX_ARRIVALS, expected, pending, word >> PARITY_BIT & 1)

    @property
    def encoded(self) -> int:
        """The encoded word."""
        counts = self.pending_arrivals | self.expected_arrivals << COUNT_BITS
        return counts | (self.pending_bytes + BYTES_BIAS) << 2 * COUNT_BITS | self.parity << PARITY_BIT

    @property
    def next_phase(self) -> PhaseWord:
        """The next phase if this one is complete, else this one."""
        if self.pending_arrivals or self.pending_bytes:
            return self
        return replace(self, pending_arrivals=self.expected_arrivals, parity=1 - self.parity)
