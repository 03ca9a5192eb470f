"""Fused multiply-add as a NumPy ufunc, which NumPy lacks: a loop of machine code for each float type."""

from __future__ import annotations

import ctypes
import importlib
import sys
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

_FROM_FUNCTIONS, _NO_IDENTITY = 1, -1
"""The index of PyUFunc_FromFuncAndData in NumPy's table of functions, and its argument for no identity."""

_OPERANDS = ("x", "y", "z", "to")
_VECTOR_LENGTH = 16

# The arguments are those of NumPy's PyUFuncGenericFunction: the addresses of the arrays, their length, and the step of
# each in bytes. Arrays without gaps are computed in vectors, other arrays and the last elements one by one.
_FUNCTION = """
declare {type} @llvm.fma.{suffix}({type}, {type}, {type})
declare {vector} @llvm.fma.{vector_suffix}({vector}, {vector}, {vector})
define void @{suffix}(ptr %arrays, ptr %size, ptr %steps, ptr %data) nounwind {{
entry:
  %n = load i64, ptr %size
  {loads}
  %all.steps = load <4 x i64>, ptr %steps, align 8
  %are.dense = icmp eq <4 x i64> %all.steps, splat (i64 {bytes})
  %bits = bitcast <4 x i1> %are.dense to i4
  %is.dense = icmp eq i4 %bits, -1
  %whole = and i64 %n, -{length}
  %end = select i1 %is.dense, i64 %whole, i64 0
  br label %vectors
vectors:
  %v = phi i64 [ 0, %entry ], [ %v.next, %vector ]
  %more.vectors = icmp slt i64 %v, %end
  br i1 %more.vectors, label %vector, label %elements
vector:
  {vector_body}
  %v.next = add i64 %v, {length}
  br label %vectors
elements:
  %e = phi i64 [ %end, %vectors ], [ %e.next, %element ]
  %more.elements = icmp slt i64 %e, %n
  br i1 %more.elements, label %element, label %leave
element:
  {element_body}
  %e.next = add i64 %e, 1
  br label %elements
leave:
  ret void
}}
"""
_BODY = """%{i}.x = load {type}, ptr %{i}.x.place, align {bytes}
  %{i}.y = load {type}, ptr %{i}.y.place, align {bytes}
  %{i}.z = load {type}, ptr %{i}.z.place, align {bytes}
  %{i}.sum = call {type} @llvm.fma.{suffix}({type} %{i}.x, {type} %{i}.y, {type} %{i}.z)
  store {type} %{i}.sum, ptr %{i}.to.place, align {bytes}"""


@cache
def get_fma() -> Any:
    """Return the ufunc of three arrays or scalars, float32 or float64, that computes `x * y + z` and rounds once."""
    library = _compile(_write_function("float", "f32", 4) + _write_function("double", "f64", 8), ("f32", "f64"))
    loops, data = (ctypes.c_void_p * 2)(library["f32"], library["f64"]), (ctypes.c_void_p * 2)()
    types = (ctypes.c_byte * 8)(*[np.dtype(np.float32).num] * 4, *[np.dtype(np.float64).num] * 4)
    _kept.extend((library, loops, data, types))
    address, number, name = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    parameters = (address, address, address, number, number, number, number, name, name, number)
    create = ctypes.PYFUNCTYPE(ctypes.py_object, *parameters)(_find_ufunc_function(_FROM_FUNCTIONS))
    return create(loops, data, types, 2, 3, 1, _NO_IDENTITY, b"fma", b"x * y + z, rounded once", 0)


_kept: list[Any] = []
"""What the ufunc points to: it must live as long as this process."""


def _write_function(type: str, suffix: str, size: int) -> str:
    vector, vector_suffix = f"<{_VECTOR_LENGTH} x {type}>", f"v{_VECTOR_LENGTH}{suffix}"
    loads, vector_places, places = [], [], []
    for number, name in enumerate(_OPERANDS):
        for field, kind, table in ((name, "ptr", "arrays"), (f"{name}.step", "i64", "steps")):
            loads.append(f"%{field}.field = getelementptr {kind}, ptr %{table}, i64 {number}")
            loads.append(f"%{field} = load {kind}, ptr %{field}.field")
        vector_places.append(f"%v.{name}.place = getelementptr {type}, ptr %{name}, i64 %v")
        places.append(f"%e.{name}.offset = mul i64 %e, %{name}.step")
        places.append(f"%e.{name}.place = getelementptr i8, ptr %{name}, i64 %e.{name}.offset")
    vector_body = _BODY.format(i="v", type=vector, suffix=vector_suffix, bytes=size)
    element_body = _BODY.format(i="e", type=type, suffix=suffix, bytes=size)
    return _FUNCTION.format(
        type=type,
        suffix=suffix,
        bytes=size,
        vector=vector,
        vector_suffix=vector_suffix,
        length=_VECTOR_LENGTH,
        loads="\n  ".join(loads),
        vector_body="\n  ".join((*vector_places, vector_body)),
        element_body="\n  ".join((*places, element_body)),
    )


def _compile(text: str, names: tuple[str, ...]) -> Any:
    """Return a library with the functions of a module's text, for this processor, that are named."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    processor, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=processor, features=features, opt=2, reloc="pic", codemodel="default", jit=True
    )
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    builder = llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module)).add_current_process()
    for name in names:
        builder.export_symbol(name)
    compiler = llvm.create_lljit_compiler(use_jit_link=sys.platform != "win32")
    _kept.append(compiler)
    return builder.link(compiler, "fma")


def _find_ufunc_function(index: int) -> int:
    """Return the address of a function of NumPy's C API for ufuncs."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    api = vars(importlib.import_module("numpy._core._multiarray_umath"))["_UFUNC_API"]
    table = ctypes.cast(get_pointer(api, None), ctypes.POINTER(ctypes.c_void_p))
    address: int | None = table[index]
    assert address is not None
    return address
