"""Functions of `cupyx.jit` that translated functions call: indices, synchronization, atomics, shuffles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from gpu.hosts.cupy.jit.operators import apply_ufunc
from gpu.hosts.cupy.jit.values import (
    BOOL,
    INT32,
    INT64,
    UINT32,
    ArrayType,
    Constant,
    Dtype,
    Expression,
    PointerType,
    TupleValue,
    Value,
    cast,
    format_type,
    to_value,
)

_ATOMIC_TYPES = {
    "add": ("Add", "int32 uint32 uint64 float32 float64 float16"),
    "sub": ("Sub", "int32 uint32"),
    "exch": ("Exch", "int32 uint32 uint64 float32"),
    **{name: (name.title(), "int32 uint32 uint64") for name in ("min", "max", "and", "or", "xor")},
    "inc": ("Inc", "uint32"),
    "dec": ("Dec", "uint32"),
    "cas": ("CAS", "int32 uint32 uint64 uint16"),
}
"""CUDA's name of each atomic function, and the types that CuPy lets it have."""
_SHUFFLE_TYPES = "int32 uint32 int64 uint64 float32 float64 float16"
_FULL_MASK = 0xFFFF_FFFF


class Translation(Protocol):
    """What functions need of the translation that calls them."""

    mode: str

    def declare(self, declaration: str) -> str:
        """Add a declaration to the function, with `{}` in place of a new name; return the name."""

    def index(self, array: Expression, index: Expression) -> Expression:
        """Return an element of an array."""


@dataclass(frozen=True)
class LoopRange:
    """The range of a loop.

    Parameters
    ----------
    step_sign : int
        1 or -1; 0 if only the kernel knows it.
    """

    start: Value
    stop: Value
    step: Value
    step_sign: int
    unroll: bool | int | None


