"""LLVM: from text to machine code for this processor, kept on disk from run to run."""

from __future__ import annotations

import copyreg
import ctypes
import hashlib
import io
import itertools
import json
import pickle
import sys
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from gpu.simulator import disk, ir
from gpu.simulator.types import Struct

Function = Any
_numbers = itertools.count()


class NativeCode:
    """Machine code of a kernel.

    Parameters
    ----------
    code : bytes
        An object file with a function `kernel`.
    """

    def __init__(self, code: bytes) -> None:
        library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("kernel").add_current_process()
        # The library must live as long as its code may run.
        self._library = library.link(_linker(), f"kernel.{next(_numbers)}")
        pointer, wide, narrow = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
        kind = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, wide, wide, narrow, narrow, narrow)
        self.run: Function = kind(self._library["kernel"])


def kept(key: str) -> tuple[Any, bytes] | None:
    """Return what is kept under a key, and the object file; None where there is none that is whole."""
    content = disk.kept(_file(key), key)
    if content is None:
        return None
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def keep(key: str, about: Any, code: bytes) -> None:
    """Keep an object file, and what JSON can say about it."""
    header = json.dumps(about).encode()
    disk.keep(_file(key), key, len(header).to_bytes(8, "little") + header + code)


def _file(key: str) -> Path:
    return disk.folder() / f"{key}.o"


def key_of(function: ir.Function, *what: Any) -> str:
    """Return the key of a function's code, which also follows from `what`.

    It changes with this package, with LLVM and with the processor.
    """
    written = io.BytesIO()
    pickler = pickle.Pickler(written, protocol=5)
    pickler.fast = True  # equal things are written alike, whether they are one and the same or not
    known: list[ir.Function | Struct] = []
    numbers: dict[int, int] = {}

    def numbered(each: ir.Function | Struct) -> tuple[type[int], tuple[int]]:
        if id(each) not in numbers:
            numbers[id(each)] = len(known)
            known.append(each)
        return int, (numbers[id(each)],)

    # What may lead back to itself: functions that call each other, structs that point to their own kind.
    pickler.dispatch_table = {**copyreg.dispatch_table, ir.Function: numbered, Struct: numbered}
    pickler.dump((function, what))
    for each in known:  # which grow while they are written
        pickler.dump(vars(each))
    return hashlib.sha256(_maker() + written.getbuffer()).hexdigest()


@cache
def _linker() -> Any:
    _machine()
    # RuntimeDyld ends the process where a busy address space leaves code and its constants more than 2 GB apart;
    # JITLink puts both into one piece of memory. It is not finished for Windows.
    return llvm.create_lljit_compiler(use_jit_link=sys.platform != "win32")


LONGEST = 600_000
"""Characters of a text that LLVM may take all the time for that it wants: a second at most."""


def compile_text(text: str) -> bytes:
    """Return the object file of a module's text. Of a very long one loops stay as they are, which takes a third."""
    module = llvm.parse_assembly(text)
    module.triple = _machine().triple
    module.data_layout = str(_machine().target_data)
    module.verify()
    thoroughly = len(text) <= LONGEST
    options = llvm.create_pipeline_tuning_options(speed_level=3 if thoroughly else 1)
    options.loop_vectorization = thoroughly
    options.slp_vectorization = thoroughly
    options.loop_interleaving = thoroughly
    options.loop_unrolling = thoroughly
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
def _maker() -> bytes:
    """Return what makes the code: this package, LLVM, and the processor that it is for."""
    version = ".".join(map(str, llvm.llvm_version_info))
    features = llvm.get_host_cpu_features().flatten()
    digest = hashlib.sha256(
        f"{llvmlite.__version__} {version} {llvm.get_host_cpu_name()} {features} {_machine().triple}".encode()
    )
    here = Path(__file__).parent
    for source in (*sorted(here.glob("*.py")), here.parent / "ir.py", here.parent / "types.py"):
        digest.update(source.read_bytes())
    return digest.digest()
