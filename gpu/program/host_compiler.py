"""The machine's C++ compiler, which makes a shared object of a program's host code."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from gpu.errors import CompileError, EngineUnavailableError
from gpu.program.host_text import rewritten
from gpu.simulator import disk

HEADERS = Path(__file__).parent / "headers"
_SHARED_HEADERS = Path(__file__).parents[1] / "simulator" / "shim"
"""What kernels include, host code includes too: its bodies for the device are left out as a program's are."""
_COMPILERS = ("g++", "clang++", "c++")
_EMPTY = (
    *("cuda.h", "cuda_runtime_api.h", "device_launch_parameters.h", "cuda_profiler_api.h", "vector_types.h"),
    *("vector_functions.h", "math_constants.h", "math_functions.h", "device_functions.h", "builtin_types.h"),
    *("sm_60_atomic_functions.h", "cuda_texture_types.h", "texture_types.h", "channel_descriptor.h"),
    *("device_atomic_functions.h", "texture_fetch_functions.h", "cuda_device_runtime_api.h", "cuda_surface_types.h"),
    *("sm_20_intrinsics.h", "sm_30_intrinsics.h", "sm_35_intrinsics.h", "cudaProfiler.h", "nvToolsExt.h"),
    *("nvtx3/nvToolsExt.h", "crt/device_functions.h", "math_functions.hpp", "vector_functions.hpp"),
)
"""Headers of CUDA's whose names are all in cuda_runtime.h, which every file begins with."""
_DEFINES = ("__CUDACC__=1", "__NVCC__=1", "__CUDACC_VER_MAJOR__=13", "__CUDACC_VER_MINOR__=0")
_WITH_THRUST = (
    *("THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP", "LOCKSTEP_THRUST=1"),
    *("CCCL_DISABLE_FP16_SUPPORT", "CCCL_DISABLE_BF16_SUPPORT", "CCCL_DISABLE_NVFP8_SUPPORT"),
)
"""Thrust's own C++ back end, which works on memory that this processor reaches, and is made by its compiler."""
_CUDA = (".cu", ".cuh")
_C = (".c",)
_SHOWN = 40
"""Lines of the compiler's complaints that are shown."""


