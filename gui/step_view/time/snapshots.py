"""Snapshots of a moment for the cards: lanes, memory traffic and the statement in words, computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from gpu.base.warp import WARP

if TYPE_CHECKING:
    from gpu.stepping.moment.lanes import Lanes
    from gpu.stepping.moment.traffic import Traffic
    from gui.step_view.recording.models import RecordingModels

_MAX_SNAPSHOTS = 256
_START_HINT = "Space: play, →: one step"

Thread = tuple[int, int]
"""A block and a thread; a negative thread means the block's first active one."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state at a moment for one thread.

    Parameters
    ----------
    lanes : Lanes
        Lanes at the last statement; at moment 0, at the first statement.
    blocks, threads : int
        Number of blocks of the launch, and threads per block.
    block, thread : int
        The thread that the texts are about.
    traffic : Traffic or None
        Memory accesses of the last statement; None at moment 0.
    code, effect, variables : str
        Source line, its effect in the thread, and the thread's variables.
    phase : str
        Name of the phase from the kernel's comments, or "".
    """

    lanes: Lanes
    blocks: int
    threads: int
    block: int
    thread: int
    traffic: Traffic | None
    code: str
    effect: str
    variables: str
    phase: str


Snapshots = Callable[[int, Thread | None], Snapshot]
"""Returns the snapshot of a moment for the followed thread, or else for the first active one."""


def make_snapshots(models: RecordingModels) -> Snapshots:
    """Return the snapshot function of a recording, with a cache of the most recent results."""
    return lru_cache(maxsize=_MAX_SNAPSHOTS)(partial(_build_snapshot, models))


def _build_snapshot(models: RecordingModels, moment: int, followed: Thread | None) -> Snapshot:
    # Imported late: this loads the simulator, which a window that only runs kernels does not need.
    from gpu.stepping.moment.traffic import traffic_at

    recording, event = models.recording, max(moment - 1, 0)
    lanes = models.data.lanes.lanes_at(event)
    traffic = traffic_at(recording, event) if moment else None
    _ = traffic and traffic.banks  # computed here, which may be in advance
    block, thread = _select_thread(lanes, followed)
    code, words, variables = _describe_statement(models, moment, block, thread)
    return Snapshot(
        lanes, lanes.state.shape[0], prod(recording.locate_moment(event)[0].trace.block), block, thread,
        traffic, code, words, variables, models.data.phases.phase_at(moment),
    )  # fmt: skip


def _describe_statement(models: RecordingModels, moment: int, block: int, thread: int) -> tuple[str, str, str]:
    from gpu.stepping.explanation.sentences import explain

    if not moment:
        return "", _START_HINT, ""
    event = moment - 1
    lines = models.recording.text(models.files[event]).split("\n")
    number = int(models.lines[event])
    code = lines[number - 1] if 0 < number <= len(lines) else ""
    launch = models.recording.locate_moment(event)[0].number
    name = models.recording.name_thread(launch, block, thread)
    explanation = explain(models.recording, event, block, thread)
    variables = "   ".join(f"{each} = {value}" for each, value in explanation.variables)
    if explanation.call:  # the figure shows the effects after the call
        return code, f"{name}:  calls {explanation.call}", variables
    return code, f"{name}:  {explanation.text}" if explanation.text else f"{name} is not active", variables


def _select_thread(lanes: Lanes, followed: Thread | None) -> Thread:
    """Return the block and thread that the snapshot is about."""
    from gpu.stepping.moment.lanes import LaneState

    state = lanes.state
    block, thread = followed or (-1, -1)
    is_valid = 0 <= block < state.shape[0] and thread < state.shape[1] * state.shape[2]
    if is_valid and thread >= 0:
        return block, thread
    first, last = (block, block + 1) if is_valid else (0, state.shape[0])
    active = np.argwhere(state[first:last] == LaneState.ACTIVE)
    first_active = active[0] if active.size else (0, 0, 0)
    return first + int(first_active[0]), int(first_active[1]) * WARP + int(first_active[2])
