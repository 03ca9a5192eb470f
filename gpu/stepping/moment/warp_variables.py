"""The variables of a warp at a moment, lane by lane: where votes and shuffles show what they do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.trace import Trace
from gpu.simulator.trace.types import Register
from gpu.stepping.recording import Recording
from gpu.warp import WARP


@dataclass(frozen=True, eq=False)
class WarpVariable:
    """A variable in the lanes of a warp.

    Parameters
    ----------
    name : str
    values : array of shape (32,)
        Texts where it points somewhere.
    defined, changed : bool arrays of shape (32,)
        Where it has a value, and where the statement that has just run gave it one.
    """

    name: str
    values: Array
    defined: Array
    changed: Array

    @property
    def is_mask(self) -> bool:
        """Whether it may be read as a bit for each lane: 32 bits without a sign, the same in all lanes."""
        known = self.values[self.defined]
        return bool(self.values.dtype == np.uint32 and known.size > 1 and (known == known[0]).all())


def warp_variables(recording: Recording, moment: int, block: int, warp: int) -> tuple[WarpVariable, ...]:
    """Return the variables of the function that runs, after the event before a moment; at the beginning none.

    Parameters
    ----------
    recording : Recording
    moment : int
    block, warp : int
        The block's number in the grid, and the warp's in the block.
    """
    if not moment:
        return ()
    launch, event = recording.at(moment - 1)
    trace = launch.trace
    lanes = _lanes(trace, trace.events[event].batch, block, warp)
    before = trace.registers(event)
    written = trace.events[event].registers
    found = []
    for name in dict.fromkeys([*before, *written]):
        old, new = before.get(name), written.get(name)
        changed = new.defined[lanes] if new is not None else np.zeros(WARP, bool)
        known = old.defined[lanes] if old is not None else np.zeros(WARP, bool)
        some = new if new is not None else old
        assert some is not None
        values = np.where(changed, *(_of(each, some, lanes) for each in (new, old)))
        if (known | changed).any():
            found.append(WarpVariable(name, values, known | changed, changed))
    return tuple(found)


def _of(register: Register | None, some: Register, lanes: slice) -> Array:
    return (register or some).values[lanes]


def _lanes(trace: Trace, batch: int, block: int, warp: int) -> slice:
    first = (block - trace.lanes.first_block(batch)) * trace.lanes.per_block(batch) + warp * WARP
    return slice(first, first + WARP)
