"""Peers that are programs in CUDA C++: compiled here, while something else is measured, then run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from gpu.bench.measurement import Measurement
from gpu.declaration.benchmark import Case, CudaProgram

WARM_UP = 3

Amounts = Mapping[str, tuple[float, str]]
"""What one repetition does of a work, in a unit times seconds, and that unit."""

_Build = tuple[str, tuple[str, ...]]
"""A file, and the options that it is compiled with."""


_NEWEST = "nvidia/*/include/cccl/cub/version.cuh"
"""Where PyPI's nvidia-cuda-cccl puts a CUB that is newer than the installed toolkit's."""


def newest_headers() -> Path | None:
    """Return the folder of nvidia-cuda-cccl's headers; None where it is not installed."""
    found = (header for folder in sys.path for header in sorted(Path(folder).glob(_NEWEST)))
    return next((header.resolve().parents[1] for header in found), None)


class Programs:
    """Every program of some cases, being compiled until they are left.

    Parameters
    ----------
    cases : sequence of Case
    folder : str or Path
        Where the programs go.
    """

    def __init__(self, cases: Sequence[Case], folder: str | Path) -> None:
        self._cases = cases
        self._folder = Path(folder)
        self._newest = newest_headers()
        self._compiling: dict[_Build, subprocess.Popen[str] | OSError] = {}
        programs = (program for case in cases for program in case.programs)
        for build in dict.fromkeys(build for program in programs for build in self._builds(program)):
            self._compiling[build] = self._compile(build)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._compiling.values():
            if not isinstance(each, OSError):
                with each:  # which closes what is open, and waits
                    each.kill()

    def _builds(self, program: CudaProgram) -> tuple[_Build, ...]:
        """Return how a program is compiled: what has a version with the toolkit's headers, and with newer ones."""
        own = program.file, program.options
        if not program.versioned or self._newest is None:
            return (own,)
        return own, (program.file, (*program.options, f"-I{self._newest}"))

    def _compile(self, build: _Build) -> subprocess.Popen[str] | OSError:
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        file, options = build
        source = Path(__file__).with_name(file)
        command = [nvcc, "-O3", "-arch=native", "-std=c++17", *options, str(source), "-o", str(self._program(build))]
        try:
            return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            return error

    def _program(self, build: _Build) -> Path:
        file, options = build
        return self._folder / "".join((Path(file).stem, *(each.replace("/", "-") for each in options)))

    def run(self, amounts: Amounts, seed: int, repetitions: int) -> Iterator[Measurement]:
        """Wait until they are compiled, run them, and yield a row for each."""
        refused = {build: reason for build in self._compiling if (reason := self._refusal(build))}
        for case in self._cases:
            for program in case.programs:
                for build in self._builds(program):
                    if build in refused:
                        yield Measurement(case.work, program.who, False, (), 0, "", f"failed: {refused[build]}")
                    else:
                        yield self._row(case, program, build, amounts.get(case.work, (0.0, "")), seed, repetitions)

    def _refusal(self, build: _Build) -> str:
        """Return why a file was not compiled; "" where it was."""
        compiling = self._compiling[build]
        if isinstance(compiling, OSError):
            return f"{compiling.filename or 'nvcc'}: {compiling.strerror}"
        errors = compiling.communicate()[1]
        return "" if not compiling.returncode else next(iter(errors.strip().splitlines()), "it does not compile")

    def _row(
        self,
        case: Case,
        program: CudaProgram,
        build: _Build,
        amount: tuple[float, str],
        seed: int,
        repetitions: int,
    ) -> Measurement:
        given = map(str, (self._program(build), *program.arguments, seed, WARM_UP, repetitions))
        try:
            done = subprocess.run([*given], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", "") or error).strip().splitlines()[0]
            return Measurement(case.work, program.who, False, (), 0, "", f"failed: {reason}")
        words = done.stdout.split()
        who = f"{program.who} {words.pop(0)}" if program.versioned else program.who
        return Measurement(case.work, who, False, tuple(map(float, words)), *amount)
