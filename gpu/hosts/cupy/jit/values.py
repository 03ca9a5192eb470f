"""Values of a translated function: constants of Python, and CUDA C++ expressions with their types."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.hosts.cupy.kernels.parameters import c_type

Dtype = np.dtype[Any]
UINT32, INT32, INT64, BOOL = np.dtype(np.uint32), np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.bool_)
_ORDER = "?bBhHiIlLefdFD"
"""Types in the order in which CuPy's mode "cuda" promotes them."""
_SUFFIXES = {"uint32": "u", "int64": "ll", "uint64": "ull"}


@dataclass(frozen=True)
class ArrayType:
    """The type of an array."""

    dtype: Dtype
    ndim: int
    contiguous: bool

    def __str__(self) -> str:
        return f"CArray<{c_type(self.dtype)}, {self.ndim}, {'true' if self.contiguous else 'false'}>"


@dataclass(frozen=True)
class PointerType:
    """The type of an array in shared memory."""

    dtype: Dtype

    def __str__(self) -> str:
        return f"{c_type(self.dtype)} *"


ValueType = Dtype | ArrayType | PointerType


@dataclass(frozen=True)
class Value:
    """A CUDA C++ expression.

    Parameters
    ----------
    type : dtype or ArrayType or PointerType or None
        None for an expression without a value.
    """

    code: str
    type: ValueType | None

    @property
    def dtype(self) -> Dtype:
        """The type of a number; raise TypeError if it is not one."""
        if not isinstance(self.type, np.dtype):
            raise TypeError(f"`{self.code}` is not a number")
        return self.type


@dataclass(frozen=True)
class Constant:
    """A value that is known when the function is translated.

    Parameters
    ----------
    value : object
    """

    value: Any


@dataclass(frozen=True)
class TupleValue:
    """Several values, such as a shape."""

    items: tuple[Expression, ...]


Expression = Value | Constant | TupleValue


def format_type(type_: ValueType | None) -> str:
    """Return a type in CUDA C++."""
    if type_ is None:
        return "void"
    return c_type(type_) if isinstance(type_, np.dtype) else str(type_)


def find_constant_type(value: Any, mode: str) -> Dtype:
    """Return the type of a number of Python or NumPy.

    Parameters
    ----------
    value : number
    mode : {"cuda", "numpy"}
        In the mode "cuda", numbers of Python have 32 bits.

    Raises
    ------
    TypeError
        If it is not a number.
    """
    if isinstance(value, np.generic):
        return np.dtype(value.dtype)
    if isinstance(value, bool):
        return BOOL
    narrow = mode == "cuda"
    if isinstance(value, int):
        return INT32 if narrow and -(1 << 31) <= value < 1 << 31 else INT64
    if isinstance(value, float):
        return np.dtype(np.float32 if narrow else np.float64)
    if isinstance(value, complex):
        return np.dtype(np.complex64 if narrow else np.complex128)
    raise TypeError(f"{value!r} is not a number")


def format_constant(value: Any, dtype: Dtype) -> str:
    """Return a number in CUDA C++."""
    name = c_type(dtype)
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        number = int(value)
        if number == np.iinfo(dtype).min and number < 0:
            return f"({name})({number + 1}{_SUFFIXES.get(dtype.name, '')} - 1)"
        text = f"{number}{_SUFFIXES.get(dtype.name, '')}"
        text = f"({text})" if number < 0 else text
        return text if dtype.itemsize >= 4 else f"({name}){text}"
    if dtype.kind == "c":
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return f"{name}({format_constant(value.real, part)}, {format_constant(value.imag, part)})"
    real = float(value)
    if not math.isfinite(real):
        bits = np.array(real, np.float64).view(np.uint64)
        text = f"__longlong_as_double({int(bits):#x}ll)"
        return text if dtype.name == "float64" else f"({name})({'' if dtype.name == 'float32' else '(float)'}{text})"
    text = f"({real!r})" if real < 0 else repr(real)
    return {"float64": text, "float32": f"(float){text}", "float16": f"float16((float){text})"}[dtype.name]


def to_value(expression: Expression, mode: str) -> Value:
    """Return an expression as CUDA C++; raise TypeError for tuples and objects that are not numbers."""
    if isinstance(expression, Value):
        return expression
    if isinstance(expression, Constant):
        dtype = find_constant_type(expression.value, mode)
        return Value(format_constant(expression.value, dtype), dtype)
    raise TypeError("a tuple is not a number")


def promote(types: list[Dtype], mode: str) -> Dtype:
    """Return the type in which numbers of these types are combined."""
    if mode == "numpy":
        return np.result_type(*types)
    return max(types, key=_find_rank)


def _find_rank(dtype: Dtype) -> int:
    return _ORDER.index({"q": "l", "Q": "L"}.get(dtype.char, dtype.char))


def is_exactly_castable(dtype: Dtype, target: Dtype) -> bool:
    """Return whether the mode "cuda" lets a function for the type `target` take a number of the type `dtype`."""
    return _find_rank(dtype) <= _find_rank(target)


def cast(expression: Expression, dtype: Dtype, mode: str, casting: str = "same_kind") -> Value:
    """Return a number converted to a type.

    Raises
    ------
    TypeError
        If the rule `casting` of NumPy forbids it.
    """
    if isinstance(expression, Constant):
        own = find_constant_type(expression.value, mode)
        if casting == "unsafe" or np.can_cast(own, dtype, casting) or (own.kind == "i" and dtype.kind == "u"):  # type: ignore[arg-type]
            return Value(format_constant(dtype.type(expression.value), dtype), dtype)
        raise TypeError(f"Cannot cast from {own} to {dtype} with casting rule {casting}.")
    value = to_value(expression, mode)
    if value.dtype == dtype:
        return value
    if not np.can_cast(value.dtype, dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast from {value.dtype} to {dtype} with casting rule {casting}.")
    code = f"({value.code}).real()" if value.dtype.kind == "c" and dtype.kind != "c" else value.code
    return Value(f"({c_type(dtype)})({code})", dtype)