@dataclass(frozen=True)
class HostOptions:
    """How host code is compiled.

    Parameters
    ----------
    include_dirs : tuple of Path
    defines : dict of str to str
    libraries : tuple of str
        What it is linked with: "m".
    """

    include_dirs: tuple[Path, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    libraries: tuple[str, ...] = ()


@cache
def compiler() -> str:
    """Return the C++ compiler.

    Raises
    ------
    EngineUnavailableError
        There is none.
    """
    named = os.environ.get("CXX", "")
    found = next((path for each in (named, *_COMPILERS) if each and (path := shutil.which(each))), None)
    if found is None:
        raise EngineUnavailableError(
            "A program's host code needs a C++ compiler, and there is none here.",
            advice="Install g++ (Debian and Ubuntu: `apt install g++`) or clang++ (macOS: `xcode-select --install`).",
        )
    return found


def compiled(files: Sequence[Path], options: HostOptions, folder: Path) -> Path:
    """Return the shared object of a program, made in `folder`, or taken from the cache.

    Raises
    ------
    CompileError
        What the compiler, or the linker, rejects.
    EngineUnavailableError
        There is no compiler.
    """
    compiler()
    empty = folder / "headers"
    for name in _EMPTY:
        (empty / name).parent.mkdir(parents=True, exist_ok=True)
        (empty / name).touch()
    for header in _SHARED_HEADERS.rglob("cub/**/*.cuh"):  # before the toolkit's, which only nvcc compiles
        stand_in = empty / header.relative_to(_SHARED_HEADERS)
        stand_in.parent.mkdir(parents=True, exist_ok=True)
        stand_in.write_text(f'#include "{header}"\n', "utf-8")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = list(pool.map(partial(_host_text, options, empty), range(len(files)), files))
        objects = [folder / f"{number}.o" for number in range(len(files))]
        key = _key(texts, files, options)
        entry = disk.folder() / f"{key}.host"
        target = folder / "program.so"
        kept = disk.kept(entry, key)
        if kept is not None:
            target.write_bytes(kept)
            target.chmod(0o700)
            return target
        list(pool.map(_compile, texts, files, objects))
    libraries = [f"-l{name}" for name in options.libraries]
    openmp = ["-fopenmp"] if any(_uses_openmp(text) for text in texts) else []
    _run(
        [
            compiler(),
            "-shared",
            *_LINKING,
            "-o",
            str(target),
            *map(str, objects),
            *libraries,
            *openmp,
            "-lm",
            "-lpthread",
        ]
    )
    disk.keep(entry, key, target.read_bytes())
    return target


_LINKING = ("-Wl,-Bsymbolic", "-Wl,-z,defs") if sys.platform == "linux" else ()


def _host_text(options: HostOptions, empty: Path, number: int, file: Path) -> bytes:
    """Return a file's text as the compiler takes it."""
    include = [f"-I{each}" for each in (file.parent, *of_program(options.include_dirs))]
    defines = [f"-D{name}={value}" for name, value in options.defines]
    if file.suffix in _C:
        return _run([_c_compiler(), "-E", *include, *defines, str(file)])
    thrust = [each for each in options.include_dirs if _holds_thrust(each)]
    own = [f"-I{HEADERS}", f"-I{empty}", *(f"-D{each}" for each in (_WITH_THRUST if thrust else _DEFINES))]
    if file.suffix in _CUDA:
        own += ["-include", "cuda_runtime.h"]
    last = [*(f"-isystem{each}" for each in thrust), f"-idirafter{_SHARED_HEADERS}"]
    language = ["-x", "c++", "-std=gnu++17"]
    text = _run([compiler(), "-E", *language, *own, *include, *last, *defines, str(file)])
    if file.suffix not in _CUDA:
        return text
    return rewritten(text, number, str(HEADERS).encode(), str(_SHARED_HEADERS).encode(), functors=bool(thrust))


def _holds_thrust(folder: Path) -> bool:
    return (folder / "thrust" / "version.h").is_file()


def of_program(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders of includes but for Thrust's, whose headers kernels get from the simulator."""
    return tuple(each for each in folders if not _holds_thrust(each))


def _c_compiler() -> str:
    return shutil.which("gcc") or shutil.which("cc") or compiler()


def _uses_openmp(text: bytes) -> bool:
    return b"omp_get_" in text or b"omp_set_" in text


def _compile(text: bytes, file: Path, target: Path) -> None:
    is_c = file.suffix in _C
    language = ["-x", "cpp-output"] if is_c else ["-x", "c++-cpp-output", "-std=gnu++17", "-fpermissive"]
    command = [_c_compiler() if is_c else compiler(), *language, *_FLAGS]
    if _uses_openmp(text):
        command.append("-fopenmp")
    _run([*command, "-o", str(target), "-"], text)


_FLAGS = ("-O1", "-g1", "-fPIC", "-w", "-c")


def _key(texts: Sequence[bytes], files: Sequence[Path], options: HostOptions) -> str:
    key = hashlib.sha256(
        repr((_version(), _FLAGS, _LINKING, options.libraries, [each.suffix for each in files])).encode()
    )
    for text in texts:
        key.update(hashlib.sha256(text).digest())
    return key.hexdigest()


@cache
def _version() -> str:
    path = Path(compiler()).resolve()
    return repr((str(path), path.stat().st_mtime_ns, ctypes.sizeof(ctypes.c_void_p)))


def _run(command: Sequence[str], text: bytes | None = None) -> bytes:
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines()
        first = next(
            (line for line in lines if ": error: " in line or "undefined reference" in line),
            (*lines, f"{Path(command[0]).name} ends with {done.returncode} and says nothing.")[0],
        )
        advice = next(
            (advice for pattern, advice in _OF_LIBRARIES.items() if any(pattern.search(line) for line in lines)), ""
        )
        raise CompileError(f"The host code does not compile: {first}", detail="\n".join(lines[:_SHOWN]), advice=advice)
    return done.stdout


_OF_LIBRARIES = {
    re.compile(r"fatal error: thrust/|['‘]thrust['’] (?:is not|has not|was not|does not)"): (
        "\nThrust's headers are not on the include path: give the folder that holds thrust/ with -I, as"
        " /usr/local/cuda/include/cccl; its algorithms then run on this processor."
    ),
    re.compile(r"fatal error: cub/|['‘]cub::Device\w*['’]"): (
        "\ncub::Device* launches kernels of CUB's own, which the simulator does not run: call Thrust's algorithms, or"
        " write the kernel with cub::Block* and cub::Warp*, which it does."
    ),
    re.compile(r"/(?:thrust|cub|cuda/std)/\S+ (?:fatal )?error: "): (
        "\nThis part of the toolkit's headers is for nvcc alone: of Thrust what its C++ back end has runs on this"
        " processor."
    ),
}
"""What is said of libraries beside the compiler's own words."""
