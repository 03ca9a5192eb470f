"""What nvcc makes of a kernel file, where it is installed: PTX, machine instructions and what they need. No GPU is."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

from gpu.devices.architecture import architecture as architecture_of
from gpu.devices.probe import find_nvcc
from gpu.errors import CompileError
from gpu.simulator import disk
from gpu.timing.sass import cubin
from gpu.timing.sass.cubin import MachineInstruction

_SECONDS = 120


@dataclass(frozen=True)
class MachineKernel:
    """What the assembler made of a kernel.

    Parameters
    ----------
    registers : int
        Of a thread.
    spilled_bytes : int
        That a thread stores to local memory because registers are few.
    instructions : tuple of MachineInstruction
        As they lie in memory.
    """

    registers: int
    spilled_bytes: int
    instructions: tuple[MachineInstruction, ...]


@dataclass(frozen=True)
class AssembledFile:
    """PTX, and what the assembler made of each kernel in it, by its name there."""

    ptx: str
    kernels: dict[str, MachineKernel]

    def as_json(self) -> str:
        rows = {
            name: [kernel.registers, kernel.spilled_bytes, [astuple(each) for each in kernel.instructions]]
            for name, kernel in self.kernels.items()
        }
        return json.dumps([self.ptx, rows])

    @staticmethod
    def of_json(text: bytes) -> AssembledFile:
        ptx, rows = json.loads(text)
        made = {
            name: MachineKernel(registers, spilled, tuple(MachineInstruction(*each) for each in instructions))
            for name, (registers, spilled, instructions) in rows.items()
        }
        return AssembledFile(ptx, made)


def assemble(
    text: str, capability: str, defines: Mapping[str, int | str], include_dirs: Sequence[Path], name: str
) -> AssembledFile | None:
    """Compile a kernel file; None where there is no nvcc. What was made before is taken from the cache.

    PTX and machine instructions know of which line of the file they are.

    Parameters
    ----------
    text : str
    capability : str
        The GPU's compute capability, such as "9.0".
    defines : mapping
        Macros.
    include_dirs : sequence of Path
        Where headers are.
    name : str
        The file's, for messages.

    Raises
    ------
    CompileError
        With the compiler's log.
    """
    nvcc = find_nvcc()
    if not nvcc:
        return None
    major, minor = map(int, capability.split("."))
    architecture = f"-arch={architecture_of((major, minor), text)}"
    options = ["-std=c++17", "-O3", "-lineinfo", architecture]
    options += [f"-D{key}={value}" for key, value in sorted(defines.items())]
    options += [f"-I{folder}" for folder in include_dirs]
    if "<<<" in text:
        options.append("-rdc=true")
    headers = [str(path.stat().st_mtime_ns) for folder in include_dirs for path in sorted(folder.glob("*.*h"))]
    file = Path(name).name
    about = [text, file, options, _assembling(options), headers, _version(nvcc)]
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    place = disk.folder() / f"{key}.sass"
    kept = disk.kept(place, key)
    if kept is not None:
        return AssembledFile.of_json(kept)
    made = _compiled(text, nvcc, options, capability, file)
    disk.keep(place, key, made.as_json().encode())
    return made


@cache
def _version(nvcc: str) -> str:
    done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False, timeout=_SECONDS)
    return done.stdout


def _assembling(options: Sequence[str]) -> list[str]:
    """Return the assembler's options: other code, of more registers, is made of what is still to be linked."""
    return ["-v", "-lineinfo", *(["-c"] if "-rdc=true" in options else [])]


def _compiled(text: str, nvcc: str, options: Sequence[str], capability: str, name: str) -> AssembledFile:
    with tempfile.TemporaryDirectory() as folder:
        source, ptx, image = (Path(folder) / f"kernel.{kind}" for kind in ("cu", "ptx", "cubin"))
        # Whatever a file is called, and however its text begins, its lines are known by its name.
        source.write_text(f"#line 1 {json.dumps(name)}\n{text}", "utf-8")
        _run([nvcc, "-ptx", *options, str(source), "-o", str(ptx)], name)
        ptxas = Path(nvcc).with_name("ptxas" + Path(nvcc).suffix)
        architecture = next(option for option in options if option.startswith("-arch"))
        log = _run([str(ptxas), *_assembling(options), architecture, str(ptx), "-o", str(image)], name)
        code = cubin.read(image.read_bytes(), name, capability)
        needs = _needs(log)
        made = {
            kernel: MachineKernel(*needs[kernel], tuple(instructions))
            for kernel, instructions in code.items()
            if kernel in needs
        }
        return AssembledFile(ptx.read_text("utf-8"), made)


def _run(command: Sequence[str], name: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"{name} was not compiled for the model: {error}.") from None
    log = done.stdout + done.stderr
    if done.returncode:
        first = next((line for line in log.splitlines() if "error" in line), "no reason given")
        raise CompileError(f"nvcc rejects {name}: {first.strip()}", detail=log)
    return log


def _needs(log: str) -> dict[str, tuple[int, int]]:
    """Return each kernel's registers, and the bytes that it spills."""
    found: dict[str, tuple[int, int]] = {}
    kernel, spilled = "", 0
    for line in log.splitlines():
        if entry := re.search(r"Compiling entry function '(\S+)'", line):
            kernel, spilled = entry[1], 0
        if stored := re.search(r"(\d+) bytes spill stores", line):
            spilled = int(stored[1])
        if used := re.search(r"Used (\d+) registers", line):
            found[kernel] = int(used[1]), spilled
    return found
