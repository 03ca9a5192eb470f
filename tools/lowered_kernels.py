"""Whether the front end takes the kernels that nvcc takes: of public files that nvcc compiles, each kernel is lowered.

Kernels are those that nvcc makes machine code of, so that of a template there are the instances that the file launches.
What headers of the toolkit define is left out.
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

from gpu.bounds import bounded
from gpu.errors import LockstepError
from gpu.files.sources import read_source
from gpu.program.names import kernel_name
from gpu.simulator.module import SimulatedModule

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = 120
_SECONDS = 300
"""Of computing, that nvcc, or the front end, may take for a file."""
_NVCC = (
    *("nvcc", "-arch=sm_90", "-std=c++17", "-w", "-ptx"),
    "-DcudaThreadSynchronize=cudaDeviceSynchronize",  # which CUDA 13 has no more, and much of Rodinia calls
)
_OF_TOOLKIT = re.compile(r"^(?:thrust|cub|cuda|cooperative_groups|cutlass|nvcuda)::")
_INTERNAL = re.compile(r"\b(?:_INTERNAL|_GLOBAL_)\w*::|\(anonymous namespace\)::")
_ENTRY = re.compile(r"^\s*(?:\.visible |\.weak )?\.entry (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class CheckedFile:
    """What came of a file.

    Parameters
    ----------
    name : str
        Below the folder of its collection.
    lowered : tuple of str
        The kernels that are, as a user reads them.
    refused : dict of str to str
        Why each of the others is not.
    """

    name: str
    lowered: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many kernels it has."""
        return len(self.lowered) + len(self.refused)


def cuda_files(folder: Path, within: str) -> list[Path]:
    """Return the CUDA files of a collection; `within` is a pattern of its folders."""
    return [path for top in sorted(folder.glob(within)) for path in sorted(top.rglob("*.cu")) if path.is_file()]


def options_of(file: Path, top: Path) -> tuple[list[Path], dict[str, str]]:
    """Return the folders of includes and the macros that the nearest makefile names in plain words."""
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


def entries(file: Path, top: Path) -> list[str] | None:
    """Return the symbols of the kernels that nvcc makes of a file; None where it does not compile."""
    dirs, macros = options_of(file, top)
    include = [f"-I{each}" for each in (file.parent, *dirs)]
    define = [f"-D{name}={value}" for name, value in macros.items()]
    with tempfile.TemporaryDirectory() as held:
        target = Path(held, "made.ptx")
        command = [*_NVCC, *include, *define, "-o", str(target), str(file)]
        if _run(command).returncode:
            return None
        return _ENTRY.findall(target.read_text("utf-8", "replace"))


def _run(command: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
    limited = ["/bin/sh", "-c", f'ulimit -t {_SECONDS}; exec "$@"', "sh", *command]
    return subprocess.run(limited, input=given, capture_output=True, text=True, errors="replace", check=False)


def names_of(symbols: Sequence[str]) -> dict[str, str]:
    """Return the kernels that symbols stand for, as they are written in C++; those of the toolkit are left out."""
    shown = [_INTERNAL.sub("", each) for each in _run(["c++filt"], "\n".join(symbols)).stdout.splitlines()]
    found = {symbol: kernel_name(each, 0) for symbol, each in zip(symbols, shown, strict=True)}
    return {symbol: name for symbol, name in found.items() if not _OF_TOOLKIT.match(name)}


def checked(file: Path, top: Path, symbols: Sequence[str]) -> CheckedFile:
    """Lower each kernel of a file that nvcc has, in a process of its own."""
    names = names_of(symbols)
    command = [sys.executable, "-m", "tools.lowered_kernels", str(file), str(top)]
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -t {_SECONDS}; exec "$@"', "sh", *command],
        input=json.dumps(names), capture_output=True, text=True, errors="replace", check=False, cwd=ROOT,
    )  # fmt: skip
    said = dict(json.loads(line) for line in done.stdout.splitlines())
    told = (*done.stderr.strip().splitlines(), f"it ended with {done.returncode}")[-1 if done.stderr.strip() else 0]
    reasons = {symbol: said.get(symbol, told) for symbol in names}
    of_one_name = Counter(names.values())
    shown = {symbol: name if of_one_name[name] == 1 else f"{name} {symbol}" for symbol, name in names.items()}
    return CheckedFile(
        str(file.relative_to(top)),
        tuple(shown[symbol] for symbol, reason in reasons.items() if not reason),
        {shown[symbol]: reason for symbol, reason in reasons.items() if reason},
    )


def _lower_all(file: Path, top: Path, names: Mapping[str, str]) -> None:
    """Print a line for each kernel: its symbol, and why it is not lowered."""
    dirs, macros = options_of(file, top)
    module: SimulatedModule | None = None
    for symbol, name in names.items():
        reason = ""
        try:
            if module is None:
                with bounded():
                    module = SimulatedModule(read_source(file), file, macros, dirs, tolerant=True)
            with bounded():
                module.kernel(module.symbols.get(symbol, name))
        except LockstepError as error:
            reason = error.message
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        print(json.dumps([symbol, reason]), flush=True)


def sample(
    files: Sequence[Path],
    top: Path,
    wanted: int,
    seed: int,
    known: dict[str, list[str] | None],
    keep: Callable[[], None],
) -> Iterator[tuple[Path, list[str]]]:
    """Yield as many files as are wanted, at random, of those that nvcc compiles and that have kernels.

    Parameters
    ----------
    files : sequence of Path
    top : Path
    wanted, seed : int
    known : dict
        What nvcc said of files before; what it says now is added.
    keep : callable
        Called when something was added.
    """
    drawn = list(files)
    random.Random(seed).shuffle(drawn)
    found = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for first in range(0, len(drawn), 8):
            if found >= wanted:
                return
            some = drawn[first : first + 8]
            new = [file for file in some if str(file.relative_to(top)) not in known]
            for file, symbols in zip(new, pool.map(lambda each: entries(each, top), new), strict=True):
                known[str(file.relative_to(top))] = symbols
            if new:
                keep()
            for file in some:
                symbols = known[str(file.relative_to(top))]
                if symbols and names_of(symbols) and found < wanted:
                    found += 1
                    yield file, symbols


def compiler_is_here() -> bool:
    """Whether there is an nvcc."""
    return shutil.which("nvcc") is not None


if __name__ == "__main__":
    _lower_all(Path(sys.argv[1]), Path(sys.argv[2]), json.load(sys.stdin))
