"""Events of the engine's process: its own, and the answers to requests."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.base.errors import SourcePosition
from gpu.declaration.pattern import Progress
from gpu.engines.base import Device
from gpu.messages.runs.distributed_run import WorkerStatus


@dataclass(frozen=True)
class Ready:
    """The engine's process is up.

    Parameters
    ----------
    device : Device
        The engine's device; for several devices the first worker's, with all names.
    note : str
        Warning about this user's folders, or "".
    workers : tuple of WorkerStatus
        Workers of a cluster; empty for one device.
    dashboard : str
        URL of Dask's dashboard of the cluster; "" if it has none.
    """

    device: Device
    note: str = ""
    workers: tuple[WorkerStatus, ...] = ()
    dashboard: str = ""


@dataclass(frozen=True)
class EngineHalt:
    """The engine's process with this number was stopped from outside while busy; None if it continues."""

    process: int | None


@dataclass(frozen=True)
class Failure:
    """A request failed; it has no effects, and the next request can follow.

    Parameters
    ----------
    kind : {"input", "compile", "launch", "engine", "crash", "cancelled", "bug"}
        Cause of the failure: the input, the kernel's source, the kernel's run, the machine's configuration, death of
        the engine's process, cancellation by the user, or an error in Lockstep.
    message, advice, detail : str
        One sentence; a remedy; details of any length.
    position : SourcePosition or None
        Position in a kernel's source.
    """

    kind: str
    message: str
    advice: str = ""
    detail: str = ""
    position: SourcePosition | None = None


Event = Ready | EngineHalt | Progress | Failure | object
"""An event; the result of a request is an object of the type that the request names."""
