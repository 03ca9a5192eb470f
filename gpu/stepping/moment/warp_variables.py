"""The variables of a warp at a moment, per lane, which show the effect of votes and shuffles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu.base.warp import WARP
from gpu.recording.packing import Array
from gpu.recording.recording import Recording
from gpu.recording.trace import Trace


@dataclass(frozen=True, eq=False)
class WarpVariable:
    """A variable in the lanes of a warp.

    Parameters
    ----------
    values : array of shape (32,)
        The values; texts for pointers.
    defined, changed : bool arrays of shape (32,)
        Whether a lane's variable has a value, and whether the last statement assigned it.
    """

    name: str
    values: Array
    defined: Array
    changed: Array

    @property
    def is_mask(self) -> bool:
        """Whether the variable may be a lane mask: unsigned, 32 bits, and equal in all lanes."""
        values = self.values[self.defined]
        return bool(self.values.dtype == np.uint32 and values.size > 1 and (values == values[0]).all())


def find_warp_variables(recording: Recording, moment: int, block: int, warp: int) -> tuple[WarpVariable, ...]:
    """Return the variables of the running function after the event before a moment; empty at the beginning.

    Parameters
    ----------
    block, warp : int
        The block's number in the grid, and the warp's number in the block.
    """
    if not moment:
        return ()
    launch, event = recording.locate_moment(moment - 1)
    trace = launch.trace
    lanes = _lane_range(trace, trace.events[event].batch, block, warp)
    before = trace.registers(event)
    written = trace.events[event].registers
    variables = []
    for name in dict.fromkeys([*before, *written]):
        old, new = before.get(name), written.get(name)
        changed = new.defined[lanes] if new is not None else np.zeros(WARP, bool)
        had_value = old.defined[lanes] if old is not None else np.zeros(WARP, bool)
        register = new if new is not None else old
        assert register is not None
        values = np.where(changed, *((each or register).values[lanes] for each in (new, old)))
        if (had_value | changed).any():
            variables.append(WarpVariable(name, values, had_value | changed, changed))
    return tuple(variables)


def _lane_range(trace: Trace, batch: int, block: int, warp: int) -> slice:
    first = (block - trace.lanes.first_block(batch)) * trace.lanes.per_block(batch) + warp * WARP
    return slice(first, first + WARP)
