"""Child launches: launches by a thread of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gpu.base.errors import LaunchError, SourcePosition
from gpu.simulator import ir

# The streams cudaStreamTailLaunch and cudaStreamFireAndForget in the shim.
_TAIL_LAUNCH, FIRE_AND_FORGET = 3, 4


class LaunchingLanes(Protocol):
    """A set of lanes that can be described in messages."""

    def describe(self, lane: int) -> str:
        """Return the name of a lane's thread and block."""
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
        The arguments, each one value.
    lane : int
        The thread that launched it: a lane of a batch.
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
        """Return whether the child runs after all other children."""
        return self.stream == _TAIL_LAUNCH

    def build_error(self, message: str, advice: str = "", kind: str = "other") -> LaunchError:
        """Return the error of a child launch that cannot run."""
        thread = self.batch.describe(self.lane)
        return LaunchError(
            f"{self.position}: {thread} launches a kernel that cannot run: {message}",
            position=self.position,
            advice=advice,
            kind=kind,
            thread=thread,
        )