class JitFunction:
    """A function that only translated functions call.

    Parameters
    ----------
    translate : callable
        Returns the call's value, from the translation, the arguments and the keyword arguments.
    """

    def __init__(self, name: str, translate: Callable[..., Any]) -> None:
        self.__name__ = name
        self.translate = translate

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise RuntimeError: Python does not call this function."""
        raise RuntimeError(f"cupyx.jit.{self.__name__} can be called in a function with @jit.rawkernel only")


@dataclass(frozen=True)
class Dim3:
    """`threadIdx`, `blockIdx`, `blockDim` or `gridDim`."""

    x: Value
    y: Value
    z: Value


def _dim3(name: str) -> Dim3:
    return Dim3(*(Value(f"{name}.{axis}", UINT32) for axis in "xyz"))


def get_constant(expression: Expression, what: str) -> Any:
    """Return a constant; raise TypeError if only the kernel knows it."""
    if not isinstance(expression, Constant):
        raise TypeError(f"{what} must be a constant")
    return expression.value


def translate_range(translation: Translation, *arguments: Expression, unroll: Expression | None = None) -> LoopRange:
    """Return the range of a loop."""
    if not 1 <= len(arguments) <= 3:
        raise TypeError(f"range expected 1 to 3 arguments, got {len(arguments)}")
    start: Expression = Constant(0)
    step: Expression = Constant(1)
    if len(arguments) == 1:
        stop = arguments[0]
    else:
        start, stop, step = (*arguments, step)[:3]
    values = [to_value(each, translation.mode) for each in (start, stop, step)]
    if any(each.dtype.kind not in "iu" for each in values):
        raise TypeError("range supports only integers")
    sign = 1 if values[2].dtype.kind == "u" else 0
    if isinstance(step, Constant):
        sign = 1 if step.value >= 0 else -1
    option = None if unroll is None else get_constant(unroll, "unroll")
    if option is not None and not isinstance(option, int):
        raise TypeError(f"unroll must be an int, not {type(option).__name__}")
    loop_type = INT64 if translation.mode == "numpy" else values[1].dtype
    first, last, stride = (cast(each, loop_type, translation.mode, "unsafe") for each in values)
    return LoopRange(first, last, stride, sign, option)


def _translate_len(translation: Translation, array: Expression) -> Value:
    if not isinstance(array, Value) or not isinstance(array.type, ArrayType) or not array.type.ndim:
        raise TypeError("len() takes an array with axes")
    return Value(f"{array.code}.shape()[0]", INT64)


def _translate_extreme(name: str) -> Callable[..., Value]:
    def translate(translation: Translation, *arguments: Expression) -> Value:
        if len(arguments) < 2:
            raise TypeError(f"{name}() expects at least 2 arguments, got {len(arguments)}")
        result = to_value(arguments[0], translation.mode)
        for each in arguments[1:]:
            result = apply_ufunc(f"{name}imum", (result, each), translation.mode)
        return result

    return translate


def _translate_grid(pattern: str) -> Callable[..., Expression]:
    def translate(translation: Translation, ndim: Expression) -> Expression:
        count = get_constant(ndim, "ndim")
        if not isinstance(count, int):
            raise TypeError("ndim must be an integer")
        if count not in (1, 2, 3):
            raise ValueError("Only ndim=1,2,3 are supported")
        values = tuple(Value(f"({pattern.format(axis)})", UINT32) for axis in "xyz"[:count])
        return values[0] if count == 1 else TupleValue(values)

    return translate


def _translate_sync_warp(translation: Translation, *, mask: Expression | None = None) -> Value:
    code = cast(mask, UINT32, translation.mode, "unsafe").code if mask is not None else ""
    return Value(f"__syncwarp({code})", None)


def _translate_shared_memory(
    translation: Translation, dtype: Expression, size: Expression, alignment: Expression | None = None
) -> Value:
    element = np.dtype(get_constant(dtype, "dtype"))
    count = get_constant(size, "size")
    align = "" if alignment is None else f"__align__({int(get_constant(alignment, 'alignment'))}) "
    extern, extent = ("extern ", "") if count is None else ("", str(int(count)))
    name = translation.declare(f"{extern}__shared__ {align}{format_type(element)} {{}}[{extent}];")
    return Value(name, PointerType(element))


def _get_element(translation: Translation, array: Expression, index: Expression, types: str, name: str) -> Value:
    if not isinstance(array, Value) or not isinstance(array.type, ArrayType | PointerType):
        raise TypeError("The first argument must be of array type.")
    target = to_value(translation.index(array, index), translation.mode)
    if target.dtype.name not in types.split():
        raise TypeError(f"`{name}` does not support {target.dtype} input.")
    return target


def _translate_atomic(operation: str, types: str) -> Callable[..., Value]:
    name = f"atomic{operation}"

    def translate(
        translation: Translation,
        array: Expression,
        index: Expression,
        value: Expression,
        alt_value: Expression | None = None,
    ) -> Value:
        target = _get_element(translation, array, index, types, name)
        if (alt_value is None) == (operation == "CAS"):
            raise TypeError(f"{name} takes {4 if operation == 'CAS' else 3} arguments")
        operands = [value] if alt_value is None else [value, alt_value]
        codes = [cast(each, target.dtype, translation.mode).code for each in operands]
        if target.dtype.name == "float16":
            return Value(f"float16({name}(&({target.code}).data, {codes[0]}.data))", target.dtype)
        return Value(f"{name}(&{target.code}, {', '.join(codes)})", target.dtype)

    return translate


def _translate_shuffle(operation: str) -> Callable[..., Value]:
    name = f"__shfl_{operation}sync"

    def translate(
        translation: Translation,
        mask: Expression,
        var: Expression,
        val_id: Expression,
        *,
        width: Expression | None = None,
    ) -> Value:
        lanes = get_constant(mask, "mask")
        if not 0 <= lanes <= _FULL_MASK:
            raise ValueError("mask is out of range")
        value = to_value(var, translation.mode)
        if value.dtype.name not in _SHUFFLE_TYPES.split():
            raise TypeError(f"`{name}` does not support {value.dtype} input.")
        if isinstance(width, Constant) and width.value not in (2, 4, 8, 16, 32):
            raise ValueError("width needs to be power of 2")
        source = cast(val_id, UINT32 if operation in ("up_", "down_") else INT32, translation.mode, "unsafe").code
        size = "32" if width is None else cast(width, INT32, translation.mode).code
        if value.dtype.name == "float16":
            return Value(f"float16({name}({lanes:#x}, ({value.code}).data, {source}, {size}))", value.dtype)
        return Value(f"{name}({lanes:#x}, {value.code}, {source}, {size})", value.dtype)

    return translate


_LANE = "((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32)"
_TRANSLATIONS: Mapping[str, Callable[..., Any]] = {
    "range": translate_range,
    "syncthreads": lambda translation: Value("__syncthreads()", None),
    "syncwarp": _translate_sync_warp,
    "shared_memory": _translate_shared_memory,
    "grid": _translate_grid("threadIdx.{0} + blockIdx.{0} * blockDim.{0}"),
    "gridsize": _translate_grid("blockDim.{0} * gridDim.{0}"),
    "laneid": lambda translation: Value(_LANE, UINT32),
    **{f"atomic_{name}": _translate_atomic(*operation) for name, operation in _ATOMIC_TYPES.items()},
    **{f"shfl_{name}sync": _translate_shuffle(name) for name in ("", "up_", "down_", "xor_")},
}
NAMES: dict[str, Any] = {
    **{name: JitFunction(name, translate) for name, translate in _TRANSLATIONS.items()},
    **{name: _dim3(name) for name in ("threadIdx", "blockDim", "blockIdx", "gridDim")},
    "warpsize": Value("warpSize", INT32),
}
"""The names of the module that translated functions use."""
BUILTINS: dict[Any, JitFunction] = {
    range: NAMES["range"],
    len: JitFunction("len", _translate_len),
    min: JitFunction("min", _translate_extreme("min")),
    max: JitFunction("max", _translate_extreme("max")),
    abs: JitFunction("abs", lambda translation, number: apply_ufunc("absolute", (number,), translation.mode)),
}
"""Functions of Python that translated functions call."""
CASTS: dict[Any, Dtype] = {bool: BOOL, int: INT64, float: np.dtype(np.float64), complex: np.dtype(np.complex128)}
"""Types of Python that translated functions call to convert a number."""
