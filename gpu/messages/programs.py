"""Messages about whole programs: PyCUDA scripts and CUDA programs with `main`, and the results of their runs."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field
from pathlib import Path

from gpu.base.errors import Diagnostic
from gpu.base.schedules import ROUND_ROBIN
from gpu.declaration.pattern import Progress
from gpu.messages.compiler_options import CompilerOptions
from gpu.messages.requests import Request
from gpu.messages.run_counts import RunCounts
from gpu.messages.verdicts import Mistake

SCRIPT_SUFFIX = ".py"
"""File name extension of a PyCUDA script."""
_MAIN = re.compile(r"^[ \t]*(?:int|auto|void)\s+main\s*\(", re.MULTILINE)


def has_main(text: str) -> bool:
    """Return whether a CUDA file's text defines `main`."""
    return _MAIN.search(text) is not None


@dataclass(frozen=True)
class WholeProgram:
    """Program to run.

    Parameters
    ----------
    path : str
        A PyCUDA script, or a CUDA program with `main`.
    text : str
        Text that replaces the file's content.
    arguments : tuple of str
        Command-line arguments.
    options : CompilerOptions
        Ignored for a script.
    """

    path: str
    text: str
    arguments: tuple[str, ...] = ()
    options: CompilerOptions = field(default_factory=CompilerOptions)

    @property
    def is_script(self) -> bool:
        """Whether it is a Python script."""
        return Path(self.path).suffix.lower() == SCRIPT_SUFFIX


@dataclass(frozen=True)
class ProgramLaunch:
    """One launch of a program.

    Parameters
    ----------
    number : int
        Number of the launch, from 1.
    kernel, call_site : str
        Name of the kernel, and the line that launched it: "script.py:12".
    shared_bytes : int
        Dynamic shared memory per block, in bytes.
    simulated_ms : float
        Duration of the simulation on this CPU; not a GPU time.
    mistakes : tuple of Mistake
        Findings, with lines of the program's file if it contains the kernel's text.
    diagnostics : tuple of Diagnostic
        The findings at lines of the text from which the kernel was compiled.
    file_diagnostics : tuple of Diagnostic
        The findings at lines of the program's file, if it contains them.
    counts : RunCounts or None
        None if a mistake ended the launch.
    recording : str
        Path of its recording; "" if it was not recorded.
    modeled_us : float or None
        Modeled time on the requested GPU; None if the timing model does not support the launch.
    """

    number: int
    kernel: str
    call_site: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    simulated_ms: float
    mistakes: tuple[Mistake, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    file_diagnostics: tuple[Diagnostic, ...] = ()
    counts: RunCounts | None = None
    recording: str = ""
    modeled_us: float | None = None


@dataclass(frozen=True)
class ProgramProgress(Progress):
    """Output and launches of a program since the last such message; none may be dropped.

    Parameters
    ----------
    output : str
        Standard output and standard error, in the order in which they were written.
    current_launch : str
        Description of a long launch: "launch 3: scale, at script.py:12"; "" if there is no change.
    """

    fraction: float | None = None
    output: str = ""
    current_launch: str = ""
    launches: tuple[ProgramLaunch, ...] = field(default=())


@dataclass(frozen=True)
class ProgramEnd:
    """End of a program.

    Parameters
    ----------
    code : int
        Exit code; negative for a signal.
    seconds : float
        Duration from its start, by the clock.
    """

    code: int
    launches: int
    seconds: float

    @property
    def sentence(self) -> str:
        """Description of how it ended."""
        if self.code >= 0:
            return "Finished." if self.code == 0 else f"Finished with exit code {self.code}."
        try:
            name = signal.Signals(-self.code).name
        except ValueError:
            name = f"signal {-self.code}"
        if name == "SIGKILL":
            return "It was killed from outside (SIGKILL), most likely because memory ran out."
        return f"It crashed: {name}."


@dataclass(frozen=True)
class RunProgram(Request[ProgramEnd]):
    """Run a whole program in the simulator; its output arrives as ProgramProgress.

    Parameters
    ----------
    folder : str
        An existing, empty folder for generated files and recordings.
    schedule : str
        One of `gpu.base.schedules.NAMES`.
    recorded_launch : int or None
        Number of the only launch to record, without checking the others; None checks all, and records small ones.
    gpu : str
        Key, as in `gpu.timing.gpus.find_gpu`, of the GPU for which launches are modeled and whose attributes the
        device reports; "" models none, and the device reports the simulator's.
    """

    program: WholeProgram
    folder: str
    schedule: str = ROUND_ROBIN
    recorded_launch: int | None = None
    gpu: str = ""
