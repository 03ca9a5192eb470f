"""Check that the front end supports the kernels that nvcc compiles: lower each kernel of public CUDA files.

The kernels are those for which nvcc generates machine code, so templates count with the instances that the file
launches. Kernels that the toolkit's headers define are excluded.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from gpu.base.errors import LockstepError
from gpu.base.paths import ROOT
from gpu.base.resource_limits import limit_resources
from gpu.files.sources import read_source
from gpu.hosts.program.names import kernel_name
from gpu.simulator.simulated_module import SimulatedModule

SAMPLE = 120
_LIMIT_S = 300
"""Limit of computing time for nvcc and for the front end, per file."""
_NVCC = (
    *("nvcc", "-arch=sm_90", "-std=c++17", "-w", "-ptx"),
    "-DcudaThreadSynchronize=cudaDeviceSynchronize",  # removed in CUDA 13, but called by much of Rodinia
)
_TOOLKIT_NAME = re.compile(r"^(?:thrust|cub|cuda|cooperative_groups|cutlass|nvcuda)::")
_INTERNAL = re.compile(r"\b(?:_INTERNAL|_GLOBAL_)\w*::|\(anonymous namespace\)::")
_ENTRY = re.compile(r"^\s*(?:\.visible |\.weak )?\.entry (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class CheckedFile:
    """Lowered and refused kernels of a file.

    Parameters
    ----------
    name : str
        Path below the folder of its collection.
    lowered : tuple of str
        Lowered kernels, as a user reads their names.
    refused : dict of str to str
        The reason for each of the others.
    """

    name: str
    lowered: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of kernels."""
        return len(self.lowered) + len(self.refused)


def list_cuda_files(folder: Path, folder_pattern: str) -> list[Path]:
    """Return the CUDA files of a collection; `folder_pattern` is a glob pattern of its folders."""
    return [path for top in sorted(folder.glob(folder_pattern)) for path in sorted(top.rglob("*.cu")) if path.is_file()]


def find_compile_options(file: Path, top: Path) -> tuple[list[Path], dict[str, str]]:
    """Return the include folders and macros that the nearest makefile names without variables."""
    for folder in (file.parent, *file.parent.parents):
        for name in ("Makefile", "makefile"):
            if (folder / name).is_file():
                text = (folder / name).read_text("utf-8", "replace")
                words = re.findall(r"(?<!\S)(-[ID])\s*([^\s$\"'\\#`]+)(?=\s|$)", text)
                dirs = [folder / word for option, word in words if option == "-I"]
                pairs = [word.partition("=") for option, word in words if option == "-D" and word != "DEBUG"]
                macros = {key: value if equals else "1" for key, equals, value in pairs}
                return [each for each in dirs if each.is_dir()], macros
        if folder == top:
            break
    return [], {}


def list_compiled_kernels(file: Path, top: Path) -> list[str] | None:
    """Return the symbols of the kernels that nvcc generates for a file; None if it does not compile."""
    dirs, macros = find_compile_options(file, top)
    include = [f"-I{each}" for each in (file.parent, *dirs)]
    define = [f"-D{name}={value}" for name, value in macros.items()]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "kernels.ptx")
        command = [*_NVCC, *include, *define, "-o", str(target), str(file)]
        if _run(command).returncode:
            return None
        return _ENTRY.findall(target.read_text("utf-8", "replace"))


def _run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    limited = ["/bin/sh", "-c", f'ulimit -t {_LIMIT_S}; exec "$@"', "sh", *command]
    return subprocess.run(limited, input=text, capture_output=True, text=True, errors="replace", check=False)


def demangle_names(symbols: Sequence[str]) -> dict[str, str]:
    """Return the kernels' C++ names by their symbols, without those of the toolkit."""
    demangled = [_INTERNAL.sub("", line) for line in _run(["c++filt"], "\n".join(symbols)).stdout.splitlines()]
    names = {symbol: kernel_name(each, 0) for symbol, each in zip(symbols, demangled, strict=True)}
    return {symbol: name for symbol, name in names.items() if not _TOOLKIT_NAME.match(name)}


def check_file(file: Path, top: Path, symbols: Sequence[str]) -> CheckedFile:
    """Lower each of nvcc's kernels of a file, in a separate process."""
    names = demangle_names(symbols)
    command = [sys.executable, "-m", "tools.public_programs.lowered_kernels", str(file), str(top)]
    process = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -t {_LIMIT_S}; exec "$@"', "sh", *command],
        input=json.dumps(names), capture_output=True, text=True, errors="replace", check=False, cwd=ROOT,
    )  # fmt: skip
    printed_reasons = dict(json.loads(line) for line in process.stdout.splitlines())
    errors = process.stderr.strip()
    failure = (*errors.splitlines(), f"it ended with {process.returncode}")[-1 if errors else 0]
    reasons = {symbol: printed_reasons.get(symbol, failure) for symbol in names}
    counts = Counter(names.values())
    shown = {symbol: name if counts[name] == 1 else f"{name} {symbol}" for symbol, name in names.items()}
    return CheckedFile(
        str(file.relative_to(top)),
        tuple(shown[symbol] for symbol, reason in reasons.items() if not reason),
        {shown[symbol]: reason for symbol, reason in reasons.items() if reason},
    )


def _lower_all(file: Path, top: Path, names: Mapping[str, str]) -> None:
    """Print a line for each kernel: its symbol, and why it cannot be lowered, or ""."""
    dirs, macros = find_compile_options(file, top)
    module: SimulatedModule | None = None
    for symbol, name in names.items():
        reason = ""
        try:
            if module is None:
                with limit_resources():
                    module = SimulatedModule(read_source(file), file, macros, dirs, tolerant=True)
            with limit_resources():
                module.kernel(module.symbols.get(symbol, name))
        except LockstepError as error:
            reason = error.message
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        print(json.dumps([symbol, reason]), flush=True)


def sample_files(
    files: Sequence[Path],
    top: Path,
    sample_size: int,
    seed: int,
    symbols_by_file: dict[str, list[str] | None],
    save: Callable[[], None],
) -> Iterator[tuple[Path, list[str]]]:
    """Yield a random sample of the files that nvcc compiles and that have kernels.

    Parameters
    ----------
    top : Path
        Folder of the collection.
    symbols_by_file : dict
        nvcc's symbols of each file from earlier runs; new ones are added.
    save : callable
        Called after an addition.
    """
    shuffled = list(files)
    random.Random(seed).shuffle(shuffled)
    count = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for first in range(0, len(shuffled), 8):
            if count >= sample_size:
                return
            batch = shuffled[first : first + 8]
            new = [file for file in batch if str(file.relative_to(top)) not in symbols_by_file]
            for file, symbols in zip(new, pool.map(lambda each: list_compiled_kernels(each, top), new), strict=True):
                symbols_by_file[str(file.relative_to(top))] = symbols
            if new:
                save()
            for file in batch:
                symbols = symbols_by_file[str(file.relative_to(top))]
                if symbols and demangle_names(symbols) and count < sample_size:
                    count += 1
                    yield file, symbols


def has_nvcc() -> bool:
    """Return whether nvcc is on PATH."""
    return shutil.which("nvcc") is not None


if __name__ == "__main__":
    _lower_all(Path(sys.argv[1]), Path(sys.argv[2]), json.load(sys.stdin))
