"""Run units in child processes, several at once, and collect their findings."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu.base.child_processes import ONE_THREAD, end_process, signal_name, start_python
from gpu.base.paths import ROOT
from gpu.cli.check.findings import CheckedFinding, SourceLocator, build_findings
from gpu.cli.check.units import CheckUnit
from gpu.cli.exit_codes import FAILED, OK, REFUSED
from gpu.process.guard import Guard

_TAIL_BYTES = 16 << 10
_OWN_PREFIX = "lockstep: "
_SUMMARY_MARK = " on the simulator, "


@dataclass(frozen=True)
class UnitResult:
    """Result of a unit.

    Parameters
    ----------
    seconds : float
        Wall-clock time.
    launches : int
        Kernels launched.
    failure : str
        The failure of the user's program itself, such as its exit code; "" if it succeeded.
    refusal : str
        Why the unit, or the rest of it, was not checked; "" if it was.
    output : str
        The last lines that the unit printed.
    """

    unit: CheckUnit
    seconds: float
    findings: tuple[CheckedFinding, ...] = ()
    launches: int = 0
    failure: str = ""
    refusal: str = ""
    output: str = ""


class UnitRunner:
    """Runner of units in child processes, which end with this process, also if it is killed.

    Parameters
    ----------
    folder : Path
        For reports; deleted by the caller, or by a guard if this process is killed.
    max_seconds : float
        Limit on the wall-clock time of a unit.
    include_folders : sequence of Path
        Findings in included files are located there.
    """

    def __init__(self, folder: Path, max_seconds: float, include_folders: Sequence[Path]) -> None:
        self._folder = folder
        self._max_seconds = max_seconds
        self._include_folders = include_folders
        self._children: set[subprocess.Popen[bytes]] = set()
        self._guard = Guard(str(folder))
        self._lock = threading.Lock()
        self._is_stopped = False

    def run(self, units: Sequence[CheckUnit], jobs: int) -> Iterator[UnitResult]:
        """Yield the units' results in their order; on an exception such as Ctrl+C, end all children first."""
        pool = ThreadPoolExecutor(jobs)
        try:
            yield from pool.map(self._run_unit, units, range(len(units)))
        finally:
            with self._lock:
                self._is_stopped = True
                children = list(self._children)
            for child in children:
                end_process(child)
            pool.shutdown(cancel_futures=True)
            self._guard.dismiss()

    def _run_unit(self, unit: CheckUnit, number: int) -> UnitResult:
        report = self._folder / f"{number}.json"
        began = time.monotonic()
        code, output, is_late = self._run_child(unit, report)
        seconds = time.monotonic() - began
        data = _read_report(report)
        if data is None:
            refusal = f"It took longer than {self._max_seconds:g} s." if is_late else _explain_refusal(code, output)
            return UnitResult(unit, seconds, refusal=refusal, output=output)
        locator = SourceLocator(unit.file, self._include_folders)
        findings = build_findings(data, unit, locator)
        launches = len(data["launches"]) if "launches" in data else 1
        failure = refusal = ""
        if unit.command[0] != "simulate":
            reason = _find_own_message(output)
            if reason and (code == REFUSED or not launches):
                refusal = reason
            elif code not in (OK, FAILED) or (code == FAILED and not findings):
                failure = f"It ended with exit code {code}."
            elif not launches:
                refusal = "It launched no kernel."
        return UnitResult(unit, seconds, findings, launches, failure, refusal, output)

    def _run_child(self, unit: CheckUnit, report: Path) -> tuple[int, str, bool]:
        """Run a unit; return its exit code, the end of its output, and whether it exceeded the time limit."""
        command, *words = unit.command
        is_kernel = command == "simulate"
        options = ["--json"] if is_kernel else ["--check", "--report", str(report)]
        with open(report if is_kernel else os.devnull, "wb") as file, self._lock:
            if self._is_stopped:
                return REFUSED, "", False
            child = start_python(
                str(ROOT / "main.py"), command, *options, *words,
                stdin=subprocess.DEVNULL,
                stdout=file if is_kernel else subprocess.PIPE,
                stderr=subprocess.PIPE if is_kernel else subprocess.STDOUT,
                environment=ONE_THREAD, folder=None, own_session=True,
            )  # fmt: skip
            self._children.add(child)
            self._watch_children()
        is_late = threading.Event()

        def end_late_child() -> None:
            is_late.set()
            end_process(child)

        timer = threading.Timer(self._max_seconds, end_late_child)
        timer.start()
        try:
            output = _read_tail(child)
            code = child.wait()
        finally:
            timer.cancel()
            with self._lock:
                self._children.discard(child)
                self._watch_children()
        return code, output, is_late.is_set()

    def _watch_children(self) -> None:
        self._guard.watch(*(child.pid for child in self._children))


def _read_tail(child: subprocess.Popen[bytes]) -> str:
    """Read a child's output to its end, however long, and return the last of it."""
    stream = child.stderr or child.stdout
    assert stream is not None
    tail = b""
    with stream:
        while data := os.read(stream.fileno(), 1 << 16):
            tail = (tail + data)[-_TAIL_BYTES:]
    return tail.decode(errors="replace")


def _read_report(report: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(report.read_bytes())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _find_own_message(output: str) -> str:
    """Return Lockstep's last error message in a unit's output; "" if there is none."""
    messages = [
        line.removeprefix(_OWN_PREFIX)
        for line in output.splitlines()
        if line.startswith(_OWN_PREFIX) and _SUMMARY_MARK not in line
    ]
    return messages[-1] if messages else ""


def _explain_refusal(code: int, output: str) -> str:
    if message := _find_own_message(output):
        return message
    lines = output.strip().splitlines()
    return lines[-1] if lines else f"It ended with {signal_name(code) or f'exit code {code}'}."
