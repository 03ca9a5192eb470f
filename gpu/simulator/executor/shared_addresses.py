"""Pointers into shared memory as the 32-bit numbers that PTX has for them: one window for all that a block has."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.pointers import PointerValue, from_number
from gpu.simulator.executor.running import RunningBatch

# A variable's number from 1 above, the offset below, which holds more bytes than a block may have.
_OFFSET_BITS = 20


def to_shared(batch: RunningBatch, pointer: PointerValue, mask: LaneMask, position: SourcePosition) -> Any:
    """Return the numbers of pointers into shared memory: int64, one for all lanes or one a lane."""
    memories = list(batch.shared.values())
    found: Any = np.int64(0)
    for address, lanes in pointer.parts(mask):
        if address.memory not in memories:
            who = batch.describe(int(lanes.lanes[0]))
            raise LaunchError(
                f"{position}: {who} has no pointer into shared memory here.",
                position=position,
                advice="Give it the address of what is declared __shared__.",
                kind="other",
                thread=who,
            )
        number = (memories.index(address.memory) + 1 << _OFFSET_BITS) + np.asarray(address.offset, np.int64)[()]
        found = number if lanes is mask else np.where(lanes.bits, number, found)
    return found


def from_shared(batch: RunningBatch, number: Any) -> PointerValue:
    """Return the pointers that numbers stand for; those of other memory stay what they are."""
    memories = list(batch.shared.values())
    numbers = np.asarray(number, np.int64)
    places = np.where(numbers >> 32 == 0, numbers >> _OFFSET_BITS, 0)
    found = numbers.copy()
    for place in np.unique(places):
        if 0 < place <= len(memories):
            base = PointerValue(memories[place - 1]).number()
            found = np.where(places == place, base + (numbers & ((1 << _OFFSET_BITS) - 1)), found)
    return from_number(found[()])
