"""LLVM: compile text to machine code for this processor, and cache it on disk."""

from __future__ import annotations

import copyreg
import ctypes
import hashlib
import io
import itertools
import json
import pickle
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from gpu.base import folders
from gpu.simulator import disk, ir
from gpu.simulator.compiled.thread.strips import MIN_STRIP_LENGTH
from gpu.simulator.types import Struct

Function = Any
_POINTER, _WIDE, _NARROW = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_library_numbers = itertools.count()

# Takes pieces of a grid that no worker has taken, and runs a kernel on each, so that workers never wait for Python.
_PIECE_RUNNER = """
define void @kernel(ptr %run, ptr %scratch, ptr %shared, ptr %args, ptr %next, i64 %end, i64 %step, i64 %pieces,
                    i32 %gx, i32 %gy, i32 %gz) nounwind {
entry:
  br label %ask
ask:
  %taken = phi i64 [ 0, %entry ], [ %more, %run.it ]
  %enough = icmp uge i64 %taken, %pieces
  br i1 %enough, label %leave, label %take
take:
  %first = atomicrmw add ptr %next, i64 %step monotonic
  %left = sub i64 %end, %first
  %none = icmp sle i64 %left, 0
  br i1 %none, label %leave, label %run.it
run.it:
  %fewer = icmp slt i64 %left, %step
  %blocks = select i1 %fewer, i64 %left, i64 %step
  call void %run(ptr %scratch, ptr %shared, ptr %args, i64 %first, i64 %blocks, i32 %gx, i32 %gy, i32 %gz)
  %more = add i64 %taken, 1
  br label %ask
leave:
  ret void
}
"""


class NativeCode:
    """The machine code of a kernel.

    Parameters
    ----------
    code : bytes
        An object file with a function `kernel`.
    """

    def __init__(self, code: bytes) -> None:
        # The library must live as long as its code may run.
        self._library = _link_code(code)
        self.address: int = self._library["kernel"]
        kind = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER, _WIDE, _WIDE, _NARROW, _NARROW, _NARROW)
        self.run: Function = kind(self.address)


class PieceRunner:
    """Runs pieces of a grid that no worker has taken.

    Attributes
    ----------
    run_pieces : function
        (the kernel's address, its first three arguments, the address of the number of the next block, the number after
        the last block, the blocks per piece, the most pieces to run, and the grid)
    """

    def __init__(self) -> None:
        self._library = _link_code(compile_text(_PIECE_RUNNER))
        pointers, numbers = (_POINTER,) * 5, (_WIDE,) * 3
        kind = ctypes.CFUNCTYPE(None, *pointers, *numbers, _NARROW, _NARROW, _NARROW)
        self.run_pieces: Function = kind(self._library["kernel"])


@cache
def get_piece_runner() -> PieceRunner:
    """Return this process's `PieceRunner`."""
    return PieceRunner()


def _link_code(code: bytes) -> Any:
    library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("kernel").add_current_process()
    return library.link(_create_linker(), f"kernel.{next(_library_numbers)}")


def read_cached_code(key: str) -> tuple[Any, bytes] | None:
    """Return the JSON data and the object file stored under a key; None if they are missing or damaged."""
    content = disk.read_entry(_cache_path(key), key)
    if content is None:
        return None
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def write_cached_code(key: str, data: Any, code: bytes) -> None:
    """Store an object file and its JSON data."""
    header = json.dumps(data).encode()
    disk.write_entry(_cache_path(key), key, len(header).to_bytes(8, "little") + header + code)


def _cache_path(key: str) -> Path:
    return folders.cache_folder() / f"{key}.o"


def compute_cache_key(function: ir.Function, *dependencies: Any) -> str:
    """Return the cache key of a function's code; `dependencies` are all other values that affect the code.

    It changes with this package, with LLVM and with the processor.
    """
    output = io.BytesIO()
    pickler = pickle.Pickler(output, protocol=5)
    # Equal objects are written alike, whether identical or not. Nodes have no sets: CPython fails after 50 of them.
    pickler.fast = True
    visited: list[ir.Function | Struct] = []
    numbers: dict[int, int] = {}

    def pickle_by_number(each: ir.Function | Struct) -> tuple[type[int], tuple[int]]:
        if id(each) not in numbers:
            numbers[id(each)] = len(visited)
            visited.append(each)
        return int, (numbers[id(each)],)

    # Objects that may refer to themselves: functions that call each other, structs that point to their own type.
    pickler.dispatch_table = {**copyreg.dispatch_table, ir.Function: pickle_by_number, Struct: pickle_by_number}
    pickler.dump((function, dependencies))
    for each in visited:  # the list grows during the loop
        pickler.dump(vars(each))
    return hashlib.sha256(_compiler_digest() + output.getbuffer()).hexdigest()


