"""LLVM: from text to machine code for this processor, kept on disk from run to run."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

Function = Any
_VERSION = 1
_numbers = itertools.count()


class NativeCode:
    """Machine code of a kernel.

    Parameters
    ----------
    text : str
        LLVM's text of a function `kernel`.
    """

    def __init__(self, text: str) -> None:
        key = _key(text)
        path = _cache_folder() / f"{key}.o"
        code = _read(path)
        self.was_kept = code is not None
        if code is None:
            code = compile_text(text)
            _write(path, code)
        library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("kernel").add_current_process()
        # The library must live as long as its code may run.
        self._library = library.link(_linker(), f"{key}.{next(_numbers)}")
        pointer, wide, narrow = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
        kind = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, wide, wide, narrow, narrow, narrow)
        self.run: Function = kind(self._library["kernel"])


@cache
def _linker() -> Any:
    _machine()
    return llvm.create_lljit_compiler()


def compile_text(text: str) -> bytes:
    """Return the object file of a module's text."""
    module = llvm.parse_assembly(text)
    module.triple = _machine().triple
    module.data_layout = str(_machine().target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_interleaving = True
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(_machine(), options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = _machine().emit_object(module)
    return code


@cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="default",
        jit=True,
    )


@cache
def _processor() -> str:
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{_VERSION} {llvmlite.__version__} {version} {llvm.get_host_cpu_name()} {_machine().triple}"


def _key(text: str) -> str:
    return hashlib.sha256(f"{_processor()}\n{text}".encode()).hexdigest()


def _cache_folder() -> Path:
    """Return the folder where the platform keeps what can be made again."""
    if "LOCKSTEP_CACHE" in os.environ:
        return Path(os.environ["LOCKSTEP_CACHE"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "Lockstep" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "Lockstep"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"


def _read(path: Path) -> bytes | None:
    """Return a kept object file, None where there is none that is whole."""
    try:
        kept = path.read_bytes()
    except OSError:
        return None
    digest, code = kept[:32], kept[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Keep an object file. Two processes may do so at once: the file appears whole."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(file.name).replace(path)
