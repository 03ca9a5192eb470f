"""Peers that are programs in CUDA C++: compiled here, while something else is measured, then run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpu.bench.measurement import Measurement
from gpu.declaration.benchmark import Case, CudaProgram

WARM_UP = 3

Amounts = Mapping[str, tuple[float, str]]
"""What one repetition does of a work, in a unit times seconds, and that unit."""


class Programs:
    """Every program of some cases, being compiled.

    Parameters
    ----------
    cases : sequence of Case
    folder : str or Path
        Where the programs go.
    """

    def __init__(self, cases: Sequence[Case], folder: str | Path) -> None:
        self._cases = cases
        self._folder = Path(folder)
        self._compiling: dict[str, subprocess.Popen[str] | OSError] = {}
        for file in dict.fromkeys(program.file for case in cases for program in case.programs):
            self._compiling[file] = self._compile(file)

    def _compile(self, file: str) -> subprocess.Popen[str] | OSError:
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        source = Path(__file__).with_name(file)
        command = [nvcc, "-O3", "-arch=native", "-std=c++17", str(source), "-o", str(self._program(file))]
        try:
            return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            return error

    def _program(self, file: str) -> Path:
        return self._folder / Path(file).stem

    def run(self, amounts: Amounts, seed: int, repetitions: int) -> Iterator[Measurement]:
        """Wait until they are compiled, run them, and yield a row for each."""
        refused = {file: reason for file in self._compiling if (reason := self._refusal(file))}
        for case in self._cases:
            for program in case.programs:
                if program.file in refused:
                    yield Measurement(case.work, program.who, False, (), 0, "", f"failed: {refused[program.file]}")
                else:
                    yield self._row(case, program, amounts.get(case.work, (0.0, "")), seed, repetitions)

    def _refusal(self, file: str) -> str:
        """Return why a file was not compiled; "" where it was."""
        compiling = self._compiling[file]
        if isinstance(compiling, OSError):
            return f"{compiling.filename or 'nvcc'}: {compiling.strerror}"
        errors = compiling.communicate()[1]
        return "" if not compiling.returncode else next(iter(errors.strip().splitlines()), "it does not compile")

    def _row(
        self, case: Case, program: CudaProgram, amount: tuple[float, str], seed: int, repetitions: int
    ) -> Measurement:
        given = map(str, (self._program(program.file), *program.arguments, seed, WARM_UP, repetitions))
        try:
            done = subprocess.run([*given], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", "") or error).strip().splitlines()[0]
            return Measurement(case.work, program.who, False, (), 0, "", f"failed: {reason}")
        words = done.stdout.split()
        who = f"{program.who} {words.pop(0)}" if program.versioned else program.who
        return Measurement(case.work, who, False, tuple(map(float, words)), *amount)
