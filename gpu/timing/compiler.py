"""What nvcc makes of a kernel file, where it is installed: PTX, and the registers of each kernel. It needs no GPU."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from gpu.devices.probe import find_nvcc
from gpu.errors import CompileError
from gpu.simulator import disk

_SECONDS = 120


@dataclass(frozen=True)
class AssembledFile:
    """PTX, and by kernel the registers of a thread."""

    ptx: str
    registers: dict[str, int]


def assemble(
    text: str, capability: str, defines: Mapping[str, int | str], include_dirs: Sequence[Path], name: str
) -> AssembledFile | None:
    """Compile a kernel file; None where there is no nvcc. What was made before is taken from the cache.

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
    architecture = f"-arch=sm_{capability.replace('.', '')}"
    options = ["-std=c++17", "-O3", architecture]
    options += [f"-D{key}={value}" for key, value in sorted(defines.items())]
    options += [f"-I{folder}" for folder in include_dirs]
    if "<<<" in text:
        options.append("-rdc=true")
    headers = [str(path.stat().st_mtime_ns) for folder in include_dirs for path in sorted(folder.glob("*.*h"))]
    key = hashlib.sha256(json.dumps([text, options, headers, _version(nvcc)]).encode()).hexdigest()
    place = disk.folder() / f"{key}.ptx"
    kept = disk.kept(place, key)
    if kept is not None:
        return AssembledFile(**json.loads(kept))
    made = _compiled(text, nvcc, options, architecture, name)
    disk.keep(place, key, json.dumps(asdict(made)).encode())
    return made


@cache
def _version(nvcc: str) -> str:
    done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False, timeout=_SECONDS)
    return done.stdout


def _compiled(text: str, nvcc: str, options: Sequence[str], architecture: str, name: str) -> AssembledFile:
    with tempfile.TemporaryDirectory() as folder:
        source, ptx = Path(folder) / "kernel.cu", Path(folder) / "kernel.ptx"
        source.write_text(text, "utf-8")
        _run([nvcc, "-ptx", *options, str(source), "-o", str(ptx)], name)
        ptxas = Path(nvcc).with_name("ptxas" + Path(nvcc).suffix)
        log = _run([str(ptxas), "-v", "-c", architecture, str(ptx), "-o", f"{folder}/kernel.cubin"], name)
        return AssembledFile(ptx.read_text("utf-8"), _registers(log))


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


def _registers(log: str) -> dict[str, int]:
    found: dict[str, int] = {}
    kernel = ""
    for line in log.splitlines():
        if entry := re.search(r"Compiling entry function '(\S+)'", line):
            kernel = entry[1]
        if used := re.search(r"Used (\d+) registers", line):
            found[kernel] = int(used[1])
    return found
