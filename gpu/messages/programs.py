"""Whole programs that use a GPU, as plain data: PyCUDA scripts, CUDA programs with `main`, and what came of them."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field
from pathlib import Path

from gpu.declaration.pattern import Progress
from gpu.errors import Diagnostic
from gpu.messages.compiler_options import CompilerOptions
from gpu.messages.counted import RunCounts
from gpu.messages.verdicts import Mistake

SCRIPT = ".py"
"""How the name of a PyCUDA script ends."""
_MAIN = re.compile(r"^[ \t]*(?:int|auto|void)\s+main\s*\(", re.MULTILINE)


def has_main(text: str) -> bool:
    """Whether a CUDA file's text is a whole program."""
    return _MAIN.search(text) is not None


@dataclass(frozen=True)
class WholeProgram:
    """A program, as it is to run.

    Parameters
    ----------
    path : str
        Its file: a PyCUDA script, or a CUDA program with `main`.
    text : str
        What stands in the place of what the file holds.
    words : tuple of str
        Its arguments.
    options : CompilerOptions
        Of a script without a meaning.
    """

    path: str
    text: str
    words: tuple[str, ...] = ()
    options: CompilerOptions = field(default_factory=CompilerOptions)

    @property
    def is_script(self) -> bool:
        """Whether Python runs it."""
        return Path(self.path).suffix.lower() == SCRIPT


@dataclass(frozen=True)
class ProgramLaunch:
    """One launch of a program.

    Parameters
    ----------
    number : int
        From 1, in the order of launches.
    kernel, place : str
        The kernel, and the line that launched it: "script.py:12".
    grid, block : tuple of int
    shared_bytes : int
        Of dynamic shared memory.
    simulated_ms : float
        What it took on this machine's processor: no GPU's time.
    mistakes : tuple of Mistake
        What it does wrong, with lines of the program's file, as far as the kernel's text stands there.
    diagnostics : tuple of Diagnostic
        The same in words, at the lines of the text that the kernel was compiled from.
    placed : tuple of Diagnostic
        The same at lines of the program's file, as far as it has them.
    counts : RunCounts or None
        None of a launch that a mistake ended.
    recording : str
        The file of its recording; "" where it was not recorded.
    modeled_us : float or None
        What it would take on the GPU that was asked for, modeled; None where the model does not follow it.
    """

    number: int
    kernel: str
    place: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    simulated_ms: float
    mistakes: tuple[Mistake, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    placed: tuple[Diagnostic, ...] = ()
    counts: RunCounts | None = None
    recording: str = ""
    modeled_us: float | None = None


@dataclass(frozen=True)
class ProgramNews(Progress):
    """What has come of a program since the last time: nothing of it may be left out.

    Parameters
    ----------
    output : str
        What it has written, to standard output and standard error as they came.
    launches : tuple of ProgramLaunch
    under_way : str
        The launch that takes a while: "launch 3: scale, at script.py:12"; "" where there is nothing new to say of one.
    """

    fraction: float | None = None
    output: str = ""
    under_way: str = ""
    launches: tuple[ProgramLaunch, ...] = field(default=())


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended.

    Parameters
    ----------
    code : int
        Its exit code; the negative number of the signal that ended it.
    launches : int
        How many there were.
    seconds : float
        By the clock, from its start.
    """

    code: int
    launches: int
    seconds: float

    @property
    def sentence(self) -> str:
        """Return how it ended."""
        if self.code >= 0:
            return "It ended." if self.code == 0 else f"It ended with exit code {self.code}."
        try:
            name = signal.Signals(-self.code).name
        except ValueError:
            name = f"signal {-self.code}"
        if name == "SIGKILL":
            return "It was ended from outside (SIGKILL), most likely because memory ran out."
        return f"It crashed: {name}."
