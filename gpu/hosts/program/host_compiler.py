"""Compilation of a program's host code to a shared object by this machine's C++ compiler."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from gpu.base import folders
from gpu.base.errors import CompileError, EngineUnavailableError
from gpu.base.paths import ROOT
from gpu.hosts.program.host_text import rewrite_host_text, separate_variables
from gpu.simulator import disk

HEADERS = ROOT / "gpu" / "hosts" / "program" / "headers"
_HOST_BLOCKS = HEADERS / "host_blocks.cpp"
"""File that is linked to each program: it knows the blocks of host memory."""
_SHARED_HEADERS = ROOT / "gpu" / "simulator" / "shim"
"""Headers that kernels and host code share; device function bodies are removed from them as from the program."""
_COMPILERS = ("g++", "clang++", "c++")
_EMPTY_HEADERS = (
    *("cuda_runtime_api.h", "device_launch_parameters.h", "cuda_profiler_api.h", "vector_types.h"),
    *("vector_functions.h", "math_constants.h", "math_functions.h", "device_functions.h", "builtin_types.h"),
    *("sm_60_atomic_functions.h", "cuda_texture_types.h", "texture_types.h", "channel_descriptor.h"),
    *("device_atomic_functions.h", "texture_fetch_functions.h", "cuda_device_runtime_api.h", "cuda_surface_types.h"),
    *("sm_20_intrinsics.h", "sm_30_intrinsics.h", "sm_35_intrinsics.h", "cudaProfiler.h"),
    *("crt/device_functions.h", "math_functions.hpp", "vector_functions.hpp"),
)
"""CUDA headers that are empty here, since cuda_runtime.h, which is included first, declares their names."""
_DEFINES = ("__CUDACC__=1", "__NVCC__=1", "__CUDACC_VER_MAJOR__=13", "__CUDACC_VER_MINOR__=0")
_CUDA_MACROS = tuple(define.partition("=")[0] for define in _DEFINES)
_THRUST_DEFINES = (
    *("THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP", "LOCKSTEP_THRUST=1"),
    *("CCCL_DISABLE_FP16_SUPPORT", "CCCL_DISABLE_BF16_SUPPORT", "CCCL_DISABLE_NVFP8_SUPPORT"),
)
"""Definitions for Thrust's C++ back end, which runs on this CPU."""
_KEYWORD_DEFINES = ("__host__=", "__device__=", "__global__=", "__forceinline__=inline")
"""Definitions for C++ files, to which CUDA's keywords are macros; the texts of CUDA files are rewritten."""
_CUDA_SUFFIXES = (".cu", ".cuh")
_C_SUFFIXES = (".c",)
_MAX_ERROR_LINES = 40
"""Lines of compiler output to show."""


