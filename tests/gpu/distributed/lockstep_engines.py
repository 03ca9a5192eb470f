"""The simulator that compiles nothing, as workers are told to make it: it is lost, and shares its buffers, as GPUs."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from gpu.base.errors import EngineLostError
from gpu.engines.simulator import SimulatorEngine

LOSE = "lose"
"""Among a run's sources: a file, and who removes it first has an engine that is lost at its next launch."""


REFUSE = "refuse"
"""Among a run's sources: nothing that lies on a device goes to another worker."""


class LockstepEngine(SimulatorEngine):
    copies = 0
    shares = 0

    def __init__(self) -> None:
        super().__init__("lockstep")

    def share(self, buffer):
        from distributed import get_worker

        LockstepEngine.shares += 1
        handle, path = tempfile.mkstemp(prefix="shared-", dir=get_worker().local_directory)
        os.close(handle)
        self.download(buffer).tofile(path)
        return path.encode()

    def copy_shared(self, handle, shape, dtype):
        if REFUSE in self.sources:
            raise OSError("no such memory")
        LockstepEngine.copies += 1
        return self.upload(np.fromfile(handle.decode(), dtype).reshape(shape))

    def launch(self, kernel, grid, block, *arguments, shared_bytes=0):
        if LOSE in self.sources:
            with suppress(FileNotFoundError):
                Path(self.sources[LOSE]).unlink()
                raise EngineLostError("An illegal address was met.")
        super().launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)


def count_shares() -> int:
    """Return how many buffers this process has shared with others."""
    return LockstepEngine.shares


def count_copies() -> int:
    """Return how many buffers have come to this process from another's device."""
    return LockstepEngine.copies


class PlainEngine(SimulatorEngine):
    """One whose buffers come to others as arrays."""

    def __init__(self) -> None:
        super().__init__("lockstep")
