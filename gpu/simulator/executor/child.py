"""A launch of a kernel by a thread of another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator import ir

# The streams cudaStreamTailLaunch and cudaStreamFireAndForget in the shim.
_TAIL_LAUNCH, FIRE_AND_FORGET = 3, 4


class LaunchingLanes(Protocol):
    """Who launches: lanes that can be named."""

    def describe(self, lane: int) -> str:
        """Name a lane's thread and block."""
        ...


@dataclass(frozen=True, eq=False)
class ChildLaunch:
    """A launch by one thread of a kernel.

    Parameters
    ----------
    function : ir.Function
        The kernel that is launched.
    grid, block : tuple of int
        Extents in x, y and z.
    shared_bytes : int
        The size of the extern __shared__ array.
    arguments : tuple
        Its arguments, each one value.
    stream : int
        The number of its stream.
    position : SourcePosition
        Where it is launched.
    batch, lane
        Who launched it.
    """

    function: ir.Function
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    arguments: tuple[Any, ...]
    stream: int
    position: SourcePosition
    batch: LaunchingLanes
    lane: int

    @property
    def is_tail(self) -> bool:
        """Whether it runs after all other children."""
        return self.stream == _TAIL_LAUNCH

    def fails(self, message: str, advice: str = "", kind: str = "other") -> LaunchError:
        """Make the error of a launch that cannot be."""
        who = self.batch.describe(self.lane)
        return LaunchError(
            f"{self.position}: {who} launches a kernel that cannot run: {message}",
            position=self.position,
            advice=advice,
            kind=kind,
            thread=who,
        )
