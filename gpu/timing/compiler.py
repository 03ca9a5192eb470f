"""Compile a kernel file with nvcc, if it is installed: PTX, machine instructions and resources. No GPU is needed."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from pathlib import Path

from gpu.base import folders
from gpu.base.devices.architecture import target_architecture as architecture_of
from gpu.base.devices.probe import find_nvcc
from gpu.base.errors import CompileError
from gpu.files.sources import format_macros
from gpu.simulator import disk
from gpu.timing.sass import cubin
from gpu.timing.sass.cubin import MachineInstruction

_TIMEOUT_S = 120


@dataclass(frozen=True)
class MachineKernel:
    """The assembler's output for a kernel.

    Parameters
    ----------
    registers : int
        Registers per thread.
    spilled_bytes : int
        Bytes per thread that are stored to local memory for lack of registers.
    instructions : tuple of MachineInstruction
        The instructions in memory order.
    """

    registers: int
    spilled_bytes: int
    instructions: tuple[MachineInstruction, ...]


@dataclass(frozen=True)
class AssembledFile:
    """PTX, and the assembler's output for each of its kernels by name."""

    ptx: str
    kernels: dict[str, MachineKernel]

    def to_json(self) -> str:
        get_values = attrgetter(*(each.name for each in fields(MachineInstruction)))
        rows = {
            name: [kernel.registers, kernel.spilled_bytes, [*map(get_values, kernel.instructions)]]
            for name, kernel in self.kernels.items()
        }
        return json.dumps([self.ptx, rows])

    @staticmethod
    def from_json(text: bytes) -> AssembledFile:
        ptx, rows = json.loads(text)
        kernels = {
            name: MachineKernel(
                registers, spilled, tuple(MachineInstruction(*instruction) for instruction in instructions)
            )
            for name, (registers, spilled, instructions) in rows.items()
        }
        return AssembledFile(ptx, kernels)


def assemble(
    text: str, capability: str, defines: Mapping[str, int | str], include_dirs: Sequence[Path], name: str
) -> AssembledFile | None:
    """Compile a kernel file, or load it from the cache; return None if nvcc is not installed.

    PTX and machine instructions contain the file's line numbers.

    Parameters
    ----------
    text : str
    capability : str
        The GPU's compute capability, such as "9.0".
    defines : mapping
        Macros.
    include_dirs : sequence of Path
        Folders with headers.
    name : str
        The file's name, for error messages.

    Raises
    ------
    CompileError
        The file does not compile; contains the compiler's log.
    """
    nvcc = find_nvcc()
    if not nvcc:
        return None
    major, minor = map(int, capability.split("."))
    architecture = f"-arch={architecture_of((major, minor), text)}"
    options = ["-std=c++17", "-O3", "-lineinfo", architecture]
    options += format_macros(defines)
    if "include" not in text:
        include_dirs = ()  # the same code in every folder
    options += [f"-I{folder}" for folder in include_dirs]
    if "<<<" in text:
        options.append("-rdc=true")
    headers = [str(path.stat().st_mtime_ns) for folder in include_dirs for path in sorted(folder.glob("*.*h"))]
    file = Path(name).name
    cache_inputs = [text, file, options, _build_assembler_options(options), headers, _read_version(nvcc)]
    key = hashlib.sha256(json.dumps(cache_inputs).encode()).hexdigest()
    cache_path = folders.cache_folder() / f"{key}.sass"
    cached = disk.read_entry(cache_path, key)
    if cached is not None:
        return AssembledFile.from_json(cached)
    assembled = _compile(text, nvcc, options, capability, file)
    disk.write_entry(cache_path, key, assembled.to_json().encode())
    return assembled


@cache
def _read_version(nvcc: str) -> str:
    process = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    return process.stdout


def _build_assembler_options(options: Sequence[str]) -> list[str]:
    """Return the assembler's options; for relocatable code, the generated code differs and needs more registers."""
    return ["-v", "-lineinfo", *(["-c"] if "-rdc=true" in options else [])]


def _compile(text: str, nvcc: str, options: Sequence[str], capability: str, name: str) -> AssembledFile:
    with tempfile.TemporaryDirectory() as folder:
        source, ptx, image = (Path(folder) / f"kernel.{kind}" for kind in ("cu", "ptx", "cubin"))
        # The #line directive sets the file name, regardless of the temporary file's name.
        source.write_text(f"#line 1 {json.dumps(name)}\n{text}", "utf-8")
        _run_compiler([nvcc, "-ptx", *options, str(source), "-o", str(ptx)], name)
        ptxas = Path(nvcc).with_name("ptxas" + Path(nvcc).suffix)
        architecture = next(option for option in options if option.startswith("-arch"))
        log = _run_compiler(
            [str(ptxas), *_build_assembler_options(options), architecture, str(ptx), "-o", str(image)], name
        )
        code = cubin.read_cubin(image.read_bytes(), name, capability)
        resources = _parse_resources(log)
        kernels = {
            kernel: MachineKernel(*resources[kernel], tuple(instructions))
            for kernel, instructions in code.items()
            if kernel in resources
        }
        return AssembledFile(ptx.read_text("utf-8"), kernels)


def _run_compiler(command: Sequence[str], name: str) -> str:
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"{name} was not compiled for the timing model: {error}.") from None
    log = process.stdout + process.stderr
    if process.returncode:
        first = next((line for line in log.splitlines() if "error" in line), "no reason given")
        raise CompileError(f"nvcc rejects {name}: {first.strip()}", detail=log)
    return log


def _parse_resources(log: str) -> dict[str, tuple[int, int]]:
    """Return each kernel's registers, and its spilled bytes."""
    resources: dict[str, tuple[int, int]] = {}
    kernel, spilled = "", 0
    for line in log.splitlines():
        if entry := re.search(r"Compiling entry function '(\S+)'", line):
            kernel, spilled = entry[1], 0
        if stored := re.search(r"(\d+) bytes spill stores", line):
            spilled = int(stored[1])
        if used := re.search(r"Used (\d+) registers", line):
            resources[kernel] = int(used[1]), spilled
    return resources