@dataclass(frozen=True)
class HostOptions:
    """Options of the host compiler.

    Parameters
    ----------
    libraries : tuple of str
        Libraries to link: "m".
    """

    include_dirs: tuple[Path, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    libraries: tuple[str, ...] = ()


@cache
def find_compiler() -> str:
    """Return the C++ compiler.

    Raises
    ------
    EngineUnavailableError
        If there is none.
    """
    requested = os.environ.get("CXX", "")
    path = next((candidate for name in (requested, *_COMPILERS) if name and (candidate := shutil.which(name))), None)
    if path is None:
        raise EngineUnavailableError(
            "Compiling a program's host code needs a C++ compiler, but none was found.",
            advice="Install g++ (Debian and Ubuntu: `apt install g++`) or clang++ (macOS: `xcode-select --install`).",
        )
    return path


_SEARCHED_FOLDERS = re.compile(r"^(?:install: |programs: =|libraries: =| (?=/))(.+)", re.MULTILINE)
"""Folders in the compiler's reports; the last form is that of headers."""


@cache
def find_compiler_paths() -> frozenset[Path]:
    """Return the C++ compiler, and the folders in which it looks for its parts, headers and libraries.

    They may be anywhere: compilers of conda, Spack and environment modules are not in the system's folders.

    Raises
    ------
    EngineUnavailableError
        If there is no compiler.
    """
    compiler = Path(find_compiler())
    found = {compiler, compiler.resolve()}
    for options in (["-print-search-dirs"], ["-E", "-v", "-x", "c++", os.devnull]):
        report = subprocess.run([compiler, *options], capture_output=True, text=True, errors="replace", check=False)
        for line in _SEARCHED_FOLDERS.findall(report.stdout + report.stderr):
            found.update(Path(each) for each in line.split(os.pathsep))
    return frozenset(path for path in found if path.exists())


def has_stand_in(header: str) -> bool:
    """Return whether the simulator has a header of this name, such as "thrust/complex.h", for kernels and hosts."""
    return (_SHARED_HEADERS / header).is_file()


def compile_program(files: Sequence[Path], options: HostOptions, folder: Path) -> Path:
    """Compile a program to a shared object in `folder`, or copy it from the cache; return its path.

    Raises
    ------
    CompileError
        If the compiler or linker reports an error.
    EngineUnavailableError
        If there is no compiler.
    """
    find_compiler()
    files = [*files, _HOST_BLOCKS]
    empty = folder / "headers"
    _write_stand_ins(empty, [each for each in options.include_dirs if contains_thrust(each)])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = separate_variables(list(pool.map(partial(_preprocess_file, options, empty), range(len(files)), files)))
        objects = [folder / f"{number}.o" for number in range(len(files))]
        key = _cache_key([_move_stand_ins(text, empty) for text in texts], files, options)
        entry = folders.cache_folder() / f"{key}.host"
        target = folder / "program.so"
        cached = disk.read_entry(entry, key)
        if cached is not None:
            target.write_bytes(cached)
            target.chmod(0o700)
            return target
        list(pool.map(_compile, texts, files, objects))
    libraries = [f"-l{name}" for name in options.libraries]
    openmp = ["-fopenmp"] if any(_uses_openmp(text) for text in texts) else []
    _run_command(
        [
            find_compiler(),
            "-shared",
            *_LINKING,
            *_WRAPPED,
            "-o",
            str(target),
            *map(str, objects),
            *libraries,
            *openmp,
            "-lm",
            "-lpthread",
            "-ldl",
        ]
    )
    disk.write_entry(entry, key, target.read_bytes())
    return target


def _write_stand_ins(folder: Path, thrust_folders: Sequence[Path]) -> None:
    """Write headers that precede the toolkit's: empty ones, the simulator's, and wrappers of Thrust's."""
    texts = dict.fromkeys(_EMPTY_HEADERS, "")
    for thrust in thrust_folders:
        for header in (*thrust.glob("thrust/**/*.h"), *thrust.glob("cuda/*"), *thrust.glob("cuda/std/*")):
            name = header.relative_to(thrust).as_posix()
            if header.is_file() and "/detail/" not in name and not (HEADERS / name).is_file():
                texts[name] = _wrap_header(name)
    for header in _SHARED_HEADERS.rglob("cub/**/*.cuh"):
        texts[header.relative_to(_SHARED_HEADERS).as_posix()] = f'#include "{header}"\n'
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def _wrap_header(name: str) -> str:
    """Return a header that includes Thrust's of the same name as for a compiler other than nvcc."""
    pushes = [f'#pragma push_macro("{macro}")\n#undef {macro}\n' for macro in _CUDA_MACROS]
    pops = [f'#pragma pop_macro("{macro}")\n' for macro in _CUDA_MACROS]
    return "".join((*pushes, f"#include_next <{name}>\n", *pops))


_WRAPPED = (
    [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc", "free")]
    if platform.libc_ver()[0] == "glibc"
    else []
)
"""host_blocks.cpp has these functions for the program's calls; libraries call the system's."""
_LINKING = ("-Wl,-Bsymbolic", "-Wl,-z,defs", "-Wl,--exclude-libs,ALL") if sys.platform == "linux" else ()
"""Where g++ links a static C++ library, its symbols are hidden: half of them would be those of the library that this
process has loaded, and `std::cout` would crash."""


def _preprocess_file(options: HostOptions, empty: Path, number: int, file: Path) -> bytes:
    """Return a file's preprocessed and rewritten text."""
    include = [f"-I{each}" for each in (file.parent, *exclude_thrust(options.include_dirs))]
    defines = [f"-D{name}={value}" for name, value in options.defines]
    if file.suffix in _C_SUFFIXES:
        return _run_command([_find_c_compiler(), "-E", *include, *defines, str(file)])
    thrust = [include_dir for include_dir in options.include_dirs if contains_thrust(include_dir)]
    lockstep_includes = [
        f"-I{HEADERS}",
        f"-I{empty}",
        *(f"-D{each}" for each in (*_DEFINES, *(_THRUST_DEFINES if thrust else ()))),
    ]
    if file.suffix in _CUDA_SUFFIXES:
        lockstep_includes += ["-include", "cuda_runtime.h"]
        for header in ("thrust/system_error.h", "thrust/system/cuda/execution_policy.h") if thrust else ():
            lockstep_includes += ["-include", header]  # as nvcc's headers do
    else:
        lockstep_includes += [f"-D{each}" for each in _KEYWORD_DEFINES]
    last_includes = [*(f"-isystem{each}" for each in thrust), f"-idirafter{_SHARED_HEADERS}"]
    language = ["-x", "c++", "-std=gnu++17"]
    text = _run_command(
        [find_compiler(), "-E", *language, *lockstep_includes, *include, *last_includes, *defines, str(file)]
    )
    if file.suffix not in _CUDA_SUFFIXES:
        return text
    return rewrite_host_text(text, number, str(HEADERS).encode(), str(_SHARED_HEADERS).encode(), functors=bool(thrust))


def contains_thrust(folder: Path) -> bool:
    """Return whether a folder contains Thrust's headers."""
    return (folder / "thrust" / "version.h").is_file()


def exclude_thrust(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the include folders without Thrust's: the simulator provides its headers to kernels."""
    return tuple(folder for folder in folders if not contains_thrust(folder))


def _find_c_compiler() -> str:
    return shutil.which("gcc") or shutil.which("cc") or find_compiler()


def _uses_openmp(text: bytes) -> bool:
    return b"omp_get_" in text or b"omp_set_" in text


def _compile(text: bytes, file: Path, target: Path) -> None:
    """Compile a preprocessed text to an object file; copy that of the file for all programs from the cache."""
    if file != _HOST_BLOCKS:
        _run_compiler(text, file, target)
        return
    key = _cache_key([text], [file], HostOptions())
    entry = folders.cache_folder() / f"{key}.object"
    cached = disk.read_entry(entry, key)
    if cached is not None:
        target.write_bytes(cached)
        return
    _run_compiler(text, file, target)
    disk.write_entry(entry, key, target.read_bytes())


def _run_compiler(text: bytes, file: Path, target: Path) -> None:
    is_c = file.suffix in _C_SUFFIXES
    language = ["-x", "cpp-output"] if is_c else ["-x", "c++-cpp-output", "-std=gnu++17", "-fpermissive"]
    command = [_find_c_compiler() if is_c else find_compiler(), *language, *_FLAGS]
    if _uses_openmp(text):
        command.append("-fopenmp")
    _run_command([*command, "-o", str(target), "-"], text)


_FLAGS = ("-O1", "-g1", "-fPIC", "-w", "-c")


_MARKER_FOLDER = re.compile(rb'^(# \d+ ")[^"\n]*/(?=[^"/\n]+")', re.MULTILINE)


def _move_stand_ins(text: bytes, folder: Path) -> bytes:
    """Return a text as if the stand-ins for headers, which call nothing, were in the current folder."""
    return text.replace(b'"%b' % os.fsencode(folder / "_")[:-1], b'"')


def _cache_key(texts: Sequence[bytes], files: Sequence[Path], options: HostOptions) -> str:
    """Return a key that is the same wherever the files are.

    The folders in line markers matter to the debugger alone, unless the compiler is asked for a file's name.
    """
    key = hashlib.sha256(
        repr((_compiler_version(), _FLAGS, _LINKING, options.libraries, [file.suffix for file in files])).encode()
    )
    for text in texts:
        if b"__builtin_FILE" not in text:
            text = _MARKER_FOLDER.sub(rb"\1", text)
        key.update(hashlib.sha256(text).digest())
    return key.hexdigest()


@cache
def _compiler_version() -> str:
    path = Path(find_compiler()).resolve()
    return repr((str(path), path.stat().st_mtime_ns, ctypes.sizeof(ctypes.c_void_p)))


def _run_command(command: Sequence[str], text: bytes | None = None) -> bytes:
    process = subprocess.run(command, input=text, capture_output=True, check=False)
    if process.returncode:
        lines = process.stderr.decode(errors="replace").splitlines()
        first = next(
            (line for line in lines if ": error: " in line or "undefined reference" in line),
            (*lines, f"{Path(command[0]).name} exited with code {process.returncode} without a message.")[0],
        )
        advice = next(
            (advice for pattern, advice in _LIBRARY_ADVICE.items() if any(pattern.search(line) for line in lines)), ""
        )
        raise CompileError(
            f"The host code does not compile: {first}", detail="\n".join(lines[:_MAX_ERROR_LINES]), advice=advice
        )
    return process.stdout


_LIBRARY_ADVICE = {
    re.compile(r"fatal error: thrust/|['‘]thrust['’] (?:is not|has not|was not|does not)"): (
        "\nThrust's headers were not found: install the CUDA toolkit, or the package nvidia-cuda-cccl with pip, or name"
        " the folder that contains thrust/ with -I. Thrust's algorithms then run on this CPU."
    ),
    re.compile(r"fatal error: cub/device/|['‘]cub::Device\w*['’]"): (
        "\ncub::Device* launches CUB's own kernels, which the simulator does not support: call Thrust's algorithms,"
        " or write the kernel with cub::Block* and cub::Warp*, which are supported."
    ),
    re.compile(r"fatal error: helper_\w+\.h: |fatal error: 'helper_\w+\.h'"): (
        "\nNVIDIA's samples have this header in the folder Common of their repository: add that folder with -I, or run"
        " the sample where it lies."
    ),
    re.compile(r"/(?:thrust|cub|cuda/std)/\S+ (?:fatal )?error: "): (
        "\nThis part of the toolkit's headers needs nvcc; of Thrust only the C++ back end is supported, which runs on"
        " this CPU."
    ),
    re.compile(r"fatal error: .*(?:No such file or directory|file not found)"): (
        "\nAdd the folder that contains this header with -I FOLDER."
    ),
}
"""Advice about libraries, by patterns in the compiler's output."""
