"""Errors reported to users: each has one clear sentence, advice, and details."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


class LockstepError(Exception):
    """An error that a user can understand and act on.

    Parameters
    ----------
    message : str
        One sentence that says what went wrong.
    advice : str
        The remedy, for the user; may be empty.
    detail : str
        Evidence of any length, such as a compiler's log; may be empty.
    """

    def __init__(self, message: str, *, advice: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.detail = detail


class InputError(LockstepError):
    """Invalid input: a file, a parameter, or a combination of them. Nothing was run."""


class EngineUnavailableError(LockstepError):
    """The requested engine cannot run on this machine; `message` is the reason, `advice` the remedy."""


@dataclass(frozen=True)
class SourcePosition:
    """A position in a kernel's source; `line` and `column` count from 1, a `column` of 0 means the whole line."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")

    @property
    def line_key(self) -> tuple[str, int]:
        """The file and the line."""
        return self.file, self.line

    @property
    def short_text(self) -> str:
        """The file's name without its folder, and the line, such as "sums.cu:12"."""
        return f"{PurePath(self.file).name}:{self.line}"


@dataclass(frozen=True)
class Diagnostic:
    """An error or warning at a position in a kernel's text.

    Parameters
    ----------
    line, column : int
        Its start; both count from 1, columns in characters.
    end : int
        The column after its last character.
    severity : {"error", "warning"}
        An error keeps the kernel from running.
    message : str
        One sentence, Clang's if Clang reported it.
    """

    line: int
    column: int
    end: int
    severity: str
    message: str


class KernelError(LockstepError):
    """A kernel does not compile, or failed while it ran.

    Parameters
    ----------
    position : SourcePosition or None
        Position in the kernel's source, if known.
    """

    def __init__(
        self, message: str, *, position: SourcePosition | None = None, advice: str = "", detail: str = ""
    ) -> None:
        super().__init__(message, advice=advice, detail=detail)
        self.position = position


class CompileError(KernelError):
    """A kernel does not compile; `detail` holds the compiler's log."""


class LaunchError(KernelError):
    """A kernel failed while it ran, such as by an access out of bounds, or its launch is invalid on a GPU.

    Parameters
    ----------
    kind : str
        The kind of error, as in `gpu.base.findings.Finding.kind`; "" if not known or not the kernel's.
    thread : str
        The thread that failed, with its block; may be empty.
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
    """A kernel failed and left its engine unusable, such as after an illegal address on a GPU."""