@cache
def _create_linker() -> Any:
    _create_machine()
    # RuntimeDyld ends the process if a fragmented address space separates code and its constants by more than 2 GB;
    # JITLink allocates both together. It is not finished for Windows.
    return llvm.create_lljit_compiler(use_jit_link=sys.platform != "win32")


MAX_FULLY_OPTIMIZED_LENGTH = 100_000
"""Text length in characters up to which LLVM optimizes fully. For longer texts it vectorizes fewer loops, which takes
two thirds of the time and makes none of our long kernels slower."""
MAX_OPTIMIZED_LENGTH = 300_000
"""Text length in characters beyond which only a few passes run, which takes a sixth of the time."""

_PREFERS_SHORT_VECTORS = re.compile(r"%own\.\d+ = alloca|call (float|double) @(?!llvm\.)|@llvm\.(sin|cos|exp|log|pow)")
"""Code for which vectors of 64 bytes are no gain: calls of functions of one number, and arrays in local memory, which
are written in long pieces and read in short ones that overlap them."""


def compile_text(text: str) -> bytes:
    """Return the object file of a module's text; the longer the text, the less it is optimized."""
    machine = _create_machine(long_vectors=_PREFERS_SHORT_VECTORS.search(text) is None)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    if len(text) <= MAX_OPTIMIZED_LENGTH:
        _run_optimization_level(module, machine, 3 if len(text) <= MAX_FULLY_OPTIMIZED_LENGTH else 2)
    else:
        _run_few_passes(module, machine)
        if "@llvm.coro." in text:
            # The passes that lower coroutines are only available as a whole level; the lowest has few others.
            # Coroutines save less state if variables are in registers before, and the result needs cleanup after.
            _run_optimization_level(module, machine, 0)
            _run_few_passes(module, machine)
    code: bytes = machine.emit_object(module)
    return code


def _run_optimization_level(module: Any, machine: Any, level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = level > 1
    options.loop_interleaving = options.loop_unrolling = level > 1
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _run_few_passes(module: Any, machine: Any) -> None:
    """Promote variables to registers and remove dead code, and nothing else."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Strips with so few threads are worth vectorizing too.
    llvm.set_option("", f"-vectorizer-min-trip-count={MIN_STRIP_LENGTH}")


@cache
def _create_machine(*, long_vectors: bool = False) -> Any:
    """Return the target machine; `long_vectors` allows 64 bytes on processors that run them at full speed."""
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_processor_features(long_vectors=long_vectors),
        opt=3,
        reloc="pic",
        codemodel="default",
        jit=True,
    )


def _processor_features(*, long_vectors: bool) -> str:
    """Return the processor's features.

    LLVM avoids vectors of 64 bytes on all Intel processors, because the first ones with them ran slower; those with
    VBMI2 do not.
    """
    features = llvm.get_host_cpu_features()
    flattened: str = features.flatten()
    return f"{flattened},-prefer-256-bit" if long_vectors and features.get("avx512vbmi2") else flattened


@cache
def _compiler_digest() -> bytes:
    """Return a digest of everything that affects the code: this package, LLVM, and the processor."""
    version = ".".join(map(str, llvm.llvm_version_info))
    features = llvm.get_host_cpu_features().flatten()
    digest = hashlib.sha256(
        f"{llvmlite.__version__} {version} {llvm.get_host_cpu_name()} {features} {_create_machine().triple}".encode()
    )
    folder = Path(__file__).parent
    ir_folder = folder.parent / "ir"
    for source in (*sorted(folder.rglob("*.py")), *sorted(ir_folder.glob("*.py")), folder.parent / "types.py"):
        digest.update(source.read_bytes())
    return digest.digest()
