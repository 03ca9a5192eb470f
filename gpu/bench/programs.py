"""Peers that are CUDA C++ programs: compiled while our variants are measured, then run."""

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
"""By work: the amount of one repetition, in a unit times seconds, and that unit."""

_Build = tuple[str, tuple[str, ...]]
"""A file and its compiler options."""


_CUB_HEADER_PATTERN = "nvidia/*/include/cccl/cub/version.cuh"
"""Path of CUB in PyPI's nvidia-cuda-cccl, which is newer than the installed toolkit's."""


def find_newest_headers() -> Path | None:
    """Return the folder of nvidia-cuda-cccl's headers; None if it is not installed."""
    headers = (header for folder in sys.path for header in sorted(Path(folder).glob(_CUB_HEADER_PATTERN)))
    return next((header.resolve().parents[1] for header in headers), None)


class PeerPrograms:
    """All programs of some cases, compiled in the background; leaving the context stops compilers still running.

    Parameters
    ----------
    folder : str or Path
        Folder for the compiled programs.
    """

    def __init__(self, cases: Sequence[Case], folder: str | Path) -> None:
        self._cases = cases
        self._folder = Path(folder)
        self._newest_headers = find_newest_headers()
        self._compiling: dict[_Build, subprocess.Popen[str] | OSError] = {}
        programs = (program for case in cases for program in case.programs)
        for build in dict.fromkeys(build for program in programs for build in self._builds(program)):
            self._compiling[build] = self._compile(build)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._compiling.values():
            if not isinstance(each, OSError):
                with each:  # closes its pipes and waits for it
                    each.kill()

    def _builds(self, program: CudaProgram) -> tuple[_Build, ...]:
        """Return a program's builds: one, or two for a versioned one, with the toolkit's headers and newer ones."""
        build = program.file, program.options
        if not program.prints_version or self._newest_headers is None:
            return (build,)
        return build, (program.file, (*program.options, f"-I{self._newest_headers}"))

    def _compile(self, build: _Build) -> subprocess.Popen[str] | OSError:
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        file, options = build
        source = Path(__file__).parent / "peer_programs" / file
        command = [
            nvcc,
            "-O3",
            "-arch=native",
            "-std=c++17",
            *options,
            str(source),
            "-o",
            str(self._program_path(build)),
        ]
        try:
            return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            return error

    def _program_path(self, build: _Build) -> Path:
        file, options = build
        return self._folder / "".join((Path(file).stem, *(option.replace("/", "-") for option in options)))

    def run(self, amounts: Amounts, seed: int, repetitions: int) -> Iterator[Measurement]:
        """Wait for the compilers, run the programs, and yield their rows."""
        failures = {build: reason for build in self._compiling if (reason := self._compile_failure(build))}
        for case in self._cases:
            for program in case.programs:
                for build in self._builds(program):
                    if build in failures:
                        yield Measurement(case.work, program.name, False, (), 0, "", f"failed: {failures[build]}")
                    else:
                        yield self._run_program(
                            case, program, build, amounts.get(case.work, (0.0, "")), seed, repetitions
                        )

    def _compile_failure(self, build: _Build) -> str:
        """Return why a file was not compiled; "" if it was."""
        compiling = self._compiling[build]
        if isinstance(compiling, OSError):
            return f"{compiling.filename or 'nvcc'}: {compiling.strerror}"
        errors = compiling.communicate()[1]
        return "" if not compiling.returncode else next(iter(errors.strip().splitlines()), "it does not compile")

    def _run_program(
        self,
        case: Case,
        program: CudaProgram,
        build: _Build,
        amount: tuple[float, str],
        seed: int,
        repetitions: int,
    ) -> Measurement:
        command = map(str, (self._program_path(build), *program.arguments, seed, WARM_UP, repetitions))
        try:
            process = subprocess.run([*command], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", "") or error).strip().splitlines()[0]
            return Measurement(case.work, program.name, False, (), 0, "", f"failed: {reason}")
        words = process.stdout.split()
        name = f"{program.name} {words.pop(0)}" if program.prints_version else program.name
        return Measurement(case.work, name, False, tuple(map(float, words)), *amount)
