"""What the Step tab of a kernel that no pattern declares steps through."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpu.messages.kernels import KernelLaunch
from gpu.messages.requests import StepKernel
from gui.step_view.recording.steppable import Steppable


def stepped_kernel(path: Path, kernel: str, launch: Callable[[], KernelLaunch]) -> Steppable:
    """Return a kernel of the user's as what is stepped through.

    Parameters
    ----------
    path : Path
        Its file.
    kernel : str
        "" as long as none is known.
    launch : callable
        Returns the launch that is chosen; InputError where there is none.
    """
    return Steppable(
        subject=str(path),
        name=f"{path.stem}-{kernel}" if kernel else path.stem,
        title=f"{path.name}: {kernel}",
        file=str(path),
        kernel=kernel,
        request=lambda chosen: StepKernel(launch(), chosen.schedule),
    )
