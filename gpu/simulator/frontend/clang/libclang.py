"""Direct bindings of libclang functions; clang's own Python binding spends more time wrapping than the calls take."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

from clang import cindex


class String(ctypes.Structure):
    """A string of libclang; `decode_string` converts it."""

    _fields_ = (("data", ctypes.c_void_p), ("flags", ctypes.c_uint))


class _RangeList(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint), ("ranges", ctypes.POINTER(cindex.SourceRange)))


_CONDA_LIBRARIES = ("lib/libclang.so", "lib/libclang.dylib", "Library/bin/libclang-13.dll")


def find_conda_library(environment: Path) -> Path | None:
    """Return libclang in the folder of a conda environment, or None."""
    return next((path for name in _CONDA_LIBRARIES if (path := environment / name).is_file()), None)


# The wheel's binding has its library in a folder. conda's has none, and only on Linux finds the one of the environment.
if not Path(cindex.Config.library_path or "/nowhere").is_dir() and (library := find_conda_library(Path(sys.prefix))):
    cindex.Config.set_library_file(library)


def bind_function(name: str, result: Any) -> Any:
    """Return a function of libclang with the given result type; its arguments are not checked."""
    bound_function = cindex.conf.lib[name]
    bound_function.restype = result
    return bound_function


_bytes_of = bind_function("clang_getCString", ctypes.c_char_p)
_dispose_string = bind_function("clang_disposeString", None)
_visit_children = bind_function("clang_visitChildren", ctypes.c_uint)
_visit_fields = bind_function("clang_Type_visitFields", ctypes.c_uint)
_number_of_arguments = bind_function("clang_Cursor_getNumArguments", ctypes.c_int)
_argument = bind_function("clang_Cursor_getArgument", cindex.Cursor)
_number_of_argument_types = bind_function("clang_getNumArgTypes", ctypes.c_int)
_argument_type = bind_function("clang_getArgType", cindex.Type)
_binary_operator = bind_function("clang_getCursorBinaryOperatorKind", ctypes.c_int)
_binary_spelling = bind_function("clang_getBinaryOperatorKindSpelling", String)
_unary_operator = bind_function("clang_getCursorUnaryOperatorKind", ctypes.c_int)
_evaluate = bind_function("clang_Cursor_Evaluate", ctypes.c_void_p)
_result_kind = bind_function("clang_EvalResult_getKind", ctypes.c_int)
_integer = bind_function("clang_EvalResult_getAsLongLong", ctypes.c_longlong)
_is_unsigned = bind_function("clang_EvalResult_isUnsignedInt", ctypes.c_uint)
_unsigned = bind_function("clang_EvalResult_getAsUnsigned", ctypes.c_ulonglong)
_double = bind_function("clang_EvalResult_getAsDouble", ctypes.c_double)
_dispose_result = bind_function("clang_EvalResult_dispose", None)
_get_file = bind_function("clang_getFile", ctypes.c_void_p)
_location_at = bind_function("clang_getLocationForOffset", cindex.SourceLocation)
_skipped_ranges = bind_function("clang_getSkippedRanges", ctypes.POINTER(_RangeList))
_dispose_ranges = bind_function("clang_disposeSourceRangeList", None)

_INTEGER, _FLOAT = 1, 2  # CXEval_Int and CXEval_Float
_CONTINUE = 1  # CXChildVisit_Continue and CXVisit_Continue

_UNARY = {
    1: "x++",
    2: "x--",
    3: "++x",
    4: "--x",
    5: "&",
    6: "*",
    7: "+",
    8: "-",
    9: "~",
    10: "!",
    13: "__extension__",
}


def decode_string(string: String) -> str:
    """Return the text of a libclang string and free the string."""
    text = (_bytes_of(string) or b"").decode()
    _dispose_string(string)
    return text


def _collect_child(child: cindex.Cursor, parent: cindex.Cursor, collected: list[cindex.Cursor]) -> int:
    collected.append(child)
    return _CONTINUE


def _collect_field(field: cindex.Cursor, collected: list[cindex.Cursor]) -> int:
    collected.append(field)
    return _CONTINUE


_COLLECT_CHILD = ctypes.CFUNCTYPE(ctypes.c_int, cindex.Cursor, cindex.Cursor, ctypes.py_object)(_collect_child)
_COLLECT_FIELD = ctypes.CFUNCTYPE(ctypes.c_int, cindex.Cursor, ctypes.py_object)(_collect_field)


def children(cursor: cindex.Cursor) -> list[cindex.Cursor]:
    """Return the child nodes of a node, in source order."""
    collected: list[cindex.Cursor] = []
    _visit_children(cursor, _COLLECT_CHILD, ctypes.py_object(collected))
    return collected


def fields(type: cindex.Type) -> list[cindex.Cursor]:
    """Return the data members of a struct."""
    collected: list[cindex.Cursor] = []
    _visit_fields(type, _COLLECT_FIELD, ctypes.py_object(collected))
    return collected


def arguments(cursor: cindex.Cursor) -> list[cindex.Cursor]:
    """Return the arguments of a call, or the parameters of a function."""
    return [_argument(cursor, number) for number in range(_number_of_arguments(cursor))]


def argument_types(type: cindex.Type) -> list[cindex.Type]:
    """Return the types of a function type's parameters."""
    return [_argument_type(type, number) for number in range(_number_of_argument_types(type))]


def unary_operator(cursor: cindex.Cursor) -> str:
    """Return the operator of a unary expression; increments and decrements are `x++`, `++x`, `x--` and `--x`."""
    kind = _unary_operator(cursor)
    return _UNARY.get(kind, f"unary operator {kind}")


def binary_operator(cursor: cindex.Cursor) -> str:
    """Return the operator of a binary or compound assignment expression, such as `+` or `<<=`."""
    return _get_spelling(_binary_operator(cursor))


@cache
def _get_spelling(kind: int) -> str:
    return decode_string(_binary_spelling(kind))


def evaluate_constant(cursor: cindex.Cursor) -> int | float | None:
    """Return the value of a constant expression or of a constant's declaration; None for anything else."""
    address = _evaluate(cursor)
    if not address:
        return None
    result = ctypes.c_void_p(address)
    try:
        kind = _result_kind(result)
        if kind == _INTEGER:
            return int(_unsigned(result) if _is_unsigned(result) else _integer(result))
        return float(_double(result)) if kind == _FLOAT else None
    finally:
        _dispose_result(result)


def location_at(unit: cindex.TranslationUnit, file: str, offset: int) -> cindex.SourceLocation:
    """Return the location of an offset, in bytes, of a file of the unit, also of a precompiled one."""
    return _location_at(unit, ctypes.c_void_p(_get_file(unit, file.encode())), ctypes.c_uint(offset))


def skipped_ranges(unit: cindex.TranslationUnit, file: str) -> list[cindex.SourceRange]:
    """Return the ranges of a file, from directive to directive, that the preprocessor skips.

    The unit must be parsed with a detailed preprocessing record.
    """
    ranges = _skipped_ranges(unit, ctypes.c_void_p(_get_file(unit, file.encode())))
    try:
        return [cindex.SourceRange.from_buffer_copy(each) for each in ranges.contents.ranges[: ranges.contents.count]]
    finally:
        _dispose_ranges(ranges)
