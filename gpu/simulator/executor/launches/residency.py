"""Waits of blocks for other blocks: resident blocks, deadlocks, and the limits of the simulator."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from gpu.base.errors import LaunchError
from gpu.base.warp import WARP
from gpu.simulator.executor.launches.grid_launch import GridLaunch
from gpu.simulator.executor.scheduling.choosers import RoundRobinChooser
from gpu.simulator.executor.scheduling.execution_order import ExecutionOrder
from gpu.simulator.executor.state.progress import StarvationError
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.limits import RESIDENCY, RESIDENCY_ADVICE

_RESIDENT_LANES = {WARP: 1 << 14, 1: 1 << 10}
"""The most lanes that make progress together if blocks wait for later ones, by the lanes per part. In lockstep all
resident blocks do."""

_MAX_EXCESS_LANES = 1 << 22
"""The most lanes that run together to find out whether blocks wait for blocks that are not resident."""

EXCESS_SECONDS = 10.0
"""The time limit of a batch that runs only to find out whether its lanes starve, in seconds of processor time."""


def get_resident_lanes(lanes_per_part: int) -> int:
    """Return the most lanes that make progress together, in parts of a warp or a lane, if blocks wait for later ones.

    In lockstep all resident blocks do.
    """
    return _RESIDENT_LANES[lanes_per_part]


class StarvedBatch(NamedTuple):
    """A batch that starves, where it does, and how many blocks of the launch have not ended."""

    launch: GridLaunch
    batch: RunningBatch
    starvation: StarvationError
    remaining: int

    def is_deadlock(self) -> bool:
        """Return whether nothing can end the waits."""
        most = min(self.remaining, self.launch.resident_blocks)
        return self.starvation.is_deadlock and self.batch.geometry.blocks >= most

    def check_residency(self) -> None:
        """Raise LaunchError if resident blocks wait for blocks that cannot start because the GPU is full."""
        launch, lanes = self.launch, self.remaining * self.launch.lanes_per_block
        used_bytes = launch.code.traits.static_shared_bytes + launch.shared_bytes
        excess = RESIDENCY.describe_excess(launch.grid, launch.block, used_bytes)
        if not excess or self.starvation.position is None:
            return
        verb = "waits in this loop for blocks that cannot start"
        orders = [ExecutionOrder()] if lanes <= _MAX_EXCESS_LANES else []
        if lanes <= get_resident_lanes(WARP):
            orders.append(ExecutionOrder(RoundRobinChooser()))
        for order in orders:
            batch = launch.create_batch(self.batch.first, self.remaining)
            with contextlib.suppress(LaunchError, StarvationError, MemoryError):
                launch.run_and_undo(batch, order, EXCESS_SECONDS)
                break
        else:
            if orders:
                return
            verb = "waits in this loop, and other blocks cannot start"
        raise self._build_error(f"{{thread}} {verb}: {excess}.", "residency", RESIDENCY_ADVICE)

    def check_capacity(self, lanes_per_part: int) -> None:
        """Raise LaunchError if further resident blocks exceed what the simulator runs at once, in parts of lanes."""
        most = max(1, get_resident_lanes(lanes_per_part) // self.launch.lanes_per_block)
        if most >= min(self.remaining, self.launch.resident_blocks) or self.starvation.position is None:
            return
        raise self._build_error(
            f"this loop did not end while {most:,} blocks ran: {{thread}} is still in it. It may wait for one of the "
            f"other {self.remaining - most:,} blocks, which the simulator does not run at once.",
            "",
            f"Check the condition that ends the loop, with a grid of at most {most:,} blocks.",
        )

    def _build_error(self, sentence: str, kind: str, advice: str) -> LaunchError:
        starvation = self.starvation
        return self.batch.thread_error(starvation.lane, starvation.position, sentence, kind=kind, advice=advice)


def build_grid_size_error(launch: GridLaunch, lanes: int, lanes_per_part: int) -> LaunchError:
    """Return the error of a grid with barriers that has too many lanes to run by warps or lanes."""
    has_phases = launch.code.traits.has_phases
    reason = "with mbarriers" if has_phases else "in such a schedule"
    return LaunchError(
        f"{launch.code.name}: a grid of {lanes:,} threads with a barrier of the grid, which needs all of them at "
        f"once; {reason} the simulator runs no more than {get_resident_lanes(lanes_per_part):,} at once.",
        advice="Launch fewer blocks." if has_phases else "Use the schedule round-robin.",
    )
