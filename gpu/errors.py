"""The errors a user can meet: each carries one clear sentence, what to do about it, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass


class LockstepError(Exception):
    """Something a user can understand and act on.

    Parameters
    ----------
    message : str
        One sentence that says what went wrong.
    advice : str
        What the user can do about it; may be empty.
    detail : str
        Evidence of any length, such as a compiler's log; may be empty.
    """

    def __init__(self, message: str, *, advice: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.detail = detail


class InputError(LockstepError):
    """Bad input: a file, a parameter, a combination of them. Nothing was run."""


class EngineUnavailableError(LockstepError):
    """The engine asked for cannot work here; `message` is the reason, `advice` the remedy."""


@dataclass(frozen=True)
class SourcePosition:
    """A place in a kernel's source; `line` and `column` count from 1, a `column` of 0 means the whole line."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong at a place of a kernel's text.

    Parameters
    ----------
    line, column : int
        Where it begins; both count from 1, columns in characters.
    end : int
        The column behind its last character.
    severity : {"error", "warning"}
        An error keeps the kernel from running.
    message : str
        One sentence, clang's where clang found it.
    """

    line: int
    column: int
    end: int
    severity: str
    message: str


class KernelError(LockstepError):
    """A kernel does not compile, or did something wrong while it ran.

    Parameters
    ----------
    position : SourcePosition or None
        Where in the kernel's source, when that is known.
    """

    def __init__(
        self, message: str, *, position: SourcePosition | None = None, advice: str = "", detail: str = ""
    ) -> None:
        super().__init__(message, advice=advice, detail=detail)
        self.position = position


class CompileError(KernelError):
    """A kernel does not compile; `detail` holds the compiler's log."""


class LaunchError(KernelError):
    """A kernel failed while it ran, such as by an access out of bounds, or its launch is none that a GPU takes.

    Parameters
    ----------
    kind : str
        The kernel's mistake, as `gpu.simulator.checkers.findings` names it; "" where the fault is not the kernel's, or
        unknown.
    thread : str
        Which thread made it, such as "thread (3,0,0) in block (0,0,0)"; may be empty.
    """

    def __init__(
        self,
        message: str,
        *,
        position: SourcePosition | None = None,
        advice: str = "",
        detail: str = "",
        kind: str = "",
        thread: str = "",
    ) -> None:
        super().__init__(message, position=position, advice=advice, detail=detail)
        self.kind = kind
        self.thread = thread


class EngineLostError(KernelError):
    """A kernel failed in a way that leaves its engine unusable, such as an illegal address on a GPU."""
