"""Recording of a user's own kernel for the Step tab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpu.messages.kernels import KernelLaunch, StepKernel
from gui.step_view.recording.steppable import Steppable


def create_kernel_steppable(path: Path, kernel: str, launch: Callable[[], KernelLaunch]) -> Steppable:
    """Return a user's kernel as a subject of the Step tab.

    Parameters
    ----------
    path : Path
        The kernel's file.
    kernel : str
        The kernel's name; "" while it is unknown.
    launch : callable
        Returns the selected launch; raises InputError if there is none.
    """
    return Steppable(
        subject=str(path),
        name=f"{path.stem}-{kernel}" if kernel else path.stem,
        title=f"{path.name}: {kernel}",
        file=str(path),
        kernel=kernel,
        make_request=lambda chosen: StepKernel(launch(), chosen.schedule),
    )
