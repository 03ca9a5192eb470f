"""What stands beside the pictures at a moment, worked out once: lanes, memory traffic, the statement in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from gpu.warp import WARP
from gui.painting.values import thread_name

if TYPE_CHECKING:
    from gpu.stepping.moment.lanes import Lanes
    from gpu.stepping.moment.traffic import Traffic
    from gui.step_view.recording.models import Models

_KEPT = 256
_BEGINNING = "Space plays, → goes one step"

Thread = tuple[int, int]
"""A block and a thread of it; a negative one is the first of the block's that works."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A moment as one thread sees it.

    Parameters
    ----------
    lanes : Lanes
        Of the statement that has just run; before the first one, of that.
    blocks, threads : int
        How many blocks the launch has, and how many threads each.
    block, thread : int
        The thread that is looked at.
    traffic : Traffic or None
        What the statement asked of memory; None before the first one.
    code, words, variables : str
        The line of source, what it did in the thread, and the thread's variables.
    phase : str
        As the kernel's comments name it; "" where they do not.
    """

    lanes: Lanes
    blocks: int
    threads: int
    block: int
    thread: int
    traffic: Traffic | None
    code: str
    words: str
    variables: str
    phase: str


Snapshots = Callable[[int, Thread | None], Snapshot]
"""Returns what there is just before a moment, of the thread that is followed, else of the first that works."""


def snapshots_of(models: Models) -> Snapshots:
    """Return the snapshots of a recording; those that were looked at last are kept."""
    return lru_cache(maxsize=_KEPT)(partial(_snapshot, models))


def _snapshot(models: Models, moment: int, followed: Thread | None) -> Snapshot:
    # With the simulator, which a window that only runs does without.
    from gpu.stepping.moment.traffic import traffic_at

    recording, event = models.recording, max(moment - 1, 0)
    lanes = models.lanes.at(event)
    traffic = traffic_at(recording, event) if moment else None
    _ = traffic and traffic.banks  # worked out here, which may be ahead of need
    block, thread = _looked_at(lanes, followed)
    code, words, variables = _words(models, moment, block, thread)
    return Snapshot(
        lanes, lanes.state.shape[0], prod(recording.at(event)[0].trace.block), block, thread,
        traffic, code, words, variables, models.phases.at(moment),
    )  # fmt: skip


def _words(models: Models, moment: int, block: int, thread: int) -> tuple[str, str, str]:
    from gpu.stepping.explain import explain

    if not moment:
        return "", _BEGINNING, ""
    event = moment - 1
    lines = models.recording.text(models.files[event]).split("\n")
    number = int(models.lines[event])
    code = lines[number - 1] if 0 < number <= len(lines) else ""
    name = thread_name(block, thread, several_blocks=models.several_blocks)
    said = explain(models.recording, event, block, thread)
    variables = "   ".join(f"{each} = {value}" for each, value in said.variables)
    return code, f"{name}:  {said.text}" if said.text else f"{name} does not take part", variables


def _looked_at(lanes: Lanes, followed: Thread | None) -> Thread:
    """Return the block and the thread to look at."""
    from gpu.stepping.moment.lanes import LaneState

    state = lanes.state
    block, thread = followed or (-1, -1)
    known = 0 <= block < state.shape[0] and thread < state.shape[1] * state.shape[2]
    if known and thread >= 0:
        return block, thread
    first, last = (block, block + 1) if known else (0, state.shape[0])
    active = np.argwhere(state[first:last] == LaneState.ACTIVE)
    found = active[0] if active.size else (0, 0, 0)
    return first + int(found[0]), int(found[1]) * WARP + int(found[2])
