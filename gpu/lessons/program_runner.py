"""Runs of a student's whole program: a process compiles it, and confines each run."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gpu.base.child_processes import (
    ONE_THREAD,
    end_process,
    keep_user_packages,
    kill_group,
    signal_name,
    start_python,
)
from gpu.base.errors import CompileError, InputError, SourcePosition
from gpu.base.findings import Finding
from gpu.base.folders import cache_folder
from gpu.base.paths import ROOT
from gpu.base.schedules import ROUND_ROBIN

STREAM_ORDERS = ("immediate", "late", "late-reversed", "late-interleaved", "late-first", "late-others")
"""When operations of streams run: when they are issued, or when the program waits for them, in three orders of streams;
or those of the first stream when the program waits, and the others when they are issued; or the reverse."""
COMPARED = "compared"
"""Operations run when they are issued, and those that no stream or event orders are compared: races are findings."""
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "CXX", "PYTHONPATH", "VIRTUAL_ENV")
"""Environment variables of this process that a stranger's program may see."""


@dataclass(frozen=True)
class ProgramRun:
    """Outcome of a run.

    Parameters
    ----------
    code : int
        Exit code, negative for the signal that ended it.
    is_timeout : bool
        Whether it was ended because it ran too long.
    output, errors : str
        Its standard output and standard error output.
    block_sizes : tuple of int
        Threads per block of each launch.
    findings : tuple of Finding
        Findings of all launches.
    allocation_count : int
        Number of allocations of device memory that it did not free.
    stream_count : int
        Number of streams, except the legacy default stream, that had operations; 0 if these ran immediately.
    launching_stream_count : int
        Number of streams, except the legacy default stream, that had launches.
    default_launch_count : int
        Number of launches in the legacy default stream.
    found : tuple of int
        Indices of the results that were in device memory: after a launch or, if launches are withheld, before one.
    has_failed : bool
        Whether an operation has failed as demanded.
    overrun : int
        The most bytes that a copy accessed past the end of an array of the host.
    refused_launch : str
        Why the first launch with an invalid configuration failed; "" if there was none.
    """

    code: int
    is_timeout: bool
    output: str
    errors: str
    block_sizes: tuple[int, ...]
    findings: tuple[Finding, ...]
    allocation_count: int
    stream_count: int = 0
    launching_stream_count: int = 0
    default_launch_count: int = 0
    found: tuple[int, ...] = ()
    has_failed: bool = False
    overrun: int = 0
    refused_launch: str = ""

    @property
    def signal(self) -> str:
        """The name of the signal that ended it; "" if none did."""
        return signal_name(self.code)


class ProgramRunner:
    """Process that runs one program; a context manager that ends it.

    Parameters
    ----------
    name : str
        Name of the program's file.
    text : str
        Complete text of the program.

    Raises
    ------
    CompileError
        If the C++ compiler or clang rejects the program.
    InputError
        If this machine cannot compile programs.
    """

    def __init__(self, name: str, text: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lockstep-program-"))
        environment = {
            **ONE_THREAD,
            "TMPDIR": str(self._folder),
            "HOME": str(self._folder),
            "LOCKSTEP_CACHE": str(cache_folder()),
            **keep_user_packages(),
        }
        script = str(ROOT / "gpu" / "process" / "programs" / "start.py")
        self._process = start_python(script, environment=environment, inherited=_INHERITED, own_session=True)
        try:
            answer = self._ask({"folder": str(self._folder), "name": name, "text": text})
            if "unavailable" in answer:
                raise InputError(answer["unavailable"])
            if "error" in answer:
                position = SourcePosition(name, answer["line"]) if answer["line"] else None
                raise CompileError(answer["error"], detail=answer["detail"], position=position)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def run(
        self, text: str, *, streams: str = STREAM_ORDERS[0], schedule: str = ROUND_ROBIN, **probes: Any
    ) -> ProgramRun:
        """Run the program.

        Parameters
        ----------
        text : str
            Its standard input.
        streams : str
            One of `STREAM_ORDERS`, or `COMPARED`.
        schedule : str
            One of `gpu.base.schedules.NAMES`, for the warps and lanes of each launch.
        **probes : Any
            `results`, `launches_withheld`, `withheld_stream` and `failing` as `gpu.process.programs.server` has them.

        Raises
        ------
        InputError
            If the system cannot confine the program.
        RuntimeError
            If Lockstep fails.
        """
        answer = self._ask({"input": text, "streams": streams, "schedule": schedule, **probes})
        if answer["unsupported"]:
            raise InputError(answer["unsupported"])
        if answer["internal"]:
            raise RuntimeError(answer["internal"].splitlines()[-1])
        findings = [_read_finding(each) for launch in answer["launches"] for each in launch["findings"]]
        return ProgramRun(
            answer["code"],
            answer["timeout"],
            answer["output"],
            answer["errors"],
            tuple(launch["threads"] for launch in answer["launches"]),
            tuple(findings),
            answer["allocations"],
            answer["used_streams"],
            answer["launching_streams"],
            answer["default_launches"],
            tuple(answer["found"]),
            answer["failed"],
            answer["overrun"],
            answer["refused"],
        )

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            end_process(self._process, grace_s=1)
            ended = signal_name(self._process.returncode)
            if not ended:
                raise RuntimeError(f"The process that runs programs ended with code {self._process.returncode}.")
            raise CompileError(f"Compiling the program exceeds a limit of time or memory ({ended}).")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        kill_group(self._process.pid)  # also a run whose server was killed
        end_process(self._process, grace_s=1)
        shutil.rmtree(self._folder, ignore_errors=True)


def _read_finding(values: Mapping[str, Any]) -> Finding:
    positions = tuple(SourcePosition(**position) for position in values["positions"])
    return Finding(values["kind"], values["message"], positions, tuple(values["threads"]), values["count"])
