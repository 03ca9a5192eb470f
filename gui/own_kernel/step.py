"""The Step tab of a kernel that no pattern declares."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np

from gpu.declaration.pattern import Cost, Outputs, Pattern, Progress, Variant, Work
from gpu.declaration.presentation import ArrayPresentation
from gpu.errors import InputError
from gpu.messages.kernels import KernelLaunch
from gpu.messages.requests import StepKernel, StepPattern
from gui.editor.sources import KernelSources
from gui.step_view.recording.models import Models
from gui.step_view.tab import StepTab
from gui.work.jobs import Jobs

NAME = "own"
"""What a kernel of one's own is called where a pattern and a variant have names."""


def _never_run(*_: Any) -> Generator[Progress, None, Outputs]:
    raise AssertionError("a kernel of one's own is launched by itself, not by a host program")


def declaration(path: Path, kernel: str) -> Pattern:
    """Return what a tab needs to know of a kernel, as a declaration without parameters."""
    return Pattern(
        name=NAME,
        title="Own kernel",
        summary=str(path),
        order=0,
        kernels=str(path),
        presentation=ArrayPresentation(),
        parameters=(),
        variants=(Variant(NAME, kernel, run=_never_run, idea="", limit="", kernels=(kernel,)),),
        default_variant=NAME,
        result="",
        reference=lambda inputs, params: np.empty(0),
        tolerance=lambda inputs, params: 0.0,
        cost=lambda inputs, params: Cost(0, 0, 0),
        work=lambda inputs, params: Work(0, "element"),
        present=lambda inputs, params, outputs: {},
        make_input=lambda params, seed: {},
    )


class OwnStepTab(StepTab):
    """Records a launch of a kernel and plays it.

    Parameters
    ----------
    path : Path
        The kernel's file.
    sources, jobs
        As of a StepTab.
    launch : callable
        Returns the launch that is chosen; InputError where there is none.
    """

    def __init__(
        self, path: Path, sources: KernelSources, jobs: Callable[[], Jobs], launch: Callable[[], KernelLaunch]
    ) -> None:
        self._launch = launch
        self._path = path
        super().__init__(declaration(path, ""), NAME, sources, jobs)
        self.settings.again.hide()

    def show_kernel(self, kernel: str) -> None:
        """Show another kernel of the file."""
        self.pattern = declaration(self._path, kernel)
        self.show_variant(NAME)

    def record(self) -> None:
        self._soon.stop()
        self._stale = False
        try:
            launch = self._launch()
        except InputError as error:
            self._say(error.message)
            return
        self.stepper.record(StepKernel(launch, self.settings.schedule))

    def _take(self, request: Any, models: Models) -> None:
        super()._take(StepPattern(NAME, NAME, {}, schedule=request.schedule), models)
