"""The machine's C compiler, as a second opinion on what C means."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Signed overflow wraps as on a GPU, and every float operation rounds on its own.
_FLAGS = ("-O0", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared", "-w")


def run_c(source: str, function: str, *arguments: Any) -> None:
    """Compile C and call one of its functions; arrays are passed as pointers, and changed in place."""
    _compile_and_call(source, function, arguments, ("cc", "gcc", "clang"), "c", "-std=gnu11")


def run_cplusplus(source: str, function: str, *arguments: Any) -> None:
    """Compile C++ and call one of its `extern "C"` functions, as `run_c` does."""
    _compile_and_call(source, function, arguments, ("g++", "clang++", "c++"), "cpp", "-std=gnu++17")


def _compile_and_call(
    source: str, function: str, arguments: tuple[Any, ...], compilers: tuple[str, ...], suffix: str, standard: str
) -> None:
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if compiler is None:
        pytest.fail(
            "These tests compare the simulator with C and C++, and need their compilers: "
            "sudo apt-get install g++ libc6-dev"
        )
    with tempfile.TemporaryDirectory() as folder:
        text, library = Path(folder, f"oracle.{suffix}"), Path(folder, "oracle.so")
        text.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [compiler, standard, *_FLAGS, "-o", library, text, "-lm"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"The compiler rejects the oracle:\n{done.stderr[-2000:]}\n{source}"
        call = ctypes.CDLL(str(library))[function]
        call.restype = None
        call(*map(_to_c_argument, arguments))


def _to_c_argument(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return argument.ctypes.data_as(ctypes.c_void_p)
    return np.ctypeslib.as_ctypes_type(argument.dtype)(argument.item())
