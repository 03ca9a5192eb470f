"""LLVM: from text to machine code for this processor, kept on disk from run to run."""

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

from gpu.simulator import disk, ir
from gpu.simulator.compiled.strips import SHORTEST_STRIP
from gpu.simulator.types import Struct

Function = Any
_POINTER, _WIDE, _NARROW = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_numbers = itertools.count()

# Takes pieces of a grid that nobody has taken yet, and runs a kernel on each: of many workers none waits for Python.
_TAKER = """
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
    """Machine code of a kernel.

    Parameters
    ----------
    code : bytes
        An object file with a function `kernel`.
    """

    def __init__(self, code: bytes) -> None:
        # The library must live as long as its code may run.
        self._library = _linked(code)
        self.address: int = self._library["kernel"]
        kind = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER, _WIDE, _WIDE, _NARROW, _NARROW, _NARROW)
        self.run: Function = kind(self.address)


class PieceTaker:
    """Runs pieces of a grid that nobody has taken yet.

    Attributes
    ----------
    take : function
        (a kernel's address, its first three arguments, the address of the number of the first block that nobody has
        taken, the number after that of the last one, the blocks of a piece, how many pieces at most, and the grid)
    """

    def __init__(self) -> None:
        self._library = _linked(compile_text(_TAKER))
        pointers, numbers = (_POINTER,) * 5, (_WIDE,) * 3
        kind = ctypes.CFUNCTYPE(None, *pointers, *numbers, _NARROW, _NARROW, _NARROW)
        self.take: Function = kind(self._library["kernel"])


@cache
def piece_taker() -> PieceTaker:
    """Return the one of this process."""
    return PieceTaker()


def _linked(code: bytes) -> Any:
    library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("kernel").add_current_process()
    return library.link(_linker(), f"kernel.{next(_numbers)}")


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


LONG = 100_000
"""Characters of a text that LLVM may take all the time for that it wants. Of a longer one it writes out fewer loops,
which takes two thirds of the time: no long kernel of ours is slower for it."""
LONGEST = 300_000
"""Of a text that is longer even than that loops stay as they are, which takes a sixth."""

_SHORT = re.compile(r"%own\.\d+ = alloca|call (float|double) @(?!llvm\.)|@llvm\.(sin|cos|exp|log|pow)")
"""Where vectors of 64 bytes are no gain: functions that take one number after the other, and arrays of a thread's own,
which are written in long pieces and read in short ones that lie across them."""


def compile_text(text: str) -> bytes:
    """Return the object file of a module's text: the longer it is, the less is made of each line."""
    machine = _machine(long_vectors=_SHORT.search(text) is None)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    if len(text) <= LONGEST:
        _run_level(module, machine, 3 if len(text) <= LONG else 2)
    else:
        _run_few_passes(module, machine)
        if "@llvm.coro." in text:
            # Coroutines become functions in passes that are only to be had with all of a level: the lowest has little
            # else. They keep less over a wait where variables are in registers before, and that is tidied up after.
            _run_level(module, machine, 0)
            _run_few_passes(module, machine)
    code: bytes = machine.emit_object(module)
    return code


def _run_level(module: Any, machine: Any, level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = level > 1
    options.loop_interleaving = options.loop_unrolling = level > 1
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _run_few_passes(module: Any, machine: Any) -> None:
    """Put variables into registers and take away what nobody needs, and no more."""
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
    # Strips of so few threads are worth a vector too.
    llvm.set_option("", f"-vectorizer-min-trip-count={SHORTEST_STRIP}")


@cache
def _machine(*, long_vectors: bool = False) -> Any:
    """Return what makes machine code; `long_vectors` may have 64 bytes where the processor is good at it."""
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_features(long_vectors=long_vectors),
        opt=3,
        reloc="pic",
        codemodel="default",
        jit=True,
    )


def _features(*, long_vectors: bool) -> str:
    """Return what the processor can do.

    LLVM avoids vectors of 64 bytes on all of Intel's, as the first ones that had them ran slower for it; those with
    VBMI2 do not.
    """
    features = llvm.get_host_cpu_features()
    known: str = features.flatten()
    return f"{known},-prefer-256-bit" if long_vectors and features.get("avx512vbmi2") else known


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
